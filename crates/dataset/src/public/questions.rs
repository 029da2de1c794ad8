//! Rows that are a list of questions each, asked one after the other.

use aiperf_types::{Content, Turn};

use super::instruction::missing_column;
use super::{Converter, Draft, Fault, Job, Made, Row, Value};

struct Questions<'a> {
    job: Job<'a>,
    column: &'static str,
}

/// A converter of such rows.
pub(super) fn make<'a>(job: Job<'a>, column: &'static str) -> Box<dyn Converter + 'a> {
    Box::new(Questions { job, column })
}

impl Converter for Questions<'_> {
    fn columns(&self) -> Option<Vec<&str>> {
        Some(vec![self.column])
    }

    fn check(&self, first: &Row) -> Result<(), Fault> {
        if first.columns().contains(&self.column) {
            return Ok(());
        }
        Err(missing_column(&self.job, first, self.column))
    }

    fn convert(&self, row: &Row) -> Result<Made, Fault> {
        let questions = row.cell(self.column).and_then(Value::list).unwrap_or_default();
        let turn = |text: &str| Turn { content: Content::text(text), ..Turn::default() };
        let texts = questions.iter().filter_map(Value::text);
        let turns: Vec<Turn> = texts.filter(|text| !text.trim().is_empty()).map(turn).collect();
        if turns.is_empty() {
            return Ok(Made::Skipped("no question"));
        }
        Ok(Made::Conversations(vec![Draft { turns, ..Draft::default() }]))
    }
}
