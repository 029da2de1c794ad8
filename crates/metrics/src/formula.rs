//! What each metric is, as a function of the facts of one record.

use crate::context::Context;
use crate::facts::{Field, Source};
use crate::registry::Metric;

const NS_PER_SEC: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;

/// The value of a metric for one record, in the metric's own unit; `None` when the record does not have it.
/// Whether the metric applies at all is not asked here.
pub(crate) fn value<S: Source>(metric: Metric, facts: &S, context: &Context) -> Option<f64> {
    use Metric as M;
    let raw = |field| facts.get(field).map(|value| value as f64);
    match metric {
        M::TimeToFirstToken => raw(Field::FirstContent),
        M::TimeToSecondToken => raw(Field::FirstGap),
        M::TimeToFirstOutputToken => Some(raw(Field::FirstContent)? + raw(Field::FirstOutput)?),
        M::RequestLatency => latency(facts),
        M::DecodeDuration => decode_duration(facts),
        M::InterTokenLatency => inter_token_latency(facts, context),
        M::OutputTokenThroughputPerUser => ratio(NS_PER_SEC, inter_token_latency(facts, context)?),
        M::E2eOutputTokenThroughput => ratio(output_length(facts)? * NS_PER_SEC, latency(facts)?),
        M::PrefillThroughputPerUser => {
            ratio(raw(Field::InputTokens)? * NS_PER_SEC, raw(Field::FirstContent)?)
        }
        M::StreamSetupLatency => raw(Field::Headers),
        M::StreamPrefillLatency => {
            let prefill = raw(Field::FirstContent)? - raw(Field::Headers)?;
            (prefill >= 0.0).then_some(prefill)
        }
        M::NetworkAdjustedTimeToFirstToken => without_network(raw(Field::FirstContent)?, context),
        M::NetworkAdjustedTimeToFirstOutputToken => {
            without_network(value(M::TimeToFirstOutputToken, facts, context)?, context)
        }
        M::NetworkAdjustedRequestLatency => without_network(latency(facts)?, context),

        M::OutputSequenceLength => output_length(facts),
        M::InputSequenceLength | M::ErrorIsl => raw(Field::InputTokens),
        M::OutputTokenCount => raw(Field::OutputTokens).filter(|tokens| *tokens > 0.0),
        M::ReasoningTokenCount => raw(Field::ReasoningTokens),
        M::ThinkingEfficiency => {
            ratio(raw(Field::ReasoningTokens)?, value(M::OutputTokenCount, facts, context)?)
        }
        M::RequestedOsl => raw(Field::MaxTokens),
        M::OslMismatchDiffPct => {
            let requested = raw(Field::MaxTokens)?;
            ratio(100.0 * (output_length(facts)? - requested), requested)
        }
        M::OslMismatchCount => {
            let requested = raw(Field::MaxTokens)?;
            let allowed = (requested * context.osl_mismatch_pct / 100.0).min(context.osl_mismatch_max_tokens);
            Some(f64::from(u8::from((output_length(facts)? - requested).abs() > allowed)))
        }
        M::UsagePromptTokensDiffPct => difference(raw(Field::UsagePrompt)?, raw(Field::InputTokens)?),
        M::UsageCompletionTokensDiffPct => difference(raw(Field::UsageCompletion)?, output_length(facts)?),
        M::UsageReasoningTokensDiffPct => {
            difference(raw(Field::UsageReasoning)?, raw(Field::ReasoningTokens)?)
        }
        M::UsageDiscrepancyCount => {
            let prompt = value(M::UsagePromptTokensDiffPct, facts, context)?;
            let completion = value(M::UsageCompletionTokensDiffPct, facts, context)?;
            let reasoning = value(M::UsageReasoningTokensDiffPct, facts, context).unwrap_or(0.0);
            let worst = prompt.max(completion).max(reasoning);
            Some(f64::from(u8::from(worst > context.usage_diff_pct)))
        }

        M::HttpReqTlsHandshaking if context.tls => {
            raw(Field::Connecting)?;
            Some(raw(Field::TlsHandshake).unwrap_or(0.0))
        }

        M::NumImages => raw(Field::Images),
        M::ImageThroughput => ratio(raw(Field::Images)? * NS_PER_SEC, latency(facts)?),
        M::AudioDuration => bits(facts, Field::AudioSeconds),
        M::Rtfx => ratio(bits(facts, Field::AudioSeconds)? * NS_PER_SEC, latency(facts)?),
        M::ImageLatency => Some(latency(facts)? / NS_PER_MS / raw(Field::Images)?),

        M::CreditDropLatency => raw(Field::SinceIssue).filter(|lag| *lag >= 0.0),
        M::CreditToStartLatency => Some(raw(Field::SinceIssue)?.max(0.0) / NS_PER_MS),
        M::EffectiveLatency => {
            let tail = raw(Field::Tail)?;
            let busy = if facts.is(Field::Failed) { 0.0 } else { latency(facts).unwrap_or(0.0) };
            Some((raw(Field::SinceIssue)? + busy + tail).max(0.0) / NS_PER_MS)
        }
        M::ReplaySendScheduleOffset => {
            let since_scheduled = facts.get(Field::SinceDue)? + facts.get(Field::Slip)?;
            let origin = context.schedule_origin.map_or(0, |origin| aiperf_clock::wall(origin) as i64);
            Some((origin + since_scheduled) as f64)
        }
        other => usage(other, facts).or_else(|| speculative(other, facts)).or_else(|| wire(other, facts)),
    }
}

fn usage(metric: Metric, facts: &impl Source) -> Option<f64> {
    use Metric as M;
    let field = match metric {
        M::UsagePromptTokens => Field::UsagePrompt,
        M::UsageCompletionTokens => Field::UsageCompletion,
        M::UsageTotalTokens => Field::UsageTotal,
        M::UsageReasoningTokens => Field::UsageReasoning,
        M::UsagePromptCacheReadTokens => Field::UsageCacheRead,
        M::UsagePromptCacheWriteTokens => Field::UsageCacheWrite,
        M::UsagePromptCacheMissTokens => Field::UsageCacheMiss,
        M::UsageToolUsePromptTokens => Field::UsageToolUse,
        M::UsagePromptAudioTokens => Field::UsagePromptAudio,
        M::UsageCompletionAudioTokens => Field::UsageCompletionAudio,
        M::UsageAcceptedPredictionTokens => Field::UsageAccepted,
        M::UsageRejectedPredictionTokens => Field::UsageRejected,
        M::UsagePromptAudioSeconds => return bits(facts, Field::UsagePromptAudioSeconds),
        _ => return None,
    };
    facts.get(field).map(|value| value as f64)
}

fn speculative(metric: Metric, facts: &impl Source) -> Option<f64> {
    use Metric as M;
    let steps = || facts.get(Field::SpecSteps).map(|value| value as f64);
    let accepted = || facts.get(Field::SpecAccepted).map(|value| value as f64);
    let drafted = || facts.get(Field::SpecDrafted).map(|value| value as f64);
    match metric {
        M::SpecDecodeSteps => steps(),
        M::SpecDecodeAcceptedDraftTokens => accepted(),
        M::SpecDecodeDraftTokens => drafted(),
        M::SpecDecodeAcceptanceLength => {
            bits(facts, Field::SpecMean).or_else(|| Some(1.0 + ratio(accepted()?, steps()?)?))
        }
        M::SpecDecodeDraftAcceptanceRate => ratio(100.0 * accepted()?, drafted()?),
        M::SpecDecodeAcceptedPerVerified => ratio(accepted()? + steps()?, drafted()? + steps()?),
        _ => None,
    }
}

fn wire(metric: Metric, facts: &impl Source) -> Option<f64> {
    use Metric as M;
    let sum =
        |fields: &[Field]| fields.iter().try_fold(0.0, |sum, field| Some(sum + facts.get(*field)? as f64));
    match metric {
        M::HttpReqBlocked => sum(&[Field::Blocked]),
        M::HttpReqDnsLookup => sum(&[Field::Dns]),
        M::HttpReqConnecting => sum(&[Field::Connecting]),
        M::HttpReqSending => sum(&[Field::Sending]),
        M::HttpReqWaiting => sum(&[Field::Waiting]),
        M::HttpReqReceiving => sum(&[Field::Receiving]),
        M::HttpReqConnectionReused => sum(&[Field::Reused]),
        M::HttpReqChunksSent => sum(&[Field::ChunksSent]),
        M::HttpReqChunksReceived => sum(&[Field::ChunksReceived]),
        M::HttpReqDataSent => sum(&[Field::BytesSent]),
        M::HttpReqDataReceived => sum(&[Field::BytesReceived]),
        M::HttpReqConnectionOverhead => sum(&[Field::Blocked, Field::Dns, Field::Connecting]),
        M::HttpReqDuration => sum(&[Field::Sending, Field::Waiting, Field::Receiving]),
        M::HttpReqTotal => sum(&[
            Field::Blocked,
            Field::Dns,
            Field::Connecting,
            Field::Sending,
            Field::Waiting,
            Field::Receiving,
        ]),
        _ => None,
    }
}

/// Send to last content event, ns.
#[inline]
pub(crate) fn latency(facts: &impl Source) -> Option<f64> {
    Some((facts.get(Field::FirstContent)? + facts.get(Field::Decode)?) as f64)
}

/// Output and reasoning tokens; one of the two is enough.
#[inline]
pub(crate) fn output_length(facts: &impl Source) -> Option<f64> {
    match (facts.get(Field::OutputTokens), facts.get(Field::ReasoningTokens)) {
        (None, None) => None,
        (output, reasoning) => Some((output.unwrap_or(0) + reasoning.unwrap_or(0)) as f64),
    }
}

/// First to last content event, ns. `None` when one event holds several tokens: they were not seen to come.
fn decode_duration(facts: &impl Source) -> Option<f64> {
    let in_one =
        facts.get(Field::ContentCount) == Some(1) && output_length(facts).is_some_and(|tokens| tokens >= 2.0);
    if in_one { None } else { facts.get(Field::Decode).map(|duration| duration as f64) }
}

/// Time per token after those of the first event, ns: decode duration / (OSL − F). F is 1, or what the server
/// says the first event held, when it says so on every event and its counts are the ones used.
fn inter_token_latency(facts: &impl Source, context: &Context) -> Option<f64> {
    let output = output_length(facts)?;
    if output < 2.0 {
        return None;
    }
    let mut first = 1.0;
    if context.per_chunk_usage && context.server_token_counts {
        let reported = facts.get(Field::FirstChunkTokens).unwrap_or(0) as f64;
        if reported > 0.0 && reported < output {
            first = reported;
        }
    }
    Some(decode_duration(facts)? / (output - first))
}

/// A latency without the network round trip, not below 0; ns.
fn without_network(latency: f64, context: &Context) -> Option<f64> {
    Some((latency - context.network_rtt_ms? * NS_PER_MS).max(0.0))
}

/// How far usage is from the client's count, percent of the latter.
fn difference(usage: f64, counted: f64) -> Option<f64> {
    ratio(100.0 * (usage - counted).abs(), counted)
}

fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}

fn bits(facts: &impl Source, field: Field) -> Option<f64> {
    facts.get(field).map(|bits| f64::from_bits(bits as u64)).filter(|value| value.is_finite())
}
