//! How long generated texts are, and the answers to them.

use aiperf_config::{LengthPairs, LengthRange, Lengths, Normal, RandomStyle};
use serde_json::Value;

use super::Note;
use crate::typed::Typed;
use crate::usage::UsageError;

/// Input tokens where nobody says how many.
pub(super) const DEFAULT_ISL: f64 = 550.0;

const PAIRS: &str = "--seq-dist";
const RATIO: &str = "--random-range-ratio";
const STYLE: &str = "--random-corpus-style";
const ISL: &str = "--isl";
const OSL: &str = "--osl";
const STDDEVS: [&str; 2] = ["--isl-stddev", "--osl-stddev"];

/// Whether output limits come with input lengths, so that `--osl` is none for itself.
pub(super) fn has_outputs(typed: &Typed) -> bool {
    typed.has(PAIRS) || typed.has(RATIO)
}

pub(super) fn settle(typed: &Typed, notes: &mut Vec<Note>) -> Result<(Lengths, RandomStyle), UsageError> {
    let style = match typed.text(STYLE) {
        Some("sglang") => RandomStyle::Sglang,
        _ => RandomStyle::Vllm,
    };
    if typed.has(STYLE) && !typed.has(RATIO) && typed.text("--prompt-corpus") != Some("random") {
        notes.push(Note::warning(format!(
            "{STYLE} changes nothing without --prompt-corpus random or {RATIO}"
        )));
    }
    let lengths = match (typed.text(PAIRS), typed.text(RATIO)) {
        (Some(_), Some(_)) => {
            return Err(UsageError::combination(
                format!("{} and {RATIO} exclude each other: both are lengths", typed.name(PAIRS)),
                "keep one of them",
            ));
        }
        (Some(pairs), None) => Lengths::Pairs(self::pairs(typed, pairs, notes)?),
        (None, Some(ratio)) => Lengths::Range(range(typed, ratio, style)?),
        (None, None) => Lengths::Normal(isl(typed)),
    };
    Ok((lengths, style))
}

fn isl(typed: &Typed) -> Normal {
    let mean = typed.number(ISL).unwrap_or(DEFAULT_ISL);
    Normal { mean, stddev: typed.number("--isl-stddev").unwrap_or(0.0) }
}

/// Whether `--isl 0` asks for turns without text; where lengths come in pairs or as a range it says nothing of its own.
pub(super) fn is_none(typed: &Typed) -> bool {
    !has_outputs(typed) && typed.number(ISL).is_some_and(|mean| mean <= 0.0)
}

fn pairs(typed: &Typed, text: &str, notes: &mut Vec<Note>) -> Result<LengthPairs, UsageError> {
    let name = typed.name(PAIRS);
    for flag in [ISL, OSL].into_iter().chain(STDDEVS) {
        if typed.has(flag) {
            notes.push(Note::warning(format!(
                "{} changes nothing: the lengths are those of {name}",
                typed.name(flag)
            )));
        }
    }
    LengthPairs::parse(text).map_err(|error| {
        UsageError::combination(
            format!("{name} {error}"),
            "write ISL[|STDDEV],OSL[|STDDEV]:PERCENT;… as in '256|10,128|5:40;512,256:60', shares adding up to 100",
        )
    })
}

fn range(typed: &Typed, text: &str, style: RandomStyle) -> Result<LengthRange, UsageError> {
    for flag in STDDEVS {
        if typed.has(flag) {
            return Err(UsageError::combination(
                format!(
                    "{RATIO} and {} exclude each other: both say how far lengths spread",
                    typed.name(flag)
                ),
                "keep one of them",
            ));
        }
    }
    let center = |flag: &'static str| match typed.number(flag) {
        None => Err(UsageError::combination(
            format!("{RATIO} needs {flag}: it spreads lengths around --isl and --osl"),
            format!("add {flag} TOKENS, or drop {RATIO}"),
        )),
        Some(tokens) if tokens < 1.0 || tokens.fract() != 0.0 => Err(UsageError::combination(
            format!("{} {tokens} is not a whole number of 1 or more, which {RATIO} needs", typed.name(flag)),
            "give another length",
        )),
        Some(tokens) => Ok(tokens as u64),
    };
    let (input, output) = (center(ISL)?, center(OSL)?);
    let (input_ratio, output_ratio) = ratios(text, style).map_err(|rule| UsageError::Value {
        flag: RATIO.into(),
        value: text.into(),
        rule,
        similar: None,
    })?;
    Ok(LengthRange { input, output, input_ratio, output_ratio })
}

/// One ratio for both, or one for each. The error is the rule.
fn ratios(text: &str, style: RandomStyle) -> Result<(f64, f64), String> {
    let both = text.trim_start().starts_with('{');
    let (rule, fits): (&str, fn(f64) -> bool) = match style {
        RandomStyle::Vllm => {
            ("a ratio from 0 up to but not including 1, or {\"input\":RATIO,\"output\":RATIO}", |ratio| {
                (0.0..1.0).contains(&ratio)
            })
        }
        RandomStyle::Sglang if both => return Err("one ratio with --random-corpus-style sglang".into()),
        RandomStyle::Sglang => ("a ratio from 0 to 1", |ratio| (0.0..=1.0).contains(&ratio)),
    };
    let read = || {
        if !both {
            let ratio: f64 = text.trim().parse().ok()?;
            return fits(ratio).then_some((ratio, ratio));
        }
        let Ok(Value::Object(members)) = serde_json::from_str(text) else { return None };
        let ratio = |key: &str| members.get(key)?.as_f64().filter(|ratio| fits(*ratio));
        (members.len() == 2).then_some((ratio("input")?, ratio("output")?))
    };
    read().ok_or_else(|| rule.to_owned())
}
