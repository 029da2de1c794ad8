//! Lines of published runs, written anew and compared with the published lines.
#![allow(clippy::unwrap_used, reason = "test code")]

mod support;

use aiperf_metrics::Context;
use aiperf_report::Redactor;
use aiperf_report::jsonl::{RawWriter, RecordWriter};
use aiperf_types::{Body, RequestError};
use serde_json::Value;
use support::{golden, keys, record_of};

const CASES: [&str; 7] = [
    "chat_streaming",
    "chat_nonstreaming",
    "errors_mix",
    "reasoning",
    "multi_turn",
    "server_tokens_spec",
    "cancel_dev",
];

fn lines(path: &str) -> Vec<Value> {
    golden(path).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn context(case: &str) -> Context {
    let is_dev = case == "cancel_dev";
    Context {
        streaming: case != "chat_nonstreaming",
        show_internal: is_dev,
        show_experimental: is_dev,
        ..Context::default()
    }
}

/// Ours beside the published: `(ours as text, published, raw)`.
fn rewritten(case: &str) -> Vec<(String, Value)> {
    let raw =
        if case == "cancel_dev" { Vec::new() } else { lines(&format!("{case}/profile_export_raw.jsonl")) };
    let published = lines(&format!("{case}/profile_export.jsonl"));
    published
        .into_iter()
        .map(|line| {
            let raw =
                raw.iter().find(|raw| raw["metadata"]["x_request_id"] == line["metadata"]["x_request_id"]);
            let (record, values, anchor) = record_of(&line, raw);
            let writer = RecordWriter::new(&context(case), case == "chat_streaming", Redactor::default(), 0);
            let mut out = Vec::new();
            writer.with_anchor(anchor).write(&record, &values, &mut out);
            let text = String::from_utf8(out).unwrap();
            assert!(text.ends_with("}\n") && text.matches('\n').count() == 1);
            (text, line)
        })
        .collect()
}

/// Published keys that ours has too, with the values that may differ made equal.
fn comparable(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    let object = metadata.as_object_mut().unwrap();
    for (key, text) in [("worker_id", "worker_0"), ("record_processor_id", "record_processor_0")] {
        object.insert(key.into(), text.into());
    }
    metadata
}

#[test]
fn record_lines_say_what_was_published_in_the_published_order() {
    for case in CASES {
        for (text, published) in rewritten(case) {
            let ours: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(keys(&ours), keys(&published), "{case}");
            let mut metadata = ours["metadata"].clone();
            let due = metadata.as_object_mut().unwrap().shift_remove("due_ns").unwrap();
            assert!(due.is_u64());
            let expected = comparable(&published["metadata"]);
            assert_eq!(
                serde_json::to_string(&metadata).unwrap(),
                serde_json::to_string(&expected).unwrap(),
                "{case}"
            );
            for (tag, metric) in published["metrics"].as_object().unwrap() {
                // Text equality: whole numbers stay whole, real ones keep their fraction.
                assert_eq!(ours["metrics"][tag].to_string(), metric.to_string(), "{case} {tag}");
            }
            assert_eq!(keys(&ours["metrics"]).len(), keys(&published["metrics"]).len(), "{case}");
            for key in ["error", "spec_decode_acceptance"] {
                assert_eq!(ours[key].to_string(), published[key].to_string(), "{case} {key}");
            }
        }
    }
}

#[test]
fn metrics_stand_in_the_order_of_the_registry() {
    let (text, _) = rewritten("chat_streaming").swap_remove(0);
    let ours: Value = serde_json::from_str(&text).unwrap();
    let places: Vec<usize> = keys(&ours["metrics"])
        .iter()
        .map(|tag| aiperf_metrics::registry::all().position(|def| def.tag == *tag).unwrap())
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn trace_data_has_the_published_keys_and_the_chunks_that_were_always_empty() {
    for (text, published) in rewritten("chat_streaming") {
        let ours: Value = serde_json::from_str(&text).unwrap();
        let (ours, published) = (&ours["trace_data"], &published["trace_data"]);
        assert_eq!(keys(ours), keys(published));
        for key in keys(published) {
            match key {
                "request_chunks" => assert_eq!(ours[key].as_array().unwrap().len(), 1),
                "response_chunks" => {
                    let chunks = ours[key].as_array().unwrap();
                    assert_eq!(chunks[1][1], 2_604);
                    assert!(chunks[0][0].as_u64() < chunks[1][0].as_u64());
                }
                // Published as second readings of the same events, or from before the connection was there (sending
                // starts with the first byte written).
                "connection_reused_ns" | "response_headers_received_ns" | "sending_ns" | "duration_ns" => {
                    assert!(ours[key].is_u64());
                }
                _ => assert_eq!(ours[key], published[key], "{key}"),
            }
        }
    }
}

#[test]
fn raw_lines_say_what_was_published_in_the_published_order() {
    for case in ["chat_streaming", "chat_nonstreaming", "errors_mix", "reasoning", "multi_turn"] {
        let records = lines(&format!("{case}/profile_export.jsonl"));
        for published in lines(&format!("{case}/profile_export_raw.jsonl")) {
            let id = &published["metadata"]["x_request_id"];
            let line = records.iter().find(|line| &line["metadata"]["x_request_id"] == id).unwrap();
            let (record, _, anchor) = record_of(line, Some(&published));
            let mut out = Vec::new();
            RawWriter::new(Redactor::default(), 0).with_anchor(anchor).write(&record, &mut out);
            let mut ours: Value = serde_json::from_slice(&out).unwrap();
            ours["metadata"].as_object_mut().unwrap().shift_remove("due_ns").unwrap();
            let mut expected = published.clone();
            expected["metadata"] = comparable(&published["metadata"]);
            assert_eq!(
                serde_json::to_string(&ours).unwrap(),
                serde_json::to_string(&expected).unwrap(),
                "{case}"
            );
        }
    }
}

#[test]
fn fields_of_ours_appear_where_they_say_something() {
    let line = lines("errors_mix/profile_export.jsonl").swap_remove(0);
    let (mut record, values, anchor) = record_of(&line, None);
    record.plan.scheduled = Some(record.plan.due);
    record.answer.stream_complete = Some(false);
    record.client_delayed = true;
    let mut out = Vec::new();
    let writer = RecordWriter::new(&Context::default(), false, Redactor::default(), 3).with_anchor(anchor);
    writer.write(&record, &values, &mut out);
    let ours: Value = serde_json::from_slice(&out).unwrap();
    let names = keys(&ours["metadata"]);
    assert_eq!(&names[names.len() - 4..], ["scheduled_ns", "due_ns", "stream_complete", "client_delayed"]);
    assert_eq!(ours["metadata"]["record_processor_id"], "record_processor_3");
}

#[test]
fn a_retry_after_is_kept_as_a_detail() {
    let line = lines("errors_mix/profile_export.jsonl").swap_remove(1);
    let (mut record, values, _) = record_of(&line, None);
    record.error.as_mut().unwrap().retry_after = Some("30".into());
    let mut out = Vec::new();
    RecordWriter::new(&Context::default(), false, Redactor::default(), 0).write(&record, &values, &mut out);
    let ours: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(ours["error"]["details"], serde_json::json!({"retry_after": "30"}));
}

#[test]
fn an_authored_body_with_line_ends_stays_one_line() {
    let line = lines("chat_nonstreaming/profile_export.jsonl").swap_remove(0);
    let (mut record, _, _) = record_of(&line, None);
    let mut body = Body::single(&b"{\n  \"a\": \"x\\ny\",\r\n"[..]);
    body.push(&b"  \"b\": 1\n}"[..]);
    record.request.body = body;
    let mut out = Vec::new();
    RawWriter::new(Redactor::default(), 0).write(&record, &mut out);
    assert_eq!(std::str::from_utf8(&out).unwrap().matches('\n').count(), 1);
    let ours: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(ours["payload"], serde_json::json!({"a": "x\ny", "b": 1}));
}

#[test]
fn a_failed_request_without_any_answer_is_a_line_too() {
    let line = lines("errors_mix/profile_export.jsonl").swap_remove(6);
    let (mut record, mut values, _) = record_of(&line, None);
    values.clear();
    record.status = None;
    record.headers = None;
    record.error = Some(RequestError::new(0, "RequestSendTimeout", "not sent in time"));
    let mut out = Vec::new();
    RecordWriter::new(&Context::default(), true, Redactor::default(), 0).write(&record, &values, &mut out);
    RawWriter::new(Redactor::default(), 0).write(&record, &mut out);
    for line in std::str::from_utf8(&out).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["error"]["code"], 0);
    }
}
