//! Replay of a trace of completions whose prompts are far larger than memory may grow.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use aiperf_config::{DatasetConfig, DatasetSource, EndpointKind, FileDataset, FileFormat};
use aiperf_dataset::{OpenContext, Survey, open};
use anyhow::{Context as _, Result, bail, ensure};

use crate::bench::Bench;
use crate::bench::client::{self, LIMIT};
use crate::bench::figure::{Figure, Limit};
use crate::bench::mock::Mock;
use crate::bench::process::tail;
use crate::bench::progress::say;

const ROW: &str = "replay-large";
/// The trace lasts two hours; so it is over in 40 s.
const SPEEDUP: &str = "180";

/// A 2 GB trace in the order of its times, and the same rows shuffled.
pub(crate) fn large(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut bodies = Vec::new();
    for (shuffled, name) in [(false, "in order"), (true, "shuffled")] {
        let file = write(bench, shuffled)?;
        let input = file.to_str().context("the folder has no plain name")?;
        let arguments = [
            "--endpoint-type",
            "completions",
            "--custom-dataset-type",
            "baseten_trace",
            "--input-file",
            input,
            "--replay-speedup",
            SPEEDUP,
            "--streaming",
            // Two gigabytes of text take a tokenizer longer than the replay lasts.
            "--use-server-token-count",
        ];
        let (mut wall, mut memory, mut first) = (Vec::new(), Vec::new(), Vec::new());
        for run in 1..=bench.runs.min(3) {
            let folder = bench.fresh_folder(ROW)?;
            let mock = Mock::start_logging(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
            let used = client::start(bench, &folder, &mock.url(), &arguments)?.wait(LIMIT)?;
            ensure!(used.code == Some(0), "the replay failed\n{}", tail(&folder.join("stderr.txt")));
            let (mut sent, mut head) = (0, u64::MAX);
            mock.stop_and_read(|entry| {
                sent += 1;
                head = head.min(entry.head_ns);
            })?;
            ensure!(sent == rows(bench), "{sent} requests reached the server, not {}", rows(bench));
            wall.push(used.wall_sec);
            memory.push(used.peak_bytes as f64 / 1_048_576.0);
            first.push(head.saturating_sub(used.started.0) as f64 / 1e6);
            say(format_args!(
                "  run {run} {name:<9} {:6.1} s, {:6.1} MiB, first request after {:.0} ms",
                used.wall_sec,
                used.peak_bytes as f64 / 1_048_576.0,
                first.last().copied().unwrap_or(0.0)
            ));
        }
        let figure = |what: &str, unit, samples, most| {
            let what = format!("{what}, 2 GB baseten_trace {name}");
            Figure::new(ROW, what, unit, samples).must(Limit::AtMost(most))
        };
        figures.push(figure("replay", "s", wall, 60.0));
        figures.push(figure("peak memory", "MiB", memory, 300.0));
        figures.push(figure("start to first request", "ms", first, 2_000.0));
        bodies.push(digest(&file)?);
    }
    if bodies[0] != bodies[1] {
        bail!("the shuffled rows make other requests");
    }
    Ok(figures)
}

fn rows(bench: &Bench) -> u64 {
    bench.size(20_000, 500)
}

/// The file is kept: making it takes longer than a run.
fn write(bench: &Bench, shuffled: bool) -> Result<PathBuf> {
    let folder = bench.home.join("data");
    std::fs::create_dir_all(&folder)?;
    let rows = rows(bench);
    let path =
        folder.join(format!("baseten-{rows}-{}.parquet", if shuffled { "shuffled" } else { "in-order" }));
    if path.is_file() {
        return Ok(path);
    }
    say(format_args!("  writing {}", path.display()));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/baseten_trace.py");
    let mut command = Command::new("nice");
    command.args(["python3".as_ref(), script.as_os_str(), path.as_os_str()]);
    command.arg("--rows").arg(rows.to_string()).arg("--environment").arg(bench.home.join("pyarrow"));
    if shuffled {
        command.arg("--shuffled");
    }
    let limit = Duration::from_mins(30);
    let made = crate::bench::process::Running::start(command, &bench.fresh_folder("baseten-script")?)?;
    ensure!(made.wait(limit)?.code == Some(0), "{} failed", script.display());
    Ok(path)
}

/// What all requests of a trace add up to, whatever their order in the file.
fn digest(file: &Path) -> Result<(u64, u64)> {
    let survey = Survey::default();
    let context = OpenContext {
        endpoint: EndpointKind::Completions,
        survey: None,
        ..OpenContext::survey(&survey, true)
    };
    let source = DatasetSource::File(FileDataset::new(file, FileFormat::BasetenTrace));
    let dataset = open(&DatasetConfig::new(source), &context)?;
    let (mut count, mut sum) = (0, 0_u64);
    for index in 0..dataset.len().known() {
        for turn in 0..dataset.outline(index).turns() {
            let conversation = dataset.build_turn(index, turn)?;
            let mut hasher = DefaultHasher::new();
            format!("{} {turn} {:?}", conversation.id, conversation.turns).hash(&mut hasher);
            sum = sum.wrapping_add(hasher.finish());
            count += 1;
        }
    }
    Ok((count, sum))
}
