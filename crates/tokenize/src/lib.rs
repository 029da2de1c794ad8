//! How many tokens is this text, and which text has n tokens?
//!
//! [`Tokenizer`] counts, encodes and decodes: the published byte-pair encodings are embedded and ready at once,
//! anything else is read from the files of a model. [`Corpus`] is tokenised text to cut prompts from, of exact length where
//! asked. [`seed`] derives the random streams that make a run repeatable.

mod chat;
pub mod corpus;
mod error;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod hub_cache;
mod huggingface;
pub mod numpy;
mod open;
mod placeholder;
mod python_json;
mod ranks;
pub mod seed;
mod sentencepiece;
mod strftime;
mod tokenizer;
mod vocabulary;

pub use chat::{ChatTemplate, Overhead, TemplateError};
pub use corpus::{Blocks, Corpus, CorpusKind, ExactText, Passage, Text};
pub use error::TokenizerError;
pub use files::tokenizer_files;
pub use open::{OpenOptions, Place, cached_files};
pub use placeholder::is_placeholder;
pub use tokenizer::Tokenizer;
