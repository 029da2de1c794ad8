//! Cells of any row, in any order, by any thread: batches are decoded around the rows that are asked for, and the
//! latest of them are kept, so that rows that are asked for in order are decoded once. Where that does not help, since
//! the order is another one, the rows are copied to where they can be read alone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::RecordBatch;

use super::aside::Aside;
use super::guard::damaged;
use super::readers::{Key, Readers};
use super::table::{Reader, Table};
use crate::{DatasetError, Note};

/// Decoded bytes that are kept at most, apart from the batch just asked for.
const KEPT_BYTES: u64 = 32 << 20;
/// The same in parts once rows are copied: from then on few are asked for that are not there.
const KEPT_BESIDE_COPY: u64 = 8;
/// Bytes decoded in vain before row groups are copied when a row of theirs is wanted: about one page that is as large as
/// its row group. Rows whose pages are small are read where they are all the same.
const WASTE_BYTES: u64 = 64 << 20;
/// So many times as much is decoded in vain, at the least, before everything is copied.
const WASTE_BEFORE_ALL: u64 = 4;

/// Some columns of the shards of a dataset.
pub(crate) struct Cells {
    shared: Arc<Shared>,
}

struct Shared {
    tables: Arc<[Arc<Table>]>,
    /// By table: their numbers.
    columns: Box<[Box<[usize]>]>,
    /// Decoded bytes that are kept at most.
    most: u64,
    /// Bytes that may be decoded in vain before row groups that rows are wanted of are copied, and before all are.
    waste: [u64; 2],
    kept: Mutex<Kept>,
    readers: Readers<Reader>,
    /// Bytes decoded so far that nobody had asked for when they were let go.
    wasted: AtomicU64,
    /// The copy, once it is begun; `None` when there can be none.
    aside: OnceLock<Option<Aside>>,
    /// Why there is no copy although there should be one.
    failure: OnceLock<String>,
    /// What to copy to instead of a new file.
    #[cfg(test)]
    file: OnceLock<std::fs::File>,
}

type Slot = Arc<OnceLock<Result<Arc<RecordBatch>, DatasetError>>>;

#[derive(Default)]
struct Kept {
    /// By table and first row.
    batches: HashMap<Key, Entry>,
    bytes: u64,
    clock: u64,
}

struct Entry {
    slot: Slot,
    weight: u64,
    rows: u64,
    /// When it was last asked for.
    used: u64,
    /// How often it was asked for.
    asked: u64,
}

impl Cells {
    /// Reads these columns, given for each table by their numbers.
    pub(crate) fn new(tables: Arc<[Arc<Table>]>, columns: Box<[Box<[usize]>]>) -> Cells {
        Self::within(tables, columns, KEPT_BYTES, WASTE_BYTES)
    }

    fn within(tables: Arc<[Arc<Table>]>, columns: Box<[Box<[usize]>]>, most: u64, least_waste: u64) -> Cells {
        let all: u64 = tables.iter().zip(&columns).map(|(table, columns)| table.decoded_bytes(columns)).sum();
        // What can be kept as a whole is decoded once, whatever the order.
        let waste = if all <= most {
            [u64::MAX; 2]
        } else {
            [least_waste, (all / 2).max(least_waste.saturating_mul(WASTE_BEFORE_ALL))]
        };
        let shared = Shared {
            tables,
            columns,
            most,
            waste,
            kept: Mutex::default(),
            readers: Readers::new(),
            wasted: AtomicU64::new(0),
            aside: OnceLock::new(),
            failure: OnceLock::new(),
            #[cfg(test)]
            file: OnceLock::new(),
        };
        Cells { shared: Arc::new(shared) }
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
        let shared = &self.shared;
        if row >= shared.tables[table].rows() {
            let rows = shared.tables[table].rows();
            return Err(damaged(
                shared.tables[table].path(),
                &format!("row {} of {rows} is asked for", row + 1),
            ));
        }
        let (first, rows) = shared.tables[table].batch_of(row, &shared.columns[table]);
        let key = (table, first);
        if let Some(Some(aside)) = shared.aside.get() {
            let group = shared.tables[table].group_of(row);
            let copied = aside.row(table, group, row).or_else(|| {
                shared.is_far(key, group, rows).then(|| aside.wait_for(table, group))?;
                aside.row(table, group, row)
            });
            if let Some((batch, index)) = copied {
                return Ok(Cell { batch: Arc::new(batch), index });
            }
        }
        let slot = shared.slot(key);
        let mut weight = None;
        // Other threads that want the same batch wait for it here; all others go on.
        let batch = slot.get_or_init(|| {
            let batch = shared.decode(key, rows)?;
            weight = Some(shared.tables[table].weight(&batch));
            Ok(Arc::new(batch))
        });
        if let Some(weight) = weight {
            shared.keep(key, (weight.max(1), rows));
            let wasted = shared.wasted.load(Ordering::Relaxed);
            let [some, all] = shared.waste.map(|waste| wasted > waste);
            if some {
                Shared::copy_rows(shared);
            }
            if all && let Some(Some(aside)) = shared.aside.get() {
                aside.want_all();
            }
        }
        Ok(Cell { batch: Arc::clone(batch.as_ref().map_err(Clone::clone)?), index: (row - first) as usize })
    }

    /// What went wrong meanwhile without stopping anything.
    pub(crate) fn late_note(&self) -> Option<Note> {
        self.shared.failure.get().map(|reason| Note::RowsNotCopied { reason: reason.clone() })
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        if let Some(Some(aside)) = self.shared.aside.get() {
            aside.stop();
        }
    }
}

impl Shared {
    fn slot(&self, key: Key) -> Slot {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let used = kept.clock;
        let entry = kept.batches.entry(key).or_insert_with(|| Entry {
            slot: Slot::default(),
            weight: 0,
            rows: 0,
            used,
            asked: 0,
        });
        entry.used = used;
        entry.asked += 1;
        Arc::clone(&entry.slot)
    }

    /// Whether decoding a batch costs about as much as copying its row group, and nothing of that was done already:
    /// neither does a reader stop there, nor are rows read in order from one row group to the next.
    fn is_far(&self, key: Key, group: usize, rows: u64) -> bool {
        let (number, first) = key;
        let (table, columns) = (&self.tables[number], &self.columns[number]);
        let is_kept =
            |key: Key| self.kept.lock().unwrap_or_else(PoisonError::into_inner).batches.contains_key(&key);
        let goes_on = first > 0
            && table.range_of(group).start == first
            && is_kept((number, table.batch_of(first - 1, columns).0));
        !goes_on
            && !is_kept(key)
            && !self.readers.reach(key)
            && table.jump_bytes(first, rows, columns) >= table.group_bytes(group, columns) / 2
    }

    /// Counts a batch that was decoded, and lets go of those that were not used for longest.
    fn keep(&self, key: Key, (weight, rows): (u64, u64)) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = kept.batches.get_mut(&key) {
            (entry.weight, entry.rows) = (weight, rows.max(1));
            kept.bytes += weight;
        }
        let most = if self.aside.get().is_some() { self.most / KEPT_BESIDE_COPY } else { self.most };
        while kept.bytes > most {
            // What is still being decoded weighs nothing yet and stays.
            let others = kept.batches.iter().filter(|(other, entry)| **other != key && entry.weight > 0);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key) else { break };
            if let Some(entry) = kept.batches.remove(&oldest) {
                kept.bytes -= entry.weight;
                let unasked = entry.rows.saturating_sub(entry.asked) as f64 / entry.rows as f64;
                self.wasted.fetch_add((entry.weight as f64 * unasked) as u64, Ordering::Relaxed);
            }
        }
    }

    fn decode(&self, key: Key, rows: u64) -> Result<RecordBatch, DatasetError> {
        let (number, first) = key;
        let (table, columns) = (&self.tables[number], &self.columns[number]);
        let next = first + rows;
        let bytes = table.reader_bytes(table.group_of(first), columns);
        let (lease, stopped) = self.readers.at(key, (number, next), bytes);
        let jumps = stopped.is_none();
        let mut reader = match stopped {
            Some(reader) => reader,
            None => table.reader_at(first, columns)?,
        };
        let batch = table.next(&mut reader)?;
        let batch = batch
            .filter(|batch| batch.num_rows() as u64 == rows)
            .ok_or_else(|| damaged(table.path(), &format!("rows {} to {next} are not there", first + 1)))?;
        if jumps {
            let beside = table.jump_bytes(first, rows, columns).saturating_sub(table.weight(&batch));
            self.wasted.fetch_add(beside, Ordering::Relaxed);
        }
        if table.goes_on(next) {
            lease.keep(reader);
        } else {
            drop(reader);
        }
        Ok(batch)
    }

    /// Begins to copy rows, unless that was done before.
    fn copy_rows(shared: &Arc<Shared>) {
        let mut begun = false;
        let aside = shared.aside.get_or_init(|| {
            #[cfg(test)]
            let file = shared.file.get().map_or_else(tempfile::tempfile, std::fs::File::try_clone);
            // Without a name: it is gone with the process, however that ends.
            #[cfg(not(test))]
            let file = tempfile::tempfile();
            begun = file.is_ok();
            let aside = file.map(|file| Aside::new(file, &shared.tables));
            aside.map_err(|error| shared.failure.set(in_words(&error))).ok()
        });
        let Some(aside) = aside.as_ref().filter(|_| begun) else { return };
        let own = Arc::clone(shared);
        let copying = move || {
            if let Some(Some(aside)) = own.aside.get() {
                let failed = |error: &std::io::Error| drop(own.failure.set(in_words(error)));
                aside.fill(&own.tables, &own.columns, &own.readers, failed);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("rows".into()).spawn(copying) {
            let _ = shared.failure.set(error.to_string());
            aside.end();
        }
    }
}

fn in_words(error: &std::io::Error) -> String {
    format!("{error} in {}", std::env::temp_dir().display())
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
    /// All columns of one table, keeping so many bytes, and copying rows after so many were decoded in vain.
    pub(super) fn keeping(table: &Arc<Table>, most: u64, waste: u64) -> Cells {
        let columns: Box<[usize]> = (0..table.schema().fields().len()).collect();
        Cells::within(Arc::new([Arc::clone(table)]), Box::new([columns]), most, waste)
    }

    /// As it is, but copying to this file.
    pub(super) fn copying_to(self, file: std::fs::File) -> Cells {
        self.shared.file.set(file).unwrap();
        self
    }

    /// Bytes, batches and readers that are kept.
    pub(super) fn held(&self) -> (u64, usize, usize) {
        let kept = self.shared.kept.lock().unwrap();
        assert_eq!(kept.bytes, kept.batches.values().map(|entry| entry.weight).sum::<u64>());
        (kept.bytes, kept.batches.len(), self.shared.readers.held().1)
    }

    /// Readers opened so far.
    pub(super) fn opened(&self) -> u64 {
        self.shared.readers.opened()
    }

    /// Whether copying has begun, and whether it has ended.
    pub(super) fn copies(&self) -> (bool, bool) {
        let aside = self.shared.aside.get();
        (aside.is_some(), aside.is_some_and(|aside| aside.as_ref().is_none_or(Aside::has_ended)))
    }
}
