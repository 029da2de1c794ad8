//! The client's time to first token against the server's own, request by request.

use std::collections::HashMap;

use anyhow::{Context as _, Result, ensure};

use crate::bench::Bench;
use crate::bench::client;
use crate::bench::figure::{Figure, Limit};
use crate::bench::mock::Mock;
use crate::bench::progress::say;
use crate::bench::stats::percentile;

const STREAMS: usize = 200;

/// 200 streams at concurrency 16 after 16 of warmup; ttft 20 ms, itl 5 ms.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "ttft";
    let names = [("p50", 50.0), ("p99", 99.0), ("max", 100.0)];
    let mut samples: [Vec<f64>; 3] = Default::default();
    for run in 1..=bench.runs {
        let folder = bench.fresh_folder(row)?;
        let mock = Mock::start_logging(bench, &folder, &[("ttft", "20ms"), ("itl", "5ms")])?;
        let arguments = [
            "--concurrency",
            "16",
            "--request-count",
            "200",
            "--warmup-request-count",
            "16",
            "--isl",
            "128",
            "--osl",
            "100",
            "--streaming",
        ];
        let run_of_client = client::profile(bench, &folder, &mock.url(), &arguments)?;
        let mut server = HashMap::new();
        mock.stop_and_read(|entry| {
            if let (Some(id), Some(received), Some(first)) =
                (entry.request_id, entry.received_ns, entry.first_token_ns)
            {
                server.insert(id, first - received);
            }
        })?;
        let mut differences = Vec::new();
        run_of_client.records(|record| {
            let ours = record.metrics["time_to_first_token"]["value"].as_f64();
            let theirs = server.get(&record.metadata.x_request_id);
            if let (Some(ours), Some(&theirs)) = (ours, theirs) {
                differences.push(ours * 1e3 - theirs as f64 / 1e3);
            }
        })?;
        ensure!(differences.len() == STREAMS, "{} pairs instead of {STREAMS}", differences.len());
        for (to, (_, p)) in samples.iter_mut().zip(names) {
            to.push(percentile(&differences, p).context("no pairs")?);
        }
        say(format_args!(
            "  run {run} p50 {:.1} us, p99 {:.1} us, max {:.1} us",
            samples[0][run - 1],
            samples[1][run - 1],
            samples[2][run - 1]
        ));
    }
    Ok(samples
        .into_iter()
        .zip(names)
        .map(|(samples, (name, _))| {
            let figure = Figure::new(row, format!("client TTFT minus server TTFT, {name}"), "us", samples);
            if name == "p99" { figure.bounded(Limit::AtMost(1_000.0), Limit::AtMost(200.0)) } else { figure }
        })
        .collect())
}
