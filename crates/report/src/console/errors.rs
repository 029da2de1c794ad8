//! The table of failures.

use super::PRODUCT;
use super::table::{Align, Cell, Column, Table};
use crate::number::count;
use crate::results::RunResults;
use crate::style::{Palette, Style};
use crate::text::printable;

/// Failures of the profiling phase, alike ones together.
pub(super) fn table(results: &RunResults<'_>, width: usize, palette: Palette, out: &mut String) {
    let groups = results.profiling().map_or(&[][..], |phase| phase.summary.error_groups.as_slice());
    if groups.is_empty() {
        return;
    }
    let rows = groups.iter().map(|group| {
        let message = results.redactor.text(&group.error.message);
        vec![
            group.error.code.map_or_else(|| Cell::new("N/A"), |code| Cell::new(code.to_string())),
            Cell::new(printable(&group.error.kind)),
            Cell::new(printable(&message)),
            Cell::new(count(group.count)),
        ]
    });
    let table = Table {
        title: format!("{PRODUCT} | Error Summary"),
        title_style: Style::Red,
        columns: vec![
            Column::new("Code", Align::Right, Style::Yellow),
            Column::new("Type", Align::Right, Style::Yellow).wrapping(12),
            Column::new("Message", Align::Left, Style::Yellow).wrapping(20),
            Column::new("Count", Align::Right, Style::Yellow),
        ],
        rows: rows.collect(),
    };
    table.render(width, palette, out);
}
