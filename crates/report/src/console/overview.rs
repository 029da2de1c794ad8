//! The line that says what the figures below are about, and a warning when they are not those of a whole run.

use aiperf_clock::{format_utc, wall};
use aiperf_config::Target;

use super::PRODUCT;
use crate::number::{count, with_thousands};
use crate::results::RunResults;
use crate::style::{Palette, Style};
use crate::text::wrap;

/// The warning, when the run was cut short.
pub(super) fn incomplete(results: &RunResults<'_>, width: usize, palette: Palette, out: &mut String) {
    let Some(reason) = &results.incomplete_reason else { return };
    out.push_str(&palette.paint(Style::Yellow, &format!("{PRODUCT} | INCOMPLETE RESULTS")));
    out.push('\n');
    let text = format!(
        "{}\nThe figures below cover only the part of the run that took place; do not compare them with those of \
         whole runs.",
        results.redactor.text(reason)
    );
    for line in wrap(&text, width) {
        out.push_str(&line);
        out.push('\n');
    }
}

/// Start, source of token counts, window, counts and send lag.
pub(super) fn line(results: &RunResults<'_>, width: usize, _palette: Palette, out: &mut String) {
    let Some(phase) = results.profiling() else { return };
    let summary = &phase.summary;
    let mut parts = vec![
        format!("Started {}", format_utc(wall(phase.start))),
        format!("tokens by {}", results.token_source),
    ];
    if let Target::Mock(_) = results.config.endpoint.target {
        parts.push("in-process mock server".into());
    }
    if let Some(window) = &summary.window {
        parts.push(format!("window {} sec", with_thousands(window.duration_sec)));
    }
    parts.push(format!(
        "{} sent: {} succeeded, {} failed, {} cut off",
        count(phase.sent_count),
        count(summary.valid_count),
        count(summary.failed_count),
        count(phase.in_flight_cancelled_count),
    ));
    if let Some(lag) = &summary.send_lag {
        parts.push(format!("send lag p99 {} ms", with_thousands(lag.p99)));
    }
    for line in wrap(&parts.join(" | "), width) {
        out.push_str(&line);
        out.push('\n');
    }
}
