//! Tables of metrics.

use std::fmt::Write as _;

use aiperf_metrics::registry::{ConsoleGroup, Flag};
use aiperf_metrics::{Block, Metric};

use super::PRODUCT;
use super::notices;
use super::table::{Align, Cell, Column, Table};
use crate::number::with_thousands;
use crate::results::RunResults;
use crate::style::{Palette, Style};

/// Longer names have their unit on a line of its own.
const LONG_HEADER: usize = 30;

/// Tables that are shown only when asked for: experimental, trace timings, internal.
pub(super) fn on_request(results: &RunResults<'_>, width: usize, palette: Palette, out: &mut String) {
    let output = &results.config.output;
    let tables: [(bool, Flag, &str); 3] = [
        (output.show_experimental_metrics, Flag::Experimental, "Experimental Metrics"),
        (output.show_trace_timing, Flag::HttpTrace, "HTTP Trace Timing"),
        (output.show_internal_metrics, Flag::Internal, "Internal Metrics"),
    ];
    for (_, flag, title) in tables.into_iter().filter(|(asked, ..)| *asked) {
        render(
            results,
            &format!("{PRODUCT} | {title}"),
            |metric| metric.def().has(flag),
            width,
            palette,
            out,
        );
    }
}

/// The tables by group, the main one last.
pub(super) fn groups(results: &RunResults<'_>, width: usize, palette: Palette, out: &mut String) {
    const GROUPS: [(ConsoleGroup, &str); 4] = [
        (ConsoleGroup::Effective, ": Effective"),
        (ConsoleGroup::Active, ": Active"),
        (ConsoleGroup::Usage, ": Usage"),
        (ConsoleGroup::Default, ""),
    ];
    for (group, suffix) in GROUPS {
        by_group(results, group, suffix, width, palette, out);
    }
    notices::cache_hint(results, width, palette, out);
}

/// Speculative decoding, with the shares of its histogram.
pub(super) fn speculative(results: &RunResults<'_>, width: usize, palette: Palette, out: &mut String) {
    by_group(results, ConsoleGroup::SpecDecode, ": Spec Decode", width, palette, out);
    let Some(phase) = results.profiling() else { return };
    let histogram = &phase.summary.pooled_spec_decode_acceptance_histogram;
    let steps: u64 = histogram.iter().map(|(_, steps)| steps).sum();
    if steps == 0 {
        return;
    }
    let shares: Vec<String> = histogram
        .iter()
        .map(|(accepted, count)| format!("{accepted}: {:.0}%", 100.0 * *count as f64 / steps as f64))
        .collect();
    let _ = writeln!(out, "  Draft tokens accepted per step, share of steps:  {}", shares.join("   "));
}

fn by_group(
    results: &RunResults<'_>,
    group: ConsoleGroup,
    suffix: &str,
    width: usize,
    palette: Palette,
    out: &mut String,
) {
    let title = format!("{PRODUCT} | {}{suffix}", results.config.endpoint.kind.metrics_title());
    let belongs = |metric: Metric| {
        let def = metric.def();
        // Failures have a table of their own.
        let elsewhere = [Flag::Experimental, Flag::Internal, Flag::ErrorOnly];
        def.console_group == group && !elsewhere.into_iter().any(|flag| def.has(flag))
    };
    render(results, &title, belongs, width, palette, out);
}

fn render(
    results: &RunResults<'_>,
    title: &str,
    belongs: impl Fn(Metric) -> bool,
    width: usize,
    palette: Palette,
    out: &mut String,
) {
    let Some(phase) = results.profiling() else { return };
    let mut blocks: Vec<(Metric, &Block)> = phase
        .summary
        .blocks
        .iter()
        .filter(|(metric, _)| belongs(*metric))
        .map(|(metric, block)| (*metric, block))
        .collect();
    if blocks.is_empty() {
        return;
    }
    // Rows without a place come last, in the order of exports (the sort is stable).
    blocks.sort_by_key(|(metric, _)| metric.def().display_order.unwrap_or(u32::MAX));
    let table = Table {
        title: title.to_owned(),
        title_style: Style::Bold,
        columns: columns(),
        rows: blocks.into_iter().map(|(metric, block)| row(metric, block)).collect(),
    };
    table.render(width, palette, out);
}

fn columns() -> Vec<Column> {
    let figure = |header| Column::new(header, Align::Right, Style::Green);
    vec![
        Column::new("Metric", Align::Right, Style::Cyan).wrapping(24),
        figure("avg"),
        figure("min").expendable(3),
        figure("max").expendable(1),
        figure("p99"),
        figure("p90").expendable(2),
        figure("p50"),
        figure("std").expendable(4),
    ]
}

fn row(metric: Metric, block: &Block) -> Vec<Cell> {
    let header = metric.def().header;
    let gap = if header.chars().count() > LONG_HEADER { '\n' } else { ' ' };
    let mut cells = vec![Cell::new(format!("{header}{gap}({})", block.unit))];
    for figure in [block.avg, block.min, block.max, block.p99, block.p90, block.p50, block.std] {
        cells.push(figure.map_or_else(Cell::absent, |figure| Cell::new(with_thousands(figure))));
    }
    cells
}
