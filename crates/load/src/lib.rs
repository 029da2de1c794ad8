//! When does it leave, on which socket, and when did each byte come back?
//!
//! [`schedule`] decides what leaves when, as a pure state machine. [`Engine`] carries it out: network threads
//! with their own sockets and sessions, and a pacer that moves turns between the schedule and them.

mod cpu;
mod delivery;
mod engine;
mod outcome;
mod pacer;
pub mod preflight;
mod prepared;
pub mod schedule;
mod settings;
pub mod transport;
mod underway;
mod wake;
mod worker;

pub use cpu::{CpuClock, CpuTime, SystemCpu};
pub use delivery::{Durations, Tally};
pub use engine::{Engine, PacerPlace, PhaseOutcome, PhaseRun};
pub use outcome::{Exchange, Received, ReceivedBytes};
pub use pacer::{Control, Source, StopCause};
pub use prepared::{Prepared, PreparedResult, Ticket};
pub use settings::{Proxy, Settings, Tls};
pub use underway::{Underway, UnderwayCounts};
pub use worker::ExchangeSink;
