//! Requests counted over the run, and the run itself.

use super::ConsoleGroup::Default;
use super::definition::{MetricDef, derived, max_of, min_of, sum_of};
use super::units::{NS, PERCENT, RATIO, REQUESTS, REQUESTS_PER_SEC, SEC};
use super::{Flag as F, Metric as M};

#[rustfmt::skip]
pub(super) const ROWS: &[MetricDef] = &[
    sum_of(M::ErrorRequestCount, "error_request_count", "Error Request Count").short_bare("Error Count").unit(REQUESTS).int().shown_last(Default).flags(&[F::ErrorOnly, F::RunOnly]),
    sum_of(M::GoodRequestCount, "good_request_count", "Good Request Count").per_record().bare().unit(REQUESTS).float().flags(&[F::Goodput]),
    sum_of(M::RequestCount, "request_count", "Request Count").short_bare("Requests").unit(REQUESTS).int().shown(Default, 1100).flags(&[F::RunOnly, F::LargerIsBetter]),
    derived(M::GoodRequestFraction, "good_request_fraction", "GoodRequestFraction").short_bare("GoodReqFrac").unit(RATIO).float().flags(&[F::Goodput, F::LargerIsBetter]),
    max_of(M::MaxResponseTimestamp, "max_response_timestamp", "Maximum Response Timestamp").short_bare("Max Resp").unit(NS).int().flags(&[F::Internal, F::RunOnly]).needs(&[M::RequestLatency]),
    min_of(M::MinRequestTimestamp, "min_request_timestamp", "Minimum Request Timestamp").short_bare("Min Req").unit(NS).int().flags(&[F::Internal, F::RunOnly]),
    derived(M::BenchmarkDuration, "benchmark_duration", "Benchmark Duration").short_bare("Duration").units(NS, SEC).int().needs(&[M::MaxResponseTimestamp, M::MinRequestTimestamp]),
    derived(M::RequestThroughput, "request_throughput", "Request Throughput").short_bare("Req/sec").unit(REQUESTS_PER_SEC).float().shown(Default, 900).flags(&[F::LargerIsBetter]).needs(&[M::BenchmarkDuration, M::RequestCount]),
    sum_of(M::ContextOverflowCount, "context_overflow_count", "Context Overflow Count").short_bare("Ctx Overflow").unit(REQUESTS).int().shown_last(Default).flags(&[F::ErrorOnly, F::RunOnly]),
    derived(M::CompletedRequestCount, "completed_request_count", "Completed Requests (Success + Error)").short_bare("Completed").unit(REQUESTS).int().shown(Default, 1075).flags(&[F::RunOnly]),
    derived(M::Goodput, "goodput", "Goodput").short_bare("Goodput").unit(REQUESTS_PER_SEC).float().shown(Default, 1000).flags(&[F::Goodput]).needs(&[M::BenchmarkDuration, M::GoodRequestCount]),
    derived(M::RequestErrorRate, "request_error_rate", "Request Error Rate").short_bare("Err %").unit(PERCENT).float().shown(Default, 1080).flags(&[F::RunOnly]),
];
