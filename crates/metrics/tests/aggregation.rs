//! Summaries of recorded runs, figure by figure.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

mod support;

use aiperf_metrics::registry::{Flag, Kind};
use aiperf_metrics::{Block, Metric, Store, Summary, Window};
use aiperf_types::PhaseKind;
use serde_json::Value;
use support::{CASES, close, context, from_line, instant, json, lines};

/// Metrics of parts that are built later.
fn later(metric: Metric) -> bool {
    metric.def().has(Flag::Goodput) || metric.def().has(Flag::GpuTelemetry)
}

fn summarise(case: &str, phase: PhaseKind) -> Summary {
    let context = context(case);
    let mut store = Store::new();
    for line in lines(&format!("{case}/profile_export.jsonl")) {
        store.push(&from_line(&line));
    }
    let json = json(&format!("{case}/profile_export_aiperf.json"));
    let window = Window { start: instant(&json["start_time"]), end: Some(instant(&json["end_time"])) };
    store.summarise(phase, &context, &window)
}

fn theirs(case: &str) -> Vec<(Metric, Value)> {
    let json = json(&format!("{case}/profile_export_aiperf.json"));
    let blocks = json.as_object().unwrap().iter().filter(|(_, value)| value.get("unit").is_some());
    blocks.map(|(tag, value)| (Metric::from_tag(tag).unwrap(), value.clone())).collect()
}

/// Every figure of one block against ours.
fn compare(case: &str, metric: Metric, ours: &Block, theirs: &Value, agree: impl Fn(&str, f64, f64) -> bool) {
    let tag = metric.tag();
    assert_eq!(ours.unit, theirs["unit"].as_str().unwrap(), "{case} {tag}");
    for (name, ours) in ours.figures() {
        match (ours, theirs.get(name).and_then(Value::as_f64)) {
            (Some(ours), Some(theirs)) => {
                assert!(agree(name, ours, theirs), "{case} {tag} {name}: {ours} and {theirs}");
            }
            (None, None) => {}
            // An infinite percentile is left out by the reference.
            (Some(ours), None) if ours.is_infinite() => {}
            (ours, theirs) => panic!("{case} {tag} {name}: {ours:?} and {theirs:?}"),
        }
    }
}

#[test]
fn figures_of_record_metrics_equal_the_recorded_ones() {
    for case in CASES {
        if case == "sigint" {
            // Its lines are cut to ten, its summary is of more.
            continue;
        }
        let summary = summarise(case, PhaseKind::Profiling);
        let mut compared = 0;
        for (metric, block) in theirs(case) {
            // Credit drop is measured from an instant inside the reference that is not recorded.
            if metric.def().kind != Kind::Record
                || metric == Metric::CreditDropLatency
                || (case == "embeddings" && metric == Metric::OutputSequenceLength)
            {
                continue;
            }
            if metric == Metric::HttpReqDuration && matches!(case, "chat_nonstreaming" | "embeddings") {
                // After a whole body the reference waits for the end of the exchange, and does not say how long.
                continue;
            }
            let ours = summary.block(metric).unwrap_or_else(|| panic!("{case}: no {}", metric.tag()));
            compare(case, metric, ours, &block, |_, ours, theirs| {
                close(ours, theirs, 1e-9) || (ours - theirs).abs() < 1e-9
            });
            compared += 1;
        }
        assert!(compared >= 15, "{case}: {compared}");
    }
}

#[test]
fn derived_figures_equal_the_recorded_ones() {
    for case in CASES {
        if case == "sigint" {
            continue;
        }
        let summary = summarise(case, PhaseKind::Profiling);
        // Their window is known from two instants printed in microseconds.
        let tolerance = 1.5e-6 / summary.window.unwrap().duration_sec;
        for (metric, block) in theirs(case) {
            let kind = metric.def().kind;
            if later(metric)
                || !matches!(kind, Kind::Derived | Kind::Aggregate(_))
                || metric.def().has(Flag::FixedSchedule)
            {
                continue;
            }
            if case == "embeddings" && metric == Metric::TotalOsl {
                continue;
            }
            let ours = summary.block(metric).unwrap_or_else(|| panic!("{case}: no {}", metric.tag()));
            let shift = if metric.def().has(Flag::Internal) {
                // Wall-clock instants: our anchor is not theirs.
                aiperf_clock::wall(aiperf_clock::Mono(1 << 60)) as f64 - (1u64 << 60) as f64
            } else {
                0.0
            };
            compare(case, metric, ours, &block, |_, ours, theirs| close(ours - shift, theirs, tolerance));
        }
    }
}

#[test]
fn error_adjusted_figures_equal_the_recorded_ones() {
    let adjusted = [
        Metric::AdjTimeToFirstToken,
        Metric::AdjRequestLatency,
        Metric::AdjInterTokenLatency,
        Metric::AdjDecodeDuration,
    ];
    for case in ["errors_mix", "cancel_dev", "goodput_slices"] {
        let summary = summarise(case, PhaseKind::Profiling);
        let theirs = theirs(case);
        for metric in adjusted {
            let block = &theirs.iter().find(|(each, _)| *each == metric).unwrap().1;
            let ours = summary.block(metric).unwrap();
            compare(case, metric, ours, block, |_, ours, theirs| close(ours, theirs, 1e-9));
        }
        assert_eq!(summary.block(Metric::AdjRequestLatency).unwrap().p99, Some(f64::INFINITY), "{case}");
    }
}

#[test]
fn latencies_from_the_issue_equal_the_recorded_ones() {
    for case in CASES {
        if matches!(case, "sigint" | "errors_mix" | "goodput_slices" | "cancel_dev") {
            continue;
        }
        let summary = summarise(case, PhaseKind::Profiling);
        for (metric, block) in theirs(case) {
            if matches!(metric, Metric::EffectiveLatency | Metric::CreditToStartLatency) {
                // The reference rounds wall-clock instants to 256 ns.
                compare(case, metric, summary.block(metric).unwrap(), &block, |name, ours, theirs| {
                    (ours - theirs).abs() < if name == "sum" { 0.006 } else { 0.0006 }
                });
            }
        }
    }
}

#[test]
fn curves_agree_with_the_recorded_ones() {
    for case in CASES {
        if matches!(case, "sigint" | "chat_nonstreaming" | "embeddings") {
            continue;
        }
        let summary = summarise(case, PhaseKind::Profiling);
        let mut compared = 0;
        for (metric, block) in theirs(case) {
            let tag = metric.tag();
            let curve =
                tag.starts_with("effective_") || tag.starts_with("active_") || tag == "tokens_in_flight";
            if !curve || metric == Metric::EffectiveLatency {
                continue;
            }
            // The reference rounds instants to 256 ns: where many short steps meet, it sees peaks and troughs
            // that never were.
            let steps_meet = tag.contains("decode_throughput") || tag == "tokens_in_flight";
            compare(case, metric, summary.block(metric).unwrap(), &block, |name, ours, theirs| {
                close(ours, theirs, 5e-3) || (steps_meet && matches!(name, "min" | "max"))
            });
            compared += 1;
        }
        assert_eq!(compared, 14, "{case}");
    }
}

#[test]
fn curves_without_input_are_left_out() {
    for case in ["chat_nonstreaming", "embeddings"] {
        let summary = summarise(case, PhaseKind::Profiling);
        let curves: Vec<&str> = summary
            .blocks
            .iter()
            .map(|(metric, _)| metric.tag())
            .filter(|tag| {
                tag.starts_with("effective_") || tag.starts_with("active_") || *tag == "tokens_in_flight"
            })
            .collect();
        assert_eq!(curves, ["effective_concurrency", "effective_latency"], "{case}");
        let theirs = theirs(case);
        let metric = Metric::EffectiveConcurrency;
        let block = &theirs.iter().find(|(each, _)| *each == metric).unwrap().1;
        compare(case, metric, summary.block(metric).unwrap(), block, |_, ours, theirs| {
            close(ours, theirs, 5e-3)
        });
    }
}

#[test]
fn the_replay_lag_equals_the_recorded_one() {
    let context = context("fixed_schedule");
    let mut store = Store::new();
    let rows = lines("fixed_schedule/trace.jsonl");
    let lines = lines("fixed_schedule/profile_export.jsonl");
    let zero = lines.iter().map(|line| line["metadata"]["credit_issued_ns"].as_u64().unwrap()).min().unwrap();
    let mut first: Option<Summary> = None;
    // The lag is measured from the smallest: where the schedule starts does not matter.
    for shift in [0, 77_000_000_000] {
        for line in &lines {
            let mut record = from_line(line);
            let session = line["metadata"]["conversation_id"].as_str().unwrap();
            let row: usize = session.strip_prefix("session_").unwrap().parse().unwrap();
            let due = (rows[row]["timestamp"].as_f64().unwrap() * 1e6) as u64;
            record.plan.scheduled = Some(aiperf_clock::Mono(zero + due - shift));
            record.plan.due = aiperf_clock::Mono(zero + due - shift);
            record.plan.let_go = record.plan.due;
            store.push(&record);
        }
        let json = json("fixed_schedule/profile_export_aiperf.json");
        let window = Window { start: instant(&json["start_time"]), end: Some(instant(&json["end_time"])) };
        let summary = store.summarise(PhaseKind::Profiling, &context, &window);
        for tag in
            ["replay_sched_lag_p50", "replay_sched_lag_p90", "replay_sched_lag_p99", "replay_sched_degraded"]
        {
            let metric = Metric::from_tag(tag).unwrap();
            let ours = summary.block(metric).unwrap().avg.unwrap();
            // The reference rounds wall-clock instants to 256 ns.
            assert!((ours - json[tag]["avg"].as_f64().unwrap()).abs() < 0.0006, "{tag} {ours}");
        }
        store = Store::new();
        assert!(summary.block(Metric::ReplaySendScheduleOffset).is_none(), "internal");
        if let Some(first) = &first {
            assert_eq!(first.block(Metric::ReplaySchedLagP99), summary.block(Metric::ReplaySchedLagP99));
        }
        first = Some(summary);
    }
}

#[test]
fn warmup_records_are_summarised_apart() {
    let json = json("multi_turn/profile_export_aiperf.json");
    let warmup = summarise("multi_turn", PhaseKind::Warmup);
    assert_eq!(warmup.valid_count, 2);
    assert_eq!(summarise("multi_turn", PhaseKind::Profiling).valid_count, 6);
    let theirs = json["warmup_metrics"].as_object().unwrap();
    let mut compared = 0;
    for (tag, block) in theirs {
        let metric = Metric::from_tag(tag).unwrap();
        if metric.def().kind == Kind::Record {
            compare("warmup", metric, warmup.block(metric).unwrap(), block, |_, ours, theirs| {
                close(ours, theirs, 1e-9) || (ours - theirs).abs() < 1e-9
            });
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn the_spec_decode_histogram_is_pooled() {
    let summary = summarise("server_tokens_spec", PhaseKind::Profiling);
    let json = json("server_tokens_spec/profile_export_aiperf.json");
    let theirs: Vec<(u64, u64)> = json["pooled_spec_decode_acceptance_histogram"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(accepted, steps)| (accepted.parse().unwrap(), steps.as_u64().unwrap()))
        .collect();
    assert_eq!(summary.pooled_spec_decode_acceptance_histogram, theirs);
}

#[test]
fn error_groups_come_in_the_order_they_were_first_seen() {
    for case in ["errors_mix", "cancel_dev", "goodput_slices"] {
        let summary = summarise(case, PhaseKind::Profiling);
        let json = json(&format!("{case}/profile_export_aiperf.json"));
        let theirs = json["error_summary"].as_array().unwrap();
        assert_eq!(summary.error_groups.len(), theirs.len(), "{case}");
        for (ours, theirs) in summary.error_groups.iter().zip(theirs) {
            assert_eq!(ours.error, support::error(&theirs["error_details"]), "{case}");
            assert_eq!(ours.count, theirs["count"].as_u64().unwrap(), "{case}");
        }
    }
}

#[test]
fn an_interrupted_run_divides_by_the_span_of_its_requests() {
    let context = context("sigint");
    let mut store = Store::new();
    for line in lines("sigint/profile_export.jsonl") {
        store.push(&from_line(&line));
    }
    let summary =
        store.summarise(PhaseKind::Profiling, &context, &Window { start: aiperf_clock::Mono(1), end: None });
    let duration = summary.block(Metric::BenchmarkDuration).unwrap().avg.unwrap();
    assert!(close(summary.window.unwrap().duration_sec, duration, 1e-12));
    let rate = summary.block(Metric::RequestThroughput).unwrap().avg.unwrap();
    assert!(close(rate, 10.0 / duration, 1e-12), "{rate}");
    // The recorded run had more requests than lines were kept, and the same rule.
    let json = json("sigint/profile_export_aiperf.json");
    let of = |tag: &str| json[tag]["avg"].as_f64().unwrap();
    assert!(close(of("request_throughput"), of("request_count") / of("benchmark_duration"), 1e-6));
}
