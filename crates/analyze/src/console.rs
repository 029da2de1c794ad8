//! The report for people: plain text, 80 columns at most.

use std::fmt::Write as _;

use crate::analysis::{Analysis, Quantity};
use crate::histogram::Bin;
use crate::stats::Stats;

const WIDTH: usize = 80;
const HEADS: [&str; 7] = ["Mean", "Std Dev", "Min", "P25", "Median", "P75", "Max"];
const BAR: usize = 32;

/// The report as text.
pub fn render(analysis: &Analysis) -> String {
    let mut out = String::new();
    let fact = |out: &mut String, name: &str, value: String| {
        let _ = writeln!(out, "{:<28}{value}", format!("{name}:"));
    };
    if let Some(mooncake) = &analysis.mooncake {
        out.push_str("Trace Analysis Report\n");
        fact(&mut out, "Total requests", count(mooncake.requests));
        fact(&mut out, "Unique prefixes", count(mooncake.unique_prefixes));
        fact(&mut out, "Prefix groups", count(mooncake.prefix_groups));
        out.push('\n');
        // What no row records is not known: 0 would be a figure.
        let input = |stats: Option<Stats>| stats.filter(|_| mooncake.without_input < mooncake.requests);
        let output = |stats: Option<Stats>| stats.filter(|_| mooncake.without_output < mooncake.requests);
        out.push_str(&table(&[
            ("Input Length", input(mooncake.input)),
            ("Context Length", input(mooncake.context)),
            ("Unique Prompt Length", input(mooncake.unique_prompt)),
            ("Output Length", output(mooncake.output)),
            ("Theoretical Hit Rate", mooncake.hit_rate),
        ]));
        for (rows, what) in [(mooncake.without_input, "input"), (mooncake.without_output, "output")] {
            if rows > 0 && rows < mooncake.requests {
                let _ =
                    writeln!(out, "{} rows record no {what} length, which counts as 0 above", count(rows));
            }
        }
        out.push('\n');
    }
    let _ = writeln!(out, "Dataset ({})", analysis.format.name());
    fact(&mut out, "Requests", count(analysis.requests));
    fact(&mut out, "Conversations", count(analysis.conversations));
    if let (Some(subagents), Some(depth)) = (analysis.subagents, analysis.depth) {
        fact(&mut out, "Subagents", format!("{}, at most {depth} deep", count(subagents)));
    }
    if let Some(span) = analysis.span_ms {
        fact(&mut out, "Span", format!("{} s", number(span / 1000.0)));
    }
    if let Some(rates) = analysis.rates {
        fact(&mut out, "Mean rate", format!("{} requests/s", number(rates.mean)));
        for (name, rate) in [("Busiest second", rates.peak_1s), ("Busiest minute", rates.peak_60s)] {
            if let Some(rate) = rate {
                fact(&mut out, name, format!("{} requests/s", number(rate)));
            }
        }
    }
    if let Some(cache) = &analysis.cache {
        let percent = |share: f64| format!("{:.2} %", share * 100.0);
        fact(&mut out, "Infinite cache, by block", percent(cache.by_block));
        fact(&mut out, "Infinite cache, by request", percent(cache.by_request));
        // Of interest only beside each other.
        if let (Some(first), Some(later)) = (cache.first_turns, cache.later_turns) {
            fact(&mut out, "  first turns", percent(first));
            fact(&mut out, "  later turns", percent(later));
        }
        if let Some(cumulative) = analysis.cumulative {
            out.push_str("The rows of a session record what is new; over the whole contexts:\n");
            fact(&mut out, "  by block", percent(cumulative.by_block));
            fact(&mut out, "  by request", percent(cumulative.by_request));
        }
        let tokens = cache.working_set_tokens.map(|tokens| format!(" = {} tokens", count(tokens)));
        let blocks = format!("{} blocks{}", count(cache.working_set_blocks), tokens.unwrap_or_default());
        fact(&mut out, "Working set", blocks);
    }
    if let Some(cancelled) = analysis.cancelled {
        fact(&mut out, "Cancelled requests", count(cancelled));
    }
    if let Some(without) = analysis.without_output.filter(|without| *without > 0) {
        fact(&mut out, "Requests without output", count(without));
    }
    if let Some(skipped) = analysis.skipped {
        fact(&mut out, "Rows skipped", count(skipped));
    }
    for quantity in &analysis.quantities {
        out.push('\n');
        out.push_str(&block(quantity));
    }
    out
}

/// One quantity: its figures and its histogram.
fn block(quantity: &Quantity) -> String {
    let mut out = format!("{}\n", quantity.title);
    out.push_str(&heads(11));
    out.push_str(&figures(&quantity.stats, 11, true));
    out.push_str(&histogram(&quantity.bins));
    out
}

fn heads(width: usize) -> String {
    HEADS.iter().fold(String::new(), |line, head| format!("{line}{head:>width$}")) + "\n"
}

fn figures(stats: &Stats, width: usize, separated: bool) -> String {
    let cells = stats.columns().map(|value| if separated { number(value) } else { format!("{value:.2}") });
    cells.iter().fold(String::new(), |line, cell| format!("{line}{cell:>width$}")) + "\n"
}

/// Rows of figures below one head: as wide as needed, in two lines each where that is too wide.
fn table(rows: &[(&str, Option<Stats>)]) -> String {
    let label = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for separated in [true, false] {
        let cell = |value: f64| if separated { number(value) } else { format!("{value:.2}") };
        let columns: Vec<usize> = (0..HEADS.len())
            .map(|column| {
                let cells =
                    rows.iter().filter_map(|(_, stats)| Some(cell(stats.as_ref()?.columns()[column])));
                cells.map(|cell| cell.len()).chain([HEADS[column].len()]).max().unwrap_or(0)
            })
            .collect();
        if label + columns.iter().map(|width| width + 1).sum::<usize>() > WIDTH {
            continue;
        }
        let line = |name: &str, cells: &[String]| {
            let cells = cells.iter().zip(&columns);
            cells.fold(format!("{name:<label$}"), |line, (cell, width)| format!("{line} {cell:>width$}"))
                + "\n"
        };
        let mut out = line("", &HEADS.map(str::to_owned));
        for (name, stats) in rows {
            match stats {
                Some(stats) => out.push_str(&line(name, &stats.columns().map(cell))),
                None => {
                    let _ = writeln!(out, "{name:<label$} N/A");
                }
            }
        }
        return out;
    }
    let mut out = heads(11);
    for (name, stats) in rows {
        match stats {
            Some(stats) => {
                let _ = write!(out, "{name}\n{}", figures(stats, 11, false));
            }
            None => {
                let _ = writeln!(out, "{name}: N/A");
            }
        }
    }
    out
}

fn histogram(bins: &[Bin]) -> String {
    let Some(most) = bins.iter().map(|bin| bin.count).max().filter(|most| *most > 0) else {
        return String::new();
    };
    let edge = |value: f64| {
        if value >= 1000.0 || value.fract() == 0.0 { count_of(value.round()) } else { format!("{value:.2}") }
    };
    let mut out = String::new();
    for (index, bin) in bins.iter().enumerate() {
        let close = if index + 1 == bins.len() { ']' } else { ')' };
        let range = format!("[{}, {}{close}", edge(bin.low), edge(bin.high));
        // A bin that is not empty has a mark, however small its share.
        let mut marks = (bin.count as f64 / most as f64 * BAR as f64).round() as usize;
        if bin.count > 0 {
            marks = marks.max(1);
        }
        let line = format!("{range:>30} {:>10}  {}", count(bin.count), "#".repeat(marks));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Two decimals, thousands apart.
fn number(value: f64) -> String {
    let text = format!("{:.2}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "00"));
    let sign = if value < 0.0 && text != "0.00" { "-" } else { "" };
    format!("{sign}{}.{fraction}", apart(whole))
}

fn count_of(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", apart(&format!("{:.0}", value.abs())))
}

fn count(value: u64) -> String {
    apart(&value.to_string())
}

fn apart(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_decimals_and_their_thousands_apart() {
        assert_eq!(number(1_234_567.891), "1,234,567.89");
        assert_eq!(number(-0.001), "0.00");
        assert_eq!(number(-999.5), "-999.50");
        assert_eq!(count(1000), "1,000");
    }

    #[test]
    fn no_line_is_wider_than_80_columns() {
        let wide = Stats::of(&mut [1.0, 2_500_000.0, 123_456_789.0]);
        let narrow = Stats::of(&mut [1.0, 2.0]);
        for rows in [[("Input Length", wide), ("Unique Prompt Length", None)], [("A", narrow), ("B", narrow)]]
        {
            assert!(table(&rows).lines().all(|line| line.len() <= WIDTH), "{}", table(&rows));
        }
        let bins = crate::histogram::bins(&[0.0, 0.5, 99_999_999.0]);
        assert!(histogram(&bins).lines().all(|line| line.len() <= WIDTH), "{}", histogram(&bins));
    }
}
