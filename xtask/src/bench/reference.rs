//! The reference, installed from the Python package index into a virtual environment that is kept.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::client::{self, LIMIT};
use super::process::{Running, Used, tail};
use super::progress::say;

const REQUIREMENT: &str = "aiperf==0.13.0";

/// Name under which the reference's tokenizer keeps a vocabulary: SHA-1 of
/// `https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken`.
const VOCABULARY: &str = "fb374d419588a4632f3f557e76b4b70aebbca790";

/// The crate that carries that file.
const VOCABULARY_CRATE: &str = "tiktoken-rs-0.12.1";

/// An installed reference.
#[derive(Debug)]
pub(crate) struct Reference {
    program: PathBuf,
    vocabulary: PathBuf,
}

impl Reference {
    /// Takes the `installed` one, or installs what is missing below `home`.
    pub(crate) fn ready(home: &Path, installed: Option<&Path>) -> Result<Self> {
        let environment = home.join("reference");
        let program = match installed {
            Some(program) if !program.is_file() => bail!("--reference {}: no such file", program.display()),
            Some(program) => program.to_path_buf(),
            None => environment.join("bin/aiperf"),
        };
        let reference = Self { program, vocabulary: home.join("vocabulary") };
        if !reference.program.is_file() {
            say(format_args!("installing {REQUIREMENT} into {}", environment.display()));
            step(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
            step(Command::new(environment.join("bin/pip")).args(["install", "--quiet", REQUIREMENT]))?;
        }
        let file = reference.vocabulary.join(VOCABULARY);
        if !file.is_file() {
            std::fs::create_dir_all(&reference.vocabulary)?;
            let from = vocabulary_in_registry()?;
            std::fs::copy(&from, &file).with_context(|| format!("cannot copy {}", from.display()))?;
        }
        Ok(reference)
    }

    /// Its program, without arguments.
    pub(crate) fn command(&self) -> Command {
        Command::new(&self.program)
    }

    /// Starts a run with the same common flags as ours; probes that have nothing to probe are off.
    pub(crate) fn start(&self, folder: &Path, url: &str, arguments: &[&str]) -> Result<Running> {
        let own = folder.join("reference");
        if own.exists() {
            std::fs::remove_dir_all(&own)?;
        }
        std::fs::create_dir_all(&own)?;
        let mut command = Command::new(&self.program);
        client::common(&mut command, url, &own.join("artifacts"));
        command
            .args(["--no-gpu-telemetry", "--no-server-metrics"])
            .args(arguments)
            .env("TIKTOKEN_CACHE_DIR", &self.vocabulary)
            .env("HF_HUB_OFFLINE", "1")
            // It keeps prepared data below the home folder and would not prepare them again.
            .env("HOME", &own)
            .current_dir(&own);
        Running::start(command, &own)
    }

    /// A run to its end, CPU and memory of the whole tree.
    pub(crate) fn profile(&self, folder: &Path, url: &str, arguments: &[&str]) -> Result<Used> {
        let used = self.start(folder, url, arguments)?.wait_watching_tree(LIMIT)?;
        if used.code != Some(0) {
            let own = folder.join("reference");
            bail!(
                "the reference ended with {:?}\n{}\n{}",
                used.code,
                tail(&own.join("stdout.txt")),
                tail(&own.join("stderr.txt"))
            );
        }
        Ok(used)
    }

    /// Where its records of a run in `folder` are.
    pub(crate) fn records(folder: &Path) -> PathBuf {
        folder.join("reference/artifacts/profile_export.jsonl")
    }
}

fn step(command: &mut Command) -> Result<()> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn vocabulary_in_registry() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let sources = home.context("neither CARGO_HOME nor HOME is set")?.join("registry/src");
    for registry in std::fs::read_dir(&sources).with_context(|| format!("no {}", sources.display()))? {
        let file = registry?.path().join(VOCABULARY_CRATE).join("assets/o200k_base.tiktoken");
        if file.is_file() {
            return Ok(file);
        }
    }
    bail!("{VOCABULARY_CRATE} is not in {}: run `cargo fetch` first", sources.display())
}
