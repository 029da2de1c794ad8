//! Records rebuilt from recorded runs of the reference, and comparison of figures.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "a module of several test programs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use aiperf_clock::Mono;
use aiperf_metrics::Context;
use aiperf_types::{
    Answer, Channel, ContentEvent, HttpTrace, Identity, PhaseKind, PlanInstants, RequestError, RequestFacts,
    RequestRecord, SpecDecode, TokenCounts, Usage,
};
use serde_json::Value;

/// Cases whose records and summary are kept.
pub const CASES: [&str; 12] = [
    "cancel_dev",
    "chat_nonstreaming",
    "chat_streaming",
    "completions_streaming",
    "embeddings",
    "errors_mix",
    "fixed_schedule",
    "goodput_slices",
    "multi_turn",
    "reasoning",
    "server_tokens_spec",
    "sigint",
];

pub fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

pub fn json(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(data(path)).unwrap()).unwrap()
}

pub fn lines(path: &str) -> Vec<Value> {
    fs::read_to_string(data(path)).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The settings a case ran with.
pub fn context(case: &str) -> Context {
    let chat = Context::default();
    match case {
        "chat_nonstreaming" => Context { streaming: false, ..chat },
        "embeddings" => Context {
            streaming: false,
            produces_tokens: false,
            takes_images: false,
            takes_audio: false,
            ..chat
        },
        "cancel_dev" => {
            Context { show_internal: true, show_experimental: true, network_rtt_ms: Some(5.0), ..chat }
        }
        "server_tokens_spec" => Context { server_token_counts: true, per_chunk_usage: true, ..chat },
        "fixed_schedule" => Context { fixed_schedule: true, ..chat },
        _ => chat,
    }
}

/// A record with its identity and plan only.
pub fn blank(number: u64, start: Mono) -> RequestRecord {
    RequestRecord {
        identity: Identity {
            number,
            request_id: [b'0'; 36],
            correlation_id: Arc::from("c"),
            conversation_id: Arc::from("s"),
            turn_index: 0,
            phase: PhaseKind::Profiling,
            phase_index: 0,
            worker: 0,
            lineage: None,
            source: None,
        },
        plan: PlanInstants { scheduled: None, due: start, let_go: start, issued: start, initial_fill: false },
        start,
        headers: None,
        end: start,
        trace: HttpTrace::default(),
        status: Some(200),
        request: RequestFacts::default(),
        answer: Answer::default(),
        tokens: TokenCounts::default(),
        error: None,
        cancelled_at: None,
        context_overflow: false,
        client_delayed: false,
    }
}

/// A streamed record: content events at these offsets, ns, one channel for all.
pub fn streamed(number: u64, start: u64, offsets: &[u64], output: u64) -> RequestRecord {
    let start = Mono(start);
    let mut record = blank(number, start);
    record.answer.content =
        offsets.iter().map(|at| ContentEvent { at: start.plus(*at), channel: Channel::Text }).collect();
    record.end = record.last_content().unwrap_or(start);
    record.tokens = TokenCounts { input: Some(8), output: Some(output), reasoning: None };
    record
}

/// A failed record.
pub fn failed(number: u64, start: u64, length: u64, error: RequestError) -> RequestRecord {
    let mut record = blank(number, Mono(start));
    record.end = Mono(start + length);
    record.tokens.input = Some(8);
    record.error = Some(error);
    record
}

fn number(value: &Value, tag: &str) -> Option<f64> {
    value["metrics"][tag]["value"].as_f64()
}

fn ns(value: &Value, tag: &str) -> Option<u64> {
    number(value, tag).map(|ms| (ms * 1e6).round() as u64)
}

fn count(value: &Value, tag: &str) -> Option<u64> {
    number(value, tag).map(|count| count as u64)
}

/// A record of which the reference wrote this line of `profile_export.jsonl`: the same instants and counts, by
/// way of the figures it printed.
pub fn from_line(line: &Value) -> RequestRecord {
    let meta = &line["metadata"];
    let at = |key: &str| meta[key].as_u64().map(Mono);
    let start = at("request_start_ns").unwrap();
    let mut record = blank(meta["session_num"].as_u64().unwrap(), start);
    if meta["benchmark_phase"] == "warmup" {
        record.identity.phase = PhaseKind::Warmup;
    }
    record.plan.issued = at("credit_issued_ns").unwrap();
    record.headers = at("request_ack_ns");
    record.end = at("request_end_ns").unwrap();
    record.cancelled_at = at("cancellation_time_ns");
    record.error = line.get("error").map(error);
    record.tokens.input = count(line, "input_sequence_length").or(count(line, "error_isl"));
    record.tokens.reasoning = count(line, "reasoning_token_count");
    record.tokens.output = count(line, "output_sequence_length")
        .map(|all| all - record.tokens.reasoning.unwrap_or(0))
        .or(count(line, "output_token_count"));
    let output = number(line, "output_sequence_length");
    record.request.max_tokens = number(line, "osl_mismatch_diff_pct")
        .map(|diff| (output.unwrap() / (1.0 + diff / 100.0)).round() as u64);
    record.answer = answer(line, start);
    record.trace = trace(line, start);
    record
}

fn answer(line: &Value, start: Mono) -> Answer {
    let latency = ns(line, "request_latency");
    let first = ns(line, "time_to_first_token").or(latency);
    let visible = ns(line, "time_to_first_output_token").or(first);
    let mut content = Vec::new();
    if let (Some(first), Some(latency)) = (first, latency) {
        let mut offsets = vec![first];
        for gap in line["metrics"]["inter_chunk_latency"]["value"].as_array().into_iter().flatten() {
            offsets.push(offsets[offsets.len() - 1] + (gap.as_f64().unwrap() * 1e6).round() as u64);
        }
        assert_eq!(offsets[offsets.len() - 1], latency);
        content.extend(offsets.iter().map(|offset| ContentEvent {
            at: start.plus(*offset),
            channel: if Some(*offset) < visible { Channel::Reasoning } else { Channel::Text },
        }));
    }
    let usage = Usage {
        prompt_tokens: count(line, "usage_prompt_tokens"),
        completion_tokens: count(line, "usage_completion_tokens"),
        total_tokens: count(line, "usage_total_tokens"),
        reasoning_tokens: count(line, "usage_reasoning_tokens"),
        prompt_cache_read_tokens: count(line, "usage_prompt_cache_read_tokens"),
        ..Usage::default()
    };
    let spec = line.get("spec_decode_acceptance").map(spec_decode);
    let per_token = number(line, "inter_token_latency").filter(|itl| *itl > 0.0);
    let first_chunk = per_token.map(|itl| {
        let left = number(line, "decode_duration").unwrap() / itl;
        (number(line, "output_sequence_length").unwrap() - left).round() as u64
    });
    Answer {
        content,
        usage: (usage != Usage::default()).then_some(usage),
        first_chunk_completion_tokens: first_chunk,
        spec_decode: spec,
        ..Answer::default()
    }
}

/// The reference stamps the start of sending before it has a connection; laid out so here too, which is the
/// only way to compare the figures.
fn trace(line: &Value, start: Mono) -> HttpTrace {
    let mut trace = HttpTrace::default();
    let Some(sending) = ns(line, "http_req_sending") else { return trace };
    let span = |tag| ns(line, tag).filter(|length| *length > 0).map(|length| (start, start.plus(length)));
    trace.pool_wait = span("http_req_blocked");
    trace.dns = span("http_req_dns_lookup");
    trace.connect = span("http_req_connecting");
    trace.reused = count(line, "http_req_connection_reused") == Some(1);
    trace.send_start = Some(start);
    let sent = start.plus(sending);
    trace.send_end = Some(sent);
    let first = sent.plus(ns(line, "http_req_waiting").unwrap());
    trace.receive_start = Some(first);
    trace.receive_end = Some(first.plus(ns(line, "http_req_receiving").unwrap()));
    trace.chunks_sent = count(line, "http_req_chunks_sent").unwrap() as u32;
    trace.chunks_received = count(line, "http_req_chunks_received").unwrap() as u32;
    trace.bytes_sent = (number(line, "http_req_data_sent").unwrap() * 1024.0) as u64;
    trace.bytes_received = (number(line, "http_req_data_received").unwrap() * 1024.0) as u64;
    trace
}

pub fn error(value: &Value) -> RequestError {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    RequestError::new(value["code"].as_i64(), text("type"), text("message"))
}

pub fn spec_decode(value: &Value) -> SpecDecode {
    let steps = value["acceptance_histogram"].as_object().unwrap();
    let longest = steps.keys().map(|key| key.parse::<usize>().unwrap()).max().unwrap();
    let mut histogram = vec![0; longest + 1];
    for (accepted, count) in steps {
        histogram[accepted.parse::<usize>().unwrap()] = count.as_u64().unwrap();
    }
    SpecDecode {
        acceptance_histogram: histogram,
        num_spec_steps: value["num_spec_steps"].as_u64().unwrap(),
        num_spec_tokens: value["num_spec_tokens"].as_u64(),
        draft_tokens: value["num_draft_tokens"].as_u64(),
        accepted_draft_tokens: value["num_accepted_draft_tokens"].as_u64(),
        mean_acceptance_length: value["mean_acceptance_length"].as_f64(),
        raw: None,
    }
}

/// A local time of the reference, as nanoseconds since the Unix epoch.
pub fn instant(value: &Value) -> Mono {
    let text = value.as_str().unwrap();
    let part = |range: std::ops::Range<usize>| text[range].parse::<u64>().unwrap();
    assert_eq!(&text[..10], "2026-11-29", "all recordings are of one day");
    let midnight = 1_795_910_400_000_000_000;
    let seconds = part(11..13) * 3600 + part(14..16) * 60 + part(17..19);
    Mono(midnight + seconds * 1_000_000_000 + part(20..26) * 1_000)
}

/// Whether two figures agree to a relative difference.
pub fn close(ours: f64, theirs: f64, relative: f64) -> bool {
    (ours - theirs).abs() <= relative * ours.abs().max(theirs.abs())
}
