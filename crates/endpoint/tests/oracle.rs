//! The scanner against a reader that builds a tree: arbitrary JSON with the keys that matter, repeated keys,
//! escapes, white space and wrong types.

#![allow(
    clippy::unwrap_used,
    clippy::trivially_copy_pass_by_ref,
    clippy::needless_pass_by_value,
    clippy::needless_for_each,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "tests"
)]

mod common;

use aiperf_config::EndpointKind;
use aiperf_endpoint::{ReadPlan, Reading};
use aiperf_types::Channel;
use common::whole;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

/// Space between tokens.
fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![6 => Just(""), 1 => Just(" "), 1 => Just(" \n\t")]
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => select(vec!["a", " hello", "stop", "chat.completion", "chat.completion.chunk", "text_completion", "error"]).prop_map(str::to_owned),
        1 => select(vec!["\\n", "\\\"", "\\u00e9", "\\ud83d\\ude00", "é", "\u{2028}", "\\/"]).prop_map(str::to_owned),
        1 => "[ !#-\\[\\]-~]{0,40}",
    ];
    prop::collection::vec(piece, 0..3).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// A JSON text; objects take their keys from those that some reader knows.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => string(),
        2 => select(vec!["null", "true", "false", "0", "1", "2", "17", "-3", "2.0", "1.5", "1e2", "[]", "{}"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let key = select(vec![
            "content",
            "reasoning_content",
            "reasoning",
            "refusal",
            "tool_calls",
            "function_call",
            "function",
            "name",
            "arguments",
            "index",
            "delta",
            "message",
            "text",
            "finish_reason",
            "object",
            "choices",
            "usage",
            "error",
            "code",
            "type",
            "prompt_tokens",
            "input_tokens",
            "completion_tokens",
            "outputTokens",
            "total_tokens",
            "cached_tokens",
            "prompt_tokens_details",
            "cache_read_input_tokens",
            "tokens",
            "meta",
            "cont\\u0065nt",
            "x",
        ]);
        let member = (key, space(), inner.clone())
            .prop_map(|(key, space, value)| format!("{space}\"{key}\"{space}:{space}{value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

/// Something that looks like an answer more often than not.
fn answer() -> impl Strategy<Value = String> {
    let field = |name: &'static str| (Just(name), prop_oneof![3 => string(), 1 => json()]);
    let calls = prop_oneof![
        Just((
            "tool_calls",
            r#"[{"index":0,"function":{"name":"f","arguments":"{}"}},{"function":{"arguments":"x"}}]"#
                .to_owned()
        )),
        Just(("tool_calls", r#"[{"function":{"name":"n"}},{"function":{"name":""}},3]"#.to_owned())),
        Just(("function_call", r#"{"name":"g","arguments":"()"}"#.to_owned())),
    ];
    let part = prop_oneof![
        string().prop_map(|text| format!(r#"{{"type":"text","text":{text}}}"#)),
        string().prop_map(|text| format!(r#"{{"refusal":{text},"text":null}}"#)),
        string().prop_map(|text| format!(r#"{{"thinking":{text}}}"#)),
        string().prop_map(|text| format!(r#"{{"thinking":[{{"text":{text}}},2,{{"x":"y"}}]}}"#)),
        json(),
    ];
    let parts = prop::collection::vec(part, 0..4);
    let parts = parts.prop_map(|parts| ("content", format!("[{}]", parts.join(","))));
    let delta = prop::collection::vec(
        prop_oneof![
            3 => field("content"), 1 => field("reasoning_content"), 1 => field("reasoning"), 1 => field("refusal"),
            1 => field("tool_calls"), 1 => calls, 1 => parts, 1 => field("x"),
        ],
        0..4,
    );
    let object = |members: Vec<(&'static str, String)>| {
        let members = members.into_iter().map(|(key, value)| format!("\"{key}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    let choice = (
        prop::collection::vec((select(vec!["delta", "message"]), delta), 1..3),
        prop::collection::vec(
            prop_oneof![
                field("finish_reason"),
                field("text"),
                (Just("index"), select(vec!["0", "1", "2", "null"]).prop_map(str::to_owned))
            ],
            0..3,
        ),
    )
        .prop_map(move |(deltas, mut more)| {
            more.extend(deltas.into_iter().map(|(name, delta)| (name, object(delta))));
            object(more)
        });
    let choices = prop::collection::vec(prop_oneof![4 => choice, 1 => json()], 0..3)
        .prop_map(|items| format!("[{}]", items.join(",")));
    let usage = prop::collection::vec(
        (
            select(vec![
                "prompt_tokens",
                "input_tokens",
                "completion_tokens",
                "outputTokens",
                "total_tokens",
                "cache_read_input_tokens",
                "prompt_tokens_details",
                "input_tokens_details",
                "cached_tokens",
                "tokens",
            ]),
            prop_oneof![
                6 => select(vec!["1", "20", "3.0", "null", "-1"]).prop_map(str::to_owned),
                2 => select(vec![r#"{"cached_tokens":4}"#, r#"{"prompt_tokens":5,"input_tokens":6}"#])
                    .prop_map(str::to_owned),
                1 => json(),
            ],
        ),
        0..8,
    )
    .prop_map(object);
    let member = prop_oneof![
        3 => (Just("choices"), choices),
        2 => (Just("object"), select(vec!["\"chat.completion\"", "\"chat.completion.chunk\"", "\"text_completion\"", "null", "\"other\""]).prop_map(str::to_owned)),
        3 => (Just("usage"), usage),
        1 => (Just("error"), select(vec!["null", "\"bad\"", "{}", r#"{"message":"m","code":4,"type":"t"}"#]).prop_map(str::to_owned)),
        1 => (Just("meta"), json()),
        1 => field("x"),
    ];
    prop::collection::vec(member, 0..6).prop_map(object)
}

/// What an answer says, by a tree.
#[derive(Debug, Default, PartialEq)]
struct Says {
    error: Option<(Option<i64>, String, String)>,
    channel: Option<Channel>,
    text: Vec<(u64, String)>,
    reasoning: String,
    finish_reason: Option<String>,
    prompt: Option<u64>,
    completion: Option<u64>,
    cache_read: Option<u64>,
}

fn filled<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// A text, or the texts of a list of parts.
fn thoughts(value: Option<&Value>) -> String {
    let Some(value) = value else { return String::new() };
    let parts = value.as_array().into_iter().flatten().filter_map(|part| filled(part, "text"));
    value.as_str().into_iter().chain(parts).collect()
}

fn count(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    value.as_u64().or_else(|| {
        value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0).map(|number| number as u64)
    })
}

fn by_tree(json: &str, kind: EndpointKind) -> Says {
    let root: Value = serde_json::from_str(json).unwrap();
    let mut says = Says::default();
    let error = match root.get("error") {
        Some(Value::String(text)) if !text.is_empty() => Some((None, "StreamError".to_owned(), text.clone())),
        Some(Value::Object(error)) => {
            let text = |key: &str| {
                error.get(key).and_then(Value::as_str).filter(|text| key != "type" || !text.is_empty())
            };
            let message = text("message").map(str::to_owned);
            Some((
                error.get("code").and_then(Value::as_i64),
                text("type").unwrap_or("StreamError").to_owned(),
                message.unwrap_or_else(|| "(raw)".to_owned()),
            ))
        }
        _ => None,
    };
    if error.is_some() {
        says.error = error;
        return says;
    }
    usage(&root, &mut says);
    let names: &[&str] = match kind {
        EndpointKind::Chat => &["chat.completion", "chat.completion.chunk"],
        _ => &["completion", "text_completion"],
    };
    let object = root.get("object").and_then(Value::as_str);
    let Some(choices) = root.get("choices").and_then(Value::as_array) else { return says };
    if object.is_some_and(|object| !names.contains(&object)) {
        return says;
    }
    for (position, choice) in choices.iter().enumerate() {
        let number = count(choice.get("index")).unwrap_or(position as u64);
        if let (Some(reason), 0) = (choice.get("finish_reason").and_then(Value::as_str), number) {
            says.finish_reason = Some(reason.to_owned());
        }
        let mut text = String::new();
        let (mut thinks, mut called) = (false, false);
        if kind == EndpointKind::Chat {
            let delta = [choice.get("delta"), choice.get("message")]
                .into_iter()
                .flatten()
                .find(|delta| delta.is_object());
            let Some(delta) = delta else { continue };
            let thought = filled(delta, "reasoning_content").or(filled(delta, "reasoning"));
            thinks = thought.is_some();
            says.reasoning.push_str(thought.unwrap_or_default());
            text.push_str(filled(delta, "content").unwrap_or_default());
            for part in delta.get("content").and_then(Value::as_array).into_iter().flatten() {
                let thoughts = thoughts(part.get("thinking"));
                thinks |= !thoughts.is_empty();
                says.reasoning.push_str(&thoughts);
                text.push_str(filled(part, "text").unwrap_or_default());
                text.push_str(filled(part, "refusal").unwrap_or_default());
            }
            text.push_str(filled(delta, "refusal").unwrap_or_default());
            let length = text.len();
            let calls = delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
            let functions = calls
                .filter_map(|call| call.get("function"))
                .chain(delta.get("function_call").filter(|call| call.is_object()));
            for function in functions {
                text.push_str(filled(function, "name").unwrap_or_default());
                text.push_str(filled(function, "arguments").unwrap_or_default());
            }
            called = text.len() > length;
        } else {
            text.push_str(filled(choice, "text").unwrap_or_default());
        }
        let channel = match (thinks, called, text.is_empty()) {
            (true, _, true) => Some(Channel::Reasoning),
            (true, _, false) => Some(Channel::ReasoningAndText),
            (false, true, _) => Some(Channel::ToolCall),
            (false, false, false) => Some(Channel::Text),
            (false, false, true) => None,
        };
        says.channel = match (says.channel, channel) {
            (None, other) | (other, None) => other,
            (Some(Channel::Reasoning), Some(Channel::Reasoning)) => Some(Channel::Reasoning),
            (Some(one), Some(other)) => {
                let either = |channel: Channel| one == channel || other == channel;
                Some(if either(Channel::Reasoning) || either(Channel::ReasoningAndText) {
                    Channel::ReasoningAndText
                } else if either(Channel::ToolCall) {
                    Channel::ToolCall
                } else {
                    Channel::Text
                })
            }
        };
        says.text.push((number, text));
    }
    says
}

fn usage(root: &Value, says: &mut Says) {
    let filled = |value: Option<&Value>| {
        value.filter(|value| value.as_object().is_some_and(|object| !object.is_empty())).cloned()
    };
    let Some(usage) = filled(root.get("usage")).or_else(|| filled(root.get("meta"))) else { return };
    let inner = [usage.get("meta").and_then(|meta| meta.get("tokens")), usage.get("tokens")];
    let levels: Vec<&Value> = [Some(&usage)].into_iter().chain(inner).flatten().collect();
    let get = |path: &[&str]| {
        levels.iter().find_map(|level| count(path.iter().try_fold(*level, |value, key| value.get(key))))
    };
    let cache = get(&["cache_read_input_tokens"]);
    says.prompt =
        get(&["prompt_tokens"]).or_else(|| get(&["input_tokens"]).map(|tokens| tokens + cache.unwrap_or(0)));
    says.completion = get(&["completion_tokens"]).or_else(|| get(&["outputTokens"]));
    says.cache_read = get(&["prompt_tokens_details", "cached_tokens"])
        .or_else(|| get(&["input_tokens_details", "cached_tokens"]))
        .or(cache)
        .or_else(|| get(&["cached_tokens"]));
}

/// The same of our reading, with the texts of choices in order.
fn by_scanner(reading: &Reading) -> (Says, String) {
    let answer = &reading.answer;
    let usage = answer.usage.unwrap_or_default();
    let error = reading.error.as_ref().filter(|error| error.kind != "InvalidInferenceResultError");
    let says = Says {
        error: error.map(|error| (error.code, error.kind.clone(), error.message.clone())),
        channel: answer.content.first().map(|event| event.channel),
        text: Vec::new(),
        reasoning: answer.reasoning.clone(),
        finish_reason: answer.finish_reason.clone(),
        prompt: usage.prompt_tokens,
        completion: usage.completion_tokens,
        cache_read: usage.prompt_cache_read_tokens,
    };
    (says, answer.text.clone())
}

fn compare(text: &str) -> Result<(), TestCaseError> {
    for kind in [EndpointKind::Chat, EndpointKind::Completions] {
        let reading = whole(&ReadPlan::new(kind, false), text);
        let mut expected = by_tree(text, kind);
        let (mut ours, joined) = by_scanner(&reading);
        if let (Some(one), Some(other)) = (&mut ours.error, &expected.error)
            && other.2 == "(raw)"
        {
            one.2.clone_from(&other.2);
        }
        let mut texts = std::mem::take(&mut expected.text);
        texts.sort_by_key(|(number, _)| *number);
        prop_assert_eq!(&ours, &expected, "{:?} {}", kind, text);
        prop_assert_eq!(
            joined,
            texts.into_iter().map(|(_, text)| text).collect::<String>(),
            "{:?} {}",
            kind,
            text
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1200, ..ProptestConfig::default() })]

    #[test]
    fn answers_say_what_a_tree_says(text in answer()) {
        compare(&text)?;
    }

    #[test]
    fn arbitrary_json_says_what_a_tree_says(text in json()) {
        // An object that calls itself an error has a test of its own.
        prop_assume!(!text.contains("\"error\""));
        compare(&text)?;
    }
}
