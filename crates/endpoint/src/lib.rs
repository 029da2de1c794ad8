//! How is it said in this API? Turns become request bodies, and what comes back becomes an answer.
//!
//! Going out, a [`Format`] renders a turn of a conversation; a [`History`] holds what a multi-turn conversation
//! has said so far, already serialised, so that each request refers to it instead of repeating it. Coming back,
//! one [`Reader`] takes the bytes of an answer as they were read, splits events, scans each one in place and
//! never builds a tree.
//!
//! A new endpoint is one file in `format/`, one in `reader/` and a line in each of their `mod.rs`.

mod decode;
mod failure;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod json;
mod reader;
mod sse;

pub use decode::{BodyDecoder, DecodeError, is_identity};
pub use failure::{http_error, redirect_error, standard_phrase, switch_error};
pub use format::{Format, FormatError, History, Rendered, prompt_keys};
pub use reader::{ReadPlan, Reader, Reading, Reply};
