//! Every condition under which a metric exists: a run that shows it and one that does not.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use aiperf_clock::Mono;
use aiperf_metrics::registry::{self, Flag, Kind};
use aiperf_metrics::{Context, Metric, RecordValues, Store, Window, evaluate};
use aiperf_types::{
    Channel, ContentEvent, PhaseKind, RequestError, RequestRecord, SpecDecode, TraceSource, Usage,
};
use serde_json::Value;
use support::{failed, json, streamed};

const T0: u64 = 7_000_000_000;
const MS: u64 = 1_000_000;

/// Metrics whose source is not built yet.
fn later(metric: Metric) -> bool {
    metric.def().has(Flag::Goodput)
        || metric.def().has(Flag::GpuTelemetry)
        || matches!(
            metric,
            Metric::VideoInferenceTime | Metric::VideoPeakMemory | Metric::SkippedContextOverflowCount
        )
}

/// A record that has everything.
fn full(number: u64) -> RequestRecord {
    let start = T0 + number * 50 * MS;
    let mut record = streamed(number, start, &[20 * MS, 30 * MS, 45 * MS], 5);
    record.answer.content.insert(0, ContentEvent { at: Mono(start + 15 * MS), channel: Channel::Reasoning });
    record.tokens.reasoning = Some(1);
    record.plan.scheduled = Some(Mono(start - MS));
    record.plan.issued = Mono(start - MS / 2);
    record.headers = Some(Mono(start + 10 * MS));
    record.request.max_tokens = Some(6);
    record.request.num_images = 2;
    record.request.audio_seconds = Some(1.5);
    record.identity.source = Some(Arc::new(TraceSource {
        trace_id: Arc::from("trace"),
        outer_index: 0,
        inner_index: None,
        kind: Arc::from("agent"),
        cached_blocks: 1,
        blocks: 2,
    }));
    record.answer.usage = Some(Usage {
        prompt_tokens: Some(8),
        completion_tokens: Some(6),
        total_tokens: Some(14),
        reasoning_tokens: Some(1),
        prompt_cache_read_tokens: Some(4),
        prompt_cache_write_tokens: Some(3),
        prompt_cache_miss_tokens: Some(1),
        tool_use_prompt_tokens: Some(1),
        prompt_audio_tokens: Some(1),
        prompt_audio_seconds: Some(0.5),
        completion_audio_tokens: Some(1),
        accepted_prediction_tokens: Some(1),
        rejected_prediction_tokens: Some(1),
    });
    record.answer.spec_decode = Some(SpecDecode {
        acceptance_histogram: vec![1, 1],
        num_spec_steps: 2,
        num_spec_tokens: Some(1),
        draft_tokens: Some(2),
        accepted_draft_tokens: Some(1),
        mean_acceptance_length: Some(1.5),
        raw: None,
    });
    let trace = &mut record.trace;
    trace.send_start = Some(Mono(start + 1));
    trace.send_end = Some(Mono(start + 2));
    trace.receive_start = Some(Mono(start + 15 * MS));
    trace.receive_end = Some(Mono(start + 45 * MS));
    record
}

fn everything() -> Context {
    Context {
        takes_images: true,
        takes_audio: true,
        tls: true,
        fixed_schedule: true,
        show_internal: true,
        show_experimental: true,
        network_rtt_ms: Some(1.0),
        ..Context::default()
    }
}

struct Run {
    context: Context,
    records: Vec<RequestRecord>,
}

impl Run {
    fn full() -> Run {
        let error = RequestError::new(500, "Internal Server Error", "no");
        let records = vec![full(0), full(1), failed(2, T0 + 100 * MS, MS, error)];
        Run { context: everything(), records }
    }

    fn summary_metrics(&self) -> BTreeSet<Metric> {
        let mut store = Store::new();
        for record in &self.records {
            store.push(record);
        }
        let window = Window { start: Mono(T0), end: Some(Mono(T0 + 1_000 * MS)) };
        let summary = store.summarise(PhaseKind::Profiling, &self.context, &window);
        summary.blocks.into_iter().map(|(metric, _)| metric).collect()
    }

    fn record_metrics(&self) -> BTreeSet<Metric> {
        let mut values = RecordValues::new();
        let mut all = BTreeSet::new();
        for record in &self.records {
            evaluate(record, &self.context, &mut values);
            all.extend(values.iter().map(|(metric, _)| metric));
        }
        all
    }
}

/// Changes a full run so that a condition does not hold.
fn break_condition(condition: &str, run: &mut Run) {
    let context = &mut run.context;
    let valid = run.records.iter_mut().filter(|record| record.is_valid());
    match condition {
        "endpoint produces tokens" => context.produces_tokens = false,
        "endpoint tokenizes input" => context.tokenizes_input = false,
        "endpoint takes audio" => context.takes_audio = false,
        "endpoint takes images" => context.takes_images = false,
        "streaming" => context.streaming = false,
        "not --use-server-token-count" => context.server_token_counts = true,
        "not accuracy mode" => context.accuracy = true,
        "fixed-schedule profiling phase" => context.fixed_schedule = false,
        "shown only with AIPERF_DEV_SHOW_INTERNAL_METRICS" => context.show_internal = false,
        "computed only with AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS or dev mode" => {
            context.show_experimental = false;
        }
        "--network-latency-automatic or --network-latency-mean" => context.network_rtt_ms = None,
        "server reports the field" => valid.for_each(|record| record.answer.usage = None),
        "server reports spec-decode stats" => valid.for_each(|record| record.answer.spec_decode = None),
        // There is no trace of what never reached the wire.
        "always computed; console table only with --show-trace-timing" => {
            valid.for_each(|record| record.trace.send_start = None);
        }
        "loader supplies prefix block counts" => valid.for_each(|record| record.identity.source = None),
        "failed records only" | "at least one failed record" => {
            run.records.retain(RequestRecord::is_valid);
        }
        other => panic!("no run without: {other}"),
    }
}

fn requires_any(metric: Metric, of: &BTreeSet<Metric>) -> bool {
    let requires = metric.def().requires;
    requires.iter().any(|each| of.contains(each) || requires_any(*each, of))
}

#[test]
fn every_metric_has_a_run_that_shows_it() {
    let run = Run::full();
    let shown = run.summary_metrics();
    let per_record = run.record_metrics();
    for def in registry::all().filter(|def| !later(def.metric)) {
        assert!(shown.contains(&def.metric), "{}", def.tag);
        assert_eq!(per_record.contains(&def.metric), def.kind == Kind::Record, "{}", def.tag);
    }
    assert!(shown.iter().all(|metric| !later(*metric)));
}

#[test]
fn every_condition_has_a_run_that_hides_its_metrics_and_no_others() {
    let rows = json("metrics.json");
    let rows: Vec<(Metric, Vec<&str>)> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let conditions = row["applies_when"].as_array().unwrap().iter().filter_map(Value::as_str);
            (Metric::from_tag(row["tag"].as_str().unwrap()).unwrap(), conditions.collect())
        })
        .filter(|(metric, _)| !later(*metric))
        .collect();
    let conditions: BTreeSet<&str> =
        rows.iter().flat_map(|(_, conditions)| conditions.iter().copied()).collect();
    assert_eq!(conditions.len(), 17);
    for condition in conditions {
        let mut run = Run::full();
        break_condition(condition, &mut run);
        let shown = run.summary_metrics();
        let per_record = run.record_metrics();
        let bound: BTreeSet<Metric> = rows
            .iter()
            .filter(|(_, conditions)| conditions.contains(&condition))
            .map(|(metric, _)| *metric)
            .collect();
        for metric in &bound {
            assert!(!shown.contains(metric), "{} without: {condition}", metric.tag());
            assert!(!per_record.contains(metric), "{} in a line without: {condition}", metric.tag());
        }
        for (metric, _) in rows.iter().filter(|(metric, _)| !shown.contains(metric)) {
            let tag = metric.tag();
            // Curves need what their tokens and stamps come from; they state it in no flag.
            let curve = metric.def().kind == Kind::Injected && !tag.starts_with("adj_");
            // Failures are what both conditions are about.
            let failures = condition.contains("failed record") && metric.def().has(Flag::AfterFailures)
                || condition.contains("failed record") && metric.def().has(Flag::ErrorOnly);
            assert!(
                bound.contains(metric)
                    || requires_any(*metric, &bound)
                    || failures
                    || (curve
                        && matches!(
                            condition,
                            "streaming" | "endpoint produces tokens" | "endpoint tokenizes input"
                        )),
                "{tag} is hidden without: {condition}"
            );
        }
    }
}

/// Ours: a part of connecting, 0 on a connection that was used before, and nothing without TLS.
#[test]
fn tls_handshakes_are_timed_where_there_is_tls() {
    let mut first = full(0);
    first.trace.tls = Some((Mono(T0), Mono(T0 + 3 * MS)));
    let mut run = Run { context: everything(), records: vec![first, full(1)] };
    let mut shown = Vec::new();
    let mut values = RecordValues::new();
    for record in &run.records {
        evaluate(record, &run.context, &mut values);
        shown.extend(values.iter().filter(|(metric, _)| *metric == Metric::HttpReqTlsHandshaking).map(
            |(_, value)| match value {
                aiperf_metrics::Value::Float(ms) => ms,
                other => panic!("{other:?}"),
            },
        ));
    }
    assert_eq!(shown, [3.0, 0.0]);
    run.context.tls = false;
    assert!(!run.record_metrics().contains(&Metric::HttpReqTlsHandshaking));
    assert!(!run.summary_metrics().contains(&Metric::HttpReqTlsHandshaking));
}
