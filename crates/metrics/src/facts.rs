//! The few instants and counts of a record that every metric is derived from.
//!
//! A metric is computed from these alone, whether the record has just come in or is read back from the
//! [`crate::Store`] at the end of the run: there is one formula for both.

use aiperf_clock::Mono;
use aiperf_types::{Channel, RequestRecord};

/// One fact. Durations are nanoseconds. Each is stored as the difference that is smallest, so that a block of
/// records packs well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Field {
    /// Send, on the monotonic clock.
    Start,
    /// Issue to send.
    SinceIssue,
    /// Due to send.
    SinceDue,
    /// Due to the instant a requested cap let it go.
    CapWait,
    /// Scheduled to due.
    Slip,
    /// Part of the first fill of a closed loop.
    InitialFill,
    /// Send to status and headers.
    Headers,
    /// Send to first content event.
    FirstContent,
    /// First content event to first event with something of the answer.
    FirstOutput,
    /// First to last content event.
    Decode,
    /// Last content event (send, without one) to end.
    Tail,
    /// Content events.
    ContentCount,
    /// First to second content event.
    FirstGap,
    /// First byte written to last.
    Sending,
    /// Last byte written to first bytes of the body read.
    Waiting,
    /// First to last bytes of the body.
    Receiving,
    /// Waiting for a pooled connection.
    Blocked,
    /// Name lookup.
    Dns,
    /// TCP connect and TLS handshake.
    Connecting,
    /// The connection had been used before.
    Reused,
    /// Body writes.
    ChunksSent,
    /// Body reads.
    ChunksReceived,
    /// Body bytes sent.
    BytesSent,
    /// Body bytes received.
    BytesReceived,
    /// Input tokens.
    InputTokens,
    /// Output tokens without reasoning.
    OutputTokens,
    /// Reasoning tokens.
    ReasoningTokens,
    /// Output limit sent.
    MaxTokens,
    /// Image parts.
    Images,
    /// Audio that was sent, bits of seconds.
    AudioSeconds,
    /// Usage: prompt.
    UsagePrompt,
    /// Usage: completion.
    UsageCompletion,
    /// Usage: total.
    UsageTotal,
    /// Usage: reasoning.
    UsageReasoning,
    /// Usage: cache read.
    UsageCacheRead,
    /// Usage: cache write.
    UsageCacheWrite,
    /// Usage: cache miss.
    UsageCacheMiss,
    /// Usage: tool use.
    UsageToolUse,
    /// Usage: audio of the prompt.
    UsagePromptAudio,
    /// Usage: audio of the prompt, bits of seconds.
    UsagePromptAudioSeconds,
    /// Usage: audio of the completion.
    UsageCompletionAudio,
    /// Usage: accepted predictions.
    UsageAccepted,
    /// Usage: rejected predictions.
    UsageRejected,
    /// Completion tokens in the first usage beside content.
    FirstChunkTokens,
    /// Speculative decoding: steps.
    SpecSteps,
    /// Speculative decoding: draft tokens.
    SpecDrafted,
    /// Speculative decoding: accepted draft tokens.
    SpecAccepted,
    /// Speculative decoding: bits of the mean acceptance length.
    SpecMean,
    /// TLS handshake, a part of connecting; absent where there was none.
    TlsHandshake,
    /// The record failed.
    Failed,
    /// A streaming request was answered with a whole body.
    NotStreamed,
}

impl Field {
    /// How many fields there are.
    pub(crate) const COUNT: usize = Field::NotStreamed as usize + 1;
}

/// Something that has the facts of one record.
pub(crate) trait Source {
    /// A fact, if it is known.
    fn get(&self, field: Field) -> Option<i64>;

    /// Whether a flag is set.
    fn is(&self, field: Field) -> bool {
        self.get(field) == Some(1)
    }
}

/// The facts of one record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) present: u64,
    pub(crate) values: [i64; Field::COUNT],
    /// Differences that came out negative and cannot be; they are not among the facts.
    pub(crate) negative: u32,
}

impl Source for Facts {
    #[inline]
    fn get(&self, field: Field) -> Option<i64> {
        (self.present >> (field as u8) & 1 != 0).then_some(self.values[field as usize])
    }
}

impl Facts {
    /// The facts of a record.
    pub(crate) fn of(record: &RequestRecord) -> Facts {
        let mut facts = Facts { present: 0, values: [0; Field::COUNT], negative: 0 };
        facts.plan(record);
        facts.set(Field::Failed, i64::from(!record.is_valid()));
        facts.maybe(Field::InputTokens, record.tokens.input);
        if record.is_valid() {
            facts.answer(record);
            facts.wire(record);
            facts.counts(record);
            facts.usage(record);
        } else {
            facts.elapsed(Field::Tail, Some(record.end), Some(record.start));
        }
        facts
    }

    fn plan(&mut self, record: &RequestRecord) {
        let plan = &record.plan;
        self.set(Field::Start, record.start.0 as i64);
        // These may be negative without anything being wrong: a plan is a wish.
        self.set(Field::SinceIssue, record.start.since(plan.issued));
        self.set(Field::SinceDue, record.start.since(plan.due));
        self.set(Field::CapWait, plan.let_go.since(plan.due));
        if let Some(scheduled) = plan.scheduled {
            self.set(Field::Slip, plan.due.since(scheduled));
        }
        self.set(Field::InitialFill, i64::from(plan.initial_fill));
    }

    fn answer(&mut self, record: &RequestRecord) {
        let answer = &record.answer;
        let first = record.first_content();
        let last = record.last_content();
        self.elapsed(Field::Headers, record.headers, Some(record.start));
        self.elapsed(Field::FirstContent, first, Some(record.start));
        self.elapsed(Field::Decode, last, first);
        self.elapsed(Field::Tail, Some(record.end), last.or(Some(record.start)));
        let output = answer
            .content
            .iter()
            .find(|event| {
                matches!(event.channel, Channel::Text | Channel::ToolCall | Channel::ReasoningAndText)
            })
            .map(|event| event.at);
        self.elapsed(Field::FirstOutput, output, first);
        self.set(Field::ContentCount, answer.content.len() as i64);
        let disordered = answer.content.windows(2).filter(|pair| pair[1].at < pair[0].at).count();
        self.negative += disordered as u32;
        if disordered == 0 && answer.content.len() > 1 {
            self.set(Field::FirstGap, answer.content[1].at.since(answer.content[0].at));
        }
        self.set(Field::NotStreamed, i64::from(answer.not_streamed));
    }

    fn wire(&mut self, record: &RequestRecord) {
        let trace = &record.trace;
        let Some(send_start) = trace.send_start else { return };
        self.elapsed(Field::Sending, trace.send_end, Some(send_start));
        self.elapsed(Field::Waiting, trace.receive_start, trace.send_end);
        self.elapsed(Field::Receiving, trace.receive_end, trace.receive_start);
        for (field, span) in
            [(Field::Blocked, trace.pool_wait), (Field::Dns, trace.dns), (Field::Connecting, trace.connect)]
        {
            match span {
                Some((from, until)) => self.elapsed(field, Some(until), Some(from)),
                None => self.set(field, 0),
            }
        }
        if let Some((from, until)) = trace.tls {
            self.elapsed(Field::TlsHandshake, Some(until), Some(from));
        }
        self.set(Field::Reused, i64::from(trace.reused));
        self.set(Field::ChunksSent, i64::from(trace.chunks_sent));
        self.set(Field::ChunksReceived, i64::from(trace.chunks_received));
        self.set(Field::BytesSent, trace.bytes_sent as i64);
        self.set(Field::BytesReceived, trace.bytes_received as i64);
    }

    fn counts(&mut self, record: &RequestRecord) {
        self.maybe(Field::OutputTokens, record.tokens.output);
        self.maybe(Field::ReasoningTokens, record.tokens.reasoning);
        self.maybe(Field::MaxTokens, record.request.max_tokens);
        self.maybe(Field::AudioSeconds, record.request.audio_seconds.map(f64::to_bits));
        if record.request.num_images > 0 {
            self.set(Field::Images, i64::from(record.request.num_images));
        }
    }

    fn usage(&mut self, record: &RequestRecord) {
        self.maybe(Field::FirstChunkTokens, record.answer.first_chunk_completion_tokens);
        if let Some(usage) = &record.answer.usage {
            self.maybe(Field::UsagePrompt, usage.prompt_tokens);
            self.maybe(Field::UsageCompletion, usage.completion_tokens);
            self.maybe(Field::UsageTotal, usage.total_tokens);
            self.maybe(Field::UsageReasoning, usage.reasoning_tokens);
            self.maybe(Field::UsageCacheRead, usage.prompt_cache_read_tokens);
            self.maybe(Field::UsageCacheWrite, usage.prompt_cache_write_tokens);
            self.maybe(Field::UsageCacheMiss, usage.prompt_cache_miss_tokens);
            self.maybe(Field::UsageToolUse, usage.tool_use_prompt_tokens);
            self.maybe(Field::UsagePromptAudio, usage.prompt_audio_tokens);
            self.maybe(Field::UsagePromptAudioSeconds, usage.prompt_audio_seconds.map(f64::to_bits));
            self.maybe(Field::UsageCompletionAudio, usage.completion_audio_tokens);
            self.maybe(Field::UsageAccepted, usage.accepted_prediction_tokens);
            self.maybe(Field::UsageRejected, usage.rejected_prediction_tokens);
        }
        if let Some(spec) = &record.answer.spec_decode {
            let accepted = spec.accepted_draft_tokens.unwrap_or_else(|| {
                spec.acceptance_histogram.iter().zip(0..).map(|(steps, accepted)| steps * accepted).sum()
            });
            let drafted =
                spec.draft_tokens.or_else(|| Some(spec.num_spec_tokens?.saturating_mul(spec.num_spec_steps)));
            self.set(Field::SpecSteps, spec.num_spec_steps as i64);
            self.set(Field::SpecAccepted, accepted as i64);
            self.maybe(Field::SpecDrafted, drafted);
            self.maybe(Field::SpecMean, spec.mean_acceptance_length.map(f64::to_bits));
        }
    }

    /// A duration; unknown without both ends, and counted when it would be negative.
    fn elapsed(&mut self, field: Field, until: Option<Mono>, from: Option<Mono>) {
        if let (Some(until), Some(from)) = (until, from) {
            let elapsed = until.since(from);
            if elapsed < 0 {
                self.negative += 1;
            } else {
                self.set(field, elapsed);
            }
        }
    }

    #[inline]
    fn maybe(&mut self, field: Field, value: Option<u64>) {
        if let Some(value) = value {
            self.set(field, value as i64);
        }
    }

    #[inline]
    fn set(&mut self, field: Field, value: i64) {
        self.present |= 1 << field as u8;
        self.values[field as usize] = value;
    }
}

/// How many gaps between content events a record has.
#[inline]
pub(crate) fn gap_count(source: &impl Source) -> usize {
    match (source.get(Field::ContentCount), source.get(Field::FirstGap)) {
        (Some(count), Some(_)) => count as usize - 1,
        _ => 0,
    }
}
