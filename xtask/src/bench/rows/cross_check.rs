//! Our figures against a second client's and the server's own, on load where all three must agree.

use anyhow::{Context as _, Result, ensure};

use crate::bench::Bench;
use crate::bench::client;
use crate::bench::figure::{Figure, Limit, Rival};
use crate::bench::mock::Mock;
use crate::bench::progress::say;
use crate::bench::stats::percentile;
use crate::bench::wrk::Wrk;

const ROW: &str = "cross-check";
const CONNECTIONS: u64 = 16;
/// The server takes this long over a request, so that no client sets the pace.
const SERVICE: &str = "50ms";
const ARGUMENTS: [&str; 6] = ["--concurrency", "16", "--isl", "128", "--osl", "20"];
/// The connections and the first prompts are made before the clock runs: `wrk` makes its requests beforehand, too.
const WARMUP: [&str; 2] = ["--warmup-request-count", "16"];
/// Whole rounds of the slots. A client that falls behind with the length of a run does so on the longer one.
const COUNTS: [u64; 2] = [160, 1_600];

/// <https://github.com/vllm-project/guidellm/issues/470>: as fast as another client over 100 requests, 6 % slower over
/// 1,000.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let folder = bench.fresh_folder(ROW)?;
    let settings = [("ttft", SERVICE), ("itl", "0")];
    let mock = Mock::start(bench, &folder, &settings)?;
    let wrk = Wrk::record(bench, &folder, &mock, &ARGUMENTS)?;
    drop(mock);
    let mut rate = [Vec::new(), Vec::new()];
    let (mut ours, mut server) = (Vec::new(), Vec::new());
    let (mut wrk_rate, mut wrk_latency) = (Vec::new(), Vec::new());
    for run in 1..=bench.runs {
        for (count, rate) in COUNTS.into_iter().zip(&mut rate) {
            let mock = Mock::start_logging(bench, &folder, &settings)?;
            let count_text = count.to_string();
            let mut arguments = ARGUMENTS.to_vec();
            arguments.extend(WARMUP);
            arguments.extend(["--request-count", &count_text]);
            let run_of_client = client::profile(bench, &folder, &mock.url(), &arguments)?;
            rate.push(run_of_client.number(&["request_throughput", "avg"])?);
            let mut own = Vec::new();
            mock.stop_and_read(|entry| own.push((entry.end_ns - entry.head_ns) as f64 / 1e6))?;
            let seen = own.len() as u64;
            ensure!(seen == count + CONNECTIONS, "the server saw {seen} requests of {count} and a warmup");
            if count == COUNTS[1] {
                ours.push(run_of_client.number(&["request_latency", "p50"])?);
                server.push(percentile(&own, 50.0).context("no requests")?);
            }
        }
        let mock = Mock::start(bench, &folder, &settings)?;
        let theirs = wrk.run(&folder, &mock, CONNECTIONS, 5)?;
        wrk_rate.push(theirs.per_second);
        wrk_latency.push(theirs.median_ms);
        say(format_args!(
            "  run {run} {:.1} and {:.1} requests/s, wrk {:.1}; median {:.2} ms, wrk {:.2} ms, server {:.2} ms",
            rate[0][run - 1],
            rate[1][run - 1],
            theirs.per_second,
            ours[run - 1],
            theirs.median_ms,
            server[run - 1]
        ));
    }
    let beside = |samples: &[f64]| Rival { name: "wrk", samples: samples.to_vec() };
    let off = |theirs: &[f64]| ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).collect::<Vec<_>>();
    let mut figures: Vec<Figure> = COUNTS
        .into_iter()
        .zip(&rate)
        .map(|(count, rate)| {
            let off = rate.iter().zip(&wrk_rate).map(|(a, b)| (a / b - 1.0).abs() * 100.0).collect();
            Figure::new(ROW, format!("rate of {count} requests off wrk's"), "%", off).must(Limit::AtMost(3.0))
        })
        .collect();
    figures.extend([
        Figure::new(ROW, "median latency off wrk's", "ms", off(&wrk_latency)).must(Limit::AtMost(2.0)),
        Figure::new(ROW, "median latency off the server's own", "ms", off(&server)).must(Limit::AtMost(2.0)),
        Figure::new(ROW, "median latency", "ms", ours.clone()).beside(beside(&wrk_latency)),
    ]);
    Ok(figures)
}
