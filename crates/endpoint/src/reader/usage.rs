//! Token usage, under whatever names a server gives it.

use aiperf_types::Usage;

use super::chunk::Chunk;
use crate::json::{Scan, Scanner, float, unsigned};

/// Every name, in order of preference within each figure.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Slot {
    PromptTokens,
    InputTokensSnake,
    PromptTokenCount,
    InputTokensCamel,
    InputTokenCount,
    CompletionTokens,
    OutputTokensSnake,
    CandidatesTokenCount,
    OutputTokensCamel,
    GeneratedTokenCount,
    TotalTokensSnake,
    TotalTokenCount,
    TotalTokensCamel,
    CompletionReasoning,
    OutputReasoning,
    ThoughtsTokenCount,
    PromptCached,
    InputCached,
    CacheReadInputSnake,
    PromptCacheHit,
    CachedContentTokenCount,
    CacheReadInputCamel,
    CachedTokens,
    CacheCreationInput,
    CacheWriteInput,
    PromptCacheMiss,
    ToolUsePrompt,
    PromptAudio,
    InputAudio,
    CompletionAudio,
    OutputAudio,
    CompletionAccepted,
    CompletionRejected,
    Count,
}

/// The figures of one usage object.
struct Figures<'a> {
    counts: [Option<u64>; Slot::Count as usize],
    prompt_audio_seconds: Option<f64>,
    /// `usageMetadata`, `meta.tokens`, `tokens`.
    envelopes: [Option<&'a [u8]>; 3],
}

/// The usage of a chunk that has one.
pub(super) fn read(chunk: &Chunk<'_>) -> Option<Usage> {
    // The chunk was validated: a failure here cannot be.
    let mut figures = Figures::scan(chunk.usage?).ok()?;
    for envelope in std::mem::take(&mut figures.envelopes).into_iter().flatten() {
        let Ok(lifted) = Figures::scan(envelope) else { continue };
        for (slot, value) in figures.counts.iter_mut().zip(lifted.counts) {
            *slot = slot.or(value);
        }
        figures.prompt_audio_seconds = figures.prompt_audio_seconds.or(lifted.prompt_audio_seconds);
    }
    Some(figures.usage())
}

impl<'a> Figures<'a> {
    fn scan(object: &'a [u8]) -> Scan<Figures<'a>> {
        use Slot as S;
        let mut figures =
            Figures { counts: [None; S::Count as usize], prompt_audio_seconds: None, envelopes: [None; 3] };
        Scanner::new(object).members(|scanner, key| {
            let slot = match key {
                b"prompt_tokens" => S::PromptTokens,
                b"completion_tokens" => S::CompletionTokens,
                b"total_tokens" => S::TotalTokensSnake,
                b"prompt_tokens_details" => {
                    return figures.details(
                        scanner,
                        &[(b"cached_tokens", S::PromptCached), (b"audio_tokens", S::PromptAudio)],
                    );
                }
                b"input_tokens_details" => {
                    return figures.details(
                        scanner,
                        &[(b"cached_tokens", S::InputCached), (b"audio_tokens", S::InputAudio)],
                    );
                }
                b"completion_tokens_details" => {
                    return figures.details(
                        scanner,
                        &[
                            (b"reasoning_tokens", S::CompletionReasoning),
                            (b"audio_tokens", S::CompletionAudio),
                            (b"accepted_prediction_tokens", S::CompletionAccepted),
                            (b"rejected_prediction_tokens", S::CompletionRejected),
                        ],
                    );
                }
                b"output_tokens_details" => {
                    return figures.details(
                        scanner,
                        &[(b"reasoning_tokens", S::OutputReasoning), (b"audio_tokens", S::OutputAudio)],
                    );
                }
                b"input_tokens" => S::InputTokensSnake,
                b"promptTokenCount" => S::PromptTokenCount,
                b"inputTokens" => S::InputTokensCamel,
                b"input_token_count" => S::InputTokenCount,
                b"output_tokens" => S::OutputTokensSnake,
                b"candidatesTokenCount" => S::CandidatesTokenCount,
                b"outputTokens" => S::OutputTokensCamel,
                b"generated_token_count" => S::GeneratedTokenCount,
                b"totalTokenCount" => S::TotalTokenCount,
                b"totalTokens" => S::TotalTokensCamel,
                b"thoughtsTokenCount" => S::ThoughtsTokenCount,
                b"cache_read_input_tokens" => S::CacheReadInputSnake,
                b"prompt_cache_hit_tokens" => S::PromptCacheHit,
                b"cachedContentTokenCount" => S::CachedContentTokenCount,
                b"cacheReadInputTokens" => S::CacheReadInputCamel,
                b"cached_tokens" => S::CachedTokens,
                b"cache_creation_input_tokens" => S::CacheCreationInput,
                b"cacheWriteInputTokens" => S::CacheWriteInput,
                b"prompt_cache_miss_tokens" => S::PromptCacheMiss,
                b"toolUsePromptTokenCount" => S::ToolUsePrompt,
                b"prompt_audio_seconds" => {
                    figures.prompt_audio_seconds = float(scanner.span()?);
                    return Ok(());
                }
                b"usageMetadata" => {
                    figures.envelopes[0] = Some(scanner.span()?);
                    return Ok(());
                }
                b"meta" => {
                    figures.envelopes[1] = None;
                    scanner.members(|scanner, key| {
                        if key == b"tokens" {
                            figures.envelopes[1] = Some(scanner.span()?);
                            Ok(())
                        } else {
                            scanner.skip()
                        }
                    })?;
                    return Ok(());
                }
                b"tokens" => {
                    figures.envelopes[2] = Some(scanner.span()?);
                    return Ok(());
                }
                _ => return scanner.skip(),
            };
            figures.counts[slot as usize] = unsigned(scanner.span()?);
            Ok(())
        })?;
        Ok(figures)
    }

    fn details(&mut self, scanner: &mut Scanner<'a>, names: &[(&[u8], Slot)]) -> Scan<()> {
        for (_, slot) in names {
            self.counts[*slot as usize] = None;
        }
        scanner.members(|scanner, key| match names.iter().find(|(name, _)| *name == key) {
            Some((_, slot)) => {
                self.counts[*slot as usize] = unsigned(scanner.span()?);
                Ok(())
            }
            None => scanner.skip(),
        })?;
        Ok(())
    }

    fn get(&self, slot: Slot) -> Option<u64> {
        self.counts[slot as usize]
    }

    fn first(&self, slots: &[Slot]) -> Option<u64> {
        slots.iter().find_map(|slot| self.get(*slot))
    }

    fn usage(&self) -> Usage {
        use Slot as S;
        Usage {
            prompt_tokens: self.prompt(),
            completion_tokens: self.first(&[
                S::CompletionTokens,
                S::OutputTokensSnake,
                S::CandidatesTokenCount,
                S::OutputTokensCamel,
                S::GeneratedTokenCount,
            ]),
            total_tokens: self.first(&[S::TotalTokensSnake, S::TotalTokenCount, S::TotalTokensCamel]),
            reasoning_tokens: self.first(&[
                S::CompletionReasoning,
                S::OutputReasoning,
                S::ThoughtsTokenCount,
            ]),
            prompt_cache_read_tokens: self.first(&[
                S::PromptCached,
                S::InputCached,
                S::CacheReadInputSnake,
                S::PromptCacheHit,
                S::CachedContentTokenCount,
                S::CacheReadInputCamel,
                S::CachedTokens,
            ]),
            prompt_cache_write_tokens: self.first(&[S::CacheCreationInput, S::CacheWriteInput]),
            prompt_cache_miss_tokens: self.get(S::PromptCacheMiss),
            tool_use_prompt_tokens: self.get(S::ToolUsePrompt),
            prompt_audio_tokens: self.first(&[S::PromptAudio, S::InputAudio]),
            prompt_audio_seconds: self.prompt_audio_seconds,
            completion_audio_tokens: self.first(&[S::CompletionAudio, S::OutputAudio]),
            accepted_prediction_tokens: self.get(S::CompletionAccepted),
            rejected_prediction_tokens: self.get(S::CompletionRejected),
        }
    }

    /// Vendors that say `input_tokens` and count caches apart leave the cached part out of it.
    fn prompt(&self) -> Option<u64> {
        use Slot as S;
        let order = [
            S::PromptTokens,
            S::InputTokensSnake,
            S::PromptTokenCount,
            S::InputTokensCamel,
            S::InputTokenCount,
        ];
        let name = order.into_iter().find(|slot| self.get(*slot).is_some())?;
        let tokens = self.get(name)?;
        if !matches!(name, S::InputTokensSnake | S::InputTokensCamel) {
            return Some(tokens);
        }
        let caches =
            [S::CacheReadInputSnake, S::CacheCreationInput, S::CacheReadInputCamel, S::CacheWriteInput];
        Some(caches.into_iter().filter_map(|slot| self.get(slot)).fold(tokens, u64::saturating_add))
    }
}
