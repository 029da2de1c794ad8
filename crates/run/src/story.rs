//! What the log file tells of every run: what was settled, what was sent, how it ended. A dozen lines, written between
//! the phases and never while requests are in flight.

use std::path::Path;

use aiperf_config::{Arrival, DatasetSource, LoadMode, PhaseConfig, RunConfig, Target, TokenizerSource};
use aiperf_dataset::Dataset;
use aiperf_load::PhaseOutcome;
use aiperf_metrics::delivery::Verdict;
use aiperf_report::{Log, RunResults};

use crate::run::RunEnd;
use crate::usage::Threads;

/// Who runs what against whom.
pub(crate) fn settled(log: &Log, config: &RunConfig, version: &str, threads: Threads, cores: f64) {
    log.tell("run", &format!("aiperf {version}, benchmark {}: {}", config.benchmark_id, config.cli_command));
    let endpoint = &config.endpoint;
    let target = match &endpoint.target {
        Target::Server(url) => url.to_string(),
        Target::Mock(url) => url.clone(),
    };
    log.tell(
        "run",
        &format!(
            "{} of {} at {target}, {}, seed {}",
            endpoint.kind.name(),
            config.models.join(", "),
            if endpoint.streaming { "streaming" } else { "not streaming" },
            config.seed
        ),
    );
    log.tell(
        "run",
        &format!("{cores} cores: {} network and {} compute threads", threads.workers, threads.compute),
    );
}

/// What is sent, and who counts it.
pub(crate) fn data(log: &Log, config: &RunConfig, dataset: &dyn Dataset, token_source: &str) {
    let from = match (&config.dataset.public, &config.dataset.source) {
        (Some(public), _) => format!("public data set {}", public.name),
        (None, DatasetSource::File(file)) => format!("{} ({})", file.path.display(), file.format.name()),
        (None, _) => "generated".to_owned(),
    };
    let len = dataset.len();
    let more = if len.is_growing() { " so far" } else { "" };
    let prompts = match &config.tokenizer.source {
        TokenizerSource::Builtin => "builtin",
        TokenizerSource::Named(name) => name,
    };
    log.tell(
        "dataset",
        &format!(
            "{from}, {} conversations{more}; tokenizer {prompts}, tokens counted by {token_source}",
            len.known()
        ),
    );
}

/// A phase is about to begin.
pub(crate) fn begins(log: &Log, phase: &PhaseConfig) {
    let mode = match &phase.mode {
        LoadMode::Burst => "as fast as the slots allow".to_owned(),
        LoadMode::FixedSchedule(_) => "on its recorded schedule".to_owned(),
        LoadMode::Rate { rate, arrival } => {
            let arrival = match arrival {
                Arrival::Constant => "constant".to_owned(),
                Arrival::Poisson => "poisson".to_owned(),
                Arrival::Gamma(smoothness) => format!("gamma {smoothness}"),
            };
            format!("{rate} requests/s, {arrival}")
        }
    };
    let cap = phase.concurrency.map(|cap| format!(", concurrency {cap}"));
    let stop = &phase.stop;
    let limits = [
        stop.requests.map(|count| format!("{count} requests")),
        stop.sessions.map(|count| format!("{count} sessions")),
        stop.duration.map(|time| format!("{} s", time.as_secs_f64())),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    let until = if limits.is_empty() { "the data ends".to_owned() } else { limits.join(" or ") };
    log.tell(
        "load",
        &format!("{} begins: {mode}{}, until {until}", phase.kind.name(), cap.unwrap_or_default()),
    );
}

/// A phase is over.
pub(crate) fn ended(log: &Log, phase: &PhaseConfig, outcome: &PhaseOutcome) {
    let (counts, tally) = (&outcome.counts, &outcome.tally);
    let lasted = outcome.end.saturating_since(outcome.t0) as f64 / 1e9;
    log.tell(
        "load",
        &format!(
            "{} ended after {lasted:.3} s: {} sent, {} back, {} cut off, {} let pass by a cap, {} unsent, at most {} at once",
            phase.kind.name(),
            tally.sent,
            counts.returned,
            counts.cut,
            counts.skipped,
            counts.unsent,
            counts.max_in_flight
        ),
    );
}

/// The figures are made and the files are written.
pub(crate) fn over(log: &Log, results: &RunResults<'_>, end: RunEnd) {
    if let Some(profiling) = results.profiling() {
        let summary = &profiling.summary;
        log.tell("records", &format!("{} valid, {} failed", summary.valid_count, summary.failed_count));
        if let Some(delivery) = &profiling.load_delivery {
            let verdict = match delivery.verdict {
                Verdict::Valid => "valid",
                Verdict::Suspect => "suspect",
            };
            let reasons: Vec<&str> = delivery.reasons.iter().map(|reason| reason.code).collect();
            let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
            log.tell("verdict", &format!("load delivery {verdict}{why}"));
        }
    }
    let names: Vec<&str> = results
        .written
        .iter()
        .filter_map(|file| file.path.file_name().and_then(|name| name.to_str()))
        .collect();
    let folder: &Path = &results.config.output.dir;
    log.tell("files", &format!("{} in {}", names.join(", "), folder.display()));
    let reason = results.incomplete_reason.as_ref().map(|reason| format!(" ({reason})"));
    log.tell(
        "run",
        &format!(
            "{}{}",
            match end {
                RunEnd::Good | RunEnd::Suspect => "done",
                RunEnd::Failed => "failed",
            },
            reason.unwrap_or_default()
        ),
    );
}
