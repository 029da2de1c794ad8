use aiperf_types::{Media, MediaKind};
use proptest::prelude::*;
use serde_json::json;
use serde_json::value::RawValue;

use super::*;

fn payload(body: &Value) -> Content {
    Content::Payload(RawValue::from_string(body.to_string()).unwrap())
}

fn request(content: &Content) -> Request<'_> {
    Request {
        content,
        role: None,
        before: &[],
        tools: None,
        timestamp_ms: None,
        delay_ms: None,
        output_tokens: None,
        session: None,
    }
}

fn rows(block_size: u32, requests: &[Request<'_>]) -> Vec<Value> {
    let mut anonymizer = Anonymizer::new(Tokenizer::builtin(), block_size);
    let mut out = Vec::new();
    for request in requests {
        anonymizer.add(request, &mut out).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn one(body: &Value) -> Result<Value, AnonymizeError> {
    let content = payload(body);
    let mut out = Vec::new();
    Anonymizer::new(Tokenizer::builtin(), 4).add(&request(&content), &mut out)?;
    Ok(serde_json::from_slice(&out).unwrap())
}

fn tokens(text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    Tokenizer::builtin().encode(text, &mut tokens);
    tokens
}

#[test]
fn each_body_gives_the_length_of_the_text_that_the_server_gets() {
    let user = |text: &str| format!("user\n{text}\n");
    for (body, text, limit) in [
        (json!({"messages": [{"role": "user", "content": "one two"}]}), user("one two"), None),
        (
            json!({"messages": [{"role": "system", "content": "be"}, {"role": "user", "content": [
                {"type": "text", "text": "one "}, {"type": "text", "text": "two"}]}], "max_tokens": 9}),
            format!("system\nbe\n{}", user("one two")),
            Some(9),
        ),
        (
            json!({"tools": [{"type": "function"}], "messages": [{"role": "user", "content": "x"}]}),
            format!("[{{\"type\":\"function\"}}]\n{}", user("x")),
            None,
        ),
        (json!({"prompt": "plain text", "max_tokens": 3}), "plain text".into(), Some(3)),
        (json!({"input": ["a b", "c d"]}), "a b\nc d".into(), None),
        (
            json!({"instructions": "be", "input": "x", "max_output_tokens": 4}),
            format!("system\nbe\n{}", user("x")),
            Some(4),
        ),
        (json!({"inputs": "t", "parameters": {"max_new_tokens": 5}}), "t".into(), Some(5)),
        (json!({"query": {"text": "q"}, "passages": [{"text": "p"}]}), "q\np\n".into(), None),
        (
            json!({"system": [{"type": "text", "text": "be"}], "messages": [{"role": "user", "content": "x"}]}),
            format!("system\nbe\n{}", user("x")),
            None,
        ),
    ] {
        let row = one(&body).unwrap();
        assert_eq!(row["input_length"].as_u64().unwrap() as usize, tokens(&text).len(), "{body}");
        assert_eq!(row.get("output_length").and_then(Value::as_u64), limit, "{body}");
    }
    assert_eq!(one(&json!({"prompt": [5, 6, 7, 8, 9]})).unwrap()["hash_ids"], json!([0, 1]));
}

#[test]
fn media_and_unknown_shapes_are_refused_by_field_alone() {
    let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    for (body, text) in [
        (user(json!([{"type": "image_url", "image_url": {"url": "canary"}}])), "media"),
        (user(json!([{"type": "input_audio", "input_audio": {"data": "canary"}}])), "media"),
        (user(json!([{"type": "image", "source": {"data": "canary"}}])), "media"),
        (user(json!(5)), "neither a string nor a list"),
        (json!({"canary": 1}), "has none of"),
        (json!({"prompt": [[1], "canary"]}), "must be a text"),
        (json!({"prompt": {"canary": 1}}), "must be a text"),
        (json!({"messages": "canary"}), "must be a list"),
        (json!({"messages": ["canary"]}), "list of objects"),
        (json!(["canary"]), "must be a JSON object"),
    ] {
        let error = one(&body).unwrap_err().to_string();
        assert!(error.contains(text) && error.starts_with("field `"), "{body}: {error}");
        assert!(!error.contains("canary"), "{error}");
    }
    let media = Media { kind: MediaKind::Image, name: None, content: "x".into(), uuid: None };
    let content = Content::Parts { texts: Vec::new(), media: vec![media] };
    let outcome = Anonymizer::new(Tokenizer::builtin(), 4).add(&request(&content), &mut io::sink());
    assert!(matches!(outcome, Err(AnonymizeError::Media(_))));
}

#[test]
fn increments_keep_their_session_under_another_name() {
    let (one, two) = (Content::text("first words of it"), Content::text("and then some more"));
    let of = |content, session| Request { session: Some(session), role: Some("user"), ..request(content) };
    let rows = rows(4, &[of(&one, 70), of(&one, 9), of(&two, 70), of(&two, 9), of(&one, 9)]);
    let names: Vec<&Value> = rows.iter().map(|row| &row["session_id"]).collect();
    assert_eq!(names, ["s-1", "s-2", "s-1", "s-2", "s-2"]);
    assert_eq!(rows[0]["hash_ids"], rows[1]["hash_ids"]);
    assert_eq!(rows[2]["hash_ids"], rows[3]["hash_ids"]);
    // The same text after another one is another block.
    assert_ne!(rows[4]["hash_ids"], rows[0]["hash_ids"]);
}

#[test]
fn times_lengths_and_nothing_else_are_written() {
    let content = Content::text("hello");
    let mut of = request(&content);
    of.timestamp_ms = Some(1234.5 - 1000.2);
    of.delay_ms = Some(7.0);
    of.output_tokens = Some(0);
    let rows = rows(512, &[of]);
    assert_eq!(rows[0]["timestamp"].as_f64(), Some(234.3));
    let keys: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["timestamp", "delay", "input_length", "output_length", "hash_ids"]);
}

/// Blocks that two lists of tokens begin with alike; a partial block counts when both end with it.
fn common_blocks(one: &[u32], other: &[u32], size: usize) -> usize {
    one.chunks(size).zip(other.chunks(size)).take_while(|(one, other)| one == other).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// 500 requests that share prefixes here and there: their lengths and pairwise common blocks are those of the
    /// source, and no 6 characters of a prompt come through.
    #[test]
    fn lengths_and_shared_prefixes_survive_and_no_text_does(
        picks in proptest::collection::vec((0usize..6, 0usize..40, 0usize..30), 500), size in 1usize..9,
    ) {
        let stems: Vec<String> = (0..6).map(|stem| format!("canary{stem} ").repeat(40)).collect();
        let texts: Vec<String> = picks
            .iter()
            .map(|(stem, words, own)| {
                let shared = &stems[*stem][..words * 8];
                format!("{shared}{}", "secret77 ".repeat(*own))
            })
            .collect();
        let contents: Vec<Content> = texts.iter().map(|text| payload(&json!({"prompt": text, "model": "planted"}))).collect();
        let requests: Vec<Request<'_>> = contents.iter().map(request).collect();
        let rows = rows(size as u32, &requests);
        let sources: Vec<Vec<u32>> = texts.iter().map(|text| tokens(text)).collect();
        let ids: Vec<Vec<u64>> = rows
            .iter()
            .map(|row| row.get("hash_ids").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_u64).collect())
            .collect();
        for (row, source) in rows.iter().zip(&sources) {
            prop_assert_eq!(row["input_length"].as_u64(), Some(source.len() as u64));
        }
        for one in (0..500).step_by(7) {
            for other in 0..500 {
                let kept = ids[one].iter().zip(&ids[other]).take_while(|(one, other)| one == other).count();
                prop_assert_eq!(kept, common_blocks(&sources[one], &sources[other], size));
            }
        }
        let written = serde_json::to_string(&rows).unwrap();
        for word in ["canary", "anary0", "secret", "ecret7", "plante"] {
            prop_assert!(!written.contains(word));
        }
    }
}
