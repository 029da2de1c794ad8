//! Prompts of traces: of a length, or of numbered blocks.

use aiperf_config::Corpus as CorpusChoice;
use aiperf_tokenize::seed::Streams;
use aiperf_tokenize::{Corpus, CorpusKind, Text, Tokenizer};

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
    tokenizer: Tokenizer,
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
            tokenizer: tokenizer.clone(),
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
        let mut tokens = Vec::new();
        for id in ids {
            blocks.append_bare_tokens(id, block_size as usize, &mut tokens);
        }
        if tail > 0 {
            self.corpus.draw_window(&mut self.fresh.at(unique), tail as usize, &mut tokens);
        }
        self.tokenizer.decode(&tokens)
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
        let mut tokens = Vec::with_capacity(length as usize);
        for id in ids {
            let left = length as usize - tokens.len();
            blocks.append_tokens(*id, left.min(block_size as usize), &mut tokens);
        }
        let left = length as usize - tokens.len();
        if left > 0 {
            self.corpus.draw_window(&mut self.fresh.at(unique), left, &mut tokens);
        }
        // Counted when its request is measured: that costs three times what the text does.
        self.tokenizer.decode(&tokens)
    }
}
