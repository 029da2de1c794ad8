//! A trace from a few figures: when requests arrive, how long they are, and how much of their prompts was there
//! before. For those who may not publish their own.
//!
//! Rows are made in order and not kept. The draws are made several times over from the same seed instead: first to
//! learn what they come to, so that rates and lengths can be brought to the figures asked for, then to learn whether
//! the reuse asked for can be reached, then to write.

mod draws;
mod reuse;

use std::io::{self, Write};

use draws::{Draws, Scales};
use reuse::{Leader, Mode};

use crate::LogNormal;

/// No model takes more; a prompt beyond this would be refused when the trace is read.
const LONGEST: f64 = 10_000_000.0;

/// More rows are more than anybody replays, and hours of work.
const MOST_ROWS: u64 = 100_000_000;

/// Requests a second: fewer wait for more than a week, more have no time between them that a row can say.
const SLOWEST: f64 = 0.000_002;
const FASTEST: f64 = 1_000_000.0;

/// A reuse that misses by more than this while it can be reached is planned again.
const NEAR: f64 = 0.005;

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Evenly spaced.
    Constant,
    /// Independent of each other.
    Poisson,
    /// Bursty below a shape of 1, even above.
    Gamma(f64),
}

/// How long prompts or answers are, in tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Normal with this mean and deviation, drawn again below 0; a deviation of 0 is a constant.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        stddev: f64,
    },
    /// Lognormal.
    LogNormal(LogNormal),
}

impl Length {
    /// The mean that the trace is to have.
    pub fn mean(&self) -> f64 {
        match self {
            Length::Normal { mean, .. } => *mean,
            Length::LogNormal(distribution) => distribution.mean,
        }
    }

    /// The rule that is broken, if one is.
    fn fault(&self) -> Option<String> {
        let fits = |value: f64| (1.0..=LONGEST).contains(&value);
        match self {
            Length::Normal { mean, stddev } => {
                if !fits(*mean) {
                    return Some(format!("must have a mean from 1 to {LONGEST}, has {}", shown(*mean)));
                }
                let far = !(0.0..=LONGEST).contains(stddev);
                far.then(|| format!("must have a deviation from 0 to {LONGEST}, has {}", shown(*stddev)))
            }
            Length::LogNormal(LogNormal { mean, median, .. }) => {
                let has = || format!("has {},{}", shown(*mean), shown(*median));
                if !fits(*mean) || !fits(*median) {
                    return Some(format!("must have mean and median from 1 to {LONGEST}, {}", has()));
                }
                (mean < median).then(|| format!("must not have a mean below its median, {}", has()))
            }
        }
    }
}

/// What the trace is to be like.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Rows.
    pub requests: u64,
    /// Requests per second.
    pub rate: f64,
    /// How they arrive.
    pub arrivals: Arrivals,
    /// How long prompts are.
    pub input: Length,
    /// How long answers are.
    pub output: Length,
    /// Share of all blocks that an earlier row had in the same place.
    pub reuse: f64,
    /// Requests of one group share a prefix.
    pub groups: u32,
    /// Group k, counted from 1, is chosen with weight k^−α.
    pub zipf_alpha: f64,
    /// Tokens of a block.
    pub block_size: u32,
    /// The same seed gives the same trace.
    pub seed: u64,
}

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A figure is out of its range.
    #[error("{flag} {rule}")]
    Argument {
        /// The flag that sets it.
        flag: &'static str,
        /// What it must be, and what it is.
        rule: String,
    },
    /// The reuse cannot be reached.
    #[error(
        "--prefix-reuse {wanted} cannot be reached: with these lengths, groups and requests the highest is {highest}; \
         lower it, or take more --num-requests, fewer --prefix-groups or a smaller --block-size"
    )]
    Reuse {
        /// What was asked for.
        wanted: f64,
        /// What is possible, rounded down.
        highest: f64,
    },
    /// The rows cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// Rows.
    pub rows: u64,
    /// From the first to the last, ms.
    pub span_ms: f64,
    /// Tokens of all prompts.
    pub input_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
    /// Share of all blocks that an earlier row had in the same place.
    pub reuse: f64,
}

/// A trace whose figures were found to fit together.
#[derive(Debug)]
pub struct TraceSynthesis {
    shape: Shape,
    scales: Scales,
    /// Blocks of the longest prompt that are whole.
    longest: u64,
    mode: Mode,
}

/// Draws that were looked at, and who is told.
struct Seen<'p> {
    draws: u64,
    progress: &'p mut dyn FnMut(u64),
}

impl Seen<'_> {
    /// One more. Being told of each would take longer than looking at it.
    fn draw(&mut self) {
        self.draws += 1;
        if self.draws.is_multiple_of(1024) {
            (self.progress)(self.draws);
        }
    }
}

impl TraceSynthesis {
    /// Checks the figures and learns what the draws come to. `progress` is told now and then how many were looked at: each
    /// row takes several.
    pub fn new(shape: Shape, progress: &mut dyn FnMut(u64)) -> Result<TraceSynthesis, TraceError> {
        check(&shape)?;
        let mut seen = Seen { draws: 0, progress };
        let scales = Scales::of(&shape, &mut seen);
        let size = u64::from(shape.block_size);
        let mut plan = |mode: Mode| {
            let mut leader = Leader::new(&shape, mode);
            let mut longest = 0;
            for row in Draws::new(&shape, scales) {
                longest = longest.max(row.input / size);
                leader.lead(&row, row.input.div_ceil(size), row.input / size);
                seen.draw();
            }
            (leader.blocks, leader.reuse(), longest)
        };
        let (blocks, highest, longest) = plan(Mode::Highest);
        if shape.reuse > highest + 1e-9 && shape.reuse > 0.0 {
            let highest = (highest * 1000.0).floor() / 1000.0;
            return Err(TraceError::Reuse { wanted: shape.reuse, highest });
        }
        let (_, reached, _) = plan(Mode::Even);
        let mode = if (reached - shape.reuse).abs() <= NEAR {
            Mode::Even
        } else {
            Mode::Early { hits: (shape.reuse * blocks as f64).round() as u64 }
        };
        Ok(TraceSynthesis { shape, scales, longest, mode })
    }

    /// Writes the rows in the order of time. `progress` is told the rows that are done.
    pub fn write(&self, rows: &mut dyn Write, progress: &mut dyn FnMut(u64)) -> Result<Totals, TraceError> {
        let size = u64::from(self.shape.block_size);
        let mut leader = Leader::new(&self.shape, self.mode);
        let mut totals = Totals { rows: 0, span_ms: 0.0, input_tokens: 0, output_tokens: 0, reuse: 0.0 };
        let mut fresh = u64::from(self.shape.groups) * self.longest;
        let mut line = Vec::with_capacity(1 << 12);
        let mut numbers = itoa::Buffer::new();
        for row in Draws::new(&self.shape, self.scales) {
            let blocks = row.input.div_ceil(size);
            let leading = leader.lead(&row, blocks, row.input / size);
            line.clear();
            line.extend_from_slice(b"{\"timestamp\":");
            let micros = (row.at_ms * 1000.0).round() as u64;
            line.extend_from_slice(numbers.format(micros / 1000).as_bytes());
            if !micros.is_multiple_of(1000) {
                write!(line, ".{:03}", micros % 1000)?;
            }
            line.extend_from_slice(b",\"input_length\":");
            line.extend_from_slice(numbers.format(row.input).as_bytes());
            line.extend_from_slice(b",\"output_length\":");
            line.extend_from_slice(numbers.format(row.output).as_bytes());
            line.extend_from_slice(b",\"hash_ids\":[");
            let chain = u64::from(row.group) * self.longest;
            for id in (chain..chain + leading).chain(fresh..fresh + (blocks - leading)) {
                line.extend_from_slice(numbers.format(id).as_bytes());
                line.push(b',');
            }
            fresh += blocks - leading;
            // There is at least one block; its comma gives way to the bracket.
            line.pop();
            line.extend_from_slice(b"]}\n");
            rows.write_all(&line)?;
            totals.rows += 1;
            totals.span_ms = row.at_ms;
            totals.input_tokens += row.input;
            totals.output_tokens += row.output;
            progress(totals.rows);
        }
        rows.flush()?;
        totals.reuse = leader.reuse();
        Ok(totals)
    }
}

/// A number for people: with an exponent where it has many digits.
fn shown(number: f64) -> String {
    let text = format!("{number:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn check(shape: &Shape) -> Result<(), TraceError> {
    let refuse = |flag: &'static str, rule: String| Err(TraceError::Argument { flag, rule });
    if !(1..=MOST_ROWS).contains(&shape.requests) {
        return refuse("--num-requests", format!("must be from 1 to {MOST_ROWS}, is {}", shape.requests));
    }
    if !(SLOWEST..=FASTEST).contains(&shape.rate) {
        let rule = format!("must be from {SLOWEST} to {FASTEST} requests a second, is {}", shown(shape.rate));
        return refuse("--rate", rule);
    }
    if let Arrivals::Gamma(smoothness) = shape.arrivals
        && !(1e-3..=1e6).contains(&smoothness)
    {
        return refuse(
            "--arrival-smoothness",
            format!("must be from 0.001 to 1000000, is {}", shown(smoothness)),
        );
    }
    if let Some(rule) = shape.input.fault() {
        return refuse("--isl", rule);
    }
    if let Some(rule) = shape.output.fault() {
        return refuse("--osl", rule);
    }
    if !(0.0..1.0).contains(&shape.reuse) {
        return refuse("--prefix-reuse", format!("must be from 0 to below 1, is {}", shown(shape.reuse)));
    }
    if !(1..=10_000_000).contains(&shape.groups) {
        return refuse("--prefix-groups", format!("must be from 1 to 10000000, is {}", shape.groups));
    }
    if !(0.0..=100.0).contains(&shape.zipf_alpha) {
        return refuse("--zipf-alpha", format!("must be from 0 to 100, is {}", shown(shape.zipf_alpha)));
    }
    if shape.block_size == 0 {
        return refuse("--block-size", "must be 1 or more".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
