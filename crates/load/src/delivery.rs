//! How the load was delivered, as each worker tallies it and the phase adds it up.

use std::time::Duration;

use aiperf_clock::{Mono, nanos};
use aiperf_types::PlanInstants;
use hdrhistogram::Histogram;

/// Instants are tallied up to an hour.
const LARGEST_NS: u64 = 3_600_000_000_000;

/// A distribution of durations, ns, to three significant digits.
#[derive(Clone, Debug)]
pub struct Durations {
    histogram: Histogram<u64>,
    sum: u128,
    max: u64,
}

impl Default for Durations {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants that the constructor accepts")]
        let histogram = Histogram::new_with_bounds(1, LARGEST_NS, 3).expect("bounds are valid");
        Durations { histogram, sum: 0, max: 0 }
    }
}

impl Durations {
    /// Adds one.
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.max(1));
        self.sum += u128::from(ns);
        self.max = self.max.max(ns);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Durations) {
        // Fails only for bounds that differ; all are made alike.
        let _ = self.histogram.add(&other.histogram);
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Sum, ns.
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// Largest, ns; exact.
    pub fn max_ns(&self) -> u64 {
        self.max
    }

    /// Mean, ns.
    pub fn mean_ns(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.sum as f64 / self.count() as f64 }
    }

    /// Percentile, ns.
    pub fn percentile_ns(&self, percentile: f64) -> u64 {
        self.histogram.value_at_percentile(percentile).min(self.max)
    }
}

/// What one worker saw of the sends of a phase.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Sends.
    pub sent: u64,
    /// Send minus the later of due and let go; without the first fill of a closed loop.
    pub lateness: Durations,
    /// Let go minus due.
    pub cap_wait: Durations,
    /// Due minus scheduled.
    pub slip: Durations,
    /// Last send of the first fill.
    pub last_fill: Option<Mono>,
    /// Last send.
    pub last_start: Option<Mono>,
    /// Turns whose request was not ready when due.
    pub late_prompts: u64,
    /// Failures for want of descriptors, ports or buffers.
    pub resource_errors: u64,
    /// Connections that could not be made.
    pub failed_connections: u64,
    /// The longest pause after one, ns: its slot was kept for so long.
    pub longest_dial_pause_ns: u64,
    /// Differences that came out negative: send before due.
    pub negative_differences: u64,
    /// Requests in flight while their worker was late.
    pub delayed_requests: u64,
    /// How late the worker was to a ready descriptor.
    pub loop_delay: Durations,
}

impl Tally {
    /// Counts a send at `start`.
    pub(crate) fn sent(&mut self, plan: &PlanInstants, start: Mono) {
        self.sent += 1;
        self.last_start = self.last_start.max(Some(start));
        if plan.initial_fill {
            self.last_fill = self.last_fill.max(Some(start));
            return;
        }
        let lateness = start.since(plan.due.max(plan.let_go));
        if lateness < 0 {
            self.negative_differences += 1;
        }
        self.lateness.record(lateness.max(0) as u64);
        self.cap_wait.record(plan.let_go.saturating_since(plan.due));
        if let Some(scheduled) = plan.scheduled {
            self.slip.record(plan.due.saturating_since(scheduled));
        }
    }

    /// Counts a connection that could not be made, and the pause for which its slot is kept.
    pub(crate) fn dial_failed(&mut self, pause: Duration) {
        self.failed_connections += 1;
        self.longest_dial_pause_ns = self.longest_dial_pause_ns.max(nanos(pause));
    }

    /// Adds what another worker saw.
    pub fn merge(&mut self, other: &Tally) {
        self.sent += other.sent;
        self.lateness.merge(&other.lateness);
        self.cap_wait.merge(&other.cap_wait);
        self.slip.merge(&other.slip);
        self.last_fill = self.last_fill.max(other.last_fill);
        self.last_start = self.last_start.max(other.last_start);
        self.late_prompts += other.late_prompts;
        self.resource_errors += other.resource_errors;
        self.failed_connections += other.failed_connections;
        self.longest_dial_pause_ns = self.longest_dial_pause_ns.max(other.longest_dial_pause_ns);
        self.negative_differences += other.negative_differences;
        self.delayed_requests += other.delayed_requests;
        self.loop_delay.merge(&other.loop_delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_counts_from_the_later_of_due_and_let_go() {
        let mut tally = Tally::default();
        let plan = PlanInstants {
            scheduled: Some(Mono(90)),
            due: Mono(100),
            let_go: Mono(150),
            ..Default::default()
        };
        tally.sent(&plan, Mono(170));
        assert_eq!(tally.lateness.max_ns(), 20);
        assert_eq!(tally.cap_wait.max_ns(), 50);
        assert_eq!(tally.slip.max_ns(), 10);
    }

    #[test]
    fn the_first_fill_is_not_lateness() {
        let mut tally = Tally::default();
        tally.sent(&PlanInstants { initial_fill: true, ..Default::default() }, Mono(5_000));
        assert_eq!((tally.sent, tally.lateness.count(), tally.last_fill), (1, 0, Some(Mono(5_000))));
    }

    #[test]
    fn a_send_before_its_due_instant_is_counted_as_a_fault_of_ours() {
        let mut tally = Tally::default();
        tally.sent(&PlanInstants { due: Mono(10), let_go: Mono(10), ..Default::default() }, Mono(9));
        assert_eq!(tally.negative_differences, 1);
    }

    #[test]
    fn percentiles_stay_within_three_digits() {
        let mut durations = Durations::default();
        (1..=10_000_u64).for_each(|n| durations.record(n * 1000));
        let p99 = durations.percentile_ns(99.0) as f64;
        assert!((p99 / 9_900_000.0 - 1.0).abs() < 0.002, "{p99}");
        assert!((durations.mean_ns() / 5_000_500.0 - 1.0).abs() < 1e-9);
    }
}
