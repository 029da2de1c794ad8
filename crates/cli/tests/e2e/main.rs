//! The program from end to end: what it sends, writes, prints and answers to the shell.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::too_many_lines,
    reason = "tests say what they expect, exactly and in one place"
)]

mod agentic;
mod answers;
mod bad_input;
mod baseten;
mod cache_bust;
mod client_faults;
mod determinism;
mod documents;
mod exit_codes;
mod field_faults;
mod from_run;
mod golden;
mod host;
mod interrupts;
mod load_delivery;
mod other_tools;
mod own_results;
mod progress;
mod proxies;
mod rankings;
mod records;
mod schema;
mod secrets;
mod stored;
mod support;
mod tokenizers;
mod trace_faults;
mod warnings;
