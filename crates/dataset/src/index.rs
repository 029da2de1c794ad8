//! The index of a file: one sequential read that checks every record and keeps where it is and when it is due.
//! Where nothing needs the whole file first, reading goes on in a thread of its own beside the run.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use aiperf_config::{EndpointKind, FileFormat};

use crate::growing::{Appender, Growing};
use crate::json::Fault;
use crate::names::Names;
use crate::record::{Check, Found, LineFormat, Render, Row, Tally};
use crate::source::{Lines, SourceFile};
use crate::{DatasetError, Len, Note, Place};

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
    pub(crate) delay_cap_ms: Option<f64>,
    /// Keep the first so many conversations.
    pub(crate) limit: u64,
    /// Read everything before the first request, whatever the file holds.
    pub(crate) whole: bool,
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

/// Reads the files of a dataset and makes their index.
pub(crate) fn index(
    files: Arc<[SourceFile]>,
    format: LineFormat,
    rules: Rules,
    names: &Names,
    session_per_file: bool,
) -> Result<Arc<Index>, DatasetError> {
    let LineFormat { check, render, many_turns, whole_keys } = format;
    let mut reader = Reader {
        lines: Lines::new(&files[0])?,
        files,
        file: 0,
        check,
        render,
        rules,
        session_per_file,
        found: Found::default(),
        outside: 0,
        longest_delay: 0.0,
        records: 0,
    };
    let mut whole =
        Whole { grouped: (many_turns || session_per_file).then(Groups::default), ..Whole::default() };
    // The first records, into memory of their own: whether sessions follow is not known yet.
    let ended = reader.read(FIRST_RECORDS, &mut whole)?;
    let beside = !ended
        && !rules.whole
        && whole.grouped.as_ref().is_none_or(|groups| groups.by_id.is_empty())
        && !reader.any_key(whole_keys)?;
    if beside {
        return Ok(reader.continue_beside(whole, many_turns));
    }
    if !ended {
        reader.read(u64::MAX, &mut whole)?;
    }
    reader.check.finish().map_err(|fault| reader.fault(0, fault))?;
    reader.close(whole, names)
}

/// Where checked rows go.
trait Sink {
    /// Takes the turns of a record that are inside the window; `cut` when its first was outside.
    fn take(&mut self, reader: &mut Reader, rows: &[Row], cut: bool) -> Result<(), DatasetError>;

    /// Conversations so far.
    fn conversations(&self) -> u64;
}

struct Reader {
    files: Arc<[SourceFile]>,
    file: usize,
    lines: Lines,
    check: Box<dyn Check>,
    render: Arc<dyn Render>,
    rules: Rules,
    session_per_file: bool,
    found: Found,
    outside: u64,
    longest_delay: f64,
    records: u64,
}

impl Reader {
    /// Reads until `records` were read in all; whether the end was reached.
    fn read(&mut self, records: u64, sink: &mut dyn Sink) -> Result<bool, DatasetError> {
        let mut rows = Vec::new();
        while self.records < records {
            // A file's identity needs its first records even where fewer are kept.
            if sink.conversations() >= self.rules.limit && self.records >= IDENTITY_RECORDS {
                return Ok(true);
            }
            let Some(line) = self.lines.next(&self.files[self.file])? else {
                if self.file + 1 == self.files.len() {
                    return Ok(true);
                }
                self.file += 1;
                self.lines = Lines::new(&self.files[self.file])?;
                continue;
            };
            self.records += 1;
            self.found.clear();
            let (offset, number) = (line.offset, line.number);
            let length = line.bytes.len() as u32;
            let checked = match std::str::from_utf8(line.bytes) {
                Ok(text) => self.check.record(text, &mut self.found),
                Err(error) => Err(Fault::new(
                    "",
                    format!(
                        "not valid UTF-8 at byte {} of the line; save the file as UTF-8",
                        error.valid_up_to() + 1
                    ),
                )),
            };
            checked.map_err(|fault| self.fault(number, fault))?;
            let mut cut = false;
            rows.clear();
            for (index, turn) in self.found.turns.iter().enumerate() {
                let outside = self.rules.fixed_schedule
                    && turn.timestamp.is_some_and(|time| {
                        self.rules.window.0.is_some_and(|start| time < start)
                            || self.rules.window.1.is_some_and(|end| time > end)
                    });
                if outside {
                    self.outside += 1;
                    cut |= index == 0;
                    continue;
                }
                let (timestamp, delay) =
                    if self.rules.drop_times { (None, None) } else { (turn.timestamp, turn.delay) };
                let delay = match (delay, self.rules.delay_cap_ms) {
                    (Some(delay), Some(cap)) => Some(delay.min(cap)),
                    _ => delay,
                };
                rows.push(Row::new(self.file as u16, offset, length, timestamp, delay, turn.tag));
            }
            if self.session_per_file {
                let stem = self.files[self.file].path.file_stem().unwrap_or_default();
                self.found.session.push_str(&stem.to_string_lossy());
                self.found.has_session = true;
            }
            sink.take(self, &rows, cut)?;
        }
        Ok(false)
    }

    fn any_key(&self, keys: &[&str]) -> Result<bool, DatasetError> {
        for key in keys {
            if self.files[0].contains(format!("\"{key}\"").as_bytes())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The error for `fault` in line `number` of the current file; 0 means the file as a whole.
    fn fault(&self, number: u64, fault: Fault) -> DatasetError {
        let place = if number == 0 { Place::Json(String::new()) } else { Place::Line(number) };
        DatasetError::invalid(&self.files[self.file].path, place, fault.field, fault.rule)
    }

    fn fault_at(&self, row: Row, field: &'static str, rule: String) -> DatasetError {
        row_fault(&self.files, row, Fault::new(field, rule))
    }

    /// Checks the turns of a conversation together; its range, which starts at row `start`.
    fn conversation(&mut self, rows: &[Row], id: Option<&str>, start: u64) -> Result<Range, DatasetError> {
        let named = || {
            id.map_or_else(|| "a conversation without session_id".to_owned(), |id| format!("session `{id}`"))
        };
        let Ok(start) = u32::try_from(start) else {
            return Err(DatasetError::Unsuitable(format!(
                "{}: more than {} turns; split the file",
                self.files[0].path.display(),
                u32::MAX
            )));
        };
        self.render.check_session(rows).map_err(|(index, fault)| {
            let fault = Fault::new(fault.field, format!("{}: {}", named(), fault.rule));
            row_fault(&self.files, rows[index], fault)
        })?;
        let hoisted = self.render.hoists(rows);
        let sent = &rows[usize::from(hoisted)..];
        if self.rules.endpoint.single_turn_only() && sent.len() > 1 && self.render.mode(rows[0]).accumulates()
        {
            return Err(self.fault_at(
                rows[0],
                "",
                format!(
                    "{} of this {} file has {} turns that build on each other, and the {} endpoint takes one turn; \
                     use --endpoint-type chat",
                    named(),
                    self.rules.format.name(),
                    sent.len(),
                    self.rules.endpoint.name()
                ),
            ));
        }
        if self.rules.fixed_schedule && sent[0].timestamp().is_none() {
            return Err(self.fault_at(
                sent[0],
                "timestamp",
                format!(
                    "the first turn of {} has no timestamp, which the fixed schedule needs; add one, or use \
                     --no-fixed-schedule",
                    named()
                ),
            ));
        }
        for row in &sent[1..] {
            self.longest_delay = self.longest_delay.max(row.delay().unwrap_or(0.0));
        }
        Ok(Range::new(start, rows.len() as u32, hoisted))
    }

    fn notes(&self, cut_sessions: u64) -> Vec<Note> {
        let mut notes = tally_notes(self.found.tally);
        if self.outside > 0 {
            notes.push(Note::OutsideWindow { rows: self.outside });
        }
        if cut_sessions > 0 {
            notes.push(Note::SessionsCutByWindow { sessions: cut_sessions });
        }
        if self.rules.delay_cap_ms.is_none() && self.longest_delay > LONG_DELAY_MS {
            notes.push(Note::LongDelay { longest_ms: self.longest_delay });
        }
        notes
    }

    /// Groups what was read into conversations.
    fn close(mut self, whole: Whole, names: &Names) -> Result<Arc<Index>, DatasetError> {
        let index = Index::new(whole.grouped.is_some());
        let mut cut_sessions = 0;
        let mut turns = 0;
        let mut rows_out = Appender::new();
        let mut conversations = 0;
        match whole.grouped {
            None => {
                for row in whole.rows {
                    if conversations == self.rules.limit {
                        break;
                    }
                    self.conversation(&[row], None, rows_out.len())?;
                    rows_out.push(&index.rows, row);
                    conversations += 1;
                }
                turns = conversations;
            }
            Some(groups) => {
                let (sorted, starts) = groups.sort(&whole.rows);
                let mut ranges_out = Appender::new();
                let mut ids = Vec::with_capacity(if groups.by_id.is_empty() { 0 } else { groups.ids.len() });
                let mut generated = 0;
                for (number, bounds) in starts.windows(2).enumerate() {
                    if conversations == self.rules.limit {
                        break;
                    }
                    let rows = &sorted[bounds[0] as usize..bounds[1] as usize];
                    let id = groups.ids[number].as_ref();
                    if groups.cut.contains(&(number as u32)) && rows[0].timestamp().is_none() {
                        cut_sessions += 1;
                        continue;
                    }
                    let range = self.conversation(rows, id.map(AsRef::as_ref), rows_out.len())?;
                    for row in rows {
                        rows_out.push(&index.rows, *row);
                    }
                    // Invariant: `Index::new` made ranges, since there are groups.
                    if let Some(ranges) = &index.ranges {
                        ranges_out.push(ranges, range);
                    }
                    turns += u64::from(range.count()) - u64::from(range.hoisted());
                    if !groups.by_id.is_empty() {
                        ids.push(id.map_or_else(|| groups.fresh_id(names, &mut generated), Arc::clone));
                    }
                    conversations += 1;
                }
                if let Some(ranges) = &index.ranges {
                    ranges_out.finish(ranges);
                }
                if !groups.by_id.is_empty() {
                    let _ = index.ids.set(ids);
                }
            }
        }
        rows_out.finish(&index.rows);
        if conversations == 0 {
            return Err(self.nothing(cut_sessions));
        }
        *index.notes.lock().unwrap_or_else(PoisonError::into_inner) = self.notes(cut_sessions);
        index.publish(conversations, turns);
        index.end(None);
        Ok(Arc::new(index))
    }

    fn nothing(&self, cut_sessions: u64) -> DatasetError {
        let path = self.files[0].path.display();
        if self.records == 0 {
            return DatasetError::Empty(format!("{path}: the file has no records; nothing can be sent"));
        }
        DatasetError::Empty(format!(
            "{path}: nothing is left to send: of {} record(s) {} turn(s) are outside the window of the schedule and \
             {cut_sessions} session(s) lost their first turn to it; widen --fixed-schedule-start-offset and \
             --fixed-schedule-end-offset",
            self.records, self.outside
        ))
    }

    /// Hands out what was read and goes on in a thread of its own.
    fn continue_beside(mut self, whole: Whole, many_turns: bool) -> Arc<Index> {
        let index = Arc::new(Index::new(many_turns));
        let mut beside = Beside::new(Arc::clone(&index));
        let shared = Arc::clone(&index);
        let work = move || {
            let read = beside.replay(&mut self, whole).and_then(|()| self.read(u64::MAX, &mut beside));
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

/// The error for `fault` in the record of `row`, with its line.
pub(crate) fn row_fault(files: &[SourceFile], row: Row, fault: Fault) -> DatasetError {
    let file = &files[row.file()];
    DatasetError::invalid(&file.path, Place::Line(file.line_of(row.offset())), fault.field, fault.rule)
}

/// Rows of a file that is read whole before anything is sent.
#[derive(Default)]
struct Whole {
    rows: Vec<Row>,
    /// Present as soon as a conversation may have more than one row.
    grouped: Option<Groups>,
}

/// Which conversation each row belongs to.
#[derive(Default)]
struct Groups {
    of_row: Vec<u32>,
    ids: Vec<Option<Arc<str>>>,
    by_id: HashMap<Arc<str>, u32>,
    /// Conversations whose first row was outside the window.
    cut: HashSet<u32>,
    /// Session keys of which only rows outside the window were seen so far.
    cut_ids: HashSet<Box<str>>,
}

impl Groups {
    /// The next generated id that no record uses.
    fn fresh_id(&self, names: &Names, generated: &mut u64) -> Arc<str> {
        loop {
            let id = names.generate(*generated);
            *generated += 1;
            if !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    /// Rows by conversation, in file order inside each, and the start of each conversation (and the end).
    fn sort(&self, rows: &[Row]) -> (Vec<Row>, Vec<u32>) {
        let mut starts = vec![0u32; self.ids.len() + 1];
        for group in &self.of_row {
            starts[*group as usize + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut sorted = rows.to_vec();
        for (row, group) in rows.iter().zip(&self.of_row) {
            let place = &mut next[*group as usize];
            sorted[*place as usize] = *row;
            *place += 1;
        }
        (sorted, starts)
    }
}

impl Sink for Whole {
    fn take(&mut self, reader: &mut Reader, rows: &[Row], cut: bool) -> Result<(), DatasetError> {
        let found = &reader.found;
        if found.has_session && self.grouped.is_none() {
            let count = self.rows.len() as u32;
            self.grouped = Some(Groups {
                of_row: (0..count).collect(),
                ids: vec![None; count as usize],
                ..Groups::default()
            });
        }
        if let Some(groups) = &mut self.grouped {
            if rows.is_empty() {
                if cut && found.has_session {
                    groups.cut_ids.insert(found.session.as_str().into());
                }
                return Ok(());
            }
            let known =
                if found.has_session { groups.by_id.get(found.session.as_str()).copied() } else { None };
            let group = known.unwrap_or_else(|| {
                let group = groups.ids.len() as u32;
                let id = found.has_session.then(|| Arc::<str>::from(found.session.as_str()));
                if let Some(id) = &id {
                    groups.by_id.insert(Arc::clone(id), group);
                }
                if cut || (found.has_session && groups.cut_ids.contains(found.session.as_str())) {
                    groups.cut.insert(group);
                }
                groups.ids.push(id);
                group
            });
            groups.of_row.resize(groups.of_row.len() + rows.len(), group);
        }
        if self.rows.len() + rows.len() > u32::MAX as usize {
            return Err(DatasetError::Unsuitable(format!(
                "{}: more than {} turns; split the file",
                reader.files[0].path.display(),
                u32::MAX
            )));
        }
        self.rows.extend_from_slice(rows);
        Ok(())
    }

    fn conversations(&self) -> u64 {
        match &self.grouped {
            None => self.rows.len() as u64,
            // Any later line may belong to one of these.
            Some(groups) if !groups.by_id.is_empty() => 0,
            Some(groups) => groups.ids.len() as u64,
        }
    }
}

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

impl Index {
    /// An index whose rows are all known.
    pub(crate) fn complete(rows: &[Row], ranges: &[Range], ids: Vec<Arc<str>>, tally: Tally) -> Arc<Index> {
        let index = Index::new(true);
        let mut writer = Appender::new();
        rows.iter().for_each(|row| writer.push(&index.rows, *row));
        writer.finish(&index.rows);
        if let Some(list) = &index.ranges {
            let mut writer = Appender::new();
            ranges.iter().for_each(|range| writer.push(list, *range));
            writer.finish(list);
        }
        let _ = index.ids.set(ids);
        *index.notes.lock().unwrap_or_else(PoisonError::into_inner) = tally_notes(tally);
        index.publish(ranges.len() as u64, rows.len() as u64);
        index.end(None);
        Arc::new(index)
    }
}

fn tally_notes(tally: Tally) -> Vec<Note> {
    let Tally { output_raised, delay_not_finite, extra_beside_payload, payload_not_streaming } = tally;
    [
        (output_raised, Note::OutputLengthRaised { turns: output_raised }),
        (delay_not_finite, Note::DelayNotFinite { turns: delay_not_finite }),
        (extra_beside_payload, Note::ExtraBesidePayload { rows: extra_beside_payload }),
        (payload_not_streaming, Note::PayloadNotStreaming),
    ]
    .into_iter()
    .filter_map(|(count, note)| (count > 0).then_some(note))
    .collect()
}
