//! One run, from a settled configuration to a finished report: this is where the rooms meet.

mod cache_bust;
mod compute;
mod connections;
mod delivery;
mod detail;
mod error;
mod feed;
mod inputs;
mod models;
mod monitor;
mod notes;
mod proxy;
mod queue;
mod record;
mod run;
mod share;
mod signals;
mod spill;
mod story;
mod target;
mod usage;

pub use aiperf_load::preflight::ready_process;
pub use error::{InputError, RunError, StartFailure, WITHOUT_TOKENIZER};
pub use run::{RunEnd, execute, makes_text, needs_tokenizer, open_tokenizer};
pub use signals::{Signals, interrupts};
