//! The rows of parquet shards as records.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::index::IDENTITY_RECORDS;
use crate::json::Fault;
use crate::parquet::{Batches, Cells, NotFinite, Table, Writer};
use crate::{DatasetError, Note};

/// The shards of a dataset and those of their columns that its format reads.
pub(crate) struct Columns {
    shards: Box<[Shard]>,
    cells: Cells,
}

struct Shard {
    table: Arc<Table>,
    /// Numbers of the columns that are read.
    read: Box<[usize]>,
    writer: Writer,
    /// Rows of this one that are among the first records of the dataset, of which every column is read: what a
    /// dataset is recognised by.
    first: u64,
}

impl Columns {
    /// Takes the columns with one of these names, all of them without any, and those that may hold a number which
    /// is none.
    pub(crate) fn new(tables: Vec<Arc<Table>>, keys: Option<&[&str]>) -> Result<Columns, DatasetError> {
        let mut left = IDENTITY_RECORDS;
        let mut shards = Vec::with_capacity(tables.len());
        for table in &tables {
            table.check_json()?;
            let wanted = |name: &str| keys.is_none_or(|keys| keys.contains(&name));
            let fields = table.schema().fields();
            let mut read: Vec<usize> =
                (0..fields.len()).filter(|index| wanted(fields[*index].name())).collect();
            read.extend(table.columns_with_floats());
            read.sort_unstable();
            read.dedup();
            // Rows without one column cannot be told from no rows.
            if read.is_empty() && !fields.is_empty() {
                read.push(0);
            }
            let first = table.rows().min(left);
            left -= first;
            let writer = Writer::new(&read.iter().map(|index| Arc::clone(&fields[*index])).collect());
            shards.push(Shard { table: Arc::clone(table), read: read.into(), writer, first });
        }
        let columns = shards.iter().map(|shard| shard.read.clone()).collect();
        Ok(Columns { shards: shards.into(), cells: Cells::new(tables.into(), columns) })
    }

    /// A row of a shard as JSON text.
    pub(super) fn record(&self, shard: usize, row: u64) -> Result<Result<String, Fault>, DatasetError> {
        let cell = self.cells.row(shard, row)?;
        let (batch, index) = cell.in_batch();
        let mut text = String::new();
        Ok(self.shards[shard].writer.row(batch, index, &mut text).map(|()| text).map_err(fault))
    }

    /// What went wrong while rows were read, without keeping any from being read.
    pub(super) fn late_note(&self) -> Option<Note> {
        self.cells.late_note()
    }

    /// Whether some row of a shard may have a value in this column.
    pub(super) fn may_have(&self, shard: usize, column: &str) -> bool {
        self.shards[shard].table.may_have(column)
    }
}

fn fault(found: NotFinite) -> Fault {
    Fault::new(
        found.column,
        format!("is {}, which JSON has no number for; correct the value, or make it null", found.value),
    )
}

/// Reads the rows of one shard from first to last.
pub(super) struct ColumnRows {
    columns: Arc<Columns>,
    number: usize,
    batches: Batches,
    /// For the rows with every column.
    whole: Option<Writer>,
    batch: Option<RecordBatch>,
    first: u64,
    next: usize,
}

impl ColumnRows {
    pub(super) fn new(columns: &Arc<Columns>, number: usize) -> Result<ColumnRows, DatasetError> {
        let shard = &columns.shards[number];
        let fields = shard.table.schema().fields();
        let whole = shard.first > 0 && shard.read.len() < fields.len();
        let all: Vec<usize> = (0..fields.len()).collect();
        let batches = shard.table.batches(if whole { &all } else { &shard.read }, 0)?;
        Ok(ColumnRows {
            columns: Arc::clone(columns),
            number,
            batches,
            whole: whole.then(|| Writer::new(fields)),
            batch: None,
            first: 0,
            next: 0,
        })
    }

    /// Writes the next row into `out`; its number from 0.
    #[expect(clippy::type_complexity, reason = "a row, that may have no form")]
    pub(super) fn next(
        &mut self,
        out: &mut String,
    ) -> Result<Option<(u64, Result<(), Fault>)>, DatasetError> {
        out.clear();
        let shard = &self.columns.shards[self.number];
        loop {
            let row = self.first + self.next as u64;
            if self.whole.is_some() && row >= shard.first {
                self.whole = None;
                self.batch = None;
                self.batches = shard.table.batches(&shard.read, row)?;
            }
            if let Some(batch) = &self.batch
                && self.next < batch.num_rows()
            {
                let writer = self.whole.as_ref().unwrap_or(&shard.writer);
                let written = writer.row(batch, self.next, out).map_err(fault);
                self.next += 1;
                return Ok(Some((row, written)));
            }
            let Some(batch) = self.batches.next() else { return Ok(None) };
            let (first, batch) = batch?;
            self.first = first;
            self.next = 0;
            self.batch = Some(batch);
        }
    }
}
