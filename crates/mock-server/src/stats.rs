//! Counters of a server, read by `/mock/stats` and `/metrics`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use aiperf_clock::Mono;

/// Upper bounds of the histograms, in seconds.
const BOUNDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];
const CODES: usize = 600;

/// What `/mock/stats` shows. Only requests to the load's paths count; a look at the mock itself does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests whose head was read.
    pub requests: u64,
    /// Of those, how many have no complete answer yet.
    pub in_flight: u64,
    /// The most there were at one time.
    pub max_in_flight: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Requests whose client closed before the end of the answer.
    pub aborted: u64,
    /// Bytes of request bodies.
    pub body_bytes: u64,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    sum_ns: AtomicU64,
}

impl Histogram {
    fn add(&self, ns: u64) {
        let seconds = ns as f64 / 1e9;
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound);
        if let Some(bucket) = bucket {
            self.buckets[bucket].fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(ns, Relaxed);
    }

    fn show(&self, text: &mut String, name: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut below = 0;
        for (bucket, bound) in self.buckets.iter().zip(BOUNDS) {
            below += bucket.load(Relaxed);
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {below}");
        }
        let count = self.count.load(Relaxed).max(below);
        let sum = self.sum_ns.load(Relaxed) as f64 / 1e9;
        let _ =
            writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}");
    }

    fn clear(&self) {
        self.buckets.iter().chain([&self.count, &self.sum_ns]).for_each(|value| value.store(0, Relaxed));
    }
}

/// The counters themselves, shared by the network threads.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Numbers the requests for plan, draws and answer ids.
    arrivals: AtomicU64,
    requests: AtomicU64,
    in_flight: AtomicU64,
    max_in_flight: AtomicU64,
    connections: AtomicU64,
    aborted: AtomicU64,
    body_bytes: AtomicU64,
    codes: Box<[AtomicU64]>,
    prompt_tokens: AtomicU64,
    generation_tokens: AtomicU64,
    ttft: Histogram,
    duration: Histogram,
}

/// A finished request, as the counters see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) status: Option<u16>,
    /// When the body was complete.
    pub(crate) received: Option<Mono>,
    pub(crate) first_token: Option<Mono>,
    pub(crate) end: Mono,
    pub(crate) generation_tokens: u64,
    pub(crate) aborted: bool,
}

impl Counters {
    pub(crate) fn new() -> Counters {
        let zero = AtomicU64::default;
        Counters {
            arrivals: zero(),
            requests: zero(),
            in_flight: zero(),
            max_in_flight: zero(),
            connections: zero(),
            aborted: zero(),
            body_bytes: zero(),
            codes: (0..CODES).map(|_| zero()).collect(),
            prompt_tokens: zero(),
            generation_tokens: zero(),
            ttft: Histogram::default(),
            duration: Histogram::default(),
        }
    }

    /// The number of the next request.
    pub(crate) fn arrive(&self) -> u64 {
        self.arrivals.fetch_add(1, Relaxed)
    }

    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    /// A head was read.
    pub(crate) fn begin(&self) {
        self.requests.fetch_add(1, Relaxed);
        let now = self.in_flight.fetch_add(1, Relaxed) + 1;
        if now > self.max_in_flight.load(Relaxed) {
            self.max_in_flight.fetch_max(now, Relaxed);
        }
    }

    /// The answer is about to be written to its end. Said before the write and not after, so that a client that
    /// sends its next request on the last byte never sees one more in flight than it has.
    pub(crate) fn leave(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    /// The write after [`Counters::leave`] did not go through to the end.
    pub(crate) fn rejoin(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    pub(crate) fn body(&self, bytes: u64) {
        self.body_bytes.fetch_add(bytes, Relaxed);
    }

    /// Prompt tokens of a request.
    pub(crate) fn prompt(&self, tokens: u64) {
        self.prompt_tokens.fetch_add(tokens, Relaxed);
    }

    /// The answer was written, or its client went away.
    pub(crate) fn finish(&self, finished: &Finished) {
        if finished.aborted {
            self.aborted.fetch_add(1, Relaxed);
        }
        if let Some(code) = finished.status.and_then(|status| self.codes.get(usize::from(status))) {
            code.fetch_add(1, Relaxed);
        }
        if finished.generation_tokens > 0 {
            self.generation_tokens.fetch_add(finished.generation_tokens, Relaxed);
        }
        let Some(received) = finished.received else { return };
        if let Some(first) = finished.first_token {
            self.ttft.add(first.saturating_since(received));
        }
        if !finished.aborted {
            self.duration.add(finished.end.saturating_since(received));
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            requests: self.requests.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
            max_in_flight: self.max_in_flight.load(Relaxed),
            connections: self.connections.load(Relaxed),
            aborted: self.aborted.load(Relaxed),
            body_bytes: self.body_bytes.load(Relaxed),
        }
    }

    /// As after a start: only what is in flight stays. Requests are numbered from 0 again, so that plan and draws
    /// of two runs against one server are equal.
    pub(crate) fn reset(&self) {
        for value in [
            &self.arrivals,
            &self.requests,
            &self.connections,
            &self.aborted,
            &self.body_bytes,
            &self.prompt_tokens,
            &self.generation_tokens,
        ] {
            value.store(0, Relaxed);
        }
        self.codes.iter().for_each(|code| code.store(0, Relaxed));
        self.ttft.clear();
        self.duration.clear();
        self.max_in_flight.store(self.in_flight.load(Relaxed), Relaxed);
    }

    /// The Prometheus text of `/metrics`.
    pub(crate) fn prometheus(&self) -> String {
        let mut text = String::with_capacity(4096);
        text.push_str(
            "# HELP mock_requests_total Answers by status code\n# TYPE mock_requests_total counter\n",
        );
        for (code, value) in self.codes.iter().enumerate() {
            let value = value.load(Relaxed);
            if value > 0 {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "mock_requests_total{{code=\"{code}\"}} {value}");
            }
        }
        for (name, kind, help, value) in [
            ("mock_prompt_tokens_total", "counter", "Prompt tokens", &self.prompt_tokens),
            ("mock_generation_tokens_total", "counter", "Generated tokens", &self.generation_tokens),
            ("mock_requests_in_flight", "gauge", "Requests without a complete answer", &self.in_flight),
        ] {
            let value = value.load(Relaxed);
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        self.ttft.show(
            &mut text,
            "mock_time_to_first_token_seconds",
            "From the end of the body to the first token",
        );
        self.duration.show(
            &mut text,
            "mock_request_duration_seconds",
            "From the end of the body to the end of the answer",
        );
        text
    }
}

impl Stats {
    /// The JSON of `/mock/stats`.
    pub(crate) fn json(&self) -> String {
        format!(
            "{{\"requests\":{},\"in_flight\":{},\"max_in_flight\":{},\"connections\":{},\"aborted\":{},\"body_bytes\":{}}}",
            self.requests,
            self.in_flight,
            self.max_in_flight,
            self.connections,
            self.aborted,
            self.body_bytes
        )
    }
}
