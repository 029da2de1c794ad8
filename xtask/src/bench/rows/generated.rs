//! Generated requests: how fast they are made, and in how much memory. None is sent.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::datasets::configured;
use crate::bench::Bench;
use crate::bench::client::LIMIT;
use crate::bench::figure::{Figure, Judged, Limit, Rival};
use crate::bench::mock::Mock;
use crate::bench::process::{Running, Used, tail};
use crate::bench::progress::say;

/// What is made.
struct Kind {
    row: &'static str,
    what: &'static str,
    /// The switch of `cargo xtask prepare`.
    switch: &'static str,
    /// How many are made here, and how many by the reference, which takes as long for each.
    ours: u64,
    theirs: u64,
    /// What the reference is asked for.
    arguments: &'static [&'static str],
    /// How many times less than the reference one must take.
    factor: f64,
    /// Peak memory, MiB.
    memory: f64,
}

/// 100,000 prompts of 1,000 tokens.
pub(crate) fn prompts(bench: &Bench) -> Result<Vec<Figure>> {
    measure(
        bench,
        &Kind {
            row: "prompts",
            what: "prompts of 1,000 tokens",
            switch: "--prompts",
            ours: bench.size(100_000, 2_000),
            theirs: bench.size(10_000, 200),
            arguments: &["--isl", "1000"],
            factor: 50.0,
            memory: 128.0,
        },
    )
}

/// 1,000 PNG images of 512x512 pixels, and JPEG images of that size.
pub(crate) fn images(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = measure(
        bench,
        &Kind {
            row: "images",
            what: "PNG images of 512x512",
            switch: "--images",
            ours: bench.size(1_000, 50),
            theirs: bench.size(1_000, 20),
            arguments: &[
                "--isl",
                "16",
                "--image-width-mean",
                "512",
                "--image-height-mean",
                "512",
                "--image-format",
                "png",
                "--image-source",
                "noise",
            ],
            factor: 10.0,
            memory: 128.0,
        },
    )?;
    figures.push(jpegs(bench)?);
    Ok(figures)
}

/// Noise is the hardest there is to compress.
fn jpegs(bench: &Bench) -> Result<Figure> {
    let (row, count) = ("images", bench.size(1_000, 50));
    let mut each = Vec::new();
    for run in 1..=bench.runs {
        let (used, said) = prepared(bench, row, "--jpegs", count)?;
        each.push(used.cpu_sec / count as f64 * 1e3);
        say(format_args!("  run {run} JPEG      {:9.2} s CPU, {said}", used.cpu_sec));
    }
    Ok(Figure::new(row, format!("{count} JPEG images of 512x512, CPU of each"), "ms", each)
        .must(Limit::AtMost(40.0)))
}

/// Makes `count` bodies in a process of its own, which says how many they were.
fn prepared(bench: &Bench, row: &str, switch: &str, count: u64) -> Result<(Used, String)> {
    let folder = bench.fresh_folder(row)?;
    let mut command = Command::new(std::env::current_exe().context("the harness cannot find itself")?);
    command.args(["prepare", switch, &count.to_string()]);
    let used = Running::start(command, &folder)?.wait(LIMIT)?;
    ensure!(used.code == Some(0), "prepare failed\n{}", tail(&folder.join("stderr.txt")));
    let said = std::fs::read_to_string(folder.join("stdout.txt"))?;
    ensure!(said.starts_with(&format!("{count} bodies")), "prepare made {said}");
    Ok((used, said.trim_end().to_owned()))
}

fn measure(bench: &Bench, kind: &Kind) -> Result<Vec<Figure>> {
    let (mut ours, mut theirs, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for run in 1..=bench.runs {
        let (used, said) = prepared(bench, kind.row, kind.switch, kind.ours)?;
        ours.push(used.wall_sec / kind.ours as f64 * 1e6);
        memory.push(used.peak_bytes as f64 / 1_048_576.0);
        say(format_args!(
            "  run {run} ours      {:9.2} s ({:.2} s CPU, {:.1} MiB), {}",
            used.wall_sec,
            used.cpu_sec,
            memory.last().copied().unwrap_or(0.0),
            said
        ));
        // Many times ours: once is enough to show the distance.
        if let Some(reference) = bench.reference.as_ref().filter(|_| run == 1) {
            let folder = bench.fresh_folder(kind.row)?;
            let mock = Mock::start_logging(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
            let entries = kind.theirs.to_string();
            let mut arguments = vec!["--num-dataset-entries", &entries, "--request-count", "1"];
            arguments.extend(["--concurrency", "1"].iter().chain(kind.arguments));
            let client = reference.start(&folder, &mock.url(), &arguments)?;
            client.wait_watching_tree_until(LIMIT, || mock.answered())?;
            let seconds = configured(&folder.join("reference/artifacts/logs/aiperf.log"))?;
            theirs.push(seconds / kind.theirs as f64 * 1e6);
            say(format_args!("  run {run} reference {seconds:9.2} s for {entries}"));
        }
    }
    let figure = Figure::new(kind.row, format!("{} {}, each", kind.ours, kind.what), "us", ours);
    let figure = if theirs.is_empty() {
        figure
    } else {
        let rival = Rival { name: "reference", samples: theirs };
        figure.against(rival, Judged::RivalOverOurs).must(Limit::AtLeast(kind.factor)).note(format!(
            "ours from process start to end; the reference's by its log, once, for {}",
            kind.theirs
        ))
    };
    let memory = Figure::new(kind.row, "its peak memory", "MiB", memory).must(Limit::AtMost(kind.memory));
    Ok(vec![figure, memory])
}
