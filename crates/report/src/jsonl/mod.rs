//! Lines of JSONL files, straight from a record into a buffer that is reused.

mod error;
mod metadata;
mod raw;
mod record;
mod trace;

pub use raw::RawWriter;
pub use record::RecordWriter;
