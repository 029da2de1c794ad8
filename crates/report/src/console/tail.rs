//! The last lines: what was typed, how long it took, where everything is.

use std::fmt::Write as _;
use std::path::Path;

use aiperf_metrics::Metric;

use crate::number::with_thousands;
use crate::results::RunResults;
use crate::style::{Palette, Style};
use crate::text::{escaped, wrap};

/// After the tables: command line, duration, a line per file, and a note when the run was cut short.
pub fn tail(results: &RunResults<'_>, width: usize, palette: Palette) -> String {
    let mut out = String::from("\n");
    let command = format!("CLI Command: {}", results.redactor.text(&results.config.cli_command));
    for line in wrap(&escaped(&command, true), width) {
        out.push_str(&line);
        out.push('\n');
    }
    let duration = results.profiling().and_then(|phase| phase.summary.block(Metric::BenchmarkDuration)?.avg);
    if let Some(seconds) = duration {
        let early = match (&results.incomplete_reason, results.was_cancelled) {
            (_, true) => " (cancelled early)",
            (Some(_), false) => " (ended early)",
            (None, false) => "",
        };
        let _ = writeln!(out, "Benchmark Duration: {} sec{early}", with_thousands(seconds));
    }
    let gaps = || "lines of it could not be written".to_owned();
    let log = results.log_file.as_deref().map(|path| ("Log File", path, results.has_log_gaps.then(gaps)));
    let files = results.written.iter().map(|file| {
        let ends = file.ends_after.map(|(count, things)| format!("it ends after {count} {things}"));
        (file.label, file.path.as_path(), ends)
    });
    for (label, path, lacks) in files.chain(log) {
        let style = if lacks.is_some() { Style::Yellow } else { Style::Green };
        let _ = write!(out, "{}: {}", palette.paint(style, label), absolute(path));
        if let Some(lacks) = lacks {
            let _ = write!(out, " (incomplete: {lacks})");
        }
        out.push('\n');
    }
    if results.was_cancelled || results.incomplete_reason.is_some() {
        let how = if results.was_cancelled { "was cancelled" } else { "ended" };
        let note = format!("The run {how} early: its results cover only a part of it.");
        out.push_str(&palette.paint(Style::Yellow, &note));
        out.push('\n');
    }
    out
}

fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    escaped(&path.to_string_lossy(), false).into_owned()
}
