//! Lateness of sends at a constant rate.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::bench::Bench;
use crate::bench::client::{self, Record};
use crate::bench::figure::{Figure, Limit, Rival};
use crate::bench::mock::Mock;
use crate::bench::progress::say;
use crate::bench::reference::Reference;
use crate::bench::stats::percentile;

const RATE: f64 = 500.0;

/// 500 requests a second for half a minute, streams of 100 events.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "lateness";
    let seconds = bench.size(30, 5).to_string();
    let arguments = [
        "--request-rate",
        "500",
        "--arrival-pattern",
        "constant",
        "--benchmark-duration",
        &seconds,
        "--isl",
        "128",
        "--osl",
        "100",
        "--streaming",
    ];
    let names = ["p50", "p99", "max"];
    let mut ours: [Vec<f64>; 3] = Default::default();
    let mut theirs: [Vec<f64>; 3] = Default::default();
    let (mut delivered, mut delivered_reference) = (Vec::new(), Vec::new());
    let folder = bench.fresh_folder(row)?;
    let mock = Mock::start(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
    for run in 1..=bench.runs {
        let run_of_client = client::profile(bench, &folder, &mock.url(), &arguments)?;
        for (samples, name) in ours.iter_mut().zip(names) {
            samples.push(run_of_client.number(&["load_delivery", "lateness", name])? * 1e3);
        }
        delivered.push(run_of_client.number(&["load_delivery", "delivered_rate"])?);
        show("ours", run, &ours, &delivered);
        let of_client = |keys: &[&str]| run_of_client.number(keys).unwrap_or(0.0);
        say(format_args!(
            "        late prompts {}, worst loop delay {:.1} ms, {:.0} us of CPU per request",
            of_client(&["load_delivery", "late_prompt_count"]),
            of_client(&["load_delivery", "client", "loop_delay", "max"]),
            of_client(&["load_delivery", "client", "cpu_us_per_request"]),
        ));
        if let Some(reference) = &bench.reference {
            reference.profile(&folder, &mock.url(), &arguments)?;
            let starts = starts(&Reference::records(&folder))?;
            let (late, rate) = against_plan(&starts).context("the reference sent nothing")?;
            for (samples, value) in theirs.iter_mut().zip(late) {
                samples.push(value);
            }
            delivered_reference.push(rate);
            show("reference", run, &theirs, &delivered_reference);
        }
    }
    let mut figures = Vec::new();
    for ((name, ours), theirs) in names.into_iter().zip(ours).zip(theirs) {
        let figure = Figure::new(row, format!("lateness of sends at 500/s, {name}"), "us", ours);
        let figure =
            if name == "p99" { figure.bounded(Limit::AtMost(1_000.0), Limit::AtMost(200.0)) } else { figure };
        figures.push(beside(figure, theirs));
    }
    let figure = Figure::new(row, "delivered rate", "req/s", delivered).must(Limit::AtLeast(0.99 * RATE));
    figures.push(beside(figure, delivered_reference));
    Ok(figures)
}

fn beside(figure: Figure, samples: Vec<f64>) -> Figure {
    if samples.is_empty() { figure } else { figure.beside(Rival { name: "reference", samples }) }
}

fn show(name: &str, run: usize, late: &[Vec<f64>; 3], rate: &[f64]) {
    let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
    say(format_args!(
        "  run {run} {name:<9} p50 {:.1} us, p99 {:.1} us, max {:.1} us, {:.2} requests/s",
        last(&late[0]),
        last(&late[1]),
        last(&late[2]),
        last(rate)
    ));
}

fn starts(path: &Path) -> Result<Vec<u64>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut starts = Vec::new();
    for line in BufReader::new(file).lines() {
        let record: Record = serde_json::from_str(&line?).context("a line of the reference's records")?;
        starts.push(record.metadata.request_start_ns);
    }
    starts.sort_unstable();
    Ok(starts)
}

/// p50, p99 and maximum of the distance (us) of each send from the plan that starts with the first, and the rate.
fn against_plan(starts: &[u64]) -> Option<([f64; 3], f64)> {
    let (first, last) = (*starts.first()?, *starts.last()?);
    let late: Vec<f64> = starts
        .iter()
        .enumerate()
        .map(|(index, start)| ((start - first) as f64 - index as f64 * 1e9 / RATE).max(0.0) / 1e3)
        .collect();
    let rate = starts.len() as f64 / ((last - first) as f64 / 1e9);
    Some(([percentile(&late, 50.0)?, percentile(&late, 99.0)?, percentile(&late, 100.0)?], rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_kept_has_no_lateness_and_one_late_send_shows() {
        let mut starts: Vec<u64> = (0..1_000).map(|i| 1_000 + i * 2_000_000).collect();
        let (late, rate) = against_plan(&starts).unwrap();
        assert!(late.iter().all(|late| *late < 1e-6), "{late:?}");
        assert!((rate - 500.5).abs() < 0.1, "{rate}");
        starts[500] += 300_000;
        assert!((against_plan(&starts).unwrap().0[2] - 300.0).abs() < 1e-6);
        assert!(against_plan(&[]).is_none());
    }
}
