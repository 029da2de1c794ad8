//! Data from elsewhere, through the program: against stubs, real servers, and faults.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and that is what it is for")]

mod advice;
mod benchmark_datasets;
mod canaries;
mod checks;
mod disk;
mod exgentic;
mod exgentic_replay;
mod formats;
mod looking;
mod machine;
mod messages;
mod nginx;
mod proxies;
mod public_datasets;
mod public_sets;
mod publish;
mod publish_suggestions;
mod runs;
mod terminal;
mod tokenizers;
