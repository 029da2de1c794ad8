//! The load programme of a phase: when requests leave, and what ends it.

use std::time::Duration;

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// Evenly spaced.
    Constant,
    /// Exponential gaps.
    Poisson,
    /// Gamma gaps of this shape.
    Gamma(f64),
}

/// When a fixed schedule plays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FixedSchedule {
    /// Time of the schedule that is T0, ms; `None` is the first timestamp.
    pub zero_ms: Option<f64>,
}

/// Which programme a phase runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadMode {
    /// As fast as the slots allow.
    Burst,
    /// Arrivals at a rate, per second.
    Rate {
        /// Requests per second.
        rate: f64,
        /// Spacing.
        arrival: Arrival,
    },
    /// Recorded times.
    FixedSchedule(FixedSchedule),
}

/// What ends issuing; all that are given apply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StopRule {
    /// Requests issued.
    pub requests: Option<u64>,
    /// Sessions started.
    pub sessions: Option<u64>,
    /// Time since T0.
    pub duration: Option<Duration>,
}

/// Linear ramps at the start of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RampTimes {
    /// Of the concurrency cap.
    pub concurrency: Option<Duration>,
    /// Of the rate.
    pub rate: Option<Duration>,
}

/// Requests that the client breaks off on purpose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cancellation {
    /// Share of requests, 0 to 1.
    pub share: f64,
    /// From the last byte sent to the close.
    pub delay: Duration,
}

/// One load programme.
#[derive(Clone, Debug)]
pub struct PhaseConfig {
    /// Warmup or profiling.
    pub kind: aiperf_types::PhaseKind,
    /// The programme.
    pub mode: LoadMode,
    /// Cap on live sessions; `None` is none.
    pub concurrency: Option<u32>,
    /// Ramps.
    pub ramps: RampTimes,
    /// What ends issuing.
    pub stop: StopRule,
    /// Whether `stop` is what there is where nothing was asked for.
    pub ends_by_default: bool,
    /// How long requests in flight may finish after the duration; `None` is for ever.
    pub grace: Option<Duration>,
    /// Requests broken off on purpose.
    pub cancellation: Option<Cancellation>,
    /// Longest time in which nothing is in flight and a recorded instant or a delay is waited for.
    pub idle_gap_cap: Option<Duration>,
}
