//! `phase_manifest.json` and a summary per phase, for runs of more than one phase.

use std::fs;
use std::io;
use std::path::PathBuf;

use aiperf_clock::wall;
use aiperf_types::PhaseKind;
use serde_json::{Value, json};

use super::{Exporter, summary_csv, summary_json};
use crate::files::write_atomic;
use crate::names::{FileNames, PHASE_MANIFEST, PHASE_SUMMARY};
use crate::results::{PhaseResults, RunResults};

pub(super) struct Phases;

impl Exporter for Phases {
    fn name(&self) -> &'static str {
        "phases"
    }

    fn about(&self) -> &'static str {
        "What each phase did, and when"
    }

    fn label(&self) -> &'static str {
        "Phase Manifest"
    }

    fn export(&self, results: &RunResults<'_>, _names: &FileNames) -> io::Result<Vec<PathBuf>> {
        // A run that ended in its warmup has two phases, too: the second did not begin.
        if results.phases.len() < 2 && results.warmup().is_none() {
            return Ok(Vec::new());
        }
        let dir = &results.config.output.dir;
        let mut written = Vec::new();
        let mut entries = Vec::new();
        for phase in &results.phases {
            let folder = format!("phases/{}", phase.kind.name());
            fs::create_dir_all(dir.join(&folder))?;
            let json = format!("{folder}/{PHASE_SUMMARY}.json");
            let csv = format!("{folder}/{PHASE_SUMMARY}.csv");
            let document = summary_json::document(results, Some(phase), None, phase.was_cancelled)?;
            written.push(write_atomic(dir.join(&json), &serde_json::to_vec_pretty(&document)?)?);
            let table = summary_csv::document(results, &phase.summary);
            written.push(write_atomic(dir.join(&csv), table.as_bytes())?);
            entries.push(entry(results, phase, &json, &csv));
        }
        let mut manifest = json!({"phases": entries, "schema_version": 1});
        manifest.sort_all_objects();
        let mut text = serde_json::to_vec_pretty(&manifest)?;
        text.push(b'\n');
        written.insert(0, write_atomic(dir.join(PHASE_MANIFEST), &text)?);
        Ok(written)
    }
}

fn entry(results: &RunResults<'_>, phase: &PhaseResults, json: &str, csv: &str) -> Value {
    let summary = &phase.summary;
    let is_profiling = phase.kind == PhaseKind::Profiling;
    json!({
        "phase_index": phase.index,
        "phase_name": phase.kind.name(),
        "phase_kind": phase.kind.name(),
        "profiling_index": is_profiling.then_some(0),
        "start_ns": wall(phase.start),
        "end_ns": wall(phase.end),
        "successful_request_count": summary.valid_count,
        "error_request_count": summary.failed_count,
        "total_request_count": summary.record_count(),
        "error_summary": summary_json::error_summary(&summary.error_groups, &results.redactor),
        "was_cancelled": phase.was_cancelled,
        "metrics_json": json,
        "metrics_csv": csv,
    })
}
