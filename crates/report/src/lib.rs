//! How is it shown and kept? Records go to JSONL files while the run lasts; after it, aggregates go to JSON, CSV
//! and tables, on disk and on the console.

pub mod console;
mod export;
mod files;
mod inputs;
mod json;
pub mod jsonl;
mod log;
pub mod names;
mod number;
mod patience;
pub mod progress;
mod redact;
mod results;
mod screen;
mod sink;
mod stale;
mod style;
mod text;
mod waiting;

pub use export::{ExportFailure, export_all, exports};
pub use files::{AtomicFile, file_id, remedy, temporary_name, write_atomic};
pub use inputs::InputsWriter;
pub use log::{Level, Log};
pub use names::FileNames;
pub use patience::Patience;
pub use redact::{Redactor, holds_signed_url};
pub use results::{BranchStats, PhaseResults, RunResults, WrittenFile};
pub use screen::Screen;
pub use sink::{FLUSH_INTERVAL_NS, RecordSink, SinkError, SinkSummary};
pub use stale::{files_of_run, make_dir, other_runs, prepare_dir, remove_unfinished};
pub use style::{Palette, Style, is_capable_terminal, is_dumb};
pub use text::escaped;
pub use waiting::Waiting;
