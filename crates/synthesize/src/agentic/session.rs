//! One session: how its context grows, and how it ends.

use aiperf_tokenize::seed::{Rng, below, unit};

use super::Config;
use crate::draw::tokens;
use crate::{LogNormal, Zipf};

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Tokens of the whole context.
    pub context: u64,
    /// Tokens that this turn added to it.
    pub new: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Pause before it, ms; 0 for the first. One decimal.
    pub delay_ms: f64,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The context was full.
    ForcedRetire,
    /// By chance.
    ProbabilisticReset,
    /// It had its number of turns.
    TargetTurnCount,
    /// It was cut off, and another session takes it up again.
    RestartSplit,
}

impl End {
    /// Every reason.
    pub const ALL: [End; 4] =
        [End::ForcedRetire, End::ProbabilisticReset, End::TargetTurnCount, End::RestartSplit];
}

/// One session.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// 48 bits, unique in the trace.
    pub id: u64,
    /// The group whose repository it works on.
    pub group: u32,
    /// It takes up a session that was cut off.
    pub is_restart: bool,
    /// Its requests; at least one.
    pub turns: Vec<Turn>,
    /// Why it ended.
    pub end: End,
}

/// A session outgrew the limit on every attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

/// Draws sessions.
pub(crate) struct Model<'a> {
    config: &'a Config,
    groups: Zipf,
    turns: Option<LogNormal>,
}

/// When the turns of a session end.
#[derive(Clone, Copy)]
enum Until {
    Chance,
    Turns(u64),
}

impl<'a> Model<'a> {
    pub(crate) fn new(config: &'a Config) -> Model<'a> {
        let turns = config.turns.map(|turns| LogNormal {
            min: Some(turns.min as f64),
            max: Some(turns.max as f64),
            ..LogNormal::new(turns.mean, turns.median)
        });
        Model { config, groups: Zipf::new(config.cache.groups, config.cache.zipf_alpha), turns }
    }

    /// Group and turns of a session that starts from nothing.
    pub(crate) fn primary(&self, stream: &mut impl Rng) -> Result<(u32, Vec<Turn>, End), Overflow> {
        let group = self.groups.draw(stream);
        let Some(rule) = &self.config.turns else {
            let start = self.start(stream);
            let (turns, end) = self.grow(start, Until::Chance, stream);
            return Ok((group, turns, end));
        };
        let target = self.turns.map_or(1, |turns| tokens(turns.draw(stream), 1));
        for _ in 0..rule.max_session_attempts {
            let start = self.start(stream);
            let (turns, end) = self.grow(start, Until::Turns(target), stream);
            if end == End::TargetTurnCount || rule.allow_truncation {
                return Ok((group, turns, end));
            }
        }
        Err(Overflow)
    }

    /// After how many turns a session that is to be cut off is.
    pub(crate) fn split_after(&self, stream: &mut impl Rng) -> u64 {
        let (from, to) = self.config.restart_turns;
        from + below(stream, to - from)
    }

    /// The turns of a session that starts with `context` tokens.
    pub(crate) fn resume(&self, context: u64, stream: &mut impl Rng) -> (Vec<Turn>, End) {
        self.grow(context.min(self.config.max_prompt_tokens - 1), Until::Chance, stream)
    }

    fn start(&self, stream: &mut impl Rng) -> u64 {
        let own = tokens(self.config.cache.layer2.draw(stream), 1);
        (self.config.shared_tokens() + own).min(self.config.max_prompt_tokens - 1)
    }

    fn output(&self, stream: &mut impl Rng) -> u64 {
        tokens(self.config.generation.draw(stream), self.config.shortest_answer())
    }

    fn delay(&self, context_before: u64, stream: &mut impl Rng) -> f64 {
        let delays = &self.config.delays;
        let fast = unit(stream) < delays.agentic_fraction;
        let drawn = if fast { delays.agentic } else { delays.human }.draw(stream);
        let full = context_before as f64 / self.config.max_prompt_tokens as f64;
        let delay = drawn.min(delays.max.unwrap_or(f64::INFINITY)) * (1.0 - 0.8 * full).max(0.2);
        (delay * 10.0).round() / 10.0
    }

    fn grow(&self, start: u64, until: Until, stream: &mut impl Rng) -> (Vec<Turn>, End) {
        let limit = self.config.max_prompt_tokens;
        let mut last = Turn { context: start, new: start, output: self.output(stream), delay_ms: 0.0 };
        let mut turns = vec![last];
        loop {
            if let Until::Turns(target) = until
                && turns.len() as u64 >= target
            {
                return (turns, End::TargetTurnCount);
            }
            let new = tokens(self.config.new_tokens.draw_times(self.config.new_tokens_bias, stream), 1);
            let context = last.context.saturating_add(last.output).saturating_add(new);
            if context >= limit {
                return (turns, End::ForcedRetire);
            }
            if let (Until::Chance, Some(reset)) = (until, &self.config.reset) {
                let full = context as f64 / limit as f64;
                let chance = reset.base_probability * (1.0 + (reset.context_scaling - 1.0) * full);
                if unit(stream) < chance {
                    return (turns, End::ProbabilisticReset);
                }
            }
            let delay_ms = self.delay(last.context, stream);
            last = Turn { context, new, output: self.output(stream), delay_ms };
            turns.push(last);
        }
    }
}
