//! The figures of one phase.

use aiperf_clock::Mono;
use aiperf_types::RequestError;

use crate::block::Block;
use crate::delivery::Spread;
use crate::registry::Metric;

/// The observation window: what every rate of a phase divides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the phase (T0).
    pub start: Mono,
    /// Its last request has come back or was cancelled; unknown when the run was cut before that.
    pub end: Option<Mono>,
}

/// The window as it was applied, on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservationWindow {
    /// Start, wall-clock nanoseconds.
    pub start_ns: u64,
    /// End, wall-clock nanoseconds.
    pub end_ns: u64,
    /// Length, seconds.
    pub duration_sec: f64,
}

/// Failed requests that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorGroup {
    /// What they have in common, with the details of the first.
    pub error: RequestError,
    /// How many.
    pub count: u64,
}

/// Percentiles of a latency of the client, ms.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct SendLag {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// How sends kept to the plan; by the records only, so requests cut in flight are not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SendTiming {
    /// Send minus due, or minus the instant a requested cap let it go; without the first fill of a closed loop.
    pub lateness: Option<Spread>,
    /// Time a requested cap held requests.
    pub cap_wait: Option<Spread>,
    /// Due minus scheduled; only with recorded or arrival times.
    pub slip: Option<Spread>,
}

/// Latencies of valid requests, from one definition of their start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latencies {
    /// To the first content event; streaming only.
    pub time_to_first_token: Option<Block>,
    /// To the last content event.
    pub request_latency: Option<Block>,
}

/// Output lengths that were not what was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OslMismatch {
    /// Records with a requested length.
    pub compared: u64,
    /// Of these, beyond the thresholds.
    pub count: u64,
    /// Mean signed difference of all compared, percent of the requested length.
    pub mean_diff_pct: f64,
}

/// Usage that disagrees with the client's own counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageDiscrepancy {
    /// Records with both.
    pub compared: u64,
    /// Of these, beyond the threshold.
    pub count: u64,
}

/// Everything the records of one phase say.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The metrics that exist, in the order of [`crate::registry::all`].
    pub blocks: Vec<(Metric, Block)>,
    /// Valid records.
    pub valid_count: u64,
    /// Failed records.
    pub failed_count: u64,
    /// Of the failed, those the client cancelled on purpose.
    pub cancelled_count: u64,
    /// Valid records whose stream ended without saying so.
    pub truncated_stream_count: u64,
    /// Streaming requests that were answered with a whole body.
    pub not_streamed_count: u64,
    /// Records taken while their worker was late to its sockets.
    pub delayed_request_count: u64,
    /// Differences that came out negative and cannot be.
    pub negative_difference_count: u64,
    /// Events of unknown kind that were skipped.
    pub skipped_event_count: u64,
    /// Content events of valid records.
    pub content_event_count: u64,
    /// Of these, those that shared a read with the one before.
    pub coalesced_event_count: u64,
    /// The window; absent without records and without a known end.
    pub window: Option<ObservationWindow>,
    /// Failures, alike ones together, first seen first.
    pub error_groups: Vec<ErrorGroup>,
    /// Send minus issue.
    pub send_lag: Option<SendLag>,
    /// How sends kept to the plan.
    pub timing: SendTiming,
    /// Present when output lengths were asked for.
    pub osl_mismatch: Option<OslMismatch>,
    /// Present when usage and own counts could be compared.
    pub usage_discrepancy: Option<UsageDiscrepancy>,
    /// Draft tokens accepted in a step, and how many steps accepted that many; empty steps left out.
    pub pooled_spec_decode_acceptance_histogram: Vec<(u64, u64)>,
    /// Latencies from the send.
    pub service: Latencies,
    /// Latencies from the instant the request was due.
    pub from_intended: Latencies,
    /// Usage was reported but never a cache read.
    pub usage_without_cache_reads: bool,
}

impl Summary {
    /// The block of a metric, if it exists.
    pub fn block(&self, metric: Metric) -> Option<&Block> {
        let index = self.blocks.binary_search_by_key(&metric, |(each, _)| *each).ok()?;
        Some(&self.blocks[index].1)
    }

    /// Valid and failed records.
    pub fn record_count(&self) -> u64 {
        self.valid_count + self.failed_count
    }
}
