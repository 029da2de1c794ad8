//! What makes a turn due, in each mode: a free slot, an arrival, a recorded time.

use aiperf_clock::Mono;
use aiperf_config::{FixedSchedule, LoadMode};
use aiperf_types::PlanInstants;

use super::machine::{Schedule, ms_to_ns};
use super::{Arrivals, Draw, Issue, NewSession, Plan, RateCurve, SessionKey, SessionSource};

/// A first turn drawn but not yet issued.
pub(super) struct Pending<T> {
    pub(super) session: NewSession<T>,
    /// As planned; on the clock once it has come.
    pub(super) due: Due,
}

/// When a first turn is due.
#[derive(Clone, Copy)]
pub(super) enum Due {
    /// At this instant of the plan, which may still move up.
    Planned(Mono),
    /// It was due then, and a cap holds it.
    Reached(Mono),
}

/// What makes first turns due.
pub(super) enum Mode {
    /// As fast as the slots allow.
    Burst,
    /// The arrivals, and the next one.
    Rate { arrivals: Box<Arrivals>, next: Mono },
    /// Recorded times, and which of them is T0.
    Fixed { zero_ms: Option<f64> },
}

impl Mode {
    /// The mode of a phase that starts at `t0`.
    pub(super) fn new(plan: &Plan, t0: Mono) -> Mode {
        match plan.mode {
            LoadMode::Burst => Mode::Burst,
            LoadMode::Rate { rate, arrival } => {
                let curve = RateCurve::new(rate, plan.rate_ramp_sec, plan.rate_first_step_sec);
                let mut arrivals = Box::new(Arrivals::new(arrival, curve, plan.arrival_rng.clone()));
                let next = t0.plus(arrivals.next_offset());
                Mode::Rate { arrivals, next }
            }
            LoadMode::FixedSchedule(FixedSchedule { zero_ms }) => Mode::Fixed { zero_ms },
        }
    }
}

impl<S: SessionSource> Schedule<S> {
    /// When the next turn of a session is ready that returned at `at`, as an instant of the plan.
    pub(super) fn next_ready(&self, key: SessionKey, at: Mono) -> Mono {
        let at = self.idle.planned(at);
        let Some(session) = self.sessions.get(key.0 as usize).and_then(Option::as_ref) else { return at };
        let timing = self.source.timing(session.conversation, session.next);
        match (&self.mode, timing.timestamp_ms) {
            (Mode::Fixed { zero_ms }, Some(ms)) => schedule_instant(self.t0, *zero_ms, ms).max(at),
            _ => at.plus(timing.delay_ms.map_or(0, ms_to_ns)),
        }
    }

    pub(super) fn poll_mode(&mut self, now: Mono, out: &mut Vec<Issue<S::Ticket>>) {
        match self.mode {
            Mode::Burst => self.poll_burst(now, out),
            Mode::Rate { .. } => self.poll_rate(now, out),
            Mode::Fixed { .. } => self.poll_fixed(now, out),
        }
    }

    /// Draws the next conversation and keeps it; whether there is one.
    pub(super) fn prepare(&mut self) -> bool {
        if self.pending.is_none() && !self.exhausted {
            match self.source.draw() {
                Draw::Session(session) => {
                    let due = match &self.mode {
                        Mode::Fixed { zero_ms } => {
                            schedule_instant(self.t0, *zero_ms, session.first_ms.unwrap_or_default())
                        }
                        _ => self.t0,
                    };
                    self.pending = Some(Pending { session, due: Due::Planned(due) });
                }
                Draw::NotYet => self.retry = true,
                Draw::Exhausted => self.exhausted = true,
            }
        }
        self.pending.is_some()
    }

    fn poll_burst(&mut self, now: Mono, out: &mut Vec<Issue<S::Ticket>>) {
        while !self.blocked(now) {
            if let Some((ready, key)) = self.pop_continuation(now) {
                let plan = PlanInstants { due: ready, let_go: ready, issued: now, ..PlanInstants::default() };
                self.issue(key, plan, None, out);
                continue;
            }
            let Some(due) = self.slot_by(now) else { return };
            if self.blocks_sessions() || !self.prepare() {
                return;
            }
            let initial_fill = due == self.t0;
            self.start(PlanInstants { scheduled: None, due, let_go: due, issued: now, initial_fill }, out);
        }
    }

    fn poll_rate(&mut self, now: Mono, out: &mut Vec<Issue<S::Ticket>>) {
        let end = self.deadline.map_or(now, |deadline| deadline.minus(1).min(now));
        loop {
            let Mode::Rate { next: due, .. } = self.mode else { return };
            if due > end || self.stop.requests.is_some_and(|n| self.counts.issued >= n) {
                return;
            }
            // Past the deadline nothing may leave: what was due before it is planned and unsent.
            let late = self.blocked(now);
            if let Some((_, key)) = if late { None } else { self.pop_continuation(due) } {
                let plan =
                    PlanInstants { scheduled: Some(due), due, let_go: due, issued: now, initial_fill: false };
                self.issue(key, plan, None, out);
            } else if !self.blocks_sessions() && !self.exhausted {
                if self.slot_by(due).is_none() {
                    self.counts.planned += 1;
                    self.counts.skipped += 1;
                } else if late {
                    self.counts.planned += 1;
                    self.counts.unsent += 1;
                } else if self.prepare() {
                    let plan = PlanInstants {
                        scheduled: Some(due),
                        due,
                        let_go: due,
                        issued: now,
                        initial_fill: false,
                    };
                    self.start(plan, out);
                } else if self.retry {
                    return;
                }
            } else if self.live == 0 {
                return;
            }
            self.advance_arrival(now);
        }
    }

    fn advance_arrival(&mut self, now: Mono) {
        let Mode::Rate { arrivals, next } = &mut self.mode else { return };
        *next = self.t0.plus(arrivals.next_offset()).plus(self.counts.catch_up_ns);
        if let Some(bound) = self.max_catch_up_ns {
            let behind = now.saturating_since(*next);
            if behind > bound {
                self.counts.catch_up_ns += behind;
                *next = now;
            }
        }
    }

    fn poll_fixed(&mut self, now: Mono, out: &mut Vec<Issue<S::Ticket>>) {
        while !self.blocked(now) {
            if let Some((ready, key)) = self.pop_continuation(now) {
                let scheduled = self.recorded(key);
                let plan =
                    PlanInstants { scheduled, due: ready, let_go: ready, issued: now, initial_fill: false };
                self.issue(key, plan, None, out);
                continue;
            }
            if self.blocks_sessions() || !self.prepare() {
                return;
            }
            let Some(due) = self.pending_due() else { return };
            if due > now {
                return;
            }
            let slot = self.slot_by(now);
            let Some(slot) = slot else {
                if let Some(pending) = &mut self.pending {
                    pending.due = Due::Reached(due);
                }
                return;
            };
            // Held by the cap: let go when the slot it takes became free.
            let let_go = due.max(slot);
            self.start(
                PlanInstants { scheduled: Some(due), due, let_go, issued: now, initial_fill: false },
                out,
            );
        }
    }

    /// When the pending first turn is due, on the clock.
    pub(super) fn pending_due(&self) -> Option<Mono> {
        self.pending.as_ref().map(|pending| match pending.due {
            Due::Planned(due) => self.idle.clock(due),
            Due::Reached(due) => due,
        })
    }

    /// The recorded instant of the next turn of a session, where it has one.
    pub(super) fn recorded(&self, key: SessionKey) -> Option<Mono> {
        let Mode::Fixed { zero_ms } = &self.mode else { return None };
        let session = self.sessions.get(key.0 as usize)?.as_ref()?;
        let ms = self.source.timing(session.conversation, session.next).timestamp_ms?;
        Some(self.idle.clock(schedule_instant(self.t0, *zero_ms, ms)))
    }

    /// When recorded time `ms` is due, as an instant of the plan, where recorded times are played.
    pub(super) fn planned_at(&self, ms: f64) -> Option<Mono> {
        match &self.mode {
            Mode::Fixed { zero_ms } => Some(schedule_instant(self.t0, *zero_ms, ms)),
            _ => None,
        }
    }

    /// What was due before the deadline and did not leave. A first turn that a cap still holds is skipped.
    pub(super) fn count_unsent(&mut self) {
        let Some(end) = self.deadline else { return };
        // An open loop counts its arrivals itself; a ready continuation waits for one.
        if matches!(self.mode, Mode::Rate { .. }) {
            return;
        }
        while self.pop_continuation(end.minus(1)).is_some() {
            self.counts.planned += 1;
            self.counts.unsent += 1;
        }
        if !matches!(self.mode, Mode::Fixed { .. }) {
            return;
        }
        let held = self.slot_by(end.minus(1)).is_none();
        while !self.blocks_sessions() && self.prepare() {
            let due = self.pending_due();
            match self.pending.take().and(due) {
                Some(due) if due < end => {
                    self.counts.planned += 1;
                    if held {
                        self.counts.skipped += 1;
                    } else {
                        self.counts.unsent += 1;
                    }
                }
                _ => break,
            }
        }
    }
}

/// T0 + (ts − Z), fractions of a millisecond honoured.
fn schedule_instant(t0: Mono, zero_ms: Option<f64>, ms: f64) -> Mono {
    let offset = (ms - zero_ms.unwrap_or(0.0)) * 1e6;
    t0.plus(offset.max(0.0).round() as u64)
}
