//! What a phase is to do, as the machine is told.

use aiperf_clock::nanos;
use aiperf_config::{Arrival, LoadMode, PhaseConfig, StopRule};
use rand_chacha::ChaCha12Rng;

use super::CapRamp;

/// What a phase is to do, in the machine's terms.
#[derive(Debug)]
pub struct Plan {
    /// What makes first turns due.
    pub mode: LoadMode,
    /// Cap on live sessions.
    pub cap: Option<CapRamp>,
    /// Rate ramp, seconds.
    pub rate_ramp_sec: f64,
    /// Time after T0 at which the rate ramp takes its first step, seconds (`AIPERF_TIMING_RATE_RAMP_UPDATE_INTERVAL`).
    pub rate_first_step_sec: f64,
    /// What ends issuing.
    pub stop: StopRule,
    /// Share of turns that the client breaks off.
    pub cancel_share: f64,
    /// Schedule time that may be given up when behind (`AIPERF_TIMING_MAX_CATCHUP_SECONDS`), ns.
    pub max_catch_up_ns: Option<u64>,
    /// Longest time in which nothing is in flight and a recorded instant or a delay is waited for, ns.
    pub idle_gap_cap_ns: Option<u64>,
    /// Draws of arrivals.
    pub arrival_rng: ChaCha12Rng,
    /// Draws of cancellations.
    pub cancel_rng: ChaCha12Rng,
    /// Draws of think times.
    pub think_rng: ChaCha12Rng,
}

impl Plan {
    /// The plan of a settled phase.
    pub fn new(
        phase: &PhaseConfig,
        arrival_rng: ChaCha12Rng,
        cancel_rng: ChaCha12Rng,
        think_rng: ChaCha12Rng,
    ) -> Plan {
        Plan {
            mode: phase.mode,
            cap: phase.concurrency.map(|cap| CapRamp::new(cap, phase.ramps.concurrency.map_or(0, nanos))),
            rate_ramp_sec: phase.ramps.rate.map_or(0.0, |ramp| ramp.as_secs_f64()),
            rate_first_step_sec: 0.1,
            stop: phase.stop,
            cancel_share: phase.cancellation.map_or(0.0, |cancellation| cancellation.share),
            max_catch_up_ns: None,
            idle_gap_cap_ns: phase.idle_gap_cap.map(nanos),
            arrival_rng,
            cancel_rng,
            think_rng,
        }
    }
}

impl Plan {
    /// A closed loop of `cap` sessions, for tests and probes.
    pub fn burst(cap: u32, stop: StopRule, rng: ChaCha12Rng) -> Plan {
        Plan {
            mode: LoadMode::Burst,
            cap: Some(CapRamp::new(cap, 0)),
            rate_ramp_sec: 0.0,
            rate_first_step_sec: 0.1,
            stop,
            cancel_share: 0.0,
            max_catch_up_ns: None,
            idle_gap_cap_ns: None,
            arrival_rng: rng.clone(),
            cancel_rng: rng.clone(),
            think_rng: rng,
        }
    }

    /// The same plan in an open loop.
    #[must_use]
    pub fn with_rate(mut self, rate: f64, arrival: Arrival) -> Plan {
        self.mode = LoadMode::Rate { rate, arrival };
        self
    }
}
