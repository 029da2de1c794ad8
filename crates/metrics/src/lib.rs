//! What does it mean? From request records to per-request values, and from those to aggregates.
//!
//! The [`registry`] is the one list of metrics; [`evaluate()`] derives the values of one record; the [`Store`]
//! keeps a few packed instants and counts per record, from which it makes every figure of the [`Summary`];
//! [`delivery`] judges whether the client delivered the load it was asked for; [`live`] gives running figures.

mod block;
mod context;
pub mod delivery;
mod evaluate;
mod facts;
mod formula;
pub mod live;
pub mod registry;
mod store;
mod summary;
mod value;

pub use block::Block;
pub use context::Context;
pub use delivery::{DeliveryFacts, LoadDelivery};
pub use evaluate::evaluate;
pub use registry::{Metric, MetricDef};
pub use store::Store;
pub use summary::{
    ErrorGroup, Latencies, ObservationWindow, OslMismatch, SendLag, SendTiming, Summary, UsageDiscrepancy,
    Window,
};
pub use value::{RecordValues, Value};
