//! Many streams on one host, their number scaled to its cores.

use anyhow::{Context as _, Result};

use super::{Check, ROW, repeat};
use crate::bench::Bench;
use crate::bench::client::{self, Run};
use crate::bench::figure::{Figure, Limit};
use crate::bench::mock::Mock;
use crate::bench::rows::memory::peak;
use crate::bench::stats::percentile;

/// Streams that a host of eight cores is asked for, one of which the server has.
const STREAMS_ON_EIGHT: u64 = 20_000;
/// Streams start one after the other during so many seconds: begun at once, all of them would have their events at
/// once, ten times a second, and what is measured would be how long one core takes for a thousand of them.
const SPREAD_SEC: u64 = 5;

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
    repeat(bench, checks, || {
        // What does not grow with the streams is in both.
        let few = count / 5;
        let base = peak(&run(bench, few)?.used)?;
        let run = run(bench, count)?;
        let memory = (peak(&run.used)? - base) / (count - few) as f64 / 1024.0;
        let reasons = run.summary["load_delivery"]["reasons"].as_array().map_or(0, Vec::len) as f64;
        let mut errors = Vec::new();
        run.records(|record| {
            if let Some(gaps) = record.metrics["inter_chunk_latency"]["value"].as_array() {
                errors.extend(gaps.iter().filter_map(|gap| Some((gap.as_f64()? - 100.0).abs() * 1e3)));
            }
        })?;
        Ok([memory, percentile(&errors, 99.0).context("no gaps")?, reasons])
    })
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
