//! How near the outcome came to the configuration, as text.

use std::fmt::Write as _;

use super::outcome::{DECODE_RATE, PREFILL_RATE};
use super::quality::initial_target;
use super::{Config, End, Outcome};

/// Standard deviations from the mean at which 5 % and 99 % of a normal distribution lie below.
const P05: f64 = -1.644_853_627;
const P99: f64 = 2.326_347_874;

/// `comparison.txt`: a plain table of what was asked for, what came out, and the difference.
pub fn comparison(config: &Config, outcome: &mut Outcome) -> String {
    let mut text = String::new();
    let title = "Agentic Code Session Profile: Target vs Synthesized Dataset";
    line(&mut text, title);
    line(&mut text, &"=".repeat(title.len() + 1));
    line(&mut text, "");
    line(
        &mut text,
        &format!(
            "{} sessions | {} turns | block_size={}",
            grouped(outcome.sessions() as f64, 0),
            grouped(outcome.rows() as f64, 0),
            config.block_size
        ),
    );
    line(&mut text, "");
    line(&mut text, &format!("{:<40}{:>13}{:>13}{:>9}", "", "Target", "Dataset", "Error"));
    let rule = "-".repeat(76);
    line(&mut text, &rule);

    let initial = outcome.initial.summary();
    let (mean, median) = initial_target(config);
    section(&mut text, "Initial Context (tokens)");
    compared(&mut text, "mean", Some(mean), initial.map(|of| of.mean), 1);
    compared(&mut text, "median", Some(median), initial.map(|of| of.median), 1);

    let new = outcome.new_tokens.summary();
    section(&mut text, "New Tokens Per Turn");
    compared(&mut text, "mean", Some(config.new_tokens.mean), new.map(|of| of.mean), 1);
    compared(&mut text, "median", Some(config.new_tokens.median), new.map(|of| of.median), 1);

    let output = outcome.output.summary();
    let floor = config.shortest_answer() as f64;
    section(&mut text, "Generation Length (tokens)");
    compared(&mut text, "mean", Some(config.generation.mean), output.map(|of| of.mean), 1);
    compared(&mut text, "median", Some(config.generation.median), output.map(|of| of.median), 1);
    for (name, deviations, found) in
        [("p05", P05, output.map(|of| of.p05)), ("p99", P99, output.map(|of| of.p99))]
    {
        compared(&mut text, name, Some(config.generation.quantile(deviations).round().max(floor)), found, 1);
    }

    section(&mut text, "Prompt");
    let limit = grouped(config.max_prompt_tokens as f64, 0);
    row(&mut text, "max_prompt_tokens", &limit, &limit, "");

    line(&mut text, "Additional Dataset Statistics");
    line(&mut text, &rule);
    let turns = outcome.turns.summary();
    section(&mut text, "Turns Per Session");
    let target = config.turns.map(|turns| (turns.mean, turns.median));
    compared(&mut text, "mean", target.map(|target| target.0), turns.map(|of| of.mean), 1);
    compared(&mut text, "median", target.map(|target| target.1), turns.map(|of| of.median), 1);
    if let Some(of) = turns {
        for (name, value) in
            [("p05", of.p05), ("p25", of.p25), ("p75", of.p75), ("p95", of.p95), ("p99", of.p99)]
        {
            compared(&mut text, name, None, Some(value), 1);
        }
    }
    section(&mut text, "Inter-Turn Delay (ms)");
    if let Some(of) = outcome.delay.summary() {
        for (name, value) in [("mean", of.mean), ("median", of.median), ("p05", of.p05), ("p95", of.p95)] {
            compared(&mut text, name, None, Some(value), 0);
        }
    }
    let fast = config.delays.agentic_fraction * 100.0;
    line(
        &mut text,
        &format!(
            "  ({fast:.0}% agentic ~{:.1}s, {:.0}% human ~{:.0}s)",
            config.delays.agentic.mean / 1000.0,
            100.0 - fast,
            config.delays.human.mean / 1000.0
        ),
    );
    line(&mut text, "");
    section(
        &mut text,
        &format!(
            "Session Duration (estimated @ {} prefill tok/s, {} decode tok/s)",
            grouped(PREFILL_RATE, 0),
            grouped(DECODE_RATE, 0)
        ),
    );
    if let Some(of) = outcome.duration.summary() {
        for (name, seconds) in [("mean", of.mean), ("median", of.median)] {
            row(&mut text, name, "-", &format!("{:.1} min", seconds / 60.0), "");
        }
    }
    section(&mut text, "Cache (infinite, sessions in file order)");
    row(&mut text, "hit ratio of blocks", "-", &format!("{:.1}%", outcome.hit_ratio() * 100.0), "");
    section(&mut text, "Session Endings");
    for (name, end) in [
        ("forced retires (hit context limit)", End::ForcedRetire),
        ("probabilistic resets", End::ProbabilisticReset),
        ("target turn counts", End::TargetTurnCount),
        ("restart splits", End::RestartSplit),
    ] {
        row(&mut text, name, "-", &grouped(outcome.ended(end) as f64, 0), "");
    }
    text
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// A heading, with a blank line before it unless there is one or a rule.
fn section(text: &mut String, name: &str) {
    if !text.ends_with("\n\n") && !text.ends_with("-\n") {
        text.push('\n');
    }
    line(text, name);
}

fn row(text: &mut String, name: &str, target: &str, found: &str, error: &str) {
    let mut row = String::new();
    // Writing to a string cannot fail.
    let _ = write!(row, "  {name:<38}{target:>13}{found:>13}  {error}");
    line(text, row.trim_end());
    if name == "max_prompt_tokens" {
        text.push('\n');
    }
}

fn compared(text: &mut String, name: &str, target: Option<f64>, found: Option<f64>, decimals: usize) {
    let error = match (target, found) {
        (Some(target), Some(found)) => format!("{:+.1}%", (found - target) / target * 100.0),
        _ => String::new(),
    };
    let found = found.map_or("-".to_owned(), |found| grouped(found, decimals));
    let target = target.map_or("-".to_owned(), |target| grouped(target, usize::from(target.fract() != 0.0)));
    row(text, name, &target, &found, &error);
}

/// A number with commas between its thousands.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (index, digit) in whole.char_indices() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::Synthesis;
    use super::*;

    #[test]
    fn thousands_are_told_apart() {
        assert_eq!(grouped(1_234_567.89, 1), "1,234,567.9");
        assert_eq!((grouped(999.0, 0), grouped(1000.0, 0)), ("999".into(), "1,000".into()));
    }

    #[test]
    fn the_table_has_the_targets_of_the_configuration() {
        let synthesis = Synthesis::new(Config::default(), 20, 42).unwrap();
        let mut outcome = synthesis.write(&mut io::sink(), &mut |_| {}).unwrap().outcome;
        let text = comparison(synthesis.config(), &mut outcome);
        let row = |name: &str, nth: usize| {
            let row = text.lines().filter(|line| line.trim_start().starts_with(name)).nth(nth).unwrap();
            row.split_whitespace().nth(1).unwrap().to_owned()
        };
        assert_eq!((row("mean", 0), row("median", 0)), ("62,736".into(), "57,736".into()));
        assert_eq!((row("p05", 0), row("p99", 0)), ("57".into(), "3,150".into()));
        assert!(text.lines().all(|line| line.len() <= 80 && line == line.trim_end()), "{text}");
        assert!(!text.contains("\n\n\n"));
    }
}
