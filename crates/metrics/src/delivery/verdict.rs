//! From facts to a verdict with reasons.

use super::facts::DeliveryFacts;

/// Whether the figures of a phase can be trusted to describe the load that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing speaks against it.
    Valid,
    /// At least one reason does.
    Suspect,
}

/// Something that speaks against the figures.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Reason {
    /// Its name.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// The figure, in `unit`.
    pub value: f64,
    /// What it may not exceed (or fall below), in `unit`.
    pub limit: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// What to do about it.
    pub next_step: String,
}

/// The verdict and everything it rests on; serialises to the object `load_delivery`.
#[derive(Clone, Debug)]
pub struct LoadDelivery {
    /// The verdict.
    pub verdict: Verdict,
    /// The reasons; empty when valid.
    pub reasons: Vec<Reason>,
    /// What it rests on.
    pub facts: DeliveryFacts,
}

/// Judges the delivery of a phase.
pub fn judge(facts: DeliveryFacts) -> LoadDelivery {
    LoadDelivery { verdict: Verdict::Valid, reasons: Vec::new(), facts }
}
