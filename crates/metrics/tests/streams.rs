//! Streams of every shape, with the values they must give worked out by hand; and faults that users of
//! benchmark clients have met, each under the public issue that told of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

mod support;

use aiperf_clock::Mono;
use aiperf_metrics::{Context, Metric, RecordValues, Store, Value, Window, evaluate};
use aiperf_types::{Channel, ContentEvent, PhaseKind, RequestError, RequestRecord, TokenCounts, Usage};
use support::{blank, close, failed, streamed};

const MS: u64 = 1_000_000;
const T0: u64 = 1_000_000_000_000;

/// Values of a record as numbers by tag, without those that need no stream.
fn values(record: &RequestRecord, context: &Context) -> Vec<(&'static str, f64)> {
    let mut values = RecordValues::new();
    evaluate(record, context, &mut values);
    values.iter().filter_map(|(metric, value)| Some((metric.tag(), value.as_f64()?))).collect()
}

fn gaps(record: &RequestRecord) -> Option<Vec<f64>> {
    let mut values = RecordValues::new();
    evaluate(record, &Context::default(), &mut values);
    match values.get(Metric::InterChunkLatency)? {
        Value::List(list) => Some(list.to_vec()),
        _ => None,
    }
}

#[track_caller]
fn assert_values(record: &RequestRecord, expected: &[(&str, f64)]) {
    let ours = values(record, &Context::default());
    let tags: Vec<&str> = ours.iter().map(|(tag, _)| *tag).collect();
    let wanted: Vec<&str> = expected.iter().map(|(tag, _)| *tag).collect();
    assert_eq!(tags, wanted);
    for ((tag, ours), (_, expected)) in ours.iter().zip(expected) {
        assert!(close(*ours, *expected, 1e-12), "{tag}: {ours} and {expected}");
    }
}

fn with_channels(events: &[(u64, Channel)], tokens: TokenCounts) -> RequestRecord {
    let mut record = blank(0, Mono(T0));
    record.answer.content =
        events.iter().map(|(at, channel)| ContentEvent { at: Mono(T0 + at), channel: *channel }).collect();
    record.end = record.last_content().unwrap();
    record.tokens = tokens;
    record
}

#[test]
fn a_plain_stream() {
    // Five tokens at 20, 30, 40, 55, 60 ms.
    let record = streamed(0, T0, &[20 * MS, 30 * MS, 40 * MS, 55 * MS, 60 * MS], 5);
    assert_values(
        &record,
        &[
            ("request_latency", 60.0),
            ("output_sequence_length", 5.0),
            ("time_to_first_token", 20.0),
            ("inter_token_latency", 10.0),
            ("output_token_throughput_per_user", 100.0),
            ("output_token_count", 5.0),
            ("decode_duration", 40.0),
            ("time_to_first_output_token", 20.0),
            ("input_sequence_length", 8.0),
            ("prefill_throughput_per_user", 400.0),
            ("time_to_second_token", 10.0),
            ("e2e_output_token_throughput", 5.0 / 0.06),
        ],
    );
    assert_eq!(gaps(&record).unwrap(), [10.0, 10.0, 15.0, 5.0]);
}

#[test]
fn one_token_has_no_time_between_tokens() {
    let record = streamed(0, T0, &[25 * MS], 1);
    assert_values(
        &record,
        &[
            ("request_latency", 25.0),
            ("output_sequence_length", 1.0),
            ("time_to_first_token", 25.0),
            ("output_token_count", 1.0),
            ("decode_duration", 0.0),
            ("time_to_first_output_token", 25.0),
            ("input_sequence_length", 8.0),
            ("prefill_throughput_per_user", 320.0),
            ("e2e_output_token_throughput", 40.0),
        ],
    );
    assert_eq!(gaps(&record), None);
}

#[test]
fn an_answer_of_no_tokens_has_no_output_count() {
    let record = streamed(0, T0, &[25 * MS], 0);
    assert_values(
        &record,
        &[
            ("request_latency", 25.0),
            ("output_sequence_length", 0.0),
            ("time_to_first_token", 25.0),
            ("decode_duration", 0.0),
            ("time_to_first_output_token", 25.0),
            ("input_sequence_length", 8.0),
            ("prefill_throughput_per_user", 320.0),
            ("e2e_output_token_throughput", 0.0),
        ],
    );
}

// https://github.com/sgl-project/sglang/issues/36272: times of 0 that nobody measured.
#[test]
fn a_single_chunk_of_many_tokens_has_no_time_to_decode() {
    let record = streamed(0, T0, &[50 * MS], 12);
    assert_values(
        &record,
        &[
            ("request_latency", 50.0),
            ("output_sequence_length", 12.0),
            ("time_to_first_token", 50.0),
            ("output_token_count", 12.0),
            ("time_to_first_output_token", 50.0),
            ("input_sequence_length", 8.0),
            ("prefill_throughput_per_user", 160.0),
            ("e2e_output_token_throughput", 240.0),
        ],
    );
    assert_eq!(gaps(&record), None);
}

#[test]
fn bundled_chunks_spread_their_time_over_their_tokens() {
    // Twelve tokens in three events of four.
    let record = streamed(0, T0, &[20 * MS, 31 * MS, 42 * MS], 12);
    let ours = values(&record, &Context::default());
    assert!(ours.contains(&("inter_token_latency", 2.0)), "{ours:?}");
    assert!(ours.contains(&("output_token_throughput_per_user", 500.0)));
    assert_eq!(gaps(&record).unwrap(), [11.0, 11.0]);
}

#[test]
fn the_first_event_counts_for_what_the_server_says_it_held() {
    let context = Context { server_token_counts: true, per_chunk_usage: true, ..Context::default() };
    let mut record = streamed(0, T0, &[20 * MS, 31 * MS, 42 * MS], 12);
    let itl = |record: &RequestRecord, context: &Context| {
        values(record, context).iter().find(|(tag, _)| *tag == "inter_token_latency").unwrap().1
    };
    record.answer.first_chunk_completion_tokens = Some(4);
    assert!(close(itl(&record, &context), 22.0 / 8.0, 1e-12));
    // Only together are the two settings enough, and an impossible figure counts as one token.
    assert!(close(itl(&record, &Context { per_chunk_usage: false, ..context.clone() }), 2.0, 1e-12));
    for impossible in [0, 12, 13] {
        record.answer.first_chunk_completion_tokens = Some(impossible);
        assert!(close(itl(&record, &context), 2.0, 1e-12), "{impossible}");
    }
}

#[test]
fn comments_and_usage_after_the_content_do_not_lengthen_it() {
    let mut record = streamed(0, T0, &[20 * MS, 30 * MS], 2);
    let before = values(&record, &Context::default());
    record.answer.last_event = Some(Mono(T0 + 90 * MS));
    record.end = Mono(T0 + 90 * MS);
    record.answer.skipped_events = 4;
    record.answer.usage = None;
    assert_eq!(values(&record, &Context::default()), before);
    record.answer.usage =
        Some(Usage { prompt_tokens: Some(10), completion_tokens: Some(2), ..Usage::default() });
    let after = values(&record, &Context::default());
    assert!(after.contains(&("usage_prompt_tokens", 10.0)));
    assert!(after.contains(&("usage_prompt_tokens_diff_pct", 25.0)));
    assert!(after.contains(&("usage_completion_tokens_diff_pct", 0.0)));
    assert!(after.contains(&("request_latency", 30.0)));
}

#[test]
fn a_usage_only_answer_fails_and_has_no_latency() {
    let record = failed(0, T0, 40 * MS, RequestError::new(None, "InvalidInferenceResultError", "no content"));
    assert_values(&record, &[("error_isl", 8.0)]);
}

#[test]
fn reasoning_alone_has_a_first_token_but_no_first_output() {
    let record = with_channels(
        &[(20 * MS, Channel::Reasoning), (40 * MS, Channel::Reasoning)],
        TokenCounts { input: Some(8), output: None, reasoning: Some(2) },
    );
    let ours = values(&record, &Context::default());
    assert!(ours.contains(&("time_to_first_token", 20.0)));
    assert!(ours.contains(&("output_sequence_length", 2.0)));
    assert!(ours.contains(&("reasoning_token_count", 2.0)));
    assert!(ours.iter().all(|(tag, _)| *tag != "time_to_first_output_token" && *tag != "output_token_count"));
}

#[test]
fn a_tool_call_is_output() {
    let record = with_channels(
        &[(20 * MS, Channel::Reasoning), (30 * MS, Channel::ToolCall), (40 * MS, Channel::ToolCall)],
        TokenCounts { input: Some(8), output: Some(6), reasoning: Some(1) },
    );
    let ours = values(&record, &Context::default());
    assert!(ours.contains(&("time_to_first_output_token", 30.0)));
    assert!(ours.contains(&("output_sequence_length", 7.0)));
}

// https://github.com/vllm-project/vllm/issues/7242
#[test]
fn vllm_7242_the_wait_for_the_first_token_is_no_gap() {
    let record = streamed(0, T0, &[500 * MS, 510 * MS, 520 * MS], 3);
    assert_eq!(gaps(&record).unwrap(), [10.0, 10.0]);
    let ours = values(&record, &Context::default());
    assert!(ours.contains(&("inter_token_latency", 10.0)));
}

// https://github.com/ray-project/llmperf/issues/89
#[test]
fn llmperf_89_time_per_token_leaves_the_first_out_and_counts_tokens_not_chunks() {
    let record = streamed(0, T0, &[500 * MS, 530 * MS], 7);
    assert!(values(&record, &Context::default()).contains(&("inter_token_latency", 5.0)));
}

// https://github.com/sgl-project/sglang/issues/36272
#[test]
fn sglang_36272_a_buffered_answer_has_no_speed_instead_of_an_absurd_one() {
    // Everything arrives in one read, after all the waiting.
    let record = streamed(0, T0, &[800 * MS, 800 * MS, 800 * MS], 40);
    let ours = values(&record, &Context::default());
    assert!(ours.iter().all(|(tag, _)| *tag != "output_token_throughput_per_user"), "{ours:?}");
    assert!(ours.contains(&("e2e_output_token_throughput", 50.0)));
}

// https://github.com/sgl-project/genai-bench/issues/81, https://github.com/vllm-project/aibrix/issues/1573
#[test]
fn genai_bench_81_hidden_reasoning_is_told_from_the_first_visible_token() {
    let record = with_channels(
        &[(50 * MS, Channel::Reasoning), (9_000 * MS, Channel::Text), (9_010 * MS, Channel::Text)],
        TokenCounts { input: Some(8), output: Some(2), reasoning: Some(400) },
    );
    let ours = values(&record, &Context::default());
    assert!(ours.contains(&("time_to_first_token", 50.0)));
    assert!(ours.contains(&("time_to_first_output_token", 9_000.0)));
}

// https://github.com/kubernetes-sigs/inference-perf/issues/559
#[test]
fn inference_perf_559_reasoning_is_a_first_token() {
    let record = with_channels(
        &[(30 * MS, Channel::Reasoning)],
        TokenCounts { input: Some(8), output: None, reasoning: Some(1) },
    );
    assert!(values(&record, &Context::default()).contains(&("time_to_first_token", 30.0)));
}

// https://github.com/vllm-project/guidellm/issues/216
#[test]
fn guidellm_216_a_request_without_a_token_has_no_time_to_one() {
    let mut record = blank(0, Mono(T0));
    record.end = Mono(T0 + 70 * MS);
    record.tokens.input = Some(8);
    let ours = values(&record, &Context::default());
    assert_eq!(ours, [("input_sequence_length", 8.0)]);
}

// https://github.com/vllm-project/guidellm/issues/444
#[test]
fn guidellm_444_failures_do_not_drag_the_latency_and_are_not_hidden() {
    let mut store = Store::new();
    for number in 0..6u64 {
        store.push(&streamed(number, T0 + number * 100 * MS, &[20 * MS, 40 * MS], 2));
    }
    for number in 6..10u64 {
        let error = RequestError::new(500, "Internal Server Error", "no");
        store.push(&failed(number, T0 + number * 100 * MS, 5_000 * MS, error));
    }
    let window = Window { start: Mono(T0), end: Some(Mono(T0 + 10_000 * MS)) };
    let summary = store.summarise(PhaseKind::Profiling, &Context::default(), &window);
    let latency = summary.block(Metric::RequestLatency).unwrap();
    assert_eq!((latency.max, latency.count), (Some(40.0), Some(6)));
    assert_eq!(summary.block(Metric::RequestThroughput).unwrap().avg, Some(0.6));
    let adjusted = summary.block(Metric::AdjRequestLatency).unwrap();
    assert_eq!((adjusted.p50, adjusted.p90, adjusted.count), (Some(40.0), Some(f64::INFINITY), Some(10)));
    assert_eq!(summary.block(Metric::RequestErrorRate).unwrap().avg, Some(40.0));
    assert_eq!(summary.error_groups[0].count, 4);
}

// https://github.com/modelscope/evalscope/issues/408
#[test]
fn evalscope_408_a_whole_body_has_no_first_token() {
    let mut record = streamed(0, T0, &[300 * MS], 9);
    record.answer.not_streamed = true;
    let ours = values(&record, &Context::default());
    assert!(ours.iter().all(|(tag, _)| !tag.starts_with("time_to_first")), "{ours:?}");
    assert!(ours.contains(&("request_latency", 300.0)));
    let mut store = Store::new();
    store.push(&record);
    let window = Window { start: Mono(T0), end: Some(Mono(T0 + 1_000 * MS)) };
    let summary = store.summarise(PhaseKind::Profiling, &Context::default(), &window);
    assert_eq!(summary.block(Metric::TimeToFirstToken), None);
    assert_eq!(summary.block(Metric::EffectivePrefillThroughput), None);
    assert_eq!(summary.not_streamed_count, 1);
}

// https://github.com/ai-dynamo/dynamo/issues/12883
#[test]
fn dynamo_12883_gaps_per_request_and_pooled_are_two_metrics() {
    let mut store = Store::new();
    store.push(&streamed(0, T0, &[10 * MS, 20 * MS], 2));
    store.push(&streamed(1, T0, &[10 * MS, 12 * MS, 14 * MS, 16 * MS, 18 * MS], 5));
    let window = Window { start: Mono(T0), end: Some(Mono(T0 + 100 * MS)) };
    let summary = store.summarise(PhaseKind::Profiling, &Context::default(), &window);
    let (itl, icl) = (
        summary.block(Metric::InterTokenLatency).unwrap(),
        summary.block(Metric::InterChunkLatency).unwrap(),
    );
    assert_eq!((itl.avg, itl.count), (Some(6.0), Some(2)));
    assert_eq!((icl.avg, icl.count), (Some(3.6), Some(5)));
}

// https://github.com/ai-dynamo/aiperf/issues/644
#[test]
fn aiperf_644_an_output_of_another_length_is_counted() {
    let mut store = Store::new();
    for (number, output) in [100u64, 96, 94, 160].into_iter().enumerate() {
        let mut record = streamed(number as u64, T0, &[10 * MS, 20 * MS], output);
        record.request.max_tokens = Some(100);
        store.push(&record);
    }
    let window = Window { start: Mono(T0), end: Some(Mono(T0 + 100 * MS)) };
    let summary = store.summarise(PhaseKind::Profiling, &Context::default(), &window);
    let mismatch = summary.osl_mismatch.unwrap();
    assert_eq!((mismatch.compared, mismatch.count), (4, 2));
    assert!(close(mismatch.mean_diff_pct, 12.5, 1e-12));
    assert_eq!(summary.block(Metric::OslMismatchCount).unwrap().avg, Some(2.0));
}

// https://github.com/vllm-project/vllm/issues/54101
#[test]
fn vllm_54101_latency_from_the_due_instant_has_the_wait_before_the_send() {
    let mut record = streamed(0, T0 + 30 * MS, &[20 * MS, 50 * MS], 2);
    record.plan.due = Mono(T0);
    record.plan.let_go = Mono(T0 + 10 * MS);
    record.plan.issued = Mono(T0 + 10 * MS);
    record.plan.scheduled = Some(Mono(T0 - 4 * MS));
    let mut store = Store::new();
    store.push(&record);
    let window = Window { start: Mono(T0), end: Some(Mono(T0 + 100 * MS)) };
    let summary = store.summarise(PhaseKind::Profiling, &Context::default(), &window);
    assert_eq!(summary.service.request_latency.unwrap().avg, Some(50.0));
    assert_eq!(summary.service.time_to_first_token.unwrap().avg, Some(20.0));
    assert_eq!(summary.from_intended.request_latency.unwrap().avg, Some(80.0));
    assert_eq!(summary.from_intended.time_to_first_token.unwrap().avg, Some(50.0));
    let timing = summary.timing;
    let largest =
        [timing.lateness, timing.cap_wait, timing.slip].map(|spread| spread.map(|spread| spread.max));
    assert_eq!(largest, [Some(20e6), Some(10e6), Some(4e6)]);
    assert_eq!(summary.send_lag.map(|lag| lag.p99), Some(20.0));
}

// https://github.com/vllm-project/vllm/issues/35471
#[test]
fn vllm_35471_throughput_follows_tokens_not_chunks() {
    // Two chunks, eleven tokens: after the first token, ten over ten milliseconds.
    let mut store = Store::new();
    store.push(&streamed(0, T0, &[10 * MS, 20 * MS], 11));
    let window = Window { start: Mono(T0), end: Some(Mono(T0 + 20 * MS)) };
    let summary = store.summarise(PhaseKind::Profiling, &Context::default(), &window);
    assert_eq!(summary.block(Metric::EffectiveDecodeThroughput).unwrap().max, Some(1_000.0));
    assert_eq!(summary.block(Metric::OutputTokenThroughput).unwrap().avg, Some(550.0));
}

#[test]
fn an_instant_before_its_predecessor_is_counted_and_leaves_no_value() {
    let mut record = streamed(0, T0, &[20 * MS, 10 * MS, 30 * MS], 3);
    record.headers = Some(Mono(T0 - 1));
    let ours = values(&record, &Context::default());
    assert!(ours.iter().all(|(tag, value)| *value >= 0.0 && *tag != "time_to_second_token"), "{ours:?}");
    assert_eq!(gaps(&record), None);
    let mut store = Store::new();
    store.push(&record);
    let window = Window { start: Mono(T0), end: Some(Mono(T0 + 100 * MS)) };
    let summary = store.summarise(PhaseKind::Profiling, &Context::default(), &window);
    assert_eq!(summary.negative_difference_count, 2);
    assert_eq!(summary.block(Metric::InterChunkLatency), None);
}

#[test]
fn the_wire_is_measured_from_the_first_byte_written() {
    let mut record = streamed(0, T0, &[70 * MS, 90 * MS], 2);
    let at = |ms: u64| Mono(T0 + ms * MS);
    let trace = &mut record.trace;
    trace.pool_wait = Some((at(0), at(5)));
    trace.dns = Some((at(5), at(8)));
    trace.connect = Some((at(8), at(18)));
    trace.send_start = Some(at(18));
    trace.send_end = Some(at(20));
    trace.receive_start = Some(at(70));
    trace.receive_end = Some(at(91));
    (trace.chunks_sent, trace.chunks_received, trace.bytes_sent, trace.bytes_received) = (1, 3, 512, 2048);
    let ours = values(&record, &Context::default());
    let wire: Vec<(&str, f64)> = ours.into_iter().filter(|(tag, _)| tag.starts_with("http_req")).collect();
    assert_eq!(
        wire,
        [
            ("http_req_blocked", 5.0),
            ("http_req_connection_reused", 0.0),
            ("http_req_connecting", 10.0),
            ("http_req_dns_lookup", 3.0),
            ("http_req_sending", 2.0),
            ("http_req_waiting", 50.0),
            ("http_req_receiving", 21.0),
            ("http_req_duration", 73.0),
            ("http_req_data_sent", 0.5),
            ("http_req_data_received", 2.0),
            ("http_req_chunks_sent", 1.0),
            ("http_req_chunks_received", 3.0),
            ("http_req_connection_overhead", 18.0),
            // From queueing to the last byte, connecting counted once.
            ("http_req_total", 91.0),
        ]
    );
}
