//! Text put together from blocks and windows.

use crate::Tokenizer;
use crate::seed::Rng;
use crate::tokenizer::lossy;

use super::{Blocks, Corpus};

/// A text in the making: what decoding all of its tokens at once gives. Where tokens are bytes put one after the other,
/// those of the corpus are copied from its text instead, which is several times faster.
#[derive(Debug)]
pub struct Passage<'corpus> {
    corpus: &'corpus Corpus,
    written: Written,
}

#[derive(Debug)]
enum Written {
    Bytes(Vec<u8>),
    Tokens(Vec<u32>),
}

impl<'corpus> Passage<'corpus> {
    /// An empty one, for about `tokens` tokens.
    pub fn new(corpus: &'corpus Corpus, tokens: usize) -> Passage<'corpus> {
        let written = if corpus.tokenizer().spells_bytes() {
            Written::Bytes(Vec::with_capacity(tokens.saturating_mul(9) / 2))
        } else {
            Written::Tokens(Vec::with_capacity(tokens))
        };
        Passage { corpus, written }
    }

    /// Appends the first `n` tokens of a block; see [`Blocks::append_tokens`].
    pub fn push_block(&mut self, blocks: &Blocks<'_>, id: i64, n: usize) {
        match &mut self.written {
            Written::Bytes(bytes) => blocks.append_bytes(id, n, bytes),
            Written::Tokens(tokens) => blocks.append_tokens(id, n, tokens),
        }
    }

    /// Appends the first `n` tokens of a block without a separator; see [`Blocks::append_bare_tokens`].
    pub fn push_bare_block(&mut self, blocks: &Blocks<'_>, id: i64, n: usize) {
        match &mut self.written {
            Written::Bytes(bytes) => blocks.append_bare_bytes(id, n, bytes),
            Written::Tokens(tokens) => blocks.append_bare_tokens(id, n, tokens),
        }
    }

    /// Appends `n` tokens from a random start; see [`Corpus::draw_window`].
    pub fn push_window(&mut self, rng: &mut impl Rng, n: usize) {
        match &mut self.written {
            Written::Bytes(bytes) => self.corpus.draw_window_bytes(rng, n, bytes),
            Written::Tokens(tokens) => self.corpus.draw_window(rng, n, tokens),
        }
    }

    /// The text. Bytes that are no UTF-8 become U+FFFD, as [`Tokenizer::decode`] has it.
    pub fn finish(self) -> String {
        match self.written {
            Written::Bytes(bytes) => lossy(bytes),
            Written::Tokens(tokens) => Tokenizer::decode(self.corpus.tokenizer(), &tokens),
        }
    }
}
