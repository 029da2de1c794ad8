//! A machine with a home of its own, and the program on it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use aiperf_test_servers::StubHub;
use serde_json::Value;
use tempfile::TempDir;

/// Three requests within 274 ms.
pub(crate) const TRACE: &[u8] =
    b"{\"timestamp\": 0, \"input_length\": 1200, \"output_length\": 52, \"hash_ids\": [0, 1, 2]}\n\
{\"timestamp\": 105, \"input_length\": 1800, \"output_length\": 26, \"hash_ids\": [0, 3, 4, 5]}\n\
{\"timestamp\": 274, \"input_length\": 1300, \"output_length\": 52, \"hash_ids\": [1, 4, 6]}\n";
/// What a folder with them declares.
pub(crate) const MANIFEST: &[u8] =
    b"{\"path\": \"trace.jsonl\", \"format\": \"mooncake_trace\", \"block_size\": 512}";

/// A machine with an empty home.
pub(crate) struct Machine {
    pub(crate) home: TempDir,
    pub(crate) variables: Vec<(String, String)>,
}

impl Machine {
    /// Without a Hub.
    pub(crate) fn bare() -> Machine {
        Machine { home: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    /// With a Hub, and a token that it knows.
    pub(crate) fn new(hub: &StubHub) -> Machine {
        let mut machine = Machine::bare();
        machine.set("HF_ENDPOINT", &hub.endpoint());
        machine.set("HF_TOKEN", "hf_good");
        machine
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.into(), value.into()));
    }

    /// `aiperf` with the variables of this machine, and no others.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.through(Command::new(env!("CARGO_BIN_EXE_aiperf")), arguments)
    }

    /// The same, started by another program that takes it as its last arguments.
    pub(crate) fn through(&self, mut command: Command, arguments: &[&str]) -> Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .args(arguments)
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn aiperf(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Starts it.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Fetches a reference, which must work: what `--json` shows of it.
    pub(crate) fn fetched(&self, reference: &str) -> Value {
        let output = self.aiperf(&["dataset", "fetch", "--json", reference]);
        assert_eq!(output.status.code(), Some(0), "{reference}: {}", stderr(&output));
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        all[0].clone()
    }

    /// The cache of S3 and HTTPS files.
    pub(crate) fn cache(&self) -> PathBuf {
        self.home.path().join(".cache/aiperf/remote/v1")
    }

    /// The one file in that cache.
    pub(crate) fn cached(&self) -> Vec<u8> {
        let is_content = |path: &&PathBuf| path.components().any(|part| part.as_os_str() == "files");
        let all = files_below(&self.cache());
        let content: Vec<_> = all.iter().filter(is_content).collect();
        assert_eq!(content.len(), 1, "{all:?}");
        std::fs::read(content[0]).unwrap()
    }

    pub(crate) fn profile(&self, arguments: &[&str]) -> Output {
        let common =
            ["profile", "--model", "m", "--url", "mock://?ttft=1ms&itl=0ms", "--output-artifact-dir", "out"];
        self.aiperf(&[&common[..], arguments].concat())
    }

    pub(crate) fn summary(&self) -> Value {
        let text = std::fs::read(self.home.path().join("out/profile_export_aiperf.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Every file below a folder, links followed to files only.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found
}
