//! The verdict on the client itself: did the load that was asked for leave, and on time?
//!
//! [`judge`] is a pure function from what is known ([`DeliveryFacts`]) to a verdict with reasons
//! ([`LoadDelivery`]), which serialises to the object `load_delivery` of the results.

mod facts;
mod reasons;
mod serialise;

pub use facts::{ClientFacts, ConcurrencyFacts, DeliveryFacts, LoadMode, Spread, rate};
pub use reasons::Reason;

/// Whether the figures of a phase can be trusted to describe the load that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing speaks against it.
    Valid,
    /// At least one reason does.
    Suspect,
}

/// The verdict and everything it rests on.
#[derive(Clone, Debug)]
pub struct LoadDelivery {
    /// The verdict.
    pub verdict: Verdict,
    /// The reasons, in a fixed order; empty when valid.
    pub reasons: Vec<Reason>,
    /// What it rests on.
    pub facts: DeliveryFacts,
}

/// Judges the delivery of a phase: suspect when a limit of the client was passed. What was asked for (caps,
/// skipped arrivals) and what the server did (errors, late answers) never makes it so.
pub fn judge(facts: DeliveryFacts) -> LoadDelivery {
    let reasons = reasons::reasons(&facts);
    let verdict = if reasons.is_empty() { Verdict::Valid } else { Verdict::Suspect };
    LoadDelivery { verdict, reasons, facts }
}
