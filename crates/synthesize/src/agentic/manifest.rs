//! What is written beside a trace so that it can be made again.

use serde_json::{Value, json};

use super::Config;

/// What makes the trace again.
#[derive(Clone, Debug)]
pub struct Manifest<'a> {
    /// The seed.
    pub seed: u64,
    /// Sessions asked for.
    pub requested_sessions: u64,
    /// Sessions in the trace: those asked for and those that take one up again.
    pub emitted_sessions: u64,
    /// Where the configuration came from.
    pub config_name: &'a str,
    /// The configuration.
    pub config: &'a Config,
}

impl Manifest<'_> {
    /// As it is written.
    pub fn to_json(&self) -> Value {
        json!({
            "seed": self.seed,
            "num_sessions": self.emitted_sessions,
            "requested_sessions": self.requested_sessions,
            "config_name": self.config_name,
            "generation_params": self.config.to_json(),
        })
    }
}
