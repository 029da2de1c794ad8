//! `trace_data`: the exchange on the wire, on the wall clock.

use std::net::SocketAddr;

use aiperf_clock::{Anchor, Mono};
use aiperf_types::{RequestRecord, TransportFacts};

use crate::json;
use crate::redact::Redactor;

/// Appends the trace object. `trace_type` names the layout that readers know.
pub(super) fn write(out: &mut Vec<u8>, record: &RequestRecord, redactor: &Redactor, anchor: Anchor) {
    let trace = &record.trace;
    let facts = trace.facts.as_deref();
    let mut object = Object { out, anchor };
    object.out.extend_from_slice(b"{\"trace_type\":\"aiohttp\"");
    object.instant("request_send_start_ns", trace.send_start);
    if let Some(list) = &record.request.headers {
        object.headers("request_headers", list, redactor);
    }
    object.instant("request_headers_sent_ns", trace.headers_sent);
    object.chunks("request_chunks", facts.map(|facts| facts.writes.as_slice()));
    object.instant("request_send_end_ns", trace.send_end);
    object.count("request_chunks_count", u64::from(trace.chunks_sent));
    object.count("request_bytes_total", trace.bytes_sent);
    if let Some(status) = record.status {
        object.count("response_status_code", u64::from(status));
    }
    if let Some(facts) = facts {
        object.text("response_reason", &facts.reason);
    }
    object.instant("response_receive_start_ns", trace.receive_start);
    if let Some(facts) = facts {
        object.headers("response_headers", &facts.response_headers, redactor);
    }
    object.instant("response_headers_received_ns", record.headers);
    object.chunks("response_chunks", facts.map(|facts| facts.reads.as_slice()));
    object.count("response_chunks_count", u64::from(trace.chunks_received));
    object.count("response_bytes_total", trace.bytes_received);
    object.instant("response_receive_end_ns", trace.receive_end);
    if record.error.is_some() {
        object.instant("error_timestamp_ns", Some(record.end));
    }
    object.span(["connection_pool_wait_start_ns", "connection_pool_wait_end_ns"], trace.pool_wait);
    object.span(["tcp_connect_start_ns", "tcp_connect_end_ns"], trace.connect);
    if trace.reused {
        object.instant("connection_reused_ns", trace.send_start);
    }
    object.span(["dns_lookup_start_ns", "dns_lookup_end_ns"], trace.dns);
    object.address(["local_ip", "local_port"], facts.and_then(|facts: &TransportFacts| facts.local));
    object.address(["remote_ip", "remote_port"], facts.and_then(|facts| facts.remote));
    object.difference("sending_ns", trace.send_start, trace.send_end);
    object.difference("waiting_ns", trace.send_end, trace.receive_start);
    object.difference("receiving_ns", trace.receive_start, trace.receive_end);
    object.difference("duration_ns", trace.send_start, trace.receive_end);
    for (name, span) in
        [("blocked_ns", trace.pool_wait), ("dns_lookup_ns", trace.dns), ("connecting_ns", trace.connect)]
    {
        object.difference(name, span.map(|span| span.0), span.map(|span| span.1));
    }
    object.out.push(b'}');
}

/// The object being written; members that do not exist are left out.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    anchor: Anchor,
}

impl Object<'_> {
    fn instant(&mut self, name: &str, at: Option<Mono>) {
        if let Some(at) = at {
            self.count(name, self.anchor.wall(at));
        }
    }

    fn span(&mut self, names: [&str; 2], span: Option<(Mono, Mono)>) {
        self.instant(names[0], span.map(|span| span.0));
        self.instant(names[1], span.map(|span| span.1));
    }

    fn difference(&mut self, name: &str, from: Option<Mono>, until: Option<Mono>) {
        if let (Some(from), Some(until)) = (from, until) {
            json::key(self.out, name);
            json::signed(self.out, until.since(from));
        }
    }

    fn count(&mut self, name: &str, value: u64) {
        json::key(self.out, name);
        json::unsigned(self.out, value);
    }

    fn text(&mut self, name: &str, text: &str) {
        json::key(self.out, name);
        json::string(self.out, text);
    }

    fn headers(&mut self, name: &str, list: &[(String, String)], redactor: &Redactor) {
        json::key(self.out, name);
        headers(self.out, list, |_| true, redactor);
    }

    /// `[[wall ns, bytes], …]`
    fn chunks(&mut self, name: &str, chunks: Option<&[(Mono, u32)]>) {
        json::key(self.out, name);
        self.out.push(b'[');
        for (index, &(at, bytes)) in chunks.unwrap_or_default().iter().enumerate() {
            self.out.extend_from_slice(if index > 0 { b",[" } else { b"[" });
            json::unsigned(self.out, self.anchor.wall(at));
            self.out.push(b',');
            json::unsigned(self.out, u64::from(bytes));
            self.out.push(b']');
        }
        self.out.push(b']');
    }

    fn address(&mut self, names: [&str; 2], address: Option<SocketAddr>) {
        if let Some(address) = address {
            self.text(names[0], &address.ip().to_string());
            self.count(names[1], u64::from(address.port()));
        }
    }
}

/// Appends the headers whose names are `kept` as an object; credentials are hidden, of a repeated name the last
/// value counts.
pub(super) fn headers(
    out: &mut Vec<u8>,
    list: &[(String, String)],
    kept: impl Fn(&str) -> bool,
    redactor: &Redactor,
) {
    out.push(b'{');
    for (index, (name, value)) in list.iter().enumerate() {
        if !kept(name) || list[index + 1..].iter().any(|(later, _)| later.eq_ignore_ascii_case(name)) {
            continue;
        }
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        json::string(out, name);
        out.push(b':');
        json::string(out, &redactor.header(name, value));
    }
    out.push(b'}');
}
