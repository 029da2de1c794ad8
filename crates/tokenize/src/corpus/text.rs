//! Text corpora by chunk: what is tokenised, and windows of it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::Tokenizer;
use crate::seed::{Rng, below};

use super::random::{Pool, TokenPool, WrittenPool};
use super::{coding, shakespeare};

/// A chunk through one tokenizer.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) text: Cow<'static, str>,
    pub(super) tokens: Box<[u32]>,
    /// Where each token ends in the text; `None` when the tokens do not spell the text byte for byte.
    pub(super) ends: Option<Box<[u32]>>,
}

impl Chunk {
    fn new(text: Cow<'static, str>, tokenizer: &Tokenizer) -> Chunk {
        let mut tokens = Vec::with_capacity(text.len() / 3);
        tokenizer.encode(&text, &mut tokens);
        let mut end = 0;
        let ends: Option<Box<[u32]>> = tokens
            .iter()
            .map(|&token| {
                end += tokenizer.token_len(token)?;
                u32::try_from(end).ok()
            })
            .collect();
        let ends = ends.filter(|ends| ends.last().is_none_or(|&end| end as usize == text.len()));
        Chunk { text, tokens: tokens.into(), ends }
    }
}

/// Where token `token` begins; the end of the text for one past the last.
pub(super) fn begin(ends: &[u32], token: usize) -> usize {
    if token == 0 { 0 } else { ends[token - 1] as usize }
}

/// A token of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) chunk: usize,
    pub(super) token: usize,
}

#[derive(Debug)]
enum Kind {
    Sonnet,
    Coding,
    /// A text of its own.
    Written(String),
}

/// One text corpus through one tokenizer.
#[derive(Debug)]
pub(crate) struct TextCorpus {
    kind: Kind,
    /// Where each chunk ends in the whole text, in bytes.
    ends: Box<[u64]>,
    chunks: Box<[OnceLock<Chunk>]>,
}

impl TextCorpus {
    fn new(kind: Kind) -> TextCorpus {
        let mut end = 0;
        let mut add = |len: usize| {
            end += len as u64;
            end
        };
        let ends: Box<[u64]> = match kind {
            Kind::Sonnet => shakespeare::chunk_lens().map(&mut add).collect(),
            Kind::Coding => coding::chunk_lens().map(&mut add).collect(),
            Kind::Written(_) => Box::default(),
        };
        TextCorpus::with_ends(kind, ends)
    }

    /// A text cut into chunks that end where `ends` says.
    pub(super) fn written(text: String, ends: Vec<u64>) -> TextCorpus {
        TextCorpus::with_ends(Kind::Written(text), ends.into())
    }

    fn with_ends(kind: Kind, ends: Box<[u64]>) -> TextCorpus {
        let chunks = ends.iter().map(|_| OnceLock::new()).collect();
        TextCorpus { kind, ends, chunks }
    }

    /// A chunk, tokenised now if it is not yet.
    pub(super) fn chunk(&self, tokenizer: &Tokenizer, index: usize) -> &Chunk {
        self.chunks[index].get_or_init(|| {
            let text = match &self.kind {
                Kind::Sonnet => shakespeare::chunk(index).into(),
                Kind::Coding => coding::chunk(index).into(),
                Kind::Written(text) => {
                    let begin = if index == 0 { 0 } else { self.ends[index - 1] as usize };
                    text[begin..self.ends[index] as usize].to_owned().into()
                }
            };
            Chunk::new(text, tokenizer)
        })
    }

    /// The chunk that a byte of the whole text lies in, and where in it.
    pub(super) fn locate(&self, at: u64) -> (usize, usize) {
        let chunk = self.ends.partition_point(|&end| end <= at);
        let begin = if chunk == 0 { 0 } else { self.ends[chunk - 1] };
        (chunk, (at - begin) as usize)
    }

    /// The chunk after this one, wrapping.
    pub(super) fn next(&self, index: usize) -> usize {
        if index + 1 == self.chunks.len() { 0 } else { index + 1 }
    }

    /// A random token: a chunk with weight its bytes, then a token of it.
    pub(super) fn draw(&self, tokenizer: &Tokenizer, rng: &mut impl Rng) -> Position {
        let total = self.ends.last().copied().unwrap_or(0);
        let at = below(rng, total);
        let (chunk, _) = self.locate(at);
        let tokens = self.chunk(tokenizer, chunk).tokens.len();
        Position { chunk, token: below(rng, tokens as u64) as usize }
    }

    /// Appends `n` tokens from a position on, wrapping.
    pub(super) fn append_tokens(
        &self,
        tokenizer: &Tokenizer,
        start: Position,
        n: usize,
        tokens: &mut Vec<u32>,
    ) {
        self.walk(tokenizer, start, n, |chunk, range| tokens.extend_from_slice(&chunk.tokens[range]));
    }

    /// Appends the bytes of `n` tokens from a position on, wrapping. For tokenizers whose tokens are bytes put one after
    /// the other.
    pub(super) fn append_bytes(&self, tokenizer: &Tokenizer, start: Position, n: usize, bytes: &mut Vec<u8>) {
        self.walk(tokenizer, start, n, |chunk, range| match &chunk.ends {
            Some(ends) => {
                bytes.extend_from_slice(
                    &chunk.text.as_bytes()[begin(ends, range.start)..begin(ends, range.end)],
                );
            }
            None => tokenizer.decode_into(&chunk.tokens[range], bytes),
        });
    }

    /// Calls `visit` with each stretch of `n` tokens from a position on, wrapping.
    fn walk(
        &self,
        tokenizer: &Tokenizer,
        start: Position,
        n: usize,
        mut visit: impl FnMut(&Chunk, Range<usize>),
    ) {
        let Position { mut chunk, mut token } = start;
        let mut left = n;
        let mut without_progress = 0;
        while left > 0 && without_progress <= self.chunks.len() {
            let here = self.chunk(tokenizer, chunk);
            let from = token.min(here.tokens.len());
            let take = left.min(here.tokens.len() - from);
            visit(here, from..from + take);
            left -= take;
            without_progress = if take == 0 { without_progress + 1 } else { 0 };
            chunk = self.next(chunk);
            token = 0;
        }
    }
}

/// What one tokenizer has made of the corpora, each part when first used.
#[derive(Debug, Default)]
pub(crate) struct TextCorpora {
    sonnet: OnceLock<Arc<TextCorpus>>,
    coding: OnceLock<Arc<TextCorpus>>,
    ordinary: OnceLock<Arc<TokenPool>>,
    decodable: OnceLock<Arc<TokenPool>>,
    written_pool: OnceLock<Option<WrittenPool>>,
    plain_words: OnceLock<Box<[String]>>,
}

impl TextCorpora {
    pub(super) fn sonnet(&self) -> Arc<TextCorpus> {
        self.sonnet.get_or_init(|| Arc::new(TextCorpus::new(Kind::Sonnet))).clone()
    }

    pub(super) fn coding(&self) -> Arc<TextCorpus> {
        self.coding.get_or_init(|| Arc::new(TextCorpus::new(Kind::Coding))).clone()
    }

    pub(super) fn pool(&self, tokenizer: &Tokenizer, pool: Pool) -> Arc<TokenPool> {
        let cell = match pool {
            Pool::Ordinary => &self.ordinary,
            Pool::Decodable => &self.decodable,
        };
        cell.get_or_init(|| Arc::new(TokenPool::new(tokenizer, pool))).clone()
    }

    /// The ordinary pool as a text, where the tokenizer allows cutting it.
    pub(super) fn written_pool(&self, tokenizer: &Tokenizer) -> Option<&WrittenPool> {
        let make = || WrittenPool::new(tokenizer, &self.pool(tokenizer, Pool::Ordinary));
        tokenizer.splits_at_seams().then(|| self.written_pool.get_or_init(make).as_ref())?
    }

    /// Words of small letters, each with a space before it, that are one token wherever they follow one another.
    pub(super) fn plain_words(&self, tokenizer: &Tokenizer) -> &[String] {
        const ENOUGH: usize = 64;
        self.plain_words.get_or_init(|| {
            let pool = self.pool(tokenizer, Pool::Ordinary);
            let words = pool.tokens().iter().filter_map(|&token| {
                let word = format!(" {}", tokenizer.decode(&[token]).trim());
                let letters = word.len() > 2 && word[1..].bytes().all(|byte| byte.is_ascii_lowercase());
                let single = |times| tokenizer.count(&word.repeat(times)) == times as u64;
                (letters && single(1) && single(3)).then_some(word)
            });
            words.take(ENOUGH).collect()
        })
    }
}
