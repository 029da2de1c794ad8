//! Hand-made answers with the exact events that they must give.

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

use aiperf_clock::Mono;
use aiperf_config::EndpointKind;
use aiperf_endpoint::{ReadPlan, Reader, Reading};
use aiperf_types::{Channel, ContentEvent, RawResponse};
use common::{delta, read, whole};

fn chat() -> ReadPlan {
    ReadPlan { keep_transcript: true, ..ReadPlan::new(EndpointKind::Chat, true) }
}

/// One event per read, 10 apart.
fn stream(events: &[String]) -> Reading {
    let reads: Vec<(&str, u64)> =
        events.iter().zip((10..).step_by(10)).map(|(event, at)| (event.as_str(), at)).collect();
    read(&chat(), &reads)
}

fn events(list: &[(u64, Channel)]) -> Vec<ContentEvent> {
    list.iter().map(|(at, channel)| ContentEvent { at: Mono(*at), channel: *channel }).collect()
}

fn raw_event(data: &str) -> String {
    format!("data: {data}\n\n")
}

fn role() -> String {
    delta(r#"{"role":"assistant","content":""}"#)
}

fn finish(reason: &str) -> String {
    raw_event(&format!(
        r#"{{"object":"chat.completion.chunk","choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#
    ))
}

fn usage(json: &str) -> String {
    raw_event(&format!(r#"{{"object":"chat.completion.chunk","choices":[],"usage":{json}}}"#))
}

fn done() -> String {
    raw_event("[DONE]")
}

fn error(reading: &Reading) -> (Option<i64>, &str, &str) {
    let error = reading.error.as_ref().unwrap();
    (error.code, error.kind.as_str(), error.message.as_str())
}

// https://github.com/vllm-project/vllm/issues/7242
#[test]
fn vllm_7242_each_content_event_has_its_own_instant() {
    let reading = stream(&[
        role(),
        delta(r#"{"content":"a"}"#),
        delta(r#"{"content":"b"}"#),
        delta(r#"{"content":"c"}"#),
        finish("stop"),
        usage(r#"{"prompt_tokens":1,"completion_tokens":3,"total_tokens":4}"#),
        done(),
    ]);
    assert_eq!(reading.error, None);
    let answer = reading.answer;
    assert_eq!(answer.content, events(&[(20, Channel::Text), (30, Channel::Text), (40, Channel::Text)]));
    assert_eq!(answer.last_event, Some(Mono(70)));
    assert_eq!((answer.text.as_str(), answer.finish_reason.as_deref()), ("abc", Some("stop")));
    assert_eq!(answer.usage.unwrap().completion_tokens, Some(3));
    assert_eq!((answer.stream_complete, answer.coalesced_events, answer.skipped_events), (Some(true), 0, 0));
    assert!(!answer.not_streamed && answer.raw.is_none());
}

#[test]
fn one_token_is_one_event() {
    let reading = stream(&[role(), delta(r#"{"content":"a"}"#), finish("length"), done()]);
    assert_eq!(reading.answer.content, events(&[(20, Channel::Text)]));
    assert_eq!(reading.answer.finish_reason.as_deref(), Some("length"));
}

#[test]
fn a_stream_without_output_fails() {
    for list in [
        vec![],
        vec![done()],
        vec![role(), finish("stop"), usage(r#"{"prompt_tokens":1,"completion_tokens":0}"#), done()],
        vec![usage(r#"{"prompt_tokens":1}"#)],
        vec![raw_event(r#"{"object":"something.else","choices":[{"delta":{"content":"a"}}]}"#)],
        vec![raw_event("123"), raw_event("[]"), raw_event("\"text\"")],
    ] {
        let reading = stream(&list);
        assert_eq!(error(&reading).1, "InvalidInferenceResultError");
        assert!(reading.answer.content.is_empty());
    }
    let reading = stream(&[usage(r#"{"prompt_tokens":9}"#)]);
    assert_eq!(reading.answer.usage.unwrap().prompt_tokens, Some(9), "usage is kept for the record");
}

// https://github.com/huggingface/inference-benchmarker: the last usage frame has no choices.
#[test]
fn absent_null_and_empty_choices_are_legal() {
    let reading = stream(&[
        delta(r#"{"content":"a"}"#),
        raw_event(r#"{"object":"chat.completion.chunk","usage":{"prompt_tokens":1}}"#),
        raw_event(r#"{"object":"chat.completion.chunk","choices":null}"#),
        raw_event(r#"{"object":"chat.completion.chunk","choices":[]}"#),
        raw_event(r#"{"object":"chat.completion.chunk","choices":[null]}"#),
        raw_event(r#"{"object":"chat.completion.chunk","choices":[{"delta":null}]}"#),
        raw_event("{}"),
    ]);
    assert_eq!(reading.error, None);
    assert_eq!(reading.answer.content.len(), 1);
}

// https://github.com/kubernetes-sigs/inference-perf/issues/559
// https://github.com/gpustack/gpustack/issues/6205
#[test]
fn inference_perf_559_reasoning_has_two_names_and_a_channel_of_its_own() {
    let reading = stream(&[
        role(),
        delta(r#"{"reasoning_content":"x"}"#),
        delta(r#"{"reasoning":"y","content":""}"#),
        delta(r#"{"reasoning_content":"","reasoning":"z","content":"a"}"#),
        delta(r#"{"reasoning_content":null,"content":"b"}"#),
        done(),
    ]);
    assert_eq!(
        reading.answer.content,
        events(&[
            (20, Channel::Reasoning),
            (30, Channel::Reasoning),
            (40, Channel::ReasoningAndText),
            (50, Channel::Text)
        ])
    );
    assert_eq!((reading.answer.reasoning.as_str(), reading.answer.text.as_str()), ("xyz", "ab"));
    assert_eq!(reading.answer.transcript.as_deref(), Some("xyzab"));

    let only = stream(&[delta(r#"{"reasoning_content":"x"}"#), done()]);
    assert_eq!(only.error, None);
    assert_eq!(only.answer.content, events(&[(10, Channel::Reasoning)]));
}

#[test]
fn tool_calls_are_output_with_the_text_beside_them() {
    let reading = stream(&[
        role(),
        delta(
            r#"{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"","arguments":""}}]}"#,
        ),
        delta(
            r#"{"tool_calls":[{"index":0,"function":{"name":"look","arguments":"{\"q\":"}},{"index":1,"function":{"name":"go"}}]}"#,
        ),
        delta(r#"{"content":"so ","tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}"#),
        delta(r#"{"function_call":{"name":"old","arguments":"()"}}"#),
        finish("tool_calls"),
    ]);
    assert_eq!(
        reading.answer.content,
        events(&[(30, Channel::ToolCall), (40, Channel::ToolCall), (50, Channel::ToolCall)])
    );
    assert_eq!(reading.answer.text, "look{\"q\":goso 1}old()");
    assert_eq!(reading.answer.finish_reason.as_deref(), Some("tool_calls"));
}

#[test]
fn a_refusal_is_output() {
    let reading = stream(&[role(), delta(r#"{"refusal":"no"}"#), delta(r#"{"refusal":null}"#), done()]);
    assert_eq!(reading.error, None);
    assert_eq!(reading.answer.content, events(&[(20, Channel::Text)]));
    assert_eq!(reading.answer.text, "no");
}

#[test]
fn events_of_one_read_share_its_instant_and_are_counted() {
    let chunk = |text: &str| delta(&format!(r#"{{"content":"{text}"}}"#));
    let first = [role(), chunk("a"), chunk("b"), chunk("c")].concat();
    let second = chunk("d") + "data: {\"object\":\"chat.comp";
    let third = "letion.chunk\",\"choices\":[{\"delta\":{\"content\":\"e\"}}]}\n\n".to_owned() + &done();
    let reading = read(&chat(), &[(&first, 5), (&second, 6), (&third, 7)]);
    assert_eq!(reading.answer.content.iter().map(|event| event.at.0).collect::<Vec<_>>(), [5, 5, 5, 6, 7]);
    assert_eq!(reading.answer.coalesced_events, 2);
    assert_eq!(reading.answer.text, "abcde");
}

// https://github.com/vercel/ai/issues/20574
// https://github.com/triton-inference-server/triton_distributed/pull/264
#[test]
fn vercel_ai_20574_heartbeats_and_forwarded_comments_are_skipped_and_counted() {
    let reading = stream(&[
        ": keep-alive\n\n".to_owned(),
        "event: heartbeat\ndata: not json at all\n\n".to_owned(),
        "event: message\n".to_owned() + &delta(r#"{"content":"a"}"#),
        "data:\n\n".to_owned(),
        "data: : forwarded\n\n".to_owned(),
        delta(r#"{"content":"b"}"#),
        ": bye\n\n".to_owned(),
    ]);
    assert_eq!(reading.error, None);
    assert_eq!(reading.answer.content, events(&[(30, Channel::Text), (60, Channel::Text)]));
    assert_eq!(reading.answer.skipped_events, 3);
    assert_eq!(reading.answer.last_event, Some(Mono(60)), "comments are no events");
}

// https://github.com/vllm-project/guidellm/issues/743
#[test]
fn guidellm_743_an_error_in_a_stream_fails_the_request() {
    let tokens = [delta(r#"{"content":"a"}"#), delta(r#"{"content":"b"}"#)];
    let with = |event: &str| {
        let mut list = tokens.to_vec();
        list.extend([event.to_owned(), delta(r#"{"content":"late"}"#), done()]);
        let reading = stream(&list);
        assert_eq!(reading.answer.text, "ab", "what came before is kept, what comes after is not");
        assert_eq!(reading.answer.last_event, Some(Mono(30)));
        reading
    };
    let data = |json: &str| raw_event(json);
    let full = with(&data(r#"{"error":{"message":"engine \"died\"","type":"internal","code":503}}"#));
    assert_eq!(error(&full), (Some(503), "internal", "engine \"died\""));
    let gateway =
        with(&data(r#"{"error": {"message": "gone", "type": null, "param": null, "code": "500"}}"#));
    assert_eq!(error(&gateway), (Some(500), "StreamError", "gone"));
    let text = with(&data(r#"{"error":"out of memory"}"#));
    assert_eq!(error(&text), (None, "StreamError", "out of memory"));
    let bare = with(&data(r#"{"choices":[{"delta":{"content":"c"}}],"error":{"code":"x","detail":1}}"#));
    assert_eq!(error(&bare), (None, "StreamError", r#"{"code":"x","detail":1}"#));
    let object = with(&data(r#"{"object":"error","message":"bad","type":"BadRequestError","code":400}"#));
    assert_eq!(error(&object), (Some(400), "BadRequestError", "bad"));
    let event = with("event: error\n: engine died\ndata: {\"x\":1}\n\n");
    assert_eq!(error(&event), (Some(502), "SSEResponseError", "engine died"));
    let event = with("event: error\ndata: {\"error\":{\"message\":\"inner\"}}\n\n");
    assert_eq!(error(&event), (Some(502), "SSEResponseError", "inner"));
    let event = with("event: error\ndata: {\"message\":\"queue full\",\"code\":429}\n\n");
    assert_eq!(error(&event), (Some(502), "SSEResponseError", "queue full"));
    assert_eq!(event.error.unwrap().cause.as_deref(), Some("code 429 in the event"));
    let event = with("event: error\ndata: plain text\n\n");
    assert_eq!(error(&event), (Some(502), "SSEResponseError", "plain text"));
    for harmless in ["null", "false", "\"\"", "0"] {
        let list = [tokens[0].clone(), raw_event(&format!(r#"{{"choices":[],"error":{harmless}}}"#)), done()];
        assert_eq!(stream(&list).error, None);
    }
}

// https://github.com/triton-inference-server/perf_analyzer/issues/440
#[test]
fn perf_analyzer_440_an_event_that_is_not_json_fails_the_request_and_is_kept() {
    for broken in [
        r#"{"id": "broken", "choices": ["#,
        r#"{"choices":[{"delta":{"content":"a"}}]}}"#,
        "<html>502 Bad Gateway</html>",
        "{\"a\":\"\u{1}\"}",
        r#"{"a":tru}"#,
        r#"{"a":01}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":1,}"#,
        r#"{"choices":[{"delta":{"content":"a"}},]}"#,
        "[done]",
    ] {
        let plan = ReadPlan { keep_raw: true, ..chat() };
        let (good, bad) = (delta(r#"{"content":"a"}"#), raw_event(broken));
        let reading = read(&plan, &[(&good, 1), (&bad, 2), (&good, 3)]);
        let (code, kind, message) = error(&reading);
        assert_eq!((code, kind), (None, "MalformedResponseError"), "{broken}");
        assert!(message.contains(broken), "{message}");
        assert!(reading.error.as_ref().unwrap().cause.is_some());
        let Some(RawResponse::Events(raw)) = reading.answer.raw else { panic!("events") };
        assert_eq!(raw.len(), 3);
        assert_eq!(raw[1].packets[0].value, broken);
        assert_eq!(reading.answer.content.len(), 1);
    }
    let long = raw_event(&format!("é{}", "x".repeat(9000)));
    let message = stream(&[long]).error.unwrap().message;
    assert_eq!(message.chars().count(), 4096);
}

#[test]
fn what_follows_the_end_marker_is_ignored() {
    let reading = stream(&[
        delta(r#"{"content":"a"}"#),
        "data: [DONE] \n\n".to_owned(),
        delta(r#"{"content":"b"}"#),
        raw_event("junk"),
        raw_event(r#"{"error":"late"}"#),
    ]);
    assert_eq!(reading.error, None);
    assert_eq!(reading.answer.text, "a");
    assert_eq!(reading.answer.last_event, Some(Mono(20)));
}

#[test]
fn a_clean_end_without_marker_or_reason_is_a_success_that_says_so() {
    let reading = stream(&[delta(r#"{"content":"a"}"#)]);
    assert_eq!(reading.error, None);
    assert_eq!(reading.answer.stream_complete, Some(false));
    let reading = stream(&[delta(r#"{"content":"a"}"#), finish("stop")]);
    assert_eq!(reading.answer.stream_complete, Some(true));
}

#[test]
fn a_cut_socket_delivers_no_half_event() {
    let mut reader = Reader::new(&chat(), "text/event-stream");
    reader.push(delta(r#"{"content":"a"}"#).as_bytes(), Mono(1));
    assert_eq!(reader.first_content(), Some(Mono(1)));
    reader.push(b"data: {\"object\":\"chat.completion.chunk\",\"choi", Mono(2));
    let reading = reader.abort(Mono(3));
    assert_eq!(reading.error, None, "the caller knows what broke");
    assert_eq!(reading.answer.content, events(&[(1, Channel::Text)]));
    assert_eq!(reading.answer.stream_complete, Some(false));
}

#[test]
fn a_last_event_without_blank_line_has_the_instant_of_its_last_read() {
    let (one, two) = (delta(r#"{"content":"a"}"#), delta(r#"{"content":"b"}"#));
    let reading = read(&chat(), &[(&one, 1), (two.trim_end(), 2)]);
    assert_eq!(reading.answer.content, events(&[(1, Channel::Text), (2, Channel::Text)]));
}

#[test]
fn every_choice_counts_for_text_and_only_choice_0_is_replayed() {
    let plan = ReadPlan { keep_history: true, ..chat() };
    let two = raw_event(
        r#"{"object":"chat.completion.chunk","choices":[{"index":1,"delta":{"content":"B"}},{"index":0,"delta":{"content":"A"}}]}"#,
    );
    let one = raw_event(
        r#"{"object":"chat.completion.chunk","choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"}]}"#,
    );
    let zero = raw_event(
        r#"{"object":"chat.completion.chunk","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
    );
    let reading = read(&plan, &[(&one, 1), (&two, 2), (&zero, 3), (&one, 4)]);
    assert_eq!(reading.answer.content.len(), 4);
    assert_eq!(reading.answer.text, "AabBb");
    assert_eq!(reading.answer.transcript.as_deref(), Some("Aa"));
    assert_eq!(reading.answer.finish_reason.as_deref(), Some("stop"));
    assert_eq!(reading.reply.unwrap().message(), br#"{"role":"assistant","content":"Aa"}"#);
}

#[test]
fn the_last_usage_that_is_not_empty_wins() {
    let reading = stream(&[
        delta(r#"{"content":"a"}"#),
        usage(r#"{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":7}}"#),
        usage(r#"{"prompt_tokens":2,"completion_tokens":0}"#),
        usage("{}"),
        usage("null"),
    ]);
    let usage = reading.answer.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(2), Some(0)), "0 is a value");
    assert_eq!(usage.prompt_cache_read_tokens, None, "fields are not merged over events");
    assert_eq!(reading.answer.first_chunk_completion_tokens, None);
}

#[test]
fn usage_of_the_first_content_event_is_kept_apart() {
    let chunk = |text: &str, tokens: u64| {
        raw_event(&format!(
            r#"{{"object":"chat.completion.chunk","choices":[{{"delta":{{"content":"{text}"}}}}],"usage":{{"completion_tokens":{tokens}}}}}"#
        ))
    };
    let reading = stream(&[chunk("", 0), chunk("abc", 3), chunk("d", 4)]);
    assert_eq!(reading.answer.first_chunk_completion_tokens, Some(3));
    assert_eq!(reading.answer.usage.unwrap().completion_tokens, Some(4));
}

#[test]
fn speculative_decoding_counts_when_exactly_one_event_has_it() {
    let spec = |json: &str| {
        raw_event(&format!(
            r#"{{"object":"chat.completion.chunk","choices":[],"metrics":{{"speculative_decoding":{json}}}}}"#
        ))
    };
    let good = r#"{"num_spec_tokens":1,"acceptance_histogram":[2,3],"num_spec_steps":5,"num_draft_tokens":5,"num_accepted_draft_tokens":3}"#;
    let text = delta(r#"{"content":"a"}"#);
    let reading = stream(&[text.clone(), spec(good)]);
    let found = reading.answer.spec_decode.unwrap();
    assert_eq!((found.acceptance_histogram, found.num_spec_steps), (vec![2, 3], 5));
    assert_eq!(found.raw.as_deref(), Some(good));
    assert_eq!(stream(&[text.clone(), spec(good), spec(good)]).answer.spec_decode, None);
    assert_eq!(stream(&[text.clone(), spec(r#"{"num_spec_steps":5}"#)]).answer.spec_decode, None);
    for bad in [
        r#"{"num_spec_tokens":2,"acceptance_histogram":[2,3],"num_spec_steps":5}"#,
        r#"{"acceptance_histogram":[2,"3"],"num_spec_steps":5}"#,
        r#"{"acceptance_histogram":{"0":1},"num_spec_steps":5}"#,
        r#"{"acceptance_histogram":[1],"num_spec_steps":null}"#,
    ] {
        let reading = stream(&[text.clone(), spec(bad)]);
        assert!(reading.answer.spec_decode.is_none() && reading.bad_spec_decode, "{bad}");
    }
}

#[test]
fn gateways_that_omit_the_object_are_read() {
    let reading = stream(&[
        raw_event(r#"{"choices":[{"delta":{"content":"a"}}]}"#),
        raw_event(r#"{"object":null,"choices":[{"delta":{"content":"b"}}]}"#),
    ]);
    assert_eq!(reading.answer.text, "ab");
    let body = r#"{"choices":[{"text":"t"}]}"#;
    assert_eq!(whole(&ReadPlan::new(EndpointKind::Completions, false), body).answer.text, "t");
}

#[test]
fn completions_are_read_from_streams_and_bodies() {
    let plan = ReadPlan::new(EndpointKind::Completions, true);
    let chunk = |text: &str| {
        raw_event(&format!(
            r#"{{"object":"text_completion","choices":[{{"index":0,"text":"{text}","finish_reason":null}}]}}"#
        ))
    };
    let (one, two, three) = (chunk("a"), chunk(""), chunk("b"));
    let reading = read(&plan, &[(&one, 1), (&two, 2), (&three, 3)]);
    assert_eq!(reading.answer.content, events(&[(1, Channel::Text), (3, Channel::Text)]));
    let body = r#"{"object":"completion","choices":[{"text":"x"},{"text":"y"}]}"#;
    assert_eq!(whole(&plan, body).answer.text, "xy");
    let chat = r#"{"object":"chat.completion","choices":[{"message":{"content":"x"},"text":"t"}]}"#;
    assert_eq!(error(&whole(&plan, chat)).1, "InvalidInferenceResultError");
}

#[test]
fn a_whole_answer_to_a_streaming_request_is_read_and_marked() {
    let body = r#" {"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi","reasoning_content":"hm"},"finish_reason":"stop"}],"usage":{"completion_tokens":2}} "#;
    let reading = whole(&chat(), body);
    assert_eq!(reading.error, None);
    let answer = reading.answer;
    assert_eq!(answer.content, events(&[(7, Channel::ReasoningAndText)]));
    assert_eq!((answer.last_event, answer.stream_complete), (Some(Mono(7)), None));
    assert!(answer.not_streamed);
    assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), ("hi", "hm"));
    assert!(!whole(&ReadPlan::new(EndpointKind::Chat, false), body).answer.not_streamed);
}

#[test]
fn whole_bodies_fail_as_events_do() {
    let plan = ReadPlan::new(EndpointKind::Chat, false);
    assert_eq!(
        error(&whole(&plan, r#"{"error":{"message":"no","type":"t","code":1}}"#)),
        (Some(1), "t", "no")
    );
    assert_eq!(error(&whole(&plan, "<html>")).1, "MalformedResponseError");
    for body in
        ["", "  ", "{}", "[]", r#"{"object":"chat.completion","choices":[{"message":{"content":""}}]}"#]
    {
        assert_eq!(error(&whole(&plan, body)).1, "InvalidInferenceResultError", "{body:?}");
    }
}

#[test]
fn embeddings_are_checked_by_shape() {
    let plan = ReadPlan::new(EndpointKind::Embeddings, false);
    let body = |data: &str| format!(r#"{{"object":"list","data":{data},"usage":{{"prompt_tokens":3}}}}"#);
    for good in [
        r#"[{"object":"embedding","embedding":[0.5,-1e-3,2]}]"#,
        r#"[{"object":"embedding","embedding":"AACAPw=="},{"embedding":"AAA\/","object":"embedding"}]"#,
    ] {
        let reading = whole(&plan, &body(good));
        assert_eq!(reading.error, None, "{good}");
        assert_eq!(reading.answer.content, events(&[(7, Channel::Object)]));
        assert_eq!(reading.answer.usage.unwrap().prompt_tokens, Some(3));
    }
    for bad in [
        "[]",
        "null",
        "{}",
        r#"[{"embedding":[1]}]"#,
        r#"[{"object":"embedding","embedding":[]}]"#,
        r#"[{"object":"embedding","embedding":[1,null]}]"#,
        r#"[{"object":"embedding","embedding":""}]"#,
        r#"[{"object":"embedding","embedding":"not base64!"}]"#,
        r#"[{"object":"embedding","embedding":[1]},{"object":"other","embedding":[1]}]"#,
    ] {
        assert_eq!(error(&whole(&plan, &body(bad))).1, "InvalidInferenceResultError", "{bad}");
    }
}

#[test]
fn rankings_are_checked_by_shape() {
    for kind in EndpointKind::ALL.into_iter().filter(|kind| kind.ranks()) {
        let plan = ReadPlan::new(kind, false);
        for good in [
            r#"{"id":"r","results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":-1e-3}]}"#,
            r#"[{"index":0,"score":0.5,"text":"x"}]"#,
            r#"{"rankings":[{"index":0,"logit":-4.1}],"usage":{"prompt_tokens":7}}"#,
        ] {
            let reading = whole(&plan, good);
            assert_eq!(reading.error, None, "{good}");
            assert_eq!(reading.answer.content, events(&[(7, Channel::Object)]));
            let tokens = reading.answer.usage.and_then(|usage| usage.prompt_tokens);
            assert_eq!(tokens, good.contains("usage").then_some(7));
        }
        for bad in [
            "[]",
            "{}",
            "7",
            r#"{"results":[]}"#,
            r#"{"results":{"index":0}}"#,
            r#"{"rankings":[{"index":0}]}"#,
            r#"[{"score":0.5}]"#,
            r#"[{"index":"0","score":0.5}]"#,
            r#"[{"index":0,"score":0.5},{}]"#,
            r#"[[{"index":0,"score":0.5}]]"#,
        ] {
            assert_eq!(error(&whole(&plan, bad)).1, "InvalidInferenceResultError", "{bad}");
        }
        assert_eq!(error(&whole(&plan, r#"[{"index":0,"score":0.5}] x"#)).1, "MalformedResponseError");
        assert_eq!(error(&whole(&plan, r#"{"error":"model is loading","results":[]}"#)).0, None);
    }
}

#[test]
fn the_type_of_the_answer_decides_how_it_is_read() {
    let event = delta(r#"{"content":"a"}"#);
    for content_type in ["Text/Event-Stream; charset=utf-8", "text/event-stream"] {
        let mut reader = Reader::new(&ReadPlan::new(EndpointKind::Chat, false), content_type);
        reader.push(event.as_bytes(), Mono(1));
        assert_eq!(reader.finish(Mono(2)).answer.stream_complete, Some(false));
    }
    let mut reader = Reader::new(&chat(), "image/png");
    reader.push(b"\x89PNG", Mono(1));
    assert_eq!(error(&reader.finish(Mono(2))).1, "InvalidInferenceResultError");
}

#[test]
fn text_is_unescaped_and_invalid_bytes_are_replaced() {
    let mut reader = Reader::new(&chat(), "text/event-stream");
    for content in [&br#"\u00e9\n\"\\\/\ud83d\ude00|\ud83d|\ude00x"#[..], b"\xffy", "é\u{2028}".as_bytes()] {
        let event = [b"data: {\"choices\":[{\"delta\":{\"content\":\"", content, b"\"}}]}\n\n"].concat();
        reader.push(&event, Mono(1));
    }
    let text = reader.finish(Mono(2)).answer.text;
    assert_eq!(text, "é\n\"\\/\u{1F600}|\u{fffd}|\u{fffd}x\u{fffd}yé\u{2028}");
}

#[test]
fn of_a_key_that_occurs_twice_the_last_one_counts() {
    let reading = stream(&[raw_event(
        r#"{"choices":[{"delta":{"content":"no"}}],"error":"no","choices":[{"delta":{"content":"x","cont\u0065nt":"yes"},"finish_reason":"no","finish_reason":null}],"error":null}"#,
    )]);
    assert_eq!(reading.error, None);
    assert_eq!(reading.answer.text, "yes");
    assert_eq!(reading.answer.finish_reason, None);
}

#[test]
fn an_event_over_16_mib_fails_the_request() {
    let mut reader = Reader::new(&chat(), "text/event-stream");
    let block = vec![b'x'; 1 << 20];
    for at in 0..18 {
        reader.push(&block, Mono(at));
    }
    assert!(reader.has_failed());
    assert_eq!(error(&reader.finish(Mono(20))).1, "ClientPayloadError");
}

#[test]
fn a_reader_is_small() {
    assert!(size_of::<Reader>() < 400, "{}", size_of::<Reader>());
    let mut reader = Reader::new(&ReadPlan::new(EndpointKind::Chat, true), "text/event-stream");
    for at in 0..100 {
        reader.push(delta(r#"{"content":" hello"}"#).as_bytes(), Mono(at * 10_000_000));
    }
    assert!(reader.held() < 2048, "{}", reader.held());
}

#[test]
fn text_that_nobody_needs_is_dropped_and_everything_else_stays() {
    let reasoning = delta(r#"{"reasoning_content":"hm"}"#);
    let call =
        r#"{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let mut all = vec![role(), reasoning];
    all.extend((0..400).map(|_| delta(r#"{"content":"twenty letters or so"}"#)));
    all.extend([
        delta(call),
        finish("stop"),
        usage(r#"{"prompt_tokens":3,"completion_tokens":403}"#),
        done(),
    ]);
    let read = |plan: ReadPlan| {
        let mut reader = Reader::new(&plan, "text/event-stream");
        for (at, event) in (1..).zip(&all) {
            reader.push(event.as_bytes(), Mono(at));
        }
        (reader.held(), reader.finish(Mono(1_000)))
    };
    let kept = ReadPlan::new(EndpointKind::Chat, true);
    let dropped = ReadPlan { keep_text: false, ..kept };
    let (held_with, with) = read(kept);
    let (held_without, without) = read(dropped);
    assert_eq!((without.answer.text.as_str(), without.answer.reasoning.as_str()), ("", ""));
    assert_eq!((with.answer.text.len(), with.answer.reasoning.as_str()), (400 * 20 + 3, "hm"));
    assert!(held_with - held_without >= 8_000, "{held_with} and {held_without} bytes");
    assert_eq!(without.answer.content, with.answer.content);
    assert_eq!(without.answer.content.len(), 402);
    assert_eq!(without.answer.usage, with.answer.usage);
    assert_eq!((without.error, without.answer.stream_complete), (None, Some(true)));
    // The next turn of a conversation repeats the answer all the same.
    let (_, going_on) = read(ReadPlan { keep_history: true, ..dropped });
    let message = going_on.reply.unwrap();
    assert!(message.message().len() > 8_000);
}

/// Some servers send `content` as the list of parts that requests have.
#[test]
fn content_that_is_a_list_of_parts_is_read() {
    let reading = stream(&[
        delta(r#"{"role":"assistant","content":[]}"#),
        delta(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}"#),
        delta(r#"{"content":[{"type":"text","text":"a\n"}]}"#),
        delta(
            r#"{"content":[{"type":"text","text":"b"},{"type":"refusal","refusal":"c"},{"type":"image_url"},7]}"#,
        ),
        delta(r#"{"content":"d"}"#),
        delta(r#"{"content":[{"type":"text","text":"e"}]}"#),
        finish("stop"),
        done(),
    ]);
    assert_eq!(reading.error, None);
    let answer = reading.answer;
    assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), ("a\nbcde", "hm"));
    let channels: Vec<(u64, Channel)> =
        answer.content.iter().map(|event| (event.at.0, event.channel)).collect();
    let text = |at| (at, Channel::Text);
    assert_eq!(channels, [(20, Channel::Reasoning), text(30), text(40), text(50), text(60)]);

    let body = r#"{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":
        [{"type":"thinking","thinking":"x"},{"type":"text","text":"one"},{"type":"text","text":" two"}]}}]}"#;
    let reading = whole(&chat(), body);
    assert_eq!((reading.answer.text.as_str(), reading.answer.reasoning.as_str()), ("one two", "x"));
    assert_eq!(reading.answer.content[0].channel, Channel::ReasoningAndText);
}

#[test]
fn a_stream_that_is_called_something_else_is_told_from_what_is_not_json() {
    let message = |content_type: &str, body: &str| {
        let mut reader = Reader::new(&chat(), content_type);
        reader.push(body.as_bytes(), Mono(1));
        reader.finish(Mono(2)).error.unwrap().message
    };
    let body = delta(r#"{"content":"a"}"#) + &done();
    assert_eq!(
        message("text/plain; charset=utf-8", &body),
        "the answer is an event stream, but its Content-Type is text/plain; charset=utf-8: the server, or a proxy before \
         it, must send text/event-stream"
    );
    assert!(message("", &format!(": hello\n{body}")).contains("an event stream, but has no Content-Type"));
    assert_eq!(message("text/html", "<html>"), "not JSON: <html>");
    assert!(message("application/json", "data: x").contains("but its Content-Type is application/json"));
}

#[test]
fn an_answer_without_a_body_is_not_said_to_have_had_roles() {
    let reading = whole(&chat(), " \n");
    assert_eq!(error(&reading).2, "no content in the answer: its body is empty");
    let reading = Reader::new(&chat(), "text/event-stream").finish(Mono(1));
    assert_eq!(error(&reading).2, "no content in the answer: its body is empty");
    let reading = whole(&chat(), r#"{"object":"list"}"#);
    assert_eq!(
        error(&reading).2,
        "no content in the answer: nothing in it is output of --endpoint-type chat (roles, usage and end markers are not)"
    );
}
