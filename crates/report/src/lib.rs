//! How is it shown and kept? Records go to JSONL files while the run lasts; after it, aggregates go to JSON, CSV
//! and tables, on disk and on the console.

mod files;
mod inputs;
mod json;
mod redact;
mod sink;

pub use files::{AtomicFile, write_atomic};
pub use inputs::InputsWriter;
pub use redact::Redactor;
pub use sink::{FLUSH_INTERVAL_NS, RecordSink, SinkError, SinkSummary};
