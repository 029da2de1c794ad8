//! Data: how fast a trace is prepared and looked at, and when a large file lets the first request go.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::bench::Bench;
use crate::bench::client::{self, LIMIT};
use crate::bench::figure::{Figure, Judged, Limit, Rival};
use crate::bench::mock::Mock;
use crate::bench::process::{Running, tail};
use crate::bench::progress::say;

/// Every body of the Mooncake trace, none sent.
pub(crate) fn prepare(bench: &Bench) -> Result<Vec<Figure>> {
    let (row, what) = ("prepare-trace", "every body of the Mooncake trace, none sent");
    let Some(trace) = bench.trace.as_ref() else {
        return Ok(vec![Figure::skipped(row, what, "no trace; name it with --mooncake FILE")]);
    };
    let own = std::env::current_exe().context("the harness cannot find itself")?;
    let (mut ours, mut theirs, mut said) = (Vec::new(), Vec::new(), String::new());
    for run in 1..=bench.runs {
        let folder = bench.fresh_folder(row)?;
        let mut command = Command::new(&own);
        command.arg("prepare").arg(trace);
        let used = Running::start(command, &folder)?.wait(LIMIT)?;
        ensure!(used.code == Some(0), "prepare failed\n{}", tail(&folder.join("stderr.txt")));
        said = std::fs::read_to_string(folder.join("stdout.txt"))?;
        said.truncate(said.trim_end().len());
        ours.push(used.wall_sec);
        say(format_args!(
            "  run {run} ours      {:9.2} s ({:.2} s CPU), {said}",
            used.wall_sec, used.cpu_sec
        ));
        // More than a minute each: once is enough to show the distance.
        if let Some(reference) = bench.reference.as_ref().filter(|_| run == 1) {
            let mock = Mock::start_logging(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
            let trace = trace.to_str().context("the trace has no plain name")?;
            let arguments = ["--custom-dataset-type", "mooncake_trace", "--input-file", trace, "--streaming"];
            let client = reference.start(&folder, &mock.url(), &arguments)?;
            client.wait_watching_tree_until(LIMIT, || mock.answered())?;
            let seconds = configured(&folder.join("reference/artifacts/logs/aiperf.log"))?;
            theirs.push(seconds);
            say(format_args!("  run {run} reference {seconds:9.2} s"));
        }
    }
    let figure = Figure::new(row, what, "s", ours).note(said);
    Ok(vec![if theirs.is_empty() {
        figure
    } else {
        let rival = Rival { name: "reference", samples: theirs };
        figure.against(rival, Judged::RivalOverOurs).bounded(Limit::AtLeast(20.0), Limit::AtLeast(50.0))
    }])
}

/// How long the reference took for its dataset, from its log.
pub(super) fn configured(log: &Path) -> Result<f64> {
    const WORDS: &str = "Dataset configured in ";
    let text = std::fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    let seconds = text.lines().find_map(|line| line.split_once(WORDS)?.1.split(' ').next()?.parse().ok());
    seconds.with_context(|| format!("{} does not say `{WORDS}`", log.display()))
}

/// The figures of the Mooncake trace, by the program.
pub(crate) fn analyze(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "analyze-trace";
    let Some(trace) = bench.trace.as_ref() else {
        return Ok(vec![Figure::skipped(row, row, "no trace; name it with --mooncake FILE")]);
    };
    let mut figures = Vec::new();
    for (what, arguments) in [
        ("aiperf analyze-trace of the Mooncake trace", &["analyze-trace"][..]),
        ("aiperf validate of the Mooncake trace", &["validate", "mooncake-trace"]),
    ] {
        let mut samples = Vec::new();
        for _ in 0..bench.runs {
            let folder = bench.fresh_folder(row)?;
            let mut command = Command::new(&bench.binary);
            command.args(arguments).arg(trace);
            let used = Running::start(command, &folder)?.wait(LIMIT)?;
            ensure!(used.code == Some(0), "{what} failed\n{}", tail(&folder.join("stderr.txt")));
            samples.push(used.wall_sec * 1e3);
        }
        figures.push(Figure::new(row, what, "ms", samples).must(Limit::AtMost(1_000.0)));
    }
    Ok(figures)
}

/// A million requests in one file of 250 MB, without and with sessions.
pub(crate) fn large(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "start-large";
    let mut figures = Vec::new();
    for (sessions, must) in [(false, 1_000.0), (true, 3_000.0)] {
        let file = write_large(bench, sessions)?;
        let input = file.to_str().context("the folder has no plain name")?;
        let arguments = [
            "--custom-dataset-type",
            "single_turn",
            "--input-file",
            input,
            "--request-count",
            "1",
            "--concurrency",
            "1",
            "--streaming",
        ];
        let mut samples = Vec::new();
        for run in 1..=bench.runs {
            let folder = bench.fresh_folder(row)?;
            let mock = Mock::start_logging(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
            let client = client::start(bench, &folder, &mock.url(), &arguments)?;
            let used = client.wait_and(LIMIT, Duration::from_millis(100), || mock.answered())?;
            samples.push(mock.stop_and_find_first()?.since(used.started) as f64 / 1e6);
            say(format_args!("  run {run} {:9.1} ms", samples.last().copied().unwrap_or(0.0)));
        }
        let what = format!(
            "start to first request, 1,000,000 rows{}",
            if sessions { " with session ids" } else { "" }
        );
        figures.push(Figure::new(row, what, "ms", samples).must(Limit::AtMost(must)));
    }
    Ok(figures)
}

/// The file is kept: making it takes longer than a run.
fn write_large(bench: &Bench, sessions: bool) -> Result<std::path::PathBuf> {
    let rows = bench.size(1_000_000, 100_000);
    let folder = bench.home.join("data");
    std::fs::create_dir_all(&folder)?;
    let path =
        folder.join(format!("single_turn-{rows}-{}.jsonl", if sessions { "sessions" } else { "plain" }));
    if path.is_file() {
        return Ok(path);
    }
    let unfinished = path.with_extension("tmp");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
    let text = "the quick brown fox jumps over the lazy dog ".repeat(if sessions { 4 } else { 5 });
    for row in 0..rows {
        let session =
            if sessions { format!(", \"session_id\": \"s-{:06}\"", row / 4) } else { String::new() };
        let pad = if sessions { "0123456789 0123456789 " } else { "" };
        writeln!(out, "{{\"text\": \"{row:07} {pad}{text}\", \"output_length\": 12{session}}}")?;
    }
    out.flush()?;
    std::fs::rename(&unfinished, &path)?;
    Ok(path)
}

/// A recorded run, made a trace, replayed against the same server.
pub(crate) fn round_trip(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "round-trip";
    let requests = 200;
    let (mut late, mut ttft, mut latency) = (Vec::new(), Vec::new(), Vec::new());
    for run in 1..=bench.runs {
        let folder = bench.fresh_folder(row)?;
        let again = folder.join("again");
        std::fs::create_dir_all(&again)?;
        let mock = Mock::start(bench, &folder, &[("ttft", "20ms"), ("itl", "2ms"), ("tokens", "10")])?;
        let record = [
            "--streaming",
            "--export-level",
            "raw",
            "--concurrency",
            "8",
            "--num-conversations",
            "50",
            "--conversation-turn-mean",
            "4",
            "--conversation-turn-stddev",
            "0",
            "--isl",
            "64",
            "--osl",
            "10",
        ];
        let recorded = client::profile(bench, &folder, &mock.url(), &record)?;
        let trace = folder.join("replay.jsonl");
        let mut command = Command::new(&bench.binary);
        command.args(["dataset", "from-run"]).arg(folder.join("artifacts")).arg("--output").arg(&trace);
        let used = Running::start(command, &again)?.wait(LIMIT)?;
        ensure!(used.code == Some(0), "from-run failed\n{}", tail(&again.join("stderr.txt")));
        let trace = trace.to_str().context("the folder has no plain name")?;
        let replay = ["--streaming", "--input-file", trace, "--custom-dataset-type", "mooncake_trace"];
        let replayed = client::profile(bench, &again, &mock.url(), &replay)?;
        if [recorded.requests()?, replayed.requests()?]
            .iter()
            .any(|count| (count - f64::from(requests)).abs() > 0.5)
        {
            bail!("{} requests were recorded and {} replayed", recorded.requests()?, replayed.requests()?);
        }
        late.push(worst_lateness(&recorded, &replayed)?);
        for (samples, metric) in [(&mut ttft, "time_to_first_token"), (&mut latency, "request_latency")] {
            let [before, after] = [&recorded, &replayed].map(|run| run.number(&[metric, "p50"]));
            let (before, after) = (before?, after?);
            // What may differ is the larger of 5 % and 1 ms.
            samples.push((after - before).abs() / (before * 0.05).max(1.0));
        }
        say(format_args!(
            "  run {run} first turns at most {:.3} ms late",
            late.last().copied().unwrap_or(0.0)
        ));
    }
    let share = |what: &str, samples| {
        Figure::new(row, format!("{what} of the replay, off by, in parts of what it may"), "", samples)
            .must(Limit::AtMost(1.0))
    };
    Ok(vec![
        Figure::new(row, "first turns of the replay behind their recorded offsets, worst", "ms", late)
            .must(Limit::AtMost(5.0)),
        share("TTFT p50", ttft),
        share("latency p50", latency),
    ])
}

/// How far the first turns of sessions were off their recorded offsets, ms. Later turns may wait for the turn before.
fn worst_lateness(recorded: &client::Run, replayed: &client::Run) -> Result<f64> {
    let mut plan = std::collections::BTreeMap::new();
    recorded.records(|record| {
        if record.metadata.turn_index == Some(0) {
            plan.insert(record.metadata.x_correlation_id, record.metadata.request_start_ns);
        }
    })?;
    let mut sent = Vec::new();
    replayed.records(|record| {
        if record.metadata.turn_index == Some(0)
            && let Some(session) = record.metadata.conversation_id
        {
            sent.push((session, record.metadata.request_start_ns));
        }
    })?;
    let first = plan.values().min().copied().context("nothing was recorded")?;
    let zero = sent.iter().map(|(_, at)| *at).min().context("nothing was replayed")?;
    sent.iter().try_fold(0.0f64, |worst, (session, at)| {
        let planned = plan.get(session).with_context(|| format!("session {session} was not recorded"))?;
        let off = (at - zero) as f64 - (planned - first) as f64;
        Ok(worst.max(off.abs() / 1e6))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_of_the_reference_are_found_in_its_log() {
        let folder = tempfile_folder();
        let log = folder.join("aiperf.log");
        std::fs::write(&log, "a\n2026 - dataset_manager - INFO - Dataset configured in 75.25 seconds\n")
            .unwrap();
        assert!((configured(&log).unwrap() - 75.25).abs() < 1e-9);
        std::fs::write(&log, "nothing").unwrap();
        assert!(configured(&log).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn tempfile_folder() -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }
}
