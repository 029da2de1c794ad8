//! From the start of the process to its first request at the server.

use std::time::Duration;

use anyhow::Result;

use crate::bench::Bench;
use crate::bench::client::{self, LIMIT};
use crate::bench::figure::{Figure, Limit, Rival};
use crate::bench::mock::Mock;
use crate::bench::progress::say;

/// One request of 550 generated tokens.
pub(crate) fn synthetic(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "start";
    let arguments =
        ["--request-count", "1", "--concurrency", "1", "--isl", "550", "--osl", "100", "--streaming"];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for run in 1..=bench.runs {
        let folder = bench.fresh_folder(row)?;
        let mock = Mock::start_logging(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
        let used = client::profile(bench, &folder, &mock.url(), &arguments)?.used;
        let first = mock.stop_and_find_first()?;
        ours.push(first.since(used.started) as f64 / 1e6);
        say(format_args!("  run {run} ours      {:9.1} ms", ours.last().copied().unwrap_or(0.0)));
        if let Some(reference) = &bench.reference {
            let mock = Mock::start_logging(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
            let used = reference.profile(&folder, &mock.url(), &arguments)?;
            theirs.push(mock.stop_and_find_first()?.since(used.started) as f64 / 1e6);
            say(format_args!("  run {run} reference {:9.1} ms", theirs.last().copied().unwrap_or(0.0)));
        }
    }
    let figure = Figure::new(row, "start to first request, ISL 550", "ms", ours)
        .bounded(Limit::AtMost(250.0), Limit::AtMost(60.0));
    Ok(vec![beside(figure, theirs)])
}

/// The Mooncake trace on its schedule, ended as soon as the first request has been answered.
pub(crate) fn trace(bench: &Bench) -> Result<Vec<Figure>> {
    let (row, what) = ("start-trace", "start to first request, Mooncake trace");
    let Some(trace) = bench.trace.as_ref().and_then(|path| path.to_str()) else {
        return Ok(vec![Figure::skipped(row, what, "no trace; name it with --mooncake FILE")]);
    };
    let arguments = ["--custom-dataset-type", "mooncake_trace", "--input-file", trace, "--streaming"];
    let (mut ours, mut theirs, mut peak) = (Vec::new(), Vec::new(), None);
    for run in 1..=bench.runs {
        let folder = bench.fresh_folder(row)?;
        let mock = Mock::start_logging(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
        let client = client::start(bench, &folder, &mock.url(), &arguments)?;
        let used = client.wait_and(LIMIT, Duration::from_millis(100), || mock.answered())?;
        ours.push(mock.stop_and_find_first()?.since(used.started) as f64 / 1e6);
        say(format_args!("  run {run} ours      {:9.1} ms", ours.last().copied().unwrap_or(0.0)));
        // Minutes of CPU each: once is enough to show the distance.
        if let Some(reference) = bench.reference.as_ref().filter(|_| run == 1) {
            let mock = Mock::start_logging(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
            let client = reference.start(&folder, &mock.url(), &arguments)?;
            let used = client.wait_watching_tree_until(LIMIT, || mock.answered())?;
            theirs.push(mock.stop_and_find_first()?.since(used.started) as f64 / 1e6);
            peak = Some(used.peak_bytes as f64 / 1_048_576.0);
            say(format_args!("  run {run} reference {:9.1} ms", theirs.last().copied().unwrap_or(0.0)));
        }
    }
    let figure = Figure::new(row, what, "ms", ours).bounded(Limit::AtMost(1_000.0), Limit::AtMost(200.0));
    let figure = match peak {
        Some(mib) => {
            figure.note(format!("the reference, once: {mib:.0} MiB of memory by then, all processes"))
        }
        None => figure,
    };
    Ok(vec![beside(figure, theirs)])
}

fn beside(figure: Figure, reference: Vec<f64>) -> Figure {
    if reference.is_empty() { figure } else { figure.beside(Rival { name: "reference", samples: reference }) }
}
