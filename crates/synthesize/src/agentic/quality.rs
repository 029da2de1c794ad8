//! How near the outcome came to the configuration, as figures.

use serde_json::{Map, Value, json};

use super::{Config, End, Outcome};
use crate::Summary;

/// A figure with two decimals.
pub(super) fn two(value: f64) -> Value {
    json!((value * 100.0).round() / 100.0)
}

/// The mean and the median that first contexts aim at.
pub(super) fn initial_target(config: &Config) -> (f64, f64) {
    let shared = config.shared_tokens() as f64;
    (shared + config.cache.layer2.mean, shared + config.cache.layer2.median)
}

fn summary(of: Option<Summary>) -> Value {
    of.map_or(Value::Null, |of| {
        json!({
            "count": of.count, "mean": two(of.mean), "std": two(of.std), "median": two(of.median),
            "p05": two(of.p05), "p25": two(of.p25), "p75": two(of.p75), "p95": two(of.p95), "p99": two(of.p99),
        })
    })
}

fn against(target: Option<(f64, f64)>, observed: Option<Summary>) -> Value {
    let error = |target: Option<f64>, found: Option<f64>| match (target, found) {
        (Some(target), Some(found)) => two(((found - target) / target * 100.0).abs()),
        _ => Value::Null,
    };
    let (mean, median) = (target.map(|target| target.0), target.map(|target| target.1));
    json!({
        "target_mean": mean,
        "target_median": median,
        "observed": summary(observed),
        "pct_error_mean": error(mean, observed.map(|of| of.mean)),
        "pct_error_median": error(median, observed.map(|of| of.median)),
    })
}

/// The configuration as flat numbers.
fn config_summary(config: &Config) -> Value {
    let (initial_mean, initial_median) = initial_target(config);
    let mut flat = Map::new();
    let mut put = |key: &str, value: Value| {
        flat.insert(key.to_owned(), value);
    };
    put("initial_context_mean", json!(initial_mean));
    put("initial_context_median", json!(initial_median));
    put("layer1_tokens", json!(config.cache.layer1_tokens));
    put("layer1_5_tokens", json!(config.cache.layer1_5_tokens));
    put("layer2_mean", json!(config.cache.layer2.mean));
    put("layer2_median", json!(config.cache.layer2.median));
    put("num_groups", json!(config.cache.groups));
    put("zipf_alpha", json!(config.cache.zipf_alpha));
    put("new_tokens_per_turn_mean", json!(config.new_tokens.mean));
    put("new_tokens_per_turn_median", json!(config.new_tokens.median));
    put("generation_length_mean", json!(config.generation.mean));
    put("generation_length_median", json!(config.generation.median));
    put("max_prompt_tokens", json!(config.max_prompt_tokens));
    put("block_size", json!(config.block_size));
    put("inter_turn_delay_agentic_fraction", json!(config.delays.agentic_fraction));
    put("inter_turn_delay_agentic_mean_ms", json!(config.delays.agentic.mean));
    put("inter_turn_delay_human_mean_ms", json!(config.delays.human.mean));
    put("turn_mode_enabled", json!(u8::from(config.turns.is_some())));
    if let Some(reset) = &config.reset {
        put("reset_base_probability", json!(reset.base_probability));
        put("reset_context_scaling", json!(reset.context_scaling));
    }
    if let Some(turns) = &config.turns {
        put("turns_mean", json!(turns.mean));
        put("turns_median", json!(turns.median));
        put("turns_min", json!(turns.min));
        put("turns_max", json!(turns.max));
        put("turns_allow_truncation", json!(u8::from(turns.allow_truncation)));
        put("turns_max_session_attempts", json!(turns.max_session_attempts));
    }
    Value::Object(flat)
}

/// `quality.json`: what was asked for beside what came out, how sessions ended, and what a cache gains.
pub fn quality(config: &Config, outcome: &mut Outcome) -> Value {
    let turns = outcome.turns.summary();
    let sessions = outcome.sessions();
    let fraction = |end: End| two(outcome.ended(end) as f64 / sessions.max(1) as f64);
    let ends = json!({
        "total_sessions": sessions,
        "forced_retires": outcome.ended(End::ForcedRetire),
        "probabilistic_resets": outcome.ended(End::ProbabilisticReset),
        "target_turn_completions": outcome.ended(End::TargetTurnCount),
        "restart_splits": outcome.ended(End::RestartSplit),
        "retire_fraction": fraction(End::ForcedRetire),
        "reset_fraction": fraction(End::ProbabilisticReset),
        "target_turn_fraction": fraction(End::TargetTurnCount),
        "restart_split_fraction": fraction(End::RestartSplit),
        "final_context_utilization": summary(outcome.utilization.summary()),
    });
    let pair = |it: &crate::LogNormal| (it.mean, it.median);
    let ratio = |value: f64| json!((value * 10_000.0).round() / 10_000.0);
    let mean_of = |of: Option<Summary>| of.map_or(Value::Null, |of| ratio(of.mean));
    json!({
        "config_summary": config_summary(config),
        "observed_vs_target": {
            "initial_context": against(Some(initial_target(config)), outcome.initial.summary()),
            "generation_length": against(Some(pair(&config.generation)), outcome.output.summary()),
            "new_tokens_per_turn": against(Some(pair(&config.new_tokens)), outcome.new_tokens.summary()),
            "inter_turn_delay_ms": against(None, outcome.delay.summary()),
            "turns_per_session": against(config.turns.map(|turns| (turns.mean, turns.median)), turns),
        },
        "session_stats": summary(turns),
        "session_end_stats": ends,
        "cache_stats": {
            "hit_ratio": ratio(outcome.hit_ratio()),
            "hit_ratio_first_turn": mean_of(outcome.first_hit_ratio.summary()),
            "hit_ratio_later_turns": mean_of(outcome.later_hit_ratio.summary()),
            "largest_group_share": ratio(outcome.largest_group()),
        },
    })
}
