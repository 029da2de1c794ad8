//! When requests are sent: at most one warmup, then the measured phase.

use std::time::Duration;

use aiperf_config::{Arrival, Cancellation, FixedSchedule, LoadMode, PhaseConfig, RampTimes, StopRule};
use aiperf_types::PhaseKind;

use super::dataset::to_u32;
use super::endpoint::duration;
use super::refuse_all;
use crate::typed::Typed;
use crate::usage::UsageError;

/// Requests of a run that nothing else ends.
pub(super) const DEFAULT_REQUESTS: u64 = 10;
const DEFAULT_GRACE: f64 = 30.0;

/// `plays_once` when data without any stop rule is played once instead of for so many requests; how many conversations
/// that is, only the data tell.
pub(super) fn settle(
    typed: &Typed,
    schedule: Option<FixedSchedule>,
    idle_gap_cap: Option<Duration>,
    plays_once: bool,
) -> Result<Vec<PhaseConfig>, UsageError> {
    let profiling = PhaseConfig { idle_gap_cap, ..profiling(typed, schedule, plays_once)? };
    let warmup = warmup(typed, &profiling)?;
    Ok(warmup.into_iter().chain(std::iter::once(profiling)).collect())
}

fn profiling(
    typed: &Typed,
    schedule: Option<FixedSchedule>,
    plays_once: bool,
) -> Result<PhaseConfig, UsageError> {
    let mode = match (schedule, typed.number("--request-rate")) {
        (Some(schedule), _) => LoadMode::FixedSchedule(schedule),
        (None, Some(rate)) => {
            refuse_endless(typed, "--request-rate", rate)?;
            LoadMode::Rate { rate, arrival: arrival(typed, "--arrival-pattern")? }
        }
        (None, None) => {
            refuse_unpaced(typed)?;
            LoadMode::Burst
        }
    };
    let concurrency = concurrency(typed, "--concurrency")?;
    if concurrency.is_none() {
        refuse_all(
            typed,
            &["--concurrency-ramp-duration"],
            "needs --concurrency: there is no limit to raise",
            "add --concurrency N, or drop it",
        )?;
    }
    let time = typed.number("--benchmark-duration");
    if time.is_none() {
        refuse_all(
            typed,
            &["--benchmark-grace-period"],
            "needs --benchmark-duration: without one, every request may finish",
            "add --benchmark-duration SECONDS, or drop it",
        )?;
    }
    let mut stop = StopRule {
        requests: typed.count("--request-count"),
        sessions: typed.count("--num-conversations"),
        duration: seconds(typed, "--benchmark-duration")?,
    };
    let ends_by_default = stop == StopRule::default() && schedule.is_none() && !plays_once;
    if ends_by_default {
        stop.requests = Some(DEFAULT_REQUESTS);
    }
    Ok(PhaseConfig {
        kind: PhaseKind::Profiling,
        mode,
        concurrency: concurrency.or((mode == LoadMode::Burst).then_some(1)),
        ramps: RampTimes {
            concurrency: seconds(typed, "--concurrency-ramp-duration")?,
            rate: seconds(typed, "--request-rate-ramp-duration")?,
        },
        stop,
        ends_by_default,
        grace: match time {
            Some(_) => {
                let grace = typed.number("--benchmark-grace-period").unwrap_or(DEFAULT_GRACE);
                duration(typed, "--benchmark-grace-period", grace)?
            }
            None => None,
        },
        cancellation: cancellation(typed)?,
        idle_gap_cap: None,
    })
}

/// A rate whose first request is this far away waits for ever for all that anyone can tell.
const LONGEST_GAP_DAYS: f64 = 7.0;

/// Refuses a rate so low that nothing would be sent in a week.
fn refuse_endless(typed: &Typed, flag: &'static str, rate: f64) -> Result<(), UsageError> {
    let days = 1.0 / rate / 86_400.0;
    if days <= LONGEST_GAP_DAYS {
        return Ok(());
    }
    Err(UsageError::combination(
        format!("{} {rate:e} is a request in {days:.1e} days", typed.name(flag)),
        format!("give requests per second; {:.1e} is the least", 1.0 / (LONGEST_GAP_DAYS * 86_400.0)),
    ))
}

/// Without a rate nothing has a spacing; `concurrency-burst` says just that.
fn refuse_unpaced(typed: &Typed) -> Result<(), UsageError> {
    let mut flags = vec!["--arrival-smoothness", "--request-rate-ramp-duration"];
    if typed.text("--arrival-pattern") != Some("concurrency-burst") {
        flags.insert(0, "--arrival-pattern");
    }
    refuse_all(typed, &flags, "needs --request-rate", "add --request-rate PER_SECOND, or drop it")
}

/// The arrivals of a pattern flag; the smoothness is shared by both phases.
fn arrival(typed: &Typed, pattern: &str) -> Result<Arrival, UsageError> {
    let smoothness = typed.number("--arrival-smoothness");
    let text = typed.text(pattern).or(typed.text("--arrival-pattern"));
    match (text, smoothness) {
        (Some("gamma"), shape) => Ok(Arrival::Gamma(shape.unwrap_or(1.0))),
        (None, Some(shape)) => Ok(Arrival::Gamma(shape)),
        (Some(other), Some(_)) if pattern == "--arrival-pattern" => Err(UsageError::combination(
            format!(
                "{} needs gamma arrivals, and {} is {other}",
                typed.name("--arrival-smoothness"),
                typed.name(pattern)
            ),
            format!("use {} gamma, or drop {}", typed.name(pattern), typed.name("--arrival-smoothness")),
        )),
        (Some("constant"), _) => Ok(Arrival::Constant),
        (Some(_) | None, _) => Ok(Arrival::Poisson),
    }
}

fn concurrency(typed: &Typed, flag: &'static str) -> Result<Option<u32>, UsageError> {
    typed.count(flag).map(to_u32(typed, flag)).transpose()
}

fn seconds(typed: &Typed, flag: &'static str) -> Result<Option<std::time::Duration>, UsageError> {
    match typed.number(flag) {
        Some(seconds) => duration(typed, flag, seconds),
        None => Ok(None),
    }
}

fn cancellation(typed: &Typed) -> Result<Option<Cancellation>, UsageError> {
    let Some(percent) = typed.number("--request-cancellation-rate") else {
        refuse_all(
            typed,
            &["--request-cancellation-delay"],
            "needs --request-cancellation-rate",
            "add --request-cancellation-rate PERCENT, or drop it",
        )?;
        return Ok(None);
    };
    let delay = seconds(typed, "--request-cancellation-delay")?.unwrap_or_default();
    Ok(Some(Cancellation { share: percent / 100.0, delay }))
}

fn warmup(typed: &Typed, profiling: &PhaseConfig) -> Result<Option<PhaseConfig>, UsageError> {
    let stop = StopRule {
        requests: typed.count("--warmup-request-count"),
        sessions: typed.count("--num-warmup-sessions"),
        duration: seconds(typed, "--warmup-duration")?,
    };
    if stop == StopRule::default() {
        refuse_all(
            typed,
            &[
                "--warmup-grace-period",
                "--warmup-concurrency",
                "--warmup-request-rate",
                "--warmup-arrival-pattern",
                "--warmup-concurrency-ramp-duration",
                "--warmup-request-rate-ramp-duration",
            ],
            "needs a warmup, and nothing asks for one",
            "add --warmup-request-count, --num-warmup-sessions or --warmup-duration, or drop it",
        )?;
        return Ok(None);
    }
    if stop.duration.is_none() {
        refuse_all(
            typed,
            &["--warmup-grace-period"],
            "needs --warmup-duration: without one, every warmup request may finish",
            "add --warmup-duration SECONDS, or drop it",
        )?;
    }
    let inherited = match profiling.mode {
        LoadMode::Rate { rate, .. } => Some(rate),
        LoadMode::Burst | LoadMode::FixedSchedule(_) => None,
    };
    let mode = if let Some(rate) = typed.number("--warmup-request-rate").or(inherited) {
        refuse_endless(typed, "--warmup-request-rate", rate)?;
        LoadMode::Rate { rate, arrival: arrival(typed, "--warmup-arrival-pattern")? }
    } else {
        let mut flags = vec!["--warmup-request-rate-ramp-duration"];
        if typed.text("--warmup-arrival-pattern") != Some("concurrency-burst") {
            flags.push("--warmup-arrival-pattern");
        }
        let fix = "add --warmup-request-rate PER_SECOND, or drop it";
        refuse_all(typed, &flags, "needs --warmup-request-rate", fix)?;
        LoadMode::Burst
    };
    let asked = concurrency(typed, "--warmup-concurrency")?.or(concurrency(typed, "--concurrency")?);
    if asked.is_none() {
        refuse_all(
            typed,
            &["--warmup-concurrency-ramp-duration"],
            "needs --warmup-concurrency: there is no limit to raise",
            "add --warmup-concurrency N, or drop it",
        )?;
    }
    let rate_ramp = match mode {
        LoadMode::Rate { .. } => {
            seconds(typed, "--warmup-request-rate-ramp-duration")?.or(profiling.ramps.rate)
        }
        LoadMode::Burst | LoadMode::FixedSchedule(_) => None,
    };
    Ok(Some(PhaseConfig {
        kind: PhaseKind::Warmup,
        mode,
        concurrency: asked.or((mode == LoadMode::Burst).then_some(1)),
        ramps: RampTimes {
            concurrency: seconds(typed, "--warmup-concurrency-ramp-duration")?
                .or(profiling.ramps.concurrency),
            rate: rate_ramp,
        },
        stop,
        ends_by_default: false,
        grace: seconds(typed, "--warmup-grace-period")?,
        cancellation: None,
        idle_gap_cap: None,
    }))
}
