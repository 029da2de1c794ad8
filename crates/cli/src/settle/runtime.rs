//! How the client itself runs.

use std::time::Duration;

use aiperf_config::{RuntimeConfig, Ui};

use crate::environment::Environment;
use crate::typed::Typed;
use crate::usage::UsageError;

/// Log levels, the lowest first.
pub(super) const LEVELS: [&str; 8] =
    ["trace", "debug", "info", "notice", "warning", "success", "error", "critical"];

/// Threads of one kind, at the most: more than any host has cores to run them on.
const MOST_THREADS: u64 = 1024;

pub(super) fn settle(typed: &Typed, environment: &Environment) -> Result<RuntimeConfig, UsageError> {
    Ok(RuntimeConfig {
        workers: threads(typed, "--workers-max")?,
        record_processors: threads(typed, "--record-processors")?,
        ui: match typed.text("--ui") {
            Some("none") => Ui::None,
            Some("simple") => Ui::Simple,
            _ if environment.terminal => Ui::Simple,
            _ => Ui::Lines,
        },
        stats_interval: typed
            .number("--stats-interval")
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        log_level: log_level(typed),
    })
}

fn threads(typed: &Typed, flag: &'static str) -> Result<Option<usize>, UsageError> {
    match typed.count(flag) {
        Some(count) if count > MOST_THREADS => Err(UsageError::Value {
            flag: typed.name(flag).to_owned(),
            value: count.to_string(),
            rule: format!("a whole number, 1 to {MOST_THREADS}"),
            similar: None,
        }),
        count => Ok(count.map(|count| count as usize)),
    }
}

/// `-vv` before `-v` before `--log-level`, as the reference has it.
fn log_level(typed: &Typed) -> u8 {
    let verbose =
        typed.get("--verbose").filter(|_| typed.is_on("--verbose")).map_or(0, |given| given.values.len());
    let name = match verbose {
        _ if verbose > 1 || typed.is_on("--extra-verbose") => "trace",
        1 => "debug",
        _ => typed.text("--log-level").unwrap_or("info"),
    };
    LEVELS.iter().position(|level| *level == name).unwrap_or(2) as u8
}
