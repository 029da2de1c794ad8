//! What is written about every request, and what can be done with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{Live, Mock, Place, keys};

const MOCK: &str = "mock://?ttft=1ms&itl=0&tokens=3";

fn metadata<'r>(record: &'r Value, key: &str) -> &'r Value {
    &record["metadata"][key]
}

#[test]
fn every_request_has_one_record_and_numbers_start_again_after_the_warmup() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "3"), ("plan", "ok*4:http500")]);
    place
        .run(&mock.url(), "--streaming --concurrency 3 --warmup-request-count 7 --request-count 20 --isl 16")
        .with_code(0);
    let results = place.results();
    results.assert_complete(false);
    results.assert_all_accounted_for();
    let records = results.records();
    assert_eq!(records.len(), 27);
    assert_eq!(mock.stats().requests, 27);
    for (phase, count, index) in [("warmup", 7, 0), ("profiling", 20, 1)] {
        let of_phase: Vec<&Value> =
            records.iter().filter(|record| metadata(record, "benchmark_phase") == phase).collect();
        let numbers: BTreeSet<u64> =
            of_phase.iter().map(|record| metadata(record, "session_num").as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..count).collect(), "{phase}");
        assert!(of_phase.iter().all(|record| metadata(record, "phase_index") == index), "{phase}");
        assert!(of_phase.iter().all(|record| metadata(record, "phase_kind") == phase));
        assert!(
            of_phase
                .iter()
                .all(|record| record["metadata"].get("profiling_index").is_some() == (phase == "profiling"))
        );
    }
    let ids: BTreeSet<&str> =
        records.iter().map(|record| metadata(record, "x_request_id").as_str().unwrap()).collect();
    assert_eq!(ids.len(), 27);
    // The warmup is summarised apart and counts nowhere else.
    let summary = results.summary();
    let valid = summary["request_count"]["avg"].as_f64().unwrap();
    let failed = summary["error_request_count"]["avg"].as_f64().unwrap();
    assert!((valid + failed - 20.0).abs() < 1e-9);
    assert_eq!(summary["completed_request_count"]["avg"], 20.0);
    assert_eq!(summary["load_delivery"]["sent_count"], 20);
    let warm = &summary["warmup_metrics"];
    assert_eq!(
        warm["request_count"]["avg"].as_f64().unwrap()
            + warm["error_request_count"]["avg"].as_f64().unwrap_or(0.0),
        7.0
    );
    let manifest = results.json("phase_manifest.json");
    let counts: Vec<&Value> =
        manifest["phases"].as_array().unwrap().iter().map(|phase| &phase["total_request_count"]).collect();
    assert_eq!(counts, [7, 20]);
    for name in ["phases/warmup/profile_export_aiperf.json", "phases/profiling/profile_export_aiperf.csv"] {
        assert!(results.dir.join(name).is_file(), "{name}");
    }
}

/// Instants come in their order, and latencies are differences of them.
#[test]
fn instants_of_a_record_are_in_order() {
    let place = Place::new();
    place
        .run(MOCK, "--streaming --request-rate 200 --request-count 30 --isl 16 --random-seed 3")
        .with_code(0);
    for record in place.results().records() {
        let at = |key: &str| metadata(&record, key).as_u64().unwrap_or_else(|| panic!("{key} in {record}"));
        assert_eq!(at("scheduled_ns"), at("due_ns"), "no answer delays a first turn");
        assert!(at("due_ns") <= at("credit_issued_ns"));
        assert!(at("credit_issued_ns") <= at("request_start_ns"));
        assert!(at("request_start_ns") < at("request_ack_ns"));
        assert!(at("request_ack_ns") <= at("request_end_ns"), "one read may bring both");
        let value = |tag: &str| record["metrics"][tag]["value"].as_f64().unwrap();
        assert!(value("time_to_first_token") >= 1.0);
        assert!(value("request_latency") >= value("time_to_first_token"));
        assert!(
            value("request_latency") * 1e6 <= (at("request_end_ns") - at("request_start_ns")) as f64 + 0.5
        );
    }
}

/// A grace period of 0 cuts off what is in flight: it is counted, though it has no record.
/// <https://github.com/kubernetes-sigs/inference-perf/issues/245>
#[test]
fn inference_perf_245_requests_cut_off_at_the_end_are_counted() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "2"), ("plan", "ok:hang*99")]);
    place
        .run(&mock.url(), "--concurrency 5 --benchmark-duration 0.8 --benchmark-grace-period 0 --isl 16")
        .with_code(0);
    let results = place.results();
    results.assert_complete(false);
    results.assert_all_accounted_for();
    assert_eq!(results.summary()["in_flight_cancelled_count"], 5);
}

/// The duration ends issuing, the grace period ends the waiting; with time to spare everything comes back.
#[test]
fn evalscope_1747_a_duration_ends_the_run_and_grace_lets_answers_come_home() {
    let place = Place::new();
    let ran = place
        .run("mock://?ttft=150ms&itl=0&tokens=2", "--concurrency 2 --benchmark-duration 0.5 --isl 16")
        .with_code(0);
    let summary = place.results().summary();
    assert_eq!(summary["in_flight_cancelled_count"], 0);
    assert!(summary["request_count"]["avg"].as_f64().unwrap() >= 2.0);
    assert!(ran.took.as_secs_f64() >= 0.5);
}

#[test]
fn conversations_are_sequential_and_carry_their_history() {
    let place = Place::new();
    place
        .run(
            MOCK,
            "--concurrency 2 --num-conversations 3 --conversation-turn-mean 3 --conversation-turn-stddev 0 --isl 16 \
             --osl 3 --export-level raw --random-seed 5",
        )
        .with_code(0);
    let results = place.results();
    let mut turns: BTreeMap<String, Vec<(u64, u64, u64)>> = BTreeMap::new();
    for record in results.records() {
        let at = |key: &str| metadata(&record, key).as_u64().unwrap();
        turns.entry(metadata(&record, "x_correlation_id").as_str().unwrap().to_owned()).or_default().push((
            at("turn_index"),
            at("request_start_ns"),
            at("request_end_ns"),
        ));
        assert_eq!(metadata(&record, "root_correlation_id"), metadata(&record, "x_correlation_id"));
    }
    assert_eq!(turns.len(), 3);
    for turns in turns.values() {
        assert_eq!(turns.iter().map(|turn| turn.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(
            turns.windows(2).all(|pair| pair[0].2 <= pair[1].1),
            "a turn began before the last one ended"
        );
    }
    for line in results.lines("profile_export_raw.jsonl") {
        let messages = line["payload"]["messages"].as_array().unwrap();
        let turn = metadata(&line, "turn_index").as_u64().unwrap() as usize;
        let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"][..=2 * turn]);
        for answer in messages.iter().skip(1).step_by(2) {
            assert_eq!(answer["content"], "hello hello hello");
        }
    }
}

/// A turn that fails does not end its session.
#[test]
fn after_a_failed_turn_the_next_one_is_sent_without_an_answer_between() {
    let place = Place::new();
    place
        .run(
            "mock://?ttft=1ms&itl=0&tokens=2&plan=ok:http500:ok",
            "--num-conversations 1 --conversation-turn-mean 3 --conversation-turn-stddev 0 --isl 16 --export-level raw",
        )
        .with_code(0);
    let lines = place.results().lines("profile_export_raw.jsonl");
    assert_eq!(lines.len(), 3);
    let roles: Vec<&str> = lines[2]["payload"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "user"]);
}

/// The file holds the whole dataset in its order, sent or not, and can be replayed as it is.
#[test]
fn inputs_json_is_complete_in_order_and_replays_byte_for_byte() {
    let place = Place::new();
    place
        .run(
            MOCK,
            "--concurrency 4 --request-count 6 --num-dataset-entries 9 --isl 24 --osl 3 --random-seed 7 --export-level raw \
             --extra-inputs temperature:0.5",
        )
        .with_code(0);
    let first = place.results();
    let inputs = first.json("inputs.json");
    let data = inputs["data"].as_array().unwrap();
    assert_eq!(data.len(), 9);
    let sent: BTreeMap<String, String> = first
        .lines("profile_export_raw.jsonl")
        .iter()
        .map(|line| {
            (metadata(line, "conversation_id").as_str().unwrap().to_owned(), line["payload"].to_string())
        })
        .collect();
    assert_eq!(sent.len(), 6);
    for entry in data.iter().take(6) {
        assert_eq!(entry["payloads"].as_array().unwrap().len(), 1);
        assert_eq!(
            sent[entry["session_id"].as_str().unwrap()],
            entry["payloads"][0].to_string(),
            "sent as written"
        );
    }
    assert_eq!(data[0]["payloads"][0]["temperature"], 0.5);

    let again = Place::new();
    std::fs::copy(first.dir.join("inputs.json"), again.path("inputs.json")).unwrap();
    again
        .run(
            MOCK,
            "--concurrency 4 --input-file inputs.json --custom-dataset-type inputs_json --request-count 9 --export-level raw",
        )
        .with_code(0);
    let replayed: BTreeSet<String> = again
        .results()
        .lines("profile_export_raw.jsonl")
        .iter()
        .map(|line| line["payload"].to_string())
        .collect();
    let expected: BTreeSet<String> = data.iter().map(|entry| entry["payloads"][0].to_string()).collect();
    assert_eq!(replayed, expected);
    assert!(!again.path("out/inputs.json").exists(), "authored bodies are on disk already");
}

#[test]
fn a_prefix_names_the_files_and_common_names_stay() {
    let place = Place::new();
    place
        .run(MOCK, "--request-count 3 --isl 16 --export-level raw --profile-export-prefix demo_raw.jsonl")
        .with_code(0);
    let files = place.results().files();
    assert_eq!(
        files,
        [
            ".aiperf_results_ready.json",
            "demo.csv",
            "demo.json",
            "demo.jsonl",
            "demo_console.txt",
            "demo_raw.jsonl",
            "inputs.json",
            "logs/aiperf.log"
        ]
    );
}

#[test]
fn export_levels_choose_the_files() {
    for (level, records, raw) in [("summary", false, false), ("records", true, false), ("raw", true, true)] {
        let place = Place::new();
        place.run(MOCK, &format!("--request-count 3 --isl 16 --export-level {level}")).with_code(0);
        let has = |name: &str| place.path("out").join(name).exists();
        assert_eq!((has("profile_export.jsonl"), has("profile_export_raw.jsonl")), (records, raw), "{level}");
        assert!(has("profile_export_aiperf.json"));
    }
}

#[test]
fn a_second_run_in_a_folder_leaves_nothing_of_the_first_but_strangers_files() {
    let place = Place::new();
    place
        .run(
            MOCK,
            "--request-count 3 --warmup-request-count 2 --isl 16 --export-level raw --export-http-trace",
        )
        .with_code(0);
    place.write("out/notes.txt", "mine");
    let first = place.results().files();
    assert!(first.contains(&"phases/warmup/profile_export_aiperf.json".to_owned()));
    place.run(MOCK, "--request-count 4 --isl 16 --export-level records").with_code(0);
    let files = place.results().files();
    assert_eq!(
        files,
        [
            ".aiperf_results_ready.json",
            "inputs.json",
            "logs/aiperf.log",
            "notes.txt",
            "profile_export.jsonl",
            "profile_export_aiperf.csv",
            "profile_export_aiperf.json",
            "profile_export_console.txt"
        ]
    );
    assert_eq!(place.results().records().len(), 4);
}

/// The marker of an earlier run is gone before the first request leaves.
#[test]
fn the_ready_marker_is_gone_while_a_run_lasts() {
    let place = Place::new();
    place.run(MOCK, "--request-count 2 --isl 16").with_code(0);
    let marker = place.path("out/.aiperf_results_ready.json");
    assert!(marker.exists());
    let mock = Mock::start(&[("ttft", "1ms"), ("plan", "hang")]);
    let live = Live::start(&mut place.profile(&mock.url(), "--request-count 1 --isl 16"));
    mock.until(|stats| stats.requests == 1);
    assert!(!marker.exists());
    live.signal(rustix::process::Signal::INT);
    live.end().with_code(1);
    assert!(marker.exists());
}

#[test]
fn the_default_folder_names_model_endpoint_and_load() {
    for (flags, folder) in [
        ("--concurrency 3", "org_demo-openai-chat-concurrency3"),
        ("--concurrency 3 --request-rate 200", "org_demo-openai-chat-concurrency3-request_rate200.0"),
        ("--endpoint-type completions", "org_demo-openai-completions-concurrency1"),
    ] {
        let place = Place::new();
        let mut command = crate::support::aiperf();
        command.current_dir(place.root());
        command.args([
            "profile",
            "--model",
            "org/demo",
            "--url",
            MOCK,
            "--ui",
            "none",
            "--request-count",
            "2",
            "--isl",
            "16",
        ]);
        let ran = Live::start(command.args(flags.split(' '))).end().with_code(0);
        let dir = place.path("artifacts").join(folder);
        assert!(dir.join("profile_export_aiperf.json").is_file(), "{flags}: {}", ran.out);
        // The report ends with the paths of everything written.
        for name in ["profile_export_aiperf.csv", "profile_export.jsonl", "inputs.json", "logs/aiperf.log"] {
            assert!(
                ran.out.contains(&dir.join(name).display().to_string()),
                "{flags}: {name} in {}",
                ran.out
            );
        }
        assert!(ran.out.contains("CLI Command: aiperf profile"));
    }
}

#[test]
fn the_command_is_on_one_line_where_it_may_be_copied_from() {
    let flags = "--request-count 2 --isl 16 --osl 4 --concurrency 2 --random-seed 1 --benchmark-duration 30 \
                 --benchmark-grace-period 5 --header X-Team:blue";
    let ran = Place::new().run(MOCK, flags).with_code(0);
    let line = ran.out.lines().find(|line| line.starts_with("CLI Command: ")).unwrap();
    assert!(line.len() > 140 && line.trim_end_matches('\'').ends_with("none"), "{line}");
}

#[test]
fn the_console_file_is_the_report_without_colour() {
    let place = Place::new();
    let ran = place.run(MOCK, "--request-count 3 --isl 16 --streaming").with_code(0);
    let text = place.results().text("profile_export_console.txt");
    assert!(!text.contains('\x1b') && !ran.out.contains('\x1b'));
    assert!(text.lines().all(|line| line.chars().count() <= 140));
    assert!(text.contains("AIPerf | LLM Metrics") && text.contains("Load Delivery: "));
}

#[test]
fn http_traces_are_in_the_records_when_asked_for() {
    let place = Place::new();
    place.run(MOCK, "--streaming --request-count 4 --isl 16 --export-http-trace").with_code(0);
    for record in place.results().records() {
        let trace = &record["trace_data"];
        assert_eq!(trace["response_status_code"], 200);
        let chunks = trace["response_chunks"].as_array().unwrap();
        assert!(!chunks.is_empty());
        let bytes: u64 = chunks.iter().map(|chunk| chunk[1].as_u64().unwrap()).sum();
        assert_eq!(bytes, trace["response_bytes_total"].as_u64().unwrap());
        assert!(keys(trace).contains(&"local_port"));
    }
    assert!(place.results().text("profile_export.jsonl").lines().next().unwrap().contains("\"trace_type\""));
}

/// What is done is on disk within a second or so, though the run goes on.
#[test]
fn records_reach_the_disk_while_the_run_lasts() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "2"), ("plan", "ok*5:hang*100")]);
    let live = Live::start(
        &mut place.profile(&mock.url(), "--concurrency 2 --request-count 50 --isl 16 --export-level raw"),
    );
    mock.until(|stats| stats.requests == 7);
    let begin = aiperf_clock::now();
    for name in ["profile_export.jsonl", "profile_export_raw.jsonl"] {
        while std::fs::read_to_string(place.path("out").join(name)).unwrap().lines().count() < 5 {
            let waited_ms = aiperf_clock::now().saturating_since(begin) / 1_000_000;
            assert!(waited_ms < 10_000, "{name} was not written out");
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
    }
    live.signal(rustix::process::Signal::INT);
    live.end().with_code(0);
}

/// A server that dies in the middle: what it answered is kept, what came after it failed, and the run ends.
#[test]
fn a_server_that_goes_away_ends_no_run() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "2ms"), ("itl", "1ms"), ("tokens", "4"), ("usage", "estimate")]);
    let live = Live::start(
        &mut place.profile(&mock.url(), "--streaming --concurrency 3 --request-count 60 --isl 16"),
    );
    mock.until(|stats| stats.requests >= 25);
    drop(mock);
    live.end().with_code(0);
    let results = place.results();
    results.assert_complete(false);
    results.assert_all_accounted_for();
    let summary = results.summary();
    assert_eq!(summary["completed_request_count"]["avg"], 60.0);
    assert!(summary["request_count"]["avg"].as_f64().unwrap() >= 20.0);
    let kinds: BTreeSet<&str> = summary["error_summary"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["error_details"]["type"].as_str().unwrap())
        .collect();
    assert!(kinds.contains("ClientConnectorError"), "{kinds:?}");
}

/// The command in the results can be pasted into a shell and gives the same run.
#[test]
fn the_recorded_command_repeats_the_run() {
    let place = Place::new();
    let mut command = crate::support::aiperf();
    command.current_dir(place.root()).args([
        "profile",
        "--url",
        "mock://?ttft=1ms&itl=0&tokens=2",
        "--ui",
        "none",
    ]);
    command.args(["--model", "it's a \"model\" $HOME", "--tokenizer", "builtin", "--random-seed", "007"]);
    command.args(["--artifact-dir", "out folder/é", "--request-count", "3", "--isl", "16"]);
    command.args(["--extra-inputs", "{\"note\": \"a'b\"}", "--header", "X-Note: true"]);
    Live::start(&mut command).end().with_code(0);
    let dir = place.path("out folder/é");
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let summary: Value = serde_json::from_str(&read("profile_export_aiperf.json")).unwrap();
    let typed = summary["run_info"]["cli_command"].as_str().unwrap();
    let inputs = read("inputs.json");
    std::fs::remove_dir_all(&dir).unwrap();
    let script = typed.strip_prefix("aiperf ").map(|rest| format!("\"$AIPERF\" {rest}")).unwrap();
    Live::start(crate::support::shell(&script).current_dir(place.root())).end().with_code(0);
    assert_eq!(read("inputs.json"), inputs);
    let again: Value = serde_json::from_str(&read("profile_export_aiperf.json")).unwrap();
    assert_eq!(again["run_info"]["cli_command"], typed);
    assert_eq!(again["input_config"].to_string(), summary["input_config"].to_string());
}
