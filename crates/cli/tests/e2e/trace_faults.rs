//! Faults that users of other clients met with data files and replays, one test each.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Live, Mock, Place, aiperf};

const QUICK: &str = "mock://?ttft=1ms&itl=0&tokens=2";

/// A data file of the tests of the dataset room.
fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/tests/data").join(name);
    path.display().to_string()
}

/// Recorded instants of all requests, ms after the first.
fn scheduled(place: &Place) -> Vec<f64> {
    let records = place.results().records();
    let mut all: Vec<u64> =
        records.iter().map(|record| record["metadata"]["scheduled_ns"].as_u64().unwrap()).collect();
    all.sort_unstable();
    all.iter().map(|at| (at - all[0]) as f64 / 1e6).collect()
}

/// <https://github.com/ai-dynamo/aiperf/issues/1224>: 73,499 conversations were tokenised of which few were sent.
#[test]
fn aiperf_1224_conversations_that_are_not_sent_are_not_tokenised() {
    let place = Place::new();
    let long = "who would fardels bear to grunt and sweat under a weary life ".repeat(330);
    let turns = json!({"turns": [{"text": long}, {"text": "and then?"}]}).to_string() + "\n";
    // 30 MB: tokenising them takes longer than a test may.
    place.write("chats.jsonl", "{\"turns\": [{\"text\": \"first\"}]}\n".to_owned() + &turns.repeat(1500));
    let line = "--input-file chats.jsonl --custom-dataset-type multi_turn --num-conversations 2";
    place.run(QUICK, line).with_code(0);
    assert_eq!(place.results().records().len(), 3);
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/561>: the corpus was kept in memory.
#[test]
fn inference_perf_561_memory_does_not_follow_the_file() {
    let peak = |rows: usize| {
        let place = Place::new();
        let row = json!({"text": "0123456789 ".repeat(10_000), "output_length": 1}).to_string() + "\n";
        place.write("rows.jsonl", row.repeat(rows));
        let line = format!(
            "--input-file rows.jsonl --custom-dataset-type single_turn --request-count {rows} --concurrency 2 \
             --use-server-token-count --export-level summary"
        );
        place.run(QUICK, &line).with_code(0);
        place.results().summary()["load_delivery"]["client"]["peak_rss_bytes"].as_f64().unwrap() / 1e6
    };
    let (few, many) = (peak(60), peak(600));
    // The file is 60 MB larger.
    assert!(many < few + 25.0, "{few} MB, and {many} MB for ten times the file");
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/615>: a replay of agents ended when the last session did.
#[test]
fn inference_perf_615_a_replay_of_agents_ends_with_its_duration() {
    let place = Place::new();
    let line = "--no-fixed-schedule --ignore-trace-delays --concurrency 2 --benchmark-duration 0.5 \
                --benchmark-grace-period 0";
    let file = data("weka_trace.json");
    place.run("mock://?ttft=10ms&itl=0&tokens=2", &format!("--input-file {file} {line}")).with_code(0);
    // Sessions that end are followed by others until then.
    let summary = place.results().summary();
    assert!(summary["request_count"]["avg"].as_f64() > Some(10.0), "{summary}");
    assert!(summary["benchmark_duration"]["avg"].as_f64() < Some(5.0), "{summary}");
}

/// <https://github.com/LMCache/LMCache/issues/1326>: a workload without reuse was taken for one with.
#[test]
fn lmcache_1326_the_reuse_of_a_workload_is_told_before_anything_is_sent() {
    let place = Place::new();
    let analysis = |name: &str| -> Value {
        let mut command: Command = aiperf();
        command.current_dir(place.root()).args(["analyze-trace", &data(name), "--format", "json"]);
        serde_json::from_str(&Live::start(&mut command).end().with_code(0).out).unwrap()
    };
    assert!(analysis("mooncake_hash.jsonl")["cache_hit_rate"].as_f64() > Some(0.0));
    assert!(analysis("weka_trace.json")["cache_hit_rate"].as_f64() > Some(0.0));
    // What records nothing of blocks claims nothing of them.
    assert_eq!(analysis("multi_turn.jsonl").get("cache_hit_rate"), None);
}

/// The documentation of guidellm (`trace_replay`): dates were not parsed, and histories that are not linear unreliable.
#[test]
fn guidellm_trace_replay_times_have_a_unit_and_what_cannot_be_replayed_is_refused() {
    let replayed = |name: &str, text: &str| {
        let place = Place::new();
        place.write(name, text);
        place.run(QUICK, &format!("--input-file {name} --random-seed 1")).with_code(0);
        scheduled(&place)
    };
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,9,2\n\
                 2023-11-16T18:17:04.0299600Z,9,2\n2023-11-16T20:17:04.080+02:00,9,2\n";
    assert_eq!(replayed("azure.csv", azure), [0.0, 50.0, 100.04]);
    let seconds = "Timestamp,Request tokens,Response tokens\n5,9,2\n5.05,9,2\n";
    assert_eq!(replayed("burst.csv", seconds), [0.0, 50.0]);
    let milliseconds = "{\"timestamp\": 7, \"input_length\": 9}\n{\"timestamp\": 57, \"input_length\": 9}\n";
    assert_eq!(replayed("mooncake.jsonl", milliseconds), [0.0, 50.0]);
    for (row, words) in [
        ("{\"timestamp\": \"2023-11-16T18:17:03Z\", \"input_length\": 9}", "timestamp"),
        ("{\"messages\": [{\"role\": \"user\"}], \"message_mode\": \"delta\"}", "message_mode"),
    ] {
        let place = Place::new();
        place.write("rows.jsonl", row);
        let ran =
            place.run(QUICK, "--input-file rows.jsonl --custom-dataset-type mooncake_trace").with_code(2);
        assert!(ran.err.contains("rows.jsonl:1") && ran.err.contains(words), "{}", ran.err);
        assert!(place.is_untouched());
    }
}

/// The documentation of guidellm (datasets): data with columns of other names needed a mapping in nested JSON.
#[test]
fn guidellm_datasets_columns_of_other_names_are_found_and_told_or_named_in_a_few_words() {
    let sent = |rows: &str, line: &str| {
        let place = Place::new();
        place.write("rows.jsonl", rows);
        let line = format!(
            "--input-file rows.jsonl --export-level raw --random-seed 1 --num-conversations 2 {line}"
        );
        let ran = place.run(QUICK, &line).with_code(0);
        let mut bodies: Vec<Value> = place.results().lines("profile_export_raw.jsonl");
        bodies.sort_by_key(|record| record["metadata"]["conversation_id"].to_string());
        let body = |record: &Value| {
            let payload = &record["payload"];
            (payload["messages"][0]["content"].clone(), payload["max_completion_tokens"].clone())
        };
        (bodies.iter().map(body).collect::<Vec<_>>(), ran.err)
    };
    let expected = [(json!("one"), json!(3)), (json!("two"), json!(2))];
    let common = "{\"prompt\": \"one\", \"output_tokens\": 3}\n{\"prompt\": \"two\", \"output_tokens\": 2}\n";
    let (bodies, said) = sent(common, "");
    assert_eq!(bodies, expected);
    assert!(
        said.contains("single_turn") && said.contains("text=prompt,output_length=output_tokens"),
        "{said}"
    );
    let others = common.replace("prompt", "ask").replace("output_tokens", "most");
    let (bodies, said) = sent(&others, "--input-columns text=ask,output_length=most");
    assert_eq!(bodies, expected);
    assert!(!said.contains("text=ask"), "{said}");
}

/// The change log of kv-cache-tester: subagents flattened into their parent cut the hits of a server's cache from
/// 95 % to 20 %.
#[test]
fn kv_cache_tester_change_log_subagents_are_no_turns_of_their_parent() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "2ms"), ("itl", "0ms"), ("tokens", "4")]);
    let file = data("weka_trace.json");
    place.run(&mock.url(), &format!("--input-file {file} --export-level raw --random-seed 3")).with_code(0);
    let records = place.results().lines("profile_export_raw.jsonl");
    let contents = |id: &str, turn: u64| -> Vec<String> {
        let found = records.iter().find(|record| {
            record["metadata"]["conversation_id"] == id && record["metadata"]["turn_index"] == turn
        });
        let messages = found.unwrap()["payload"]["messages"].as_array().unwrap();
        messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    let asked = contents("weka-demo::sa:agent_001", 0).pop().unwrap();
    for turn in 1..3 {
        let (before, after) = (contents("weka-demo", turn - 1), contents("weka-demo", turn));
        // What the parent sends goes on where its turn before ended, to the last whole block.
        assert_eq!(before[0], after[0]);
        assert!(before[1].starts_with(&after[1]), "turn {turn}: {before:?} {after:?}");
        assert!(!after.contains(&asked), "turn {turn}: {after:?}");
    }
}

/// A time in nanoseconds where milliseconds are meant, and a run that seems to hang.
#[test]
fn a_schedule_says_how_long_it_lasts_and_warns_of_one_that_nobody_can_mean() {
    let place = Place::new();
    let row = |time: u64| json!({"timestamp": time, "text_input": "a"}).to_string() + "\n";
    place.write("fine.jsonl", row(5_000) + &row(5_120));
    let line = "--custom-dataset-type mooncake_trace --input-file";
    let ran = place.run(QUICK, &format!("{line} fine.jsonl")).with_code(0);
    assert!(ran.err.contains("the recorded schedule lasts 0.120 s"), "{}", ran.err);

    // What is left to the server is said, too.
    let think = |id: &str| json!({"session_id": id, "delay": 60, "text_input": "b"}).to_string() + "\n";
    let first = |id: &str| json!({"session_id": id, "timestamp": 0, "text_input": "a"}).to_string() + "\n";
    place.write("think.jsonl", first("x") + &think("x") + &think("x") + &first("y") + &think("y"));
    let ran = place.run(QUICK, &format!("{line} think.jsonl")).with_code(0);
    let said = "the recorded schedule lasts 0.120 s, and longer by the answers that 3 turns wait for";
    assert!(ran.err.contains(said), "{}", ran.err);

    place.write("absurd.jsonl", row(0) + &row(1_000_000_000_000_000));
    let endless = Live::start(&mut place.profile(QUICK, &format!("{line} absurd.jsonl")));
    endless.await_err("the recorded schedule lasts 3.2e4 years: are its times in the unit of the format?");
    endless.await_err("--fixed-schedule-end-offset");
    endless.signal(Signal::KILL);
    endless.end();
    // With an end of its own it is meant.
    let ran = place.run(QUICK, &format!("{line} absurd.jsonl --benchmark-duration 0.2")).with_code(0);
    assert!(ran.err.contains("lasts 3.2e4 years") && !ran.err.contains("are its times"), "{}", ran.err);
}

#[test]
fn what_a_killed_run_left_half_written_is_gone_after_the_next() {
    let place = Place::new();
    place.write("one.jsonl", "{\"text\": \"a\"}\n");
    std::fs::create_dir(place.path("out")).unwrap();
    for name in [".inputs.json.tmp", ".profile_export_aiperf.json.tmp"] {
        std::fs::write(place.path("out").join(name), "{\"data\": [").unwrap();
    }
    place.run(QUICK, "--input-file one.jsonl").with_code(0);
    let files = place.results().files();
    assert!(!files.iter().any(|name| name.contains(".tmp")), "{files:?}");
}

#[test]
fn a_fixed_schedule_plays_each_conversation_once_by_its_time_and_takes_no_other_order() {
    let place = Place::new();
    let row = |text: &str, time: u64| json!({"text": text, "timestamp": time}).to_string() + "\n";
    place.write("rows.jsonl", row("third", 60) + &row("first", 0) + &row("second", 30));
    let line =
        "--input-file rows.jsonl --custom-dataset-type single_turn --fixed-schedule --export-level raw";
    place.run(QUICK, line).with_code(0);
    let records = place.results().lines("profile_export_raw.jsonl");
    let mut sent: Vec<(u64, &str)> = records
        .iter()
        .map(|record| {
            let text = record["payload"]["messages"][0]["content"].as_str().unwrap();
            (record["metadata"]["credit_issued_ns"].as_u64().unwrap(), text)
        })
        .collect();
    sent.sort_unstable();
    assert_eq!(sent.iter().map(|(_, text)| *text).collect::<Vec<_>>(), ["first", "second", "third"]);
    for order in ["random", "shuffle"] {
        let ran = place.run(QUICK, &format!("{line} --dataset-sampling-strategy {order}")).with_code(2);
        assert!(ran.err.contains("--dataset-sampling-strategy"), "{}", ran.err);
    }
}

/// <https://github.com/ai-dynamo/aiperf/pull/1188>: two arms with the same mean gap were taken for the same load.
#[test]
fn aiperf_1188_traces_of_one_mean_gap_are_told_apart_before_and_after_they_are_played() {
    let place = Place::new();
    let rows = |times: &mut dyn Iterator<Item = u32>| -> String {
        times.map(|time| json!({"timestamp": time, "text_input": "a"}).to_string() + "\n").collect()
    };
    // The same first and last: 20 requests in 190 ms, evenly or in two bursts.
    place.write("even.jsonl", rows(&mut (0..20).map(|nth| nth * 10)));
    place.write("bursts.jsonl", rows(&mut (0..20).map(|nth| if nth < 10 { 0 } else { 190 })));
    let gaps = |name: &str| -> Value {
        let mut command: Command = aiperf();
        command.current_dir(place.root()).args(["analyze-trace", name, "--format", "json"]);
        let report: Value = serde_json::from_str(&Live::start(&mut command).end().with_code(0).out).unwrap();
        report["inter_arrival_ms_stats"].clone()
    };
    let (even, bursts) = (gaps("even.jsonl"), gaps("bursts.jsonl"));
    assert_eq!((&even["mean"], &even["max"]), (&json!(10.0), &json!(10.0)));
    assert_eq!(
        (&bursts["mean"], &bursts["median"], &bursts["max"]),
        (&json!(10.0), &json!(0.0), &json!(190.0))
    );
    for name in ["even.jsonl", "bursts.jsonl"] {
        place.run(QUICK, &format!("--custom-dataset-type mooncake_trace --input-file {name}")).with_code(0);
        let summary = place.results().summary();
        for realised in ["intended_rate", "delivered_rate"] {
            assert!(summary["load_delivery"][realised].as_f64() > Some(0.0), "{realised}: {summary}");
        }
        assert!(summary["effective_concurrency"]["max"].as_f64() >= Some(1.0), "{summary}");
    }
}
