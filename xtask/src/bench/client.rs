//! The client under test: its command, and reading what it wrote.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::Bench;
use super::process::{Running, Used, tail};

/// The longest any run may take.
pub(crate) const LIMIT: Duration = Duration::from_mins(10);

/// A finished run of the client.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) used: Used,
    /// `profile_export_aiperf.json`.
    pub(crate) summary: Value,
    folder: PathBuf,
}

/// The part of a line of `profile_export.jsonl` that rows look at.
#[derive(Debug, Deserialize)]
pub(crate) struct Record {
    pub(crate) metadata: Metadata,
    pub(crate) metrics: Value,
}

/// Identity and instants (wall clock, ns) of a record.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) x_request_id: String,
    #[serde(default)]
    pub(crate) x_correlation_id: String,
    pub(crate) conversation_id: Option<String>,
    pub(crate) turn_index: Option<u64>,
    pub(crate) request_start_ns: u64,
    pub(crate) request_end_ns: u64,
    pub(crate) benchmark_phase: String,
}

/// The flags of every run of either client: `--tokenizer builtin --ui none`, a seed, and default exports to `artifacts`.
pub(crate) fn common(command: &mut Command, url: &str, artifacts: &Path) {
    command.args(["profile", "--endpoint-type", "chat"]);
    beside_endpoint(command, url, artifacts);
}

/// The same without what is asked.
fn beside_endpoint(command: &mut Command, url: &str, artifacts: &Path) {
    command
        .args(["--model", "mock-model", "--tokenizer", "builtin"])
        .args(["--ui", "none", "--random-seed", "7", "--url", url, "--artifact-dir"])
        .arg(artifacts);
}

/// Starts the client; `arguments` come after the common ones.
pub(crate) fn start(bench: &Bench, folder: &Path, url: &str, arguments: &[&str]) -> Result<Running> {
    let artifacts = folder.join("artifacts");
    if artifacts.exists() {
        std::fs::remove_dir_all(&artifacts)?;
    }
    let mut command = Command::new(&bench.binary);
    if arguments.contains(&"--endpoint-type") {
        command.arg("profile");
        beside_endpoint(&mut command, url, &artifacts);
    } else {
        common(&mut command, url, &artifacts);
    }
    command.args(arguments).current_dir(folder);
    Running::start(command, folder)
}

/// Runs the client to its end; an error unless it exits with 0 and every request succeeded.
pub(crate) fn profile(bench: &Bench, folder: &Path, url: &str, arguments: &[&str]) -> Result<Run> {
    let run = profile_to_code(bench, folder, url, arguments, 0)?;
    let errors = &run.summary["error_summary"];
    if errors.as_array().is_none_or(|list| !list.is_empty()) {
        bail!("requests failed: {errors}");
    }
    Ok(run)
}

/// The same where failed requests are part of the plan; an error unless it exits with `code`.
pub(crate) fn profile_to_code(
    bench: &Bench,
    folder: &Path,
    url: &str,
    arguments: &[&str],
    code: i32,
) -> Result<Run> {
    let used = start(bench, folder, url, arguments)?.wait(LIMIT)?;
    if used.code != Some(code) {
        bail!(
            "the client ended with {:?} instead of {code}\n{}",
            used.code,
            tail(&folder.join("stderr.txt"))
        );
    }
    let path = folder.join("artifacts/profile_export_aiperf.json");
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let summary = serde_json::from_reader(BufReader::new(file)).context("the client's summary")?;
    Ok(Run { used, summary, folder: folder.to_path_buf() })
}

impl Run {
    /// A number of the summary by its keys.
    pub(crate) fn number(&self, keys: &[&str]) -> Result<f64> {
        let mut value = &self.summary;
        for key in keys {
            value = &value[key];
        }
        value.as_f64().with_context(|| format!("the summary has no {}", keys.join(".")))
    }

    /// Finished requests of the profiling phase.
    pub(crate) fn requests(&self) -> Result<f64> {
        self.number(&["request_count", "avg"])
    }

    /// Hands each record of the profiling phase to `each`, in the order of the file.
    pub(crate) fn records(&self, mut each: impl FnMut(Record)) -> Result<()> {
        let path = self.folder.join("artifacts/profile_export.jsonl");
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for line in BufReader::new(file).lines() {
            let record: Record = serde_json::from_str(&line?).context("a line of profile_export.jsonl")?;
            if record.metadata.benchmark_phase == "profiling" {
                each(record);
            }
        }
        Ok(())
    }
}
