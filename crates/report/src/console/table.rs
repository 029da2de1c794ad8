//! Tables and panels drawn with box characters.

use std::fmt::Write as _;

use crate::style::{Palette, Style};
use crate::text::{width, wrap};

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// One column.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) header: &'static str,
    pub(super) align: Align,
    pub(super) style: Style,
    /// Its text may be broken over lines, down to this width, when space is short; 0 for never.
    pub(super) narrowest: usize,
    /// Left out when space is short: columns of higher numbers first; 0 stays.
    pub(super) expendable: u8,
}

impl Column {
    pub(super) const fn new(header: &'static str, align: Align, style: Style) -> Column {
        Column { header, align, style, narrowest: 0, expendable: 0 }
    }

    pub(super) const fn wrapping(mut self, narrowest: usize) -> Column {
        self.narrowest = narrowest;
        self
    }

    pub(super) const fn expendable(mut self, rank: u8) -> Column {
        self.expendable = rank;
        self
    }
}

/// One cell; its text may have several lines.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    /// Instead of the column's.
    pub(super) style: Option<Style>,
}

impl Cell {
    pub(super) fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), style: None }
    }

    pub(super) fn absent() -> Cell {
        Cell { text: "N/A".into(), style: Some(Style::Dim) }
    }
}

/// A table with a title.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) title: String,
    pub(super) title_style: Style,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Appends the table, at most `limit` columns wide as far as its figures allow: first columns that wrap give
    /// way, then expendable columns are left out, and a note below names them.
    pub(super) fn render(&self, limit: usize, palette: Palette, out: &mut String) {
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let mut dropped: Vec<usize> = Vec::new();
        let widths = loop {
            let (widths, fits) = self.fit(&kept, limit);
            let last = kept.iter().copied().max_by_key(|&index| self.columns[index].expendable);
            match last {
                Some(index) if !fits && self.columns[index].expendable > 0 => {
                    kept.retain(|&each| each != index);
                    dropped.push(index);
                }
                _ => break widths,
            }
        };
        let total = widths.iter().sum::<usize>() + 3 * widths.len() + 1;
        centred(&self.title, self.title_style, total, palette, out);
        rule(&widths, ['┏', '━', '┳', '┓'], out);
        let headers: Vec<Cell> = kept
            .iter()
            .map(|&index| Cell { text: self.columns[index].header.into(), style: Some(Style::Bold) })
            .collect();
        self.line(&kept, &widths, &headers.iter().collect::<Vec<_>>(), '┃', palette, out);
        rule(&widths, ['┡', '━', '╇', '┩'], out);
        for row in &self.rows {
            let cells: Vec<&Cell> = kept.iter().map(|&index| &row[index]).collect();
            self.line(&kept, &widths, &cells, '│', palette, out);
        }
        rule(&widths, ['└', '─', '┴', '┘'], out);
        if !dropped.is_empty() {
            dropped.sort_unstable();
            let names: Vec<&str> = dropped.iter().map(|&index| self.columns[index].header).collect();
            let note = format!("  no room here for: {} (they are in the exports)", names.join(", "));
            out.push_str(&palette.paint(Style::Dim, &note));
            out.push('\n');
        }
    }

    /// Widths of the kept columns, and whether they fit.
    fn fit(&self, kept: &[usize], limit: usize) -> (Vec<usize>, bool) {
        let mut widths: Vec<usize> = kept
            .iter()
            .map(|&index| {
                let cells = self.rows.iter().map(|row| row[index].text.as_str());
                let lines = cells.flat_map(|text| text.split('\n')).map(width);
                lines.chain([width(self.columns[index].header)]).max().unwrap_or(0)
            })
            .collect();
        let room = limit.saturating_sub(3 * kept.len() + 1);
        let mut excess = widths.iter().sum::<usize>().saturating_sub(room);
        let least = |at: usize| self.columns[kept[at]].narrowest;
        while excess > 0 {
            // The widest column that wraps gives way, one step at a time.
            let wrapping = (0..kept.len()).filter(|&at| least(at) > 0 && widths[at] > least(at));
            let Some(widest) = wrapping.max_by_key(|&at| widths[at]) else { break };
            widths[widest] -= 1;
            excess -= 1;
        }
        (widths, excess == 0)
    }

    fn line(
        &self,
        kept: &[usize],
        widths: &[usize],
        cells: &[&Cell],
        edge: char,
        palette: Palette,
        out: &mut String,
    ) {
        let texts: Vec<Vec<String>> =
            cells.iter().zip(widths).map(|(cell, &width)| wrap(&cell.text, width)).collect();
        let height = texts.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            out.push(edge);
            for (at, &index) in kept.iter().enumerate() {
                let column = &self.columns[index];
                let text = texts[at].get(line).map_or("", String::as_str);
                let space = " ".repeat(widths[at].saturating_sub(width(text)));
                let style = cells[at].style.unwrap_or(column.style);
                let (before, after) = match column.align {
                    Align::Left => ("", space.as_str()),
                    Align::Right => (space.as_str(), ""),
                };
                out.push(' ');
                out.push_str(before);
                out.push_str(&palette.paint(style, text));
                out.push_str(after);
                out.push(' ');
                out.push(edge);
            }
            out.push('\n');
        }
    }
}

fn rule(widths: &[usize], [left, fill, cross, right]: [char; 4], out: &mut String) {
    out.push(left);
    for (at, width) in widths.iter().enumerate() {
        if at > 0 {
            out.push(cross);
        }
        out.extend(std::iter::repeat_n(fill, width + 2));
    }
    out.push(right);
    out.push('\n');
}

/// A line of text in the middle of `total` columns, filled up with spaces.
fn centred(text: &str, style: Style, total: usize, palette: Palette, out: &mut String) {
    let space = total.saturating_sub(width(text));
    out.push_str(&" ".repeat(space / 2));
    out.push_str(&palette.paint(style, text));
    out.push_str(&" ".repeat(space - space / 2));
    out.push('\n');
}

/// Appends lines in a box with round corners and a title in its upper edge.
pub(super) fn panel(
    title: &str,
    lines: &[String],
    style: Style,
    limit: usize,
    palette: Palette,
    out: &mut String,
) {
    let room = limit.saturating_sub(6).max(width(title));
    let lines: Vec<String> = lines
        .iter()
        .flat_map(|line| {
            let indent = line.len() - line.trim_start().len();
            wrap(line.trim_start(), room.saturating_sub(indent))
                .into_iter()
                .map(move |part| format!("{}{part}", " ".repeat(indent)))
        })
        .collect();
    let inner = lines.iter().map(|line| width(line)).chain([width(title)]).max().unwrap_or(0) + 4;
    let fill = inner.saturating_sub(width(title) + 2);
    let top = format!("╭{} {title} {}╮", "─".repeat(fill / 2), "─".repeat(fill - fill / 2));
    out.push_str(&palette.paint(style, &top));
    out.push('\n');
    let edge = palette.paint(style, "│").into_owned();
    for line in &lines {
        let space = " ".repeat(inner.saturating_sub(2 + width(line)));
        let _ = writeln!(out, "{edge}  {line}{space}{edge}");
    }
    out.push_str(&palette.paint(style, &format!("╰{}╯", "─".repeat(inner))));
    out.push('\n');
}
