//! The table on stdout and the JSON file.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::Bench;
use super::figure::{Figure, Limit, Outcome};

/// A number with three or four figures that matter, thousands apart.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if size > 0.0 && size < 0.001 {
        return format!("{value:.1e}");
    }
    let decimals = match size {
        _ if size >= 100.0 || size == 0.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 0.1 => 2,
        _ => 4,
    };
    let plain = format!("{value:.decimals$}");
    if size < 1_000.0 {
        return plain;
    }
    let (sign, digits) = plain.strip_prefix('-').map_or(("", plain.as_str()), |digits| ("-", digits));
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn limit(limit: Option<Limit>, ratio: bool) -> String {
    let factor = if ratio { "x" } else { "" };
    match limit {
        Some(Limit::AtMost(value)) => format!("<= {}{factor}", number(value)),
        Some(Limit::AtLeast(value)) => format!(">= {}{factor}", number(value)),
        None => String::new(),
    }
}

const HEADINGS: [&str; 8] = ["row", "figure", "ours", "rival", "ratio", "must", "aim", "result"];

fn cells(figure: &Figure) -> [String; 8] {
    let with_unit = |value: f64| format!("{} {}", number(value), figure.unit()).trim_end().to_owned();
    let (must, aim) = figure.limits();
    let result = match figure.outcome() {
        Outcome::Aim => "aim".to_owned(),
        Outcome::Pass => "PASS".to_owned(),
        Outcome::Fail => "FAIL".to_owned(),
        Outcome::Invalid(_) => "invalid".to_owned(),
        Outcome::Shown => "-".to_owned(),
    };
    [
        figure.row().to_owned(),
        figure.what().to_owned(),
        figure.ours().map_or_else(|| "-".to_owned(), with_unit),
        figure.rival().map_or_else(String::new, |(name, value)| format!("{name} {}", with_unit(value))),
        figure.ratio().map_or_else(String::new, |ratio| format!("{}x", number(ratio))),
        limit(must, figure.judges_ratio()),
        limit(aim, figure.judges_ratio()),
        result,
    ]
}

/// The table as text; notes and reasons below it.
pub(crate) fn render(figures: &[Figure]) -> String {
    let rows: Vec<[String; 8]> = figures.iter().map(cells).collect();
    let mut widths = HEADINGS.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let mut line = |row: [&str; 8]| {
        let mut shown = String::new();
        for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
            // Names to the left, numbers to the right.
            let _ = match index {
                0 | 1 | 7 => write!(shown, "{cell:<width$}  "),
                _ => write!(shown, "{cell:>width$}  "),
            };
        }
        text.push_str(shown.trim_end());
        text.push('\n');
    };
    line(HEADINGS);
    for row in &rows {
        line(row.each_ref().map(String::as_str));
    }
    for figure in figures {
        if let Outcome::Invalid(reason) = figure.outcome() {
            let _ = writeln!(text, "{}: {}: invalid: {reason}", figure.row(), figure.what());
        }
        for note in figure.notes() {
            let _ = writeln!(text, "{}: {}: {note}", figure.row(), figure.what());
        }
    }
    text
}

/// Prints the table.
pub(crate) fn print(figures: &[Figure]) -> Result<()> {
    std::io::stdout().write_all(render(figures).as_bytes()).context("cannot print the table")
}

/// Writes figures, samples and results.
pub(crate) fn write_json(path: &Path, bench: &Bench, figures: &[Figure]) -> Result<()> {
    let figures: Vec<_> = figures
        .iter()
        .map(|figure| {
            let mut value = json!(figure);
            value["ours"] = json!(figure.ours());
            value["ratio"] = json!(figure.ratio());
            value["result"] = json!(cells(figure)[7]);
            value
        })
        .collect();
    let document = json!({
        "binary": bench.binary,
        "runs": bench.runs,
        "quick": bench.quick,
        "cores": std::thread::available_parallelism().map(usize::from).ok(),
        "figures": figures,
    });
    let text = serde_json::to_string_pretty(&document)?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figure::{Judged, Rival};

    #[test]
    fn numbers_keep_the_figures_that_matter() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(-1_234.0), "-1,234");
        assert_eq!(number(250.4), "250");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(2.5), "2.50");
        assert_eq!(number(0.0123), "0.0123");
        assert_eq!(number(0.000_001), "1.0e-6");
        assert_eq!(number(0.0), "0");
    }

    #[test]
    fn the_table_is_aligned_and_reasons_stand_below() {
        let figures = [
            Figure::new("cpu", "CPU per request", "us", vec![40.0])
                .against(Rival { name: "wrk", samples: vec![10.0] }, Judged::OursOverRival)
                .bounded(Limit::AtMost(5.0), Limit::AtMost(2.5)),
            Figure::new("lateness", "p99", "us", vec![1_500.0])
                .must(Limit::AtMost(1_000.0))
                .invalid_when(true, || "the server was busy".to_owned()),
        ];
        assert_eq!(
            render(&figures),
            "row       figure               ours        rival  ratio      must       aim  result\n\
             cpu       CPU per request   40.0 us  wrk 10.0 us  4.00x  <= 5.00x  <= 2.50x  PASS\n\
             lateness  p99              1,500 us                      <= 1,000            invalid\n\
             lateness: p99: invalid: the server was busy\n"
        );
    }
}
