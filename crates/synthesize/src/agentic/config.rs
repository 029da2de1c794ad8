//! What the sessions are like.

use serde_json::{Value, json};

use crate::LogNormal;

/// What the sessions are like. Lengths are in tokens, delays in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Tokens that a turn after the first adds.
    pub new_tokens: LogNormal,
    /// Factor on those.
    pub new_tokens_bias: f64,
    /// Tokens of an answer.
    pub generation: LogNormal,
    /// Pauses before a turn.
    pub delays: Delays,
    /// Sessions end by chance; never together with `turns`.
    pub reset: Option<Reset>,
    /// Sessions end after a number of turns.
    pub turns: Option<Turns>,
    /// No context reaches so many tokens.
    pub max_prompt_tokens: u64,
    /// Tokens of a block.
    pub block_size: u32,
    /// What prompts share.
    pub cache: CacheLayers,
    /// Chance that the first session is split by a restart; falls to 0 over the first three quarters of the sessions.
    pub restart_initial_probability: f64,
    /// A split comes after so many turns: from the first, below the second.
    pub restart_turns: (u64, u64),
}

/// Pauses before a turn, ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delays {
    /// Chance of a fast pause.
    pub agentic_fraction: f64,
    /// Fast pauses: a tool ran.
    pub agentic: LogNormal,
    /// Slow pauses: a person thought.
    pub human: LogNormal,
    /// No pause is longer.
    pub max: Option<f64>,
}

/// Sessions end by chance: before each turn with probability base · (1 + (scaling − 1) · context / limit).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reset {
    /// The chance with an empty context.
    pub base_probability: f64,
    /// How many times as likely it is with a full one.
    pub context_scaling: f64,
}

/// Sessions end after a number of turns, which is drawn once for each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turns {
    /// Mean number.
    pub mean: f64,
    /// Median number.
    pub median: f64,
    /// At least so many.
    pub min: u64,
    /// At most so many.
    pub max: u64,
    /// A session that fills the context early ends there; otherwise it is made again.
    pub allow_truncation: bool,
    /// So often.
    pub max_session_attempts: u32,
}

/// What prompts share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheLayers {
    /// Tools and system prompt, in all sessions.
    pub layer1_tokens: u64,
    /// Context of a repository, in all sessions of a group.
    pub layer1_5_tokens: u64,
    /// What a session starts with.
    pub layer2: LogNormal,
    /// How many groups there are.
    pub groups: u32,
    /// Group k, counted from 1, is chosen with weight k^−α.
    pub zipf_alpha: f64,
}

/// The bundled configurations: name, aliases, what it is.
pub const BUNDLED: [(&str, &[&str], &str); 2] = [
    ("default", &[], "the reference's bundled configuration of that name"),
    ("agentic-200k", &["1k_sessions_200k_ctx"], "the published shape of 1,000 sessions in 200k tokens"),
];

/// The bundled configuration of that name.
pub fn bundled(name: &str) -> Option<Config> {
    let (known, ..) = BUNDLED.iter().find(|(known, aliases, _)| *known == name || aliases.contains(&name))?;
    let builtin = Config::default();
    Some(match *known {
        "default" => Config {
            new_tokens: LogNormal::new(6000.0, 6000.0).at_most(10_000.0),
            new_tokens_bias: 1.1,
            generation: LogNormal::new(1000.0, 1000.0).at_most(1500.0),
            delays: Delays {
                agentic: LogNormal::new(2500.0, 1800.0).at_most(10_000.0),
                human: LogNormal::new(40_000.0, 25_000.0).at_most(120_000.0),
                ..builtin.delays
            },
            reset: Some(Reset { base_probability: 0.01, context_scaling: 1.5 }),
            max_prompt_tokens: 167_000,
            cache: CacheLayers {
                layer1_5_tokens: 0,
                layer2: LogNormal::new(15_000.0, 5000.0).at_most(30_000.0),
                groups: 1,
                zipf_alpha: 0.6,
                ..builtin.cache
            },
            ..builtin
        },
        _ => Config {
            new_tokens: LogNormal::new(6000.0, 4000.0).at_most(50_000.0),
            generation: LogNormal::new(1000.0, 800.0).at_most(10_000.0),
            delays: Delays {
                agentic: LogNormal::new(5000.0, 2000.0),
                human: LogNormal::new(30_000.0, 15_000.0),
                ..builtin.delays
            },
            reset: Some(Reset { base_probability: 0.05, context_scaling: 1.5 }),
            cache: CacheLayers {
                layer1_5_tokens: 10_000,
                layer2: LogNormal::new(15_000.0, 5000.0).at_most(50_000.0),
                groups: 100,
                zipf_alpha: 0.6,
                ..builtin.cache
            },
            restart_initial_probability: 0.3,
            ..builtin
        },
    })
}

impl Default for Config {
    /// The built-in configuration.
    fn default() -> Config {
        Config {
            new_tokens: LogNormal::new(3500.0, 1800.0),
            new_tokens_bias: 1.0,
            generation: LogNormal::new(500.0, 300.0),
            delays: Delays {
                agentic_fraction: 0.7,
                agentic: LogNormal::new(2500.0, 1800.0),
                human: LogNormal::new(40_000.0, 25_000.0),
                max: None,
            },
            reset: Some(Reset { base_probability: 0.02, context_scaling: 2.0 }),
            turns: None,
            max_prompt_tokens: 200_000,
            block_size: 512,
            cache: CacheLayers {
                layer1_tokens: 32_000,
                layer1_5_tokens: 20_000,
                layer2: LogNormal::new(10_000.0, 5000.0),
                groups: 50,
                zipf_alpha: 1.2,
            },
            restart_initial_probability: 0.0,
            restart_turns: (5, 15),
        }
    }
}

impl Config {
    /// Blocks that all sessions begin with.
    pub fn layer1_blocks(&self) -> u64 {
        self.cache.layer1_tokens.div_ceil(u64::from(self.block_size))
    }

    /// Blocks that the sessions of a group have after those.
    pub fn layer1_5_blocks(&self) -> u64 {
        self.cache.layer1_5_tokens.div_ceil(u64::from(self.block_size))
    }

    /// Tokens of the blocks that a session shares with others.
    pub fn shared_tokens(&self) -> u64 {
        (self.layer1_blocks() + self.layer1_5_blocks()) * u64::from(self.block_size)
    }

    /// The shortest answer: 30 tokens, or the configured maximum when that is less.
    pub fn shortest_answer(&self) -> u64 {
        self.generation.max.map_or(30, |max| (max.floor() as u64).clamp(1, 30))
    }

    /// The rule that is broken, if one is. What a single value may be is checked where it is read.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let limit = self.max_prompt_tokens;
        let shared = self.shared_tokens();
        if limit <= shared + 1 {
            return Some(format!(
                "max_prompt_tokens is {limit}, and the shared layers alone take {shared} tokens (whole blocks of {}); \
                 raise it (--max-isl), or lower cache.layer1_tokens or cache.layer1_5_tokens",
                self.block_size
            ));
        }
        let start = shared + self.cache.layer2.min.map_or(1, |min| min.ceil() as u64).max(1);
        if start >= limit {
            return Some(format!(
                "no session fits: the smallest initial context has {start} tokens and max_prompt_tokens is {limit}; \
                 raise max_prompt_tokens (--max-isl), or lower cache.layer2.min"
            ));
        }
        if self.restart_turns.0 >= self.restart_turns.1 {
            return Some(format!(
                "restart_turn_range must rise, and is [{}, {}]",
                self.restart_turns.0, self.restart_turns.1
            ));
        }
        let Some(turns) = &self.turns else { return None };
        if self.reset.is_some() {
            return Some(
                "`turns` and `reset` exclude each other; set `reset` to null, or leave `turns` out".into(),
            );
        }
        if self.restart_initial_probability > 0.0 {
            return Some(
                "`turns` excludes restarts; set restart_initial_probability to 0, or leave `turns` out"
                    .into(),
            );
        }
        let (min, max) = (turns.min as f64, turns.max as f64);
        if !(min <= turns.median && turns.median <= turns.mean && turns.mean <= max) {
            return Some(format!(
                "turns must have min ≤ median ≤ mean ≤ max, and has {min}, {}, {}, {max}",
                turns.median, turns.mean
            ));
        }
        let answer = self.generation.min.map_or(0, |min| min.ceil() as u64).max(self.shortest_answer());
        let added = self.new_tokens.min.map_or(1, |min| min.ceil() as u64).max(1);
        let last = start.saturating_add((turns.min - 1).saturating_mul(answer + added));
        (last >= limit).then(|| {
            format!(
                "{} turns do not fit: they end with at least {last} tokens and max_prompt_tokens is {limit}; lower \
                 turns.min, or raise max_prompt_tokens (--max-isl)",
                turns.min
            )
        })
    }

    /// The configuration as the manifest records it: complete, and readable again.
    pub fn to_json(&self) -> Value {
        let number = |value: Option<f64>| value.map_or(Value::Null, Value::from);
        let lognormal = |it: &LogNormal| {
            json!({
                "mu": it.mu, "sigma": it.sigma, "mean": it.mean, "median": it.median,
                "min": number(it.min), "max": number(it.max),
            })
        };
        let mut new_tokens = lognormal(&self.new_tokens);
        new_tokens["bias"] = self.new_tokens_bias.into();
        json!({
            "new_tokens_per_turn": new_tokens,
            "generation_length": lognormal(&self.generation),
            "inter_turn_delay": {
                "agentic_fraction": self.delays.agentic_fraction,
                "agentic_delay": lognormal(&self.delays.agentic),
                "human_delay": lognormal(&self.delays.human),
                "max": number(self.delays.max),
            },
            "reset": self.reset.map(|reset| json!({
                "base_probability": reset.base_probability,
                "context_scaling": reset.context_scaling,
            })),
            "turns": self.turns.map(|turns| json!({
                "mean": turns.mean, "median": turns.median, "min": turns.min, "max": turns.max,
                "allow_truncation": turns.allow_truncation,
                "max_session_attempts": turns.max_session_attempts,
            })),
            "max_prompt_tokens": self.max_prompt_tokens,
            "block_size": self.block_size,
            "cache": {
                "layer1_tokens": self.cache.layer1_tokens,
                "layer1_5_tokens": self.cache.layer1_5_tokens,
                "layer2": lognormal(&self.cache.layer2),
                "layer1_5_groups": {"num_groups": self.cache.groups, "zipf_alpha": self.cache.zipf_alpha},
            },
            "restart_initial_probability": self.restart_initial_probability,
            "restart_turn_range": [self.restart_turns.0, self.restart_turns.1],
        })
    }
}
