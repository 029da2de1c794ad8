//! Limits in time that the test suite checks on a virtual clock, here on real sockets and the real clock.

use anyhow::{Context as _, Result};

use crate::bench::Bench;
use crate::bench::client::{self, Run};
use crate::bench::figure::{Figure, Limit};
use crate::bench::mock::Mock;
use crate::bench::progress::say;
use crate::bench::rows::Measure;

mod endings;
mod many;
mod schedules;

const ROW: &str = "sockets";

/// One limit: its name in the table, unit and bounds.
struct Check {
    what: String,
    unit: &'static str,
    must: Option<Limit>,
    aim: Option<Limit>,
}

impl Check {
    fn must(what: impl Into<String>, unit: &'static str, must: Limit) -> Self {
        Self { what: what.into(), unit, must: Some(must), aim: None }
    }

    fn aim(what: impl Into<String>, unit: &'static str, aim: Limit) -> Self {
        Self { what: what.into(), unit, must: None, aim: Some(aim) }
    }

    fn and_aim(mut self, aim: Limit) -> Self {
        self.aim = Some(aim);
        self
    }
}

/// Runs `measure` at most three times; it gives one value per check.
fn repeat<const N: usize>(
    bench: &Bench,
    checks: [Check; N],
    mut measure: impl FnMut() -> Result<[f64; N]>,
) -> Result<Vec<Figure>> {
    let mut samples: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for run in 1..=bench.runs.min(3) {
        let values = measure().with_context(|| checks[0].what.clone())?;
        for ((to, value), check) in samples.iter_mut().zip(values).zip(&checks) {
            to.push(value);
            say(format_args!("  run {run} {}: {value:.4} {}", check.what, check.unit));
        }
    }
    Ok(checks
        .into_iter()
        .zip(samples)
        .map(|(check, samples)| {
            let figure = Figure::new(ROW, check.what, check.unit, samples);
            let figure = check.must.into_iter().fold(figure, Figure::must);
            check.aim.into_iter().fold(figure, Figure::aim)
        })
        .collect())
}

/// All of them; one that cannot be measured does not keep the others from it.
#[expect(clippy::unnecessary_wraps, reason = "the signature of every row")]
pub(crate) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let checks: [(&str, Measure); 7] = [
        ("constant 1000/s", schedules::constant_rate),
        ("rate with a cap", schedules::capped_rate),
        ("sessions with times and delays", schedules::sessions),
        ("cancellation", endings::cancellation),
        ("grace period", endings::grace),
        ("many streams", many::streams),
        ("medians at concurrency 1", one_at_a_time),
    ];
    let mut figures = Vec::new();
    for (what, check) in checks {
        match check(bench) {
            Ok(measured) => figures.extend(measured),
            Err(error) => figures.push(Figure::failed(ROW, what, &error)),
        }
    }
    Ok(figures)
}

/// Nothing in the way: the client adds next to nothing to the server's own times.
fn one_at_a_time(bench: &Bench) -> Result<Vec<Figure>> {
    let checks = [
        Check::must("median TTFT above the server's 20 ms, concurrency 1", "ms", Limit::AtMost(2.0)),
        Check::must("median ITL off the server's 5 ms, concurrency 1", "ms", Limit::AtMost(0.2)),
    ];
    repeat(bench, checks, || {
        let folder = bench.fresh_folder(ROW)?;
        let mock = Mock::start(bench, &folder, &[("ttft", "20ms"), ("itl", "5ms")])?;
        let count = bench.size(50, 10).to_string();
        let run: Run = client::profile(
            bench,
            &folder,
            &mock.url(),
            &["--concurrency", "1", "--request-count", &count, "--isl", "64", "--osl", "30", "--streaming"],
        )?;
        let ttft = run.number(&["time_to_first_token", "p50"])?;
        let itl = run.number(&["inter_token_latency", "p50"])?;
        Ok([ttft - 20.0, (itl - 5.0).abs()])
    })
}
