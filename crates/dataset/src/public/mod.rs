//! Public data sets: what they are, and from their rows to conversations.
//!
//! A set is one row of [`sets`]: where it lies, which columns matter, and which [`Converter`] makes conversations
//! of a row. [`read`] takes the rows of its shards one after the other, no further than the bound, and keeps what is
//! made of them in a file (`stored`), so that memory holds one row group and what is in flight.

mod asr;
mod chats;
mod convert;
mod exgentic;
mod instruction;
mod media;
mod mmvu;
mod questions;
mod registry;
mod rows;
mod shard;
mod sharegpt;
mod store;
mod stored;
mod value;
mod video;

pub use convert::{Converter, Draft, Job, Made, Summary, beyond_context, read};
pub use registry::{CheckFilters, Make, NAMES, Place, PublicSet, Reading, Setting, find, sets};
pub use rows::{Choice, Row, Rows};
pub use shard::{LocalShard, Shard, ShardBytes};
pub use value::Value;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use exgentic::fuzz_span;
pub(crate) use stored::open;

/// Why the rows of a set cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {fix}")]
pub struct Fault {
    /// What is wrong, with shard and row; no full stop.
    pub what: String,
    /// The next step.
    pub fix: String,
}

impl Fault {
    /// Of these two.
    pub fn new(what: impl Into<String>, fix: impl Into<String>) -> Fault {
        Fault { what: what.into(), fix: fix.into() }
    }

    /// What cannot be read, because it is damaged.
    pub(crate) fn damaged(what: impl Into<String>) -> Fault {
        Fault::new(what, "Delete it from the cache to fetch it again, or tell the publisher")
    }
}
