//! Request bodies: keys, order, merging, media, history, refusals.

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

use std::sync::Arc;

use aiperf_config::{EndpointConfig, EndpointKind};
use aiperf_endpoint::{Format, FormatError, History, ReadPlan, Rendered, Reply};
use aiperf_types::{Content, ContextMode, Conversation, Media, MediaKind, TextGroup, Turn};
use common::{delta, endpoint, read};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

fn map(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("an object") };
    map
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn say(text: &str) -> Turn {
    Turn { content: Content::text(text), ..Turn::default() }
}

fn parts(texts: &[&str], media: Vec<Media>) -> Turn {
    let contents = texts.iter().map(|text| Arc::from(*text)).collect();
    let texts = if texts.is_empty() { Vec::new() } else { vec![TextGroup { name: None, contents }] };
    Turn { content: Content::Parts { texts, media }, ..Turn::default() }
}

fn media(kind: MediaKind, content: &str, uuid: Option<&str>) -> Media {
    Media { kind, name: None, content: content.into(), uuid: uuid.map(Arc::from) }
}

fn messages(list: &[&str], tools: Option<&str>) -> Turn {
    let messages = list.iter().map(|message| raw(message)).collect();
    Turn { content: Content::Messages { messages, tools: tools.map(raw) }, ..Turn::default() }
}

fn conversation(turns: Vec<Turn>) -> Conversation {
    Conversation { id: "c".into(), turns, ..Conversation::default() }
}

fn text(rendered: &Rendered) -> String {
    String::from_utf8(rendered.body.to_bytes().to_vec()).unwrap()
}

fn render_with(config: &EndpointConfig, turn: Turn) -> Rendered {
    let format = Format::new(config, "m");
    let conversation = conversation(vec![turn]);
    format.check(&conversation).unwrap();
    format.render(&conversation, 0, &History::default())
}

fn chat(turn: Turn) -> String {
    text(&render_with(&endpoint(EndpointKind::Chat, false), turn))
}

fn content(turn: Turn) -> String {
    let body: Value = serde_json::from_str(&chat(turn)).unwrap();
    body["messages"][0]["content"].to_string()
}

#[test]
fn chat_keys_stand_in_the_documented_order() {
    let mut config = endpoint(EndpointKind::Chat, true);
    config.extra_inputs = map(json!({"temperature": 0.5, "stop": null}));
    let turn = Turn {
        max_tokens: Some(9),
        extra_body: Some(map(json!({"seed": 7}))),
        ..messages(&[r#"{"role": "user", "content": "hi"}"#], Some(r#"[{"type": "function"}]"#))
    };
    assert_eq!(
        text(&render_with(&config, turn.clone())),
        r#"{"messages":[{"role":"user","content":"hi"}],"model":"m","stream":true,"tools":[{"type":"function"}],"max_completion_tokens":9,"temperature":0.5,"stop":null,"seed":7,"stream_options":{"include_usage":true}}"#
    );
    let plain = Turn { extra_body: None, ..turn };
    assert_eq!(
        text(&render_with(&config, plain)),
        r#"{"messages":[{"role":"user","content":"hi"}],"model":"m","stream":true,"tools":[{"type":"function"}],"max_completion_tokens":9,"temperature":0.5,"stop":null,"stream_options":{"include_usage":true}}"#
    );
    config.use_legacy_max_tokens = true;
    config.extra_inputs.clear();
    assert_eq!(
        text(&render_with(&config, Turn { max_tokens: Some(3), model: Some("own".into()), ..say("x") })),
        r#"{"messages":[{"role":"user","content":"x"}],"model":"own","stream":true,"max_tokens":3,"stream_options":{"include_usage":true}}"#
    );
}

#[test]
fn completions_keys_stand_in_the_documented_order() {
    let mut config = endpoint(EndpointKind::Completions, true);
    config.extra_inputs = map(json!({"min_p": 0.1}));
    let turn = Turn { max_tokens: Some(9), extra_body: Some(map(json!({"min_tokens": 9}))), ..say("a\"b") };
    assert_eq!(
        text(&render_with(&config, turn)),
        r#"{"prompt":"a\"b","model":"m","stream":true,"max_tokens":9,"min_p":0.1,"min_tokens":9,"stream_options":{"include_usage":true}}"#
    );
    let config = endpoint(EndpointKind::Completions, false);
    let many = text(&render_with(&config, parts(&["one", "", "two"], Vec::new())));
    assert_eq!(many, r#"{"prompt":["one","two"],"model":"m","stream":false}"#);
    assert_eq!(
        text(&render_with(&config, parts(&["one", ""], Vec::new()))),
        r#"{"prompt":"one","model":"m","stream":false}"#
    );
}

#[test]
fn embeddings_take_an_array_and_no_limit() {
    let mut config = endpoint(EndpointKind::Embeddings, true);
    let turn = Turn { max_tokens: Some(4), ..parts(&["a", "b"], Vec::new()) };
    let rendered = render_with(&config, turn.clone());
    assert_eq!(text(&rendered), r#"{"model":"m","input":["a","b"]}"#);
    assert!(!rendered.streaming && rendered.max_tokens.is_none());
    config.extra_inputs = map(json!({"encoding_format": "base64", "stream": true}));
    let rendered = render_with(&config, turn);
    assert_eq!(
        text(&rendered),
        r#"{"model":"m","input":["a","b"],"encoding_format":"base64","stream":true}"#
    );
    assert!(!rendered.streaming);
}

/// The texts that count as input.
fn input(rendered: &Rendered) -> String {
    let mut seen = String::new();
    for text in &rendered.texts {
        text.tokens(|text| {
            seen.push_str(text);
            0
        });
    }
    seen
}

fn to_rank(query: &[&str], passages: &[&str]) -> Turn {
    let group = |name: &str, texts: &[&str]| TextGroup {
        name: Some(name.into()),
        contents: texts.iter().map(|&text| text.into()).collect(),
    };
    Turn {
        content: Content::Parts {
            texts: vec![group("query", query), group("passages", passages)],
            media: Vec::new(),
        },
        ..Turn::default()
    }
}

#[test]
fn each_server_that_ranks_is_asked_in_its_own_words() {
    let turn = Turn { max_tokens: Some(4), ..to_rank(&["what?", "second"], &["a \"b\"", "", "c"]) };
    for (kind, body) in [
        (
            EndpointKind::CohereRankings,
            r#"{"model":"m","query":"what?","documents":["a \"b\"","c"],"top_n":3}"#,
        ),
        (EndpointKind::HfTeiRankings, r#"{"query":"what?","texts":["a \"b\"","c"],"top_n":3}"#),
        (
            EndpointKind::NimRankings,
            r#"{"model":"m","query":{"text":"what?"},"passages":[{"text":"a \"b\""},{"text":"c"}],"top_n":3}"#,
        ),
    ] {
        let mut config = endpoint(kind, true);
        config.extra_inputs = map(json!({"top_n": 3}));
        let rendered = render_with(&config, turn.clone());
        assert_eq!(text(&rendered), body);
        assert!(!rendered.streaming && rendered.max_tokens.is_none());
        assert_eq!(input(&rendered), "what? a \"b\" c", "query and passages are the input");

        config.extra_inputs = map(json!({"query": {"text": "other"}}));
        let rendered = render_with(&config, turn.clone());
        assert_eq!(input(&rendered), "other a \"b\" c", "what the user put in its place counts");
    }
}

#[test]
fn what_cannot_be_ranked_is_refused_with_the_names_that_are_read() {
    let format = Format::new(&endpoint(EndpointKind::NimRankings, false), "m");
    let refusal = |turn: Turn| format.check(&conversation(vec![turn])).unwrap_err().to_string();
    for (turn, what) in [
        (say("hello"), "turn 0, has texts without a name"),
        (to_rank(&[], &["a"]), "has no query"),
        (to_rank(&["q"], &[""]), "has no passages"),
    ] {
        let message = refusal(turn);
        assert!(message.contains(what) && message.contains("--endpoint-type nim-rankings"), "{message}");
        assert!(message.contains("`passages`") && message.contains("`query`"), "{message}");
    }
    assert!(format.check(&conversation(vec![to_rank(&["q"], &["a"])])).is_ok());
}

#[test]
fn extras_overwrite_built_keys_in_their_place_and_turn_extras_win() {
    let mut config = endpoint(EndpointKind::Chat, true);
    config.extra_inputs =
        map(json!({"model": "x", "stream": false, "a": {"b": 1}, "max_completion_tokens": 5}));
    let turn =
        Turn { max_tokens: Some(9), extra_body: Some(map(json!({"a": {"c": 2}, "model": "y"}))), ..say("t") };
    let rendered = render_with(&config, turn);
    assert_eq!(
        text(&rendered),
        r#"{"messages":[{"role":"user","content":"t"}],"model":"y","stream":false,"max_completion_tokens":5,"a":{"c":2}}"#
    );
    assert!(!rendered.streaming, "the merged body decides, not the flag");
    assert_eq!(rendered.max_tokens, Some(5));
    config.extra_inputs = map(json!({"messages": [], "model": null}));
    assert_eq!(
        text(&render_with(&config, say("t"))),
        r#"{"messages":[],"model":null,"stream":true,"stream_options":{"include_usage":true}}"#
    );
}

#[test]
fn stream_options_follow_the_merged_stream_and_respect_the_user() {
    let options = |streaming: bool, extra: Value| {
        let mut config = endpoint(EndpointKind::Chat, streaming);
        config.extra_inputs = map(extra);
        let body: Value = serde_json::from_str(&text(&render_with(&config, say("t")))).unwrap();
        body.get("stream_options").map(Value::to_string)
    };
    let usage = Some(r#"{"include_usage":true}"#.to_owned());
    assert_eq!(options(true, json!({})), usage);
    assert_eq!(options(false, json!({})), None);
    assert_eq!(options(false, json!({"stream": true})), usage);
    assert_eq!(options(true, json!({"stream": 0})), None);
    assert_eq!(options(true, json!({"stream_options": null})), usage);
    assert_eq!(options(true, json!({"stream_options": 5})), Some("5".into()));
    assert_eq!(
        options(true, json!({"stream_options": {"include_usage": false}})),
        Some(r#"{"include_usage":false}"#.into())
    );
    assert_eq!(
        options(true, json!({"stream_options": {"x": 1}})),
        Some(r#"{"x":1,"include_usage":true}"#.into())
    );

    let mut config = endpoint(EndpointKind::Chat, true);
    config.per_chunk_usage = true;
    let body = text(&render_with(&config, say("t")));
    assert!(
        body.ends_with(r#""stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#),
        "{body}"
    );
}

#[test]
fn content_is_a_string_for_one_text_and_parts_otherwise() {
    assert_eq!(content(say("one")), r#""one""#);
    assert_eq!(content(say("")), r#""""#);
    assert_eq!(content(parts(&[], Vec::new())), r#""""#);
    assert_eq!(content(parts(&["", ""], Vec::new())), r#""""#);
    assert_eq!(
        content(parts(&["a", "", "b"], Vec::new())),
        r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#
    );
    let format = Format::new(&endpoint(EndpointKind::Chat, false), "m").force_content_parts(true);
    let rendered = format.render(&conversation(vec![say("one")]), 0, &History::default());
    assert!(text(&rendered).contains(r#""content":[{"type":"text","text":"one"}]"#));
}

#[test]
fn media_follow_the_texts_in_order_of_kind() {
    let turn = parts(
        &["look"],
        vec![
            media(MediaKind::Video, "https://v/x.mp4", None),
            media(MediaKind::Audio, "wav,UklG", None),
            media(MediaKind::Image, "data:image/png;base64,iVBO", Some("u-1")),
            media(MediaKind::Image, "https://i/b.png", None),
            media(MediaKind::Audio, "data:audio/mp3;base64,SUQz", None),
            media(MediaKind::Image, "", Some("u-2")),
            media(MediaKind::Image, "", None),
        ],
    );
    let rendered = render_with(&endpoint(EndpointKind::Chat, false), turn.clone());
    assert_eq!(rendered.num_images, 3);
    assert_eq!(
        content(turn),
        r#"[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"},"uuid":"u-1"},{"type":"image_url","image_url":{"url":"https://i/b.png"}},{"type":"image_url","image_url":{"url":""},"uuid":"u-2"},{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}},{"type":"input_audio","input_audio":{"data":"SUQz","format":"mp3"}},{"type":"video_url","video_url":{"url":"https://v/x.mp4"}}]"#
    );
}

#[test]
fn a_payload_is_sent_byte_for_byte() {
    let authored = r#"{ "stream":true, "n": 1e3, "big": 123456789012345678901234567890, "messages": [{"role":"user","content":"h\u00e9 \"q\""}, {"content":[{"type":"text","text":"two"},{"type":"image_url","image_url":{"url":"x"}}]}], "max_tokens": 5 }"#;
    let mut config = endpoint(EndpointKind::Chat, false);
    config.extra_inputs = map(json!({"temperature": 1}));
    let turn = Turn { content: Content::Payload(raw(authored)), max_tokens: Some(99), ..Turn::default() };
    let rendered = render_with(&config, turn);
    assert_eq!(text(&rendered), authored);
    assert!(rendered.streaming);
    assert_eq!((rendered.max_tokens, rendered.num_images), (Some(5), 1));
    let mut seen = Vec::new();
    for item in &rendered.texts {
        item.tokens(|text| {
            seen.push(text.to_owned());
            1
        });
    }
    assert_eq!(seen, ["hé \"q\"", " two"]);
    let prompt = Turn { content: Content::Payload(raw(r#"{"prompt":["a","b"]}"#)), ..Turn::default() };
    let rendered = render_with(&endpoint(EndpointKind::Completions, true), prompt);
    assert!(!rendered.streaming, "the body asks for none");
    assert_eq!(rendered.texts.len(), 2);
}

#[test]
fn system_prompt_and_user_context_come_first() {
    let format = Format::new(&endpoint(EndpointKind::Chat, false), "m");
    let bodies = |turn: Turn| {
        let conversation = Conversation {
            system_message: Some("S".into()),
            user_context_message: Some("U".into()),
            ..conversation(vec![turn])
        };
        let body: Value =
            serde_json::from_str(&text(&format.render(&conversation, 0, &History::default()))).unwrap();
        body["messages"].to_string()
    };
    assert_eq!(
        bodies(say("t")),
        r#"[{"role":"system","content":"S"},{"role":"user","content":"U"},{"role":"user","content":"t"}]"#
    );
    assert_eq!(
        bodies(messages(
            &[r#"{"role":"system","content":"theirs"}"#, r#"{"role":"user","content":"t"}"#],
            None
        )),
        r#"[{"role":"system","content":"S\n\ntheirs"},{"role":"user","content":"U"},{"role":"user","content":"t"}]"#
    );
    assert_eq!(
        bodies(messages(&[r#"{"role":"system","content":[{"type":"text","text":"theirs"}]}"#], None)),
        r#"[{"role":"system","content":[{"type":"text","text":"S"},{"type":"text","text":"theirs"}]},{"role":"user","content":"U"}]"#
    );
    assert_eq!(
        bodies(Turn { role: Some("system".into()), ..say("theirs") }),
        r#"[{"role":"system","content":"S\n\ntheirs"},{"role":"user","content":"U"}]"#
    );
}

fn reply(deltas: &[&str]) -> Reply {
    let plan = ReadPlan { keep_history: true, ..ReadPlan::new(EndpointKind::Chat, true) };
    let events: Vec<String> = deltas.iter().map(|text| delta(text)).collect();
    let reads: Vec<(&str, u64)> = events.iter().zip(1..).map(|(event, at)| (event.as_str(), at)).collect();
    read(&plan, &reads).reply.unwrap()
}

fn messages_of(rendered: &Rendered) -> String {
    let body: Value = serde_json::from_str(&text(rendered)).unwrap();
    let messages = body["messages"].to_string();
    assert_eq!(rendered.messages_json().unwrap(), messages);
    messages
}

#[test]
fn history_follows_the_context_mode() {
    let format = Format::new(&endpoint(EndpointKind::Chat, false), "m");
    let run = |mode: ContextMode| {
        let mut conversation = conversation(vec![say("a"), say("b"), say("c")]);
        conversation.context_mode = mode;
        let mut history = History::default();
        let mut last = String::new();
        for turn in 0..3 {
            let rendered = format.render(&conversation, turn, &history);
            last = messages_of(&rendered);
            history.push_turn(&rendered);
            // The second turn fails: it leaves no answer.
            if turn != 1 {
                history.push_answer(&reply(&[r#"{"content":"A"}"#]));
            }
        }
        last
    };
    assert_eq!(
        run(ContextMode::DeltasWithoutResponses),
        r#"[{"role":"user","content":"a"},{"role":"assistant","content":"A"},{"role":"user","content":"b"},{"role":"user","content":"c"}]"#
    );
    assert_eq!(
        run(ContextMode::DeltasWithResponses),
        r#"[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"user","content":"c"}]"#
    );
    assert_eq!(run(ContextMode::MessageArrayWithResponses), r#"[{"role":"user","content":"c"}]"#);
}

#[test]
fn tools_stay_and_a_reset_drops_what_came_before() {
    let format = Format::new(&endpoint(EndpointKind::Chat, false), "m");
    let mut conversation = conversation(vec![
        messages(&[r#"{"role":"user","content":"a"}"#], Some("[1]")),
        messages(&[], None),
        say("b"),
        Turn { reset_context: true, ..say("c") },
        say("d"),
    ]);
    conversation.system_message = Some("S".into());
    let mut history = History::default();
    let mut bodies = Vec::new();
    for turn in 0..5 {
        let rendered = format.render(&conversation, turn, &history);
        bodies.push(text(&rendered));
        assert_eq!(rendered.texts.len(), messages_of(&rendered).matches("\"role\"").count());
        history.push_turn(&rendered);
    }
    let s = r#"{"role":"system","content":"S"}"#;
    let m = |text: &str| format!(r#",{{"role":"user","content":"{text}"}}"#);
    let tail = r#"],"model":"m","stream":false"#;
    assert_eq!(bodies[1], format!(r#"{{"messages":[{s}{}{tail},"tools":[1]}}"#, m("a")));
    assert_eq!(bodies[2], format!(r#"{{"messages":[{s}{}{}{tail},"tools":[1]}}"#, m("a"), m("b")));
    assert_eq!(bodies[3], format!(r#"{{"messages":[{s}{}{tail}}}"#, m("c")));
    assert_eq!(bodies[4], format!(r#"{{"messages":[{s}{}{}{tail}}}"#, m("c"), m("d")));
}

#[test]
fn an_answer_is_repeated_with_its_tool_calls_merged() {
    let message = |deltas: &[&str]| String::from_utf8(reply(deltas).message().to_vec()).unwrap();
    assert_eq!(
        message(&[r#"{"reasoning":"hm"}"#, r#"{"content":"yes"}"#]),
        r#"{"role":"assistant","content":"yes"}"#
    );
    assert_eq!(message(&[r#"{"reasoning_content":"only"}"#]), r#"{"role":"assistant","content":"only"}"#);
    assert_eq!(
        message(&[
            r#"{"content":"Let me "}"#,
            r#"{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"f","arguments":""}}]}"#,
            r#"{"content":"see","tool_calls":[{"index":0,"function":{"arguments":"{\"q\":"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"c1","function":{"name":"g","arguments":"{}"}},{"index":0,"function":{"arguments":"1}"}}]}"#,
        ]),
        r#"{"role":"assistant","content":"Let me see","tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{\"q\":1}"}},{"id":"c1","type":"function","function":{"name":"g","arguments":"{}"}}]}"#
    );
    assert_eq!(
        message(&[r#"{"tool_calls":[{"function":{"name":"f"}},{"function":{"name":"f"}}]}"#]),
        r#"{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":""}},{"type":"function","function":{"name":"f","arguments":""}}]}"#
    );
    assert_eq!(
        message(&[
            r#"{"function_call":{"name":"f","arguments":"{"}}"#,
            r#"{"function_call":{"arguments":"}"}}"#
        ]),
        r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#
    );
}

#[test]
fn texts_that_are_counted_already_are_not_counted_again() {
    let config = endpoint(EndpointKind::Chat, false);
    let known = |text: &str| Turn { text_tokens: Some(5), ..say(text) };
    let rendered = render_with(&config, known("a b"));
    assert_eq!(rendered.texts[0].tokens(|_| panic!("counted twice")), 5);
    let format = Format::new(&config, "m");
    let conversation = conversation(vec![known("a"), known(" b"), known("c")]);
    let mut history = History::default();
    history.push_turn(&format.render(&conversation, 0, &history));
    let second = format.render(&conversation, 1, &history);
    history.push_turn(&second);
    let counts: Vec<u64> =
        format.render(&conversation, 2, &history).texts.iter().map(|text| text.tokens(|_| 0)).collect();
    // The space that joins two texts is a token only before another space.
    assert_eq!(counts, [5, 6, 5]);
}

#[test]
fn what_an_endpoint_cannot_say_is_refused_when_it_is_loaded() {
    let check = |kind: EndpointKind, conversation: &Conversation| {
        Format::new(&endpoint(kind, false), "m").check(conversation)
    };
    let two = conversation(vec![say("a"), say("b")]);
    for kind in [EndpointKind::Completions, EndpointKind::Embeddings] {
        let error = check(kind, &two).unwrap_err();
        assert!(matches!(&error, FormatError::SeveralTurns { turns: 2, .. }));
        assert!(error.to_string().contains(kind.name()), "{error}");
        let complete = Conversation { context_mode: ContextMode::MessageArrayWithResponses, ..two.clone() };
        assert_eq!(check(kind, &complete), Ok(()));
        let system = Conversation { system_message: Some("S".into()), ..conversation(vec![say("a")]) };
        assert!(matches!(check(kind, &system), Err(FormatError::SystemPrompt { .. })));
        let context = Conversation { user_context_message: Some("U".into()), ..conversation(vec![say("a")]) };
        assert!(matches!(check(kind, &context), Err(FormatError::UserContext { .. })));
        let authored = conversation(vec![messages(&["{}"], None)]);
        assert!(matches!(check(kind, &authored), Err(FormatError::Messages { turn: 0, .. })));
        let image = conversation(vec![parts(&[], vec![media(MediaKind::Image, "https://x", None)])]);
        assert!(matches!(check(kind, &image), Err(FormatError::Media { media: "images", .. })));
    }
    for audio in ["https://x/a.wav", "wav", "data:audio/wav,plain", ",x", "wav,"] {
        let audio = conversation(vec![parts(&[], vec![media(MediaKind::Audio, audio, None)])]);
        assert!(matches!(check(EndpointKind::Chat, &audio), Err(FormatError::AudioForm { .. })));
    }
    let payload = Turn { content: Content::Payload(raw("{}")), ..Turn::default() };
    let mixed = conversation(vec![payload.clone(), say("a"), payload.clone()]);
    let error = check(EndpointKind::Chat, &mixed).unwrap_err();
    assert_eq!(
        error,
        FormatError::MixedPayloads { conversation: "c".into(), with: "0, 2".into(), without: "1".into() }
    );
    let authored = Conversation { system_message: Some("S".into()), ..conversation(vec![payload]) };
    assert_eq!(check(EndpointKind::Completions, &authored), Ok(()));
}

proptest! {
    #[test]
    fn any_text_is_escaped_as_json_says(text in any::<String>(), more in "[ -~\u{0}-\u{1f}\"\\\\é\u{1F600}]{0,200}") {
        for text in [text, more] {
            let body: Value = serde_json::from_str(&chat(say(&text))).unwrap();
            prop_assert_eq!(body["messages"][0]["content"].as_str(), Some(text.as_str()));
            prop_assert_eq!(content(say(&text)), serde_json::to_string(&text).unwrap());
        }
    }

    #[test]
    fn authored_messages_lose_white_space_and_nothing_else(text in "[ -~\n\t\"\\\\é]{0,40}", depth in 0usize..4) {
        let mut value = json!({"role": "user", "content": text, "n": [1.5, -0.0, 1e300, null, true]});
        for _ in 0..depth {
            value = json!({"role": "user", "content": [value, {}, []]});
        }
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let body = chat(messages(&[&pretty], None));
        let expected = format!(r#"{{"messages":[{value}],"model":"m","stream":false}}"#);
        prop_assert_eq!(body, expected);
    }
}

#[test]
fn a_turn_may_keep_the_first_messages_of_an_authored_past() {
    let format = Format::new(&endpoint(EndpointKind::Chat, false), "m");
    let said = |texts: &[&str]| {
        let all: Vec<String> =
            texts.iter().map(|text| format!(r#"{{"role":"user","content":"{text}"}}"#)).collect();
        messages(&all.iter().map(String::as_str).collect::<Vec<_>>(), None)
    };
    for system in [None, Some("S")] {
        let mut conversation = conversation(vec![
            said(&["a", "b", "c"]),
            Turn { keep_messages: Some(2), ..said(&["d", "e"]) },
            Turn { keep_messages: Some(3), ..said(&["f"]) },
            Turn { keep_messages: Some(4), ..said(&[]) },
            Turn { keep_messages: Some(1), ..said(&["g"]) },
            Turn { keep_messages: Some(0), ..said(&["h"]) },
        ]);
        conversation.context_mode = ContextMode::DeltasWithResponses;
        conversation.system_message = system.map(Into::into);
        let mut history = History::default();
        let seen: Vec<String> = (0..6)
            .map(|turn| {
                let rendered = format.render(&conversation, turn, &history);
                let json: Value = serde_json::from_str(&messages_of(&rendered)).unwrap();
                let texts: Vec<_> = json
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|message| message["content"].as_str().unwrap().to_owned())
                    .collect();
                assert_eq!(rendered.texts.len(), texts.len());
                history.push_turn(&rendered);
                texts.concat()
            })
            .collect();
        let expected = ["abc", "abde", "abdf", "abdf", "ag", "h"];
        let expected: Vec<String> =
            expected.iter().map(|rest| format!("{}{rest}", system.unwrap_or_default())).collect();
        assert_eq!(seen, expected);
    }
}
