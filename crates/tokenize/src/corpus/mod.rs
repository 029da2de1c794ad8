//! Tokenised text to cut prompts from.
//!
//! Text corpora are cut into fixed chunks of about 10,000 characters. A chunk is unpacked or generated, and
//! tokenised, when the first window touches it, once per process and tokenizer; which chunks those are, and on
//! which threads, changes no draw. Every chunk begins with a space before a visible character and ends with a
//! visible one, so the corpus reads on over chunk edges and from its end to its beginning.

mod blocks;
mod coding;
mod exact;
mod passage;
mod random;
mod shakespeare;
mod text;
mod topped;
mod words;

use std::fmt;
use std::sync::Arc;

use crate::Tokenizer;
use crate::seed::Rng;

pub use blocks::Blocks;
pub use exact::{ExactText, Text};
pub use passage::Passage;
pub use random::{Pool, TokenPool};
pub(crate) use text::TextCorpora;
use text::{Position, TextCorpus};

/// Which text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CorpusKind {
    /// Shakespeare: the sonnets, then the other works.
    #[default]
    Sonnet,
    /// Generated source code, logs, configuration and talk about them.
    Coding,
    /// No text: runs of token numbers.
    Random,
}

/// A corpus seen through one tokenizer. A clone is another handle; handles of the same kind and tokenizer share
/// what is tokenised.
#[derive(Clone)]
pub struct Corpus {
    tokenizer: Tokenizer,
    source: Source,
}

impl fmt::Debug for Corpus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Corpus").field("tokenizer", &self.tokenizer).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
enum Source {
    Text(Arc<TextCorpus>),
    Tokens(Arc<TokenPool>, Pool),
}

impl Corpus {
    /// Opens a corpus; nothing is unpacked or tokenised yet.
    pub fn open(kind: CorpusKind, tokenizer: &Tokenizer) -> Corpus {
        let source = match kind {
            CorpusKind::Sonnet => Source::Text(tokenizer.corpora().sonnet()),
            CorpusKind::Coding => Source::Text(tokenizer.corpora().coding()),
            CorpusKind::Random => return Corpus::random(Pool::Ordinary, tokenizer),
        };
        Corpus { tokenizer: tokenizer.clone(), source }
    }

    /// Opens runs of the token numbers of a pool.
    pub fn random(pool: Pool, tokenizer: &Tokenizer) -> Corpus {
        let source = Source::Tokens(TokenPool::of(tokenizer, pool), pool);
        Corpus { tokenizer: tokenizer.clone(), source }
    }

    /// The tokenizer it is seen through.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Appends `n` consecutive tokens from a random start, wrapping at the end. The start is a chunk drawn with
    /// weight its bytes, then a token of it.
    pub fn draw_window(&self, rng: &mut impl Rng, n: usize, tokens: &mut Vec<u32>) {
        match &self.source {
            Source::Text(corpus) => {
                let start = corpus.draw(&self.tokenizer, rng);
                corpus.append_tokens(&self.tokenizer, start, n, tokens);
            }
            Source::Tokens(pool, _) => pool.append(pool.draw(rng), n, tokens),
        }
    }

    /// The bytes of [`Corpus::draw_window`], for tokenizers whose tokens are bytes put one after the other.
    fn draw_window_bytes(&self, rng: &mut impl Rng, n: usize, bytes: &mut Vec<u8>) {
        if let Source::Text(corpus) = &self.source {
            let start = corpus.draw(&self.tokenizer, rng);
            corpus.append_bytes(&self.tokenizer, start, n, bytes);
        } else {
            let mut tokens = Vec::with_capacity(n);
            self.draw_window(rng, n, &mut tokens);
            self.tokenizer.decode_into(&tokens, bytes);
        }
    }
}
