//! The machine itself: one for every mode, since they differ only in what makes a turn due ([`super::mode`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aiperf_clock::{Mono, nanos};
use aiperf_config::StopRule;
use aiperf_types::PlanInstants;
use rand::RngExt as _;
use rand_chacha::ChaCha12Rng;

use super::ahead::Ahead;
use super::branches::{Branches, Kin};
use super::idle::IdleGap;
use super::mode::{Due, Mode, Pending};
use super::slots::Slots;
use super::{Issue, Plan, SessionKey, SessionSource, Wake};

/// How soon a source that had nothing yet is asked again, ns.
const RETRY_NS: u64 = 200_000;

/// How a turn came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnding {
    /// With an answer or an error.
    Finished,
    /// The end of the phase broke it off in flight.
    Cut,
    /// The end of the phase came before it was sent.
    NeverSent,
}

/// What the machine counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Turns issued.
    pub issued: u64,
    /// Sessions started.
    pub sessions: u64,
    /// Turns that came back.
    pub returned: u64,
    /// Turns cut off in flight by the end of the phase.
    pub cut: u64,
    /// Turns issued that the end of the phase kept from being sent: their prompt was not ready.
    pub never_sent: u64,
    /// Turns due while issuing was open.
    pub planned: u64,
    /// Arrivals that found no slot, or first turns still held by a cap when issuing ended.
    pub skipped: u64,
    /// Turns due, held by no cap, and not sent.
    pub unsent: u64,
    /// Most turns in flight at once.
    pub max_in_flight: u32,
    /// Schedule time given up to catch up, ns.
    pub catch_up_ns: u64,
    /// By how much the plan moved up where nothing was in flight for longer than wanted, ns.
    pub moved_up_ns: u64,
    /// Latest due instant of a turn that was issued (intended rate).
    pub last_due: Option<Mono>,
    /// Latest instant at which a turn that was issued was due and held by no cap.
    pub last_let_go: Option<Mono>,
    /// Instant issuing ended.
    pub closed_at: Option<Mono>,
}

pub(super) struct Session<T> {
    pub(super) conversation: u64,
    pub(super) turns: u32,
    /// The draw that it comes from, itself or through its parents.
    pub(super) run: u64,
    /// The next turn to issue.
    pub(super) next: u32,
    /// Its request, where turns are made one by one and it was asked for.
    pub(super) ticket: Option<T>,
    /// Parent and children, of the few that have any.
    pub(super) kin: Option<Box<Kin<T>>>,
}

/// The state machine.
pub struct Schedule<S: SessionSource> {
    pub(super) source: S,
    pub(super) mode: Mode,
    pub(super) slots: Option<Slots>,
    pub(super) stop: StopRule,
    cancel_share: f64,
    cancel_rng: ChaCha12Rng,
    pub(super) max_catch_up_ns: Option<u64>,
    pub(super) t0: Mono,
    pub(super) idle: IdleGap,
    pub(super) ahead: Ahead,
    pub(super) deadline: Option<Mono>,
    pub(super) open: bool,
    pub(super) sessions: Vec<Option<Session<S::Ticket>>>,
    pub(super) free_keys: Vec<u32>,
    pub(super) live: u32,
    pub(super) in_flight: u32,
    /// Continuation turns: (ready instant of the plan, order, session).
    continuations: BinaryHeap<Reverse<(Mono, u64, SessionKey)>>,
    pub(super) order: u64,
    /// The conversation drawn for the next new session and kept until it starts.
    pub(super) pending: Option<Pending<S::Ticket>>,
    pub(super) exhausted: bool,
    /// The source had nothing when last asked.
    pub(super) retry: bool,
    pub(super) counts: Counts,
    /// Conversations that start others; nothing before there is one.
    pub(super) branches: Option<Box<Branches>>,
    think_rng: ChaCha12Rng,
}

impl<S: SessionSource> Schedule<S> {
    /// A machine that starts at `t0`.
    pub fn new(plan: Plan, source: S, t0: Mono) -> Schedule<S> {
        let mode = Mode::new(&plan, t0);
        Schedule {
            source,
            mode,
            slots: plan.cap.map(|cap| Slots::new(cap, t0)),
            stop: plan.stop,
            cancel_share: plan.cancel_share,
            cancel_rng: plan.cancel_rng,
            max_catch_up_ns: plan.max_catch_up_ns,
            t0,
            idle: IdleGap::new(plan.idle_gap_cap_ns, t0),
            ahead: Ahead::default(),
            deadline: plan.stop.duration.map(|duration| t0.plus(nanos(duration))),
            open: true,
            sessions: Vec::new(),
            free_keys: Vec::new(),
            live: 0,
            in_flight: 0,
            continuations: BinaryHeap::new(),
            order: 0,
            pending: None,
            exhausted: false,
            retry: false,
            counts: Counts::default(),
            branches: None,
            think_rng: plan.think_rng,
        }
    }

    /// What is kept of conversations with relatives, from the first of them on.
    pub(super) fn branches_mut(&mut self) -> &mut Branches {
        self.branches.get_or_insert_with(|| Box::new(Branches::new(self.think_rng.clone())))
    }

    /// Whether nothing is in flight and nothing waits to be sent after issuing has ended.
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.branches.as_ref().is_none_or(|branches| branches.next_ready().is_none())
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Turns issued and not yet back.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether turns may still be issued.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The source, to be handed on to the next phase.
    pub fn into_source(self) -> S {
        self.source
    }

    /// Ends issuing: an interrupt or an abort.
    pub fn close(&mut self, now: Mono) {
        self.end_issuing(now);
        self.abandon_children();
    }

    /// No more sessions start, and none is live: children that have started go on.
    fn end_issuing(&mut self, now: Mono) {
        if self.open {
            self.open = false;
            self.counts.closed_at = Some(now);
            self.continuations.clear();
            self.pending = None;
            self.keep_children_only();
        }
    }

    /// A turn came back at `at`.
    pub fn returned(&mut self, key: SessionKey, at: Mono, ending: TurnEnding) {
        self.in_flight -= 1;
        self.idle.returned(at);
        match ending {
            TurnEnding::Finished => self.counts.returned += 1,
            TurnEnding::Cut => self.counts.cut += 1,
            TurnEnding::NeverSent => self.counts.never_sent += 1,
        }
        let Some(session) = self.sessions.get_mut(key.0 as usize).and_then(Option::as_mut) else { return };
        if session.kin.is_some() {
            self.relative_returned(key, at);
        } else if self.open && session.next < session.turns {
            let ready = self.next_ready(key, at);
            self.queue_continuation(ready, key);
        } else {
            self.end_session(key, at);
            self.free_keys.push(key.0);
        }
    }

    pub(super) fn queue_continuation(&mut self, ready: Mono, key: SessionKey) {
        self.order += 1;
        self.continuations.push(Reverse((ready, self.order, key)));
    }

    /// Ends a session that holds a slot. Its key is free when nobody goes on from it.
    pub(super) fn end_session(&mut self, key: SessionKey, at: Mono) {
        self.sessions[key.0 as usize] = None;
        self.live -= 1;
        if let Some(slots) = &mut self.slots {
            slots.release(at);
        }
    }

    /// Appends every turn that leaves by `now`, and says when to ask again.
    pub fn poll(&mut self, now: Mono, out: &mut Vec<Issue<S::Ticket>>) -> Wake {
        self.retry = false;
        if self.branches.is_some() {
            self.poll_branches(now, out);
        }
        if self.open {
            self.poll_ahead(now);
            self.poll_mode(now, out);
            if self.close_gap(now) {
                self.poll_ahead(now);
                self.poll_mode(now, out);
            }
            self.close_if_finished(now);
        }
        self.wake(now)
    }

    /// Moves the plan up when nothing is in flight and what comes next is too far off; whether it moved so far that
    /// something is due.
    fn close_gap(&mut self, now: Mono) -> bool {
        let other_timers = self.branches.is_some();
        if !self.idle.is_capped()
            || other_timers
            || self.in_flight > 0
            || matches!(self.mode, Mode::Rate { .. })
        {
            return false;
        }
        let continuation = self.continuations.peek().map(|&Reverse((ready, _, _))| ready);
        // One that a cap holds waits for a session to end, not for a time.
        let first = match &self.pending {
            Some(Pending { due: Due::Planned(due), .. }) if !self.blocks_sessions() => Some(*due),
            _ => None,
        };
        let Some(next) = continuation.into_iter().chain(first).min() else { return false };
        self.idle.close(self.idle.clock(next));
        self.counts.moved_up_ns = self.idle.moved_ns();
        self.idle.clock(next) <= now
    }

    /// Conditions that block every turn.
    pub(super) fn blocked(&self, now: Mono) -> bool {
        self.stop.requests.is_some_and(|n| self.counts.issued >= n)
            || self.deadline.is_some_and(|end| now >= end)
    }

    /// Conditions that block a new session.
    pub(super) fn blocks_sessions(&self) -> bool {
        self.stop.sessions.is_some_and(|n| self.counts.sessions >= n)
    }

    /// The instant at which the slot that a new session would take became free, if one was free by `by`; without
    /// a cap there always is one.
    pub(super) fn slot_by(&mut self, by: Mono) -> Option<Mono> {
        match &mut self.slots {
            Some(slots) => slots.free_by(by),
            None => Some(self.t0),
        }
    }

    /// A continuation that is ready by `by`.
    pub(super) fn pop_continuation(&mut self, by: Mono) -> Option<(Mono, SessionKey)> {
        match self.continuations.peek() {
            Some(&Reverse((ready, _, key))) if self.idle.clock(ready) <= by => {
                self.continuations.pop();
                Some((self.idle.clock(ready), key))
            }
            _ => None,
        }
    }

    /// Starts the pending conversation.
    pub(super) fn start(&mut self, plan: PlanInstants, out: &mut Vec<Issue<S::Ticket>>) {
        let Some(Pending { session, .. }) = self.pending.take() else { return };
        if let Some(slots) = &mut self.slots {
            slots.take();
        }
        let key = self.enter(Session {
            conversation: session.conversation,
            turns: session.turns,
            run: session.run,
            next: 0,
            ticket: None,
            kin: None,
        });
        self.live += 1;
        self.counts.sessions += 1;
        debug_assert!(
            self.slots.as_ref().is_none_or(|slots| self.live <= slots.most()),
            "more live sessions than the cap"
        );
        match self.source.branches(session.conversation) {
            None => self.issue(key, plan, Some(session.ticket), out),
            Some(branches) => self.start_root(key, branches, plan, session.ticket, out),
        }
    }

    /// Gives a session a place in the table.
    pub(super) fn enter(&mut self, entry: Session<S::Ticket>) -> SessionKey {
        if let Some(key) = self.free_keys.pop() {
            self.sessions[key as usize] = Some(entry);
            SessionKey(key)
        } else {
            self.sessions.push(Some(entry));
            SessionKey(self.sessions.len() as u32 - 1)
        }
    }

    pub(super) fn issue(
        &mut self,
        key: SessionKey,
        plan: PlanInstants,
        ticket: Option<S::Ticket>,
        out: &mut Vec<Issue<S::Ticket>>,
    ) {
        let Some(session) = self.sessions.get_mut(key.0 as usize).and_then(Option::as_mut) else { return };
        let turn = session.next;
        session.next += 1;
        let ticket = ticket.or_else(|| session.ticket.take());
        let cancel = self.cancel_share > 0.0 && self.cancel_rng.random::<f64>() < self.cancel_share;
        out.push(Issue {
            number: self.counts.issued,
            session: key,
            conversation: session.conversation,
            turn,
            last_turn: session.next >= session.turns,
            plan,
            cancel,
            ticket,
            family: None,
            fork: None,
            forked: false,
        });
        if session.kin.is_some()
            && let Some(issue) = out.last_mut()
        {
            self.relative_issued(issue);
        }
        self.counts.issued += 1;
        self.counts.planned += 1;
        self.in_flight += 1;
        self.counts.max_in_flight = self.counts.max_in_flight.max(self.in_flight);
        self.counts.last_due = self.counts.last_due.max(Some(plan.due));
        self.counts.last_let_go = self.counts.last_let_go.max(Some(plan.due.max(plan.let_go)));
        self.look_ahead(key, plan.issued);
    }

    fn close_if_finished(&mut self, now: Mono) {
        let counted = self.stop.requests.is_some_and(|n| self.counts.issued >= n);
        let no_more_sessions = self.blocks_sessions() || (self.exhausted && self.pending.is_none());
        let timed_out = self.deadline.is_some_and(|end| now >= end);
        if timed_out && !counted {
            self.count_unsent();
        }
        if counted || timed_out {
            self.close(now);
        } else if no_more_sessions && self.live == 0 {
            self.end_issuing(now);
        }
    }

    fn wake(&self, now: Mono) -> Wake {
        let relative = self.branches.as_ref().and_then(|branches| branches.next_ready());
        if !self.open {
            return match relative {
                Some(ready) => Wake::At(self.deadline.map_or(ready, |deadline| ready.min(deadline))),
                None if self.in_flight == 0 => Wake::Done,
                None => Wake::OnEvent,
            };
        }
        let mut next = self.deadline;
        let mut at = |instant: Mono| next = Some(next.map_or(instant, |next| next.min(instant)));
        if let Some(ready) = relative {
            at(ready);
        }
        if let Mode::Rate { next: arrival, .. } = &self.mode {
            // One that is overdue for want of a conversation waits for the source to be asked again.
            if !self.retry {
                at(*arrival);
            }
        } else {
            if let Some(&Reverse((ready, _, _))) = self.continuations.peek() {
                at(self.idle.clock(ready));
            }
            let due = self.pending_due();
            if let Some(due) = due.filter(|&due| due > now) {
                at(due);
            } else if let Some(opening) = self.slots.as_ref().and_then(Slots::next_opening)
                && opening > now
                && !self.blocks_sessions()
            {
                at(opening);
            }
        }
        if let Some(ahead) = self.ahead.next() {
            at(self.idle.clock(ahead));
        }
        if self.retry {
            at(now.plus(RETRY_NS));
        }
        next.map_or(Wake::OnEvent, Wake::At)
    }
}

pub(super) fn ms_to_ns(ms: f64) -> u64 {
    (ms * 1e6).max(0.0).round() as u64
}
