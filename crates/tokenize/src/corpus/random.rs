//! Pools of token numbers, for prompts that are no text.

use std::sync::Arc;

use crate::Tokenizer;
use crate::ranks::split::is_seam;
use crate::seed::{Rng, below};

use super::text::TextCorpus;

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

    /// A random start.
    pub(super) fn draw(&self, rng: &mut impl Rng) -> u64 {
        below(rng, self.tokens.len() as u64)
    }
}

/// A pool written out as one text that ends where it begins, so that a run of the pool is a piece of this text
/// and its tokens are found as those of any corpus.
#[derive(Debug)]
pub(crate) struct WrittenPool {
    pub(super) corpus: TextCorpus,
    /// Where in the text each token of the pool begins, at the next whole character.
    begins: Box<[u32]>,
}

/// Bytes after which a chunk closes at the next seam.
const CHUNK_BYTES: usize = 8_000;

impl WrittenPool {
    /// `None` when the text has no seam to cut it at.
    pub(super) fn new(tokenizer: &Tokenizer, pool: &TokenPool) -> Option<WrittenPool> {
        let mut bytes = Vec::new();
        let mut begins_raw = Vec::with_capacity(pool.tokens.len());
        for &token in &pool.tokens {
            begins_raw.push(bytes.len());
            tokenizer.decode_into(&[token], &mut bytes);
        }
        let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
        let mut begins = Vec::with_capacity(begins_raw.len());
        let mut raw = 0;
        let mut pending = begins_raw.into_iter().peekable();
        for chunk in bytes.utf8_chunks() {
            let (valid, base) = (chunk.valid(), text.len());
            text.push_str(valid);
            while let Some(begin) = pending.next_if(|&begin| begin < raw + valid.len()) {
                begins.push(text.ceil_char_boundary(base + begin - raw));
            }
            raw += valid.len() + chunk.invalid().len();
            if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
            while pending.next_if(|&begin| begin < raw).is_some() {
                begins.push(text.len());
            }
        }
        begins.extend(pending.map(|_| text.len()));

        // Begin at a seam: then the end joins the beginning at one too.
        let turn = (0..text.len()).find(|&at| is_seam(text.as_bytes(), at))?;
        let len = text.len();
        text = [&text[turn..], &text[..turn]].concat();
        let begins = begins.into_iter().map(|begin| ((begin + len - turn) % len) as u32).collect();

        let mut ends = Vec::new();
        let mut closed = 0;
        for at in 1..len {
            if at - closed >= CHUNK_BYTES && is_seam(text.as_bytes(), at) {
                ends.push(at as u64);
                closed = at;
            }
        }
        ends.push(len as u64);
        Some(WrittenPool { corpus: TextCorpus::written(text, ends), begins })
    }

    /// The chunk and the byte within it where a token of the pool begins, by its place in the pool.
    pub(super) fn position(&self, start: u64) -> (usize, usize) {
        self.corpus.locate(u64::from(self.begins[start as usize]))
    }
}
