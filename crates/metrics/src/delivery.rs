//! The verdict on the client itself: did the load that was asked for leave, and on time?

mod facts;
mod verdict;

pub use facts::{ClientFacts, ConcurrencyFacts, DeliveryFacts, LoadMode, Spread, rate};
pub use verdict::{LoadDelivery, Reason, Verdict, judge};
