//! Many streams on one host, their number scaled to its cores.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Check, ROW, repeat};
use crate::bench::Bench;
use crate::bench::client::{self, Run};
use crate::bench::figure::{Figure, Limit};
use crate::bench::host::Watch;
use crate::bench::mock::Mock;
use crate::bench::progress::say;
use crate::bench::rows::memory::peak;
use crate::bench::stats::percentile;

/// Streams that a host of eight cores is asked for, one of which the server has.
const STREAMS_ON_EIGHT: u64 = 20_000;
/// Streams start one after the other during so many seconds: begun at once, all of them would have their events at
/// once, ten times a second, and what is measured would be how long one core takes for a thousand of them.
const SPREAD_SEC: u64 = 5;
/// A turn of a worker's loop that takes longer makes the client doubt its stamps.
const DOUBTFUL: Duration = Duration::from_millis(5);
/// How often a run is made again because the host took a core away for that long.
const AGAIN: usize = 8;

/// Streams of ten tokens a second for 20 s: memory of each, error of the gaps between events, no reason to doubt.
pub(super) fn streams(bench: &Bench) -> Result<Vec<Figure>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    // The server has a core of its own; the client is asked for its share by those that are left.
    let count = bench.size((STREAMS_ON_EIGHT * (cores - 1).max(1) / 7).min(STREAMS_ON_EIGHT), 200);
    let checks = [
        Check::must(format!("{count} streams of 10 tokens/s: memory of each"), "KiB", Limit::AtMost(24.0))
            .and_aim(Limit::AtMost(4.0)),
        Check::aim(format!("{count} streams: gap error p99, server's included"), "us", Limit::AtMost(100.0)),
        Check::must(format!("{count} streams: reasons to doubt the load"), "", Limit::AtMost(0.0)),
    ];
    let mut disturbed = Vec::new();
    let mut undisturbed = true;
    let mut figures = repeat(bench, checks, || {
        // What does not grow with the streams is in both.
        let few = count / 5;
        let base = peak(&run(bench, few)?.used)?;
        let mut left = AGAIN;
        let run = loop {
            let watch = Watch::start()?;
            let run = run(bench, count)?;
            let Some(gap) = watch.worst_gap() else { break run };
            let delay = run.number(&["load_delivery", "client", "loop_delay", "max"]).unwrap_or(0.0);
            say(format_args!(
                "        worst loop delay {delay:.1} ms; the host was away for {:.1} ms at most",
                gap.as_secs_f64() * 1e3
            ));
            if gap <= DOUBTFUL {
                break run;
            }
            disturbed.push(gap.as_secs_f64() * 1e3);
            if left == 0 {
                undisturbed = false;
                break run;
            }
            left -= 1;
        };
        let memory = (peak(&run.used)? - base) / (count - few) as f64 / 1024.0;
        let reasons = run.summary["load_delivery"]["reasons"].as_array().map_or(0, Vec::len) as f64;
        let mut errors = Vec::new();
        run.records(|record| {
            if let Some(gaps) = record.metrics["inter_chunk_latency"]["value"].as_array() {
                errors.extend(gaps.iter().filter_map(|gap| Some((gap.as_f64()? - 100.0).abs() * 1e3)));
            }
        })?;
        Ok([memory, percentile(&errors, 99.0).context("no gaps")?, reasons])
    })?;
    if let Some(longest) = disturbed.iter().copied().reduce(f64::max)
        && let Some(reasons) = figures.pop()
    {
        figures.push(
            reasons
                .note(format!(
                    "{} runs in which the host took a core away for more than {} ms (up to {longest:.1}) were made again",
                    disturbed.len(),
                    DOUBTFUL.as_millis()
                ))
                .invalid_when(!undisturbed, || "the host was never quiet for one run".to_owned()),
        );
    }
    Ok(figures)
}

fn run(bench: &Bench, count: u64) -> Result<Run> {
    let folder = bench.fresh_folder(ROW)?;
    let mock = Mock::start(bench, &folder, &[("ttft", "0"), ("itl", "100ms")])?;
    let rate = (count as f64 / SPREAD_SEC as f64).to_string();
    let (count, tokens) = (count.to_string(), bench.size(200, 20).to_string());
    client::profile(
        bench,
        &folder,
        &mock.url(),
        &[
            "--request-rate",
            &rate,
            "--arrival-pattern",
            "constant",
            "--request-count",
            &count,
            "--isl",
            "16",
            "--osl",
            &tokens,
            "--streaming",
        ],
    )
}
