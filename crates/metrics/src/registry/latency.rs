//! Latencies of single requests, plain, without the network, and with failures counted.

use super::ConsoleGroup::Default;
use super::definition::{MetricDef, derived, injected, record};
use super::units::{MS, NS};
use super::{Flag as F, Metric as M};

#[rustfmt::skip]
pub(super) const ROWS: &[MetricDef] = &[
    record(M::RequestLatency, "request_latency", "Request Latency").short("Req Latency").units(NS, MS).int().shown(Default, 300).flags(&[F::ErrorAdjusted]),
    record(M::TimeToFirstToken, "time_to_first_token", "Time to First Token").short("TTFT").units(NS, MS).int().shown(Default, 100).flags(&[F::Streaming, F::Tokens, F::ErrorAdjusted]),
    record(M::InterTokenLatency, "inter_token_latency", "Inter Token Latency").short("ITL").units(NS, MS).float().shown(Default, 400).flags(&[F::Streaming, F::Tokens, F::ErrorAdjusted]).needs(&[M::OutputSequenceLength, M::RequestLatency, M::TimeToFirstToken]),
    record(M::DecodeDuration, "decode_duration", "Decode Duration").short("Decode Duration").units(NS, MS).int().shown(Default, 350).flags(&[F::Streaming, F::Tokens, F::ErrorAdjusted]).needs(&[M::RequestLatency, M::TimeToFirstToken]),
    record(M::TimeToFirstOutputToken, "time_to_first_output_token", "Time to First Output Token").short("TTFO").units(NS, MS).int().shown(Default, 210).flags(&[F::Streaming, F::Tokens, F::Reasoning]),
    derived(M::NetworkAdjustedRequestLatency, "network_adjusted_request_latency", "Network-Adjusted Request Latency").short("Net-Adj Req Latency").units(NS, MS).int().shown(Default, 301).flags(&[F::NetworkCalibrated]),
    derived(M::NetworkAdjustedTimeToFirstToken, "network_adjusted_time_to_first_token", "Network-Adjusted Time to First Token").short("Net-Adj TTFT").units(NS, MS).int().shown(Default, 101).flags(&[F::Streaming, F::Tokens, F::NetworkCalibrated]),
    derived(M::NetworkAdjustedTimeToFirstOutputToken, "network_adjusted_time_to_first_output_token", "Network-Adjusted Time to First Output Token").short("Net-Adj TTFO").units(NS, MS).int().shown(Default, 211).flags(&[F::Streaming, F::Tokens, F::Reasoning, F::NetworkCalibrated]),
    derived(M::NetworkRtt, "network_rtt", "Network RTT").short("Net RTT").units(NS, MS).float().shown(Default, 305).flags(&[F::RunOnly, F::NetworkCalibrated]),
    record(M::StreamSetupLatency, "stream_setup_latency", "Stream Setup Latency").units(NS, MS).int().shown_last(Default).flags(&[F::Streaming, F::Experimental]),
    record(M::StreamPrefillLatency, "stream_prefill_latency", "Stream Prefill Latency").units(NS, MS).int().shown_last(Default).flags(&[F::Streaming, F::Tokens, F::Experimental]).needs(&[M::StreamSetupLatency, M::TimeToFirstToken]),
    record(M::InterChunkLatency, "inter_chunk_latency", "Inter Chunk Latency").short("ICL").units(NS, MS).list().flags(&[F::Streaming, F::Tokens]),
    record(M::TimeToSecondToken, "time_to_second_token", "Time to Second Token").short("TTST").units(NS, MS).int().shown(Default, 200).flags(&[F::Streaming, F::Tokens]),
    injected(M::AdjRequestLatency, "adj_request_latency", "Request Latency (error-adjusted)").unit(MS).float().shown_last(Default).flags(&[F::AfterFailures]).needs(&[M::RequestLatency]),
    injected(M::AdjTimeToFirstToken, "adj_time_to_first_token", "Time to First Token (error-adjusted)").unit(MS).float().shown_last(Default).flags(&[F::AfterFailures]).needs(&[M::TimeToFirstToken]),
    injected(M::AdjInterTokenLatency, "adj_inter_token_latency", "Inter Token Latency (error-adjusted)").unit(MS).float().shown_last(Default).flags(&[F::AfterFailures]).needs(&[M::InterTokenLatency]),
    injected(M::AdjDecodeDuration, "adj_decode_duration", "Decode Duration (error-adjusted)").unit(MS).float().shown_last(Default).flags(&[F::AfterFailures]).needs(&[M::DecodeDuration]),
];
