//! The mock server in a process of its own.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use aiperf_clock::Mono;
use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use serde::Deserialize;

use super::Bench;
use super::process::{Running, tail, threads_cpu_sec};

/// A running mock server.
#[derive(Debug)]
pub(crate) struct Mock {
    process: Running,
    port: u16,
    log: Option<PathBuf>,
}

/// CPU of the server at one instant, for differences.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    threads: Vec<f64>,
}

impl Reading {
    /// CPU seconds of all threads since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> f64 {
        self.threads.iter().sum::<f64>() - earlier.threads.iter().sum::<f64>()
    }

    /// CPU seconds since `earlier` of the thread that worked most: the network thread.
    pub(crate) fn busiest_since(&self, earlier: &Self) -> f64 {
        self.threads.iter().zip(&earlier.threads).map(|(now, then)| now - then).fold(0.0, f64::max)
    }
}

/// What the server says of one request; times are of the monotonic clock.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) request_id: Option<String>,
    pub(crate) head_ns: u64,
    pub(crate) received_ns: Option<u64>,
    pub(crate) first_token_ns: Option<u64>,
    pub(crate) end_ns: u64,
    pub(crate) aborted: bool,
}

impl Mock {
    /// Starts one with one network thread and estimated usage; `settings` are pairs like `("ttft", "20ms")`.
    pub(crate) fn start(bench: &Bench, folder: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        Self::launch(bench, folder, settings, None)
    }

    /// The same with a timing log.
    pub(crate) fn start_logging(bench: &Bench, folder: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        Self::launch(bench, folder, settings, Some(folder.join("mock-log.jsonl")))
    }

    fn launch(bench: &Bench, folder: &Path, settings: &[(&str, &str)], log: Option<PathBuf>) -> Result<Self> {
        let own = folder.join("mock");
        std::fs::create_dir_all(&own)?;
        let mut command = Command::new(&bench.binary);
        command.args(["mock-server", "--port", "0", "--threads", "1", "--usage", "estimate"]);
        for (name, value) in settings {
            command.arg(format!("--{name}")).arg(value);
        }
        if let Some(log) = &log {
            command.arg("--log").arg(log);
        }
        let process = Running::start(command, &own)?;
        let stdout = own.join("stdout.txt");
        for _ in 0..1_000 {
            let text = std::fs::read_to_string(&stdout).unwrap_or_default();
            if let Some(line) = text.strip_suffix('\n') {
                let port = line.rsplit(':').next().and_then(|port| port.parse().ok());
                let port = port.with_context(|| format!("the mock server said `{line}`"))?;
                return Ok(Self { process, port, log });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("the mock server does not listen\n{}", tail(&own.join("stderr.txt")))
    }

    /// Host and port.
    pub(crate) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// For `--url`.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// CPU used so far.
    pub(crate) fn reading(&self) -> Reading {
        Reading { threads: threads_cpu_sec(self.process.id()) }
    }

    /// Whether a request has ended, by the log.
    pub(crate) fn answered(&self) -> bool {
        self.log.as_ref().and_then(|log| log.metadata().ok()).is_some_and(|file| file.len() > 0)
    }

    /// Ends the server and hands every line of its log to `each`.
    pub(crate) fn stop_and_read(self, mut each: impl FnMut(Entry)) -> Result<()> {
        let log = self.log.clone().context("the server keeps no log")?;
        self.process.kill(Signal::TERM);
        self.process.wait_and(Duration::from_mins(1), Duration::from_mins(1), || false)?;
        let file = File::open(&log).with_context(|| format!("cannot read {}", log.display()))?;
        for line in BufReader::new(file).lines() {
            each(serde_json::from_str(&line?).context("a line of the mock's log")?);
        }
        Ok(())
    }

    /// Ends the server and gives the instant the first request's head was read.
    pub(crate) fn stop_and_find_first(self) -> Result<Mono> {
        let mut first = u64::MAX;
        self.stop_and_read(|entry| first = first.min(entry.head_ns))?;
        if first == u64::MAX {
            bail!("no request reached the server");
        }
        Ok(Mono(first))
    }
}
