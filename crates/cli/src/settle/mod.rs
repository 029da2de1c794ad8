//! From what was typed to what it means. Everything that can be wrong with a command line is found here, before any
//! task, file or socket exists.

mod agents;
mod dataset;
mod endpoint;
mod idle;
mod input_config;
mod lengths;
mod media;
mod output;
mod overridden;
mod overwritten;
pub(crate) mod pairs;
mod phases;
mod probe;
mod public;
mod rankings;
mod replay;
mod runtime;
mod schedule;
mod sizes;
mod synthesis;
mod synthetic;
mod tokenizer;
mod unreached;

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use aiperf_config::{DatasetConfig, DatasetSource, RunConfig};
use aiperf_types::PhaseKind;

pub use probe::{Access, DatasetProbe, Files, Found, Timing};
pub(crate) use public::{filters, repository};

use crate::environment::Environment;
use crate::flags::Later;
use crate::typed::Typed;
use crate::usage::UsageError;

/// Something worth saying about a command line that is usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Whether something was changed or left out; else it is a fact.
    pub warning: bool,
    /// One line.
    pub text: String,
}

impl Note {
    pub(crate) fn info(text: impl Into<String>) -> Note {
        Note { warning: false, text: text.into() }
    }

    pub(crate) fn warning(text: impl Into<String>) -> Note {
        Note { warning: true, text: text.into() }
    }
}

/// A command line, settled.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The run.
    pub config: RunConfig,
    /// What the user should know.
    pub notes: Vec<Note>,
}

/// Settles a command line.
pub fn settle(
    typed: &Typed,
    environment: &Environment,
    probe: &dyn DatasetProbe,
) -> Result<Settled, UsageError> {
    let mut notes = Vec::new();
    for (name, similar) in environment.unknown() {
        let tip = similar.map(|similar| format!("; did you mean {similar}?")).unwrap_or_default();
        notes.push(Note::warning(format!("{name} is set, and nothing here reads it{tip}")));
    }
    let tuning = environment.tuning()?;
    let model = model(typed)?;
    let endpoint = endpoint::settle(typed, &mut notes)?;
    let seed = typed.count("--random-seed");
    let (dataset, schedule) = dataset::settle(typed, &endpoint, &tuning, probe, &mut notes)?;
    let plays_once = match &dataset.source {
        DatasetSource::File(file) => aiperf_dataset::format(file.format).sessions_by_default,
        DatasetSource::Synthetic(_) | DatasetSource::Stored(_) => false,
    };
    let mut phases = phases::settle(typed, schedule, idle_gap_cap(&dataset), plays_once)?;
    if schedule.is_some() && matches!(dataset.source, DatasetSource::Stored(_)) {
        // They count recorded sessions, of which every call is sent.
        let measured = phases.iter_mut().filter(|phase| phase.kind == PhaseKind::Profiling);
        measured.for_each(|phase| phase.stop.sessions = None);
    }
    if let Some(target) = dataset.cache_bust
        && target.is_warmup_isolation()
        && phases.len() == 1
    {
        notes.push(Note::warning(format!(
            "--cache-bust {} changes nothing: it marks warmup, and there is none",
            target.name()
        )));
    }
    let output = output::settle(typed, environment, &model, &endpoint, &phases)?;
    overwritten::refuse(typed, &dataset, &output)?;
    let tokenizer = tokenizer::settle(typed, &model, &endpoint, &mut notes)?;
    let runtime = runtime::settle(typed, environment)?;
    let mut config = RunConfig {
        benchmark_id: format!("{:012x}", entropy() >> 16),
        seed: seed.unwrap_or_else(drawn_seed),
        seed_given: seed.is_some(),
        models: vec![model],
        endpoint,
        dataset,
        tokenizer,
        phases,
        failed_request_threshold: typed.number("--failed-request-threshold"),
        network_latency_mean_ms: typed.number("--network-latency-mean"),
        output,
        runtime,
        tuning,
        strict_load: typed.is_on("--strict-load"),
        cli_command: typed.command_line(),
        remote: None,
        input_config: serde_json::Value::Null,
    };
    config.input_config = input_config::build(typed, &config);
    notes.extend(idle::notes(typed, &config));
    notes.extend(overridden::notes(typed, &config));
    notes.extend(unreached::notes(typed, &config));
    Ok(Settled { config, notes })
}

/// Longest time in which a replay idles.
fn idle_gap_cap(dataset: &DatasetConfig) -> Option<Duration> {
    match &dataset.source {
        DatasetSource::File(file) => file.replay.idle_gap_cap,
        DatasetSource::Synthetic(_) | DatasetSource::Stored(_) => None,
    }
}

/// 64 bits that the operating system drew: the standard library keys its hash maps with them.
fn entropy() -> u64 {
    RandomState::new().hash_one(())
}

/// A seed of 53 bits: whoever reads the results with numbers that are floats (`jq`, JavaScript) reads the same one.
fn drawn_seed() -> u64 {
    entropy() >> 11
}

fn model(typed: &Typed) -> Result<String, UsageError> {
    let names: Vec<&str> = typed.texts("--model").flat_map(|text| text.split(',')).map(str::trim).collect();
    match names[..] {
        [] | [""] => Err(UsageError::combination(
            "--model is missing: the name of the model to ask for",
            "add --model NAME, with the name as the server spells it",
        )),
        _ if names.contains(&"") => Err(UsageError::combination(
            format!("{}: one of the {} names is empty", typed.name("--model"), names.len()),
            "drop it, or give the name as the server spells it",
        )),
        [model] => Ok(model.to_owned()),
        _ => Err(UsageError::ValueNotYet {
            flag: typed.name("--model").into(),
            value: format!("with several models ({})", names.join(", ")),
            what: Later::MoreEndpoints.phrase().into(),
        }),
    }
}

/// Refuses flags that act only together with something that was not given.
fn refuse_all(typed: &Typed, flags: &[&str], needs: &str, fix: &str) -> Result<(), UsageError> {
    match flags.iter().find(|flag| typed.has(flag)) {
        Some(flag) => Err(UsageError::combination(format!("{} {needs}", typed.name(flag)), fix)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_seed_is_the_same_number_as_a_float() {
        let seeds: Vec<u64> = (0..1000).map(|_| drawn_seed()).collect();
        assert!(seeds.iter().all(|seed| *seed < 1 << 53));
        assert!(seeds.iter().any(|seed| *seed >= 1 << 51), "its upper bits are drawn, too");
    }
}
