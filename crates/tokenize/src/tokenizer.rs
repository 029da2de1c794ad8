//! One tokenizer, whatever kind it is.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::chat::{ChatTemplate, Compiled, TemplateSource};
use crate::corpus::TextCorpora;
use crate::ranks::Encoding;
use crate::vocabulary::Vocabulary;

/// Counts, encodes and decodes. Immutable; a clone is another handle to the same tokenizer.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, revision) = (self.name(), self.revision());
        formatter
            .debug_struct("Tokenizer")
            .field("name", &name)
            .field("revision", &revision)
            .finish_non_exhaustive()
    }
}

struct Inner {
    name: String,
    revision: Option<String>,
    engine: Engine,
    corpora: TextCorpora,
    template: OnceLock<Result<Arc<Compiled>, String>>,
}

enum Engine {
    Ranks(&'static Encoding),
    File(Box<Loaded>),
}

/// What the files of a tokenizer hold.
pub(crate) struct Loaded {
    pub(crate) tokenizer: Box<dyn Vocabulary>,
    pub(crate) separator: Option<u32>,
    pub(crate) template: Option<TemplateSource>,
}

impl Tokenizer {
    /// The embedded `o200k_base`; takes no time.
    pub fn builtin() -> Tokenizer {
        Tokenizer::from_encoding("builtin", Encoding::builtin())
    }

    pub(crate) fn from_encoding(name: &str, encoding: &'static Encoding) -> Tokenizer {
        Tokenizer::new(name, None, Engine::Ranks(encoding))
    }

    pub(crate) fn from_loaded(name: &str, revision: Option<String>, loaded: Loaded) -> Tokenizer {
        Tokenizer::new(name, revision, Engine::File(Box::new(loaded)))
    }

    fn new(name: &str, revision: Option<String>, engine: Engine) -> Tokenizer {
        let (corpora, template) = (TextCorpora::default(), OnceLock::new());
        Tokenizer { inner: Arc::new(Inner { name: name.to_owned(), revision, engine, corpora, template }) }
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
            Engine::File(file) => file.tokenizer.count(text),
        }
    }

    /// Appends the tokens of `text`, none added.
    pub fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        match &self.inner.engine {
            Engine::Ranks(encoding) => encoding.encode(text, tokens),
            Engine::File(file) => file.tokenizer.encode(text, tokens),
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
            Engine::File(file) => file.tokenizer.decode_into(tokens, bytes),
        }
    }

    /// Token numbers are below this.
    pub fn vocab_size(&self) -> u32 {
        match &self.inner.engine {
            Engine::Ranks(encoding) => encoding.vocab_size,
            Engine::File(file) => file.tokenizer.size(),
        }
    }

    /// The token put between unrelated texts: that which begins a text, else that which ends one.
    pub fn block_separator(&self) -> Option<u32> {
        match &self.inner.engine {
            Engine::Ranks(encoding) => Some(encoding.separator),
            Engine::File(file) => file.separator,
        }
    }

    /// How many tokens a server adds to a bare text.
    pub fn num_special_tokens_to_add(&self) -> u64 {
        match &self.inner.engine {
            Engine::Ranks(_) => 0,
            Engine::File(file) => file.tokenizer.added_by_template(),
        }
    }

    /// How many tokens a prompt may have for the server to see `target` of them: less what it adds, at least 1.
    pub fn body_tokens(&self, target: u64) -> u64 {
        target.saturating_sub(self.num_special_tokens_to_add()).max(1)
    }

    /// The chat template, where the tokenizer has one that can be read. Embedded encodings have none.
    pub fn chat_template(&self) -> Option<ChatTemplate> {
        let compiled = self.compiled_template()?.as_ref().ok()?;
        Some(ChatTemplate::new(compiled.clone(), self.clone()))
    }

    /// Why [`Tokenizer::chat_template`] gives none although the tokenizer comes with one.
    pub fn chat_template_fault(&self) -> Option<&str> {
        self.compiled_template()?.as_ref().err().map(String::as_str)
    }

    fn compiled_template(&self) -> Option<&Result<Arc<Compiled>, String>> {
        let Engine::File(file) = &self.inner.engine else { return None };
        let source = file.template.as_ref()?;
        Some(self.inner.template.get_or_init(|| Compiled::new(source).map(Arc::new)))
    }

    /// Whether a token number stands for text.
    pub(crate) fn decodes(&self, token: u32) -> bool {
        match &self.inner.engine {
            Engine::Ranks(encoding) => encoding.token_len(token) > 0,
            Engine::File(file) => file.tokenizer.decodes(token),
        }
    }

    /// Whether a token number is a special token.
    pub(crate) fn is_special(&self, token: u32) -> bool {
        match &self.inner.engine {
            Engine::Ranks(encoding) => encoding.is_special(token),
            Engine::File(file) => file.tokenizer.is_special(token),
        }
    }

    /// Bytes of a token's text, where tokens are bytes put one after the other.
    pub(crate) fn token_len(&self, token: u32) -> Option<usize> {
        match &self.inner.engine {
            Engine::Ranks(encoding) => Some(encoding.token_len(token)),
            Engine::File(file) => file.tokenizer.token_len(token),
        }
    }

    /// Whether tokens are bytes put one after the other.
    pub(crate) fn spells_bytes(&self) -> bool {
        self.token_len(0).is_some()
    }

    /// Whether a token begins at every lone space between visible ASCII characters, and what lies before it
    /// and after it is tokenised apart.
    pub(crate) fn splits_at_seams(&self) -> bool {
        match &self.inner.engine {
            Engine::Ranks(_) => true,
            Engine::File(file) => file.tokenizer.splits_at_seams(),
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
