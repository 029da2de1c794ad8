//! Step curves over the run, and latencies from the instant the schedule let a request go.

use super::ConsoleGroup::{Active, Effective};
use super::definition::{MetricDef, injected};
use super::units::{MS, REQUESTS, TOKENS, TOKENS_PER_SEC, TOKENS_PER_SEC_PER_USER};
use super::{Flag as F, Metric as M};

#[rustfmt::skip]
pub(super) const ROWS: &[MetricDef] = &[
    injected(M::EffectiveConcurrency, "effective_concurrency", "Effective Concurrency").unit(REQUESTS).float().shown_last(Effective),
    injected(M::EffectiveDecodeThroughput, "effective_decode_throughput", "Effective Decode Throughput").unit(TOKENS_PER_SEC).float().shown_last(Effective),
    injected(M::EffectivePrefillThroughput, "effective_prefill_throughput", "Effective Prefill Throughput").unit(TOKENS_PER_SEC).float().shown_last(Effective),
    injected(M::EffectiveDecodeConcurrency, "effective_decode_concurrency", "Effective Decode Concurrency").unit(REQUESTS).float().shown_last(Effective),
    injected(M::EffectivePrefillConcurrency, "effective_prefill_concurrency", "Effective Prefill Concurrency").unit(REQUESTS).float().shown_last(Effective),
    injected(M::EffectiveTotalThroughput, "effective_total_throughput", "Effective Total Throughput").unit(TOKENS_PER_SEC).float().shown_last(Effective),
    injected(M::EffectiveDecodeThroughputPerUser, "effective_decode_throughput_per_user", "Effective Decode Throughput Per User").unit(TOKENS_PER_SEC_PER_USER).float().shown_last(Effective),
    injected(M::EffectivePrefillThroughputPerUser, "effective_prefill_throughput_per_user", "Effective Prefill Throughput Per User").unit(TOKENS_PER_SEC_PER_USER).float().shown_last(Effective),
    injected(M::TokensInFlight, "tokens_in_flight", "Tokens In Flight").unit(TOKENS).float().shown_last(Effective),
    injected(M::ActiveDecodeThroughput, "active_decode_throughput", "Active Decode Throughput").unit(TOKENS_PER_SEC).float().shown_last(Active),
    injected(M::ActivePrefillThroughput, "active_prefill_throughput", "Active Prefill Throughput").unit(TOKENS_PER_SEC).float().shown_last(Active),
    injected(M::ActiveDecodeThroughputPerUser, "active_decode_throughput_per_user", "Active Decode Throughput Per User").unit(TOKENS_PER_SEC_PER_USER).float().shown_last(Active),
    injected(M::ActivePrefillThroughputPerUser, "active_prefill_throughput_per_user", "Active Prefill Throughput Per User").unit(TOKENS_PER_SEC_PER_USER).float().shown_last(Active),
    injected(M::ActiveTotalThroughput, "active_total_throughput", "Active Total Throughput").unit(TOKENS_PER_SEC).float().shown_last(Active),
    injected(M::EffectiveLatency, "effective_latency", "Effective Latency (CO-aware)").unit(MS).float().shown_last(Effective).flags(&[F::NoTimeslice]),
];
