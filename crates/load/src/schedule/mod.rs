//! The plan as a pure state machine: it is told the time and what happened, and answers what leaves next and
//! when it wants to be asked again. No I/O, no clock, no threads; a virtual clock tests it to the nanosecond.

mod ahead;
mod arrivals;
#[cfg(test)]
mod branch_tests;
mod branches;
mod idle;
mod machine;
mod mode;
mod plan;
mod ramp;
mod slots;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aiperf_clock::Mono;
use aiperf_types::{BranchPlan, PhaseKind, PlanInstants};

pub use arrivals::{Arrivals, RateCurve};
pub use branches::{BranchCounts, Family};
pub use machine::{Counts, Schedule, TurnEnding};
pub use plan::Plan;
pub use ramp::CapRamp;

/// A live session, by its place in the session table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u32);

/// When a turn may be sent, as the data says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TurnTiming {
    /// Recorded time, ms.
    pub timestamp_ms: Option<f64>,
    /// Wait after the previous turn returned, ms.
    pub delay_ms: Option<f64>,
}

/// The next conversation to start.
#[derive(Debug)]
pub enum Draw<T> {
    /// This one.
    Session(NewSession<T>),
    /// Not known yet; ask again soon.
    NotYet,
    /// There are no more.
    Exhausted,
}

/// A conversation drawn to be run.
#[derive(Debug)]
pub struct NewSession<T> {
    /// Index in the dataset.
    pub conversation: u64,
    /// Number of turns, at least 1.
    pub turns: u32,
    /// Recorded time of the first turn, ms (fixed schedule).
    pub first_ms: Option<f64>,
    /// Number of the draw, which names the run: later turns and children are asked for with it.
    pub run: u64,
    /// Whatever the sender needs to send it.
    pub ticket: T,
}

/// A conversation that another one starts, on its way to be sent.
#[derive(Debug)]
pub struct Child<T> {
    /// Number of turns.
    pub turns: u32,
    /// Whatever the sender needs to send it; a conversation without requests needs nothing.
    pub ticket: Option<T>,
}

/// Where sessions come from: draws conversations in the order they are to be started.
pub trait SessionSource {
    /// What travels with a drawn conversation to the sender.
    type Ticket;

    /// A phase of this kind is about to draw.
    fn phase_begins(&mut self, kind: PhaseKind) {
        let _ = kind;
    }

    /// The next conversation, drawn once.
    fn draw(&mut self) -> Draw<Self::Ticket>;

    /// Timing of turn `turn` of conversation `conversation`.
    fn timing(&self, conversation: u64, turn: u32) -> TurnTiming;

    /// Whether the tickets of conversations are for their first turns only, and [`SessionSource::turn_ahead`] gives
    /// those of the others.
    fn makes_turns_ahead(&self) -> bool {
        false
    }

    /// Has a later turn of run `run` made ready.
    fn turn_ahead(&mut self, conversation: u64, turn: u32, run: u64) -> Option<Self::Ticket> {
        let _ = (conversation, turn, run);
        None
    }

    /// What conversation `conversation` starts beside itself; most start nothing.
    fn branches(&self, conversation: u64) -> Option<Arc<BranchPlan>> {
        let _ = conversation;
        None
    }

    /// Has a child of run `run` made ready; `inherits` when it goes on from what its parent said. `None` when it
    /// cannot be had.
    fn child(&mut self, conversation: u64, inherits: bool, run: u64) -> Option<Child<Self::Ticket>> {
        let _ = (conversation, inherits, run);
        None
    }
}

impl<S: SessionSource + ?Sized> SessionSource for Box<S> {
    type Ticket = S::Ticket;

    fn phase_begins(&mut self, kind: PhaseKind) {
        (**self).phase_begins(kind);
    }

    fn draw(&mut self) -> Draw<S::Ticket> {
        (**self).draw()
    }

    fn timing(&self, conversation: u64, turn: u32) -> TurnTiming {
        (**self).timing(conversation, turn)
    }

    fn makes_turns_ahead(&self) -> bool {
        (**self).makes_turns_ahead()
    }

    fn turn_ahead(&mut self, conversation: u64, turn: u32, run: u64) -> Option<S::Ticket> {
        (**self).turn_ahead(conversation, turn, run)
    }

    fn branches(&self, conversation: u64) -> Option<Arc<BranchPlan>> {
        (**self).branches(conversation)
    }

    fn child(&mut self, conversation: u64, inherits: bool, run: u64) -> Option<Child<S::Ticket>> {
        (**self).child(conversation, inherits, run)
    }
}

/// A turn to be sent now.
#[derive(Debug)]
pub struct Issue<T> {
    /// Number in the phase, in issue order, from 0.
    pub number: u64,
    /// The session.
    pub session: SessionKey,
    /// Index of the conversation in the dataset.
    pub conversation: u64,
    /// Index of the turn.
    pub turn: u32,
    /// Whether this is the last turn of the conversation.
    pub last_turn: bool,
    /// What the plan wanted.
    pub plan: PlanInstants,
    /// The client is to break this request off.
    pub cancel: bool,
    /// The drawn conversation, with its first turn; with a later one its own request, where turns are made one by one.
    pub ticket: Option<T>,
    /// Who started the conversation, with its first turn only, where conversations start each other.
    pub family: Option<Arc<Family>>,
    /// The first turn of a child that goes on from what this session has said.
    pub fork: Option<Fork>,
    /// Children go on from what this turn says and hears, even if it is the last.
    pub forked: bool,
}

/// Where the past of a child comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The session of the parent.
    pub parent: SessionKey,
    /// Nobody needs the past of the parent after this.
    pub last: bool,
}

/// When the machine wants to be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// At this instant, or when something happens.
    At(Mono),
    /// When something happens.
    OnEvent,
    /// Nothing will be issued any more and nothing is in flight.
    Done,
}
