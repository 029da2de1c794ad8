//! Requests of later turns are made a little before they are due where turns can be made one by one, so that a
//! session which waits for hours holds no text meanwhile.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aiperf_clock::Mono;

use super::machine::{Schedule, ms_to_ns};
use super::{SessionKey, SessionSource};

/// How long before it is due a request is made, ns.
const LEAD_NS: u64 = 1_000_000_000;

/// Turns whose requests are still to be asked for.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// (instant of the plan, session, turn)
    timers: BinaryHeap<Reverse<(Mono, SessionKey, u32)>>,
}

impl Ahead {
    /// When the next request is to be asked for, as an instant of the plan.
    pub(super) fn next(&self) -> Option<Mono> {
        self.timers.peek().map(|Reverse((at, _, _))| *at)
    }
}

impl<S: SessionSource> Schedule<S> {
    /// A turn of `key` leaves at `now`: sees to the request of the turn after it.
    pub(super) fn look_ahead(&mut self, key: SessionKey, now: Mono) {
        if !self.source.makes_turns_ahead() {
            return;
        }
        let Some(session) = self.sessions.get(key.0 as usize).and_then(Option::as_ref) else { return };
        if session.next >= session.turns || session.kin.is_some() {
            return;
        }
        let timing = self.source.timing(session.conversation, session.next);
        let now = self.idle.planned(now);
        // At the earliest: the turn before it has still to come back.
        let recorded = timing.timestamp_ms.and_then(|ms| self.planned_at(ms));
        let earliest = recorded.unwrap_or_else(|| now.plus(timing.delay_ms.map_or(0, ms_to_ns)));
        let at = earliest.minus(LEAD_NS);
        if at <= now {
            self.make_ahead(key, session.next);
        } else {
            self.ahead.timers.push(Reverse((at, key, session.next)));
        }
    }

    /// Asks for the requests of turns that are due soon.
    pub(super) fn poll_ahead(&mut self, now: Mono) {
        while let Some(&Reverse((at, key, turn))) = self.ahead.timers.peek() {
            if self.idle.clock(at) > now {
                return;
            }
            self.ahead.timers.pop();
            self.make_ahead(key, turn);
        }
    }

    fn make_ahead(&mut self, key: SessionKey, turn: u32) {
        // The session may be over, and its key another's.
        let Some(session) = self.sessions.get_mut(key.0 as usize).and_then(Option::as_mut) else { return };
        if session.next == turn && session.ticket.is_none() {
            session.ticket = self.source.turn_ahead(session.conversation, turn, session.run);
        }
    }
}
