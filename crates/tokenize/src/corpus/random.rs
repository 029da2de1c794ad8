//! Pools of token numbers, for prompts that are no text.

use std::sync::Arc;

use crate::Tokenizer;
use crate::seed::{Rng, below};

/// Which token numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Those that decode and are not special.
    Ordinary,
    /// Those that decode.
    Decodable,
}

/// Token numbers in ascending order.
#[derive(Debug)]
pub struct TokenPool {
    tokens: Box<[u32]>,
}

impl TokenPool {
    pub(super) fn new(tokenizer: &Tokenizer, pool: Pool) -> TokenPool {
        let tokens = (0..tokenizer.vocab_size())
            .filter(|&token| {
                tokenizer.decodes(token) && (pool == Pool::Decodable || !tokenizer.is_special(token))
            })
            .collect();
        TokenPool { tokens }
    }

    /// The pool of a tokenizer, made once.
    pub fn of(tokenizer: &Tokenizer, pool: Pool) -> Arc<TokenPool> {
        tokenizer.corpora().pool(tokenizer, pool)
    }

    /// The numbers, ascending.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Appends `n` consecutive numbers of the pool from `start` on, wrapping.
    pub fn append(&self, start: u64, n: usize, tokens: &mut Vec<u32>) {
        if self.tokens.is_empty() {
            return;
        }
        let mut begin = (start % self.tokens.len() as u64) as usize;
        let mut left = n;
        while left > 0 {
            let take = left.min(self.tokens.len() - begin);
            tokens.extend_from_slice(&self.tokens[begin..begin + take]);
            left -= take;
            begin = 0;
        }
    }

    pub(super) fn draw_window(&self, rng: &mut impl Rng, n: usize, tokens: &mut Vec<u32>) {
        let start = below(rng, self.tokens.len() as u64);
        self.append(start, n, tokens);
    }
}
