//! What of a request counts as its input: message texts, tool calls, tool definitions, token ids.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fmt::Write;

use aiperf_config::EndpointKind;
use aiperf_endpoint::{Format, History, ReadPlan, Rendered};
use aiperf_types::{Content, Conversation, Turn};
use common::{delta, endpoint, read};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn authored(messages: &[&str], tools: Option<&str>) -> Turn {
    let messages = messages.iter().map(|message| raw(message)).collect();
    Turn { content: Content::Messages { messages, tools: tools.map(raw) }, ..Turn::default() }
}

fn conversation(turns: Vec<Turn>) -> Conversation {
    Conversation { id: "c".into(), turns, ..Conversation::default() }
}

/// The counted texts, joined as they are counted. Ids stand as their number.
fn input(rendered: &Rendered) -> String {
    let mut seen = String::new();
    for text in &rendered.texts {
        let mut asked = false;
        let tokens = text.tokens(|text| {
            asked = true;
            seen.push_str(text);
            0
        });
        if !asked && tokens > 0 {
            write!(seen, "<{tokens} ids>").unwrap();
        }
    }
    seen
}

fn of_turn(turn: Turn) -> String {
    let format = Format::new(&endpoint(EndpointKind::Chat, false), "m");
    input(&format.render(&conversation(vec![turn]), 0, &History::default()))
}

fn of_payload(kind: EndpointKind, body: &str) -> String {
    let turn = Turn { content: Content::Payload(raw(body)), ..Turn::default() };
    input(&Format::new(&endpoint(kind, false), "m").render(&conversation(vec![turn]), 0, &History::default()))
}

const MESSAGE: &str = r#"{"role":"user","content":"noon?"}"#;

#[test]
fn tool_definitions_count_by_name_description_and_compact_parameters() {
    let cases = [
        (
            r#"[{"type": "function", "function": {"parameters": {"type": "object", "a": [1.50, "x y"]}, "name": "tide", "description": "Größe"}}, {"function": {"name": "other"}}]"#,
            r#"noon? tide Größe {"type":"object","a":[1.50,"x y"]} other"#,
        ),
        (r#"[{"function":{"name":"tide","parameters":{}}}]"#, "noon? tide {}"),
        (
            r#"[{"function":{"name":"G\u00f6","parameters":{"a": "Gr\u00f6\u00dfe \"\u000a", "b\\\\": []}}}]"#,
            r#"noon? Gö {"a":"Größe \"\n","b\\\\":[]}"#,
        ),
        (r#"[{"function":{"name":"tide","description":"","parameters":null}}]"#, "noon? tide"),
        (r#"[{"function":{"name":"","description":"x"}}]"#, "noon? x"),
        (r#"[{"type":"function","name":"flat","description":"d"}]"#, "noon? flat d"),
        (r#"[{"type":"custom","custom":{"name":"a"}}, 3]"#, "noon?"),
        ("[]", "noon?"),
    ];
    for (tools, expected) in cases {
        assert_eq!(of_turn(authored(&[MESSAGE], Some(tools))), expected);
        let body = format!(r#"{{"tools":{tools},"messages":[{MESSAGE}],"model":"m"}}"#);
        assert_eq!(of_payload(EndpointKind::Chat, &body), expected);
    }
}

#[test]
fn tool_calls_in_messages_count_by_name_and_arguments() {
    let message = |calls: &str| {
        let first = format!(r#"{{"role":"assistant","tool_calls":{calls},"content":"look"}}"#);
        of_turn(authored(&[&first, MESSAGE], None))
    };
    assert_eq!(
        message(
            r#"[{"id":"c1","function":{"arguments":"{\"hour\": 12}","name":"tide"}},{"function":{"name":"moon","arguments":{"hour":1}}}]"#
        ),
        r#"look tide {"hour": 12} moon noon?"#
    );
    assert_eq!(message(r#"[{"function":{"name":"","arguments":""}},{"function":null},7]"#), "look noon?");
    assert_eq!(message("null"), "look noon?");
}

#[test]
fn tools_are_counted_once_per_request_of_a_conversation_after_its_messages() {
    let tools = r#"[{"function":{"name":"tide"}}]"#;
    let say = |text: &str| Turn { content: Content::text(text), ..Turn::default() };
    let format = Format::new(&endpoint(EndpointKind::Chat, false), "m");
    let turns = || vec![authored(&[MESSAGE], Some(tools)), say("more"), say("last")];
    for (wanted, expected) in ["noon? tide", "noon? more tide", "noon? more last tide"].iter().enumerate() {
        let conversation = conversation(turns());
        let mut history = History::default();
        for turn in 0..wanted {
            history.push_turn(&format.render(&conversation, turn, &history));
        }
        assert_eq!(input(&format.render(&conversation, wanted, &history)), *expected);
    }
}

#[test]
fn tool_calls_of_a_live_answer_count_in_the_next_request() {
    let plan = ReadPlan { keep_history: true, ..ReadPlan::new(EndpointKind::Chat, true) };
    let call = delta(
        r#"{"content":"look","tool_calls":[{"index":0,"function":{"name":"tide","arguments":"{\"h\":1}"}}]}"#,
    );
    let reply = read(&plan, &[(&call, 1), ("data: [DONE]\n\n", 2)]).reply.unwrap();
    let say = |text: &str| Turn { content: Content::text(text), ..Turn::default() };
    let format = Format::new(&endpoint(EndpointKind::Chat, true), "m");
    let conversation = conversation(vec![say("a"), say("b")]);
    let mut history = History::default();
    history.push_turn(&format.render(&conversation, 0, &history));
    history.push_answer(&reply);
    assert_eq!(input(&format.render(&conversation, 1, &history)), r#"a look tide {"h":1} b"#);
}

#[test]
fn token_ids_in_authored_bodies_count_without_a_tokenizer() {
    let completions =
        |prompt: &str| of_payload(EndpointKind::Completions, &format!(r#"{{"prompt":{prompt}}}"#));
    assert_eq!(completions("[1,2,3]"), "<3 ids>");
    assert_eq!(completions("[[1,2,3],[4]]"), "<4 ids>");
    assert_eq!(completions(r#"["a","b"]"#), "a b");
    assert_eq!(completions("[]"), "");
    assert_eq!(of_payload(EndpointKind::Embeddings, r#"{"input":[[7,8],[9]]}"#), "<3 ids>");
}

#[test]
fn query_and_passages_of_authored_bodies_count_where_they_are_ranked() {
    for kind in EndpointKind::ALL.into_iter().filter(|kind| kind.ranks()) {
        for body in [
            r#"{"query":"q","documents":["a","b\u0041"],"text":"no"}"#,
            r#"{"query":"q","texts":["a","bA"]}"#,
            r#"{"query":{"text":"q"},"passages":[{"text":"a","title":"no"},{"text":"bA"},[["no"]],7]}"#,
        ] {
            assert_eq!(of_payload(kind, body), "q a bA", "{body}");
        }
    }
    assert_eq!(of_payload(EndpointKind::Chat, r#"{"query":"q","documents":["a"]}"#), "");
}

#[test]
fn a_body_whose_input_the_user_replaced_counts_as_it_is_sent() {
    let render = |kind: EndpointKind, extra: Value| {
        let mut config = endpoint(kind, false);
        config.extra_inputs = extra.as_object().unwrap().clone();
        let turn = |text: &str| Turn { content: Content::text(text), ..Turn::default() };
        let format = Format::new(&config, "m");
        let turns = if kind == EndpointKind::Chat { vec![turn("a"), turn("b")] } else { vec![turn("a")] };
        let conversation = conversation(turns);
        let mut history = History::default();
        (0..conversation.turns.len())
            .map(|index| {
                let rendered = format.render(&conversation, index, &history);
                history.push_turn(&rendered);
                input(&rendered)
            })
            .collect::<Vec<_>>()
    };
    let messages = json!({"messages": [{"role": "user", "content": "fixed"}]});
    assert_eq!(render(EndpointKind::Chat, messages), ["fixed", "fixed"]);
    let tools = json!({"tools": [{"function": {"name": "tide"}}]});
    assert_eq!(render(EndpointKind::Chat, tools), ["a tide", "a b tide"]);
    assert_eq!(render(EndpointKind::Chat, json!({"model": "other", "stop": ["x"]})), ["a", " b"]);
    assert_eq!(render(EndpointKind::Completions, json!({"prompt": "fixed"})), ["fixed"]);
    assert_eq!(render(EndpointKind::Embeddings, json!({"input": ["x", "y"]})), ["x y"]);
}
