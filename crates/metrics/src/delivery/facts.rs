//! What the load engine and the records know about how a phase was delivered.

use crate::summary::Latencies;

/// The programme of the phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadMode {
    /// As fast as the slots allow: a closed loop.
    #[default]
    Concurrency,
    /// Arrivals at a rate.
    Rate,
    /// Recorded times.
    FixedSchedule,
    /// Users with a gap of their own.
    UserCentric,
}

/// A distribution in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean, ns.
    pub avg: f64,
    /// Median, ns.
    pub p50: f64,
    /// 90th percentile, ns.
    pub p90: f64,
    /// 99th percentile, ns.
    pub p99: f64,
    /// Largest, ns.
    pub max: f64,
    /// Number of samples.
    pub count: u64,
}

/// How a cap on concurrency was used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConcurrencyFacts {
    /// The cap.
    pub limit: u64,
    /// Most requests in flight at once.
    pub max_in_flight: u64,
    /// Sum of lateness / (limit · time from the end of the ramp to the last send); unknown without such a time.
    pub lost_share: Option<f64>,
    /// Connections that could not be made; each kept its slot for a while, so that a server that refuses is not hammered.
    pub failed_connections: u64,
    /// The longest of these pauses, ns.
    pub longest_pause_ns: u64,
}

/// What the client spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClientFacts {
    /// Cores the process may use.
    pub cores: Option<f64>,
    /// Network workers.
    pub workers: Option<u64>,
    /// User and system time of the client's threads from T0 to the end of the phase, s.
    pub cpu_sec: Option<f64>,
    /// Time in which `cpu_sec` was spent, ns: the phase, between the readings at its two ends.
    pub cpu_span_ns: Option<u64>,
    /// Busiest network worker, percent of the phase.
    pub busiest_worker_cpu_pct: Option<f64>,
    /// Time of an in-process mock server, s; not in `cpu_sec`.
    pub mock_cpu_sec: f64,
    /// Time the pacer spun, s; not in `cpu_sec`.
    pub pacer_spin_sec: f64,
    /// Most memory the process ever held, bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Longest time between two looks at the sockets, over all workers' samples.
    pub loop_delay: Option<Spread>,
    /// Requests that ran while their worker was late to its sockets.
    pub delayed_request_count: u64,
    /// Records that had to wait outside the queue.
    pub spilled_record_count: u64,
    /// Differences that came out negative.
    pub negative_difference_count: u64,
    /// Sends that failed for want of descriptors, ports or buffers.
    pub resource_error_count: u64,
    /// The limit to raise, named (`ulimit -n`, `net.ipv4.ip_local_port_range`), when one was hit.
    pub resource_limit: Option<&'static str>,
}

impl ClientFacts {
    /// Cores that were busy on average.
    pub fn cores_used(&self) -> Option<f64> {
        let span_ns = self.cpu_span_ns.filter(|&ns| ns > 0)?;
        Some(self.cpu_sec? * 1e9 / span_ns as f64)
    }

    /// CPU time per request sent, µs.
    pub fn cpu_us_per_request(&self, sent: u64) -> Option<f64> {
        self.cpu_sec.filter(|_| sent > 0).map(|sec| sec * 1e6 / sent as f64)
    }
}

/// What is known about the delivery of one phase; unknown things are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryFacts {
    /// Programme.
    pub mode: LoadMode,
    /// Rate of the due instants, 1/s ([`rate`]); never in a closed loop.
    pub intended_rate: Option<f64>,
    /// Rate of the instants at which turns were due and held by no cap, 1/s ([`rate`]); without a cap the intended one.
    pub let_go_rate: Option<f64>,
    /// Rate of the sends, 1/s ([`rate`]).
    pub delivered_rate: Option<f64>,
    /// Turns due while issuing was open; in a closed loop those that were sent.
    pub planned_count: u64,
    /// Turns sent.
    pub sent_count: u64,
    /// Turns due that a requested cap let pass or still held.
    pub skipped_count: u64,
    /// Turns due, held by no cap, not sent.
    pub unsent_count: u64,
    /// Send minus due (or minus the instant a cap let it go).
    pub lateness: Option<Spread>,
    /// Time a requested cap held turns; only with a cap.
    pub cap_wait: Option<Spread>,
    /// Due minus scheduled; only with recorded or arrival times.
    pub slip: Option<Spread>,
    /// Closed loop: T0 to the last send of the first fill, ns.
    pub initial_fill_ns: Option<u64>,
    /// When concurrency was capped.
    pub concurrency: Option<ConcurrencyFacts>,
    /// Schedule time given up, ns.
    pub catch_up_ns: Option<u64>,
    /// Length of the ramps, ns.
    pub ramp_ns: Option<u64>,
    /// Last send to the end of the phase, ns.
    pub drain_ns: Option<u64>,
    /// Length of the phase, ns.
    pub phase_ns: u64,
    /// Turns whose prompt was not ready when due.
    pub late_prompt_count: u64,
    /// Records, valid and failed.
    pub record_count: u64,
    /// Latencies of valid records from the send.
    pub service: Latencies,
    /// Latencies of valid records from the due instant.
    pub from_intended: Latencies,
    /// The client.
    pub client: ClientFacts,
}

impl DeliveryFacts {
    /// Whether there are records, and no valid one.
    pub fn nothing_succeeded(&self) -> bool {
        self.record_count > 0 && self.service.request_latency.is_none()
    }
}

/// Requests per second: `n` over the time from T0 to the n-th instant. Unknown below two requests.
pub fn rate(n: u64, t0_to_nth_ns: u64) -> Option<f64> {
    (n >= 2 && t0_to_nth_ns > 0).then(|| n as f64 * 1e9 / t0_to_nth_ns as f64)
}
