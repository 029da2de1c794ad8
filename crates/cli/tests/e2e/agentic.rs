//! Conversations that start others, from the file to the requests a server sees and the records of them.

use std::path::Path;

use serde_json::Value;

use crate::schema::assert_valid;
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

/// When the recorded schedule wanted each request of a conversation, ms after the first of all; none left before.
fn planned(records: &[Value], conversation: &str) -> Vec<Option<f64>> {
    let wanted = |record: &Value| meta(record, "scheduled_ns").as_u64();
    let zero = records.iter().filter_map(wanted).min().unwrap();
    let mut of: Vec<&Value> =
        records.iter().filter(|record| meta(record, "conversation_id") == conversation).collect();
    of.sort_by_key(|record| meta(record, "turn_index").as_u64());
    assert!(of.iter().all(|record| wanted(record).is_none_or(|at| span(record).0 >= at)), "{of:?}");
    of.into_iter().map(|record| Some((wanted(record)? - zero) as f64 / 1e6)).collect()
}

#[test]
fn a_weka_trace_plays_its_recorded_schedule_with_its_subagent_nested() {
    let place = Place::new();
    let records = play(&place, &data("weka_trace.json"), "");
    assert_eq!(records.len(), 5);
    let agent = "weka-demo::sa:agent_001";
    assert_eq!(planned(&records, "weka-demo"), [Some(0.0), Some(300.0), Some(600.0)]);
    // With the answer that starts it; then on its recorded time.
    assert_eq!(planned(&records, agent), [None, Some(200.0)]);
    let of = |conversation, turn| record(&records, conversation, turn);
    let (first, joined, inner) = (of("weka-demo", 0), of("weka-demo", 1), of(agent, 1));
    assert!(span(of(agent, 0)).0 >= span(first).1 && span(joined).0 >= span(inner).1);
    assert_eq!(meta(first, "x_correlation_id"), "fixed-schedule-weka-demo");
    assert_eq!(meta(inner, "parent_correlation_id"), "fixed-schedule-weka-demo");
    assert_eq!(meta(inner, "root_correlation_id"), "fixed-schedule-weka-demo");
    let place_of = |record: &Value| {
        ["source_trace_id", "source_outer_idx", "source_inner_idx", "source_kind"]
            .map(|key| record["metadata"].get(key).map_or_else(String::new, Value::to_string))
    };
    assert_eq!(place_of(joined), ["\"weka-demo\"", "2", "", "\"weka_main\""]);
    assert_eq!(place_of(inner), ["\"weka-demo\"", "1", "1", "\"weka_subagent\""]);
    assert_eq!(roles(joined), ["system", "user", "assistant", "user"]);
    assert_eq!(joined["payload"]["max_completion_tokens"], 6);
    let summary = place.results().summary();
    let hit = &summary["theoretical_prefix_cache_hit"];
    // Of 12 blocks 6 had been sent by some conversation of the trace before.
    assert_eq!((&hit["avg"], &hit["sum"], &hit["count"]), (&50.0.into(), &6.0.into(), &12.into()));
    let stats = &summary["branch_stats"];
    assert_eq!((&stats["children_spawned"], &stats["children_completed"]), (&1.into(), &1.into()));
    assert_eq!((&stats["parents_suspended"], &stats["parents_resumed"]), (&1.into(), &1.into()));
    assert_eq!(summary["input_config"]["phases"][0]["type"], "fixed_schedule");
    assert_eq!(summary["input_config"]["phases"][0]["requests"], 5);
    assert_valid(&place);
}

#[test]
fn a_weka_trace_off_its_schedule_waits_for_think_time_or_not_at_all() {
    let place = Place::new();
    let think = play(&place, &data("weka_trace.json"), "--use-think-time-only --num-conversations 1");
    let waited = |records: &[Value], turn| {
        let of = |turn| span(record(records, "weka-demo", turn));
        (of(turn).0 - of(turn - 1).1) as f64 / 1e6
    };
    // Also the turn that had to wait for the subagent keeps its think time.
    assert!(waited(&think, 1) >= 250.0 && waited(&think, 2) >= 200.0);
    let place = Place::new();
    let line = "--ignore-trace-delays --num-conversations 2 --concurrency 2";
    let dropped = play(&place, &data("weka_trace.json"), line);
    assert_eq!(dropped.len(), 10);
    let summary = place.results().summary();
    let set = &summary["input_config"]["datasets"][0];
    assert_eq!((&set["ignore_trace_delays"], &set["format"]), (&true.into(), &Value::Null));
}

#[test]
fn a_tracelab_session_waits_for_the_session_it_started() {
    let place = Place::new();
    let records = play(
        &place,
        &data("tracelab.jsonl"),
        "--no-fixed-schedule --num-conversations 1 --inter-turn-delay-cap-seconds 0.3",
    );
    assert_eq!(records.len(), 3);
    let of = |conversation, turn| record(&records, conversation, turn);
    let (first, second, child) = (of("claude_aa", 0), of("claude_aa", 1), of("claude_aa::sa:claude_bb", 0));
    // 200 ms after the call that started it.
    assert!(span(child).0 - span(first).1 >= 200_000_000);
    assert!(span(second).0 >= span(child).1 && span(second).0 - span(first).1 >= 300_000_000);
    assert_eq!(meta(child, "agent_depth"), 1);
}

/// The reference counts a child by its last request, whatever became of those before.
#[test]
fn children_whose_last_request_fails_have_errored_and_not_completed() {
    let place = Place::new();
    let graph = place.write(
        "graph.jsonl",
        r#"{"session_id":"root","turns":[{"messages":[{"role":"user","content":"go"}],"spawns":["one","two"]},{"messages":[{"role":"user","content":"on"}]}]}
{"session_id":"one","turns":[{"messages":[{"role":"user","content":"a"}],"model":"gone"},{"messages":[{"role":"user","content":"b"}],"model":"demo"}]}
{"session_id":"two","turns":[{"messages":[{"role":"user","content":"c"}]},{"messages":[{"role":"user","content":"d"}],"model":"gone"}]}
"#,
    );
    // The model that is gone gets 404.
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0ms"), ("tokens", "3"), ("models", "demo")]);
    place
        .run(
            &mock.url(),
            &format!("--endpoint-type chat --custom-dataset-type dag_jsonl --input-file {graph}"),
        )
        .with_code(0);
    let stats = &place.results().summary()["branch_stats"];
    let of = |key: &str| stats[key].as_u64().unwrap();
    assert_eq!(
        (of("children_spawned"), of("children_completed"), of("children_errored")),
        (2, 1, 1),
        "{stats}"
    );
    assert_eq!((of("children_truncated"), of("parents_resumed")), (0, 1));
    assert_valid(&place);
}
