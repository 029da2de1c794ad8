//! What a finished run hands over to be shown and kept.

use std::path::PathBuf;

use aiperf_clock::Mono;
use aiperf_config::RunConfig;
use aiperf_metrics::{LoadDelivery, Summary};
use aiperf_types::PhaseKind;

use crate::redact::Redactor;

/// One phase, finished or cut short.
#[derive(Clone, Debug)]
pub struct PhaseResults {
    /// Warmup or profiling.
    pub kind: PhaseKind,
    /// Place among the phases of the run.
    pub index: u16,
    /// T0 of the phase.
    pub start: Mono,
    /// Its last request had come back or was cancelled.
    pub end: Mono,
    /// What its records say.
    pub summary: Summary,
    /// It was cut short by a signal or by a threshold.
    pub was_cancelled: bool,
    /// Requests sent.
    pub sent_count: u64,
    /// Of these, cut off in flight at the end: they left no record.
    pub in_flight_cancelled_count: u64,
    /// What became of the conversations that others started; absent where there were none.
    pub branches: Option<BranchStats>,
    /// Whether the load was delivered as asked; of the profiling phase.
    pub load_delivery: Option<LoadDelivery>,
}

/// Conversations that other ones started, in one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchStats {
    /// Started.
    pub spawned: u64,
    /// Played to their end, the last request answered without an error.
    pub completed: u64,
    /// Played to their end, and the last request failed.
    pub errored: u64,
    /// Started and not played to their end.
    pub truncated: u64,
    /// Started with a wait of their own.
    pub delayed: u64,
    /// Turns that had to wait for children.
    pub suspended: u64,
    /// Of these, turns whose children all finished.
    pub resumed: u64,
}

/// A file of this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// What the console calls it, such as `Records JSONL`.
    pub label: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// How many of which things are in it, when it was not written to its end.
    pub ends_after: Option<(u64, &'static str)>,
}

impl WrittenFile {
    /// A file that was written to its end.
    pub fn whole(label: &'static str, path: impl Into<PathBuf>) -> WrittenFile {
        WrittenFile { label, path: path.into(), ends_after: None }
    }
}

/// Everything about a run that exports and console show.
#[derive(Clone, Debug)]
pub struct RunResults<'run> {
    /// What was asked for.
    pub config: &'run RunConfig,
    /// Version of this program.
    pub version: &'run str,
    /// Secrets to hide.
    pub redactor: Redactor,
    /// The phases, in order; profiling is the last. Empty when the run ended before its first phase.
    pub phases: Vec<PhaseResults>,
    /// The run was cut short by a signal or by a threshold.
    pub was_cancelled: bool,
    /// Why the figures are not those of a whole run.
    pub incomplete_reason: Option<String>,
    /// Who counted tokens: the name of the client's tokenizer, or `server usage`.
    pub token_source: String,
    /// Files that were written while the run lasted.
    pub written: Vec<WrittenFile>,
    /// A file of the run itself could not be written to its end.
    pub has_partial_file: bool,
    /// The log, when there is one.
    pub log_file: Option<PathBuf>,
    /// Lines of the log could not be written to it.
    pub has_log_gaps: bool,
}

impl RunResults<'_> {
    /// The profiling phase.
    pub fn profiling(&self) -> Option<&PhaseResults> {
        self.phases.iter().rev().find(|phase| phase.kind == PhaseKind::Profiling)
    }

    /// The warmup phase.
    pub fn warmup(&self) -> Option<&PhaseResults> {
        self.phases.iter().find(|phase| phase.kind == PhaseKind::Warmup)
    }
}
