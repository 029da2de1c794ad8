//! A server whose timings are known: it answers the OpenAI dialect with tokens at set instants, and can be told to
//! fail in any of the ways that servers fail.
//!
//! The same server runs inside a benchmark (`--url mock://`) and by itself (`aiperf mock-server`). It must cost much
//! less CPU than the client it is measured with, so each network thread is one poll loop that writes prepared bytes:
//! no task, no allocation and no lock per token.

mod answer;
mod command;
mod connection;
mod count;
mod dechunk;
mod dialect;
mod draw;
mod fault;
mod head;
mod load;
mod log;
mod scan;
mod serve;
mod server;
mod settings;
mod shared;
mod stats;
mod tls;
mod worker;

pub use command::{CommandError, run_command};
pub use draw::Distribution;
pub use fault::{Fault, Plan, faults};
pub use server::{Server, StartError};
pub use settings::{Name, NameSource, Settings, SettingsError, TlsFiles, UsageMode};
pub use stats::Stats;
pub use tls::TlsError;
