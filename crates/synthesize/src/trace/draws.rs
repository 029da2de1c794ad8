//! What is drawn for each row, in order, as often as it is asked for.

use aiperf_tokenize::seed::{Stream, stream, unit};
use rand_distr::{Distribution, Exp1, Gamma};

use super::{Arrivals, LONGEST, Length, Seen, Shape};
use crate::Zipf;
use crate::draw::standard_normal;

/// Means nearer to what was asked for than this are near enough.
const NEAR: f64 = 0.001;

/// Factors that bring what is drawn to what was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scales {
    /// Milliseconds per level of the arrivals.
    gap_ms: f64,
    input: f64,
    output: f64,
}

impl Scales {
    pub(super) fn of(shape: &Shape, seen: &mut Seen<'_>) -> Scales {
        Scales {
            gap_ms: gap_ms(shape, seen),
            input: factor(shape, &shape.input, "trace.input", seen),
            output: factor(shape, &shape.output, "trace.output", seen),
        }
    }
}

/// With the sum of the gaps known, their mean can be exact.
fn gap_ms(shape: &Shape, seen: &mut Seen<'_>) -> f64 {
    let mean = 1000.0 / shape.rate;
    if shape.arrivals == Arrivals::Constant || shape.requests < 2 {
        return mean;
    }
    let mut arrivals = Process::new(shape);
    let level = (1..shape.requests).fold(0.0, |_, number| {
        seen.draw();
        arrivals.level(number)
    });
    if level > 0.0 { mean * (shape.requests - 1) as f64 / level } else { mean }
}

fn factor(shape: &Shape, length: &Length, name: &str, seen: &mut Seen<'_>) -> f64 {
    if matches!(length, Length::Normal { stddev, .. } if *stddev <= 0.0) {
        return 1.0;
    }
    let mut factor = 1.0;
    // Rounding, the least length of 1 and the greatest one bend the mean a little; a few steps make up for it.
    for _ in 0..6 {
        let mut stream = stream(shape.seed, name);
        let mut draw = |_| {
            seen.draw();
            tokens(raw(length, &mut stream), factor)
        };
        let sum: u64 = (0..shape.requests).map(&mut draw).sum();
        let off = length.mean() / (sum as f64 / shape.requests as f64);
        if (off - 1.0).abs() < NEAR {
            break;
        }
        factor *= off;
    }
    factor
}

fn raw(length: &Length, stream: &mut Stream) -> f64 {
    match length {
        Length::Normal { mean, stddev } if *stddev <= 0.0 => *mean,
        Length::Normal { mean, stddev } => loop {
            // The mean is above 0, so at least every second draw is kept.
            let value = mean + stddev * standard_normal(stream);
            if value >= 0.0 {
                return value;
            }
        },
        Length::LogNormal(distribution) => distribution.draw(stream),
    }
}

fn tokens(raw: f64, factor: f64) -> u64 {
    (raw * factor).round().clamp(1.0, LONGEST) as u64
}

/// Arrivals in levels: the n-th is at n, or at the sum of n gaps whose mean is 1.
struct Process {
    arrivals: Arrivals,
    gamma: Option<Gamma<f64>>,
    stream: Stream,
    level: f64,
}

impl Process {
    fn new(shape: &Shape) -> Process {
        let gamma = match shape.arrivals {
            Arrivals::Gamma(smoothness) => Gamma::new(smoothness, 1.0 / smoothness).ok(),
            _ => None,
        };
        Process { arrivals: shape.arrivals, gamma, stream: stream(shape.seed, "trace.arrivals"), level: 0.0 }
    }

    /// The level of arrival `number`; called for 1, 2, 3 …
    fn level(&mut self, number: u64) -> f64 {
        if self.arrivals == Arrivals::Constant {
            return number as f64;
        }
        let gap: f64 = match &self.gamma {
            Some(gamma) => gamma.sample(&mut self.stream),
            None => Exp1.sample(&mut self.stream),
        };
        self.level += gap;
        self.level
    }
}

/// What is drawn for a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) at_ms: f64,
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) group: u32,
    /// From 0 up to 1: how much of its prefix it takes.
    pub(super) share: f64,
}

/// The rows, one after the other.
pub(super) struct Draws<'a> {
    shape: &'a Shape,
    scales: Scales,
    arrivals: Process,
    groups: Zipf,
    input: Stream,
    output: Stream,
    group: Stream,
    share: Stream,
    next: u64,
}

impl<'a> Draws<'a> {
    pub(super) fn new(shape: &'a Shape, scales: Scales) -> Draws<'a> {
        let stream = |name: &str| stream(shape.seed, name);
        Draws {
            shape,
            scales,
            arrivals: Process::new(shape),
            groups: Zipf::new(shape.groups, shape.zipf_alpha),
            input: stream("trace.input"),
            output: stream("trace.output"),
            group: stream("trace.groups"),
            share: stream("trace.shares"),
            next: 0,
        }
    }
}

impl Iterator for Draws<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        if self.next == self.shape.requests {
            return None;
        }
        let level = if self.next == 0 { 0.0 } else { self.arrivals.level(self.next) };
        self.next += 1;
        Some(Row {
            at_ms: level * self.scales.gap_ms,
            input: tokens(raw(&self.shape.input, &mut self.input), self.scales.input),
            output: tokens(raw(&self.shape.output, &mut self.output), self.scales.output),
            group: self.groups.draw(&mut self.group),
            share: unit(&mut self.share),
        })
    }
}
