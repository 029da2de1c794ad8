//! A file that is read beside the run: every record is a conversation, usable as soon as it was read.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::DatasetError;
use crate::growing::{Appender, Growing};
use crate::json::Fault;
use crate::record::Row;

use super::reader::{Reader, Sink};
use super::whole::Whole;
use super::{Index, Range};

/// Rows of a file that is read beside the run: every record is a conversation.
struct Beside {
    index: Arc<Index>,
    rows: Appender<Row>,
    ranges: Appender<Range>,
    /// Last row and turns so far of conversations that are not ready yet.
    waiting: VecDeque<(u64, u64)>,
    conversations: u64,
    turns: u64,
    ready: u64,
}

impl Beside {
    fn new(index: Arc<Index>) -> Beside {
        Beside {
            index,
            rows: Appender::new(),
            ranges: Appender::new(),
            waiting: VecDeque::new(),
            conversations: 0,
            turns: 0,
            ready: 0,
        }
    }

    fn replay(&mut self, reader: &mut Reader, whole: Whole) -> Result<(), DatasetError> {
        match whole.grouped {
            None => whole.rows.iter().try_for_each(|row| self.add(reader, &[*row])),
            Some(groups) => {
                let (sorted, starts) = groups.sort(&whole.rows);
                starts
                    .windows(2)
                    .try_for_each(|bounds| self.add(reader, &sorted[bounds[0] as usize..bounds[1] as usize]))
            }
        }
    }

    fn add(&mut self, reader: &mut Reader, rows: &[Row]) -> Result<(), DatasetError> {
        if self.conversations >= reader.rules.limit || rows.is_empty() {
            return Ok(());
        }
        let range = reader.conversation(rows, None, self.rows.len())?;
        for row in rows {
            self.rows.push(&self.index.rows, *row);
        }
        if let Some(ranges) = &self.index.ranges {
            self.ranges.push(ranges, range);
        }
        self.conversations += 1;
        self.turns += u64::from(range.count()) - u64::from(range.hoisted());
        self.waiting.push_back((self.rows.len(), self.turns));
        if self.index.rows.len() > self.waiting[0].0 {
            self.release();
        }
        Ok(())
    }

    /// Publishes the conversations all of whose rows can be read.
    fn release(&mut self) {
        let rows = self.index.rows.len();
        let ranges = self.index.ranges.as_ref().map_or(u64::MAX, Growing::len);
        let mut turns = None;
        while let Some((end, so_far)) = self.waiting.front().copied() {
            if end > rows || self.ready >= ranges {
                break;
            }
            self.waiting.pop_front();
            self.ready += 1;
            turns = Some(so_far);
        }
        if let Some(turns) = turns {
            self.index.publish(self.ready, turns);
        }
    }

    fn finish(mut self) {
        std::mem::replace(&mut self.rows, Appender::new()).finish(&self.index.rows);
        if let Some(ranges) = &self.index.ranges {
            std::mem::replace(&mut self.ranges, Appender::new()).finish(ranges);
        }
        self.release();
    }
}

impl Sink for Beside {
    fn take(&mut self, reader: &mut Reader, rows: &[Row], _cut: bool) -> Result<(), DatasetError> {
        if self.index.stop.load(Ordering::Relaxed) {
            return Err(DatasetError::Unsuitable("the dataset is no longer needed".into()));
        }
        if reader.found.has_session {
            // Only reached when the key was spelt with escapes: the file was searched for it before.
            return Err(reader.fault(
                0,
                Fault::new(
                    "session_id",
                    "is written with escapes far into the file; write the key in plain letters",
                ),
            ));
        }
        self.add(reader, rows)
    }

    fn conversations(&self) -> u64 {
        self.conversations
    }
}

impl Reader {
    /// Hands out what was read and goes on in a thread of its own.
    pub(super) fn continue_beside(mut self, whole: Whole, many_turns: bool) -> Arc<Index> {
        let index = Arc::new(Index::new(many_turns));
        let mut beside = Beside::new(Arc::clone(&index));
        let shared = Arc::clone(&index);
        let work = move || {
            let read = beside.replay(&mut self, whole).and_then(|()| self.read(u64::MAX, &mut beside, None));
            let fault = read.and_then(|_| self.check.finish().map_err(|fault| self.fault(0, fault))).err();
            // After a bad record what came before it stays usable.
            beside.finish();
            *index.notes.lock().unwrap_or_else(PoisonError::into_inner) = self.notes(0);
            index.end(fault);
        };
        match std::thread::Builder::new().name("dataset-index".into()).spawn(work) {
            Ok(_) => {
                shared.wait_for(0);
            }
            Err(error) => shared.end(Some(DatasetError::Unsuitable(format!(
                "cannot start the thread that reads the dataset: {error}"
            )))),
        }
        shared
    }
}
