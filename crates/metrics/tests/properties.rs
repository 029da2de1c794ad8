//! What holds for any records: figures in order, totals that are sums, nothing negative, nothing that depends on
//! which thread finished a record or in which order stores were merged.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

mod support;

use aiperf_clock::Mono;
use aiperf_metrics::{Block, Context, Metric, RecordValues, Store, Summary, Value, Window, evaluate};
use aiperf_types::{Channel, ContentEvent, PhaseKind, RequestError, RequestRecord, TokenCounts, Usage};
use proptest::prelude::*;
use support::{blank, close};

const T0: u64 = 50_000_000_000;

/// One random request: when it was sent, what came back, whether it failed.
#[derive(Clone, Debug)]
struct Shape {
    at: u64,
    lag: u64,
    gaps: Vec<u64>,
    reasoning: usize,
    tail: u64,
    input: u64,
    output: u64,
    fails: bool,
}

fn shape() -> impl Strategy<Value = Shape> {
    let gap = prop_oneof![Just(0u64), 1u64..1_000, 1_000_000u64..60_000_000];
    (
        0u64..2_000_000_000,
        0u64..5_000_000,
        prop::collection::vec(gap, 1..20),
        0usize..4,
        0u64..100_000,
        1u64..5_000,
        0u64..40,
        prop::bool::weighted(0.2),
    )
        .prop_map(|(at, lag, gaps, reasoning, tail, input, output, fails)| Shape {
            at,
            lag,
            gaps,
            reasoning,
            tail,
            input,
            output,
            fails,
        })
}

fn record(number: u64, shape: &Shape) -> RequestRecord {
    let start = Mono(T0 + shape.at + shape.lag);
    let mut record = blank(number, start);
    record.plan.issued = Mono(T0 + shape.at);
    record.plan.due = record.plan.issued;
    record.plan.let_go = record.plan.issued;
    record.tokens.input = Some(shape.input);
    let mut at = start;
    for (index, gap) in shape.gaps.iter().enumerate() {
        at = at.plus(*gap);
        let channel = if index < shape.reasoning { Channel::Reasoning } else { Channel::Text };
        record.answer.content.push(ContentEvent { at, channel });
    }
    record.end = at.plus(shape.tail);
    if shape.fails {
        record.error =
            Some(RequestError::new(500, "Error", if number.is_multiple_of(2) { "a" } else { "b" }));
        record.answer.content.clear();
        return record;
    }
    record.tokens = TokenCounts {
        input: Some(shape.input),
        output: Some(shape.output),
        reasoning: (shape.reasoning > 0).then_some(shape.reasoning as u64),
    };
    record.request.max_tokens = Some(20);
    record.answer.usage = Some(Usage {
        prompt_tokens: Some(shape.input + 3),
        completion_tokens: Some(shape.output + shape.reasoning as u64),
        ..Usage::default()
    });
    record
}

fn window() -> Window {
    Window { start: Mono(T0), end: Some(Mono(T0 + 4_000_000_000)) }
}

fn assert_ordered(metric: Metric, block: &Block) {
    let tag = metric.tag();
    let mut last = block.min;
    let percentiles = [
        block.p1, block.p5, block.p10, block.p25, block.p50, block.p75, block.p90, block.p95, block.p99,
        block.max,
    ];
    for figure in percentiles.into_iter().flatten() {
        assert!(last.is_none_or(|last| figure >= last), "{tag}: {block:?}");
        last = Some(figure);
    }
    if let (Some(avg), Some(count), Some(sum)) = (block.avg, block.count, block.sum) {
        assert!(close(avg * count as f64, sum, 1e-9), "{tag}: {block:?}");
    }
    for (name, figure) in block.figures() {
        let Some(figure) = figure else { continue };
        assert!(!figure.is_nan(), "{tag} {name}");
        assert!(figure.is_finite() || tag.starts_with("adj_"), "{tag} {name}");
        assert!(figure >= 0.0 || metric == Metric::OslMismatchDiffPct, "{tag} {name} {figure}");
    }
    let text = serde_json::to_string(block).unwrap();
    assert!(!text.contains("NaN") && !text.contains("null"), "{text}");
}

fn assert_sound(summary: &Summary, records: &[RequestRecord]) {
    assert_eq!(summary.record_count(), records.len() as u64);
    let single = |metric| summary.block(metric).and_then(|block| block.avg);
    let sum = |metric| summary.block(metric).and_then(|block| block.sum);
    let failed = single(Metric::ErrorRequestCount).unwrap_or(0.0);
    assert_eq!(Some(single(Metric::RequestCount).unwrap() + failed), single(Metric::CompletedRequestCount));
    assert_eq!(single(Metric::TotalIsl), sum(Metric::InputSequenceLength));
    assert_eq!(single(Metric::TotalOsl), sum(Metric::OutputSequenceLength));
    assert_eq!(single(Metric::TotalErrorIsl), sum(Metric::ErrorIsl));
    assert_eq!(single(Metric::TotalUsagePromptTokens), sum(Metric::UsagePromptTokens));
    let window = summary.window.unwrap().duration_sec;
    let rate = single(Metric::RequestThroughput).unwrap();
    assert!(close(rate * window, summary.valid_count as f64, 1e-12));
    for (metric, block) in &summary.blocks {
        assert_ordered(*metric, block);
    }
    assert_eq!(summary.error_groups.iter().map(|group| group.count).sum::<u64>(), summary.failed_count);
}

/// The figures worked out the plain way: evaluate every record and keep every value.
fn assert_equal_to_the_plain_way(summary: &Summary, records: &[RequestRecord], context: &Context) {
    let mut values = RecordValues::new();
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); Metric::COUNT];
    for record in records {
        evaluate(record, context, &mut values);
        for (metric, value) in values.iter() {
            match value {
                Value::List(list) => columns[metric as usize].extend(list),
                single => columns[metric as usize].extend(single.as_f64()),
            }
        }
    }
    for (index, mut column) in columns.into_iter().enumerate() {
        let metric = Metric::from_index(index).unwrap();
        if column.is_empty() {
            continue;
        }
        let block = summary.block(metric).unwrap();
        column.sort_by(f64::total_cmp);
        let n = column.len();
        assert_eq!(block.count, Some(n as u64), "{metric:?}");
        let mean = column.iter().sum::<f64>() / n as f64;
        let variance = column.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n as f64;
        let same = |ours: Option<f64>, plain: f64| {
            let ours = ours.unwrap();
            assert!(close(ours, plain, 1e-9) || (ours - plain).abs() < 1e-9, "{metric:?}: {ours} {plain}");
        };
        same(block.avg, mean);
        same(block.std, variance.sqrt());
        same(block.min, column[0]);
        same(block.max, column[n - 1]);
        for (q, figure) in [(1.0, block.p1), (25.0, block.p25), (50.0, block.p50), (99.0, block.p99)] {
            let at = q / 100.0 * (n - 1) as f64;
            let low = column[at.floor() as usize];
            let high = column[(at.floor() as usize + 1).min(n - 1)];
            same(figure, low + at.fract() * (high - low));
        }
    }
}

/// The running requests at every instant, worked out instant by instant.
fn assert_concurrency(summary: &Summary, records: &[RequestRecord], window: &Window) {
    let (start, end) = (window.start, window.end.unwrap());
    let mut instants: Vec<Mono> = records.iter().flat_map(|record| [record.start, record.end]).collect();
    instants.extend([start, end]);
    instants.retain(|at| (start..=end).contains(at));
    instants.sort_unstable();
    let (mut area, mut most) = (0.0, 0usize);
    for pair in instants.windows(2).filter(|pair| pair[1] > pair[0]) {
        let running = records.iter().filter(|record| record.start <= pair[0] && record.end > pair[0]).count();
        area += running as f64 * pair[1].since(pair[0]) as f64;
        most = most.max(running);
    }
    let block = summary.block(Metric::EffectiveConcurrency).unwrap();
    assert!(close(block.avg.unwrap(), area / end.since(start) as f64, 1e-9) || area == 0.0);
    assert_eq!(block.max, Some(most as f64));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_summary_is_sound_and_equals_the_plain_way(shapes in prop::collection::vec(shape(), 1..60)) {
        let records: Vec<RequestRecord> =
            (0..).zip(&shapes).map(|(number, shape)| record(number, shape)).collect();
        let context = Context { network_rtt_ms: Some(3.0), ..Context::default() };
        let mut store = Store::new();
        for record in &records {
            store.push(record);
        }
        let summary = store.summarise(PhaseKind::Profiling, &context, &window());
        assert_sound(&summary, &records);
        assert_equal_to_the_plain_way(&summary, &records, &context);
        assert_concurrency(&summary, &records, &window());
    }

    #[test]
    fn a_record_has_its_latencies_in_order(shape in shape()) {
        let mut values = RecordValues::new();
        evaluate(&record(0, &shape), &Context::default(), &mut values);
        let of = |metric| values.number(metric);
        if let (Some(first), Some(latency)) = (of(Metric::TimeToFirstToken), of(Metric::RequestLatency)) {
            prop_assert!(first <= latency);
            if let Some(output) = of(Metric::TimeToFirstOutputToken) {
                prop_assert!(first <= output && output <= latency);
            }
        }
        if let Some(length) = of(Metric::OutputSequenceLength) {
            let parts = of(Metric::OutputTokenCount).unwrap_or(0.0) + of(Metric::ReasoningTokenCount).unwrap_or(0.0);
            prop_assert!((length - parts).abs() < 1e-9);
        }
        for (metric, value) in values.iter() {
            if let Some(value) = value.as_f64() {
                prop_assert!(value.is_finite() && (value >= 0.0 || metric == Metric::OslMismatchDiffPct));
            }
        }
    }

    #[test]
    fn no_figure_depends_on_threads_or_on_the_order_of_merging(
        shapes in prop::collection::vec(shape(), 1..40),
        owners in prop::collection::vec(0usize..3, 40),
    ) {
        let records: Vec<RequestRecord> =
            (0..).zip(&shapes).map(|(number, shape)| record(number, shape)).collect();
        let summarise = |order: [usize; 3]| {
            let mut stores = [Store::new(), Store::new(), Store::new()];
            for (record, owner) in records.iter().zip(&owners) {
                stores[*owner].push(record);
            }
            let mut stores = stores.map(Some);
            let mut sum = Store::new();
            for index in order {
                sum.merge(stores[index].take().unwrap());
            }
            sum.summarise(PhaseKind::Profiling, &Context::default(), &window())
        };
        let (one, two) = (summarise([0, 1, 2]), summarise([2, 0, 1]));
        prop_assert_eq!(one.blocks, two.blocks);
        prop_assert_eq!(one.error_groups, two.error_groups);
    }
}

#[test]
fn no_records_are_no_figures() {
    let mut store = Store::new();
    let summary = store.summarise(PhaseKind::Profiling, &Context::default(), &window());
    assert!(summary.blocks.is_empty(), "{:?}", summary.blocks);
    assert!(store.is_empty(PhaseKind::Profiling));
}

#[test]
fn a_run_of_failures_only_has_counts_and_infinite_latency() {
    let mut store = Store::new();
    for number in 0..3 {
        store.push(&support::failed(
            number,
            T0 + number * 1_000_000,
            5_000_000,
            RequestError::new(503, "Service Unavailable", "maximum context"),
        ));
    }
    let summary = store.summarise(PhaseKind::Profiling, &Context::default(), &window());
    let single = |metric| summary.block(metric).and_then(|block| block.avg);
    assert_eq!(single(Metric::RequestCount), Some(0.0));
    assert_eq!(single(Metric::ErrorRequestCount), Some(3.0));
    assert_eq!(single(Metric::RequestErrorRate), Some(100.0));
    assert_eq!(single(Metric::TotalErrorIsl), Some(24.0));
    assert_eq!(summary.block(Metric::RequestLatency), None);
    assert_eq!(summary.block(Metric::AdjRequestLatency).unwrap().p1, Some(f64::INFINITY));
    assert_eq!(summary.block(Metric::BenchmarkDuration), None);
    // A failure lasts until it was known.
    assert_eq!(summary.block(Metric::EffectiveLatency).unwrap().avg, Some(5.0));
    assert_eq!(summary.error_groups.len(), 1);
}

#[test]
fn long_answers_and_many_blocks_lose_nothing() {
    let mut store = Store::new();
    let context = Context::default();
    let mut records = Vec::new();
    for number in 0..1_500u64 {
        let length = if number % 400 == 7 { 30_000 } else { number % 9 };
        let offsets: Vec<u64> =
            (0..=length).map(|index| 1_000_000 + index * (1_000 + number) + index % 7).collect();
        let record = support::streamed(number, T0 + number * 977_000, &offsets, length + 1);
        store.push(&record);
        records.push(record);
    }
    let summary = store.summarise(PhaseKind::Profiling, &context, &window());
    assert_equal_to_the_plain_way(&summary, &records, &context);
    assert_concurrency(&summary, &records, &window());
}

#[test]
fn a_record_is_kept_in_few_bytes() {
    let mut store = Store::new();
    let mut number = 0u64;
    let mut random = 88_172_645_463_325_252u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    while number < 20_480 {
        let mut at = 15_000_000 + next(20_000_000);
        let mut offsets = vec![at];
        for _ in 0..7 {
            at += 4_000_000 + next(8_000_000);
            offsets.push(at);
        }
        let start = T0 + number * 100_000 + next(20_000);
        let mut record = support::streamed(number, start, &offsets, 8);
        record.plan.issued = Mono(start - next(9_000));
        record.plan.due = Mono(start - next(9_000) - 9_000);
        record.plan.let_go = record.plan.due;
        record.headers = record.first_content().map(|first| first.minus(next(20_000)));
        record.end = record.end.plus(next(40_000));
        let trace = &mut record.trace;
        trace.reused = true;
        trace.send_start = Some(Mono(start + next(3_000)));
        trace.send_end = Some(Mono(start + 3_000 + next(9_000)));
        trace.receive_start = record.answer.content.first().map(|event| event.at);
        trace.receive_end = Some(record.end);
        (trace.chunks_sent, trace.bytes_sent) = (1, 700 + next(300));
        (trace.chunks_received, trace.bytes_received) = (8 + next(3) as u32, 1_900 + next(40));
        store.push(&record);
        number += 1;
    }
    let each = store.bytes() as f64 / number as f64;
    assert!(each < 64.0, "{each}");
}
