//! Rows that are a list of questions each, asked one after the other.

use aiperf_types::{Content, Turn};

use super::{Converter, Draft, Fault, Made, Row, Value};

/// Which questions of a row are asked; all are trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The first.
    First,
    /// All that are not blank.
    All,
}

struct Questions {
    column: &'static str,
    asked: Asked,
}

/// A converter of such rows.
pub(super) fn make(column: &'static str, asked: Asked) -> Box<dyn Converter> {
    Box::new(Questions { column, asked })
}

impl Converter for Questions {
    fn columns(&self) -> Option<Vec<&str>> {
        Some(vec![self.column])
    }

    fn required(&self) -> Vec<&str> {
        vec![self.column]
    }

    fn convert(&self, row: &Row) -> Result<Made, Fault> {
        let questions = row.cell(self.column).and_then(Value::list).unwrap_or_default();
        let turn = |text: &str| Turn { content: Content::text(text), ..Turn::default() };
        let texts = questions.iter().filter_map(Value::text).map(str::trim);
        let some = |text: &&str| !text.is_empty();
        let turns: Vec<Turn> = match self.asked {
            Asked::First => texts.take(1).filter(some).map(turn).collect(),
            Asked::All => texts.filter(some).map(turn).collect(),
        };
        if turns.is_empty() {
            return Ok(Made::Skipped("no question"));
        }
        Ok(Made::Conversations(vec![Draft { turns, ..Draft::default() }]))
    }
}
