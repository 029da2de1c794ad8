//! Rates and concurrencies that a phase grows towards and ends before: each is said.

use std::time::Duration;

use aiperf_config::{LoadMode, PhaseConfig, RunConfig};
use aiperf_types::PhaseKind;

use super::Note;
use crate::typed::Typed;

/// What grows, the ramp in which it does, and what ends a phase.
struct Flags {
    rate: &'static str,
    rate_ramp: &'static str,
    concurrency: &'static str,
    concurrency_ramp: &'static str,
    duration: &'static str,
    requests: &'static str,
}

const PROFILING: Flags = Flags {
    rate: "--request-rate",
    rate_ramp: "--request-rate-ramp-duration",
    concurrency: "--concurrency",
    concurrency_ramp: "--concurrency-ramp-duration",
    duration: "--benchmark-duration",
    requests: "--request-count",
};

const WARMUP: Flags = Flags {
    rate: "--warmup-request-rate",
    rate_ramp: "--warmup-request-rate-ramp-duration",
    concurrency: "--warmup-concurrency",
    concurrency_ramp: "--warmup-concurrency-ramp-duration",
    duration: "--warmup-duration",
    requests: "--warmup-request-count",
};

/// What no phase of `config` reaches. Of a warmup only where it has ramps of its own.
pub(super) fn notes(typed: &Typed, config: &RunConfig) -> Vec<Note> {
    let mut notes = Vec::new();
    for phase in &config.phases {
        let flags = match phase.kind {
            PhaseKind::Profiling => &PROFILING,
            PhaseKind::Warmup => &WARMUP,
        };
        let texts = [rate(typed, phase, flags), concurrency(typed, phase, flags)];
        notes.extend(texts.into_iter().flatten().map(Note::warning));
    }
    notes
}

fn rate(typed: &Typed, phase: &PhaseConfig, flags: &Flags) -> Option<String> {
    let LoadMode::Rate { rate, .. } = phase.mode else { return None };
    let ramp = phase.ramps.rate.filter(|_| typed.has(flags.rate_ramp))?.as_secs_f64();
    let in_ramp = rate * ramp / 2.0;
    // The rate is in proportion to the time, the number of requests to its square.
    let by_time = phase.stop.duration.map(|time| (time.as_secs_f64() / ramp, flags.duration));
    let by_count = phase.stop.requests.map(|count| ((count as f64 / in_ramp).sqrt(), flags.requests));
    let ends = by_time.into_iter().chain(by_count);
    let (share, end) =
        ends.min_by(|one, other| one.0.total_cmp(&other.0)).filter(|(share, _)| *share < 1.0)?;
    let (ends, fix) = match phase.stop.requests {
        Some(count) if phase.ends_by_default => (
            format!("the {count} requests of the default end"),
            format!("give {} or {}", flags.requests, flags.duration),
        ),
        _ => (format!("{} ends", typed.name(end)), "raise it".to_owned()),
    };
    Some(format!(
        "the rate of {} {rate} is never reached: {ends} the phase within the ramp, at about {} requests/s; {fix}, or \
         shorten {}",
        typed.name(flags.rate),
        two_digits(rate * share),
        typed.name(flags.rate_ramp)
    ))
}

fn concurrency(typed: &Typed, phase: &PhaseConfig, flags: &Flags) -> Option<String> {
    let ramp = phase.ramps.concurrency.filter(|_| typed.has(flags.concurrency_ramp))?;
    let most = phase.concurrency.filter(|most| *most > 1)?;
    let time: Duration = phase.stop.duration.filter(|time| *time < ramp)?;
    let reached = 1 + (f64::from(most - 1) * time.as_secs_f64() / ramp.as_secs_f64()) as u32;
    Some(format!(
        "the concurrency of {} {most} is never reached: {} ends the phase within the ramp, at {reached}; raise it, or \
         shorten {}",
        typed.name(flags.concurrency),
        typed.name(flags.duration),
        typed.name(flags.concurrency_ramp)
    ))
}

/// A number for people, with the digits that count.
fn two_digits(number: f64) -> String {
    if number >= 10.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.1e}").parse::<f64>().map_or_else(|_| number.to_string(), |short| short.to_string())
    }
}
