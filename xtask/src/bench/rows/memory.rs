//! Peak resident memory of the client.

use anyhow::{Result, ensure};

use crate::bench::Bench;
use crate::bench::client;
use crate::bench::figure::{Figure, Limit};
use crate::bench::mock::Mock;
use crate::bench::process::{Used, peak_bytes};
use crate::bench::progress::say;

const MIB: f64 = 1_048_576.0;

/// The peak of an ended client. The kernel carries the peak of the program that started it over into a new one, so
/// one that does not rise above the harness's own says nothing.
pub(crate) fn peak(used: &Used) -> Result<f64> {
    let own = peak_bytes(std::process::id() as i32).unwrap_or(0);
    ensure!(used.peak_bytes > own, "the harness itself holds {own} bytes, no less than the client");
    Ok(used.peak_bytes as f64)
}

/// The first minute of the Mooncake trace.
pub(crate) fn trace(bench: &Bench) -> Result<Vec<Figure>> {
    let (row, what) = ("memory-trace", "peak memory, trace from 0 to 60 s");
    let Some(trace) = bench.trace.as_ref().and_then(|path| path.to_str()) else {
        return Ok(vec![Figure::skipped(row, what, "no trace; name it with --mooncake FILE")]);
    };
    let end = bench.size(60_000, 10_000).to_string();
    let arguments = [
        "--custom-dataset-type",
        "mooncake_trace",
        "--input-file",
        trace,
        "--fixed-schedule-end-offset",
        &end,
        "--streaming",
    ];
    let mut peaks = Vec::new();
    let mut late = Vec::new();
    for run in 1..=bench.runs {
        let folder = bench.fresh_folder(row)?;
        let mock = Mock::start(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
        let run_of_client = client::profile(bench, &folder, &mock.url(), &arguments)?;
        peaks.push(peak(&run_of_client.used)? / MIB);
        late.push(run_of_client.number(&["load_delivery", "lateness", "p99"])? * 1e3);
        say(format_args!(
            "  run {run} {:.1} MiB, {} requests, lateness p99 {:.0} us",
            peaks.last().copied().unwrap_or(0.0),
            run_of_client.requests()?,
            late.last().copied().unwrap_or(0.0)
        ));
    }
    Ok(vec![
        Figure::new(row, what, "MiB", peaks).bounded(Limit::AtMost(400.0), Limit::AtMost(150.0)),
        Figure::new(row, "lateness of its sends, p99", "us", late),
    ])
}

/// What a million finished requests leave behind.
pub(crate) fn per_record(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "memory-record";
    let (few, many) = (bench.size(10_000, 10_000), bench.size(1_000_000, 110_000));
    let mut kept = Vec::new();
    let mut spilled = 0.0;
    for run in 1..=bench.runs {
        let folder = bench.fresh_folder(row)?;
        let mock = Mock::start(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
        let mut peaks = [0.0; 2];
        for (peak_of, count) in peaks.iter_mut().zip([few, many]) {
            let count = count.to_string();
            let arguments = [
                "--concurrency",
                "64",
                "--isl",
                "16",
                "--osl",
                "8",
                "--streaming",
                "--request-count",
                &count,
            ];
            let run_of_client = client::profile(bench, &folder, &mock.url(), &arguments)?;
            *peak_of = peak(&run_of_client.used)?;
            spilled =
                run_of_client.number(&["load_delivery", "client", "spilled_record_count"]).unwrap_or(0.0);
            say(format_args!(
                "  run {run} {count:>9} requests: {:.1} MiB, {:.1} s, {spilled} spilled",
                *peak_of / MIB,
                run_of_client.used.wall_sec
            ));
        }
        kept.push((peaks[1] - peaks[0]) / (many - few) as f64);
        std::fs::remove_dir_all(&folder)?;
    }
    let figure = Figure::new(row, format!("memory per finished request, {many} requests"), "bytes", kept)
        .bounded(Limit::AtMost(200.0), Limit::AtMost(64.0));
    Ok(vec![if spilled > 0.0 { figure.note(format!("{spilled} records went over disk")) } else { figure }])
}
