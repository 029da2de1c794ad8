//! Marks that keep prefix caches from answering, and what becomes of more sessions than there are traces.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Mock, Place};

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/tests/data").join(name);
    path.display().to_string()
}

/// The raw records of a run that succeeds.
fn play(place: &Place, line: &str) -> Vec<Value> {
    let mock = Mock::start(&[("tokens", "3")]);
    place.run(&mock.url(), &format!("--endpoint-type chat --export-level raw {line}")).with_code(0);
    place.results().lines("profile_export_raw.jsonl")
}

fn root(record: &Value) -> &str {
    record["metadata"]["root_correlation_id"].as_str().unwrap()
}

fn marker(record: &Value) -> Option<&str> {
    record["cache_bust_marker"].as_str()
}

/// Role and content of a message of a request.
fn message(record: &Value, at: usize) -> (&str, &str) {
    let message = &record["payload"]["messages"][at];
    (message["role"].as_str().unwrap(), message["content"].as_str().unwrap())
}

/// The digits of a mark in front of or after a text.
fn digits(marker: &str) -> &str {
    marker.trim().strip_prefix("[rid:").unwrap().strip_suffix(']').unwrap()
}

#[test]
fn a_run_and_all_that_it_starts_share_a_mark_that_no_other_run_has() {
    let place = Place::new();
    let line =
        format!("--input-file {} --num-conversations 3 --cache-bust first-turn-prefix", data("dag.jsonl"));
    let records = play(&place, &line);
    assert_eq!(records.len(), 18);
    let mut marks: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in &records {
        let mark = marker(record).unwrap();
        assert_eq!(record["cache_bust_target"], "first_turn_prefix");
        assert!(mark.ends_with("]\n\n"), "{mark:?}");
        assert!(digits(mark).len() == 12 && digits(mark).bytes().all(|byte| byte.is_ascii_hexdigit()));
        marks.entry(root(record)).or_default().insert(mark);
        let at = usize::from(message(record, 0).0 == "system");
        let (role, content) = message(record, at);
        assert!(role == "user" && content.starts_with(mark), "{content:?}");
        // Once in a request, however much of the past it repeats.
        assert_eq!(record["payload"].to_string().matches("[rid:").count(), 1);
    }
    assert!(marks.len() == 3 && marks.values().all(|marks| marks.len() == 1), "{marks:?}");
    assert_eq!(marks.values().flatten().collect::<BTreeSet<_>>().len(), 3);
    let summary = place.results().summary();
    assert_eq!(summary["input_config"]["datasets"][0]["cache_bust"], json!({"target": "first_turn_prefix"}));
    assert!(!place.results().text("inputs.json").contains("[rid:"));
}

#[test]
fn a_system_target_falls_back_on_the_first_turn_where_there_is_no_system_message() {
    for (target, after) in [("system-prefix", false), ("system-suffix", true)] {
        let place = Place::new();
        let records = play(&place, &format!("--input-file {} --cache-bust {target}", data("dag.jsonl")));
        for record in &records {
            let (mark, (role, content)) = (marker(record).unwrap(), message(record, 0));
            assert!(if after { content.ends_with(mark) } else { content.starts_with(mark) }, "{content:?}");
            let has_system = record["metadata"]["conversation_id"].as_str().unwrap().starts_with("scout");
            assert_eq!(role, if has_system { "user" } else { "system" });
        }
    }
}

#[test]
fn the_same_seed_a_second_time_brings_other_marks() {
    let marks = || {
        let records =
            play(&Place::new(), "--isl 20 --num-conversations 4 --random-seed 5 --cache-bust system-prefix");
        records.iter().map(|record| marker(record).unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let (first, second) = (marks(), marks());
    assert_eq!((first.len(), second.len()), (4, 4));
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
}

#[test]
fn warmup_is_kept_apart_from_profiling() {
    for target in ["warmup-isolation-system", "warmup-isolation-first-turn"] {
        let place = Place::new();
        let line = format!(
            "--isl 20 --num-dataset-entries 3 --concurrency 2 --warmup-request-count 5 --request-count 40 --cache-bust {target}"
        );
        let records = play(&place, &line);
        assert_eq!(records.len(), 45);
        for record in &records {
            let (_, content) = message(record, 0);
            if record["metadata"]["benchmark_phase"] == "warmup" {
                assert_eq!(marker(record), Some("[warmup]\n\n"));
                assert_eq!(record["cache_bust_target"], target.replace('-', "_"));
                assert!(content.starts_with("[warmup]\n\n"), "{content:?}");
            } else {
                assert_eq!(marker(record), None);
                assert!(!content.contains("[warmup]"), "{content:?}");
            }
        }
    }
}

#[test]
fn profiling_of_a_schedule_shares_no_mark_with_its_warmup() {
    let place = Place::new();
    let line = format!(
        "--input-file {} --custom-dataset-type single_turn --fixed-schedule --warmup-request-count 3 --concurrency 1 \
         --cache-bust first-turn-suffix",
        data("single_turn_schedule.jsonl")
    );
    let records = play(&place, &line);
    let marks: BTreeSet<&str> = records.iter().map(|record| marker(record).unwrap()).collect();
    assert_eq!(marks.len(), records.len());
}

#[test]
fn a_mark_is_part_of_the_length_that_was_asked_for() {
    let mean = |line: &str| {
        let place = Place::new();
        play(&place, &format!("--isl 60 --num-conversations 40 {line}"));
        place.results().summary()["input_sequence_length"]["avg"].as_f64().unwrap()
    };
    assert!((mean("--cache-bust first-turn-prefix") - 60.0).abs() < 1.5);
    let system = "--shared-system-prompt-length 50";
    let plain = mean(system);
    assert!((mean(&format!("{system} --cache-bust system-suffix")) - plain).abs() < 1.5);
    assert!((mean(&format!("{system} --cache-bust first-turn-suffix")) - plain).abs() < 1.5);
}

#[test]
fn more_lanes_than_traces_are_refused_only_where_repeats_are_neither_allowed_nor_told_apart() {
    let trace = format!(
        "--endpoint-type chat --input-file {} --no-fixed-schedule --concurrency 3 --request-count 6",
        data("weka_trace.json")
    );
    let code = |more: &str| {
        let (place, mock) = (Place::new(), Mock::start(&[("tokens", "3")]));
        let run = place.run(&mock.url(), &format!("{trace} {more}"));
        (run, mock.stats().requests)
    };
    let (run, sent) = code("--no-allow-dataset-wrap");
    let run = run.with_code(2);
    assert_eq!(sent, 0);
    let shown = run.err;
    for part in ["--concurrency 3", "data has 1", "--no-allow-dataset-wrap", "--cache-bust first-turn-prefix"]
    {
        assert!(shown.contains(part), "{shown}");
    }
    code("--no-allow-dataset-wrap --cache-bust warmup-isolation-system --warmup-request-count 1")
        .0
        .with_code(2);
    for more in ["", "--allow-dataset-wrap", "--no-allow-dataset-wrap --cache-bust system-prefix"] {
        let (run, sent) = code(more);
        run.with_code(0);
        assert_eq!(sent, 6, "{more}");
    }
}

#[test]
fn payloads_found_in_the_data_are_not_marked_and_not_sent() {
    let (place, mock) = (Place::new(), Mock::start(&[("tokens", "3")]));
    let line = format!(
        "--endpoint-type chat --input-file {} --no-fixed-schedule --cache-bust system-prefix",
        data("mooncake_payload.jsonl")
    );
    let run = place.run(&mock.url(), &line).with_code(1);
    assert!(run.err.contains("--cache-bust changes requests"), "{}", run.err);
    assert_eq!(mock.stats().requests, 0);
}
