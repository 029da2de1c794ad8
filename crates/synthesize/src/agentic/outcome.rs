//! What the sessions came to.

use super::cache::Blocks;
use super::{Config, End, Session, Turn};
use crate::Column;

/// Tokens per second that the estimates assume: of prompts, and of answers.
pub(super) const PREFILL_RATE: f64 = 20_000.0;
/// See [`PREFILL_RATE`].
pub(super) const DECODE_RATE: f64 = 60.0;

/// Sessions whose course is drawn.
const DRAWN: usize = 10;
/// Sessions that the simulation gets; a page with more would not open.
const SIMULATED: usize = 2000;

/// The course of a session: context, and share of its blocks that were there, per request.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pub(super) contexts: Vec<u64>,
    pub(super) hit_ratios: Vec<f64>,
}

/// A session as the simulation takes it.
#[derive(Clone, Debug)]
pub(super) struct Simulated {
    pub(super) group: u32,
    pub(super) turns: Vec<Turn>,
}

/// Every figure about a trace. Lengths are in tokens, pauses in milliseconds, estimates in seconds.
#[derive(Debug)]
pub struct Outcome {
    block_size: u64,
    limit: f64,
    ends: [u64; 4],
    groups: Vec<u64>,
    hit_blocks: u64,
    all_blocks: u64,
    /// First contexts of sessions that start from nothing.
    pub initial: Column,
    /// Tokens that later turns added.
    pub new_tokens: Column,
    /// Tokens of answers.
    pub output: Column,
    /// Pauses before later turns.
    pub delay: Column,
    /// Requests per session.
    pub turns: Column,
    /// Context per request.
    pub context: Column,
    /// Last context of a session as a share of the limit.
    pub utilization: Column,
    /// Blocks per request.
    pub blocks: Column,
    /// Tokens of each request that an infinite cache holds.
    pub prefix: Column,
    /// The same as a share of the context.
    pub prefix_ratio: Column,
    /// Share of each first request's blocks that an infinite cache holds.
    pub first_hit_ratio: Column,
    /// The same of later requests.
    pub later_hit_ratio: Column,
    /// Estimated time of an answer.
    pub latency: Column,
    /// Estimated time of a session, pauses included.
    pub duration: Column,
    pub(super) courses: Vec<Course>,
    pub(super) simulated: Vec<Simulated>,
}

impl Outcome {
    pub(super) fn new(config: &Config) -> Outcome {
        Outcome {
            block_size: u64::from(config.block_size),
            limit: config.max_prompt_tokens as f64,
            ends: [0; 4],
            groups: vec![0; config.cache.groups as usize],
            hit_blocks: 0,
            all_blocks: 0,
            initial: Column::default(),
            new_tokens: Column::default(),
            output: Column::default(),
            delay: Column::default(),
            turns: Column::default(),
            context: Column::default(),
            utilization: Column::default(),
            blocks: Column::default(),
            prefix: Column::default(),
            prefix_ratio: Column::default(),
            first_hit_ratio: Column::default(),
            later_hit_ratio: Column::default(),
            latency: Column::default(),
            duration: Column::default(),
            courses: Vec::new(),
            simulated: Vec::new(),
        }
    }

    pub(super) fn session(&mut self, session: &Session, blocks: &[Blocks]) {
        self.ends[session.end as usize] += 1;
        self.groups[session.group as usize] += 1;
        let mut duration = 0.0;
        let mut course = Course { contexts: Vec::new(), hit_ratios: Vec::new() };
        let drawn = self.courses.len() < DRAWN;
        for (index, (turn, blocks)) in session.turns.iter().zip(blocks).enumerate() {
            let ratio = blocks.hit as f64 / blocks.total as f64;
            if index == 0 {
                self.first_hit_ratio.push(ratio);
            } else {
                self.new_tokens.push(turn.new as f64);
                self.delay.push(turn.delay_ms);
                self.later_hit_ratio.push(ratio);
            }
            self.hit_blocks += blocks.hit;
            self.all_blocks += blocks.total;
            self.output.push(turn.output as f64);
            self.context.push(turn.context as f64);
            self.blocks.push(blocks.total as f64);
            let prefix = (blocks.hit * self.block_size).min(turn.context) as f64;
            self.prefix.push(prefix);
            self.prefix_ratio.push(prefix / turn.context as f64);
            let latency = turn.new as f64 / PREFILL_RATE + turn.output as f64 / DECODE_RATE;
            self.latency.push(latency);
            duration += latency + turn.delay_ms / 1000.0;
            if drawn {
                course.contexts.push(turn.context);
                course.hit_ratios.push(ratio);
            }
        }
        if drawn {
            self.courses.push(course);
        }
        if self.simulated.len() < SIMULATED {
            self.simulated.push(Simulated { group: session.group, turns: session.turns.clone() });
        }
        if let (Some(first), Some(last)) = (session.turns.first(), session.turns.last()) {
            if !session.is_restart {
                self.initial.push(first.context as f64);
            }
            self.utilization.push(last.context as f64 / self.limit);
        }
        self.turns.push(session.turns.len() as f64);
        self.duration.push(duration);
    }

    /// Requests in the trace.
    pub fn rows(&self) -> u64 {
        self.output.len() as u64
    }

    /// Sessions in the trace.
    pub fn sessions(&self) -> u64 {
        self.ends.iter().sum()
    }

    /// Sessions that ended so.
    pub fn ended(&self, end: End) -> u64 {
        self.ends[end as usize]
    }

    /// Share of all blocks that an infinite cache holds when they are asked for, sessions in file order.
    pub fn hit_ratio(&self) -> f64 {
        self.hit_blocks as f64 / self.all_blocks.max(1) as f64
    }

    /// Share of the sessions that the largest group has.
    pub fn largest_group(&self) -> f64 {
        self.groups.iter().max().copied().unwrap_or(0) as f64 / self.sessions().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::{Synthesis, bundled};
    use super::*;

    type Band = (f64, f64);

    /// What 1,000 sessions must come to, whatever the seed: the figures of the reference with room for another source
    /// of random numbers. In order: rows; sessions; turns mean, p50, p95; initial mean, p50; new tokens mean, p50, p95;
    /// output mean, p50, p95, p99; delay in s mean, p50, p95; context mean, p50, p95; full contexts; utilisation; hit
    /// ratio by blocks, by request, of first, of later requests; largest group.
    const BUILTIN: [Band; 27] = [
        (19_500.0, 24_000.0),
        (1000.0, 1000.0),
        (19.8, 23.5),
        (19.0, 23.0),
        (41.0, 46.0),
        (61_000.0, 64_300.0),
        (56_900.0, 58_300.0),
        (3200.0, 3500.0),
        (1700.0, 1850.0),
        (10_900.0, 12_000.0),
        (475.0, 525.0),
        (285.0, 308.0),
        (1480.0, 1700.0),
        (2900.0, 3500.0),
        (7.0, 8.3),
        (1.42, 1.60),
        (33.0, 38.0),
        (112_000.0, 117_000.0),
        (106_000.0, 112_000.0),
        (185_000.0, 189_000.0),
        (0.29, 0.38),
        (0.68, 0.74),
        (0.955, 0.972),
        (0.95, 0.97),
        (0.83, 0.88),
        (0.955, 0.975),
        (0.26, 0.35),
    ];

    const AGENTIC_200K: [Band; 27] = [
        (11_500.0, 13_500.0),
        (1040.0, 1090.0),
        (10.9, 12.6),
        (10.0, 12.0),
        (24.0, 27.0),
        (50_000.0, 52_500.0),
        (46_300.0, 48_000.0),
        (5500.0, 6000.0),
        (3750.0, 4050.0),
        (16_000.0, 18_000.0),
        (960.0, 1030.0),
        (770.0, 825.0),
        (2250.0, 2500.0),
        (3500.0, 4100.0),
        (6.7, 8.1),
        (1.85, 2.15),
        (28.0, 33.0),
        (102_000.0, 107_000.0),
        (94_000.0, 101_000.0),
        (180_000.0, 186_000.0),
        (0.19, 0.28),
        (0.60, 0.67),
        (0.920, 0.945),
        (0.905, 0.94),
        (0.78, 0.87),
        (0.92, 0.945),
        (0.05, 0.10),
    ];

    fn figures(config: Config, seed: u64) -> [f64; 27] {
        let synthesis = Synthesis::new(config, 1000, seed).unwrap();
        let mut outcome = synthesis.write(&mut io::sink(), &mut |_| {}).unwrap().outcome;
        let (rows, sessions) = (outcome.rows() as f64, outcome.sessions() as f64);
        let full = outcome.ended(End::ForcedRetire) as f64 / sessions;
        let turns = outcome.turns.summary().unwrap();
        let initial = outcome.initial.summary().unwrap();
        let new = outcome.new_tokens.summary().unwrap();
        let output = outcome.output.summary().unwrap();
        let delay = outcome.delay.summary().unwrap();
        let context = outcome.context.summary().unwrap();
        let first = outcome.first_hit_ratio.summary().unwrap();
        let later = outcome.later_hit_ratio.summary().unwrap();
        let by_request = (first.mean * first.count as f64 + later.mean * later.count as f64) / rows;
        [
            rows,
            sessions,
            turns.mean,
            turns.median,
            turns.p95,
            initial.mean,
            initial.median,
            new.mean,
            new.median,
            new.p95,
            output.mean,
            output.median,
            output.p95,
            output.p99,
            delay.mean / 1000.0,
            delay.median / 1000.0,
            delay.p95 / 1000.0,
            context.mean,
            context.median,
            context.p95,
            full,
            outcome.utilization.summary().unwrap().mean,
            outcome.hit_ratio(),
            by_request,
            first.mean,
            later.mean,
            outcome.largest_group(),
        ]
    }

    #[test]
    fn a_thousand_sessions_have_the_statistics_of_the_reference() {
        for (config, bands) in
            [(Config::default(), BUILTIN), (bundled("agentic-200k").unwrap(), AGENTIC_200K)]
        {
            let figures = figures(config, 42);
            let outside: Vec<_> = figures
                .iter()
                .zip(bands)
                .enumerate()
                .filter(|(_, (figure, (low, high)))| !(*low..=*high).contains(*figure))
                .collect();
            assert!(outside.is_empty(), "outside: {outside:?}");
        }
    }

    #[test]
    fn the_bundled_default_has_its_statistics() {
        let synthesis = Synthesis::new(bundled("default").unwrap(), 1000, 42).unwrap();
        let mut outcome = synthesis.write(&mut io::sink(), &mut |_| {}).unwrap().outcome;
        let turns = outcome.turns.summary().unwrap();
        assert!((14.5..=17.0).contains(&turns.mean) && turns.median.round() >= 16.0, "{turns:?}");
        let output = outcome.output.summary().unwrap();
        assert!((output.mean - 1000.0).abs() < 1e-9 && output.std < 1e-9);
        let new = outcome.new_tokens.summary().unwrap();
        assert!((new.mean - 6600.0).abs() < 1e-9 && new.std < 1e-9);
        let initial = outcome.initial.summary().unwrap().mean;
        assert!((38_000.0..=40_500.0).contains(&initial), "{initial}");
        let full = outcome.ended(End::ForcedRetire) as f64 / 1000.0;
        assert!((0.74..=0.88).contains(&full), "{full}");
        assert!((0.91..=0.935).contains(&outcome.hit_ratio()), "{}", outcome.hit_ratio());
    }
}
