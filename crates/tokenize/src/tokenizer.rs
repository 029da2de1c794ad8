//! One tokenizer, whatever kind it is.

use std::sync::Arc;

use crate::corpus::TextCorpora;
use crate::ranks::Encoding;

/// Counts, encodes and decodes. Immutable; a clone is another handle to the same tokenizer.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    revision: Option<String>,
    engine: Engine,
    corpora: TextCorpora,
}

#[derive(Debug)]
enum Engine {
    Ranks(&'static Encoding),
}

impl Tokenizer {
    /// The embedded `o200k_base`; takes no time.
    pub fn builtin() -> Tokenizer {
        Tokenizer::from_encoding("builtin", Encoding::builtin())
    }

    pub(crate) fn from_encoding(name: &str, encoding: &'static Encoding) -> Tokenizer {
        let engine = Engine::Ranks(encoding);
        Tokenizer {
            inner: Arc::new(Inner {
                name: name.to_owned(),
                revision: None,
                engine,
                corpora: TextCorpora::default(),
            }),
        }
    }

    /// The name it was opened by.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The hub commit it came from; `None` for embedded and local tokenizers.
    pub fn revision(&self) -> Option<&str> {
        self.inner.revision.as_deref()
    }

    /// Number of tokens of `text`, none added. Text that spells a special token counts as that token.
    pub fn count(&self, text: &str) -> u64 {
        match &self.inner.engine {
            Engine::Ranks(encoding) => encoding.count(text),
        }
    }

    /// Appends the tokens of `text`, none added.
    pub fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        match &self.inner.engine {
            Engine::Ranks(encoding) => encoding.encode(text, tokens),
        }
    }

    /// The text of `tokens`. Bytes that are no UTF-8 become U+FFFD, one for each maximal part of a character;
    /// numbers that stand for no token are left out.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let mut bytes = Vec::new();
        self.decode_into(tokens, &mut bytes);
        lossy(bytes)
    }

    /// Appends the bytes of `tokens`, which may begin or end within a character.
    pub fn decode_into(&self, tokens: &[u32], bytes: &mut Vec<u8>) {
        match &self.inner.engine {
            Engine::Ranks(encoding) => {
                for &token in tokens {
                    encoding.decode_token(token, bytes);
                }
            }
        }
    }

    /// Token numbers are below this.
    pub fn vocab_size(&self) -> u32 {
        match &self.inner.engine {
            Engine::Ranks(encoding) => encoding.vocab_size,
        }
    }

    /// The token put between unrelated texts: that which begins a text, else that which ends one.
    pub fn block_separator(&self) -> Option<u32> {
        match &self.inner.engine {
            Engine::Ranks(encoding) => Some(encoding.separator),
        }
    }

    /// How many tokens a server adds to a bare text.
    pub fn num_special_tokens_to_add(&self) -> u64 {
        match &self.inner.engine {
            Engine::Ranks(_) => 0,
        }
    }

    /// Whether a token number stands for text.
    pub(crate) fn decodes(&self, token: u32) -> bool {
        match &self.inner.engine {
            Engine::Ranks(encoding) => encoding.token_len(token) > 0,
        }
    }

    /// Whether a token number is a special token.
    pub(crate) fn is_special(&self, token: u32) -> bool {
        match &self.inner.engine {
            Engine::Ranks(encoding) => encoding.is_special(token),
        }
    }

    /// Bytes of a token's text, where tokens are bytes put one after the other.
    pub(crate) fn token_len(&self, token: u32) -> Option<usize> {
        match &self.inner.engine {
            Engine::Ranks(encoding) => Some(encoding.token_len(token)),
        }
    }

    /// Whether a token begins at every lone space between visible ASCII characters, and what lies before it
    /// and after it is tokenised apart.
    pub(crate) fn splits_at_seams(&self) -> bool {
        match &self.inner.engine {
            Engine::Ranks(_) => true,
        }
    }

    pub(crate) fn corpora(&self) -> &TextCorpora {
        &self.inner.corpora
    }
}

/// Bytes as text; what is no UTF-8 becomes U+FFFD, one for each maximal part of a character.
pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
