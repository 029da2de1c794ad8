//! The settled description of one run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::Tuning;
use crate::dataset::{DatasetConfig, DatasetSource};
use crate::endpoint::EndpointConfig;
use crate::phase::{LoadMode, PhaseConfig, StopRule};

/// Everything a run needs to know.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// 12 hex digits that name the run.
    pub benchmark_id: String,
    /// The seed in effect: the one given, or one drawn for this run.
    pub seed: u64,
    /// Whether the seed was given; only then are session ids counted instead of random.
    pub seed_given: bool,
    /// Model names; the first is the default.
    pub models: Vec<String>,
    /// Where and how requests go.
    pub endpoint: EndpointConfig,
    /// What is sent.
    pub dataset: DatasetConfig,
    /// What counts tokens.
    pub tokenizer: TokenizerConfig,
    /// The phases, in order: at most one warmup, then profiling.
    pub phases: Vec<PhaseConfig>,
    /// Run is cancelled when errors / records of the profiling phase exceeds this (T-63).
    pub failed_request_threshold: Option<f64>,
    /// Round trip to subtract in the network-adjusted copies, ms.
    pub network_latency_mean_ms: Option<f64>,
    /// What is written.
    pub output: OutputConfig,
    /// How the client itself runs.
    pub runtime: RuntimeConfig,
    /// What the environment sets.
    pub tuning: Tuning,
    /// A verdict `suspect` is exit code 3.
    pub strict_load: bool,
    /// The command line as recorded in results, secrets redacted (MX-105).
    pub cli_command: String,
    /// Where the data came from, when it was not this machine.
    pub remote: Option<RemoteDataset>,
    /// `input_config` of the JSON export: what was set, in the reference's layout (MX-104).
    pub input_config: Value,
}

impl RunConfig {
    /// The profiling phase.
    pub fn profiling(&self) -> &PhaseConfig {
        // Invariant: settling puts exactly one profiling phase last.
        &self.phases[self.phases.len() - 1]
    }

    /// Adds to `input_config` which version of the tokenizer a name stood for.
    pub fn note_tokenizer_revision(&mut self, revision: &str) {
        if let Some(Value::Object(tokenizer)) = self.input_config.get_mut("tokenizer") {
            tokenizer.insert("resolved_revision".into(), revision.into());
        }
    }

    /// Completes `input_config` with what only the loaded data tell: a fixed schedule without a request count plays
    /// every turn there is.
    pub fn note_scheduled_turns(&mut self, turns: u64) {
        if !matches!(self.profiling().mode, LoadMode::FixedSchedule(_))
            || self.profiling().stop.requests.is_some()
        {
            return;
        }
        self.note_in_phase("requests", turns);
    }

    /// Notes how much a public data set held, where that is known only now.
    pub fn note_public_dataset(&mut self, rows: Option<u64>, conversations: u64, requests: Option<u64>) {
        let Some(remote) = self.remote.as_mut().filter(|_| self.dataset.public.is_some()) else { return };
        let Value::Object(provenance) = &mut remote.provenance else { return };
        for (key, count) in
            [("rows_read", rows), ("conversations", Some(conversations)), ("requests", requests)]
        {
            if let Some(count) = count {
                provenance.entry(key).or_insert(count.into());
            }
        }
    }

    /// Completes a plan without any stop rule: it plays each of the `conversations` once.
    pub fn note_conversations(&mut self, conversations: u64) {
        let Some(phase) = self.phases.last_mut() else { return };
        if phase.stop != StopRule::default() || matches!(phase.mode, LoadMode::FixedSchedule(_)) {
            return;
        }
        phase.stop.sessions = Some(conversations);
        self.note_in_phase("sessions", conversations);
    }

    /// The path that data from elsewhere were brought to, and the name that stands for it in texts for people.
    pub fn brought(&self) -> Option<(&Path, &str)> {
        let DatasetSource::File(file) = &self.dataset.source else { return None };
        let name = self.remote.as_ref()?.name.as_deref()?;
        Some((&file.path, name.strip_suffix('/').unwrap_or(name)))
    }

    fn note_in_phase(&mut self, key: &str, count: u64) {
        let phase = self
            .input_config
            .get_mut("phases")
            .and_then(Value::as_array_mut)
            .and_then(|phases| phases.last_mut());
        if let Some(Value::Object(phase)) = phase {
            let at = phase.keys().position(|key| key == "type").map_or(phase.len(), |at| at + 1);
            phase.shift_insert(at, key.into(), count.into());
        }
    }
}

/// Data that were fetched for the run.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteDataset {
    /// As they were named, credentials hidden; `None` where no one name stands for the path that is read.
    pub name: Option<String>,
    /// What the log says about it, a line each.
    pub lines: Vec<String>,
    /// `metadata.dataset` of the JSON export: reference, version, files with their digests.
    pub provenance: Value,
}

/// What counts tokens.
#[derive(Clone, Debug)]
pub struct TokenizerConfig {
    /// Which tokenizer.
    pub source: TokenizerSource,
    /// Branch, tag or commit on the hub.
    pub revision: String,
    /// Count inputs through the chat template.
    pub apply_chat_template: bool,
}

/// Which tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenizerSource {
    /// The embedded `o200k_base`.
    Builtin,
    /// A hub name, a folder, or a `tokenizer.json`.
    Named(String),
}

/// How much is written per request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExportLevel {
    /// Aggregates only.
    Summary,
    /// One line per request.
    #[default]
    Records,
    /// And everything that came back.
    Raw,
}

/// What is written, and where.
#[derive(Clone, Debug)]
pub struct OutputConfig {
    /// Folder of the results.
    pub dir: PathBuf,
    /// Prefix of the file names, when one was chosen.
    pub prefix: Option<String>,
    /// Detail.
    pub level: ExportLevel,
    /// `trace_data` in the records.
    pub http_trace: bool,
    /// A console table of the trace timings.
    pub show_trace_timing: bool,
    /// Internal metrics are shown and exported.
    pub show_internal_metrics: bool,
    /// Experimental metrics are computed, shown and exported.
    pub show_experimental_metrics: bool,
}

/// What the user sees while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ui {
    /// Nothing, and no live lines: chosen explicitly.
    None,
    /// Log lines and the live block: not a terminal.
    Lines,
    /// One bar at a time.
    Simple,
}

/// How the client itself runs.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Network workers; `None` is by cores.
    pub workers: Option<usize>,
    /// Record processors; `None` is by cores.
    pub record_processors: Option<usize>,
    /// Progress.
    pub ui: Ui,
    /// Seconds between live blocks; `None` is the default of the view, 0 is off.
    pub stats_interval: Option<Duration>,
    /// Lowest level that is logged: 0 trace … 7 critical (MX-143).
    pub log_level: u8,
}
