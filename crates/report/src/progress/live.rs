//! The live block: running figures as a few lines of text.

use std::fmt::Write as _;
use std::time::Duration;

use aiperf_metrics::live::Reading;
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
    /// Input and output tokens of valid requests so far; absent where they are not counted.
    pub total_tokens: [Option<u64>; 2],
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
    /// The figures of a phase after `elapsed`, with rates since an earlier reading of the same phase (or since its
    /// start).
    pub fn since(earlier: Option<(&Reading, Duration)>, now: &Reading, elapsed: Duration) -> LiveFigures {
        let start = (Reading::default(), Duration::ZERO);
        let (before, at) = earlier.unwrap_or((&start.0, start.1));
        let per_second = |count: u64, time: Duration| {
            if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
        };
        let recent =
            |now: u64, before: u64| per_second(now.saturating_sub(before), elapsed.saturating_sub(at));
        let done = now.valid + now.failed;
        let rows = now.distributions.iter().map(|shown| LiveRow {
            name: shown.name,
            unit: shown.unit,
            figures: shown.percentiles.clone(),
        });
        LiveFigures {
            rate: recent(done, before.valid + before.failed),
            mean_rate: per_second(done, elapsed),
            input_token_rate: (now.input_tokens > 0).then(|| recent(now.input_tokens, before.input_tokens)),
            output_token_rate: (now.output_tokens > 0)
                .then(|| recent(now.output_tokens, before.output_tokens)),
            done,
            succeeded: now.valid,
            failed: now.failed,
            total_tokens: [now.input_tokens, now.output_tokens].map(|tokens| Some(tokens).filter(|n| *n > 0)),
            rows: rows.collect(),
        }
    }

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
        if self.total_tokens.iter().any(Option::is_some) {
            out.push_str("\n  tot    ");
            for (name, tokens) in ["in", "out"].iter().zip(self.total_tokens) {
                if let Some(tokens) = tokens {
                    let _ = write!(out, " {name}={}", count(tokens));
                }
            }
            out.push_str(" tokens");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_since_the_last_block() {
        let reading =
            |valid, output_tokens| Reading { valid, failed: 1, output_tokens, ..Reading::default() };
        let figures = LiveFigures::since(
            Some((&reading(9, 100), Duration::from_secs(5))),
            &reading(29, 500),
            Duration::from_secs(10),
        );
        assert_eq!((figures.rate, figures.mean_rate, figures.output_token_rate), (4.0, 3.0, Some(80.0)));
        assert_eq!((figures.done, figures.succeeded, figures.failed), (30, 29, 1));
        assert_eq!((figures.input_token_rate, figures.total_tokens), (None, [None, Some(500)]));
        let first = LiveFigures::since(None, &reading(9, 100), Duration::from_secs(5));
        assert_eq!((first.rate, first.mean_rate), (2.0, 2.0));
    }

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
            total_tokens: [Some(76_800), None],
            rows: vec![LiveRow { name: "ttft", unit: "ms", figures: vec![("p50", 20.126), ("p99", 31.0)] }],
        };
        assert_eq!(
            figures.block(PhaseKind::Profiling, Duration::from_secs(95)),
            "[realtime 01:35 profiling]\n  rps=12.50 (avg 12.00) tput_in=800.00/s done=1,200 ok=1,199 err=1\n  \
             ttft    p50=20.13 p99=31.00 ms\n  tot     in=76,800 tokens"
        );
    }
}
