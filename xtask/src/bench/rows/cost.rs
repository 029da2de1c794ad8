//! CPU per request and requests per second, beside `wrk` and the reference.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::bench::Bench;
use crate::bench::client;
use crate::bench::figure::{Figure, Judged, Limit, Rival};
use crate::bench::mock::Mock;
use crate::bench::progress::say;
use crate::bench::stats::median;
use crate::bench::wrk::Wrk;

const CONNECTIONS: u64 = 64;
/// Tokens of an answer, and so content events of a stream.
const EVENTS: f64 = 100.0;
/// Above this share of one core the server's network thread sets the pace.
const SATURATED: f64 = 0.95;

const PLAIN: [&str; 6] = ["--concurrency", "64", "--isl", "128", "--osl", "100"];
const STREAMING: [&str; 7] = ["--concurrency", "64", "--isl", "128", "--osl", "100", "--streaming"];

/// What one program did, one value per run.
#[derive(Debug, Default)]
struct Samples {
    /// CPU of the client, microseconds per request.
    cpu: Vec<f64>,
    /// CPU of the server meanwhile, microseconds per request.
    server_cpu: Vec<f64>,
    per_second: Vec<f64>,
    /// Share of one core that the server's network thread used.
    server_busy: Vec<f64>,
}

impl Samples {
    fn show(&self, name: &str, run: usize) {
        let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
        say(format_args!(
            "  run {run} {name:<9} {:8.1} us/request, server {:6.1} us/request {:3.0} % busy, {:8.0} requests/s",
            last(&self.cpu),
            last(&self.server_cpu),
            last(&self.server_busy) * 100.0,
            last(&self.per_second),
        ));
    }
}

fn run_ours(
    bench: &Bench,
    folder: &Path,
    mock: &Mock,
    arguments: &[&str],
    count: u64,
    to: &mut Samples,
) -> Result<()> {
    let count_text = count.to_string();
    let mut all = arguments.to_vec();
    all.extend(["--request-count", &count_text]);
    let before = mock.reading();
    let run = client::profile(bench, folder, &mock.url(), &all)?;
    let after = mock.reading();
    let requests = run.requests()?;
    anyhow::ensure!((requests - count as f64).abs() < 0.5, "{requests} requests instead of {count}");
    to.cpu.push(run.used.cpu_sec * 1e6 / requests);
    to.server_cpu.push(after.since(&before) * 1e6 / requests);
    to.per_second.push(run.number(&["request_throughput", "avg"])?);
    to.server_busy.push(after.busiest_since(&before) / run.number(&["benchmark_duration", "avg"])?);
    Ok(())
}

fn run_wrk(wrk: &Wrk, folder: &Path, mock: &Mock, seconds: u64, to: &mut Samples) -> Result<()> {
    let before = mock.reading();
    let run = wrk.run(folder, mock, CONNECTIONS, seconds)?;
    let after = mock.reading();
    to.cpu.push(run.used.cpu_sec * 1e6 / run.requests);
    to.server_cpu.push(after.since(&before) * 1e6 / run.requests);
    to.per_second.push(run.per_second);
    to.server_busy.push(after.busiest_since(&before) / seconds as f64);
    Ok(())
}

/// Ours and `wrk` in turn.
fn beside_wrk(
    bench: &Bench,
    row: &str,
    arguments: &[&str],
    count: u64,
    seconds: u64,
) -> Result<(Samples, Samples)> {
    let folder = bench.fresh_folder(row)?;
    let mock = Mock::start(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
    let wrk = Wrk::record(bench, &folder, &mock, arguments)?;
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for run in 1..=bench.runs {
        run_ours(bench, &folder, &mock, arguments, count, &mut ours)?;
        ours.show("ours", run);
        run_wrk(&wrk, &folder, &mock, seconds, &mut theirs)?;
        theirs.show("wrk", run);
    }
    Ok((ours, theirs))
}

/// The server must be cheaper than the client, or it is the server that was measured.
fn server_costs_more(figure: Figure, ours: &Samples) -> Figure {
    let server = median(&ours.server_cpu).unwrap_or(0.0);
    let client = median(&ours.cpu).unwrap_or(0.0);
    figure
        .invalid_when(server > client, || {
            format!(
                "the mock server used more CPU per request ({server:.1} us) than the client ({client:.1} us)"
            )
        })
        .note(format!("mock server {server:.1} us of CPU per request under our load"))
}

fn cpu(bench: &Bench, row: &'static str, what: &str, arguments: &[&str]) -> Result<Vec<Figure>> {
    let count = bench.size(20_000, 2_000);
    let (ours, theirs) = beside_wrk(bench, row, arguments, count, bench.size(3, 1))?;
    let figure = Figure::new(row, what, "us", ours.cpu.clone())
        .against(Rival { name: "wrk", samples: theirs.cpu }, Judged::OursOverRival)
        .bounded(Limit::AtMost(5.0), Limit::AtMost(2.5));
    Ok(vec![server_costs_more(figure, &ours), fixed(bench, row, arguments)?])
}

/// What a run costs before its first and after its last request; a part of every figure per request.
fn fixed(bench: &Bench, row: &'static str, arguments: &[&str]) -> Result<Figure> {
    let folder = bench.fresh_folder(row)?;
    let mock = Mock::start(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
    let mut samples = Samples::default();
    for _ in 0..bench.runs {
        run_ours(bench, &folder, &mock, arguments, CONNECTIONS, &mut samples)?;
    }
    let milliseconds = samples.cpu.iter().map(|each| each * CONNECTIONS as f64 / 1e3).collect();
    Ok(Figure::new(row, "of it start and end: a run of 64 requests", "ms", milliseconds))
}

/// Non-streaming chat requests, 128 tokens in and 100 out.
pub(crate) fn plain(bench: &Bench) -> Result<Vec<Figure>> {
    cpu(bench, "cpu", "CPU per request, non-streaming", &PLAIN)
}

/// Streams of 100 content events.
pub(crate) fn streaming(bench: &Bench) -> Result<Vec<Figure>> {
    cpu(bench, "cpu-streaming", "CPU per request of 100 events", &STREAMING)
}

/// Requests and events per second.
pub(crate) fn throughput(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "throughput";
    let mut figures = Vec::new();
    for (what, unit, arguments, count, per_request) in [
        ("requests/s at concurrency 64", "req/s", &PLAIN[..], 200_000, 1.0),
        ("SSE events/s at concurrency 64", "events/s", &STREAMING[..], 50_000, EVENTS),
    ] {
        let (ours, theirs) = beside_wrk(bench, row, arguments, bench.size(count, 5_000), bench.size(5, 1))?;
        let scale = |samples: &[f64]| samples.iter().map(|value| value * per_request).collect::<Vec<_>>();
        let busy = |samples: &Samples| median(&samples.server_busy).unwrap_or(0.0);
        let figure = Figure::new(row, what, unit, scale(&ours.per_second))
            .against(Rival { name: "wrk", samples: scale(&theirs.per_second) }, Judged::OursOverRival)
            .bounded(Limit::AtLeast(0.4), Limit::AtLeast(0.8))
            .invalid_when(busy(&theirs) > SATURATED || busy(&ours) > SATURATED, || {
                format!(
                    "the mock server's thread was {:.0} % busy under wrk and {:.0} % under ours",
                    busy(&theirs) * 100.0,
                    busy(&ours) * 100.0
                )
            });
        figures.push(server_costs_more(figure, &ours));
    }
    Ok(figures)
}

/// Both kinds of request beside the reference.
pub(crate) fn reference(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "cpu-reference";
    let Some(reference) = &bench.reference else {
        return Ok(vec![Figure::skipped(row, "CPU per request", "--no-reference")]);
    };
    let count = bench.size(1_000, 100);
    let count_text = count.to_string();
    let mut figures = Vec::new();
    for (what, arguments, must, aim) in [
        ("CPU per request, non-streaming", &PLAIN[..], 100.0, 250.0),
        ("CPU per request of 100 events", &STREAMING[..], 50.0, 100.0),
    ] {
        let folder = bench.fresh_folder(row)?;
        let mock = Mock::start(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
        let mut ours = Samples::default();
        let mut theirs = Vec::new();
        let mut all = arguments.to_vec();
        all.extend(["--request-count", &count_text]);
        for run in 1..=bench.runs {
            run_ours(bench, &folder, &mock, arguments, bench.size(20_000, 2_000), &mut ours)?;
            ours.show("ours", run);
            let used = reference.profile(&folder, &mock.url(), &all).context("a run of the reference")?;
            theirs.push(used.cpu_sec * 1e6 / count as f64);
            say(format_args!(
                "  run {run} reference {:8.1} us/request",
                theirs.last().copied().unwrap_or(0.0)
            ));
        }
        let figure = Figure::new(row, what, "us", ours.cpu.clone())
            .against(Rival { name: "reference", samples: theirs }, Judged::RivalOverOurs)
            .bounded(Limit::AtLeast(must), Limit::AtLeast(aim));
        figures.push(server_costs_more(figure, &ours));
    }
    Ok(figures)
}
