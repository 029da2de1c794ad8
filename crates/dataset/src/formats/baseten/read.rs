//! The first read of a trace: every row is checked, and what planning needs of it is kept. Prompts, hashes and
//! recorded answers stay in the file.

use std::sync::Arc;

use aiperf_config::SessionColumn;
use arrow_array::{Array, RecordBatch};

use super::columns::{
    BLOCK_SIZE, CANCELED, Cell, Columns, E2E, HASHES, INPUT_TOKENS, OUTPUT_TOKENS, PROMPT, START,
};
use super::plan::Recorded;
use super::row::{NO_BLOCK_SIZE, NO_SESSION, Row};
use super::session::Values;
use crate::index::collect;
use crate::parquet::Table;
use crate::{DatasetError, Survey};

/// What is wanted of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// What rows say about the recorded server's cache.
    pub(super) hints: bool,
    /// How long requests took.
    pub(super) durations: bool,
}

/// What was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) recorded: Recorded,
    /// Rows whose client gave up.
    pub(super) canceled: u64,
}

/// Reads the rows of a file.
///
/// Under a survey rows that break a rule are left out and collected.
pub(super) fn read(
    table: &Arc<Table>,
    wanted: Wanted,
    survey: Option<&Survey>,
) -> Result<Read, DatasetError> {
    let file = Columns { table };
    file.check()?;
    if table.rows() == 0 {
        return Err(DatasetError::Empty(format!(
            "{}: the file has no rows; nothing can be sent",
            file.path().display()
        )));
    }
    if table.rows() > u64::from(u32::MAX) {
        return Err(DatasetError::Unsuitable(format!(
            "{}: more than {} rows; split the file",
            file.path().display(),
            u32::MAX
        )));
    }
    check_texts(table, wanted, survey)?;
    let mut names = vec![START, INPUT_TOKENS, OUTPUT_TOKENS];
    names.extend(SessionColumn::ALL.map(SessionColumn::name));
    names.push(CANCELED);
    names.extend(wanted.hints.then_some(BLOCK_SIZE));
    names.extend(wanted.durations.then_some(E2E));
    names.retain(|name| file.has(name));
    let mut reader = Reader {
        file,
        rows: Vec::with_capacity(table.rows() as usize),
        sessions: [Values::default(), Values::default()],
        first: f64::INFINITY,
        canceled: 0,
        survey,
    };
    for batch in table.batches(&numbers(table, &names), 0)? {
        let (first, batch) = batch?;
        reader.batch(first, &batch)?;
    }
    if let Some(survey) = survey {
        survey.count(table.rows());
    }
    let Reader { rows, sessions, first, canceled, .. } = reader;
    Ok(Read { recorded: Recorded { rows, sessions, first }, canceled })
}

/// The numbers of columns that are there.
pub(super) fn numbers(table: &Table, names: &[&str]) -> Vec<usize> {
    names
        .iter()
        .filter_map(|name| table.columns(&[*name]).ok())
        .flatten()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect()
}

struct Reader<'t> {
    file: Columns<'t>,
    rows: Vec<Row>,
    sessions: [Values; 2],
    first: f64,
    canceled: u64,
    survey: Option<&'t Survey>,
}

/// The columns of a batch.
struct Batch<'b> {
    starts: &'b dyn Array,
    inputs: &'b dyn Array,
    outputs: &'b dyn Array,
    ids: [Option<&'b dyn Array>; 2],
    canceled: Option<&'b dyn Array>,
    block_sizes: Option<&'b dyn Array>,
    durations: Option<&'b dyn Array>,
}

impl Reader<'_> {
    fn batch(&mut self, first: u64, batch: &RecordBatch) -> Result<(), DatasetError> {
        let file = self.file;
        let array = |name: &str| batch.column_by_name(name).map(AsRef::as_ref);
        let [Some(starts), Some(inputs), Some(outputs)] = [START, INPUT_TOKENS, OUTPUT_TOKENS].map(array)
        else {
            return Err(file.bad(first, START, "is missing in a part of the file"));
        };
        let batch_columns = Batch {
            starts,
            inputs,
            outputs,
            ids: SessionColumn::ALL.map(|column| array(column.name())),
            canceled: array(CANCELED),
            block_sizes: array(BLOCK_SIZE),
            durations: array(E2E),
        };
        for index in 0..batch.num_rows() {
            self.row(first + index as u64, index, &batch_columns)
                .or_else(|fault| collect(self.survey, fault))?;
        }
        Ok(())
    }

    fn row(&mut self, row: u64, index: usize, batch: &Batch<'_>) -> Result<(), DatasetError> {
        let file = self.file;
        let most = u64::from(u32::MAX);
        let cell = |array| Cell { array, index };
        let block_size = match batch.block_sizes {
            Some(array) => file.whole(cell(array), row, BLOCK_SIZE, most)?,
            None => None,
        };
        if block_size == Some(0) {
            return Err(file.bad(row, BLOCK_SIZE, "must be above 0"));
        }
        let duration = match batch.durations {
            Some(array) => file.duration(cell(array), row, E2E)?,
            None => None,
        };
        let canceled = match batch.canceled {
            Some(array) => file.switch(cell(array), row, CANCELED)?,
            None => None,
        };
        let time = file.start(cell(batch.starts), row)?;
        let input_tokens = file.needed(cell(batch.inputs), row, INPUT_TOKENS, most)? as u32;
        let output_tokens = file.needed(cell(batch.outputs), row, OUTPUT_TOKENS, most)? as u32;
        let mut session = [NO_SESSION; 2];
        for (at, column) in SessionColumn::ALL.into_iter().enumerate() {
            let Some(array) = batch.ids[at] else { continue };
            if let Some(id) = file.id(cell(array), row, column.name())? {
                session[at] = self.sessions[at].add(&id);
            }
        }
        self.first = self.first.min(time);
        self.canceled += u64::from(canceled == Some(true));
        self.rows.push(Row {
            time,
            wait: duration.unwrap_or(f64::NAN),
            number: row as u32,
            session,
            input_tokens,
            output_tokens,
            block_size: block_size.map_or(NO_BLOCK_SIZE, |size| size as u32),
        });
        Ok(())
    }
}

/// Reading more than this to find a row that is wrong is left to the time when the row is needed.
const LARGE: u64 = 64 << 20;

/// Checks prompts and hashes where that is cheap: by what the file says of itself, or by reading when they are short.
fn check_texts(table: &Arc<Table>, wanted: Wanted, survey: Option<&Survey>) -> Result<(), DatasetError> {
    let file = Columns { table };
    if table.nulls(PROMPT) != Some(0) {
        for batch in table.batches(&numbers(table, &[PROMPT]), 0)? {
            let (first, batch) = batch?;
            for index in 0..batch.num_rows() {
                let cell = Cell { array: batch.column(0).as_ref(), index };
                file.prompt(cell, first + index as u64).map(drop).or_else(|fault| collect(survey, fault))?;
            }
        }
    }
    if wanted.hints && file.has(HASHES) && table.stored_bytes(HASHES) <= LARGE {
        for batch in table.batches(&numbers(table, &[HASHES]), 0)? {
            let (first, batch) = batch?;
            for index in 0..batch.num_rows() {
                let cell = Cell { array: batch.column(0).as_ref(), index };
                file.hashes(cell, first + index as u64).map(drop).or_else(|fault| collect(survey, fault))?;
            }
        }
    }
    Ok(())
}
