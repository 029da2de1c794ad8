//! The live block: running figures as a few lines of text.

use std::fmt::Write as _;
use std::time::Duration;

use aiperf_types::PhaseKind;

use super::bar::clock;
use crate::number::{count, two_decimals};

/// Running figures of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveFigures {
    /// Requests per second since the last block.
    pub rate: f64,
    /// Requests per second since the start of the phase.
    pub mean_rate: f64,
    /// Input tokens per second since the last block.
    pub input_token_rate: Option<f64>,
    /// Output tokens per second since the last block.
    pub output_token_rate: Option<f64>,
    /// Requests that came back.
    pub done: u64,
    /// Of these, valid.
    pub succeeded: u64,
    /// Of these, failed.
    pub failed: u64,
    /// Distributions: short name, then percentiles; those without values are left out by the caller.
    pub rows: Vec<LiveRow>,
}

/// One distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveRow {
    /// Short name: `ttft`, `itl`, `e2e`, `intvty`, `isl`, `osl`, …
    pub name: &'static str,
    /// Unit of the figures, `""` for counts.
    pub unit: &'static str,
    /// Percentile and value.
    pub figures: Vec<(&'static str, f64)>,
}

impl LiveFigures {
    /// The block, without its last line end.
    pub(super) fn block(&self, phase: PhaseKind, elapsed: Duration) -> String {
        let mut out = format!("[realtime {} {}]", clock(elapsed), phase.name());
        let _ = write!(out, "\n  rps={} (avg {})", two_decimals(self.rate), two_decimals(self.mean_rate));
        for (name, rate) in [("tput_in", self.input_token_rate), ("tput_out", self.output_token_rate)] {
            if let Some(rate) = rate {
                let _ = write!(out, " {name}={}/s", two_decimals(rate));
            }
        }
        let _ =
            write!(out, " done={} ok={} err={}", count(self.done), count(self.succeeded), count(self.failed));
        for row in &self.rows {
            let _ = write!(out, "\n  {:<7}", row.name);
            for (percentile, value) in &row.figures {
                let _ = write!(out, " {percentile}={}", two_decimals(*value));
            }
            if !row.unit.is_empty() {
                let _ = write!(out, " {}", row.unit);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_names_every_figure() {
        let figures = LiveFigures {
            rate: 12.5,
            mean_rate: 12.0,
            input_token_rate: Some(800.0),
            output_token_rate: None,
            done: 1_200,
            succeeded: 1_199,
            failed: 1,
            rows: vec![LiveRow { name: "ttft", unit: "ms", figures: vec![("p50", 20.126), ("p99", 31.0)] }],
        };
        assert_eq!(
            figures.block(PhaseKind::Profiling, Duration::from_secs(95)),
            "[realtime 01:35 profiling]\n  rps=12.50 (avg 12.00) tput_in=800.00/s done=1,200 ok=1,199 err=1\n  \
             ttft    p50=20.13 p99=31.00 ms"
        );
    }
}
