//! Graphs of conversations: how lines become drawn conversations and children, and what is refused.
#![allow(missing_docs, clippy::unwrap_used, clippy::float_cmp, reason = "tests say what they expect")]

mod common;

use aiperf_config::{EndpointKind, FileFormat};
use aiperf_dataset::Dataset;
use aiperf_types::{BranchStart, Content, ContextMode};
use common::{data, load, load_for, refusal, written};

const DAG: FileFormat = FileFormat::DagJsonl;

fn turn(rest: &str) -> String {
    format!(r#"{{"messages":[{{"role":"user","content":"x"}}]{rest}}}"#)
}

fn line(id: &str, turns: &[&str], rest: &str) -> String {
    let turns: Vec<String> = turns.iter().map(|rest| turn(rest)).collect();
    format!(r#"{{"session_id":"{id}","turns":[{}]{rest}}}"#, turns.join(","))
}

fn leaf(id: &str) -> String {
    line(id, &[""], "")
}

fn refused(lines: &[String]) -> String {
    refusal(DAG, &lines.iter().map(String::as_str).collect::<Vec<_>>())
}

fn accepted(lines: &[String]) -> std::sync::Arc<dyn Dataset> {
    let (folder, path) = written("d.jsonl", lines.join("\n"));
    let dataset = load(&path, DAG).unwrap();
    // Files are kept open, so that the folder may go.
    drop(folder);
    dataset
}

fn ids(dataset: &dyn Dataset) -> Vec<String> {
    (0..dataset.len().known() + dataset.children())
        .map(|index| dataset.build(index).unwrap().id.to_string())
        .collect()
}

#[test]
fn the_published_example_becomes_one_drawn_conversation_with_three_children() {
    let dataset = load(data("dag.jsonl"), DAG).unwrap();
    assert_eq!((dataset.len().known(), dataset.children()), (1, 3));
    assert_eq!(ids(dataset.as_ref()), ["plan", "scout-a", "scout-b", "tail"]);
    assert_eq!(dataset.total_turns(), Some(6));
    let plan = dataset.branches(0).unwrap();
    assert_eq!(&*plan.id, "plan");
    let groups: Vec<_> = plan
        .groups
        .iter()
        .map(|group| {
            let children: Vec<_> =
                group.children.iter().map(|child| (child.conversation, child.inherits)).collect();
            (group.start, children, group.joins)
        })
        .collect();
    assert_eq!(
        groups,
        [
            (BranchStart::After(0), vec![(1, false)], Some(1)),
            (BranchStart::After(0), vec![(2, false)], Some(2)),
            (BranchStart::After(2), vec![(3, true)], None),
        ]
    );
    let outline = dataset.outline(0);
    assert_eq!((outline.turns(), outline.turn(1).unwrap().delay_ms), (3, Some(20.0)));
    let root = dataset.build(0).unwrap();
    assert_eq!(root.turns[0].max_tokens, Some(5));
    assert_eq!(root.turns[2].extra_body.as_ref().unwrap()["temperature"], 0);
    assert_eq!(dataset.build(2).unwrap().turns[0].model.as_deref(), Some("scout-model"));
    let Content::Messages { messages, .. } = &root.turns[0].content else { panic!() };
    assert_eq!(messages.len(), 2);
    assert!(dataset.branches(1).is_none());
}

#[test]
fn names_that_follow_each_other_join_together_and_objects_join_alone() {
    let root = line(
        "r",
        &[r#","spawns":["a","b",{"children":["c","d"],"join_at":2},"e"]"#, "", r#","spawns":["a"]"#],
        "",
    );
    let lines: Vec<String> = std::iter::once(root).chain(["a", "b", "c", "d", "e"].map(leaf)).collect();
    let plan = accepted(&lines).branches(0).unwrap();
    let groups: Vec<_> = plan.groups.iter().map(|group| (group.children.len(), group.joins)).collect();
    // What starts after the last turn is waited for by nobody.
    assert_eq!(groups, [(2, Some(1)), (2, Some(2)), (1, Some(1)), (1, None)]);
}

#[test]
fn drawn_conversations_come_first_whatever_the_order_of_the_lines() {
    let dataset = accepted(&[
        leaf("child"),
        line("one", &[r#","forks":["child"]"#], ""),
        line(
            "two",
            &["", ""],
            r#","pre_session_spawns":["other"],"context_mode":"message_array_with_responses""#,
        ),
        leaf("other"),
    ]);
    assert_eq!(ids(dataset.as_ref()), ["one", "two", "child", "other"]);
    assert_eq!(dataset.len().known(), 2);
    assert_eq!(dataset.branches(1).unwrap().groups[0].start, BranchStart::BeforeFirst);
    assert_eq!(dataset.build(1).unwrap().context_mode, ContextMode::MessageArrayWithResponses);
}

#[test]
fn an_orchestrator_has_turns_and_no_requests() {
    let rounds = r#"{"session_id":"o","orchestrator":true,"rounds":3,"spawns":["a"],"think_time_ms":200,"think_time_sigma":0.5,"think_time_min_ms":50,"think_time_max_ms":400}"#;
    let dataset = accepted(&[rounds.to_owned(), leaf("a")]);
    let plan = dataset.branches(0).unwrap();
    // Three rounds and the gate after the last.
    assert_eq!((dataset.outline(0).turns(), plan.groups.len()), (4, 3));
    assert!(dataset.build(0).unwrap().turns.is_empty());
    assert_eq!(dataset.total_turns(), Some(1));
    let think = plan.spine.as_ref().unwrap().think.clone();
    assert_eq!(think.len(), 3);
    let think = think[0].unwrap();
    assert_eq!((think.median_ms, think.sigma, think.min_ms, think.max_ms), (200.0, 0.5, 50.0, 400.0));
    let listed = r#"{"session_id":"o","orchestrator":true,"turns":[],"think_time_ms":7,"rounds":[{"spawns":["a"]},{"spawns":["b"],"think_time_ms":9}]}"#;
    let plan = accepted(&[listed.to_owned(), leaf("a"), leaf("b")]).branches(0).unwrap();
    let pauses: Vec<_> =
        plan.spine.as_ref().unwrap().think.iter().map(|think| think.unwrap().median_ms).collect();
    assert_eq!(pauses, [7.0, 9.0]);
}

#[test]
fn every_rule_of_one_line_names_session_and_turn() {
    for (record, expected) in [
        (r#"{"turns":[]}"#.to_owned(), &["session_id", "missing"][..]),
        (line("", &[""], ""), &["session_id", "empty"]),
        (line("r", &[], ""), &["turns", "empty", "`r`"]),
        (line("r", &[""], r#","extras":1"#), &["extras", "known here: session_id, turns"]),
        (line("r", &["", r#","top_p":1"#], ""), &["turns[1].top_p", "known here: messages", "`r`"]),
        (line("r", &[r#","spawns":[{"children":["a"],"wait":1}]"#], ""), &["turns[0].wait", "`r`"]),
        (line("r", &[r#","forks":[{"child":"a","bg":true}]"#], ""), &["turns[0].bg"]),
        (line("r", &[r#","max_tokens":0"#], ""), &["turns[0].max_tokens", "1 or more"]),
        (line("r", &[r#","max_tokens":true"#], ""), &["turns[0].max_tokens", "boolean"]),
        (line("r", &[r#","delay":-5"#], ""), &["turns[0].delay", "0 or more"]),
        (line("r", &[r#","forks":["a"]"#, ""], ""), &["turns[0].forks", "last turn", "background"]),
        (line("r", &[r#","spawns":["a","a"]"#, ""], ""), &["turns[0].spawns", "`a` twice"]),
        (line("r", &[r#","spawns":["a",{"children":["a"]}]"#, ""], ""), &["turns[0].spawns", "twice"]),
        (line("r", &[r#","spawns":[{"children":[]}]"#, ""], ""), &["children", "empty"]),
        (line("r", &["", r#","spawns":[{"children":["a"],"join_at":1}]"#, ""], ""), &["join_at", "later turn"]),
        (line("r", &[r#","spawns":[{"children":["a"],"join_at":2}]"#, ""], ""), &["join_at", "2 turns"]),
        (line("r", &[""], r#","context_mode":"message_array_without_responses""#), &["context_mode"]),
        (line("r", &[""], r#","pre_session_spawns":["a","a"]"#), &["pre_session_spawns", "twice"]),
        (line("r", &[""], r#","rounds":2"#), &["rounds", "orchestrator"]),
        (line("r", &[""], r#","orchestrator":true,"spawns":["a"]"#), &["turns", "sends nothing"]),
        (r#"{"session_id":"o","orchestrator":true}"#.into(), &["spawns", "rounds"]),
        (r#"{"session_id":"o","orchestrator":true,"rounds":0,"spawns":["a"]}"#.into(), &["rounds", "is 0"]),
        (r#"{"session_id":"o","orchestrator":true,"rounds":2}"#.into(), &["spawns", "missing"]),
        (
            r#"{"session_id":"o","orchestrator":true,"spawns":["a"],"pre_session_spawns":["b"]}"#.into(),
            &["pre_session_spawns"],
        ),
        (
            r#"{"session_id":"o","orchestrator":true,"spawns":["a"],"think_time_ms":5}"#.into(),
            &["think_time_ms", "rounds"],
        ),
        (
            r#"{"session_id":"o","orchestrator":true,"rounds":2,"spawns":["a"],"think_time_sigma":1}"#.into(),
            &["think_time_sigma", "think_time_ms"],
        ),
        (
            r#"{"session_id":"o","orchestrator":true,"rounds":2,"spawns":["a"],"think_time_ms":5,"think_time_sigma":11}"#.into(),
            &["think_time_sigma", "at most 10"],
        ),
        (
            r#"{"session_id":"o","orchestrator":true,"rounds":2,"spawns":["a"],"think_time_ms":5,"think_time_min_ms":1}"#.into(),
            &["think_time_min_ms", "think_time_sigma"],
        ),
        (
            r#"{"session_id":"o","orchestrator":true,"rounds":2,"spawns":["a"],"think_time_ms":5,"think_time_sigma":1,"think_time_min_ms":9,"think_time_max_ms":8}"#.into(),
            &["think_time_min_ms", "above"],
        ),
        (
            r#"{"session_id":"o","orchestrator":true,"rounds":[{"spawns":["a"]},{"spawns":["a"]}]}"#.into(),
            &["rounds", "`a` twice"],
        ),
        (
            r#"{"session_id":"o","orchestrator":true,"spawns":["b"],"rounds":[{"spawns":["a"]}]}"#.into(),
            &["spawns", "list of `rounds`"],
        ),
        (
            r#"{"session_id":"r","turns":[{"messages":[]}]}"#.into(),
            &["turns[0].messages", "empty"],
        ),
        (
            r#"{"session_id":"r","turns":[{"messages":[{"content":"x"}]}]}"#.into(),
            &["turns[0].messages[0]", "`role`"],
        ),
    ] {
        let message = refused(&[record.clone(), leaf("a"), leaf("b")]);
        assert!(message.starts_with("d.jsonl:1: "), "{record}: {message}");
        for part in expected {
            assert!(message.contains(part), "{record}: {message} lacks {part}");
        }
    }
}

#[test]
fn every_rule_of_the_graph_names_line_session_and_turn() {
    let spawn = |child: &str| format!(r#","spawns":["{child}"]"#);
    let fork = |child: &str| format!(r#","forks":["{child}"]"#);
    let array = r#","context_mode":"message_array_with_responses""#;
    for (lines, at, expected) in [
        (vec![line("r", &["", &spawn("x")], "")], 1, &["turns[1].spawns", "`x`", "`r`"][..]),
        (vec![leaf("r"), leaf("r")], 2, &["session_id", "line 1"]),
        (
            vec![
                line("r", &[&spawn("a"), ""], ""),
                line("a", &[&spawn("b")], ""),
                line("b", &[&spawn("a")], ""),
            ],
            3,
            &["cycle", "turns[0].spawns", "`b`"],
        ),
        (vec![line("a", &[&spawn("a")], "")], 1, &["cycle", "`a`"]),
        (
            vec![line("r", &[&fork("a")], ""), line("s", &[&fork("a")], ""), leaf("a")],
            2,
            &["turns[0].forks", "`a`", "`r`", "one parent"],
        ),
        (vec![line("r", &[&fork("a")], ""), line("a", &[""], array)], 1, &["forks", "takes nothing over"]),
        (vec![line("r", &[&fork("a")], array), leaf("a")], 1, &["forks", "keeps no answers"]),
        (
            vec![line("r", &[""], r#","pre_session_spawns":["a"]"#), line("s", &[&fork("a")], ""), leaf("a")],
            1,
            &["pre_session_spawns", "fork"],
        ),
        (
            vec![
                line("r", &[&spawn("a")], ""),
                line("a", &[""], r#","pre_session_spawns":["b"]"#),
                leaf("b"),
            ],
            2,
            &["pre_session_spawns", "no other starts"],
        ),
    ] {
        let message = refused(&lines);
        assert!(message.starts_with(&format!("d.jsonl:{at}: ")), "{lines:?}: {message}");
        for part in expected {
            assert!(message.contains(part), "{lines:?}: {message} lacks {part}");
        }
    }
}

#[test]
fn a_system_message_opens_a_drawn_conversation_or_stands_alone() {
    let system = |id: &str, before: &str, mode: &str| {
        format!(
            r#"{{"session_id":"{id}"{mode},"turns":[{before}{{"messages":[{{"role":"system","content":"s"}},{{"role":"user","content":"x"}}]}}]}}"#
        )
    };
    let plain = format!("{},", turn(""));
    let array = r#","context_mode":"message_array_with_responses""#;
    accepted(&[system("r", "", "")]);
    accepted(&[system("r", &plain, array)]);
    let message = refused(&[system("r", &plain, "")]);
    assert!(message.contains("turns[1].messages") && message.contains("`system`"), "{message}");
    let child = refused(&[line("r", &[r#","spawns":["a"]"#], ""), system("a", "", "")]);
    assert!(child.starts_with("d.jsonl:2: ") && child.contains("turns[0].messages"), "{child}");
}

#[test]
fn graphs_go_to_the_chat_endpoint_only_and_an_empty_file_is_an_error() {
    let error = load_for(data("dag.jsonl"), DAG, EndpointKind::Completions).err().unwrap().to_string();
    assert!(error.contains("dag_jsonl") && error.contains("--endpoint-type chat"), "{error}");
    assert!(refusal(DAG, &["", "  "]).contains("no conversations"));
}
