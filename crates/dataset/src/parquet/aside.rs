//! A copy of the rows in a file of its own where each of them can be read alone. Writers of parquet put as many rows
//! into a page as they like, and whoever wants one of them decodes them all; when rows are wanted in an order that has
//! nothing to do with theirs, reading each row group once and keeping its rows in pieces costs less. Row groups that
//! somebody waits for are copied first.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::writer::{
    DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions, write_message,
};
use arrow_ipc::{Block, MetadataVersion};
use arrow_schema::{ArrowError, SchemaRef};

use super::readers::Readers;
use super::table::{Reader, Table};
use crate::DatasetError;

/// Bytes of a piece that are aimed at.
const PIECE_BYTES: usize = 128 << 10;

/// Rows that lie together in the file.
#[derive(Debug)]
struct Piece {
    /// The row after its last one.
    end: u64,
    offset: u64,
    head: u32,
    body: u32,
}

/// The rows of some columns of some tables, as far as they are copied.
pub(super) struct Aside {
    file: File,
    tables: Box<[Copied]>,
    /// It is no longer written, nor read.
    given_up: AtomicBool,
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

/// A table, and a row group of it.
type Group = (usize, usize);

/// What is to be copied.
#[derive(Default)]
struct Wanted {
    /// What somebody waits for, in order.
    first: VecDeque<Group>,
    /// Everything else, too.
    all: bool,
    /// Nobody wants anything any more.
    stopped: bool,
    /// The copy is complete, or never will be.
    ended: bool,
}

struct Copied {
    /// By row group.
    groups: Box<[OnceLock<Box<[Piece]>>]>,
    schema: OnceLock<SchemaRef>,
}

/// Why a copy ended early.
#[derive(Debug)]
enum Early {
    /// Its file cannot be written.
    Write(io::Error),
    /// A row cannot be read: whoever wants it is told.
    Read,
    /// Nobody wants it any more.
    Unwanted,
}

impl From<io::Error> for Early {
    fn from(error: io::Error) -> Early {
        Early::Write(error)
    }
}

impl From<DatasetError> for Early {
    fn from(_: DatasetError) -> Early {
        Early::Read
    }
}

impl From<ArrowError> for Early {
    fn from(error: ArrowError) -> Early {
        match error {
            ArrowError::IoError(_, error) => Early::Write(error),
            _ => Early::Read,
        }
    }
}

impl Aside {
    /// An empty copy.
    pub(super) fn new(file: File, tables: &[Arc<Table>]) -> Aside {
        let copied = |table: &Arc<Table>| Copied {
            groups: (0..table.groups()).map(|_| OnceLock::new()).collect(),
            schema: OnceLock::new(),
        };
        Aside {
            file,
            tables: tables.iter().map(copied).collect(),
            given_up: AtomicBool::new(false),
            wanted: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a row group is copied, which is done before others, or never will be.
    pub(super) fn wait_for(&self, table: usize, group: usize) {
        let is_copied = || self.tables[table].groups[group].get().is_some();
        let mut wanted = self.wanted();
        if !wanted.ended && !is_copied() && !wanted.first.contains(&(table, group)) {
            wanted.first.push_back((table, group));
            self.changed.notify_all();
        }
        while !wanted.ended && !is_copied() {
            wanted = self.changed.wait(wanted).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Has everything copied, waited for or not.
    pub(super) fn want_all(&self) {
        self.wanted().all = true;
        self.changed.notify_all();
    }

    /// Ends the copy early.
    pub(super) fn stop(&self) {
        self.wanted().stopped = true;
        self.changed.notify_all();
    }

    /// Nothing more will be copied: nobody waits any longer.
    pub(super) fn end(&self) {
        self.wanted().ended = true;
        self.changed.notify_all();
    }

    /// The piece with a row, and which of its rows that is; `None` when it is not copied.
    pub(super) fn row(&self, table: usize, group: usize, row: u64) -> Option<(RecordBatch, usize)> {
        if self.given_up.load(Ordering::Acquire) {
            return None;
        }
        let copied = &self.tables[table];
        let pieces = copied.groups[group].get()?;
        let piece = pieces.get(pieces.partition_point(|piece| piece.end <= row))?;
        let mut bytes = vec![0; piece.head as usize + piece.body as usize];
        self.file.read_exact_at(&mut bytes, piece.offset).ok()?;
        let decoder = FileDecoder::new(Arc::clone(copied.schema.get()?), MetadataVersion::V5);
        let block = Block::new(0, piece.head as i32, i64::from(piece.body));
        let batch = decoder.read_record_batch(&block, &Buffer::from_vec(bytes)).ok()??;
        let from_end = usize::try_from(piece.end - row).ok()?;
        let index = batch.num_rows().checked_sub(from_end)?;
        Some((batch, index))
    }

    /// Copies row groups as they are wanted, until all are copied or the copy is stopped. Readers that are in use
    /// elsewhere take turns with this one. An error is given to `failed` before those who wait go on.
    pub(super) fn fill(
        &self,
        tables: &[Arc<Table>],
        columns: &[Box<[usize]>],
        readers: &Readers<Reader>,
        failed: impl FnOnce(&io::Error),
    ) {
        // However this ends.
        let _ended = Ended(self);
        if let Err(early) = self.copy(tables, columns, readers) {
            self.given_up.store(true, Ordering::Release);
            // What others need the disk for must not suffer.
            let _ = self.file.set_len(0);
            if let Early::Write(error) = early {
                failed(&error);
            }
        }
    }

    fn copy(
        &self,
        tables: &[Arc<Table>],
        columns: &[Box<[usize]>],
        readers: &Readers<Reader>,
    ) -> Result<(), Early> {
        let mut out = Out::new(&self.file);
        let groups = tables.iter().enumerate().flat_map(|(number, table)| {
            let some = (0..table.groups()).filter(|group| !table.range_of(*group).is_empty());
            some.map(move |group| (number, group))
        });
        let mut left: VecDeque<Group> = groups.collect();
        while let Some((number, group)) = self.next(&mut left)? {
            let (table, columns, copied) = (&tables[number], &columns[number], &self.tables[number]);
            let rows = table.range_of(group);
            let lease = readers.apart(table.reader_bytes(group, columns));
            let mut reader = table.reader_at(rows.start, columns)?;
            let mut pieces = Vec::new();
            let mut next = rows.start;
            while next < rows.end {
                let batch = table.next(&mut reader)?.filter(|batch| batch.num_rows() > 0);
                let batch = batch.ok_or(Early::Read)?;
                copied.schema.get_or_init(|| batch.schema());
                let length = batch.num_rows() * PIECE_BYTES / batch.get_array_memory_size().max(1);
                for first in (0..batch.num_rows()).step_by(length.max(1)) {
                    let rows = length.max(1).min(batch.num_rows() - first);
                    pieces.push(out.piece(&batch.slice(first, rows), next + (first + rows) as u64)?);
                }
                next += batch.num_rows() as u64;
            }
            drop((reader, lease));
            out.writer.flush()?;
            let _ = copied.groups[group].set(pieces.into());
            // Whoever was about to wait has the lock or will see the pieces.
            drop(self.wanted());
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Takes the row group that is copied next from those that are left; waits until one is wanted. `None` when none
    /// is left.
    fn next(&self, left: &mut VecDeque<Group>) -> Result<Option<Group>, Early> {
        let mut wanted = self.wanted();
        while !left.is_empty() {
            if wanted.stopped {
                return Err(Early::Unwanted);
            }
            let first = wanted.first.pop_front();
            let found =
                first.map_or(wanted.all.then_some(0), |first| left.iter().position(|group| *group == first));
            match found {
                Some(found) => return Ok(left.remove(found)),
                // It was copied meanwhile.
                None if first.is_some() => {}
                None => wanted = self.changed.wait(wanted).unwrap_or_else(PoisonError::into_inner),
            }
        }
        Ok(None)
    }

    /// Whether nothing more will be copied.
    #[cfg(test)]
    pub(super) fn has_ended(&self) -> bool {
        self.wanted().ended
    }
}

/// Lets those who wait for a copy go on when it is dropped.
struct Ended<'a>(&'a Aside);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The end of the file.
struct Out<'f> {
    writer: BufWriter<&'f File>,
    at: u64,
    options: IpcWriteOptions,
    context: IpcWriteContext,
}

impl<'f> Out<'f> {
    fn new(file: &'f File) -> Out<'f> {
        Out {
            writer: BufWriter::with_capacity(64 << 10, file),
            at: 0,
            options: IpcWriteOptions::default(),
            context: IpcWriteContext::default(),
        }
    }

    fn piece(&mut self, rows: &RecordBatch, end: u64) -> Result<Piece, Early> {
        let mut none = DictionaryTracker::new(true);
        let (dictionaries, encoded) =
            IpcDataGenerator::default().encode(rows, &mut none, &self.options, &mut self.context)?;
        if !dictionaries.is_empty() {
            return Err(Early::Read);
        }
        let (head, body) = write_message(&mut self.writer, encoded, &self.options)?;
        let (Ok(short_head), Ok(short_body)) = (u32::try_from(head), u32::try_from(body)) else {
            return Err(Early::Read);
        };
        let piece = Piece { end, offset: self.at, head: short_head, body: short_body };
        self.at += (head + body) as u64;
        Ok(piece)
    }
}
