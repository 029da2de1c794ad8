//! Workloads that are made without sending anything.

use std::process::Command;

use anyhow::{Result, bail};

use crate::bench::Bench;
use crate::bench::client::LIMIT;
use crate::bench::figure::{Figure, Judged, Limit, Rival};
use crate::bench::process::{Running, Used, tail};
use crate::bench::progress::say;

/// `synthesize agentic-code`, 1,000 sessions with all reports, beside the reference.
pub(crate) fn agentic_code(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "agentic-code";
    let sessions = bench.size(1000, 100).to_string();
    let arguments = ["synthesize", "agentic-code", "--num-sessions", &sessions];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for run in 1..=bench.runs {
        ours.push(once(bench, Command::new(&bench.binary), &arguments)?);
        shown(run, "ours", ours.last());
        if let Some(reference) = &bench.reference {
            theirs.push(once(bench, reference.command(), &arguments)?);
            shown(run, "reference", theirs.last());
        }
    }
    let figure = |what: &str, of: fn(&Used) -> f64| {
        let figure =
            Figure::new(row, format!("{sessions} sessions, {what}"), "ms", ours.iter().map(of).collect());
        if theirs.is_empty() {
            return figure;
        }
        let rival = Rival { name: "reference", samples: theirs.iter().map(of).collect() };
        figure.against(rival, Judged::RivalOverOurs).must(Limit::AtLeast(20.0))
    };
    let memory = Figure::new(row, "its peak memory", "MiB", ours.iter().map(mebibytes).collect());
    let memory = if theirs.is_empty() {
        memory
    } else {
        memory.beside(Rival { name: "reference", samples: theirs.iter().map(mebibytes).collect() })
    };
    Ok(vec![
        figure("start to end", |used| used.wall_sec * 1e3),
        figure("CPU", |used| used.cpu_sec * 1e3),
        memory,
    ])
}

/// `synthesize trace`, 1,000,000 rows.
pub(crate) fn trace(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "synthesize-trace";
    let rows = bench.size(1_000_000, 10_000).to_string();
    let arguments = ["synthesize", "trace", "--output", "trace.jsonl", "--num-requests", &rows];
    let mut ours = Vec::new();
    for run in 1..=bench.runs {
        ours.push(once(bench, Command::new(&bench.binary), &arguments)?);
        shown(run, "ours", ours.last());
    }
    Ok(vec![
        Figure::new(
            row,
            format!("{rows} rows, start to end"),
            "s",
            ours.iter().map(|used| used.wall_sec).collect(),
        )
        .must(Limit::AtMost(3.0)),
        Figure::new(row, "its peak memory", "MiB", ours.iter().map(mebibytes).collect())
            .must(Limit::AtMost(64.0)),
    ])
}

fn mebibytes(used: &Used) -> f64 {
    used.peak_bytes as f64 / 1_048_576.0
}

fn shown(run: usize, who: &str, used: Option<&Used>) {
    if let Some(used) = used {
        say(format_args!(
            "  run {run} {who:<9} {:9.1} ms, {:9.1} ms of CPU",
            used.wall_sec * 1e3,
            used.cpu_sec * 1e3
        ));
    }
}

fn once(bench: &Bench, mut command: Command, arguments: &[&str]) -> Result<Used> {
    let folder = bench.fresh_folder("synthesize")?;
    command.args(arguments).current_dir(&folder);
    let used = Running::start(command, &folder)?.wait(LIMIT)?;
    if used.code != Some(0) {
        bail!("ended with {:?}\n{}", used.code, tail(&folder.join("stderr.txt")));
    }
    Ok(used)
}
