//! Prompts of traces: of a length, or of numbered blocks.

use aiperf_config::Corpus as CorpusChoice;
use aiperf_tokenize::seed::Streams;
use aiperf_tokenize::{Corpus, CorpusKind, Passage, Text};

use crate::{DatasetError, OpenContext};

/// The corpus by the name it has in a configuration.
pub(crate) fn corpus_kind(choice: CorpusChoice) -> CorpusKind {
    match choice {
        CorpusChoice::Sonnet => CorpusKind::Sonnet,
        CorpusChoice::Coding => CorpusKind::Coding,
        CorpusChoice::Random => CorpusKind::Random,
    }
}

/// Makes the prompts of a trace.
pub(crate) struct Prompts {
    corpus: Corpus,
    seed: u64,
    fresh: Streams,
}

impl Prompts {
    /// `None` without a tokenizer: then only rows with texts, messages or payloads can be sent.
    pub(crate) fn new(
        choice: Option<CorpusChoice>,
        context: &OpenContext<'_>,
    ) -> Result<Option<Prompts>, DatasetError> {
        let choice = choice.unwrap_or_default();
        if choice == CorpusChoice::Random {
            return Err(DatasetError::Unsuitable(
                "--prompt-corpus random cannot make the prompts of a trace; use sonnet or coding".into(),
            ));
        }
        Ok(context.tokenizer.map(|tokenizer| Prompts {
            corpus: Corpus::open(corpus_kind(choice), tokenizer),
            seed: context.seed,
            fresh: Streams::new(context.seed, "dataset.trace_prompt"),
        }))
    }

    pub(crate) fn required(prompts: Option<&Prompts>) -> Result<&Prompts, DatasetError> {
        prompts.ok_or_else(|| {
            DatasetError::Prompt(
                "prompts of a given length need a tokenizer; name one with --tokenizer".into(),
            )
        })
    }

    /// A text of `length` tokens (at least 1) for row `unique` alone.
    pub(crate) fn exact(&self, unique: u64, length: u64) -> Text {
        self.corpus.exact_text(&mut self.fresh.at(unique), length.max(1))
    }

    /// The text of whole blocks, without separators, and `tail` tokens for row `unique` alone.
    pub(crate) fn message(
        &self,
        identity: &[u8; 32],
        ids: impl Iterator<Item = i64>,
        block_size: u32,
        tail: u64,
        unique: u64,
    ) -> String {
        let blocks = self.corpus.blocks(self.seed, identity);
        let size = block_size as usize;
        let mut text = Passage::new(&self.corpus, ids.size_hint().0 * size + tail as usize);
        for id in ids {
            text.push_bare_block(&blocks, id, size);
        }
        if tail > 0 {
            text.push_window(&mut self.fresh.at(unique), tail as usize);
        }
        text.finish()
    }

    /// The text of `length` tokens that begins with the blocks `ids`; what is longer than these is for row
    /// `unique` alone.
    pub(crate) fn blocks(
        &self,
        identity: &[u8; 32],
        ids: &[i64],
        block_size: u32,
        length: u64,
        unique: u64,
    ) -> String {
        let blocks = self.corpus.blocks(self.seed, identity);
        let mut left = length as usize;
        let mut text = Passage::new(&self.corpus, left);
        for id in ids {
            let size = left.min(block_size as usize);
            text.push_block(&blocks, *id, size);
            left -= size;
        }
        if left > 0 {
            text.push_window(&mut self.fresh.at(unique), left);
        }
        // Counted when its request is measured: that costs three times what the text does.
        text.finish()
    }
}
