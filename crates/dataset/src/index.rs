//! The index of a file: one sequential read that checks every record and keeps where it is and when it is due.
//! Where nothing needs the whole file first, reading goes on in a thread of its own beside the run.

mod beside;
mod reader;
mod whole;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use aiperf_config::{EndpointKind, FileFormat, Synthesis};

use crate::growing::{Appender, Growing};
use crate::json::Fault;
use crate::record::{Row, Tally};
use crate::source::SourceFile;
use crate::{DatasetError, Len, Note};

pub(crate) use reader::{collect, index};

/// Records that must be read before the first request.
const FIRST_RECORDS: u64 = 1000;
/// Delays above this are worth a note, ms.
const LONG_DELAY_MS: f64 = 60_000.0;

/// Records whose content is the identity of a file.
pub(crate) const IDENTITY_RECORDS: u64 = 64;

/// What decides which rows are kept, and with which times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) format: FileFormat,
    pub(crate) endpoint: EndpointKind,
    pub(crate) fixed_schedule: bool,
    /// Keep start ≤ timestamp ≤ end, ms.
    pub(crate) window: (Option<f64>, Option<f64>),
    pub(crate) drop_times: bool,
    pub(crate) synthesis: Synthesis,
    pub(crate) delay_cap_ms: Option<f64>,
    /// Keep the first so many conversations.
    pub(crate) limit: u64,
    /// Read everything before the first request, whatever the file holds.
    pub(crate) whole: bool,
}

impl Rules {
    fn is_outside(&self, timestamp: Option<f64>) -> bool {
        self.fixed_schedule
            && timestamp.is_some_and(|time| {
                self.window.0.is_some_and(|start| time < start) || self.window.1.is_some_and(|end| time > end)
            })
    }

    /// A recorded time in the time of the run.
    fn scaled(&self, timestamp: f64) -> f64 {
        self.synthesis.scaled(timestamp)
    }

    /// A recorded delay in the time of the run.
    fn delay(&self, recorded: f64) -> f64 {
        let scaled = recorded / self.synthesis.speedup;
        self.delay_cap_ms.map_or(scaled, |cap| scaled.min(cap))
    }
}

/// The turns of a conversation among the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u32,
    count: u32,
}

const HOISTED: u32 = 1 << 31;

impl Range {
    pub(crate) fn new(start: u32, count: u32, hoisted: bool) -> Range {
        Range { start, count: if hoisted { count | HOISTED } else { count } }
    }

    /// Rows, the hoisted one included.
    pub(crate) fn count(self) -> u32 {
        self.count & !HOISTED
    }

    /// The first row is the system message.
    pub(crate) fn hoisted(self) -> bool {
        self.count & HOISTED != 0
    }
}

/// What is known of a file's records; shared with the thread that still reads it.
pub(crate) struct Index {
    pub(crate) rows: Growing<Row>,
    /// Absent where every row is a conversation.
    ranges: Option<Growing<Range>>,
    /// Session ids, where any is recorded; otherwise all are to be generated.
    ids: OnceLock<Vec<Arc<str>>>,
    /// Conversations that can be built.
    ready: AtomicU64,
    /// Turns to be sent, of the ready conversations.
    turns: AtomicU64,
    done: AtomicBool,
    stop: AtomicBool,
    fault: OnceLock<DatasetError>,
    notes: Mutex<Vec<Note>>,
    gate: Mutex<()>,
    moved: Condvar,
}

impl Index {
    fn new(ranges: bool) -> Index {
        Index {
            rows: Growing::new(),
            ranges: ranges.then(Growing::new),
            ids: OnceLock::new(),
            ready: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            done: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            fault: OnceLock::new(),
            notes: Mutex::new(Vec::new()),
            gate: Mutex::new(()),
            moved: Condvar::new(),
        }
    }

    pub(crate) fn len(&self) -> Len {
        // `done` first: what is ready then is final.
        let done = self.done.load(Ordering::Acquire);
        let ready = self.ready.load(Ordering::Acquire);
        if done { Len::Exact(ready) } else { Len::AtLeast(ready) }
    }

    pub(crate) fn wait_for(&self, index: u64) -> Len {
        let mut guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let len = self.len();
            if !len.is_growing() || len.known() > index {
                return len;
            }
            guard = self.moved.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn total_turns(&self) -> Option<u64> {
        self.done.load(Ordering::Acquire).then(|| self.turns.load(Ordering::Acquire))
    }

    pub(crate) fn range(&self, conversation: u64) -> Option<Range> {
        match &self.ranges {
            Some(ranges) => ranges.get(conversation),
            None => Some(Range::new(conversation as u32, 1, false)),
        }
    }

    /// The session id of a conversation, when any is recorded.
    pub(crate) fn id(&self, conversation: u64) -> Option<Arc<str>> {
        self.ids.get()?.get(conversation as usize).cloned()
    }

    pub(crate) fn fault(&self) -> Option<DatasetError> {
        self.fault.get().cloned()
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the reading thread to end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn publish(&self, ready: u64, turns: u64) {
        let _guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.turns.store(turns, Ordering::Release);
        self.ready.store(ready, Ordering::Release);
        self.moved.notify_all();
    }

    fn end(&self, fault: Option<DatasetError>) {
        let _guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fault) = fault {
            let _ = self.fault.set(fault);
        }
        self.done.store(true, Ordering::Release);
        self.moved.notify_all();
    }
}

impl Index {
    /// An index whose rows are all known.
    pub(crate) fn complete(rows: &[Row], ranges: &[Range], ids: Vec<Arc<str>>, tally: &Tally) -> Arc<Index> {
        let index = Index::new(true);
        let mut writer = Appender::new();
        for row in rows {
            writer.push(&index.rows, *row);
        }
        writer.finish(&index.rows);
        if let Some(list) = &index.ranges {
            let mut writer = Appender::new();
            for range in ranges {
                writer.push(list, *range);
            }
            writer.finish(list);
        }
        let _ = index.ids.set(ids);
        *index.notes.lock().unwrap_or_else(PoisonError::into_inner) = tally_notes(tally);
        index.publish(ranges.len() as u64, rows.len() as u64);
        index.end(None);
        Arc::new(index)
    }
}

fn tally_notes(tally: &Tally) -> Vec<Note> {
    let Tally {
        input_raised,
        output_raised,
        output_capped,
        delay_not_finite,
        extra_beside_payload,
        payload_not_streaming,
        rows_unreadable,
        rows_read,
        nothing_to_reshape,
        sessions_repeating,
        sessions_adding,
        ..
    } = *tally;
    let kept = rows_read.saturating_sub(rows_unreadable);
    let first = tally.first_unreadable.as_ref().map_or(0, |(line, _)| *line);
    [
        (rows_read, Note::RowsOfTable { read: rows_read, kept, skipped: rows_unreadable, first }),
        (input_raised, Note::InputLengthRaised { turns: input_raised }),
        (output_raised, Note::OutputLengthRaised { turns: output_raised }),
        (output_capped, Note::OutputLengthCapped { turns: output_capped }),
        (
            sessions_repeating + sessions_adding,
            Note::Histories { repeated: sessions_repeating, added: sessions_adding },
        ),
        (
            tally.replayed.len() as u64,
            Note::ParametersReplayed { names: tally.replayed.iter().cloned().collect() },
        ),
        (u64::from(nothing_to_reshape), Note::NothingToReshape),
        (delay_not_finite, Note::DelayNotFinite { turns: delay_not_finite }),
        (extra_beside_payload, Note::ExtraBesidePayload { rows: extra_beside_payload }),
        (payload_not_streaming, Note::PayloadNotStreaming),
    ]
    .into_iter()
    .filter_map(|(count, note)| (count > 0).then_some(note))
    .collect()
}

/// The error for `fault` in the record of `row`, with its line.
pub(crate) fn row_fault(files: &[SourceFile], row: Row, fault: Fault) -> DatasetError {
    let file = &files[row.file()];
    DatasetError::invalid(&file.path, file.place_of(row.offset()), fault.field, fault.rule)
}
