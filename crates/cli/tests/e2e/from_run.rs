//! A run, turned into a trace, and replayed.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::support::{Live, Mock, Place, Results, aiperf, shell};

/// What one session sent: instants and bodies, in order.
type Sessions = BTreeMap<String, Vec<(u64, String)>>;

/// Every session by the value of `key` in the metadata.
fn sessions(results: &Results, phase: &str, key: &str) -> Sessions {
    let mut found = Sessions::new();
    for line in results.text("profile_export_raw.jsonl").lines() {
        let record: HashMap<String, Box<RawValue>> = serde_json::from_str(line).unwrap();
        let metadata: Value = serde_json::from_str(record["metadata"].get()).unwrap();
        if metadata["benchmark_phase"] == phase {
            let session = metadata[key].as_str().unwrap().to_owned();
            let at = metadata["request_start_ns"].as_u64().unwrap();
            found.entry(session).or_default().push((at, record["payload"].get().to_owned()));
        }
    }
    for sent in found.values_mut() {
        sent.sort();
    }
    found
}

/// Runs the printed command into the folder `again`.
fn replay(place: &Place, printed: &str) {
    let command = printed.trim().strip_prefix("aiperf ").unwrap();
    let script =
        format!("\"$AIPERF\" {command} --artifact-dir again --export-level raw --ui none || exit $?");
    let mut shell = shell(&script);
    shell.current_dir(place.root());
    Live::start(&mut shell).end().with_code(0);
}

/// <https://github.com/inference-sim/inference-sim/issues/1032>: a replay that is not what was recorded.
#[test]
fn inference_sim_1032_a_recorded_run_replays_body_for_body_in_order_and_never_early() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "4ms"), ("itl", "1ms"), ("tokens", "5")]);
    place
        .run(
            &mock.url(),
            "--streaming --export-level raw --concurrency 8 --warmup-request-count 3 --num-conversations 50 \
             --conversation-turn-mean 4 --conversation-turn-stddev 0 --isl 24 --osl 5 --random-seed 7",
        )
        .with_code(0);
    let mut convert = aiperf();
    convert.current_dir(place.root()).args(["dataset", "from-run", "out"]);
    let ran = Live::start(&mut convert).end().with_code(0);
    assert!(ran.err.contains("200 requests in 50 sessions"), "{}", ran.err);
    assert!(ran.err.contains("headers of single requests are not kept"), "{}", ran.err);
    replay(&place, &ran.out);

    let recorded = sessions(&place.results(), "profiling", "x_correlation_id");
    let results = Results { dir: place.path("again") };
    let replayed = sessions(&results, "profiling", "conversation_id");
    assert_eq!(replayed.values().map(Vec::len).sum::<usize>(), 200);
    let bodies = |sessions: &Sessions| {
        sessions
            .iter()
            .map(|(id, sent)| (id.clone(), sent.iter().map(|(_, body)| body.clone()).collect::<Vec<_>>()))
            .collect::<BTreeMap<_, _>>()
    };
    assert_eq!(bodies(&recorded), bodies(&replayed));

    // The plan is the recorded one, and nothing left before it.
    let first = recorded.values().map(|sent| sent[0].0).min().unwrap();
    let records = results.lines("profile_export_raw.jsonl");
    let number = |record: &Value, key: &str| record["metadata"][key].as_u64().unwrap();
    let zero = records.iter().map(|record| number(record, "scheduled_ns")).min().unwrap();
    for record in &records {
        let id = record["metadata"]["conversation_id"].as_str().unwrap();
        let turn = number(record, "turn_index") as usize;
        let planned = number(record, "scheduled_ns") - zero;
        assert!(planned.abs_diff(recorded[id][turn].0 - first) < 1000, "{id} {turn}");
        assert!(number(record, "request_start_ns") >= number(record, "scheduled_ns"), "{id} {turn}");
    }
}

#[test]
fn a_folder_without_raw_records_and_a_trace_that_is_there_already_are_refused() {
    let place = Place::new();
    let mock = "mock://?ttft=1ms&itl=0&tokens=2";
    place.run(mock, "--request-count 2 --isl 8").with_code(0);
    let from_run = |arguments: &[&str]| {
        let mut command = aiperf();
        command.current_dir(place.root()).args(["dataset", "from-run"]).args(arguments);
        Live::start(&mut command).end()
    };
    let ran = from_run(&["out"]).with_code(2);
    assert!(ran.err.contains("--export-level raw"), "{}", ran.err);
    place.run(mock, "--request-count 2 --isl 8 --export-level raw --profile-export-prefix mine").with_code(0);
    let ran = from_run(&["out", "--phase", "all"]).with_code(0);
    assert!(ran.out.contains("--url 'mock://?ttft=1ms&itl=0&tokens=2'"), "{}", ran.out);
    let trace = std::fs::read(place.path("out/replay.jsonl")).unwrap();
    let ran = from_run(&["out"]).with_code(2);
    assert!(ran.err.contains("--force"), "{}", ran.err);
    assert_eq!(std::fs::read(place.path("out/replay.jsonl")).unwrap(), trace);
    from_run(&["out", "--force"]).with_code(0);
    let raw = std::fs::read(place.path("out/mine_raw.jsonl")).unwrap();
    let ran = from_run(&["out", "--output", "out/mine_raw.jsonl", "--force"]).with_code(2);
    assert!(ran.err.contains("out/mine_raw.jsonl is the input itself"), "{}", ran.err);
    assert_eq!(std::fs::read(place.path("out/mine_raw.jsonl")).unwrap(), raw);
    from_run(&["out", "--output", "none/replay.jsonl"]).with_code(1);
    let ran = from_run(&["out", "--output", "-"]).with_code(2);
    assert!(ran.err.contains("--output -: stdout takes the command"), "{}", ran.err);
    assert!(!place.path("-").exists());
    from_run(&["out", "--phase", "warmup", "--output", "warm.jsonl"]).with_code(2);
    assert!(!place.path("warm.jsonl").exists());
}

#[test]
fn a_credential_that_results_do_not_hold_is_named_as_missing_from_the_command() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0ms"), ("tokens", "2")]);
    let url = format!("{}/v1?api_key=sesame-open", mock.url());
    place.run(&url, "--export-level raw --request-count 2 --isl 8").with_code(0);
    let mut convert = aiperf();
    convert.current_dir(place.root()).args(["dataset", "from-run", "out"]);
    let ran = Live::start(&mut convert).end().with_code(0);
    assert!(!ran.out.contains("sesame") && !ran.err.contains("sesame"), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("<redacted>"), "{}", ran.out);
    assert!(ran.err.contains("the URL has <redacted> where one was: put it back"), "{}", ran.err);
}

#[test]
fn a_key_and_headers_of_the_run_are_named_as_missing_from_the_command_without_their_values() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0ms"), ("tokens", "2")]);
    let convert = |flags: &str| {
        place.run(&mock.url(), &format!("--export-level raw --request-count 2 --isl 8 {flags}")).with_code(0);
        let mut convert = aiperf();
        convert.current_dir(place.root()).args(["dataset", "from-run", "out", "--force"]);
        Live::start(&mut convert).end().with_code(0)
    };
    let ran = convert("--api-key sesame-open --header X-Team:blue-whale --header Cookie:sesame=2");
    let said = "the run was sent with --api-key and --header X-Team and --header Cookie: give the same again";
    assert!(ran.err.contains(said), "{}", ran.err);
    for value in ["sesame", "blue-whale"] {
        assert!(!ran.out.contains(value) && !ran.err.contains(value), "{}{}", ran.out, ran.err);
    }
    let ran = convert("");
    assert!(!ran.err.contains("the run was sent with"), "{}", ran.err);
}

#[test]
fn the_command_is_that_of_the_run_whose_raw_records_they_are() {
    let place = Place::new();
    let run = |tokens: u32, flags: &str| {
        let flags = format!("--request-count 1 --isl 8 {flags}");
        place.run(&format!("mock://?ttft=1ms&itl=0&tokens={tokens}"), &flags).with_code(0);
    };
    let converted = || {
        let mut convert = aiperf();
        convert.current_dir(place.root()).args(["dataset", "from-run", "out", "--force"]);
        Live::start(&mut convert).end().with_code(0).out
    };
    run(2, "");
    run(3, "--export-level raw --profile-export-prefix mine");
    let out = converted();
    assert!(out.contains("tokens=3") && !out.contains("tokens=2"), "{out}");
    std::fs::remove_dir_all(place.path("out")).unwrap();
    run(4, "--export-level raw --profile-export-prefix profile_export");
    let out = converted();
    assert!(out.contains("tokens=4"), "{out}");
}
