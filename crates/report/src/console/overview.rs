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
        // Lateness, further below, leaves the first fill of a closed loop out.
        let has_first_fill =
            phase.load_delivery.as_ref().is_some_and(|delivery| delivery.facts.initial_fill_ns.is_some());
        let first_fill = if has_first_fill { " (with the first fill)" } else { "" };
        parts.push(format!("send lag p99 {} ms{first_fill}", with_thousands(lag.p99)));
    }
    let mut lines = vec![parts.join(" | ")];
    if let Target::Mock(url) = &results.config.endpoint.target {
        // Nobody is to take its figures for those of a server.
        lines.push(format!("Answers are those of the in-process mock server, {url}"));
    }
    for line in lines.iter().flat_map(|line| wrap(line, width)) {
        out.push_str(&line);
        out.push('\n');
    }
}
