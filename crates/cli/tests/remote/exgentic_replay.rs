//! Recorded agent sessions as they are sent: what of them, when, and to a server that may not hold them.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use aiperf_test_servers::http::{Answer, Request, Server};
use aiperf_test_servers::rows;
use serde_json::{Value, json};

use crate::exgentic::{V2, both, example, hub_of, profile, run, session};
use crate::machine::{Machine, stderr};

/// A server that answers every request of the load, and hears what is said.
fn endpoint() -> Server {
    serving(json!({"id": "m"}))
}

/// The same, which lists one model.
fn serving(model: Value) -> Server {
    Server::start(move |request| {
        if request.path() == "/v1/models" {
            return Answer::json(&json!({"object": "list", "data": [model]}));
        }
        answered()
    })
}

fn answered() -> Answer {
    Answer::json(&json!({
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    }))
}

/// What the server was sent as load.
fn load_of(server: &Server) -> Vec<Request> {
    server.log().into_iter().filter(|request| request.method == "POST").collect()
}

#[test]
fn the_documented_command_runs_as_it_is_written() {
    let rows = [
        session("other", "claude_code", 1),
        session("wanted", "tool_calling", 2),
        session("more", "tool_calling", 1),
    ];
    let hub = hub_of(V2, &[("train-0.parquet", &rows::parquet(&rows, 1))]);
    let machine = Machine::new(&hub);
    let server = endpoint();
    let url = format!("http://localhost:{}/v1/chat/completions", server.port());
    let output = machine.aiperf(&[
        "profile",
        "--model",
        "TARGET_MODEL",
        "--url",
        &url,
        "--endpoint-type",
        "chat",
        "--public-dataset",
        "exgentic_v2",
        "--dataset-filter",
        "benchmark=swebench",
        "--dataset-filter",
        "harness=tool_calling",
        "--dataset-filter",
        "source_model=Kimi-K2.5",
        "--num-conversations",
        "1",
        "--fixed-schedule",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let log = load_of(&server);
    let mut said: Vec<Value> =
        log.iter().map(|request| serde_json::from_slice::<Value>(&request.body).unwrap()).collect();
    said.sort_by_key(|body| body["messages"].to_string());
    assert_eq!(said.len(), 2);
    for (call, body) in said.iter().enumerate() {
        assert_eq!(body["messages"], json!([{"role": "user", "content": format!("wanted {call}")}]));
        assert_eq!((&body["model"], &body["max_completion_tokens"]), (&json!("TARGET_MODEL"), &json!(3)));
    }
    for request in &log {
        assert_eq!(request.header("x-dynamo-session-id"), Some("wanted"));
        let own = request.header("x-correlation-id").unwrap();
        assert!(own.starts_with("fixed-schedule-wanted:"), "{own}");
    }
}

#[test]
fn requests_are_what_was_recorded_in_a_closed_loop_and_on_a_schedule() {
    let expected: Value = serde_json::from_slice(&example("exgentic_sample_expected.json")).unwrap();
    for (set, hub) in both() {
        let machine = Machine::new(&hub);
        for (key, more) in [
            ("closed_loop", &["--num-conversations", "5", "--inter-turn-delay-cap-seconds", "0"][..]),
            (
                "fixed_schedule",
                &[
                    "--num-conversations",
                    "9",
                    "--fixed-schedule",
                    "--dataset-filter",
                    "source_model=gemini-3-pro-preview",
                ],
            ),
        ] {
            let server = endpoint();
            let url = format!("http://localhost:{}/v1/chat/completions", server.port());
            let common = [
                "profile",
                "--model",
                "m",
                "--url",
                &url,
                "--output-artifact-dir",
                "out",
                "--tokenizer",
                "builtin",
                "--public-dataset",
                set,
                "--concurrency",
                "5",
            ];
            let output = machine.aiperf(&[&common[..], more].concat());
            assert_eq!(output.status.code(), Some(0), "{set}: {}", stderr(&output));
            let mut wanted: Vec<String> = expected[key]
                .as_array()
                .unwrap()
                .iter()
                .filter(|one| {
                    key == "closed_loop" || one["session_id"].as_str().unwrap().starts_with("aa11_0005")
                })
                .flat_map(|one| one["turns"].as_array().unwrap())
                .map(|turn| {
                    let mut body = json!({
                        "messages": turn["messages"], "model": "m", "stream": false,
                        "max_completion_tokens": turn["max_tokens"],
                    });
                    let extra =
                        turn.get("extra_body").and_then(Value::as_object).cloned().unwrap_or_default();
                    for (key, value) in extra
                        .into_iter()
                        .chain(turn.get("tools").map(|tools| ("tools".into(), tools.clone())))
                    {
                        body[key] = value;
                    }
                    sorted(&json!([turn["headers"]["x-dynamo-session-id"], body]))
                })
                .collect();
            let mut said: Vec<String> = load_of(&server)
                .iter()
                .map(|request| {
                    let body: Value = serde_json::from_slice(&request.body).unwrap();
                    sorted(&json!([request.header("x-dynamo-session-id"), body]))
                })
                .collect();
            wanted.sort();
            said.sort();
            assert_eq!(said, wanted, "{set} {key}");
        }
    }
}

/// The text of a value, the keys of objects in order.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key}:{}", sorted(value))).collect();
            fields.sort();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(values) => format!("[{}]", values.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// What was recorded as a limit stays, and a prompt of the user goes before the recorded instructions.
#[test]
fn an_output_length_changes_no_recorded_limit_and_a_system_prompt_joins_the_recorded_one() {
    let mut row = session("a", "tool_calling", 1);
    row["spans"][0]["attributes"]["gen_ai.system_instructions"] = json!("Recorded.");
    let hub = hub_of(V2, &[("train-0.parquet", &rows::parquet(&[row], 1))]);
    let machine = Machine::new(&hub);
    run(&machine, "exgentic_v2", &["--num-conversations", "1", "--osl", "7", "--system-prompt", "Mine."]);
    let raw = std::fs::read_to_string(machine.home.path().join("out/profile_export_raw.jsonl")).unwrap();
    let record: Value = serde_json::from_str(raw.lines().next().unwrap()).unwrap();
    let payload = &record["payload"];
    assert_eq!(payload["max_completion_tokens"], 3);
    assert_eq!(payload["messages"][0], json!({"role": "system", "content": "Mine.\n\nRecorded."}));
}

/// The target says how much it takes; what the user says goes before that.
#[test]
fn calls_that_the_server_says_it_cannot_take_are_warned_of_before_they_are_sent() {
    let rows = [session("a", "tool_calling", 2)];
    let hub = hub_of(V2, &[("train-0.parquet", &rows::parquet(&rows, 1))]);
    let machine = Machine::new(&hub);
    let run = |model: Value, more: &[&str]| {
        let server = serving(model);
        let common = ["profile", "--model", "m", "--url", &server.url(), "--output-artifact-dir", "out"];
        let set = ["--public-dataset", "exgentic_v2", "--num-conversations", "1", "--tokenizer", "builtin"];
        let key = ["--api-key", "sesame"];
        let output = machine.aiperf(&[&common[..], &set, &key, more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        (stderr(&output), server.log())
    };
    let warning =
        "2 of 2 recorded call(s) have more input and output tokens than the 12 that the target takes";
    let (said, log) = run(json!({"id": "m", "max_model_len": 12}), &[]);
    assert!(said.contains(warning), "{said}");
    assert_eq!((log[0].method.as_str(), log[0].target.as_str()), ("GET", "/v1/models"));
    assert_eq!(log[0].header("authorization"), Some("Bearer sesame"));
    assert_eq!(log.len(), 3);
    for quiet in
        [json!({"id": "m", "max_model_len": 13}), json!({"id": "m"}), json!({"id": "n", "max_model_len": 1})]
    {
        let (said, _) = run(quiet.clone(), &[]);
        assert!(!said.contains("recorded call(s) have more"), "{quiet}: {said}");
    }
    let (said, log) = run(json!({"id": "m", "max_model_len": 1}), &["--max-context-length", "12"]);
    assert!(said.contains(warning) && log.len() == 2, "{said} {log:?}");
}

/// Each answer waits for all calls: calls that overlapped when they were recorded overlap again, or nothing goes on.
#[test]
fn calls_that_overlapped_are_under_way_at_once_and_all_sessions_begin_together() {
    let mut rows = [session("a", "tool_calling", 2), session("b", "tool_calling", 1)];
    rows[0]["spans"][0]["end_time"] = json!("2026-03-01T10:00:05.000+00:00");
    rows[1]["spans"][0]["start_time"] = json!("2026-05-05T00:00:00.000+00:00");
    rows[1]["spans"][0]["end_time"] = json!("2026-05-05T00:00:09.000+00:00");
    let hub = hub_of(V2, &[("train-0.parquet", &rows::parquet(&rows, 1))]);
    let machine = Machine::new(&hub);
    let here = Arc::new((Mutex::new(0), Condvar::new()));
    let server = Server::start(move |request| {
        if request.method != "POST" {
            return Answer::status(404);
        }
        let (count, more) = &*here;
        let mut count = count.lock().unwrap();
        *count += 1;
        more.notify_all();
        let all = more.wait_timeout_while(count, Duration::from_mins(1), |count| *count < 3);
        if all.unwrap().1.timed_out() {
            return Answer::status(500);
        }
        answered()
    });
    let output = machine.aiperf(&[
        "profile",
        "--model",
        "m",
        "--url",
        &server.url(),
        "--output-artifact-dir",
        "out",
        "--tokenizer",
        "builtin",
        "--public-dataset",
        "exgentic_v2",
        "--num-conversations",
        "2",
        "--fixed-schedule",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary = machine.summary();
    assert_eq!(summary["request_count"]["avg"], 3.0);
    assert_eq!(summary["error_summary"], json!([]));
}

/// After a live answer the next call waits as long as it did after the recorded one.
#[test]
fn in_a_closed_loop_a_call_waits_for_the_answer_and_then_for_the_recorded_rest() {
    let hub = hub_of(V2, &[("train-0.parquet", &rows::parquet(&[session("a", "tool_calling", 2)], 1))]);
    let machine = Machine::new(&hub);
    let output = profile(&machine, "exgentic_v2", &["--num-conversations", "1", "--request-count", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let records = std::fs::read_to_string(machine.home.path().join("out/profile_export.jsonl")).unwrap();
    let mut times: Vec<(u64, u64)> = records
        .lines()
        .map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            let at = |key: &str| record["metadata"][key].as_u64().unwrap();
            (at("request_start_ns"), at("request_end_ns"))
        })
        .collect();
    times.sort_unstable();
    let waited = times[1].0 - times[0].1;
    assert!(waited >= 500_000_000, "{waited} ns");
}

#[test]
fn all_calls_of_a_schedule_are_sent_unless_a_request_count_caps_them() {
    let rows = [session("a", "tool_calling", 2), session("b", "tool_calling", 2)];
    let hub = hub_of(V2, &[("train-0.parquet", &rows::parquet(&rows, 1))]);
    let machine = Machine::new(&hub);
    let requests = |more: &[&str]| {
        run(&machine, "exgentic_v2", &[&["--fixed-schedule"], more].concat());
        let raw = std::fs::read_to_string(machine.home.path().join("out/profile_export_raw.jsonl")).unwrap();
        let metadata = machine.summary()["metadata"]["dataset"].clone();
        (raw.lines().count(), metadata["conversations"].clone(), metadata["requests"].clone())
    };
    assert_eq!(requests(&["--num-conversations", "2"]), (4, json!(4), json!(4)));
    assert_eq!(requests(&["--num-dataset-entries", "1"]), (2, json!(2), json!(2)));
    assert_eq!(requests(&["--request-count", "3"]), (3, json!(4), json!(4)));
    assert_eq!(requests(&["--num-conversations", "2", "--num-warmup-sessions", "1"]).0, 5);
}
