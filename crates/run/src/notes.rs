//! What is worth saying around a run and stands in no table.

mod ending;
mod failures;
mod schedule;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use aiperf_config::{
    DatasetSource, FileFormat, LoadMode, PhaseConfig, RunConfig, Sampling, StopRule, secrets_of_extra,
};
use aiperf_dataset::{Dataset, Note, NoteLevel};
use aiperf_metrics::{Metric, Summary};
use aiperf_report::{FileNames, Level, Log, PhaseResults, WrittenFile, other_runs as other_runs_of};
use aiperf_types::RequestRecord;
use serde_json::{Map, Value};

pub(crate) use ending::{interrupted_early, no_success, slowest_missing, too_few_to_judge, too_many_failed};
pub(crate) use failures::Asked;
pub(crate) use schedule::{moved_up, skipped};

/// Things that are said once, however often they are seen.
#[derive(Debug, Default)]
pub(crate) struct Once {
    compressed: AtomicBool,
    bad_spec_decode: AtomicBool,
    compared: AtomicBool,
    more_reasoning: AtomicBool,
    first_event: AtomicBool,
}

impl Once {
    /// Answers came compressed although nobody asked for it.
    pub(crate) fn compressed(&self, log: &Log) {
        if !self.compressed.swap(true, Ordering::Relaxed) {
            log.warning("answers", "the server compresses answers it was not asked to compress; they are decoded after their time is taken");
        }
    }

    /// Speculative decoding statistics contradict themselves.
    pub(crate) fn bad_spec_decode(&self, log: &Log) {
        if !self.bad_spec_decode.swap(true, Ordering::Relaxed) {
            log.warning(
                "answers",
                "speculative decoding statistics that contradict themselves were left out",
            );
        }
    }

    /// A usage counts more reasoning than it counts completion tokens in all.
    pub(crate) fn more_reasoning_than_output(&self, log: &Log) {
        if !self.more_reasoning.swap(true, Ordering::Relaxed) {
            log.warning(
                "tokens",
                "the server reports more reasoning tokens than completion tokens: the rest, which is the output, is taken \
                 as 0; drop --use-server-token-count to count with a tokenizer",
            );
        }
    }

    /// The first event of an answer does not say how many tokens it holds.
    pub(crate) fn first_event_unknown(&self, log: &Log) {
        if !self.first_event.swap(true, Ordering::Relaxed) {
            log.warning(
                "tokens",
                "--per-chunk-usage is given, and the server does not say how many tokens the first event of an answer \
                 holds: it is taken to hold one, so inter-token latencies are too low where it holds more",
            );
        }
    }

    /// Compares the client's count of the first answered input with the server's. Another model's tokenizer
    /// distorts every figure in tokens, and silently.
    ///
    /// `counted` says what counted, `untemplated` whether its chat template could have been counted as well.
    pub(crate) fn compare_counts(
        &self,
        record: &RequestRecord,
        limit_pct: f64,
        counted: &str,
        untemplated: bool,
        log: &Log,
    ) {
        let usage = record.answer.usage.and_then(|usage| usage.prompt_tokens);
        let (Some(ours), Some(theirs)) = (record.tokens.input, usage) else { return };
        if self.compared.swap(true, Ordering::Relaxed) {
            return;
        }
        let difference = 100.0 * (ours as f64 - theirs as f64).abs() / theirs.max(1) as f64;
        if difference > limit_pct {
            log.warning(
                "tokens",
                &format!(
                    "the first answered input has {ours} tokens by {counted} and {theirs} by the server: is this the model's \
                     tokenizer? --tokenizer names another, --use-server-token-count takes the server's counts{}",
                    if untemplated { ", --apply-chat-template counts the template as well" } else { "" }
                ),
            );
        }
    }
}

/// Says that the result folder keeps files of a run with another prefix, since some names are the same for both; and
/// which ones do not stay there, by their reports.
pub(crate) fn other_runs(log: &Log, config: &RunConfig, replaced: &[String]) {
    let output = &config.output;
    if !replaced.is_empty() {
        log.warning(
            "export",
            &format!(
                "{} held another run, whose files have another prefix ({}) and names of this one among them: all of it was \
                 deleted; --artifact-dir keeps runs apart",
                output.dir.display(),
                replaced.join(", ")
            ),
        );
    }
    let others = other_runs_of(&output.dir, &FileNames::new(output.prefix.as_deref()));
    if let Some(file) = others.first() {
        log.warning(
            "export",
            &format!(
                "{} holds another run, whose files have another prefix ({file}) and stay: inputs.json, phase_manifest.json and \
                 the log are those of this one; --artifact-dir keeps runs apart",
                output.dir.display()
            ),
        );
    }
}

/// Says what is worth knowing before the first request.
pub(crate) fn before(log: &Log, config: &RunConfig, dataset: &dyn Dataset) {
    for line in config.remote.iter().flat_map(|remote| &remote.lines) {
        log.info("dataset", line);
    }
    if let DatasetSource::File(file) = &config.dataset.source
        && file.detected
    {
        let promoted = if matches!(config.profiling().mode, LoadMode::FixedSchedule(_)) {
            "; it is replayed on its recorded schedule (--no-fixed-schedule opts out)"
        } else {
            ""
        };
        log.info(
            "dataset",
            &format!("{}: detected as {}{promoted}", file.path.display(), file.format.name()),
        );
    }
    if let LoadMode::FixedSchedule(schedule) = config.profiling().mode {
        schedule::length(log, dataset, schedule.zero_ms.unwrap_or_default(), &config.profiling().stop);
    }
    if let Some(text) = unfillable(config.profiling()) {
        log.warning("load", &text);
    }
    if let Some(text) = repeats(config, dataset).or_else(|| part(config, dataset)) {
        log.info("dataset", &text);
    }
    say(log, &dataset.notes());
    if slow_governor(GOVERNOR.as_ref()) {
        log.warning(
            "host",
            "the CPU governor is `powersave`, which can double latencies; `cpupower frequency-set -g performance` changes it",
        );
    }
}

/// What is said where a closed loop has more slots than there is to fill them.
fn unfillable(phase: &PhaseConfig) -> Option<String> {
    let StopRule { requests, sessions, .. } = phase.stop;
    let limits =
        [(requests, "requests", "--request-count"), (sessions, "conversations", "--num-conversations")];
    let limits = limits.into_iter().filter_map(|(most, what, flag)| Some((most?, what, flag)));
    let (most, what, flag) = limits.min_by_key(|limit| limit.0)?;
    let slots = phase.concurrency.filter(|_| matches!(phase.mode, LoadMode::Burst))?;
    (u64::from(slots) > most).then(|| {
        format!("--concurrency {slots} is never reached: the run ends after {most} {what}; raise {flag}")
    })
}

/// What is said where a file has less to send than is asked for.
fn repeats(config: &RunConfig, dataset: &dyn Dataset) -> Option<String> {
    let phase = config.profiling();
    let is_read = !matches!(config.dataset.source, DatasetSource::Synthetic(_));
    let is_in_order = config.dataset.sampling == Sampling::Sequential;
    if !is_read
        || !is_in_order
        || matches!(phase.mode, LoadMode::FixedSchedule(_))
        || dataset.len().is_growing()
    {
        return None;
    }
    let requests = phase.stop.requests.filter(|_| phase.stop.sessions.is_none())?;
    let conversations = dataset.len().known();
    (requests > dataset.total_turns()?).then(|| {
        format!(
            "{conversations} conversation{}, sent round and round until {requests} requests (--num-conversations \
             {conversations} sends each once)",
            if conversations == 1 { "" } else { "s" }
        )
    })
}

/// What is said where the default number of requests leaves some of the data out.
fn part(config: &RunConfig, dataset: &dyn Dataset) -> Option<String> {
    let phase = config.profiling();
    let is_read = match &config.dataset.source {
        DatasetSource::Synthetic(_) => false,
        // It draws as many as it is asked for.
        DatasetSource::File(file) => file.format != FileFormat::RandomPool,
        DatasetSource::Stored(_) => true,
    };
    let requests = phase.stop.requests.filter(|_| phase.ends_by_default && is_read)?;
    if dataset.len().is_growing() {
        return None;
    }
    let (turns, conversations) = (dataset.total_turns()?, dataset.len().known());
    (requests < turns).then(|| {
        format!(
            "{requests} requests are sent, the default, of the {turns} in the data; --num-conversations {conversations} sends \
             each conversation once"
        )
    })
}

/// Answers that take as long are nothing unusual, seconds.
const SLOW_ANSWER: f64 = 10.0;

/// Warns of an open loop without a cap that fills the `room` for connections when answers are slow. How many it needs is
/// not known before the run.
pub(crate) fn room(log: &Log, phases: &[PhaseConfig], room: u64) {
    for phase in phases {
        let LoadMode::Rate { rate, .. } = phase.mode else { continue };
        let seconds = room as f64 / rate;
        let all_fit = phase.stop.requests.is_some_and(|requests| requests <= room);
        if phase.concurrency.is_some() || all_fit || seconds >= SLOW_ANSWER {
            continue;
        }
        let time = if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.1} s") };
        log.warning(
            "host",
            &format!(
                "at {rate} requests/s the host has connections for answers within {time} (open files, local ports); \
                 slower ones use them up: raise `ulimit -n`, add source addresses with --bind-address, or cap with \
                 --concurrency"
            ),
        );
    }
}

/// Says what a dataset has to say.
pub(crate) fn say(log: &Log, notes: &[Note]) {
    for note in notes {
        let level = match note.level() {
            NoteLevel::Debug => Level::Debug,
            NoteLevel::Info => Level::Info,
            NoteLevel::Warning => Level::Warning,
        };
        log.write(level, "dataset", &note.to_string());
    }
}

/// What decides how fast the first core runs.
const GOVERNOR: &str = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";

fn slow_governor(file: &Path) -> bool {
    std::fs::read_to_string(file).is_ok_and(|governor| governor.trim() == "powersave")
}

/// Says what the records of the profiling phase show and no table does.
pub(crate) fn after(log: &Log, summary: &Summary, server_counts: bool) {
    if server_counts && summary.valid_count > 0 && summary.block(Metric::UsagePromptTokens).is_none() {
        log.warning(
            "tokens",
            "--use-server-token-count is given and the server reports no usage: there are no figures in tokens; drop the flag to count with a tokenizer",
        );
    }
    let single = |metric| summary.block(metric).and_then(|block| block.avg);
    if let (Some(1.0), Some(lag)) = (single(Metric::ReplaySchedDegraded), single(Metric::ReplaySchedLagP99)) {
        log.warning(
            "schedule",
            &format!(
                "the recorded schedule was not kept: one request in a hundred left {lag:.0} ms or more behind its time; \
                 load_delivery says whether the client or a cap held them"
            ),
        );
    }
    let Summary { not_streamed_count, truncated_stream_count, skipped_event_count, .. } = *summary;
    if truncated_stream_count > 0 {
        let streams = summary.valid_count - not_streamed_count;
        log.warning(
            "answers",
            &format!(
                "{truncated_stream_count} of {streams} streams ended without [DONE] or a finish reason: their outputs may be cut"
            ),
        );
    }
    if not_streamed_count > 0 {
        log.warning(
            "answers",
            &format!("{not_streamed_count} streaming request(s) were answered in one piece: they have no figures of tokens in time"),
        );
    }
    if skipped_event_count > 0 {
        log.info(
            "answers",
            &format!(
                "{skipped_event_count} event(s) that carry nothing (unknown kinds, comments) were skipped"
            ),
        );
    }
    if let Some((level, text)) = coalesced(summary) {
        log.write(level, "answers", &text);
    }
}

/// Says that more was subtracted for the network than requests took.
pub(crate) fn network(log: &Log, summary: &Summary, round_trip_ms: f64) {
    let named =
        [(Metric::TimeToFirstToken, "time to first token"), (Metric::RequestLatency, "request latency")];
    let shortest = named.into_iter().find_map(|(metric, name)| Some((summary.block(metric)?.min?, name)));
    if let Some((shortest, name)) = shortest
        && shortest < round_trip_ms
    {
        log.warning(
            "network",
            &format!(
                "--network-latency-mean {round_trip_ms} is longer than the shortest {name}, {shortest:.2} ms: adjusted \
                 latencies end at 0 and say nothing there; the flag takes the milliseconds of one round trip"
            ),
        );
    }
}

/// What is said where many events have no time of their own. Whoever reads late finds several waiting.
fn coalesced(summary: &Summary) -> Option<(Level, String)> {
    let share = 100.0 * summary.coalesced_event_count as f64 / summary.content_event_count.max(1) as f64;
    let why = if summary.delayed_request_count > 0 {
        "this host read late, or the server or a proxy batches"
    } else {
        "the server or a proxy batches"
    };
    (share >= 10.0).then(|| {
        let level = if share > 50.0 { Level::Warning } else { Level::Info };
        (
            level,
            format!(
                "{share:.1} % of the events arrived together with the one before and share its time ({why})"
            ),
        )
    })
}

/// Says which files hold credentials because they hold requests as they were sent. `is_signed` tells by label whether a
/// body in the file has a URL with a credential in it.
pub(crate) fn credentials_as_sent(
    log: &Log,
    extras: &Map<String, Value>,
    written: &[WrittenFile],
    is_signed: &[(&str, bool)],
) {
    let keys: Vec<String> = extras
        .iter()
        .filter(|(name, value)| !secrets_of_extra(name, value).is_empty())
        .map(|(name, _)| format!("`{name}` of --extra-inputs"))
        .collect();
    let files: Vec<(String, bool)> = is_signed
        .iter()
        .filter_map(|(label, signed)| {
            let file = written.iter().find(|file| file.label == *label)?;
            let name = file.path.file_name()?.to_string_lossy().into_owned();
            (*signed || !keys.is_empty()).then_some((name, *signed))
        })
        .collect();
    if files.is_empty() {
        return;
    }
    let url =
        files.iter().any(|(_, signed)| *signed).then(|| "a URL with a signature or a password".to_owned());
    let what: Vec<String> = keys.into_iter().chain(url).collect();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    log.warning(
        "secrets",
        &format!(
            "requests stand as they were sent in {}, and with them what looks like a credential ({}): keep that to \
             yourself",
            names.join(" and "),
            what.join(", ")
        ),
    );
}

/// Says that a warmup did not warm anything up, or not all that it was meant to.
pub(crate) fn after_warmup(log: &Log, warmup: &PhaseResults) {
    let (failed, all) = (warmup.summary.failed_count, warmup.summary.record_count());
    if failed > 0 {
        log.warning("warmup", &format!("{failed} of {all} warmup requests failed"));
    }
    // What an interrupt broke off is told with it.
    if warmup.in_flight_cancelled_count > 0 && !warmup.was_cancelled {
        log.warning(
            "warmup",
            &format!(
                "--warmup-grace-period cut off {} of {} warmup requests: raise it, or --warmup-duration",
                warmup.in_flight_cancelled_count, warmup.sent_count
            ),
        );
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use aiperf_config::{Arrival, EndpointConfig, EndpointKind, RampTimes, Target};
    use aiperf_types::PhaseKind;

    use super::*;

    /// A closed loop of five slots.
    pub(crate) fn phase() -> PhaseConfig {
        PhaseConfig {
            kind: PhaseKind::Profiling,
            mode: LoadMode::Burst,
            concurrency: Some(5),
            ramps: RampTimes::default(),
            stop: StopRule::default(),
            grace: Some(Duration::from_millis(500)),
            cancellation: None,
            idle_gap_cap: None,
            ends_by_default: false,
        }
    }

    /// Nothing that matters to what is said of failures.
    pub(crate) fn endpoint() -> EndpointConfig {
        EndpointConfig::new(EndpointKind::Chat, Target::Mock("mock://".into()))
    }

    pub(crate) fn asked<'a>(phase: &'a PhaseConfig, endpoint: &'a EndpointConfig) -> Asked<'a> {
        Asked { phase, endpoint, proxy: None }
    }

    #[test]
    fn slots_that_can_never_be_filled_are_told() {
        let told = |requests, sessions| {
            let mut phase = phase();
            (phase.stop.requests, phase.stop.sessions) = (requests, sessions);
            unfillable(&phase)
        };
        assert!(
            told(Some(4), None)
                .unwrap()
                .contains("--concurrency 5 is never reached: the run ends after 4 requests")
        );
        assert!(told(Some(40), Some(2)).unwrap().ends_with("raise --num-conversations"));
        assert_eq!((told(Some(5), None), told(None, None)), (None, None));
        let open = PhaseConfig { mode: LoadMode::Rate { rate: 1.0, arrival: Arrival::Constant }, ..phase() };
        assert_eq!(
            unfillable(&PhaseConfig { stop: StopRule { requests: Some(4), ..open.stop }, ..open }),
            None
        );
    }

    /// <https://github.com/ai-dynamo/aiperf/issues/1424>: a slower CPU governor nearly doubles TTFT.
    #[test]
    fn aiperf_1424_a_governor_that_saves_power_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scaling_governor");
        assert!(!slow_governor(&file));
        for (governor, is_slow) in [("powersave\n", true), ("performance\n", false), ("schedutil\n", false)] {
            std::fs::write(&file, governor).unwrap();
            assert_eq!(slow_governor(&file), is_slow);
        }
    }

    #[test]
    fn events_that_this_host_read_late_are_not_laid_to_the_server_alone() {
        let said = |coalesced_event_count, delayed_request_count| {
            let summary = Summary {
                content_event_count: 1_000,
                coalesced_event_count,
                delayed_request_count,
                ..Summary::default()
            };
            coalesced(&summary)
        };
        let (level, text) = said(378, 4).unwrap();
        assert_eq!(level, Level::Info);
        assert!(
            text.starts_with("37.8 %")
                && text.ends_with("(this host read late, or the server or a proxy batches)")
        );
        let (level, text) = said(501, 0).unwrap();
        assert_eq!(level, Level::Warning);
        assert!(text.ends_with("(the server or a proxy batches)"), "{text}");
        assert!(said(99, 4).is_none());
    }
}
