//! Files that are written once the run is over: one file of code per export, registered in one list.

mod console_text;
mod phases;
mod summary_csv;
mod summary_json;

use std::io;
use std::path::PathBuf;

use crate::files::{remedy, write_atomic};
use crate::names::{FileNames, READY_MARKER};
use crate::results::{RunResults, WrittenFile};
use crate::stale::remove_stale;

/// One export.
trait Exporter: Sync {
    /// A short name.
    fn name(&self) -> &'static str;

    /// What is in it, in one line.
    fn about(&self) -> &'static str;

    /// What the console calls the file; also the name of a failure.
    fn label(&self) -> &'static str;

    /// Writes it. The first path is the one that is shown; none when there is nothing to write.
    fn export(&self, results: &RunResults<'_>, names: &FileNames) -> io::Result<Vec<PathBuf>>;
}

/// Every export, in the order in which their files are listed.
const EXPORTERS: [&dyn Exporter; 4] =
    [&summary_csv::SummaryCsv, &summary_json::SummaryJson, &console_text::ConsoleText, &phases::Phases];

/// Every export: its name, and what is in it in one line.
pub fn exports() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXPORTERS.iter().map(|exporter| (exporter.name(), exporter.about()))
}

/// An export that failed; the others were written all the same.
#[derive(Debug, thiserror::Error)]
#[error("{name} failed in {dir}: {source}; {remedy}", dir = dir.display(), remedy = remedy(source, "--artifact-dir"))]
pub struct ExportFailure {
    /// Which export.
    pub name: &'static str,
    /// Folder of the run.
    pub dir: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Writes all exports, deletes what an earlier run left, and writes the ready marker last. Files are added to
/// [`RunResults::written`], before those of the run itself.
pub fn export_all(results: &mut RunResults<'_>) -> Vec<ExportFailure> {
    let dir = results.config.output.dir.clone();
    let names = FileNames::new(results.config.output.prefix.as_deref());
    let mut failures = Vec::new();
    let mut shown = Vec::new();
    let mut kept: Vec<PathBuf> = results.written.iter().map(|file| file.path.clone()).collect();
    let mut failed = |name, source| failures.push(ExportFailure { name, dir: dir.clone(), source });
    for exporter in EXPORTERS {
        match exporter.export(results, &names) {
            Ok(paths) => {
                if let Some(path) = paths.first() {
                    shown.push(WrittenFile::whole(exporter.label(), path.clone()));
                }
                kept.extend(paths);
            }
            Err(source) => failed(exporter.label(), source),
        }
    }
    shown.append(&mut results.written);
    results.written = shown;
    if let Err(source) = remove_stale(&dir, &names, &kept) {
        failed("Removal of an earlier run's files", source);
    }
    // Files that are whole may be those of part of a run.
    let partial = results.has_partial_file || results.incomplete_reason.is_some() || !failures.is_empty();
    let marker =
        format!("{{\"ready\":true,\"was_cancelled\":{},\"partial\":{partial}}}", results.was_cancelled);
    if let Err(source) = write_atomic(dir.join(READY_MARKER), marker.as_bytes()) {
        failures.push(ExportFailure { name: "Ready marker", dir, source });
    }
    failures
}
