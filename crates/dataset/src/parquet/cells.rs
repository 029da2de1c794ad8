//! Cells of any row, in any order, by any thread: batches are decoded around the rows that are asked for, and the
//! latest of them are kept, so that rows that are asked for in order are decoded once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::RecordBatch;

use super::table::{Reader, Table, damaged};
use crate::DatasetError;

/// Decoded bytes that are kept at most, apart from the batch just asked for.
const KEPT_BYTES: u64 = 48 << 20;
/// Readers that are kept where they stopped.
const KEPT_READERS: usize = 4;

/// Some columns of the shards of a dataset.
pub(crate) struct Cells {
    tables: Arc<[Arc<Table>]>,
    /// By table: their numbers.
    columns: Box<[Box<[usize]>]>,
    /// Decoded bytes that are kept at most.
    most: u64,
    kept: Mutex<Kept>,
    readers: Mutex<Vec<Stopped>>,
}

/// Which table, and the first row of the batch in it.
type Key = (usize, u64);
type Slot = Arc<OnceLock<Result<Arc<RecordBatch>, DatasetError>>>;

#[derive(Default)]
struct Kept {
    batches: HashMap<Key, Entry>,
    bytes: u64,
    clock: u64,
}

struct Entry {
    slot: Slot,
    weight: u64,
    used: u64,
}

/// A reader, and the row it goes on with.
struct Stopped {
    next: Key,
    reader: Reader,
}

impl Cells {
    /// Reads these columns, given for each table by their numbers.
    pub(crate) fn new(tables: Arc<[Arc<Table>]>, columns: Box<[Box<[usize]>]>) -> Cells {
        Cells { tables, columns, most: KEPT_BYTES, kept: Mutex::default(), readers: Mutex::default() }
    }

    /// Reads these columns of one table.
    pub(crate) fn of(table: &Arc<Table>, columns: &[usize]) -> Cells {
        Cells::new(Arc::new([Arc::clone(table)]), Box::new([columns.into()]))
    }

    /// Row `row`, from 0, of table `table`.
    ///
    /// # Panics
    /// When there is no such table.
    pub(crate) fn row(&self, table: usize, row: u64) -> Result<Cell, DatasetError> {
        if row >= self.tables[table].rows() {
            let rows = self.tables[table].rows();
            return Err(damaged(
                self.tables[table].path(),
                &format!("row {} of {rows} is asked for", row + 1),
            ));
        }
        let (first, rows) = self.tables[table].batch_of(row, &self.columns[table]);
        let key = (table, first);
        let slot = self.slot(key);
        let mut weight = None;
        // Other threads that want the same batch wait for it here; all others go on.
        let batch = slot.get_or_init(|| {
            let batch = self.decode(key, rows)?;
            weight = Some(self.tables[table].weight(&batch));
            Ok(Arc::new(batch))
        });
        if let Some(weight) = weight {
            self.keep(key, weight.max(1));
        }
        Ok(Cell { batch: Arc::clone(batch.as_ref().map_err(Clone::clone)?), index: (row - first) as usize })
    }

    fn slot(&self, key: Key) -> Slot {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let used = kept.clock;
        let entry =
            kept.batches.entry(key).or_insert_with(|| Entry { slot: Slot::default(), weight: 0, used });
        entry.used = used;
        Arc::clone(&entry.slot)
    }

    /// Counts a batch that was decoded, and lets go of those that were not used for longest.
    fn keep(&self, key: Key, weight: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = kept.batches.get_mut(&key) {
            entry.weight = weight;
            kept.bytes += weight;
        }
        while kept.bytes > self.most {
            // What is still being decoded weighs nothing yet and stays.
            let others = kept.batches.iter().filter(|(other, entry)| **other != key && entry.weight > 0);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key) else { break };
            if let Some(entry) = kept.batches.remove(&oldest) {
                kept.bytes -= entry.weight;
            }
        }
    }

    fn decode(&self, key: Key, rows: u64) -> Result<RecordBatch, DatasetError> {
        let (number, first) = key;
        let (table, columns) = (&self.tables[number], &self.columns[number]);
        let stopped = {
            let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
            readers.iter().position(|stopped| stopped.next == key).map(|at| readers.remove(at).reader)
        };
        let mut reader = match stopped {
            Some(reader) => reader,
            None => table.reader_at(first, columns)?,
        };
        let batch = table.next(&mut reader)?;
        let batch = batch.filter(|batch| batch.num_rows() as u64 == rows).ok_or_else(|| {
            damaged(table.path(), &format!("rows {} to {} are not there", first + 1, first + rows))
        })?;
        if table.goes_on(first + rows) {
            let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
            if readers.len() == KEPT_READERS {
                readers.remove(0);
            }
            readers.push(Stopped { next: (number, first + rows), reader });
        }
        Ok(batch)
    }
}

/// One row of some columns.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    batch: Arc<RecordBatch>,
    index: usize,
}

impl Cell {
    /// The rows that this one was decoded with, and which of them it is.
    pub(crate) fn in_batch(&self) -> (&RecordBatch, usize) {
        (&self.batch, self.index)
    }
}

#[cfg(test)]
impl Cells {
    /// As it is, but keeping fewer bytes.
    pub(super) fn keeping(self, most: u64) -> Cells {
        Cells { most, ..self }
    }

    /// Bytes, batches and readers that are kept.
    pub(super) fn held(&self) -> (u64, usize, usize) {
        let kept = self.kept.lock().unwrap();
        assert_eq!(kept.bytes, kept.batches.values().map(|entry| entry.weight).sum::<u64>());
        (kept.bytes, kept.batches.len(), self.readers.lock().unwrap().len())
    }
}
