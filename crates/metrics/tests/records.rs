//! Records of recorded runs: every value of every line, from the raw events.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

mod support;

use std::collections::BTreeMap;

use aiperf_clock::Mono;
use aiperf_metrics::{Metric, RecordValues, Value, evaluate};
use aiperf_types::{Channel, ContentEvent, RequestError, RequestRecord, Usage};
use serde_json::Value as Json;
use support::{close, context, data, from_line, lines};

/// Cases with raw records.
const RAW_CASES: [&str; 10] = [
    "cancel_dev",
    "chat_nonstreaming",
    "chat_streaming",
    "completions_streaming",
    "embeddings",
    "errors_mix",
    "goodput_slices",
    "multi_turn",
    "reasoning",
    "server_tokens_spec",
];

/// What one event carried, by the shapes the recorded server sends.
fn content(event: &Json) -> Option<Channel> {
    if event["object"] == "list" {
        return Some(Channel::Object);
    }
    let choice = &event["choices"][0];
    let message = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
    let has = |value: &Json| value.as_str().is_some_and(|text| !text.is_empty());
    let reasoning = has(&message["reasoning_content"]) || has(&message["reasoning"]);
    let text = has(&message["content"]) || has(&choice["text"]);
    let tools = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
    match (reasoning, tools, text) {
        (true, _, false) => Some(Channel::Reasoning),
        (true, _, true) => Some(Channel::ReasoningAndText),
        (_, true, _) => Some(Channel::ToolCall),
        (_, _, true) => Some(Channel::Text),
        _ => None,
    }
}

fn usage(value: &Json) -> Usage {
    Usage {
        prompt_tokens: value["prompt_tokens"].as_u64(),
        completion_tokens: value["completion_tokens"].as_u64(),
        total_tokens: value["total_tokens"].as_u64(),
        reasoning_tokens: value["completion_tokens_details"]["reasoning_tokens"].as_u64(),
        prompt_cache_read_tokens: value["prompt_tokens_details"]["cached_tokens"].as_u64(),
        ..Usage::default()
    }
}

/// A record from a raw line: instants and usage from the events; token counts, the wire and the plan, which
/// raw lines do not have, from the line beside it.
fn from_raw(raw: &Json, line: &Json) -> RequestRecord {
    let mut record = from_line(line);
    let wall = record.start;
    let start = Mono(raw["start_perf_ns"].as_u64().unwrap());
    record.headers = record.headers.map(|at| start.plus(at.saturating_since(wall)));
    record.plan.issued = start.minus(wall.saturating_since(record.plan.issued));
    (record.plan.due, record.plan.let_go, record.start) = (start, start, start);
    let rebase = |at: Option<Mono>| at.map(|at| start.plus(at.saturating_since(wall)));
    let trace = &mut record.trace;
    for stamp in
        [&mut trace.send_start, &mut trace.send_end, &mut trace.receive_start, &mut trace.receive_end]
    {
        *stamp = rebase(*stamp);
    }
    let length = record.end.saturating_since(wall);
    record.end = start.plus(length);
    let answer = &mut record.answer;
    answer.content.clear();
    answer.usage = None;
    answer.first_chunk_completion_tokens = None;
    for response in raw["responses"].as_array().into_iter().flatten() {
        let at = Mono(response["perf_ns"].as_u64().unwrap());
        let packets = response["packets"].as_array().into_iter().flatten();
        let texts =
            packets.filter(|packet| packet["name"] == "data").filter_map(|packet| packet["value"].as_str());
        for text in texts.chain(response["text"].as_str()) {
            record.end = record.end.max(at);
            if text == "[DONE]" {
                continue;
            }
            let Ok(event) = serde_json::from_str::<Json>(text) else {
                record.error = Some(RequestError::new(None, "MalformedResponseError", text));
                continue;
            };
            if event.get("error").is_some() && record.error.is_none() {
                record.error = Some(RequestError::new(None, "StreamError", text));
            }
            if let Some(channel) = content(&event) {
                answer.content.push(ContentEvent { at, channel });
                answer.first_chunk_completion_tokens =
                    answer.first_chunk_completion_tokens.or(event["usage"]["completion_tokens"].as_u64());
            }
            if event["usage"].as_object().is_some_and(|fields| !fields.is_empty()) {
                answer.usage = Some(usage(&event["usage"]));
            }
        }
    }
    record
}

fn assert_same(case: &str, values: &RecordValues, theirs: &Json) {
    let mut theirs: BTreeMap<&str, &Json> =
        theirs.as_object().unwrap().iter().map(|(tag, value)| (tag.as_str(), value)).collect();
    for (metric, value) in values.iter() {
        let tag = metric.tag();
        let unit = metric.def().display_unit;
        let Some(expected) = theirs.remove(tag) else {
            // The reference takes no usage from embeddings.
            assert!(case == "embeddings" && tag.starts_with("usage_"), "{case}: {tag} is not in the line");
            continue;
        };
        assert_eq!(unit, expected["unit"].as_str().unwrap(), "{case} {tag}");
        if metric == Metric::HttpReqDuration && matches!(case, "chat_nonstreaming" | "embeddings") {
            // After a whole body the reference waits for the end of the exchange, and does not say how long.
            continue;
        }
        let expected = &expected["value"];
        match value {
            Value::Int(value) => assert_eq!(Some(value), expected.as_i64(), "{case} {tag}"),
            Value::Float(value) => {
                assert!(expected.is_f64(), "{case} {tag} is whole");
                let expected = expected.as_f64().unwrap();
                assert!(close(value, expected, 1e-9), "{case} {tag}: {value} and {expected}");
            }
            Value::List(list) => {
                let expected = expected.as_array().unwrap();
                assert_eq!(list.len(), expected.len(), "{case} {tag}");
                for (value, expected) in list.iter().zip(expected) {
                    assert!(close(*value, expected.as_f64().unwrap(), 1e-9), "{case} {tag}");
                }
            }
        }
    }
    let left: Vec<&&str> = theirs
        .keys()
        .filter(|tag| {
            !(**tag == "good_request_count"
                || (case == "embeddings" && **tag == "output_sequence_length")
                || **tag == "credit_drop_latency")
        })
        .collect();
    assert!(left.is_empty(), "{case}: {left:?} are missing");
}

#[test]
fn values_of_raw_records_equal_the_recorded_lines() {
    let mut values = RecordValues::new();
    for case in RAW_CASES {
        let context = context(case);
        let recorded = lines(&format!("{case}/profile_export.jsonl"));
        let raw = lines(&format!("{case}/profile_export_raw.jsonl"));
        assert_eq!(raw.len(), recorded.len(), "{case}");
        for line in &recorded {
            let id = &line["metadata"]["x_request_id"];
            let raw = raw.iter().find(|raw| raw["metadata"]["x_request_id"] == *id).unwrap();
            let record = from_raw(raw, line);
            evaluate(&record, &context, &mut values);
            if case == "errors_mix" && matches!(record.identity.number, 2 | 3) {
                // Broken JSON and an error object inside the stream: the reference counts both as good.
                assert!(!record.is_valid());
                let only: Vec<Metric> = values.iter().map(|(metric, _)| metric).collect();
                assert_eq!(only, [Metric::ErrorIsl]);
                continue;
            }
            // An instant inside the reference that is not recorded; ours is from the issue.
            let mut ours = RecordValues::new();
            for (metric, value) in values.iter().filter(|(metric, _)| *metric != Metric::CreditDropLatency) {
                ours.insert(metric, value);
            }
            assert_same(case, &ours, &line["metrics"]);
        }
    }
}

#[test]
fn the_registry_is_the_recorded_list_of_metrics() {
    let recorded: Vec<Json> =
        serde_json::from_str(&std::fs::read_to_string(data("metrics.json")).unwrap()).unwrap();
    let ours = ["http_req_tls_handshaking"];
    assert_eq!(aiperf_metrics::registry::all().len(), recorded.len() + ours.len());
    assert!(aiperf_metrics::registry::all().skip(recorded.len()).map(|def| def.tag).eq(ours));
    for (def, row) in aiperf_metrics::registry::all().zip(&recorded) {
        use aiperf_metrics::registry::{Flag, Fold, Kind, ValueType};
        let tag = def.tag;
        assert_eq!(tag, row["tag"]);
        assert_eq!(def.header, row["header"], "{tag}");
        assert_eq!(def.short_header, row["short_header"].as_str(), "{tag}");
        assert_eq!(def.short_header_hides_unit, row["short_header_hides_unit"], "{tag}");
        assert_eq!(def.unit, row["unit"], "{tag}");
        assert_eq!(def.display_unit, row["display_unit"], "{tag}");
        let (kind, fold) = match def.kind {
            Kind::Record => ("record", None),
            Kind::Aggregate(Fold::Sum) => ("aggregate", Some("sum")),
            Kind::Aggregate(Fold::Min) => ("aggregate", Some("min")),
            Kind::Aggregate(Fold::Max) => ("aggregate", Some("max")),
            Kind::Derived => ("derived", None),
            Kind::Injected => ("injected", None),
        };
        assert_eq!(kind, row["kind"], "{tag}");
        assert_eq!(fold, row["aggregation"].as_str(), "{tag}");
        let value_type = match def.value_type {
            ValueType::Int => "int",
            ValueType::Float => "float",
            ValueType::IntList => "list[int]",
        };
        assert_eq!(value_type, row["value_type"], "{tag}");
        assert_eq!(def.console_group.name(), row["console_group"], "{tag}");
        assert_eq!(def.display_order.map(u64::from), row["display_order"].as_u64(), "{tag}");
        assert_eq!(def.larger_is_better(), row["larger_is_better"], "{tag}");
        assert_eq!(def.per_record_export, row["per_record_export"], "{tag}");
        assert_eq!(!def.has(Flag::NoTimeslice), row["timeslice"], "{tag}");
        assert_eq!(def.registered(), row["registered"], "{tag}");
        let needs: Vec<&str> = def.requires.iter().map(|metric| metric.tag()).collect();
        assert_eq!(needs, row["requires"].as_array().unwrap().iter().collect::<Vec<_>>(), "{tag}");
        let flags = [
            ("streaming_only", Flag::Streaming),
            ("produces_tokens_only", Flag::Tokens),
            ("tokenizes_input_only", Flag::TokenizesInput),
            ("larger_is_better", Flag::LargerIsBetter),
            ("error_only", Flag::ErrorOnly),
            ("no_individual_records", Flag::RunOnly),
            ("percentile_includes_failed_requests", Flag::ErrorAdjusted),
            ("internal", Flag::Internal),
            ("experimental", Flag::Experimental),
            ("goodput", Flag::Goodput),
            ("supports_image_only", Flag::Images),
            ("supports_audio_only", Flag::Audio),
            ("produces_video_only", Flag::Video),
            ("supports_reasoning", Flag::Reasoning),
            ("http_trace_only", Flag::HttpTrace),
            ("fixed_schedule_only", Flag::FixedSchedule),
            ("usage_diff_only", Flag::UsageDiff),
            ("disable_on_accuracy", Flag::NotInAccuracy),
        ];
        let listed = row["flags"].as_array().unwrap();
        for (name, flag) in flags {
            assert_eq!(def.has(flag), listed.iter().any(|each| each == name), "{tag} {name}");
        }
        assert!(listed.iter().all(|each| flags.iter().any(|(name, _)| each == name)), "{tag}");
    }
}
