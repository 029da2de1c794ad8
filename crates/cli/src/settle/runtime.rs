//! How the client itself runs.

use std::time::Duration;

use aiperf_config::{RuntimeConfig, Ui};

use crate::environment::Environment;
use crate::typed::Typed;

/// Log levels, the lowest first.
pub(super) const LEVELS: [&str; 8] =
    ["trace", "debug", "info", "notice", "warning", "success", "error", "critical"];

pub(super) fn settle(typed: &Typed, environment: &Environment) -> RuntimeConfig {
    RuntimeConfig {
        workers: typed.count("--workers-max").map(|count| count as usize),
        record_processors: typed.count("--record-processors").map(|count| count as usize),
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
