//! When requests leave.

use std::collections::HashMap;

use anyhow::{Context as _, Result, ensure};

use super::{Check, ROW, repeat};
use crate::bench::Bench;
use crate::bench::client;
use crate::bench::figure::{Figure, Limit};
use crate::bench::mock::Mock;
use crate::bench::stats::slope;

/// 1000 requests a second for a minute: all of them, on a straight line, each within 200 us.
pub(super) fn constant_rate(bench: &Bench) -> Result<Vec<Figure>> {
    let seconds = bench.size(60, 5);
    let checks = [
        Check::must("constant 1000/s: arrivals too many or too few", "", Limit::AtMost(1.0)),
        Check::must("constant 1000/s: error of the slope", "", Limit::AtMost(1e-6)),
        Check::must("constant 1000/s: the same without what held sends up", "", Limit::AtMost(1e-6)),
        Check::aim("constant 1000/s: lateness p99", "us", Limit::AtMost(200.0)),
    ];
    repeat(bench, checks, || {
        let folder = bench.fresh_folder(ROW)?;
        let mock = Mock::start(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
        let seconds_text = seconds.to_string();
        let run = client::profile(
            bench,
            &folder,
            &mock.url(),
            &[
                "--request-rate",
                "1000",
                "--arrival-pattern",
                "constant",
                "--benchmark-duration",
                &seconds_text,
                "--isl",
                "16",
                "--osl",
                "4",
            ],
        )?;
        let mut starts = Vec::new();
        run.records(|record| starts.push(record.metadata.request_start_ns))?;
        starts.sort_unstable();
        let first = *starts.first().context("nothing was sent")?;
        let line: Vec<f64> = starts.iter().map(|start| (start - first) as f64).collect();
        Ok([
            (starts.len() as f64 - 1_000.0 * seconds as f64).abs(),
            (slope(&line).context("one request")? / 1e6 - 1.0).abs(),
            drift(&line, 1e6).context("too few requests")?.abs(),
            run.number(&["load_delivery", "lateness", "p99"])? * 1e3,
        ])
    })
}

/// Sends of which the most punctual one stands for all.
const TOGETHER: usize = 100;

/// Share by which the distance of sends is off `step`, judged by the most punctual send of each hundred: what the host holds
/// up is late and never early, and is no drift of the plan. Absent for fewer than two hundred sends.
fn drift(sends: &[f64], step: f64) -> Option<f64> {
    let lateness: Vec<f64> = sends.iter().enumerate().map(|(index, at)| at - index as f64 * step).collect();
    let least: Vec<f64> =
        lateness.chunks_exact(TOGETHER).map(|some| some.iter().copied().fold(f64::MAX, f64::min)).collect();
    Some(slope(&least)? / (TOGETHER as f64 * step))
}

/// 50 a second under a cap of three with a service of 2 s: arrivals without a slot are skipped, the clock goes on.
pub(super) fn capped_rate(bench: &Bench) -> Result<Vec<Figure>> {
    let expected_ms = [0.0, 20.0, 40.0, 2_020.0, 2_040.0, 2_060.0];
    let checks =
        [Check::must("rate 50, cap 3, service 2 s: farthest send off its time", "ms", Limit::AtMost(1.0))];
    repeat(bench, checks, || {
        let folder = bench.fresh_folder(ROW)?;
        let mock = Mock::start(bench, &folder, &[("ttft", "2s"), ("itl", "0")])?;
        let run = client::profile(
            bench,
            &folder,
            &mock.url(),
            &[
                "--request-rate",
                "50",
                "--arrival-pattern",
                "constant",
                "--concurrency",
                "3",
                "--request-count",
                "6",
                "--isl",
                "16",
                "--osl",
                "1",
            ],
        )?;
        let mut starts = Vec::new();
        run.records(|record| starts.push(record.metadata.request_start_ns))?;
        starts.sort_unstable();
        ensure!(starts.len() == expected_ms.len(), "{} sends", starts.len());
        let worst = starts
            .iter()
            .zip(expected_ms)
            .map(|(start, expected)| ((start - starts[0]) as f64 / 1e6 - expected).abs())
            .fold(0.0, f64::max);
        Ok([worst])
    })
}

/// Two sessions: recorded times ahead and overtaken, and delays after an answer.
const SESSIONS: &str = r#"{"session_id":"a","timestamp":0,"input_length":20,"output_length":4}
{"session_id":"a","timestamp":300,"input_length":20,"output_length":4}
{"session_id":"a","delay":150,"input_length":20,"output_length":4}
{"session_id":"b","timestamp":100,"input_length":20,"output_length":4}
{"session_id":"b","delay":250,"input_length":20,"output_length":4}
{"session_id":"b","timestamp":120,"input_length":20,"output_length":4}
"#;

/// A recorded schedule of sessions: each turn leaves at the later of its time and its turn.
pub(super) fn sessions(bench: &Bench) -> Result<Vec<Figure>> {
    let checks = [Check::must("sessions with times and delays: farthest send off", "ms", Limit::AtMost(1.0))];
    repeat(bench, checks, || {
        let folder = bench.fresh_folder(ROW)?;
        let trace = folder.join("sessions.jsonl");
        std::fs::write(&trace, SESSIONS)?;
        let mock = Mock::start(bench, &folder, &[("ttft", "50ms"), ("itl", "0")])?;
        let trace = trace.to_str().context("a folder whose name is no text")?;
        let run = client::profile(
            bench,
            &folder,
            &mock.url(),
            &["--custom-dataset-type", "mooncake_trace", "--input-file", trace],
        )?;
        let mut turns = HashMap::new();
        run.records(|record| {
            let at = record.metadata;
            if let (Some(session), Some(turn)) = (at.conversation_id, at.turn_index) {
                turns.insert(
                    (session, turn),
                    (at.request_start_ns as f64 / 1e6, at.request_end_ns as f64 / 1e6),
                );
            }
        })?;
        ensure!(turns.len() == 6, "{} turns: {turns:?}", turns.len());
        let turn = |session: &str, index: u64| {
            turns
                .get(&(session.to_owned(), index))
                .copied()
                .with_context(|| format!("no turn {session} {index}"))
        };
        let zero = turn("a", 0)?.0;
        let expected = [
            (turn("a", 1)?.0, zero + 300.0),
            (turn("a", 2)?.0, turn("a", 1)?.1 + 150.0),
            (turn("b", 0)?.0, zero + 100.0),
            (turn("b", 1)?.0, turn("b", 0)?.1 + 250.0),
            (turn("b", 2)?.0, turn("b", 1)?.1),
        ];
        Ok([expected.into_iter().map(|(at, due)| (at - due).abs()).fold(0.0, f64::max)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_of_the_plan_and_not_of_single_sends_that_were_held_up() {
        let held_up = |index: u32| if index % 7 == 3 && index > 4_000 { 4e6 } else { 3e4 };
        let straight: Vec<f64> = (0..6_000).map(|index| f64::from(index) * 1e6 + held_up(index)).collect();
        assert!(drift(&straight, 1e6).unwrap().abs() < 1e-9);
        assert!((slope(&straight).unwrap() / 1e6 - 1.0).abs() > 1e-6);
        let drifting: Vec<f64> =
            (0..6_000).map(|index| f64::from(index) * 1.000_01e6 + held_up(index)).collect();
        assert!((drift(&drifting, 1e6).unwrap() - 1e-5).abs() < 1e-8);
        assert_eq!(drift(&straight[..150], 1e6), None);
    }
}
