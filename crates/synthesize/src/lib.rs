//! Which workload looks like that one? From a seed and a few figures to traces and what they are worth.
//!
//! Nothing here opens a file, reads a clock or prints: rows go to a writer that the caller brings, and the same
//! arguments give the same bytes on every machine.

pub mod agentic;
pub mod anonymize;
mod draw;
mod statistics;
pub mod trace;

pub use draw::{LogNormal, Zipf};
pub use statistics::{Column, Histogram, Summary};
