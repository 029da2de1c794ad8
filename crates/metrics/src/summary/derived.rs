//! Metrics made of other metrics: sums, rates over the window, shares.

use aiperf_clock::{Mono, wall};

use super::columns::Columns;
use crate::block::Block;
use crate::context::Context;
use crate::registry::{Metric, units};
use crate::store::Tally;

/// What derived metrics are made of.
pub(crate) struct Inputs<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) tally: &'a Tally,
    pub(crate) context: &'a Context,
    /// Length of the observation window, s.
    pub(crate) window_sec: Option<f64>,
    /// First send to last content event of valid records, ns.
    pub(crate) duration_ns: Option<i64>,
    /// The same two instants.
    pub(crate) span: Option<(Mono, Mono)>,
}

/// Sums of record metrics.
const SUMS: [(Metric, Metric); 21] = {
    use Metric as M;
    [
        (M::TotalOsl, M::OutputSequenceLength),
        (M::TotalIsl, M::InputSequenceLength),
        (M::TotalErrorIsl, M::ErrorIsl),
        (M::TotalOutputTokens, M::OutputTokenCount),
        (M::TotalReasoningTokens, M::ReasoningTokenCount),
        (M::TotalSpecDecodeSteps, M::SpecDecodeSteps),
        (M::TotalAcceptedDraftTokens, M::SpecDecodeAcceptedDraftTokens),
        (M::TotalDraftTokens, M::SpecDecodeDraftTokens),
        (M::TotalUsagePromptTokens, M::UsagePromptTokens),
        (M::TotalUsageCompletionTokens, M::UsageCompletionTokens),
        (M::TotalUsageTotalTokens, M::UsageTotalTokens),
        (M::TotalUsageReasoningTokens, M::UsageReasoningTokens),
        (M::TotalUsagePromptCacheReadTokens, M::UsagePromptCacheReadTokens),
        (M::TotalUsagePromptCacheWriteTokens, M::UsagePromptCacheWriteTokens),
        (M::TotalUsagePromptCacheMissTokens, M::UsagePromptCacheMissTokens),
        (M::TotalUsageToolUsePromptTokens, M::UsageToolUsePromptTokens),
        (M::TotalUsagePromptAudioTokens, M::UsagePromptAudioTokens),
        (M::TotalUsagePromptAudioSeconds, M::UsagePromptAudioSeconds),
        (M::TotalUsageCompletionAudioTokens, M::UsageCompletionAudioTokens),
        (M::TotalUsageAcceptedPredictionTokens, M::UsageAcceptedPredictionTokens),
        (M::TotalUsageRejectedPredictionTokens, M::UsageRejectedPredictionTokens),
    ]
};

/// The derived and aggregate metrics that exist.
pub(crate) fn blocks(inputs: &Inputs<'_>) -> Vec<(Metric, Block)> {
    let mut blocks: Vec<(Metric, Block)> = SUMS
        .iter()
        .filter_map(|(total, of)| Some((*total, inputs.columns.sum(*of)?)))
        .chain(counts(inputs))
        .chain(rates(inputs))
        .chain(shares(inputs))
        .chain(instants(inputs))
        .chain(replay(inputs))
        .filter(|(metric, _)| inputs.context.applies(*metric))
        .map(|(metric, value)| (metric, Block::single(metric, value)))
        .collect();
    blocks.extend(network_rtt(inputs.context));
    blocks.extend(theoretical_cache_hit(inputs.tally));
    blocks
}

/// Share of prompt blocks that an endless cache per trace could have had: hits are the sum, blocks the count.
fn theoretical_cache_hit(tally: &Tally) -> Option<(Metric, Block)> {
    let (hits, blocks) = (tally.cached_blocks, tally.prompt_blocks);
    let metric = Metric::TheoreticalPrefixCacheHit;
    (blocks > 0).then(|| {
        let share = 100.0 * hits as f64 / blocks as f64;
        (metric, Block { count: Some(blocks), sum: Some(hits as f64), ..Block::single(metric, share) })
    })
}

fn counts(inputs: &Inputs<'_>) -> Vec<(Metric, f64)> {
    use Metric as M;
    let (valid, failed) = (inputs.tally.valid as f64, inputs.tally.failed as f64);
    if valid + failed == 0.0 {
        return Vec::new();
    }
    let mut counts = vec![
        (M::RequestCount, valid),
        (M::CompletedRequestCount, valid + failed),
        (M::RequestErrorRate, 100.0 * failed / (valid + failed)),
    ];
    if failed > 0.0 {
        counts.push((M::ErrorRequestCount, failed));
        counts.push((M::ContextOverflowCount, inputs.tally.context_overflow as f64));
    }
    for metric in [M::OslMismatchCount, M::UsageDiscrepancyCount] {
        counts.extend(inputs.columns.sum(metric).map(|sum| (metric, sum)));
    }
    counts
}

fn rates(inputs: &Inputs<'_>) -> Vec<(Metric, f64)> {
    use Metric as M;
    let Some(window) = inputs.window_sec else { return Vec::new() };
    let input = inputs.columns.sum(M::InputSequenceLength);
    let output = inputs.columns.sum(M::OutputSequenceLength);
    let mut rates = Vec::new();
    if inputs.tally.valid + inputs.tally.failed > 0 {
        rates.push((M::RequestThroughput, inputs.tally.valid as f64 / window));
    }
    rates.extend(output.map(|tokens| (M::OutputTokenThroughput, tokens / window)));
    rates.extend(input.map(|tokens| (M::InputTokenThroughput, tokens / window)));
    rates.extend(
        input.zip(output).map(|(input, output)| (M::TotalTokenThroughput, (input + output) / window)),
    );
    rates
}

fn shares(inputs: &Inputs<'_>) -> Vec<(Metric, f64)> {
    use Metric as M;
    let sum = |metric| inputs.columns.sum(metric);
    let share = |part: Option<f64>, whole: Option<f64>| {
        part.zip(whole).filter(|(_, whole)| *whole > 0.0).map(|(part, whole)| part / whole)
    };
    let accepted = sum(M::SpecDecodeAcceptedDraftTokens);
    [
        (M::OverallThinkingEfficiency, share(sum(M::ReasoningTokenCount), sum(M::OutputTokenCount))),
        (
            M::OverallUsagePromptCacheReadPct,
            share(sum(M::UsagePromptCacheReadTokens), sum(M::UsagePromptTokens)).map(|share| 100.0 * share),
        ),
        (
            M::SpecDecodeTokenWeightedAcceptanceLength,
            share(accepted, sum(M::SpecDecodeSteps)).map(|share| 1.0 + share),
        ),
        (
            M::SpecDecodeOverallDraftAcceptanceRate,
            share(accepted, sum(M::SpecDecodeDraftTokens)).map(|share| 100.0 * share),
        ),
    ]
    .into_iter()
    .filter_map(|(metric, value)| Some((metric, value?)))
    .collect()
}

fn instants(inputs: &Inputs<'_>) -> Vec<(Metric, f64)> {
    use Metric as M;
    let mut instants = Vec::new();
    if let Some((first, last)) = inputs.span {
        instants.push((M::MinRequestTimestamp, wall(first) as f64));
        instants.push((M::MaxResponseTimestamp, wall(last) as f64));
    }
    instants.extend(inputs.duration_ns.map(|ns| (M::BenchmarkDuration, ns as f64 / 1e9)));
    instants
}

/// Lag above which a replay did not follow its schedule, ms.
const DEGRADED_LAG_MS: f64 = 500.0;

fn replay(inputs: &Inputs<'_>) -> Vec<(Metric, f64)> {
    use Metric as M;
    let Some(lag) = inputs.columns.replay_lag else { return Vec::new() };
    let [p50, p90, p99] = lag.map(|ns| ns / 1e6);
    vec![
        (M::ReplaySchedLagP50, p50),
        (M::ReplaySchedLagP90, p90),
        (M::ReplaySchedLagP99, p99),
        (M::ReplaySchedDegraded, f64::from(u8::from(p99 > DEGRADED_LAG_MS))),
    ]
}

/// The round trip that was subtracted, the same in every figure.
fn network_rtt(context: &Context) -> Option<(Metric, Block)> {
    let rtt = context.network_rtt_ms;
    rtt?;
    let block = Block {
        unit: units::MS,
        avg: rtt,
        p1: rtt,
        p5: rtt,
        p10: rtt,
        p25: rtt,
        p50: rtt,
        p75: rtt,
        p90: rtt,
        p95: rtt,
        p99: rtt,
        min: rtt,
        max: rtt,
        std: Some(0.0),
        count: None,
        sum: rtt,
    };
    Some((Metric::NetworkRtt, block))
}
