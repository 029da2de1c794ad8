//! `profile_export_aiperf.json`: the aggregates.

use std::io;
use std::path::PathBuf;

use aiperf_clock::{format_utc, wall};
use aiperf_metrics::registry::Flag;
use aiperf_metrics::{Block, ErrorGroup, Metric, Summary};
use aiperf_types::RequestError;
use serde_json::{Map, Number, Value, json};

use super::Exporter;
use crate::files::write_atomic;
use crate::names::FileNames;
use crate::redact::Redactor;
use crate::results::{PhaseResults, RunResults};

/// Version of the layout that readers know.
pub(super) const SCHEMA_VERSION: &str = "1.4";

/// Metrics that stand before the settings, in this order; all others follow after them.
const FIRST: [Metric; 25] = [
    Metric::RequestThroughput,
    Metric::RequestLatency,
    Metric::RequestCount,
    Metric::TimeToFirstToken,
    Metric::TimeToSecondToken,
    Metric::InterTokenLatency,
    Metric::OutputTokenThroughput,
    Metric::OutputTokenThroughputPerUser,
    Metric::OutputSequenceLength,
    Metric::InputSequenceLength,
    Metric::Goodput,
    Metric::GoodRequestCount,
    Metric::OutputTokenCount,
    Metric::ReasoningTokenCount,
    Metric::MinRequestTimestamp,
    Metric::MaxResponseTimestamp,
    Metric::InterChunkLatency,
    Metric::TotalOutputTokens,
    Metric::TotalReasoningTokens,
    Metric::BenchmarkDuration,
    Metric::TotalIsl,
    Metric::TotalOsl,
    Metric::ErrorRequestCount,
    Metric::ErrorIsl,
    Metric::TotalErrorIsl,
];

pub(super) struct SummaryJson;

impl Exporter for SummaryJson {
    fn name(&self) -> &'static str {
        "json"
    }

    fn about(&self) -> &'static str {
        "Statistics of all metrics and the configuration as JSON"
    }

    fn label(&self) -> &'static str {
        "JSON Export"
    }

    fn export(&self, results: &RunResults<'_>, names: &FileNames) -> io::Result<Vec<PathBuf>> {
        let document = document(results, results.profiling(), results.warmup(), results.was_cancelled)?;
        let path = results.config.output.dir.join(names.summary_json());
        Ok(vec![write_atomic(path, &serde_json::to_vec_pretty(&document)?)?])
    }
}

/// The document about one phase, with the figures of the warmup before it where they belong.
pub(super) fn document(
    results: &RunResults<'_>,
    phase: Option<&PhaseResults>,
    warmup: Option<&PhaseResults>,
    was_cancelled: bool,
) -> io::Result<Map<String, Value>> {
    let empty = Summary::default();
    let summary = phase.map_or(&empty, |phase| &phase.summary);
    let mut out = Map::new();
    out.insert("schema_version".into(), SCHEMA_VERSION.into());
    out.insert("aiperf_version".into(), results.version.into());
    out.insert("benchmark_id".into(), results.config.benchmark_id.as_str().into());
    for metric in FIRST {
        if let Some(block) = summary.block(metric).filter(|_| is_shown(results, metric)) {
            out.insert(metric.tag().into(), block_value(block));
        }
    }
    out.insert("input_config".into(), results.config.input_config.clone());
    out.insert(
        "run_info".into(),
        json!({
            "benchmark_id": results.config.benchmark_id,
            "random_seed": results.config.seed,
            "trial": 0,
            "cli_command": results.redactor.text(&results.config.cli_command),
        }),
    );
    out.insert("was_cancelled".into(), was_cancelled.into());
    out.insert("is_complete".into(), results.incomplete_reason.is_none().into());
    if let Some(reason) = &results.incomplete_reason {
        out.insert("incomplete_reason".into(), results.redactor.text(reason).into());
    }
    out.insert("error_summary".into(), error_summary(&summary.error_groups, &results.redactor));
    if let Some(phase) = phase {
        out.insert("start_time".into(), format_utc(wall(phase.start)).into());
        out.insert("end_time".into(), format_utc(wall(phase.end)).into());
    }
    if let Some(branches) = phase.and_then(|phase| phase.branches) {
        out.insert(
            "branch_stats".into(),
            json!({
                "children_spawned": branches.spawned,
                "children_completed": branches.completed,
                "children_errored": branches.errored,
                "children_truncated": branches.truncated,
                "children_delayed": branches.delayed,
                "parents_suspended": branches.suspended,
                "parents_resumed": branches.resumed,
            }),
        );
    }
    if let Some(warmup) = warmup {
        let blocks: Map<String, Value> = shown(results, &warmup.summary)
            .map(|(metric, block)| (metric.tag().to_owned(), block_value(block)))
            .collect();
        out.insert("warmup_metrics".into(), blocks.into());
    }
    if !summary.pooled_spec_decode_acceptance_histogram.is_empty() {
        let buckets: Map<String, Value> = summary
            .pooled_spec_decode_acceptance_histogram
            .iter()
            .map(|(accepted, steps)| (accepted.to_string(), (*steps).into()))
            .collect();
        out.insert("pooled_spec_decode_acceptance_histogram".into(), buckets.into());
    }
    for (metric, block) in shown(results, summary) {
        if !FIRST.contains(&metric) {
            out.insert(metric.tag().into(), block_value(block));
        }
    }
    if let Some(phase) = phase {
        additions(&mut out, phase)?;
    }
    if let Some(remote) = &results.config.remote {
        out.insert("metadata".into(), json!({ "dataset": remote.provenance }));
    }
    Ok(out)
}

/// Top-level members that are ours; readers that do not know them pass them by.
fn additions(out: &mut Map<String, Value>, phase: &PhaseResults) -> io::Result<()> {
    let summary = &phase.summary;
    if let Some(window) = &summary.window {
        out.insert(
            "observation_window".into(),
            json!({"start_ns": window.start_ns, "end_ns": window.end_ns, "duration_sec": window.duration_sec}),
        );
    }
    out.insert("in_flight_cancelled_count".into(), phase.in_flight_cancelled_count.into());
    out.insert("truncated_stream_count".into(), summary.truncated_stream_count.into());
    if let Some(lag) = &summary.send_lag {
        out.insert("send_lag".into(), serde_json::to_value(lag)?);
    }
    if let Some(delivery) = &phase.load_delivery {
        out.insert("load_delivery".into(), serde_json::to_value(delivery)?);
    }
    Ok(())
}

/// The figures of a metric: unit first, unknown ones left out, infinity as a word.
fn block_value(block: &Block) -> Value {
    let mut out = Map::new();
    out.insert("unit".into(), block.unit.into());
    for (name, figure) in block.figures() {
        let Some(figure) = figure else { continue };
        let value = match block.count {
            Some(count) if name == "count" => count.into(),
            _ => Number::from_f64(figure).map_or_else(|| "inf".into(), Value::Number),
        };
        out.insert(name.into(), value);
    }
    Value::Object(out)
}

/// Failures that are alike, as a list of `{error_details, count}`.
pub(super) fn error_summary(groups: &[ErrorGroup], redactor: &Redactor) -> Value {
    groups
        .iter()
        .map(|group| json!({"error_details": error_details(&group.error, redactor), "count": group.count}))
        .collect()
}

fn error_details(error: &RequestError, redactor: &Redactor) -> Value {
    let mut out = Map::new();
    if let Some(code) = error.code {
        out.insert("code".into(), code.into());
    }
    out.insert("type".into(), error.kind.as_str().into());
    out.insert("message".into(), redactor.text(&error.message).into());
    if let Some(cause) = &error.cause {
        out.insert("cause".into(), redactor.text(cause).into());
    }
    if !error.cause_chain.is_empty() {
        out.insert("cause_chain".into(), error.cause_chain.clone().into());
    }
    if let Some(retry_after) = &error.retry_after {
        out.insert("details".into(), json!({"retry_after": retry_after}));
    }
    Value::Object(out)
}

fn is_shown(results: &RunResults<'_>, metric: Metric) -> bool {
    results.config.output.show_internal_metrics || !metric.def().has(Flag::Internal)
}

/// The metrics of a summary that exports carry, in the order of exports.
pub(super) fn shown<'s>(
    results: &'s RunResults<'_>,
    summary: &'s Summary,
) -> impl Iterator<Item = (Metric, &'s Block)> {
    summary
        .blocks
        .iter()
        .map(|(metric, block)| (*metric, block))
        .filter(|(metric, _)| is_shown(results, *metric))
}
