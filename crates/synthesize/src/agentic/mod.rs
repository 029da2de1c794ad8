//! Multi-turn coding-agent sessions: shared prompt layers, repository context per group, contexts that grow turn by
//! turn until they are full or given up.
//!
//! [`Config`] says what they are like, [`Synthesis`] makes the rows, session by session, and counts; `Quality` and
//! its kin say how near the outcome came to what was asked for.

mod cache;
mod comparison;
mod config;
mod manifest;
mod outcome;
mod pages;
mod quality;
mod read;
mod session;
mod synthesis;

pub use cache::CacheStructure;
pub use comparison::comparison;
pub use config::{BUNDLED, CacheLayers, Config, Delays, Reset, Turns, bundled};
pub use manifest::Manifest;
pub use outcome::Outcome;
pub use pages::{cache_explorer, report, simulation};
pub use quality::quality;
pub use read::{ConfigError, ReadConfig, read};
pub use session::{End, Session, Turn};
pub use synthesis::{Synthesis, SynthesisError, Written};
