use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn facts(body: &str) -> Facts {
    let mut facts = Facts::default();
    scan(body.as_bytes(), &mut facts).unwrap();
    facts
}

fn texts(body: &str) -> Vec<String> {
    facts(body).texts.iter().map(|text| unescape(body.as_bytes(), *text)).collect()
}

#[test]
fn the_facts_of_a_chat_body() {
    let body = r#" {"messages":[{"role":"user","content":"a\nb"},{"role":"user","content":[{"type":"text","text":"c"},
        {"type":"image_url","image_url":{"url":"data:x","text":"no"}}]}],"model":"org/m","stream":true,
        "max_tokens":5,"max_completion_tokens":12,"min_tokens":null,
        "stream_options":{"include_usage":true,"continuous_usage_stats":true}} "#;
    let facts = facts(body);
    assert!(facts.messages && facts.stream && facts.include_usage && facts.continuous_usage);
    assert!(!facts.prompt && !facts.input);
    assert_eq!(facts.max_tokens, Limit::Count(5));
    assert_eq!(facts.max_completion_tokens, Limit::Count(12));
    assert_eq!(facts.min_tokens, Limit::Absent);
    assert_eq!(unescape(body.as_bytes(), facts.model.unwrap()), "org/m");
    assert_eq!(texts(body), ["a\nb", "c"]);
    assert_eq!(facts.joined_bytes(), 5);
}

#[test]
fn prompts_and_inputs_in_each_form() {
    assert_eq!(texts(r#"{"prompt":"x"}"#), ["x"]);
    assert_eq!(texts(r#"{"prompt":["x","y"]}"#), ["x", "y"]);
    for (body, inputs, ids) in [
        (r#"{"input":"x"}"#, 1, 0),
        (r#"{"input":["x","y","z"]}"#, 3, 0),
        (r#"{"input":[1,2,3]}"#, 1, 3),
        (r#"{"input":[[1,2],[3]]}"#, 2, 3),
        (r#"{"input":[]}"#, 0, 0),
    ] {
        let facts = facts(body);
        assert!(facts.input);
        assert_eq!((facts.inputs, facts.token_ids), (inputs, ids), "{body}");
    }
    assert!(!facts(r#"{"input":null}"#).input);
}

#[test]
fn limits_that_are_no_whole_number_are_bad() {
    for bad in ["-1", "1.5", "\"5\"", "true", "[]", "1e2", "99999999999999999999"] {
        assert_eq!(facts(&format!("{{\"max_tokens\":{bad}}}")).max_tokens, Limit::Bad, "{bad}");
    }
}

#[test]
fn what_is_not_a_json_object_is_refused() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(600), "]".repeat(600));
    for bad in [
        "",
        "[]",
        "1",
        "{",
        "{}x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":01}",
        "{\"a\":1,}",
        "{\"a\":tru}",
        "{'a':1}",
        "{\"a\":\"\u{1}\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":1.}",
        "{\"a\":-}",
        "{\"a\":[1 2]}",
        deep.as_str(),
    ] {
        assert_eq!(scan(bad.as_bytes(), &mut Facts::default()), Err(NotJson), "{bad}");
    }
    assert_eq!(scan(b"{\"a\":\"\xff\"}", &mut Facts::default()), Err(NotJson));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[a-z\\\\\"]{0,6}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_object_is_accepted_and_its_prompt_is_found(rest in any_json(), prompt in any::<String>(), pretty: bool, n in any::<u32>()) {
        let value = json!({"other": rest, "prompt": prompt, "more": [rest], "stream": pretty, "max_tokens": n});
        let body = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let facts = facts(&body);
        prop_assert_eq!(facts.stream, pretty);
        prop_assert_eq!(facts.max_tokens, Limit::Count(u64::from(n)));
        prop_assert_eq!(facts.texts[0].bytes, prompt.len());
        prop_assert_eq!(unescape(body.as_bytes(), facts.texts[0]), prompt);
    }

    #[test]
    fn the_scanner_agrees_with_serde_json_on_damaged_bodies(value in any_json(), at in any::<prop::sample::Index>(), byte in prop::sample::select(&b"{}[]\",:\\x0 1-.eEtfnu\n\x01"[..]), mode in 0..3) {
        let mut body = serde_json::to_vec(&json!({"messages": value, "b": [1.5e3, "\\u0041"]})).unwrap();
        let at = at.index(body.len());
        match mode {
            0 => body[at] = byte,
            1 => body.insert(at, byte),
            _ => { body.remove(at); }
        }
        if let Ok(text) = std::str::from_utf8(&body) {
            let object = text.trim_start_matches([' ', '\n', '\t', '\r']).starts_with('{');
            // The raw value is checked for its grammar and nothing else.
            let valid = object && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
            prop_assert_eq!(scan(&body, &mut Facts::default()).is_ok(), valid, "{}", text);
        }
    }

    #[test]
    fn escaped_characters_have_the_length_of_their_text(text in any::<String>()) {
        let escaped = text.encode_utf16().fold(String::new(), |all, unit| all + &format!("\\u{unit:04x}"));
        let body = format!("{{\"prompt\":\"{escaped}\"}}");
        let facts = facts(&body);
        prop_assert_eq!(facts.texts[0].bytes, text.len());
        prop_assert_eq!(unescape(body.as_bytes(), facts.texts[0]), text);
    }
}
