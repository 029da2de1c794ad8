//! What is waited for while no request of a phase has come back.

use std::time::Duration;

use aiperf_types::PhaseKind;

use super::bar::clock;
use crate::number::count;

/// How far the requests of a phase are of which none is back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How many there will be, where that is known.
    pub total: Option<u64>,
    /// Requests that are due and not back.
    pub in_flight: u64,
    /// Of these, ready and sent, or on their way to a connection.
    pub sent: u64,
    /// Of these, waiting for a connection that is being made.
    pub connecting: u64,
    /// Waiting for the TLS handshake of one.
    pub securing: u64,
    /// Answered in part.
    pub begun: u64,
}

impl Waiting {
    /// One line that says where they are.
    pub(super) fn line(&self, phase: PhaseKind, elapsed: Duration) -> String {
        let on_the_way = self.connecting + self.securing + self.begun;
        let steps = [
            (self.in_flight.saturating_sub(self.sent), "waiting for their prompt"),
            (self.connecting, "connecting"),
            (self.securing, "in the TLS handshake"),
            (
                self.sent.min(self.in_flight).saturating_sub(on_the_way),
                "waiting for the first byte of an answer",
            ),
            (self.begun, "being answered"),
        ];
        let steps: Vec<String> =
            steps.iter().filter(|(n, _)| *n > 0).map(|(n, step)| format!("{} {step}", count(*n))).collect();
        let where_they_are = if steps.is_empty() { "none is due yet".to_owned() } else { steps.join(", ") };
        let of = self.total.map_or_else(String::new, |total| format!(" of {}", count(total)));
        format!("[waiting {} {}] no request{of} is back yet: {where_they_are}", clock(elapsed), phase.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_at_one_step() {
        let at = Duration::from_secs(10);
        let waiting =
            Waiting { total: Some(1_000), in_flight: 20, sent: 18, connecting: 3, securing: 4, begun: 5 };
        assert_eq!(
            waiting.line(PhaseKind::Profiling, at),
            "[waiting 00:10 profiling] no request of 1,000 is back yet: 2 waiting for their prompt, 3 connecting, 4 in the \
             TLS handshake, 6 waiting for the first byte of an answer, 5 being answered"
        );
        let none = Waiting::default().line(PhaseKind::Warmup, at);
        assert_eq!(none, "[waiting 00:10 warmup] no request is back yet: none is due yet");
    }
}
