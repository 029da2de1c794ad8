//! Exports of published runs, compared with the published files.
#![allow(clippy::unwrap_used, reason = "test code")]

mod support;

use std::path::Path;

use aiperf_metrics::delivery::{DeliveryFacts, judge};
use aiperf_metrics::{ObservationWindow, SendLag, registry};
use aiperf_report::{FileNames, PhaseResults, WrittenFile, export_all, prepare_dir};
use aiperf_types::PhaseKind;
use serde_json::Value;
use support::{config, config_of, golden, golden_json, keys, phase, results, run_of, summary_of};

const CASES: [&str; 12] = [
    "chat_streaming",
    "chat_nonstreaming",
    "completions_streaming",
    "embeddings",
    "errors_mix",
    "reasoning",
    "multi_turn",
    "fixed_schedule",
    "server_tokens_spec",
    "cancel_dev",
    "sigint",
    "goodput_slices",
];

fn written(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap()
}

/// Writes the published run of a case anew; gives the folder and the published summary.
fn rewritten(case: &str) -> (tempfile::TempDir, Value) {
    let dir = tempfile::tempdir().unwrap();
    let published = golden_json(&format!("{case}/profile_export_aiperf.json"));
    let mut config = config_of(&published, dir.path());
    if case == "cancel_dev" {
        config.output.show_internal_metrics = true;
        config.output.show_experimental_metrics = true;
    }
    config.output.show_experimental_metrics |= case == "server_tokens_spec";
    config.output.show_trace_timing = case == "chat_streaming";
    let mut results = run_of(&config, &published);
    let failures = export_all(&mut results);
    assert!(failures.is_empty(), "{failures:?}");
    (dir, published)
}

fn is_metric(value: &Value) -> bool {
    value.get("unit").is_some()
}

#[test]
fn summary_json_has_the_published_keys_in_order() {
    let ours_only = ["in_flight_cancelled_count", "truncated_stream_count"];
    for case in CASES {
        let (dir, published) = rewritten(case);
        let text = written(dir.path(), "profile_export_aiperf.json");
        assert!(text.ends_with('}') && text.starts_with("{\n  \"schema_version\": \"1.4\",\n"));
        let ours: Value = serde_json::from_str(&text).unwrap();
        let settings = |value: &Value| keys(value).iter().position(|key| *key == "input_config").unwrap();

        // Up to the metrics after the fixed part, the order is the published one.
        let fixed_part = |value: &Value| -> Vec<String> {
            let all = keys(value);
            let head = all[..settings(value)].iter();
            let rest = all[settings(value)..].iter().filter(|key| !is_metric(&value[**key]));
            head.chain(rest)
                .map(ToString::to_string)
                .filter(|key| !ours_only.contains(&key.as_str()))
                .collect()
        };
        assert_eq!(fixed_part(&ours), fixed_part(&published), "{case}");
        assert!(keys(&ours).ends_with(&ours_only), "{case}");

        // The metrics after it: the same ones, in the order of the registry.
        let others = |value: &Value| -> Vec<String> {
            let rest = keys(value)[settings(value)..].to_vec();
            rest.into_iter().filter(|key| is_metric(&value[*key])).map(str::to_owned).collect()
        };
        let expected: Vec<String> = registry::all()
            .map(|def| def.tag.to_owned())
            .filter(|tag| others(&published).contains(tag))
            .collect();
        assert_eq!(others(&ours), expected, "{case}");
        assert_eq!(expected.len(), others(&published).len(), "{case}");

        for key in keys(&published) {
            if is_metric(&published[key]) {
                assert_eq!(keys(&ours[key]), keys(&published[key]), "{case} {key}");
                assert_eq!(ours[key], published[key], "{case} {key}");
            }
        }
        for key in ["error_summary", "input_config", "was_cancelled", "is_complete", "incomplete_reason"] {
            assert_eq!(ours.get(key), published.get(key), "{case} {key}");
        }
        for key in ["warmup_metrics", "pooled_spec_decode_acceptance_histogram"] {
            assert_eq!(ours.get(key), published.get(key), "{case} {key}");
        }
        assert_eq!(keys(&ours["run_info"]), ["benchmark_id", "random_seed", "trial", "cli_command"]);
        assert_eq!(ours["run_info"]["cli_command"], published["run_info"]["cli_command"]);
        assert!(ours["start_time"].as_str().unwrap().ends_with('Z'), "times are UTC and say so");
    }
}

#[test]
fn summary_csv_is_byte_for_byte_the_published_file() {
    for case in CASES {
        let (dir, _) = rewritten(case);
        let ours = written(dir.path(), "profile_export_aiperf.csv");
        let published = golden(&format!("{case}/profile_export_aiperf.csv"));
        for (ours, published) in ours.split("\r\n").zip(published.split("\r\n")) {
            assert_eq!(ours, published, "{case}");
        }
        assert_eq!(ours, published, "{case}");
    }
}

/// The rows and rules of all tables in a text, by the title above them.
fn tables(text: &str) -> Vec<(String, Vec<String>)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match line.chars().next() {
            Some('┏') => {
                found.push((lines[at - 1].trim().replace("NVIDIA ", ""), vec![(*line).to_owned()]));
            }
            // Lines of panels have two bars.
            Some('┃' | '┡' | '│' | '└')
                if line.starts_with(['┡', '└']) || line.matches(['│', '┃']).count() > 2 =>
            {
                if let Some((_, rows)) = found.last_mut() {
                    rows.push((*line).to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn tables_are_drawn_as_published() {
    for case in CASES {
        let (dir, _) = rewritten(case);
        let ours = tables(&written(dir.path(), "profile_export_console.txt"));
        let published = tables(&golden(&format!("{case}/profile_export_console.txt")));
        if case == "sigint" {
            // An interrupted reference run has its step curves in the main table; ours has them where they belong.
            assert_eq!(ours.len(), 4);
            continue;
        }
        let titles = |tables: &[(String, Vec<String>)]| {
            tables.iter().map(|(title, _)| title.clone()).collect::<Vec<_>>()
        };
        assert_eq!(titles(&ours), titles(&published), "{case}");
        for ((title, mut ours), (_, mut published)) in ours.into_iter().zip(published) {
            // Rows without a place come in another order in each run of the reference.
            if ["errors_mix", "cancel_dev", "goodput_slices"].contains(&case) {
                ours.sort();
                published.sort();
            }
            assert_eq!(ours.join("\n"), published.join("\n"), "{case} {title}");
        }
    }
}

#[test]
fn titles_stand_in_the_middle_of_their_tables() {
    let (dir, _) = rewritten("chat_nonstreaming");
    let text = written(dir.path(), "profile_export_console.txt");
    let lines: Vec<&str> = text.lines().collect();
    let at =
        lines.iter().position(|line| line.contains("AIPerf | LLM Metrics") && !line.contains(':')).unwrap();
    let width = lines[at + 1].chars().count();
    let left = lines[at].len() - lines[at].trim_start().len();
    assert_eq!(lines[at].chars().count(), width);
    assert_eq!(left, (width - "AIPerf | LLM Metrics".len()) / 2);
}

#[test]
fn phase_files_have_the_published_layout() {
    let (dir, _) = rewritten("multi_turn");
    let manifest = written(dir.path(), "phase_manifest.json");
    let published = golden("multi_turn/phase_manifest.json");
    assert!(manifest.ends_with("}\n"));
    let lines = |text: &str| -> Vec<String> {
        let is_instant = |line: &&str| !line.contains("start_ns") && !line.contains("end_ns");
        text.lines().filter(is_instant).map(str::to_owned).collect()
    };
    assert_eq!(lines(&manifest), lines(&published));
    for phase in ["warmup", "profiling"] {
        let csv = format!("phases/{phase}/profile_export_aiperf.csv");
        assert_eq!(written(dir.path(), &csv), golden(&format!("multi_turn/{csv}")));
        let json = format!("phases/{phase}/profile_export_aiperf.json");
        let ours: Value = serde_json::from_str(&written(dir.path(), &json)).unwrap();
        let published = golden_json(&format!("multi_turn/{json}"));
        for key in keys(&published).into_iter().filter(|key| is_metric(&published[key])) {
            assert_eq!(ours[key], published[key], "{phase} {key}");
        }
        assert!(ours.get("warmup_metrics").is_none());
    }
}

#[test]
fn a_run_of_one_phase_has_no_phase_files() {
    let (dir, _) = rewritten("chat_streaming");
    assert!(!dir.path().join("phase_manifest.json").exists());
    assert!(!dir.path().join("phases").exists());
}

#[test]
fn infinite_percentiles_are_words() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let mut summary = summary_of(&golden_json("errors_mix/profile_export_aiperf.json"));
    for (metric, block) in &mut summary.blocks {
        if metric.tag() == "adj_request_latency" {
            block.p90 = Some(f64::INFINITY);
            block.p99 = Some(f64::INFINITY);
        }
    }
    let mut run = results(&config, vec![phase(PhaseKind::Profiling, 0, summary)]);
    assert!(export_all(&mut run).is_empty());
    let json: Value = serde_json::from_str(&written(dir.path(), "profile_export_aiperf.json")).unwrap();
    assert_eq!(json["adj_request_latency"]["p99"], "inf");
    let csv = written(dir.path(), "profile_export_aiperf.csv");
    let row = csv.lines().find(|line| line.starts_with("Request Latency (error-adjusted)")).unwrap();
    assert!(row.contains(",inf,"), "{row}");
    let console = written(dir.path(), "profile_export_console.txt");
    let row = console.lines().find(|line| line.contains("Request Latency (error-adjusted)")).unwrap();
    assert!(row.contains("   inf │"), "{row}");
}

#[test]
fn a_run_in_which_all_failed_has_every_file() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let mut summary = summary_of(&golden_json("errors_mix/profile_export_aiperf.json"));
    summary.blocks.retain(|(metric, _)| matches!(metric.tag(), "error_request_count" | "request_error_rate"));
    summary.valid_count = 0;
    let mut run = results(&config, vec![phase(PhaseKind::Profiling, 0, summary)]);
    assert!(export_all(&mut run).is_empty());
    let labels: Vec<&str> = run.written.iter().map(|file| file.label).collect();
    assert_eq!(labels, ["CSV Export", "JSON Export", "Console Text"]);
    assert!(written(dir.path(), "profile_export_console.txt").contains("Error Summary"));
    assert_eq!(
        written(dir.path(), ".aiperf_results_ready.json"),
        r#"{"ready":true,"was_cancelled":false,"partial":false}"#
    );
}

#[test]
fn the_ready_marker_knows_of_a_record_file_that_was_cut_off_and_of_a_run_that_was() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let mut run = results(&config, Vec::new());
    run.has_partial_file = true;
    assert!(export_all(&mut run).is_empty());
    assert!(written(dir.path(), ".aiperf_results_ready.json").contains(r#""partial":true"#));
    // Whole files of part of a run are partial results, too.
    run.has_partial_file = false;
    run.incomplete_reason = Some("interrupted".into());
    assert!(export_all(&mut run).is_empty());
    assert!(written(dir.path(), ".aiperf_results_ready.json").contains(r#""partial":true"#));
}

#[test]
fn a_run_without_any_phase_still_says_what_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let mut run = results(&config, Vec::<PhaseResults>::new());
    assert!(export_all(&mut run).is_empty());
    let json: Value = serde_json::from_str(&written(dir.path(), "profile_export_aiperf.json")).unwrap();
    assert_eq!(json["benchmark_id"], "0123456789ab");
    assert!(json.get("start_time").is_none());
}

#[test]
fn one_failed_export_does_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let full = |name: &str| std::os::unix::fs::symlink("/dev/full", dir.path().join(name)).unwrap();
    full(".profile_export_aiperf.csv.tmp");
    let summary = summary_of(&golden_json("chat_streaming/profile_export_aiperf.json"));
    let mut run = results(&config, vec![phase(PhaseKind::Profiling, 0, summary)]);
    let failures = export_all(&mut run);
    let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].starts_with("CSV Export failed") && texts[0].contains("No space left"), "{}", texts[0]);
    assert!(
        texts[0].ends_with("; free space there, or choose another place with --artifact-dir"),
        "{}",
        texts[0]
    );
    assert!(!dir.path().join("profile_export_aiperf.csv").exists());
    assert!(dir.path().join("profile_export_aiperf.json").exists());
    assert!(written(dir.path(), ".aiperf_results_ready.json").contains(r#""partial":true"#));
}

#[test]
fn what_this_run_did_not_write_is_gone_and_what_it_wrote_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    std::fs::write(dir.path().join(".aiperf_results_ready.json"), "{}").unwrap();
    prepare_dir(dir.path(), &FileNames::new(None)).unwrap();
    assert!(!dir.path().join(".aiperf_results_ready.json").exists());
    std::fs::write(dir.path().join("profile_export_raw.jsonl"), "of another run").unwrap();
    let records = dir.path().join("profile_export.jsonl");
    std::fs::write(&records, "{}\n").unwrap();
    let summary = summary_of(&golden_json("chat_streaming/profile_export_aiperf.json"));
    let mut run = results(&config, vec![phase(PhaseKind::Profiling, 0, summary)]);
    run.written.push(WrittenFile::whole("Records JSONL", records.clone()));
    assert!(export_all(&mut run).is_empty());
    assert!(records.exists());
    assert!(!dir.path().join("profile_export_raw.jsonl").exists());
    for file in &run.written {
        assert!(file.path.exists(), "{}", file.path.display());
    }
    assert_eq!(run.written.last().unwrap().label, "Records JSONL");
}

#[test]
fn our_own_members_come_last_in_a_fixed_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.remote = Some(aiperf_config::RemoteDataset {
        name: None,
        lines: Vec::new(),
        provenance: serde_json::json!({"reference": "hf://a/b"}),
    });
    let mut summary = summary_of(&golden_json("chat_streaming/profile_export_aiperf.json"));
    summary.window = Some(ObservationWindow { start_ns: 5, end_ns: 1_000_000_005, duration_sec: 1.0 });
    summary.send_lag = Some(SendLag { p50: 0.5, p90: 1.0, p99: 2.0, max: 3.0 });
    summary.truncated_stream_count = 2;
    let mut profiling = phase(PhaseKind::Profiling, 0, summary);
    profiling.in_flight_cancelled_count = 4;
    profiling.load_delivery = Some(judge(DeliveryFacts { sent_count: 10, ..DeliveryFacts::default() }));
    let mut run = results(&config, vec![profiling]);
    assert!(export_all(&mut run).is_empty());
    let json: Value = serde_json::from_str(&written(dir.path(), "profile_export_aiperf.json")).unwrap();
    let names = keys(&json);
    assert_eq!(
        &names[names.len() - 6..],
        [
            "observation_window",
            "in_flight_cancelled_count",
            "truncated_stream_count",
            "send_lag",
            "load_delivery",
            // Where the data came from, after everything else.
            "metadata"
        ]
    );
    assert_eq!(json["metadata"], serde_json::json!({"dataset": {"reference": "hf://a/b"}}));
    assert_eq!(keys(&json["observation_window"]), ["start_ns", "end_ns", "duration_sec"]);
    assert_eq!(keys(&json["send_lag"]), ["p50", "p90", "p99", "max"]);
    assert_eq!((&json["in_flight_cancelled_count"], &json["truncated_stream_count"]), (&4.into(), &2.into()));
    assert_eq!(&keys(&json["load_delivery"])[..3], ["verdict", "reasons", "mode"]);
}
