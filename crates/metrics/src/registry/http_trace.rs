//! The phases of one HTTP exchange.

use super::ConsoleGroup::Hidden;
use super::definition::{MetricDef, record};
use super::units::{BYTES, COUNT, KB, MS, NS, RATIO};
use super::{Flag as F, Metric as M};

#[rustfmt::skip]
pub(super) const ROWS: &[MetricDef] = &[
    record(M::HttpReqBlocked, "http_req_blocked", "HTTP Blocked").short("Blocked").units(NS, MS).int().shown(Hidden, 2000).flags(&[F::HttpTrace]),
    record(M::HttpReqConnectionReused, "http_req_connection_reused", "HTTP Connection Reused").short("Conn Reused").unit(RATIO).int().shown(Hidden, 2060).flags(&[F::HttpTrace]),
    record(M::HttpReqConnecting, "http_req_connecting", "HTTP Connecting").short("Connecting").units(NS, MS).int().shown(Hidden, 2020).flags(&[F::HttpTrace]),
    // Ours: a part of connecting, 0 on a connection that was used before, absent without TLS.
    record(M::HttpReqTlsHandshaking, "http_req_tls_handshaking", "HTTP TLS Handshaking").short("TLS").units(NS, MS).int().shown(Hidden, 2025).flags(&[F::HttpTrace]),
    record(M::HttpReqDnsLookup, "http_req_dns_lookup", "HTTP DNS Lookup").short("DNS").units(NS, MS).int().shown(Hidden, 2010).flags(&[F::HttpTrace]),
    record(M::HttpReqSending, "http_req_sending", "HTTP Sending").short("Sending").units(NS, MS).int().shown(Hidden, 2030).flags(&[F::HttpTrace]),
    record(M::HttpReqWaiting, "http_req_waiting", "HTTP Waiting (TTFB)").short("TTFB").units(NS, MS).int().shown(Hidden, 2040).flags(&[F::HttpTrace]),
    record(M::HttpReqReceiving, "http_req_receiving", "HTTP Receiving").short("Receiving").units(NS, MS).int().shown(Hidden, 2050).flags(&[F::HttpTrace]),
    record(M::HttpReqDuration, "http_req_duration", "HTTP Duration (excl. conn)").short("Dur (excl)").units(NS, MS).int().shown(Hidden, 2120).flags(&[F::HttpTrace]),
    record(M::HttpReqDataSent, "http_req_data_sent", "HTTP Data Sent").short("Sent").units(BYTES, KB).int().shown(Hidden, 2070).flags(&[F::HttpTrace]),
    record(M::HttpReqDataReceived, "http_req_data_received", "HTTP Data Received").short("Received").units(BYTES, KB).int().shown(Hidden, 2090).flags(&[F::HttpTrace]),
    record(M::HttpReqChunksSent, "http_req_chunks_sent", "HTTP Chunks Sent").short("Chunks Sent").unit(COUNT).int().shown(Hidden, 2080).flags(&[F::HttpTrace]),
    record(M::HttpReqChunksReceived, "http_req_chunks_received", "HTTP Chunks Received").short("Chunks Recv").unit(COUNT).int().shown(Hidden, 2100).flags(&[F::HttpTrace]),
    record(M::HttpReqConnectionOverhead, "http_req_connection_overhead", "HTTP Connection Overhead").short("Conn Overhead").units(NS, MS).int().shown(Hidden, 2110).flags(&[F::HttpTrace]).needs(&[M::HttpReqBlocked, M::HttpReqConnecting, M::HttpReqDnsLookup]),
    record(M::HttpReqTotal, "http_req_total", "HTTP Total Time").short("Total").units(NS, MS).int().shown(Hidden, 2130).flags(&[F::HttpTrace]).needs(&[M::HttpReqBlocked, M::HttpReqConnecting, M::HttpReqDnsLookup, M::HttpReqReceiving, M::HttpReqSending, M::HttpReqWaiting]),
];
