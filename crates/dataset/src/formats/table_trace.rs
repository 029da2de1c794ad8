//! Traces that are tables: a header, then a row for each request with a time and two lengths.

use std::sync::Arc;

use aiperf_config::{Corpus, FileFormat};
use aiperf_types::{Content, ContextMode, Turn};

use super::blocks::BlockCheck;
use super::{Files, FirstTimes, Format, Open};
use crate::json::{self, Fault};
use crate::open::Opening;
use crate::prompt::Prompts;
use crate::record::{Check, Found, FoundTurn, LineFormat, Problem, Render, Row};
use crate::synthesis::Outputs;
use crate::{DatasetError, TurnFacts, instant};

/// Which columns a table has, and how its times are written.
pub(crate) struct Table {
    pub(crate) time: &'static str,
    pub(crate) input: &'static str,
    pub(crate) output: &'static str,
    pub(crate) times: Times,
}

/// How times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// Seconds since some start.
    Seconds,
    /// Dates with a time of day.
    Instants,
}

/// What is said of the type of a table; its file names the table, and how to open it.
pub(crate) const fn format_of(format: FileFormat, open: Open) -> Format {
    Format {
        trace: true,
        timed: true,
        promotes: true,
        makes_text: true,
        corpus: Some(Corpus::Sonnet),
        options: OPTIONS,
        // Every row has one.
        times: |_| FirstTimes { timestamp: true, delay: false },
        ..Format::new(format, Files::Csv, "one request", open)
    }
}

/// The options that act on tables.
const OPTIONS: &[&str] = &[
    "--prompt-corpus",
    "--ignore-trace-delays",
    "--synthesis-speedup-ratio",
    "--synthesis-prefix-len-multiplier",
    "--synthesis-prefix-root-multiplier",
    "--synthesis-prompt-len-multiplier",
    "--synthesis-output-len-multiplier",
    "--synthesis-max-isl",
    "--synthesis-max-osl",
    "--num-dataset-entries",
    "--input-columns",
];

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Values {
    time: Time,
    input: i64,
    output: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Time {
    Milliseconds(f64),
    Nanoseconds(i128),
}

impl Table {
    pub(crate) const fn columns(&self) -> [&'static str; 3] {
        [self.time, self.input, self.output]
    }

    /// What is wrong with a line that should name the columns.
    pub(crate) fn fault(&self, line: &str) -> Option<Fault> {
        let names: Vec<String> =
            line.split(',').map(|name| name.trim().trim_matches('"').to_owned()).collect();
        self.check(&names).err()
    }

    fn check(&self, found: &[String]) -> Result<(), Fault> {
        match self.columns().into_iter().find(|name| !found.iter().any(|column| column == name)) {
            None => Ok(()),
            Some(name) => Err(Fault::new(
                name,
                format!(
                    "the file has no such column, only {}; its first line must name the columns",
                    json::excerpt(&found.join(", "))
                ),
            )),
        }
    }

    /// A row; the fault of the first value that is missing or is not what its column holds.
    fn values(&self, row: &str) -> Result<Values, Fault> {
        let cells = json::object(row, &self.columns())?;
        let names = self.columns();
        let text = |column: usize| match cells[column] {
            Some(cell) => json::string(names[column], cell),
            None => Err(Fault::new(
                names[column],
                "there is no value: the cell is empty, or the row has other cells than the header",
            )),
        };
        let expected = |column: usize, what: &str, found: &str| {
            Fault::new(names[column], format!("expected {what}, found {}", json::excerpt(found)))
        };
        let time = text(0)?;
        let time = match self.times {
            Times::Seconds => {
                let milliseconds = time.trim().parse::<f64>().ok().map(|seconds| seconds * 1000.0);
                let finite = milliseconds.filter(|milliseconds| milliseconds.is_finite());
                Time::Milliseconds(finite.ok_or_else(|| expected(0, "a number of seconds", &time))?)
            }
            Times::Instants => {
                let instant = instant::nanoseconds(&time);
                Time::Nanoseconds(instant.ok_or_else(|| expected(0, "a date with a time of day", &time))?)
            }
        };
        let length = |column: usize| {
            let text = text(column)?;
            whole(text.trim()).ok_or_else(|| expected(column, "a whole number of tokens", &text))
        };
        Ok(Values { time, input: length(1)?, output: length(2)? })
    }
}

/// A whole number, which may be written with a fraction of 0.
fn whole(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| {
        let value: f64 = text.parse().ok()?;
        (value.fract() == 0.0 && value.abs() < 9.0e15).then_some(value as i64)
    })
}

struct TableCheck {
    table: &'static Table,
    lengths: BlockCheck,
    outputs: Outputs,
    reshapes: bool,
    /// What instants are counted from: that of the first row.
    origin: Option<i128>,
}

impl Check for TableCheck {
    fn columns(&mut self, names: &[String]) -> Result<(), Fault> {
        self.table.check(names)
    }

    fn record(&mut self, text: &str, found: &mut Found) -> Result<(), Fault> {
        let tally = &mut found.tally;
        tally.rows_read += 1;
        tally.nothing_to_reshape = self.reshapes;
        let values = match self.table.values(text) {
            Ok(values) => values,
            Err(fault) => {
                tally.rows_unreadable += 1;
                tally.first_unreadable.get_or_insert((found.line, fault));
                return Ok(());
            }
        };
        let input_tokens = self.lengths.input(values.input, None).map_err(|fault| match &*fault.field {
            "input_length" => Fault::new(self.table.input, fault.rule),
            _ => fault,
        })?;
        tally.input(input_tokens, false);
        tally.output(self.table.output, values.output, self.outputs)?;
        let timestamp = match values.time {
            Time::Milliseconds(time) => time,
            // The difference is exact where the instant itself would be rounded.
            Time::Nanoseconds(time) => (time - *self.origin.get_or_insert(time)) as f64 / 1e6,
        };
        found.turns.push(FoundTurn {
            timestamp: Some(timestamp),
            input_tokens: Some(input_tokens),
            ..FoundTurn::default()
        });
        Ok(())
    }
}

struct TableRender {
    table: &'static Table,
    prompts: Option<Prompts>,
    outputs: Outputs,
}

impl TableRender {
    fn values(&self, row: &str) -> Result<Values, Fault> {
        self.table.values(row).map_err(|_| Fault::new("", "is no longer a row of numbers"))
    }
}

impl Render for TableRender {
    fn turns(&self, text: &str, rows: &[Row], out: &mut Vec<Turn>) -> Result<(), Problem> {
        let values = self.values(text)?;
        let prompts = Prompts::required(self.prompts.as_ref())?;
        let text = prompts.exact(rows[0].record(), values.input.max(0) as u64);
        out.push(Turn {
            content: Content::text(text.text),
            text_tokens: Some(text.tokens),
            max_tokens: Some(self.outputs.limit(values.output)),
            ..Turn::default()
        });
        Ok(())
    }

    fn facts(&self, text: &str, _rows: &[Row], out: &mut Vec<TurnFacts>) -> Result<(), Problem> {
        let values = self.values(text)?;
        out.push(TurnFacts {
            input_tokens: Some(values.input.max(0) as u64),
            output_tokens: Some(values.output.max(0) as u64),
            ..TurnFacts::default()
        });
        Ok(())
    }

    fn mode(&self, _first: Row) -> ContextMode {
        ContextMode::DeltasWithoutResponses
    }
}

pub(crate) fn format(table: &'static Table, opening: &Opening<'_>) -> Result<LineFormat, DatasetError> {
    let prompts = Prompts::new(opening.corpus(), opening.context)?;
    let outputs = Outputs::new(&opening.file.synthesis);
    let check = TableCheck {
        table,
        // Who only looks makes no prompts.
        lengths: BlockCheck::new(1, prompts.is_some() || opening.context.survey.is_some()),
        outputs,
        reshapes: opening.file.synthesis.reshapes(),
        origin: None,
    };
    let render = TableRender { table, prompts, outputs };
    Ok(LineFormat {
        absolute_times: table.times == Times::Instants,
        ..LineFormat::new(Box::new(check), Arc::new(render))
    })
}
