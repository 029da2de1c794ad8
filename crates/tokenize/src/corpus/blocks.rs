//! Prompt blocks named by a number: equal numbers give equal tokens, everywhere in a run.

use crate::seed::{Rng, Streams};

use super::exact::{seam_at_or_after, token_at};
use super::text::begin;
use super::{Corpus, Position, Source};

/// The blocks of one file under one seed. Tokens of a block depend on the seed, the file's identity and the
/// block's number alone.
#[derive(Clone, Debug)]
pub struct Blocks<'corpus> {
    corpus: &'corpus Corpus,
    streams: Streams,
}

impl Corpus {
    /// The blocks of the file with this identity.
    pub fn blocks(&self, seed: u64, file_identity: &[u8; 32]) -> Blocks<'_> {
        Blocks { corpus: self, streams: Streams::keyed(seed, "hash blocks", file_identity) }
    }

    /// Appends the first `n` tokens of block `id`; as [`Blocks::append_tokens`].
    pub fn block_tokens(
        &self,
        seed: u64,
        file_identity: &[u8; 32],
        id: i64,
        n: usize,
        tokens: &mut Vec<u32>,
    ) {
        self.blocks(seed, file_identity).append_tokens(id, n, tokens);
    }
}

impl Blocks<'_> {
    /// Appends the first `n` tokens of block `id`: the tokenizer's separator where it has one, then consecutive
    /// corpus tokens from a start drawn for the block. A shorter block is the beginning of a longer one.
    pub fn append_tokens(&self, id: i64, n: usize, tokens: &mut Vec<u32>) {
        if n == 0 {
            return;
        }
        let separator = self.corpus.tokenizer.block_separator();
        tokens.extend(separator);
        self.append_bare_tokens(id, n - usize::from(separator.is_some()), tokens);
    }

    /// As [`Blocks::append_tokens`], without a separator: blocks that stand within one message.
    pub fn append_bare_tokens(&self, id: i64, n: usize, tokens: &mut Vec<u32>) {
        let mut rng = self.streams.at(id.cast_unsigned());
        match &self.corpus.source {
            Source::Text(corpus) => {
                let start = self.start(&mut rng, corpus);
                corpus.append_tokens(&self.corpus.tokenizer, start, n, tokens);
            }
            Source::Tokens(pool, _) => pool.append(pool.draw(&mut rng), n, tokens),
        }
    }

    /// The bytes of [`Blocks::append_tokens`], for tokenizers whose tokens are bytes put one after the other.
    pub(super) fn append_bytes(&self, id: i64, n: usize, bytes: &mut Vec<u8>) {
        if n == 0 {
            return;
        }
        let separator = self.corpus.tokenizer.block_separator();
        if let Some(separator) = separator {
            self.corpus.tokenizer.decode_into(&[separator], bytes);
        }
        self.append_bare_bytes(id, n - usize::from(separator.is_some()), bytes);
    }

    /// The bytes of [`Blocks::append_bare_tokens`], for the same tokenizers.
    pub(super) fn append_bare_bytes(&self, id: i64, n: usize, bytes: &mut Vec<u8>) {
        if let Source::Text(corpus) = &self.corpus.source {
            let start = self.start(&mut self.streams.at(id.cast_unsigned()), corpus);
            corpus.append_bytes(&self.corpus.tokenizer, start, n, bytes);
        } else {
            let mut tokens = Vec::with_capacity(n);
            self.append_bare_tokens(id, n, &mut tokens);
            self.corpus.tokenizer.decode_into(&tokens, bytes);
        }
    }

    /// Where a block begins: at a word where words begin tokens, so that the blocks of a prompt tokenise as they
    /// were made.
    fn start(&self, rng: &mut impl Rng, corpus: &super::TextCorpus) -> Position {
        let tokenizer = &self.corpus.tokenizer;
        let drawn = corpus.draw(tokenizer, rng);
        if !tokenizer.splits_at_seams() {
            return drawn;
        }
        let chunk = corpus.chunk(tokenizer, drawn.chunk);
        let Some(ends) = &chunk.ends else { return drawn };
        match seam_at_or_after(&chunk.text, begin(ends, drawn.token)).and_then(|at| token_at(ends, at)) {
            Some(token) => Position { token, ..drawn },
            None => Position { chunk: corpus.next(drawn.chunk), token: 0 },
        }
    }
}
