//! What did the person ask? From arguments to a settled run, and the commands.
//!
//! Two levels, as in ripgrep: [`typed`] is what was typed, [`settle`] is what it means. Only the second can find a
//! contradiction, and it does so before any task, file or socket exists. The flags themselves are data ([`flags`]).

mod arguments;
pub mod commands;
mod credentials;
pub mod environment;
pub mod exit;
pub mod flags;
pub mod help;
mod mock_flags;
pub mod panic;
mod print;
mod quote;
mod remote;
pub mod settle;
mod similar;
pub mod typed;
pub mod usage;

pub use arguments::command;
pub use commands::run;
pub use exit::ExitStatus;
