//! Recorded answers of the reference, byte by byte through everything that makes a record: reader, tokenizer, formulas.

use std::collections::BTreeMap;
use std::path::Path;

use aiperf_clock::Mono;
use aiperf_config::{EndpointConfig, Target};
use aiperf_endpoint::{Format, History};
use aiperf_metrics::{Context, Metric, RecordValues, Value, evaluate};
use aiperf_report::{Level, Redactor, Screen};
use aiperf_types::{Content, Conversation, HttpTrace, Identity, PhaseKind, PlanInstants, RequestFacts, Turn};
use serde_json::Value as Json;

use super::*;

/// What a recorded run was asked for.
struct Case {
    name: &'static str,
    kind: EndpointKind,
    streaming: bool,
    server_counts: bool,
    context: Context,
}

fn cases() -> Vec<Case> {
    let chat = |name| Case {
        name,
        kind: EndpointKind::Chat,
        streaming: true,
        server_counts: false,
        context: Context::default(),
    };
    let whole = Context { streaming: false, ..Context::default() };
    let vectors =
        Context { produces_tokens: false, takes_images: false, takes_audio: false, ..whole.clone() };
    let counted = Context { server_token_counts: true, per_chunk_usage: true, ..Context::default() };
    let developer = Context {
        network_rtt_ms: Some(5.0),
        show_internal: true,
        show_experimental: true,
        ..Context::default()
    };
    vec![
        chat("chat_streaming"),
        Case { streaming: false, context: whole, ..chat("chat_nonstreaming") },
        Case { kind: EndpointKind::Completions, ..chat("completions_streaming") },
        Case { kind: EndpointKind::Embeddings, streaming: false, context: vectors, ..chat("embeddings") },
        chat("errors_mix"),
        chat("reasoning"),
        chat("multi_turn"),
        chat("goodput_slices"),
        Case { server_counts: true, context: counted, ..chat("server_tokens_spec") },
        Case { context: developer, ..chat("cancel_dev") },
    ]
}

fn lines(case: &str, file: &str) -> Vec<Json> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../metrics/tests/data").join(case).join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The bytes of an answer and when they came, as its fields were recorded.
fn received(raw: &Json) -> Received {
    let responses = raw["responses"].as_array().unwrap();
    let mut bytes = ReceivedBytes { content_type: "text/event-stream".into(), ..ReceivedBytes::default() };
    for response in responses {
        if let Some(text) = response["text"].as_str() {
            bytes.content_type = response["content_type"].as_str().unwrap().into();
            bytes.data.extend_from_slice(text.as_bytes());
        }
        for packet in response["packets"].as_array().into_iter().flatten() {
            let name = packet["name"].as_str().filter(|name| *name != "comment").unwrap_or_default();
            bytes
                .data
                .extend_from_slice(format!("{name}: {}\n", packet["value"].as_str().unwrap()).as_bytes());
        }
        if response["packets"].is_array() {
            bytes.data.push(b'\n');
        }
        let (end, at) = (bytes.data.len() as u32, Mono(response["perf_ns"].as_u64().unwrap()));
        match bytes.reads.last_mut() {
            Some(last) if last.1 == at => last.0 = end,
            _ => bytes.reads.push((end, at)),
        }
    }
    if responses.is_empty() { Received::Nothing } else { Received::Bytes(Box::new(bytes)) }
}

/// What the transport makes of a request, given what was sent and what came back.
fn exchange(case: &Case, raw: &Json) -> Exchange {
    let format = Format::new(
        &EndpointConfig {
            streaming: case.streaming,
            ..EndpointConfig::new(case.kind, Target::Mock("mock://".into()))
        },
        "mock-model",
    );
    let payload = serde_json::value::to_raw_value(&raw["payload"]).unwrap();
    let turn = Turn { content: Content::Payload(payload), ..Turn::default() };
    let conversation = Conversation { turns: vec![turn], ..Conversation::default() };
    let request = format.render(&conversation, 0, &History::default());
    let start = Mono(raw["start_perf_ns"].as_u64().unwrap());
    let received = received(raw);
    let last = match &received {
        Received::Bytes(bytes) => bytes.reads.last().map_or(start, |(_, at)| *at),
        _ => start,
    };
    // What the answer says is for the reader to find; these are found before it, or in an event that was not recorded.
    let given =
        ["Internal Server Error", "ClientPayloadError", "RequestCancellationError", "SSEResponseError"];
    let failure = raw.get("error").filter(|error| given.iter().any(|kind| error["type"] == *kind));
    Exchange {
        identity: Identity {
            number: raw["metadata"]["session_num"].as_u64().unwrap(),
            request_id: [b'0'; 36],
            correlation_id: "c".into(),
            conversation_id: "s".into(),
            turn_index: 0,
            phase: PhaseKind::Profiling,
            phase_index: 0,
            worker: 0,
            lineage: None,
            source: None,
        },
        plan: PlanInstants { due: start, let_go: start, issued: start, ..PlanInstants::default() },
        start,
        headers: None,
        end: last,
        trace: HttpTrace::default(),
        status: raw["status"].as_u64().map(|status| status as u16),
        request: RequestFacts {
            texts: request.texts.clone(),
            max_tokens: request.max_tokens,
            ..RequestFacts::default()
        },
        template_input: None,
        received,
        failure: failure.map(|error| {
            let text = |key: &str| error[key].as_str().unwrap_or_default();
            RequestError::new(error["code"].as_i64(), text("type"), text("message"))
        }),
        cancelled_at: None,
        client_delayed: false,
    }
}

/// Measured on the wire or from the issue, which raw records do not have; or against a goal that was set.
fn is_elsewhere(tag: &str) -> bool {
    tag.starts_with("http_req_") || ["stream_", "credit_", "good_"].iter().any(|start| tag.starts_with(start))
}

fn recorder(case: &Case) -> Recorder {
    Recorder {
        kind: case.kind,
        plan: ReadPlan::new(case.kind, case.streaming),
        tokenizer: Some(Tokenizer::builtin()),
        template: None,
        server_token_counts: case.server_counts,
        per_chunk_usage: case.context.per_chunk_usage,
        once: Once::default(),
        log: Arc::new(Log::on_screen(
            Level::from_number(7),
            Arc::new(Screen::new(Box::new(std::io::sink()), false, aiperf_report::Palette::plain())),
            Redactor::of([]),
        )),
    }
}

#[test]
fn an_answer_whose_encoding_cannot_be_undone_is_told_by_its_name() {
    let read = |encoding: &str, content_type: &str, body: &[u8]| {
        let bytes = ReceivedBytes {
            content_type: content_type.into(),
            content_encoding: encoding.into(),
            data: body.to_vec(),
            reads: vec![(body.len() as u32, Mono(1))],
            ..ReceivedBytes::default()
        };
        recorder(&cases()[0]).read(bytes, Mono(2)).error.unwrap()
    };
    for content_type in ["application/json", "text/event-stream"] {
        let error = read("br", content_type, b"\x1b\x03\0\xf8");
        assert_eq!(error.kind, "MalformedResponseError");
        assert!(error.message.starts_with("the answer is compressed (br), although"), "{}", error.message);
        for clear in ["identity", " Identity ", ""] {
            assert!(!read(clear, content_type, b"x").message.contains("compressed"));
        }
    }
    // What was sent in the clear says itself what is wrong.
    let error = read("utf-8", "application/json", br#"{"error":{"type":"queue_full","message":"later"}}"#);
    assert_eq!((&*error.kind, &*error.message), ("queue_full", "later"));
}

#[test]
fn recorded_answers_give_the_recorded_values_of_every_record() {
    for case in cases() {
        let recorder = recorder(&case);
        let lines_of_case = lines(case.name, "profile_export.jsonl");
        let mut values = RecordValues::new();
        let mut compared = 0;
        for raw in lines(case.name, "profile_export_raw.jsonl") {
            let id = &raw["metadata"]["x_request_id"];
            let line = lines_of_case.iter().find(|line| line["metadata"]["x_request_id"] == *id).unwrap();
            let record = recorder.record(exchange(&case, &raw));
            let what = format!("{} {}", case.name, record.identity.number);
            evaluate(&record, &case.context, &mut values);
            if case.name == "errors_mix" && matches!(record.identity.number, 2 | 3) {
                // Broken JSON and an error object inside the stream: the reference counts both as good.
                let error = record.error.unwrap();
                assert_eq!(
                    error.kind,
                    ["MalformedResponseError", "internal"][record.identity.number as usize - 2]
                );
                assert!(values.iter().map(|(metric, _)| metric).eq([Metric::ErrorIsl]));
                continue;
            }
            let error =
                (record.error.as_ref().map(|error| (error.code, error.kind.as_str())), &line["error"]);
            match error {
                (None, Json::Null) => {}
                (Some((code, kind)), theirs) => {
                    assert_eq!(
                        (code, Some(kind)),
                        (theirs["code"].as_i64(), theirs["type"].as_str()),
                        "{what}"
                    );
                }
                (None, theirs) => panic!("{what}: {theirs}"),
            }
            let mut theirs: BTreeMap<&str, &Json> = line["metrics"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(tag, value)| (tag.as_str(), &value["value"]))
                .filter(|(tag, _)| !is_elsewhere(tag))
                .collect();
            for (metric, value) in values.iter().filter(|(metric, _)| !is_elsewhere(metric.tag())) {
                let tag = metric.tag();
                let Some(expected) = theirs.remove(tag) else {
                    // The reference takes no usage from embeddings.
                    assert!(case.name == "embeddings" && tag.starts_with("usage_"), "{what}: {tag}");
                    continue;
                };
                let ours = match value {
                    Value::Int(value) => vec![value as f64],
                    Value::Float(value) => vec![value],
                    Value::List(list) => list.to_vec(),
                };
                let expected: Vec<f64> = match expected {
                    Json::Array(list) => list.iter().map(|value| value.as_f64().unwrap()).collect(),
                    value => vec![value.as_f64().unwrap()],
                };
                assert_eq!(ours.len(), expected.len(), "{what} {tag}");
                for (ours, expected) in ours.iter().zip(&expected) {
                    let differs = (ours - expected).abs() > 1e-9 * ours.abs().max(expected.abs());
                    assert!(!differs, "{what} {tag}: {ours} and {expected}");
                }
                compared += 1;
            }
            // Embeddings have no output that could have a length.
            theirs.retain(|tag, _| !(case.name == "embeddings" && *tag == "output_sequence_length"));
            assert!(theirs.is_empty(), "{what}: {theirs:?}");
        }
        assert!(compared >= 12, "{}: {compared}", case.name);
    }
}
