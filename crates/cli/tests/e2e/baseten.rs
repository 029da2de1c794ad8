//! Replay of traces of completions: what leaves, and when, statement by statement.

use serde_json::{Value, json};

use crate::support::{Place, Ran, keys};

const TYPE: &str = "--custom-dataset-type baseten_trace";
const BASE: &str = "--export-level raw --random-seed 1";

fn data(name: &str) -> String {
    format!("--input-file {}/tests/data/files/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A run against the mock server in the process, and what it left.
struct Replay {
    place: Place,
    ran: Ran,
}

fn replay(line: &str) -> Replay {
    replay_of("baseten.parquet", &format!("{TYPE} {line}"))
}

fn replay_of(name: &str, line: &str) -> Replay {
    let place = Place::new();
    let endpoint = if line.contains("--endpoint-type") { "" } else { "--endpoint-type completions" };
    let line = format!("{BASE} {endpoint} {} {line}", data(name));
    let ran = place.run("mock://?ttft=5ms&itl=1ms", &line).with_code(0);
    Replay { place, ran }
}

fn refused(name: &str, line: &str) -> String {
    let place = Place::new();
    let ran = place
        .run("mock://", &format!("{BASE} --endpoint-type completions {} {line}", data(name)))
        .with_code(2);
    assert!(place.is_untouched());
    ran.err
}

impl Replay {
    /// Bodies with the session they belong to, in the order in which they left.
    fn sent(&self) -> Vec<(String, Value)> {
        let mut rows = self.place.results().lines("profile_export_raw.jsonl");
        rows.sort_by_key(|row| row["metadata"]["request_start_ns"].as_u64());
        rows.into_iter()
            .map(|row| {
                let id = row["metadata"]["conversation_id"].as_str().unwrap().to_owned();
                (id, row["payload"].clone())
            })
            .collect()
    }

    fn body(&self, prompt: &str) -> Value {
        let sent = self.sent();
        sent.into_iter().find(|(_, body)| body["prompt"] == prompt).map(|(_, body)| body).unwrap()
    }

    fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.sent().into_iter().map(|(id, _)| id).collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// What the plan wanted of each request, ms after the first of them, in that order; and that none left early.
    fn due(&self) -> Vec<f64> {
        let records = self.place.results().records();
        let at = |record: &Value, key: &str| record["metadata"][key].as_u64();
        let first = records.iter().filter_map(|record| at(record, "due_ns")).min().unwrap();
        let mut due: Vec<f64> = records
            .iter()
            .map(|record| {
                let due = at(record, "due_ns").unwrap();
                assert!(at(record, "request_start_ns").unwrap() >= due, "{record}");
                (due - first) as f64 / 1e6
            })
            .collect();
        due.sort_by(f64::total_cmp);
        due
    }

    /// The same for recorded times as the schedule has them.
    fn scheduled(&self) -> Vec<f64> {
        let records = self.place.results().records();
        let mut all: Vec<u64> =
            records.iter().filter_map(|record| record["metadata"]["scheduled_ns"].as_u64()).collect();
        all.sort_unstable();
        all.iter().map(|at| ((at - all[0]) as f64 / 1e3).round() / 1e3).collect()
    }
}

#[test]
fn the_command_of_the_page_replays_a_trace_on_its_times() {
    let run = replay("--streaming --fixed-schedule --extra-inputs min_p:0.1");
    assert_eq!(run.scheduled(), [0.0, 100.0, 260.0, 300.0, 420.0, 700.0, 3900.0]);
    let body = run.body("Alpha: list two harbours.");
    let order = [
        "prompt",
        "model",
        "stream",
        "max_tokens",
        "min_p",
        "min_tokens",
        "hash_ids",
        "block_size",
        "stream_options",
    ];
    assert_eq!(keys(&body), order);
    assert!(run.place.results().lines("profile_export_raw.jsonl").len() == 7);
}

#[test]
fn a_trace_is_recognised_and_played_on_its_times_without_being_named() {
    let run = replay_of("baseten_minimal.parquet", "");
    assert_eq!(run.scheduled(), [0.0, 100.0, 300.0]);
    assert!(run.ran.err.contains("detected as baseten_trace; it is replayed on its recorded schedule"));
    let unscheduled = replay_of("baseten_minimal.parquet", "--no-fixed-schedule --request-count 3");
    assert!(unscheduled.scheduled().is_empty());
}

#[test]
fn sessions_come_from_the_column_that_repeats_more_and_stay_together() {
    let run = replay("--replay-speedup 20");
    assert_eq!(run.ids(), ["7", "8", "9", "session_000000"]);
    let rows = run.place.results().records();
    for row in &rows {
        let metadata = &row["metadata"];
        let id = metadata["conversation_id"].as_str().unwrap();
        assert_eq!(metadata["x_correlation_id"], format!("fixed-schedule-{id}"));
    }
    assert_eq!(replay_of("baseten_tie.parquet", TYPE).ids(), ["a", "b", "c"]);
    let fresh = replay_of("baseten_no_repeat.parquet", TYPE);
    assert_eq!(fresh.ids(), ["session_000000", "session_000001", "session_000002"]);
}

#[test]
fn the_session_column_can_be_named_by_the_environment() {
    let place = Place::new();
    let line = format!("{BASE} --endpoint-type completions {} {TYPE}", data("baseten_no_repeat.parquet"));
    let mut command = place.profile("mock://", &line);
    command.env("AIPERF_DATASET_BASETEN_SESSION_COLUMN", "provided_session_id");
    let ran = crate::support::Live::start(&mut command).end().with_code(0);
    assert_eq!(Replay { place, ran }.ids(), ["a", "b", "c"]);
}

#[test]
fn prompts_are_sent_as_they_are_and_in_the_order_of_each_session() {
    let run = replay("--replay-speedup 20");
    let of = |id: &str| -> Vec<String> {
        let sent = run.sent();
        let own = sent.iter().filter(|(session, _)| session == id);
        own.map(|(_, body)| body["prompt"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        of("7"),
        [
            "Alpha: list two harbours.",
            "Alpha: list two harbours. Quay, Mole. Now three.",
            "Alpha: full transcript, then four."
        ]
    );
    assert_eq!(of("8"), ["Beta: name a kite.", "Beta: name a kite. Red kite. Again."]);
}

#[test]
fn recorded_lengths_are_limit_and_least_and_a_canceled_request_asks_for_one_token() {
    let run = replay("--replay-speedup 20");
    let body = run.body("Alpha: full transcript, then four.");
    assert_eq!((&body["max_tokens"], &body["min_tokens"]), (&json!(6), &json!(6)));
    let canceled = run.body("Beta: name a kite. Red kite. Again.");
    assert_eq!((&canceled["max_tokens"], &canceled["min_tokens"]), (&json!(1), &json!(1)));
    let log = run.place.results().text("logs/aiperf.log");
    assert_eq!(log.matches("1 row(s) record a request that its client canceled").count(), 1, "{log}");
}

#[test]
fn a_cap_limits_both_lengths_and_long_prompts_can_be_left_out() {
    let run = replay("--replay-speedup 20 --synthesis-max-osl 3 --synthesis-max-isl 15");
    let body = run.body("Alpha: list two harbours.");
    assert_eq!((&body["max_tokens"], &body["min_tokens"]), (&json!(3), &json!(3)));
    assert_eq!(run.sent().len(), 6);
    let longer = replay("--replay-speedup 20 --synthesis-output-len-multiplier 2");
    assert_eq!(longer.body("Alpha: list two harbours.")["min_tokens"], 8);
    // A canceled request asks for one token, and twice that.
    assert_eq!(longer.body("Beta: name a kite. Red kite. Again.")["min_tokens"], 2);
}

#[test]
fn cache_hints_are_forwarded_per_row_and_survive_a_speed_up() {
    let run = replay("--replay-speedup 20");
    let hints = |prompt: &str| {
        let body = run.body(prompt);
        (body["hash_ids"].clone(), body["block_size"].clone())
    };
    assert_eq!(
        hints("Alpha: list two harbours. Quay, Mole. Now three."),
        (json!([101, 102, 103]), json!(16))
    );
    assert_eq!(hints("Alpha: full transcript, then four."), (json!([101, 102, 103, 104]), Value::Null));
    assert_eq!(hints("Late arrival after dead air."), (Value::Null, json!(16)));
    let bare = replay("--replay-speedup 20 --omit-kv-hints");
    for (_, body) in bare.sent() {
        assert_eq!(keys(&body), ["prompt", "model", "stream", "max_tokens", "min_tokens"]);
    }
}

#[test]
fn metadata_of_a_row_wins_over_extra_inputs_and_leaves_them_alone_when_it_is_off() {
    let line = "--replay-speedup 20 --extra-inputs min_tokens:2 --extra-inputs block_size:3";
    let run = replay(line);
    let body = run.body("Alpha: list two harbours.");
    assert_eq!((&body["min_tokens"], &body["block_size"]), (&json!(4), &json!(16)));
    assert_eq!(run.ran.err.matches("--extra-inputs sets `min_tokens`").count(), 1, "{}", run.ran.err);
    let off = replay(&format!("{line} --no-force-min-tokens --omit-kv-hints"));
    for (_, body) in off.sent() {
        assert_eq!((&body["min_tokens"], &body["block_size"]), (&json!(2), &json!(3)));
    }
}

#[test]
fn an_answer_is_measured_fresh_whatever_was_recorded() {
    let run = replay("--replay-speedup 20 --streaming");
    for record in run.place.results().records() {
        let wanted = record["metadata"]["conversation_id"].as_str().unwrap();
        assert!(record["metrics"]["output_token_count"]["value"].as_u64().unwrap() >= 1, "{wanted}");
    }
    assert!(!run.place.results().text("profile_export_raw.jsonl").contains("Quay, Mole, Slip"));
}

#[test]
fn a_speed_up_divides_the_schedule() {
    let run = replay("--replay-speedup 10");
    assert_eq!(run.scheduled(), [0.0, 10.0, 26.0, 30.0, 42.0, 70.0, 390.0]);
}

#[test]
fn a_closed_loop_waits_for_answers_and_thinks() {
    let run = replay("--no-open-loop-replay --max-idle-gap-cap-seconds 9");
    // First turns alone have recorded times.
    assert_eq!(run.scheduled(), [0.0, 100.0, 420.0, 3900.0]);
    let records = run.place.results().records();
    let find = |id: &str, turn: u64| {
        let found = records.iter().find(|record| {
            let metadata = &record["metadata"];
            metadata["conversation_id"] == id && metadata["turn_index"] == turn
        });
        &found.unwrap()["metadata"]
    };
    for (id, turn, think_ms) in [("7", 1, 150.0), ("7", 2, 340.0), ("8", 1, 230.0)] {
        let returned = find(id, turn - 1)["request_end_ns"].as_u64().unwrap();
        let due = find(id, turn)["due_ns"].as_u64().unwrap();
        let thought = due.saturating_sub(returned) as f64 / 1e6;
        // The return is seen a little after the last byte was.
        assert!((think_ms..think_ms + 40.0).contains(&(thought + 0.001)), "{id} {turn}: {thought} ms");
    }
    let capped = replay("--no-open-loop-replay --replay-speedup 2 --inter-turn-delay-cap-seconds 0.05");
    assert_eq!(capped.sent().len(), 7);
}

#[test]
fn dead_air_is_closed_in_the_open_loop() {
    let run = replay("--replay-speedup 10 --max-idle-gap-cap-seconds 0.02");
    assert_eq!(run.scheduled(), [0.0, 10.0, 26.0, 30.0, 42.0, 62.0, 82.0]);
}

#[test]
fn dead_air_is_closed_in_the_closed_loop_think_times_included() {
    let run = replay("--no-open-loop-replay --max-idle-gap-cap-seconds 0.05");
    let mut records = run.place.results().records();
    records.sort_by_key(|record| record["metadata"]["due_ns"].as_u64());
    let mut busy_until = records[0]["metadata"]["due_ns"].as_u64().unwrap();
    for record in &records {
        let at = |key: &str| record["metadata"][key].as_u64().unwrap();
        let idle = at("due_ns").saturating_sub(busy_until) as f64 / 1e6;
        // The return is seen a little after the last byte was.
        assert!(idle <= 90.0, "{idle} ms: {record}");
        busy_until = busy_until.max(at("request_end_ns"));
    }
    assert!(run.ran.err.contains("the schedule moved up by"), "{}", run.ran.err);
    assert_eq!(run.place.results().summary()["load_delivery"]["unsent_count"], 0);
}

#[test]
fn strict_replay_sends_every_row_at_its_time() {
    let run = replay("--open-loop-strict --replay-speedup 10");
    assert_eq!(run.scheduled(), [0.0, 10.0, 26.0, 30.0, 42.0, 70.0, 390.0]);
    assert_eq!(run.due(), run.scheduled());
    assert_eq!(run.ids(), ["7#0", "7#1", "7#2", "8#0", "8#1", "9#0", "session_000000#0"]);
}

#[test]
fn without_strict_a_turn_waits_for_the_one_before_it() {
    let place = Place::new();
    let line =
        format!("{BASE} --endpoint-type completions {} {TYPE} --replay-speedup 100", data("baseten.parquet"));
    let ran = place.run("mock://?ttft=40ms", &line).with_code(0);
    let run = Replay { place, ran };
    assert_eq!(run.scheduled(), [0.0, 1.0, 2.6, 3.0, 4.2, 7.0, 39.0]);
    let mut records = run.place.results().records();
    records.retain(|record| record["metadata"]["conversation_id"] == "7");
    records.sort_by_key(|record| record["metadata"]["turn_index"].as_u64());
    for pair in records.windows(2) {
        let (before, after) = (&pair[0]["metadata"], &pair[1]["metadata"]);
        assert!(after["due_ns"].as_u64() >= before["request_end_ns"].as_u64());
    }
}

#[test]
fn a_sample_keeps_whole_sessions_and_repeats_with_a_seed() {
    let sample = || replay("--trace-session-sample-ratio 0.5 --replay-speedup 100");
    let one = sample();
    let sent: Vec<Value> = one.sent().into_iter().map(|(_, body)| body["prompt"].clone()).collect();
    assert!(!sent.is_empty() && sent.len() < 7, "{sent:?}");
    let mut other: Vec<Value> = sample().sent().into_iter().map(|(_, body)| body["prompt"].clone()).collect();
    let mut first = sent.clone();
    first.sort_by_key(ToString::to_string);
    other.sort_by_key(ToString::to_string);
    assert_eq!(first, other);
    let has = |prompt: &str| sent.contains(&json!(prompt));
    assert_eq!(has("Beta: name a kite."), has("Beta: name a kite. Red kite. Again."));
    assert_eq!(has("Alpha: list two harbours."), has("Alpha: full transcript, then four."));
}

#[test]
fn a_start_offset_is_recorded_time_on_a_schedule_that_is_not() {
    let run = replay("--replay-speedup 4 --fixed-schedule-start-offset 300");
    let records = run.place.results().records();
    let starts: Vec<_> = records.iter().map(|record| record["metadata"]["scheduled_ns"].as_u64()).collect();
    assert_eq!(starts.len(), 4);
    assert_eq!(run.scheduled(), [0.0, 30.0, 100.0, 900.0]);
}

#[test]
fn another_path_is_asked_with_the_endpoint_flag() {
    let echo = crate::support::Echo::start(|_| {
        let body = json!({"object": "text_completion", "choices": [{"index": 0, "text": "ok"}]}).to_string();
        crate::support::http("200 OK", "Content-Type: application/json\r\n", &body)
    });
    let place = Place::new();
    let line = format!(
        "{BASE} --endpoint-type completions {} {TYPE} --replay-speedup 100 --endpoint /gateway/complete",
        data("baseten.parquet")
    );
    place.run(&format!("http://127.0.0.1:{}", echo.port), &line).with_code(0);
    let received = echo.received();
    assert_eq!(received.len(), 7);
    assert!(received.iter().all(|request| request.head.starts_with("POST /gateway/complete ")));
    let standard = Place::new();
    let line =
        format!("{BASE} --endpoint-type completions {} {TYPE} --replay-speedup 100", data("baseten.parquet"));
    standard.run(&format!("http://127.0.0.1:{}", echo.port), &line).with_code(0);
    assert!(echo.received()[7..].iter().all(|request| request.head.starts_with("POST /v1/completions ")));
}

#[test]
fn what_does_not_go_together_is_refused_before_anything_starts() {
    for (name, line, parts) in [
        (
            "baseten.parquet",
            "--open-loop-strict --no-open-loop-replay",
            &["--open-loop-strict", "--no-open-loop-replay"][..],
        ),
        (
            "single_turn.jsonl",
            "--custom-dataset-type single_turn --replay-speedup 2",
            &["--replay-speedup", "single_turn"],
        ),
        ("baseten.parquet", "--replay-speedup 0", &["--replay-speedup", "above 0"]),
        ("baseten.parquet", "--trace-session-sample-ratio 1.5", &["--trace-session-sample-ratio", "up to 1"]),
        ("baseten.parquet", "--max-idle-gap-cap-seconds 0", &["--max-idle-gap-cap-seconds", "above 0"]),
        ("baseten.parquet", "--request-rate 5", &["--request-rate", "--no-fixed-schedule"]),
        (
            "baseten.parquet",
            "--extra-inputs max_tokens:6",
            &["row 7", "--synthesis-max-osl", "--no-force-min-tokens"],
        ),
        (
            "baseten.parquet",
            "--synthesis-speedup-ratio 2",
            &["--synthesis-speedup-ratio", "--replay-speedup"],
        ),
        (
            "baseten.parquet",
            "--synthesis-prompt-len-multiplier 2",
            &["--synthesis-prompt-len-multiplier", "as they were recorded"],
        ),
    ] {
        let message = refused(name, line);
        for part in parts {
            assert!(message.contains(part), "{line}: {message}");
        }
    }
    let place = Place::new();
    std::fs::create_dir(place.path("shards")).unwrap();
    let sample = format!("{}/tests/data/files/baseten.parquet", env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(sample, place.path("shards/train-00000-of-00001.parquet")).unwrap();
    for line in ["", "--fixed-schedule"] {
        let line = format!("--endpoint-type completions --input-file shards {TYPE} {line}");
        assert!(place.run("mock://", &line).with_code(2).err.contains("one file"));
    }
    let place = Place::new();
    let generated = place.run("mock://", "--replay-speedup 2").with_code(2);
    assert!(generated.err.contains("--replay-speedup") && generated.err.contains("--input-file"));
}

#[test]
fn flags_of_the_replay_are_without_effect_on_a_format_found_by_looking() {
    let run = replay_of("single_turn.jsonl", "--endpoint-type chat --omit-kv-hints --request-count 2");
    assert!(run.ran.err.contains("--omit-kv-hints changes nothing"), "{}", run.ran.err);
}
