//! Recorded exchanges of the reference implementation: our reader sees the same events at the same instants, our
//! bodies are the same bytes.

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
use aiperf_endpoint::{Format, History, ReadPlan, Reader, Reading};
use aiperf_types::{Channel, Content, Conversation, RawResponse, TextGroup, Turn, Usage};
use common::{case, endpoint};
use serde_json::Value;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Frames the recorded fields as the server sent them and reads them; events of one instant come in one read.
fn replay(plan: &ReadPlan, record: &Value) -> Reading {
    let responses = record["responses"].as_array().unwrap();
    if let Some(text) = responses.first().and_then(|response| response["text"].as_str()) {
        let mut reader = Reader::new(plan, responses[0]["content_type"].as_str().unwrap());
        let at = number(&responses[0]["perf_ns"]);
        // Cut in two: a whole body is stamped when its last byte is read.
        reader.push(&text.as_bytes()[..9], Mono(at - 5));
        reader.push(&text.as_bytes()[9..], Mono(at));
        return reader.finish(Mono(at + 9));
    }
    let mut reads: Vec<(u64, String)> = Vec::new();
    for response in responses {
        let at = number(&response["perf_ns"]);
        let mut block = String::new();
        for packet in response["packets"].as_array().unwrap() {
            block +=
                &format!("{}: {}\n", packet["name"].as_str().unwrap(), packet["value"].as_str().unwrap());
        }
        block.push('\n');
        match reads.last_mut() {
            Some((last, bytes)) if *last == at => bytes.push_str(&block),
            _ => reads.push((at, block)),
        }
    }
    let mut reader = Reader::new(plan, "text/event-stream");
    for (at, bytes) in &reads {
        reader.push(bytes.as_bytes(), Mono(*at));
    }
    reader.finish(Mono(reads.last().map_or(0, |(at, _)| at + 1)))
}

fn usage_metric(usage: &Usage, name: &str) -> Option<u64> {
    match name {
        "usage_prompt_tokens" => usage.prompt_tokens,
        "usage_completion_tokens" => usage.completion_tokens,
        "usage_total_tokens" => usage.total_tokens,
        "usage_reasoning_tokens" => usage.reasoning_tokens,
        "usage_prompt_cache_read_tokens" => usage.prompt_cache_read_tokens,
        _ => None,
    }
}

#[track_caller]
fn close(ns: u64, ms: &Value, what: &str) {
    let expected = ms.as_f64().unwrap();
    assert!(
        (ns as f64 / 1e6 - expected).abs() <= 1e-9 * expected.abs().max(1.0),
        "{what}: {ns} ns, {expected} ms"
    );
}

/// Instants, text and usage must be what the recorded metrics were computed from.
fn agrees(record: &Value, reading: &Reading, streaming: bool) {
    let metrics = record["metrics"].as_object().unwrap();
    let answer = &reading.answer;
    let start = number(&record["start_ns"]);
    let since = |at: Mono| at.0 - start;
    let content = &answer.content;
    close(since(content[content.len() - 1].at), &metrics["request_latency"], "latency");
    if streaming {
        close(since(content[0].at), &metrics["time_to_first_token"], "first token");
        match metrics.get("time_to_second_token") {
            Some(gap) => close(content[1].at.0 - content[0].at.0, gap, "second token"),
            None => assert_eq!(content.len(), 1),
        }
        let output = content.iter().find(|event| event.channel != Channel::Reasoning);
        match (output, metrics.get("time_to_first_output_token")) {
            (Some(event), Some(expected)) => close(since(event.at), expected, "first output token"),
            (event, expected) => assert!(event.is_none() && expected.is_none()),
        }
        let gaps: Vec<u64> = content.windows(2).map(|pair| pair[1].at.0 - pair[0].at.0).collect();
        let none = Vec::new();
        let expected = metrics.get("inter_chunk_latency").and_then(Value::as_array).unwrap_or(&none);
        assert_eq!(gaps.len(), expected.len());
        gaps.iter().zip(expected).for_each(|(gap, expected)| close(*gap, expected, "gap"));
        assert_eq!(answer.stream_complete, Some(true));
        let shared = gaps.iter().filter(|gap| **gap == 0).count();
        assert_eq!(answer.coalesced_events as usize, shared);
    } else {
        assert_eq!(answer.stream_complete, None);
    }
    // The recorded server speaks one token a word.
    let words = |text: &str| text.split_whitespace().count() as u64;
    let calls = content.iter().any(|event| event.channel == Channel::ToolCall);
    if let (Some(tokens), false) = (metrics.get("output_token_count"), calls) {
        assert_eq!(words(&answer.text), number(tokens));
    }
    if let Some(tokens) = metrics.get("reasoning_token_count") {
        assert_eq!(words(&answer.reasoning), number(tokens));
    }
    for (name, value) in
        metrics.iter().filter(|(name, _)| name.starts_with("usage_") && !name.contains("diff"))
    {
        let usage = answer.usage.as_ref().unwrap();
        if let Some(count) = usage_metric(usage, name) {
            assert_eq!(count, number(value), "{name}");
        }
    }
    let raw = match answer.raw.as_ref().unwrap() {
        RawResponse::Events(events) => {
            let packets = |event: &aiperf_types::RawEvent| -> Vec<Value> {
                let packet = |packet: &aiperf_types::Packet| serde_json::json!({"name": packet.name, "value": packet.value});
                event.packets.iter().map(packet).collect()
            };
            let events = events.iter();
            events
                .map(|event| serde_json::json!({"perf_ns": event.at.0, "packets": packets(event)}))
                .collect()
        }
        RawResponse::Text { at, text, content_type } => {
            vec![serde_json::json!({"perf_ns": at.0, "text": text, "content_type": content_type})]
        }
    };
    assert_eq!(Value::Array(raw), record["responses"]);
}

fn plan(kind: EndpointKind, streaming: bool) -> ReadPlan {
    ReadPlan { keep_raw: true, keep_transcript: true, ..ReadPlan::new(kind, streaming) }
}

fn check(name: &str, kind: EndpointKind, streaming: bool) {
    let records = case(name);
    assert!(!records.is_empty());
    for (record, _) in records {
        let reading = replay(&plan(kind, streaming), &record);
        assert_eq!(reading.error, None);
        agrees(&record, &reading, streaming);
    }
}

#[test]
fn recorded_chat_streams_give_the_recorded_metrics() {
    check("chat_streaming", EndpointKind::Chat, true);
    check("multi_turn", EndpointKind::Chat, true);
    check("reasoning", EndpointKind::Chat, true);
}

#[test]
fn recorded_whole_bodies_give_the_recorded_metrics() {
    check("chat_nonstreaming", EndpointKind::Chat, false);
}

#[test]
fn recorded_completions_give_the_recorded_metrics() {
    check("completions_streaming", EndpointKind::Completions, true);
}

#[test]
fn recorded_embeddings_are_one_object_and_their_usage_is_read() {
    for (record, _) in case("embeddings") {
        let reading = replay(&plan(EndpointKind::Embeddings, false), &record);
        agrees(&record, &reading, false);
        assert_eq!(reading.answer.content.len(), 1);
        assert_eq!(reading.answer.content[0].channel, Channel::Object);
        assert_eq!(reading.answer.usage.unwrap().prompt_tokens, Some(32));
        assert_eq!(reading.answer.text, "");
    }
}

#[test]
fn recorded_speculative_decoding_and_chunk_usage_are_kept() {
    for ((record, _), first) in case("server_tokens_spec").into_iter().zip([4, 1]) {
        let reading = replay(&plan(EndpointKind::Chat, true), &record);
        assert_eq!(reading.error, None);
        let answer = &reading.answer;
        assert_eq!(answer.first_chunk_completion_tokens, Some(first));
        let usage = answer.usage.unwrap();
        assert_eq!((usage.completion_tokens, usage.prompt_cache_read_tokens), (Some(12), Some(8)));
        let spec = answer.spec_decode.clone().unwrap();
        let expected = &record["spec"];
        // The record leaves out empty buckets.
        let buckets = spec.acceptance_histogram.iter().enumerate().filter(|(_, steps)| **steps > 0);
        let histogram: Value =
            buckets.map(|(accepted, steps)| (accepted.to_string(), Value::from(*steps))).collect();
        assert_eq!(histogram, expected["acceptance_histogram"]);
        assert_eq!(spec.num_spec_steps, number(&expected["num_spec_steps"]));
        assert_eq!(spec.num_spec_tokens, expected["num_spec_tokens"].as_u64());
        assert_eq!(spec.draft_tokens, expected["num_draft_tokens"].as_u64());
        assert_eq!(spec.accepted_draft_tokens, expected["num_accepted_draft_tokens"].as_u64());
        assert_eq!(spec.mean_acceptance_length, expected["mean_acceptance_length"].as_f64());
        assert!(!reading.bad_spec_decode);
    }
}

#[test]
fn recorded_failures_fail_where_the_reference_counts_success() {
    let records = case("errors_mix");
    let readings: Vec<Reading> =
        records.iter().map(|(record, _)| replay(&plan(EndpointKind::Chat, true), record)).collect();
    let error = |index: usize| {
        let error = readings[index].error.as_ref().unwrap();
        (error.code, error.kind.as_str(), error.message.as_str())
    };
    for index in [0, 7, 8, 9] {
        assert_eq!(readings[index].error, None, "{index}");
        agrees(&records[index].0, &readings[index], true);
    }
    assert_eq!(error(2), (None, "MalformedResponseError", "not JSON: {\"id\": \"broken\", \"choices\": ["));
    assert_eq!(readings[2].answer.content.len(), 2);
    assert_eq!(error(3), (Some(503), "internal", "mock engine died"));
    assert_eq!(readings[3].answer.text, "hello hello");
    assert_eq!(error(5).1, "InvalidInferenceResultError");
    assert_eq!(readings[7].answer.text, "lookup{\"q\":\"hello\"}");
    assert_eq!(readings[7].answer.finish_reason.as_deref(), Some("stop"));
    // Request 6 broke off after two chunks: what came stands.
    assert_eq!(readings[6].answer.content.len(), 2);
    assert_eq!(readings[6].answer.stream_complete, Some(false));
}

/// A turn that would lead to `payload`.
fn turn_of(payload: &Value, kind: EndpointKind) -> Turn {
    let contents: Vec<std::sync::Arc<str>> = match kind {
        EndpointKind::Chat => {
            let messages = payload["messages"].as_array().unwrap();
            vec![messages[messages.len() - 1]["content"].as_str().unwrap().into()]
        }
        EndpointKind::Completions => vec![payload["prompt"].as_str().unwrap().into()],
        EndpointKind::Embeddings => {
            payload["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().into()).collect()
        }
        EndpointKind::CohereRankings | EndpointKind::HfTeiRankings | EndpointKind::NimRankings => {
            panic!("there is no recording of {kind:?}")
        }
    };
    let limit = payload.get("max_completion_tokens").or(payload.get("max_tokens"));
    Turn {
        content: Content::Parts { texts: vec![TextGroup { name: None, contents }], media: Vec::new() },
        max_tokens: limit.and_then(Value::as_u64),
        ..Turn::default()
    }
}

#[test]
fn bodies_equal_the_recorded_ones_byte_for_byte() {
    for (name, kind, streaming) in [
        ("chat_streaming", EndpointKind::Chat, true),
        ("chat_nonstreaming", EndpointKind::Chat, false),
        ("completions_streaming", EndpointKind::Completions, true),
        ("embeddings", EndpointKind::Embeddings, false),
        ("cancel_dev", EndpointKind::Chat, true),
        ("server_tokens_spec", EndpointKind::Chat, true),
    ] {
        let mut config = endpoint(kind, streaming);
        config.per_chunk_usage = name == "server_tokens_spec";
        let format = Format::new(&config, "mock-model");
        for (record, payload) in case(name) {
            let conversation = Conversation {
                id: record["conversation"].as_str().unwrap().into(),
                turns: vec![turn_of(&record["payload"], kind)],
                ..Conversation::default()
            };
            format.check(&conversation).unwrap();
            let rendered = format.render(&conversation, 0, &History::default());
            assert_eq!(String::from_utf8(rendered.body.to_bytes().to_vec()).unwrap(), payload, "{name}");
            assert_eq!(rendered.body.len(), payload.len());
            assert_eq!(rendered.streaming, streaming);
            if kind != EndpointKind::Embeddings {
                assert_eq!(rendered.max_tokens, conversation.turns[0].max_tokens);
            }
        }
    }
}

#[test]
fn recorded_conversations_repeat_turns_and_live_answers_byte_for_byte() {
    let records = case("multi_turn");
    let format = Format::new(&endpoint(EndpointKind::Chat, true), "mock-model");
    let read = ReadPlan { keep_history: true, ..plan(EndpointKind::Chat, true) };
    for id in ["session_000000", "session_000001"] {
        // The first record of each conversation is its warmup.
        let mine: Vec<_> =
            records.iter().filter(|(record, _)| record["conversation"] == id).skip(1).collect();
        let turns = mine.iter().map(|(record, _)| turn_of(&record["payload"], EndpointKind::Chat)).collect();
        let conversation = Conversation { id: id.into(), turns, ..Conversation::default() };
        let mut history = History::default();
        for (index, (record, payload)) in mine.iter().enumerate() {
            let rendered = format.render(&conversation, index, &history);
            assert_eq!(String::from_utf8(rendered.body.to_bytes().to_vec()).unwrap(), *payload);
            assert_eq!(rendered.body.segments().len(), index + 1, "earlier requests are shared, not copied");
            history.push_turn(&rendered);
            history.push_answer(&replay(&read, record).reply.unwrap());
            // Every word is one token, and so is each joining space before a text that begins with a space.
            let tokens: u64 = rendered.texts.iter().map(|text| text.tokens(count)).sum();
            assert_eq!(tokens, recorded_count(&record["payload"]), "turn {index}");
        }
    }
    let inputs =
        std::fs::read_to_string(format!("{}/tests/data/multi_turn_inputs.json", env!("CARGO_MANIFEST_DIR")));
    let inputs: Value = serde_json::from_str(&inputs.unwrap()).unwrap();
    for session in inputs["data"].as_array().unwrap() {
        let payloads = session["payloads"].as_array().unwrap();
        let turns = payloads.iter().map(|payload| turn_of(payload, EndpointKind::Chat)).collect();
        let conversation = Conversation { turns, ..Conversation::default() };
        for (index, payload) in payloads.iter().enumerate() {
            let body = format.render_alone(&conversation, index).to_bytes();
            assert_eq!(String::from_utf8(body.to_vec()).unwrap(), payload.to_string());
        }
    }
}

/// Words with the space before them are tokens, and so are spaces that no word takes.
fn count(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let word_starts = (0..bytes.len()).filter(|&at| bytes[at] != b' ' && (at == 0 || bytes[at - 1] == b' '));
    let spare = (1..bytes.len()).filter(|&at| bytes[at] == b' ' && bytes[at - 1] == b' ');
    (word_starts.count() + spare.count()) as u64
}

fn recorded_count(payload: &Value) -> u64 {
    let texts =
        payload["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap());
    count(&texts.collect::<Vec<_>>().join(" "))
}
