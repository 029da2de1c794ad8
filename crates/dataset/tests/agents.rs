//! Recorded agents: which requests become which conversations, with which messages, when.
#![allow(missing_docs, clippy::unwrap_used, clippy::float_cmp, reason = "tests say what they expect")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aiperf_config::{
    AgentReplay, DatasetConfig, DatasetSource, EndpointKind, FileDataset, FileFormat, Synthesis,
};
use aiperf_dataset::{Dataset, DatasetError, open};
use aiperf_tokenize::Tokenizer;
use aiperf_types::{BranchStart, Content, ContextMode, Conversation};
use common::{context, data, load, load_for, refusal, written};
use serde_json::{Value, json};

const WEKA: FileFormat = FileFormat::WekaTrace;
const TRACELAB: FileFormat = FileFormat::Tracelab;

fn opened(
    path: impl AsRef<Path>,
    format: FileFormat,
    change: impl FnOnce(&mut DatasetConfig, &mut FileDataset),
    fixed_schedule: bool,
) -> Result<Arc<dyn Dataset>, DatasetError> {
    let mut file = FileDataset::new(path.as_ref(), format);
    let mut config = DatasetConfig::new(DatasetSource::File(file.clone()));
    change(&mut config, &mut file);
    config.source = DatasetSource::File(file);
    let tokenizer = Tokenizer::builtin();
    open(&config, &aiperf_dataset::OpenContext { fixed_schedule, ..context(&tokenizer) })
}

fn with_agents(path: impl AsRef<Path>, agents: AgentReplay) -> Arc<dyn Dataset> {
    opened(path, WEKA, |_, file| file.agents = agents, false).unwrap()
}

/// A request of 64-token blocks.
fn request(at: f64, ids: impl IntoIterator<Item = i64>, out: u64) -> Value {
    let ids: Vec<i64> = ids.into_iter().collect();
    json!({"t": at, "type": "n", "model": "big", "in": ids.len() * 64, "out": out, "hash_ids": ids, "api_time": 1.0})
}

fn trace(id: &str, requests: &[Value]) -> Value {
    json!({"id": id, "models": ["big"], "block_size": 64, "hash_id_scope": "local", "requests": requests})
}

fn all(dataset: &dyn Dataset) -> Vec<Conversation> {
    (0..dataset.len().known() + dataset.children()).map(|index| dataset.build(index).unwrap()).collect()
}

fn ids(dataset: &dyn Dataset) -> Vec<String> {
    all(dataset).iter().map(|conversation| conversation.id.to_string()).collect()
}

/// Role and text of each message that a turn brings.
fn brought(conversation: &Conversation, turn: usize) -> Vec<(String, String)> {
    let Content::Messages { messages, tools: None } = &conversation.turns[turn].content else { panic!() };
    messages
        .iter()
        .map(|message| {
            let message: Value = serde_json::from_str(message.get()).unwrap();
            let text = |key: &str| message[key].as_str().unwrap().to_owned();
            (text("role"), text("content"))
        })
        .collect()
}

/// All messages of a request.
fn sent(conversation: &Conversation, turn: usize) -> Vec<(String, String)> {
    let mut messages = Vec::new();
    for turn in 0..=turn {
        if let Some(kept) = conversation.turns[turn].keep_messages {
            messages.truncate(kept as usize);
        }
        messages.extend(brought(conversation, turn));
    }
    messages
}

fn delays(dataset: &dyn Dataset, index: u64) -> Vec<Option<f64>> {
    let outline = dataset.outline(index);
    (0..outline.turns())
        .map(|turn| outline.turn(turn).unwrap().delay_ms.map(|ms| (ms * 1e6).round() / 1e6))
        .collect()
}

#[test]
fn the_published_weka_example_keeps_its_subagent_nested() {
    let dataset = load(data("weka_trace.json"), WEKA).unwrap();
    assert_eq!((dataset.len().known(), dataset.children(), dataset.total_turns()), (1, 1, Some(5)));
    assert_eq!(ids(dataset.as_ref()), ["weka-demo", "weka-demo::sa:agent_001"]);
    let plan = dataset.branches(0).unwrap();
    assert_eq!(plan.groups.len(), 1);
    let group = &plan.groups[0];
    // Started after the first request, waited for by the first one that began after its end.
    assert_eq!((group.start, group.joins), (BranchStart::After(0), Some(1)));
    assert_eq!((group.children[0].conversation, group.children[0].offset_ms), (1, 0.0));
    assert_eq!(delays(dataset.as_ref(), 0), [None, Some(250.0), Some(240.0)]);
    assert_eq!(delays(dataset.as_ref(), 1), [None, Some(60.0)]);
    let [main, agent] = all(dataset.as_ref()).try_into().unwrap();
    assert_eq!(main.context_mode, ContextMode::DeltasWithResponses);
    let roles = |messages: Vec<(String, String)>| {
        messages.into_iter().map(|(role, _)| role).collect::<Vec<_>>().join(" ")
    };
    // Blocks of 16 tokens, as the trace says: the tools are one, the answer of ten tokens is one.
    assert_eq!(roles(sent(&main, 0)), "system user");
    assert_eq!(roles(sent(&main, 1)), "system user assistant user");
    assert_eq!(roles(sent(&main, 2)), "system user assistant user");
    assert_eq!(roles(sent(&agent, 0)), "user");
    let limits: Vec<_> = main.turns.iter().map(|turn| turn.max_tokens).collect();
    // An answer of which nothing is recorded is asked for with one token.
    assert_eq!(limits, [Some(10), Some(6), Some(1)]);
    assert!(dataset.notes().iter().any(|note| note.to_string().contains("output length")));
    let source = main.turns[2].source.as_ref().unwrap();
    assert_eq!((&*source.trace_id, source.outer_index, source.inner_index), ("weka-demo", 3, None));
    assert_eq!((source.cached_blocks, source.blocks), (2, 3));
    let source = agent.turns[1].source.as_ref().unwrap();
    assert_eq!((source.outer_index, source.inner_index, &*source.kind), (1, Some(1), "weka_subagent"));
    assert_eq!((source.cached_blocks, source.blocks), (1, 2));
}

/// The fault of a tool that flattened its subagents: its cache hits fell from 95 % to 20 %.
/// <https://github.com/callanjfox/kv-cache-tester>
#[test]
fn kv_cache_tester_change_log_equal_blocks_are_equal_text_in_a_trace_and_in_no_other() {
    let tokens = |text: &str| {
        let mut tokens = Vec::new();
        Tokenizer::builtin().encode(text, &mut tokens);
        tokens
    };
    let agent = json!({"t": 2.0, "type": "subagent", "agent_id": "a", "subagent_type": "x", "status": "completed",
        "requests": [request(2.0, 1..9, 5)]});
    let requests = |tail: i64| vec![request(0.0, (1..7).chain(tail..tail + 3), 5), agent.clone()];
    let (_one, first) = written("one.json", trace("one", &requests(100)).to_string());
    let dataset = load(&first, WEKA).unwrap();
    let [main, child] = all(dataset.as_ref()).try_into().unwrap();
    let (main, child) = (sent(&main, 0).remove(0).1, sent(&child, 0).remove(0).1);
    let common = main.bytes().zip(child.bytes()).take_while(|(a, b)| a == b).count();
    let shared = tokens(&main[..common]).len();
    assert!((6 * 64 - 3..=6 * 64 + 3).contains(&shared), "{shared} tokens are shared");
    let counted = tokens(&main).len();
    assert!((9 * 64 - 6..=9 * 64 + 6).contains(&counted), "{counted} tokens");
    // The same numbers in another trace are other blocks.
    let (_two, second) = written("two.json", trace("two", &requests(100)).to_string());
    let other = sent(&load(&second, WEKA).unwrap().build(0).unwrap(), 0).remove(0).1;
    assert_ne!(other[..40], main[..40]);
    // Built again, and by other threads, it is the same.
    let again = std::thread::scope(|scope| scope.spawn(|| dataset.build(0).unwrap()).join().unwrap());
    assert_eq!(sent(&again, 0)[0].1, main);
}

#[test]
fn a_changed_end_is_sent_anew_and_what_stays_is_not() {
    let mut second = request(5.0, 1..10, 5);
    second["in"] = json!(9 * 64 + 7);
    let list = vec![request(0.0, 1..5, 70), second, request(10.0, 1..14, 5)];
    let (_folder, path) = written("t.json", trace("t", &list).to_string());
    let conversation = load(&path, WEKA).unwrap().build(0).unwrap();
    let kept: Vec<_> = conversation.turns.iter().map(|turn| turn.keep_messages).collect();
    // The second prompt only adds; the third drops the seven tokens that ended the second.
    assert_eq!(kept, [None, None, Some(2)]);
    let second = sent(&conversation, 1);
    let third = sent(&conversation, 2);
    assert_eq!(second[..2], third[..2]);
    assert!(second[2].1.starts_with(third[2].1.trim_end()) && second[2].1.len() > third[2].1.len());
}

#[test]
fn waits_follow_the_options() {
    let mut late = request(20.0, 1..6, 5);
    late["think_time"] = json!(3.0);
    let agent = json!({"t": 5.0, "type": "subagent", "agent_id": "a", "subagent_type": "x", "status": "",
        "duration_ms": 4000, "requests": [request(2.0, 50..52, 5), request(8.0, 50..53, 5)]});
    let list = vec![request(0.0, 1..5, 5), agent, late];
    let (_folder, path) = written("t.json", trace("t", &list).to_string());
    let offset = |dataset: &dyn Dataset| dataset.branches(0).unwrap().groups[0].children[0].offset_ms;
    let plain = with_agents(&path, AgentReplay::default());
    assert_eq!(delays(plain.as_ref(), 0), [None, Some(19_000.0)]);
    // Inner times before that of the agent count from it: 7 s and 8 s.
    assert_eq!(delays(plain.as_ref(), 1), [None, Some(0.0)]);
    assert_eq!(offset(plain.as_ref()), 2000.0);
    assert_eq!(plain.branches(0).unwrap().groups[0].joins, Some(1));
    assert_eq!(plain.outline(0).turn(1).unwrap().timestamp_ms, Some(20_000.0));

    let think = with_agents(&path, AgentReplay { think_time_only: true, ..AgentReplay::default() });
    assert_eq!(delays(think.as_ref(), 0), [None, Some(3000.0)]);
    assert_eq!(think.outline(0).turn(1).unwrap().timestamp_ms, None);

    // Starts at 0, 7, 8, 20 become 0, 3, 4, 7.
    let idle_gap_cap = Some(Duration::from_secs(3));
    let capped = with_agents(&path, AgentReplay { idle_gap_cap, ..AgentReplay::default() });
    assert_eq!(delays(capped.as_ref(), 0), [None, Some(6000.0)]);
    assert_eq!(capped.outline(1).turn(0).unwrap().timestamp_ms, Some(3000.0));

    let clamped =
        opened(&path, WEKA, |config, _| config.inter_turn_delay_cap = Some(Duration::from_secs(1)), false);
    let clamped = clamped.unwrap();
    assert_eq!(delays(clamped.as_ref(), 0), [None, Some(1000.0)]);
    assert_eq!(offset(clamped.as_ref()), 1000.0);

    let dropped = opened(&path, WEKA, |_, file| file.ignore_trace_delays = true, false).unwrap();
    assert_eq!(delays(dropped.as_ref(), 0), [None, None]);
    assert_eq!(dropped.outline(0).turn(1).unwrap().timestamp_ms, None);
    assert_eq!(offset(dropped.as_ref()), 0.0);
}

#[test]
fn traces_are_chosen_by_context_and_number_and_requests_by_window_and_length() {
    let folder = tempfile::tempdir().unwrap();
    for (name, blocks, agent_blocks) in [("a", 4, 40), ("b", 4, 2), ("c", 9, 2), ("d", 3, 2)] {
        let agent = json!({"t": 1.0, "type": "subagent", "agent_id": "x", "subagent_type": "x", "status": "",
            "requests": [request(1.0, 500..500 + agent_blocks, 5)]});
        let list = vec![request(0.0, 1..=blocks, 5), agent, request(9.0, 1..=blocks + 1, 5)];
        let path = folder.path().join(format!("{name}.json"));
        std::fs::write(path, trace(name, &list).to_string()).unwrap();
    }
    let load = |change: &dyn Fn(&mut FileDataset), fixed| {
        opened(folder.path(), WEKA, |_, file| change(file), fixed).unwrap()
    };
    let roots = |dataset: &dyn Dataset| {
        ids(dataset).into_iter().take(dataset.len().known() as usize).collect::<Vec<_>>().join(" ")
    };
    let everything = load(&|_| {}, false);
    assert_eq!(roots(everything.as_ref()), "a b c d");
    // The context of subagents counts, too; what is left is then counted off.
    let chosen = load(
        &|file| {
            file.agents.max_context_length = Some(8 * 64);
            file.entries = Some(1);
        },
        false,
    );
    assert_eq!(roots(chosen.as_ref()), "b");
    assert!(chosen.notes().iter().any(|note| note.to_string().contains("--max-context-length")));
    let within = load(&|file| file.window = (Some(0.0), Some(5000.0)), true);
    assert_eq!(within.outline(0).turns(), 1);
    let short = load(
        &|file| {
            file.synthesis = Synthesis { max_isl: Some(5 * 64), max_osl: Some(3), ..Synthesis::default() }
        },
        false,
    );
    assert_eq!(roots(short.as_ref()), "a b d");
    let limits = |index| short.build(index).unwrap().turns[0].max_tokens;
    // The cap is on the answers of the main agent.
    assert_eq!((limits(0), limits(3)), (Some(3), Some(5)));
    let nothing =
        opened(folder.path(), WEKA, |_, file| file.agents.max_context_length = Some(5), false).err().unwrap();
    assert!(nothing.to_string().contains("of 4 trace(s) 4 need more context"), "{nothing}");
}

#[test]
fn agents_flattened_into_one_list_become_children_unless_that_is_switched_off() {
    let fork = |at, from: i64, more: i64| request(at, (1..301).chain(from..from + 20 + more), 500);
    let list = vec![
        request(0.0, 1..301, 500),
        request(2.0, 1..303, 500),
        fork(2.1, 1000, 0),
        fork(2.2, 2000, 0),
        fork(2.3, 3000, 0),
        fork(6.0, 1000, 9),
        fork(6.1, 2000, 9),
        fork(6.2, 3000, 9),
        request(9.0, 9000..9002, 5),
        request(20.0, 1..305, 500),
    ];
    let (_folder, path) = written("t.json", trace("t", &list).to_string());
    let split = with_agents(&path, AgentReplay::default());
    assert_eq!(ids(split.as_ref()), ["t", "t::wg:000_000", "t::wg:000_001", "t::wg:000_002", "t::aux:003"]);
    let plan = split.branches(0).unwrap();
    assert!(plan.groups.iter().all(|group| group.joins == Some(2)));
    let starts: Vec<_> = plan.groups.iter().map(|group| group.start).collect();
    assert_eq!(starts, vec![BranchStart::After(1); 4]);
    let flat = with_agents(&path, AgentReplay { split_flattened: false, ..AgentReplay::default() });
    assert_eq!(ids(flat.as_ref()), ["t"]);
    assert_eq!(flat.outline(0).turns(), 10);
}

#[test]
fn a_subagent_before_every_request_or_without_any_is_left_out_and_counted() {
    let agent = |at: f64, requests: Vec<Value>| json!({"t": at, "type": "subagent", "agent_id": format!("a{at}"), "subagent_type": "x", "status": "", "requests": requests});
    let list = vec![
        agent(0.0, vec![request(0.0, 1..3, 5)]),
        request(1.0, 1..5, 5),
        agent(2.0, vec![]),
        agent(3.0, vec![request(3.0, 1..3, 5)]),
    ];
    let (_folder, path) = written("t.json", trace("t", &list).to_string());
    let dataset = load(&path, WEKA).unwrap();
    assert_eq!(ids(dataset.as_ref()), ["t", "t::sa:a3"]);
    // Nobody waits for it: no request comes later.
    assert_eq!(dataset.branches(0).unwrap().groups[0].joins, None);
    assert!(dataset.notes().iter().any(|note| note.to_string().starts_with("2 subagent(s)")));
}

#[test]
fn what_a_weka_trace_may_not_hold_is_named() {
    let with = |key: &str, value: Value| {
        let mut trace = trace("t", &[request(0.0, 1..5, 5)]);
        trace[key] = value;
        trace
    };
    let in_request = |key: &str, value: Value| {
        let mut request = request(0.0, 1..5, 5);
        request[key] = value;
        with("requests", json!([request]))
    };
    let agent = |key: &str, value: Value| {
        let mut agent = json!({"t": 1.0, "type": "subagent", "agent_id": "a", "subagent_type": "x", "status": "",
            "requests": [request(1.0, 1..3, 5)]});
        agent[key] = value;
        with("requests", json!([request(0.0, 1..5, 5), agent.clone(), agent]))
    };
    for (document, expected) in [
        (with("version", json!(2)), &["version", "known here: id, models"][..]),
        (with("block_size", json!(0)), &["block_size", "is 0"]),
        (with("hash_id_scope", json!("global")), &["hash_id_scope", "local"]),
        (with("id", json!("")), &["id", "empty"]),
        (with("tool_tokens", json!(9 * 64)), &["requests[0]", "hash_ids", "4 block(s)", "are 9 of 64"]),
        (in_request("top_p", json!(1)), &["requests[0]", "top_p"]),
        (in_request("type", json!("x")), &["requests[0]", "type", "n, s"]),
        (in_request("ttft", json!(0.1)), &["requests[0]", "ttft"]),
        (in_request("in", json!(-1)), &["requests[0]", "`in`"]),
        (in_request("t", json!(-1)), &["requests[0]", "`t`", "0 or more"]),
        (
            in_request("think_time", json!(1e15)),
            &["`think_time`", "must be 0 or more and below 100000000000, is 1000000000000000"],
        ),
        (in_request("hash_ids", json!(["x"])), &["requests[0]", "hash_ids"]),
        (agent("depth", json!(1)), &["requests[1]", "depth"]),
        (agent("requests", json!([{"type": "subagent"}])), &["requests[1].requests[0]"]),
        (agent("status", json!("")), &["requests[2]", "agent_id", "`a` occurs twice"]),
    ] {
        let (folder, path) = written("t.json", document.to_string());
        let error = load(&path, WEKA).err().unwrap_or_else(|| panic!("accepted: {document}")).to_string();
        for part in expected {
            assert!(error.contains(part), "{error} lacks {part}");
        }
        assert!(error.contains("t.json"), "{error}");
        drop(folder);
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.json", "b.json"] {
        std::fs::write(folder.path().join(name), trace("t", &[request(0.0, 1..5, 5)]).to_string()).unwrap();
    }
    let error = load(folder.path(), WEKA).err().unwrap().to_string();
    assert!(error.contains("b.json") && error.contains("a.json") && error.contains("`t`"), "{error}");
    let error = load_for(data("weka_trace.json"), WEKA, EndpointKind::Completions).err().unwrap().to_string();
    assert!(error.contains("weka_trace") && error.contains("--endpoint-type chat"), "{error}");
}

#[test]
fn the_published_tracelab_example_joins_the_session_that_ran_inside_a_call() {
    let dataset = load(data("tracelab.jsonl"), TRACELAB).unwrap();
    assert_eq!(ids(dataset.as_ref()), ["claude_aa", "claude_aa::sa:claude_bb"]);
    let group = dataset.branches(0).unwrap().groups[0].clone();
    assert_eq!((group.start, group.joins), (BranchStart::After(0), Some(1)));
    assert!((group.children[0].offset_ms - 200.0).abs() < 0.01);
    let second = dataset.outline(0).turn(1).unwrap();
    assert!((second.timestamp_ms.unwrap() - 11_000.0).abs() < 0.01);
    assert!((second.delay_ms.unwrap() - 10_800.0).abs() < 0.01);
    let limits: Vec<_> = all(dataset.as_ref())
        .iter()
        .flat_map(|c| c.turns.iter().map(|t| t.max_tokens.unwrap()).collect::<Vec<_>>())
        .collect();
    // Reasoning is output, too.
    assert_eq!(limits, [5, 6, 3]);
    let apart = opened(data("tracelab.jsonl"), TRACELAB, |_, file| file.agents.join_sessions = false, false);
    assert_eq!(ids(apart.unwrap().as_ref()), ["claude_aa", "claude_bb"]);
    let long = Duration::from_secs(11);
    let apart = opened(data("tracelab.jsonl"), TRACELAB, |_, file| file.agents.min_spawn = long, false);
    assert_eq!(apart.unwrap().len().known(), 2);
}

/// A round of 64-token blocks: session, index, second it was asked at, tokens in all and of the prefix.
fn round(session: &str, index: u32, at: u32, total: u64, prefix: u64) -> Value {
    let time = |second: u32| format!("2026-03-01T09:{:02}:{:02}Z", second / 60, second % 60);
    json!({"session_id": session, "round_index": index, "user": "u", "project": "p", "provider": "claude",
        "model": "m", "input_tokens_total": total, "prefix_tokens": prefix, "newly_append_tokens": total.saturating_sub(prefix),
        "output_tokens": 4, "timing_events": [{"event_type": "user_message", "timestamp": time(at)},
        {"event_type": "text", "timestamp": time(at + 1)}], "tools": []})
}

fn call(name: &str, from: u32, to: u32) -> Value {
    let time = |second: u32| format!("2026-03-01T09:{:02}:{:02}Z", second / 60, second % 60);
    json!({"tool_name": name, "emitted_at": time(from), "result_at": time(to), "tool_wall_latency_ms": (to - from) * 1000})
}

fn rounds(rows: &[Value]) -> Arc<dyn Dataset> {
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    let (_folder, path) = written("d.jsonl", lines.join("\n"));
    load(&path, TRACELAB).unwrap()
}

#[test]
fn rounds_reuse_the_blocks_of_their_prefix_in_the_order_of_their_times() {
    let dataset = rounds(&[
        round("a", 1, 20, 64 * 6, 64 * 3 + 10),
        round("a", 0, 10, 64 * 4 + 5, 0),
        round("a", 2, 30, 64 * 5, 64 * 9),
    ]);
    let facts = dataset.facts(0, 0..3).unwrap();
    let ids: Vec<Vec<i64>> = facts.into_iter().map(|fact| fact.hash_ids).collect();
    assert_eq!(ids[0].len(), 4);
    assert_eq!((ids[1].len(), &ids[1][..3]), (6, &ids[0][..3]));
    assert!(!ids[0].contains(&ids[1][3]));
    // Never more than the prompt has, nor than the one before had.
    assert_eq!(ids[2], ids[1][..5]);
}

/// <https://github.com/callanjfox/kv-cache-tester>: block numbers count from 0 in every session.
#[test]
fn sessions_that_share_nothing_share_no_text() {
    let mut other = round("b", 0, 10, 64 * 4, 0);
    other["user"] = json!("another");
    let dataset = rounds(&[round("a", 0, 10, 64 * 4, 0), other]);
    let [one, two] = all(dataset.as_ref()).try_into().unwrap();
    let (one, two) = (sent(&one, 0).remove(0).1, sent(&two, 0).remove(0).1);
    assert_ne!(one.get(..100), two.get(..100));
    let scopes = [0, 1].map(|index| dataset.facts(index, 0..1).unwrap()[0].hash_scope);
    assert_ne!(scopes[0], scopes[1]);
}

#[test]
fn the_tightest_call_wins_and_children_of_children_stay_by_themselves() {
    let mut outer = round("outer", 0, 0, 64, 0);
    outer["tools"] = json!([call("Task", 1, 100), call("Agent", 5, 60), call("Bash", 1, 500)]);
    let mut middle = round("middle", 0, 10, 64, 0);
    middle["tools"] = json!([call("Task", 12, 40)]);
    let mut inner = round("inner", 0, 20, 64, 0);
    let mut stranger = round("stranger", 0, 20, 64, 0);
    stranger["user"] = json!("another");
    let dataset =
        rounds(&[outer.clone(), middle.clone(), inner.clone(), stranger, round("outer", 1, 70, 128, 64)]);
    assert_eq!(ids(dataset.as_ref()), ["outer", "inner", "stranger", "outer::sa:middle"]);
    let group = dataset.branches(0).unwrap().groups[0].clone();
    // The call from 5 to 60 is the tighter one: waited for at 70, five seconds into it.
    assert_eq!((group.joins, group.children[0].offset_ms), (Some(1), 5000.0));
    for row in [&mut outer, &mut inner] {
        row["provider"] = json!("codex");
    }
    outer["tools"] = json!([call("spawn_agent", 2, 3), call("wait_agent", 4, 50)]);
    let codex = rounds(&[outer, inner]);
    assert_eq!(ids(codex.as_ref()), ["outer", "outer::sa:inner"]);
}

#[test]
fn rounds_without_session_or_time_are_left_out_and_ids_must_differ() {
    let mut nameless = round("x", 0, 1, 64, 0);
    nameless["session_id"] = Value::Null;
    let mut undated = round("a", 1, 1, 64, 0);
    undated["timing_events"] = json!([]);
    let dataset = rounds(&[round("a", 0, 1, 64, 0), nameless.clone(), undated.clone()]);
    assert_eq!(dataset.total_turns(), Some(1));
    assert!(dataset.notes().iter().any(|note| note.to_string().contains("1 round(s)")));
    assert!(refusal(TRACELAB, &[&nameless.to_string(), &undated.to_string()]).contains("session_id"));
    let clash =
        refusal(TRACELAB, &[&round("a:b", 0, 1, 64, 0).to_string(), &round("a/b", 0, 1, 64, 0).to_string()]);
    assert!(clash.contains("d.jsonl:2") && clash.contains("`a_b`"), "{clash}");
    let mut late = round("a", 0, 1, 64, 0);
    late["timing_events"][0]["timestamp"] = json!("yesterday");
    assert!(refusal(TRACELAB, &[&late.to_string()]).contains("yesterday"));
}

#[test]
fn a_first_event_without_a_time_that_leaves_a_run_without_schedule_is_told_with_its_line() {
    let mut first = round("a", 0, 1, 64, 0);
    first["timing_events"][0]["timestamp"] = Value::Null;
    let rows = [first.to_string(), round("a", 1, 5, 128, 64).to_string()];
    let (_folder, path) = written("d.jsonl", format!("\n{}", rows.join("\n")));
    let told = |change: fn(&mut FileDataset), fixed_schedule: bool| {
        let dataset = opened(&path, TRACELAB, |_, file| change(file), fixed_schedule).unwrap();
        assert_eq!(dataset.total_turns(), Some(2));
        dataset
            .notes()
            .iter()
            .map(ToString::to_string)
            .filter(|note| note.contains("the first record"))
            .collect::<Vec<_>>()
    };
    let notes = told(|_| {}, false);
    assert_eq!(notes.len(), 1, "{notes:?}");
    let place = format!("{}:2: field `timing_events[0].timestamp`: ", path.display());
    assert!(
        notes[0].starts_with(&place) && notes[0].contains("without their recorded schedule"),
        "{notes:?}"
    );
    // Who wants no schedule, or has one, misses nothing.
    assert!(told(|_| {}, true).is_empty());
    assert!(told(|file| file.no_schedule = true, false).is_empty());
    assert!(told(|file| file.ignore_trace_delays = true, false).is_empty());
    assert!(told(|file| file.agents.think_time_only = true, false).is_empty());
    // Other events decide nothing.
    first["timing_events"][0]["timestamp"] = json!("2026-03-01T09:00:00Z");
    first["timing_events"][1]["timestamp"] = Value::Null;
    let notes = rounds(&[round("b", 0, 0, 64, 0), first.clone(), first]).notes();
    let [note] = &notes[..] else { panic!("{notes:?}") };
    let note = note.to_string();
    assert!(note.starts_with("2 event(s) have no time and were passed over (the first at "), "{note}");
    assert!(note.contains("d.jsonl:2); their rounds go by the times of their other events"), "{note}");
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/623>: graphs of agents were made whole before the first
/// request.
#[test]
fn inference_perf_623_opening_a_trace_of_agents_makes_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.json");
    // Four thousand million tokens of prompts: making them takes hours, and more memory than there is.
    let request =
        |at: u32| json!({"t": at, "type": "n", "model": "big", "in": 20_000_000, "out": 1, "hash_ids": []});
    let requests: Vec<Value> = (0..200).map(request).collect();
    std::fs::write(&path, trace("long", &requests).to_string()).unwrap();
    let dataset = opened(&path, WEKA, |_, _| {}, true).unwrap();
    assert_eq!(dataset.total_turns(), Some(200));
}
