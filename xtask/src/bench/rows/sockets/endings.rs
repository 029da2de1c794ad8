//! How requests end that are not left to their end.

use anyhow::{Context as _, Result, ensure};

use super::{Check, ROW, repeat};
use crate::bench::Bench;
use crate::bench::client;
use crate::bench::figure::{Figure, Limit};
use crate::bench::mock::Mock;

/// Every request is cancelled: the server has the whole body, then sees the connection close at the delay.
pub(super) fn cancellation(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (delay, delay_ms) in [("0", 0.0), ("0.5", 500.0)] {
        let checks = [Check::must(
            format!("cancelled after {delay} s: farthest close off its time"),
            "ms",
            Limit::AtMost(2.0),
        )];
        figures.extend(repeat(bench, checks, || {
            let folder = bench.fresh_folder(ROW)?;
            let mock = Mock::start_logging(bench, &folder, &[("ttft", "5s"), ("itl", "0")])?;
            // Nothing succeeds: exit code 1.
            client::profile_to_code(
                bench,
                &folder,
                &mock.url(),
                &[
                    "--request-cancellation-rate",
                    "100",
                    "--request-cancellation-delay",
                    delay,
                    "--concurrency",
                    "4",
                    "--request-count",
                    "20",
                    "--isl",
                    "128",
                    "--osl",
                    "10",
                    "--streaming",
                ],
                1,
            )?;
            let (mut seen, mut worst, mut whole) = (0, 0.0, true);
            mock.stop_and_read(|entry| {
                seen += 1;
                whole &= entry.aborted;
                match entry.received_ns {
                    Some(received) => {
                        let closed = (entry.end_ns - received) as f64 / 1e6;
                        worst = f64::max(worst, (closed - delay_ms).abs());
                    }
                    None => whole = false,
                }
            })?;
            ensure!(seen == 20 && whole, "{seen} requests; whole bodies, then closed: {whole}");
            Ok([worst])
        })?);
    }
    Ok(figures)
}

/// Two seconds, one of grace, answers that take ten: over after three, without a record of what was cut off.
pub(super) fn grace(bench: &Bench) -> Result<Vec<Figure>> {
    let checks = [
        Check::must("2 s and 1 s of grace: end off 3 s", "ms", Limit::AtMost(200.0)),
        Check::must("2 s and 1 s of grace: process start to end", "s", Limit::AtMost(3.5)),
        Check::must("2 s and 1 s of grace: records of what was cut off", "", Limit::AtMost(0.0)),
    ];
    repeat(bench, checks, || {
        let folder = bench.fresh_folder(ROW)?;
        let mock = Mock::start_logging(bench, &folder, &[("ttft", "10s"), ("itl", "0")])?;
        let arguments = [
            "--benchmark-duration",
            "2",
            "--benchmark-grace-period",
            "1",
            "--concurrency",
            "4",
            "--isl",
            "64",
            "--osl",
            "4",
            "--streaming",
        ];
        let run = client::profile_to_code(bench, &folder, &mock.url(), &arguments, 1)?;
        let mut records = 0.0;
        run.records(|_| records += 1.0)?;
        let (mut first, mut last) = (u64::MAX, None);
        mock.stop_and_read(|entry| {
            first = first.min(entry.head_ns);
            last = last.max(Some(entry.end_ns));
        })?;
        let seconds = (last.context("no request reached the server")? - first) as f64 / 1e9;
        Ok([(seconds - 3.0).abs() * 1e3, run.used.wall_sec, records])
    })
}
