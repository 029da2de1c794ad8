//! What is worth saying around a run and stands in no table.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aiperf_config::{Cancellation, DatasetSource, LoadMode, PhaseConfig, RunConfig, secrets_of_extra};
use aiperf_dataset::{Dataset, Note, NoteLevel, Outline};
use aiperf_metrics::{ErrorGroup, Metric, Summary};
use aiperf_report::{Level, Log, WrittenFile};
use aiperf_types::{RequestError, RequestRecord};
use serde_json::{Map, Value};

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
    pub(crate) fn compare_counts(&self, record: &RequestRecord, limit_pct: f64, source: &str, log: &Log) {
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
                    "the first answered input has {ours} tokens by {source} and {theirs} by the server: is this the model's \
                     tokenizer? --tokenizer names another, --use-server-token-count takes the server's counts, \
                     --apply-chat-template counts the template as well"
                ),
            );
        }
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
        let bound = config.profiling().stop.duration;
        schedule_length(log, dataset, schedule.zero_ms.unwrap_or_default(), bound);
    }
    say(log, &dataset.notes());
    if slow_governor(GOVERNOR.as_ref()) {
        log.warning(
            "host",
            "the CPU governor is `powersave`, which can double latencies; `cpupower frequency-set -g performance` changes it",
        );
    }
}

/// A schedule that goes on for longer than this, ms, is taken for a slip in its times.
const LONG_SCHEDULE_MS: f64 = 7.0 * 86_400e3;

/// Says how long a recorded schedule lasts, and when that can hardly be meant.
fn schedule_length(log: &Log, dataset: &dyn Dataset, zero_ms: f64, bound: Option<Duration>) {
    let last = (0..dataset.len().known())
        .map(|index| last_send_ms(&dataset.outline(index)))
        .fold(f64::NEG_INFINITY, f64::max);
    if !last.is_finite() {
        return;
    }
    let ms = (last - zero_ms).max(0.0);
    let turns: usize = (0..dataset.len().known()).map(|index| waiting_turns(&dataset.outline(index))).sum();
    let waiting = match turns {
        0 => String::new(),
        1 => ", and longer by the answer that 1 turn waits for".to_owned(),
        turns => format!(", and longer by the answers that {turns} turns wait for"),
    };
    let text = format!("the recorded schedule lasts {}{waiting}", span(ms));
    if ms > LONG_SCHEDULE_MS && bound.is_none() {
        log.warning(
            "schedule",
            &format!(
                "{text}: are its times in the unit of the format? --fixed-schedule-end-offset or --benchmark-duration end \
                 it sooner, --synthesis-speedup-ratio or --replay-speedup play it faster"
            ),
        );
    } else {
        log.info("schedule", &text);
    }
}

/// When the last turn of a conversation is sent at the earliest, in recorded time.
fn last_send_ms(outline: &Outline) -> f64 {
    (0..outline.turns()).filter_map(|turn| outline.turn(turn)).fold(0.0, |at, turn| {
        turn.timestamp_ms.map_or_else(|| at + turn.delay_ms.unwrap_or(0.0), |time| time.max(at))
    })
}

/// Turns of a conversation that have no time of their own: they wait for the answer before, and then think.
fn waiting_turns(outline: &Outline) -> usize {
    let turns = (1..outline.turns()).filter_map(|turn| outline.turn(turn));
    turns.filter(|turn| turn.timestamp_ms.is_none()).count()
}

/// A length of time in the two largest units that it has.
fn span(ms: f64) -> String {
    let seconds = ms / 1e3;
    let (days, hours, minutes) = (86_400.0, 3_600.0, 60.0);
    let pair = |large: f64, small: f64, names: [&str; 2]| {
        let whole = (seconds / large).floor();
        format!("{whole} {} {} {}", names[0], ((seconds - whole * large) / small).floor(), names[1])
    };
    if seconds >= 36_525.0 * days {
        format!("{:.1e} years", seconds / (365.25 * days))
    } else if seconds >= days {
        pair(days, hours, ["d", "h"])
    } else if seconds >= hours {
        pair(hours, minutes, ["h", "min"])
    } else if seconds >= minutes {
        pair(minutes, 1.0, ["min", "s"])
    } else {
        format!("{seconds:.3} s")
    }
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
        log.warning(
            "host",
            &format!(
                "at {rate} requests/s the host has connections for answers within {seconds:.1} s (open files, local ports); \
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

/// Says how far the schedule moved where nothing was in flight for longer than wanted.
pub(crate) fn moved_up(log: &Log, ns: u64) {
    if ns > 0 {
        log.info(
            "schedule",
            &format!(
                "the schedule moved up by {:.3} s in all where nothing was in flight for longer than \
                 --max-idle-gap-cap-seconds; lateness counts from the moved schedule",
                ns as f64 / 1e9
            ),
        );
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

/// Says that a warmup did not warm anything up.
pub(crate) fn after_warmup(log: &Log, summary: &Summary) {
    if summary.failed_count > 0 {
        let (failed, all) = (summary.failed_count, summary.record_count());
        log.warning("warmup", &format!("{failed} of {all} warmup requests failed"));
    }
}

/// What is said of a run that its failures ended.
pub(crate) fn too_many_failed(summary: &Summary, threshold: f64) -> String {
    let (failed, all) = (summary.failed_count, summary.record_count());
    format!(
        "{failed} of {all} requests failed: --failed-request-threshold {threshold} was passed, which ended the run (exit \
         code 1)"
    )
}

/// What is said of a run that was interrupted before anything was measured.
pub(crate) fn interrupted_early(in_warmup: bool) -> &'static str {
    if in_warmup {
        "interrupted during the warmup: nothing was measured (exit code 1)"
    } else {
        "interrupted before the first request: nothing was measured (exit code 1)"
    }
}

/// The reason why nothing succeeded, where it is that all of it was broken off as asked for.
pub(crate) fn all_broken_off(summary: &Summary, cancellation: Option<Cancellation>) -> Option<String> {
    let cancelled = summary.cancelled_count;
    let share = cancellation.filter(|_| cancelled > 0 && cancelled == summary.record_count())?.share;
    let percent = (share * 1e8).round() / 1e6;
    Some(format!("; every request was broken off by --request-cancellation-rate {percent}"))
}

/// What is said of a run without a success, with what helps against the failure that came up most often.
pub(crate) fn no_success(failures: &[ErrorGroup]) -> String {
    let most = failures.iter().max_by_key(|group| group.count);
    let help = most.and_then(|group| what_helps(&group.error)).map(|help| format!("; {help}"));
    format!("no request succeeded: the run has failed (exit code 1){}", help.unwrap_or_default())
}

fn what_helps(error: &RequestError) -> Option<&'static str> {
    Some(match (error.code, error.kind.as_str()) {
        (Some(401 | 403), _) => "the server asks for credentials: give them with --api-key or --header",
        (Some(404), _) => {
            "the server does not know the path or the model: check --url, --endpoint-type, --endpoint and --model"
        }
        (Some(400 | 422), _) => {
            "the server does not take the requests, and says why above: --endpoint-type, --model, --osl and --extra-inputs \
             shape them"
        }
        (Some(429 | 503), _) => "the server turns requests away: lower --concurrency or --request-rate",
        (_, "ClientConnectorError") if error.message.contains("refused") => {
            "no server listens there: start it, or name its host and port with --url"
        }
        (_, "ClientConnectorError") => {
            "nothing answers at that address: check --url, the network, and firewalls on the way"
        }
        (_, "ClientConnectorCertificateError") => {
            "the certificate of the server is not trusted: have its authority trusted by the system, or set \
             AIPERF_HTTP_SSL_VERIFY=0 to accept any"
        }
        (_, "ClientConnectorSSLError") => {
            "TLS cannot be agreed on: check whether --url begins with http:// or https://, and its port"
        }
        (_, "ServerDisconnectedError") => {
            "the server closes connections without an answer: check whether --url names its HTTP port, and http:// or \
             https://"
        }
        (_, "TimeoutError") => "raise --request-timeout-seconds, or lower the load",
        (_, "InvalidInferenceResultError") => {
            "answers have nothing that --endpoint-type reads: check it, and --endpoint"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// <https://github.com/triton-inference-server/perf_analyzer/issues/385>: "no results" says neither why nor what to do.
    #[test]
    fn perf_analyzer_385_a_run_without_a_success_says_what_helps_against_most_of_its_failures() {
        let group = |code: Option<i64>, kind: &str, count| ErrorGroup {
            error: RequestError::new(code, kind, "Connection refused"),
            count,
        };
        let refused = group(None, "ClientConnectorError", 3);
        let text = no_success(&[group(Some(401), "Unauthorized", 2), refused]);
        assert!(text.starts_with("no request succeeded") && text.contains("--url"), "{text}");
        let text = no_success(&[group(Some(401), "Unauthorized", 2), group(Some(404), "Not Found", 1)]);
        assert!(text.ends_with("give them with --api-key or --header"), "{text}");
        for (kind, part) in [
            ("ClientConnectorError", "check --url"),
            ("ClientConnectorCertificateError", "AIPERF_HTTP_SSL_VERIFY=0"),
            ("ClientConnectorSSLError", "https://"),
            ("ServerDisconnectedError", "HTTP port"),
        ] {
            let error = RequestError::new(None, kind, "timed out");
            let text = no_success(&[ErrorGroup { error, count: 1 }]);
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(no_success(&[]), "no request succeeded: the run has failed (exit code 1)");
        assert_eq!(no_success(&[group(Some(500), "Internal Server Error", 1)]), no_success(&[]));
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

    #[test]
    fn a_length_of_time_is_said_in_its_two_largest_units() {
        for (ms, text) in [
            (0.0, "0.000 s"),
            (1_500.25, "1.500 s"),
            (61_999.0, "1 min 1 s"),
            (3_540_000.0, "59 min 0 s"),
            (5_400_000.0, "1 h 30 min"),
            (86_400e3 * 9.5, "9 d 12 h"),
            (1e15, "3.2e4 years"),
        ] {
            assert_eq!(span(ms), text);
        }
    }
}
