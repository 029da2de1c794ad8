//! Shared by the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aiperf_cli::environment::Environment;
use aiperf_cli::settle::{self, DatasetProbe, Found, Settled, Timing};
use aiperf_cli::typed::Typed;
use aiperf_cli::usage::UsageError;
use aiperf_config::{FileFormat, InputColumns};

/// A probe that answers from what it was told.
pub(crate) struct Told {
    pub(crate) detected: FileFormat,
    pub(crate) timing: Timing,
}

impl Default for Told {
    fn default() -> Self {
        let timing = Timing { timestamp: true, delay: false, promotes: true };
        Told { detected: FileFormat::MooncakeTrace, timing }
    }
}

impl DatasetProbe for Told {
    fn detect(&self, _: &Path, columns: &InputColumns) -> Result<Found, String> {
        let promotes = self.timing.timestamp && aiperf_dataset::format(self.detected).promotes;
        Ok(Found { format: self.detected, columns: columns.clone(), promotes })
    }

    fn first_record_timing(&self, _: &Path, format: FileFormat, _: &InputColumns) -> Result<Timing, String> {
        Ok(Timing { promotes: aiperf_dataset::format(format).promotes, ..self.timing })
    }
}

/// A file that comes with the tests.
pub(crate) fn data(name: &str) -> String {
    path(&format!("tests/data/files/{name}")).display().to_string()
}

/// A path in this crate.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Reads and settles the flags of a `profile` command line, after `--model m`.
pub(crate) fn settle(arguments: &[&str]) -> Result<Settled, UsageError> {
    settle_with(arguments, &Environment::default(), &Told::default())
}

pub(crate) fn settle_with(
    arguments: &[&str],
    environment: &Environment,
    probe: &dyn DatasetProbe,
) -> Result<Settled, UsageError> {
    let typed = Typed::parse(["profile", "--model", "m"].iter().chain(arguments))?;
    settle::settle(&typed, environment, probe)
}

/// Settles, and must.
pub(crate) fn settled(arguments: &[&str]) -> Settled {
    settle(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {}", error.report()))
}

/// The run that a command line comes to, without what differs anyway, and what is said of it.
pub(crate) fn effect(arguments: &[&str]) -> Result<(String, Vec<String>), UsageError> {
    let settled = settle(arguments)?;
    let mut config = settled.config;
    config.benchmark_id.clear();
    config.cli_command.clear();
    // What results record of a flag is no effect of it.
    config.input_config = serde_json::Value::Null;
    if !config.seed_given {
        config.seed = 0;
    }
    Ok((format!("{config:?}"), settled.notes.into_iter().map(|note| note.text).collect()))
}

/// Splits at white space; `@name` is a file of the test data.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| word.strip_prefix('@').map_or_else(|| word.to_owned(), data)).collect()
}

pub(crate) fn settle_line(line: &str) -> Result<Settled, UsageError> {
    let words = words(line);
    settle(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs a command that makes something in `directory` and interrupts it as soon as that is there; what it said. Nothing
/// new is left.
pub(crate) fn interrupted(arguments: &[&str], directory: &Path) -> String {
    let entries = || std::fs::read_dir(directory).unwrap().count();
    let before = entries();
    let child = Command::new(env!("CARGO_BIN_EXE_aiperf"))
        .env_clear()
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Something is made once signals are heard.
    while entries() == before {
        std::thread::yield_now();
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.ends_with("error: interrupted; nothing was left behind\n"), "{said}");
    assert_eq!(entries(), before);
    said
}
