//! What is counted as records come in, because no column is needed for it.

use aiperf_types::RequestRecord;

use crate::facts::{Facts, Field, Source};

/// Counts over the records of one kind of phase.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) valid: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    pub(crate) context_overflow: u64,
    pub(crate) truncated: u64,
    pub(crate) not_streamed: u64,
    pub(crate) delayed: u64,
    pub(crate) negative: u64,
    pub(crate) skipped_events: u64,
    pub(crate) content_events: u64,
    pub(crate) coalesced_events: u64,
    pub(crate) with_usage: u64,
    pub(crate) with_cache_reads: u64,
    /// Prompt blocks of valid records, where the data tell, and how many of them a cache could have had.
    pub(crate) prompt_blocks: u64,
    pub(crate) cached_blocks: u64,
    /// Index k: decode steps that accepted k draft tokens.
    pub(crate) acceptance: Vec<u64>,
}

impl Tally {
    pub(crate) fn count(&mut self, record: &RequestRecord, facts: &Facts) {
        self.negative += u64::from(facts.negative);
        self.delayed += u64::from(record.client_delayed);
        self.skipped_events += u64::from(record.answer.skipped_events);
        if !record.is_valid() {
            self.failed += 1;
            self.cancelled += u64::from(record.cancelled_at.is_some());
            self.context_overflow += u64::from(record.context_overflow);
            return;
        }
        self.valid += 1;
        self.truncated += u64::from(record.answer.stream_complete == Some(false));
        self.not_streamed += u64::from(record.answer.not_streamed);
        self.content_events += record.answer.content.len() as u64;
        self.coalesced_events += u64::from(record.answer.coalesced_events);
        self.with_usage += u64::from(record.answer.usage.is_some());
        self.with_cache_reads += u64::from(facts.get(Field::UsageCacheRead).is_some());
        if let Some(source) = &record.identity.source {
            self.prompt_blocks += source.blocks;
            self.cached_blocks += source.cached_blocks.min(source.blocks);
        }
        if let Some(spec) = &record.answer.spec_decode {
            self.add_acceptance(&spec.acceptance_histogram);
        }
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        self.valid += other.valid;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.context_overflow += other.context_overflow;
        self.truncated += other.truncated;
        self.not_streamed += other.not_streamed;
        self.delayed += other.delayed;
        self.negative += other.negative;
        self.skipped_events += other.skipped_events;
        self.content_events += other.content_events;
        self.coalesced_events += other.coalesced_events;
        self.with_usage += other.with_usage;
        self.with_cache_reads += other.with_cache_reads;
        self.prompt_blocks += other.prompt_blocks;
        self.cached_blocks += other.cached_blocks;
        self.add_acceptance(&other.acceptance);
    }

    fn add_acceptance(&mut self, histogram: &[u64]) {
        if self.acceptance.len() < histogram.len() {
            self.acceptance.resize(histogram.len(), 0);
        }
        for (sum, steps) in self.acceptance.iter_mut().zip(histogram) {
            *sum += steps;
        }
    }
}
