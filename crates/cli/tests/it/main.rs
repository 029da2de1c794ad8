//! The command line from the outside: what it takes, what it refuses, what it makes of it.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and that is what it is for")]

mod accepted_flags_act;
mod agentic_code;
mod anonymize;
mod defaults;
mod documents;
mod flag_table;
mod help;
mod idle_options;
mod input_config;
mod looking;
mod options_of_formats;
mod program;
mod refusals;
mod support;
mod synthesize_trace;
mod synthetic_media;
mod synthetic_media_programs;
