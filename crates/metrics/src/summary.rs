//! From the packed records of a phase to its figures.
//!
//! One metric at a time is unpacked into a column of numbers, sorted and summed up; two threads share the work
//! when there is much of it. Gaps between chunks, of which there are many per record, are never unpacked as a
//! whole: see `selection`. Curves over time are swept in stretches: see `curves`.

mod columns;
mod curves;
mod derived;
mod pooled;
mod selection;
mod statistics;
mod types;
mod weighted;

use aiperf_clock::{Mono, wall};

use crate::block::Block;
use crate::context::Context;
use crate::registry::{Flag, Metric};
use crate::store::PhaseStore;
use columns::{Column, Columns};
pub use types::{
    ErrorGroup, Latencies, ObservationWindow, OslMismatch, SendLag, SendTiming, Summary, UsageDiscrepancy,
    Window,
};

/// Every figure of a phase.
pub(crate) fn summarise(store: &PhaseStore, context: &Context, window: &Window) -> Summary {
    let columns = Columns::of(store, context);
    let span = columns.span;
    let window = observed(window, span);
    let mut summary = counted(store);

    let mut blocks: Vec<(Metric, Block)> = columns.blocks.clone();
    blocks.extend(columns::adjusted(&columns, &store.tally, context));
    blocks.extend(derived::blocks(&derived::Inputs {
        columns: &columns,
        tally: &store.tally,
        context,
        window_sec: window.map(|(start, end)| end.since(start) as f64 / 1e9),
        duration_ns: span.filter(|(first, last)| last > first).map(|(first, last)| last.since(first)),
        span,
    }));
    if let Some(gaps) = pooled::gaps(store, context) {
        blocks.push((Metric::InterChunkLatency, gaps));
    }
    if let Some((start, end)) = window {
        blocks.extend(curves::blocks(store, context, start, end));
    }
    blocks.retain(|(metric, _)| context.shown(*metric));
    blocks.sort_by_key(|(metric, _)| *metric);
    summary.blocks = blocks;

    summary.window = window.map(|(start, end)| ObservationWindow {
        start_ns: wall(start),
        end_ns: wall(end),
        duration_sec: end.since(start) as f64 / 1e9,
    });
    summary.send_lag = columns.side(Column::Lag).and_then(statistics::send_lag);
    summary.timing = SendTiming {
        lateness: columns.side(Column::Lateness).and_then(statistics::spread),
        cap_wait: columns.side(Column::CapWait).and_then(statistics::spread),
        slip: columns.side(Column::Slip).and_then(statistics::spread),
    };
    summary.service = Latencies {
        time_to_first_token: columns.block(Metric::TimeToFirstToken).copied(),
        request_latency: columns.block(Metric::RequestLatency).copied(),
    };
    summary.from_intended = Latencies {
        time_to_first_token: columns.side(Column::IntendedFirstToken).copied(),
        request_latency: columns.side(Column::IntendedLatency).copied(),
    };
    summary.osl_mismatch = columns.block(Metric::OslMismatchDiffPct).and_then(|block| {
        Some(OslMismatch {
            compared: block.count?,
            count: columns.sum(Metric::OslMismatchCount)? as u64,
            mean_diff_pct: block.avg?,
        })
    });
    summary.usage_discrepancy = columns.count(Metric::UsageDiscrepancyCount).map(|compared| {
        UsageDiscrepancy { compared, count: columns.sum(Metric::UsageDiscrepancyCount).unwrap_or(0.0) as u64 }
    });
    summary
}

/// The window that rates divide by: that of the phase, or, when its end was never known, the span of the
/// valid requests.
fn observed(window: &Window, span: Option<(Mono, Mono)>) -> Option<(Mono, Mono)> {
    let (start, end) = match window.end {
        Some(end) => (window.start, end),
        None => span?,
    };
    (end > start).then_some((start, end))
}

/// The figures that need no column.
fn counted(store: &PhaseStore) -> Summary {
    let tally = &store.tally;
    Summary {
        valid_count: tally.valid,
        failed_count: tally.failed,
        cancelled_count: tally.cancelled,
        truncated_stream_count: tally.truncated,
        not_streamed_count: tally.not_streamed,
        delayed_request_count: tally.delayed,
        negative_difference_count: tally.negative,
        skipped_event_count: tally.skipped_events,
        content_event_count: tally.content_events,
        coalesced_event_count: tally.coalesced_events,
        usage_without_cache_reads: tally.with_usage > 0 && tally.with_cache_reads == 0,
        error_groups: store.errors.in_order(),
        pooled_spec_decode_acceptance_histogram: (0..)
            .zip(&tally.acceptance)
            .filter(|(_, steps)| **steps > 0)
            .map(|(accepted, steps)| (accepted, *steps))
            .collect(),
        ..Summary::default()
    }
}

/// Whether a metric looks at failed records, valid ones, or both.
fn looks_at(metric: Metric, failed: bool) -> bool {
    match metric {
        Metric::EffectiveLatency | Metric::CreditToStartLatency => true,
        other => other.def().has(Flag::ErrorOnly) == failed,
    }
}
