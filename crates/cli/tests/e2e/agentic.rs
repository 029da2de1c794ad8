//! Conversations that start others, from the file to the requests a server sees and the records of them.

use std::path::Path;

use serde_json::Value;

use crate::support::{Mock, Place, Results};

/// A data file of the tests of the dataset room.
fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/tests/data").join(name);
    path.display().to_string()
}

/// The record of a turn of a conversation that ran once.
fn record<'r>(records: &'r [Value], conversation: &str, turn: u64) -> &'r Value {
    let mut found = records.iter().filter(|record| {
        record["metadata"]["conversation_id"] == conversation && record["metadata"]["turn_index"] == turn
    });
    let record = found.next().unwrap_or_else(|| panic!("no record of {conversation}, turn {turn}"));
    assert!(found.next().is_none(), "{conversation}, turn {turn} ran twice");
    record
}

fn meta<'r>(record: &'r Value, key: &str) -> &'r Value {
    &record["metadata"][key]
}

/// Start and end of a request, ns.
fn span(record: &Value) -> (u64, u64) {
    let at = |key| meta(record, key).as_u64().unwrap();
    (at("request_start_ns"), at("request_end_ns"))
}

/// Roles of the messages that a request carried.
fn roles(record: &Value) -> Vec<&str> {
    let messages = record["payload"]["messages"].as_array().unwrap();
    messages.iter().map(|message| message["role"].as_str().unwrap()).collect()
}

fn play(place: &Place, file: &str, line: &str) -> Vec<Value> {
    let mock = Mock::start(&[("ttft", "15ms"), ("itl", "1ms"), ("tokens", "20")]);
    let line = format!("--endpoint-type chat --export-level raw --input-file {file} {line}");
    place.run(&mock.url(), &line).with_code(0);
    let results: Results = place.results();
    let records = results.lines("profile_export_raw.jsonl");
    assert_eq!(mock.stats().requests, records.len() as u64);
    records
}

#[test]
fn a_graph_runs_once_by_default_and_its_gates_forks_and_records_hold() {
    let place = Place::new();
    let records = play(&place, &data("dag.jsonl"), "");
    assert_eq!(records.len(), 6);
    let of = |conversation, turn| record(&records, conversation, turn);
    let (plan, refined, finished) = (of("plan", 0), of("plan", 1), of("plan", 2));
    let (weather, prices, tail) = (of("scout-a", 0), of("scout-b", 0), of("tail", 0));

    assert_eq!(roles(plan), ["system", "user"]);
    assert_eq!(roles(refined), ["system", "user", "assistant", "user"]);
    assert_eq!(roles(finished).len(), 6);
    assert_eq!(finished["payload"]["temperature"], 0);
    // What a fork has said before its own message is what its parent said and heard.
    assert_eq!(roles(tail).len(), 8);
    let inherited = &tail["payload"]["messages"].as_array().unwrap()[..6];
    assert_eq!(inherited, finished["payload"]["messages"].as_array().unwrap().as_slice());
    assert_eq!(roles(weather), ["user"]);
    assert_eq!(prices["payload"]["model"], "scout-model");

    let after = |later: &Value, earlier: &Value| span(later).0 >= span(earlier).1;
    assert!(after(weather, plan) && after(prices, plan) && after(refined, plan));
    assert!(after(refined, weather) && after(finished, prices) && after(tail, finished));
    let own = span(refined).0 - span(plan).1;
    assert!(own >= 20_000_000, "turn 1 left {own} ns after turn 0 came back");

    let root = meta(plan, "x_correlation_id");
    for (child, parent) in [(weather, plan), (prices, plan), (tail, plan)] {
        assert_eq!(meta(child, "agent_depth"), 1);
        assert_eq!(meta(child, "parent_correlation_id"), meta(parent, "x_correlation_id"));
        assert_eq!(meta(child, "root_correlation_id"), root);
        assert_ne!(meta(child, "x_correlation_id"), root);
    }
    for turn in [plan, refined, finished] {
        assert_eq!((meta(turn, "agent_depth"), meta(turn, "root_correlation_id")), (&Value::from(0), root));
        assert!(turn["metadata"].get("parent_correlation_id").is_none());
    }
    let phase = &place.results().summary()["input_config"]["phases"][0];
    assert_eq!((&phase["sessions"], phase.get("requests")), (&Value::from(1), None));
}

#[test]
fn children_run_on_several_workers_and_forks_beside_their_parents() {
    let place = Place::new();
    let mut lines = Vec::new();
    for number in 0..12 {
        let message = |text: &str| format!(r#"[{{"role":"user","content":"{text}"}}]"#);
        lines.push(format!(
            r#"{{"session_id":"r{number}","turns":[{{"messages":{},"spawns":["s{number}"],"forks":[{{"child":"f{number}","background":true}}]}},{{"messages":{}}}]}}"#,
            message(&format!("first {number}")),
            message("second"),
        ));
        for kind in ["s", "f"] {
            lines.push(format!(
                r#"{{"session_id":"{kind}{number}","turns":[{{"messages":{0}}},{{"messages":{0}}}]}}"#,
                message("more")
            ));
        }
    }
    let file = place.write("graph.jsonl", lines.join("\n"));
    let records = play(&place, &file, "--concurrency 6 --workers-max 3");
    assert_eq!(records.len(), 12 * 6);
    for number in 0..12 {
        let fork = record(&records, &format!("f{number}"), 0);
        let messages = fork["payload"]["messages"].as_array().unwrap();
        assert_eq!(roles(fork), ["user", "assistant", "user"]);
        assert_eq!(messages[0]["content"], format!("first {number}"));
        assert_eq!(roles(record(&records, &format!("f{number}"), 1)).len(), 5);
        assert_eq!(roles(record(&records, &format!("s{number}"), 0)), ["user"]);
    }
}
