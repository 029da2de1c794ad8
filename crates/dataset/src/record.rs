//! What a file format must be able to do: check a record when the file is indexed, and make its turns when
//! they are about to be sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use aiperf_types::{ContextMode, Turn};

use crate::index::row_fault;
use crate::json::{self, Fault, Field};
use crate::source::SourceFile;
use crate::synthesis::Outputs;
use crate::{DatasetError, TurnFacts};

/// What the index keeps of a turn: 40 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// File number (16 bits) and byte offset, or row, (48 bits) of the record.
    place: u64,
    /// Recorded time, ms; NaN when there is none.
    timestamp: f64,
    /// Delay after capping, ms; NaN when there is none.
    delay: f64,
    /// Length of the record, bytes.
    pub(crate) length: u32,
    /// What the format wants to remember, such as the turn within its record.
    pub(crate) tag: u32,
    /// Which record of the dataset it is, from 1: the same however the records are stored.
    record: u32,
}

const _: () = assert!(size_of::<Row>() <= 64);

const OFFSET_BITS: u32 = 48;

impl Row {
    pub(crate) fn new(
        file: u16,
        offset: u64,
        length: u32,
        timestamp: Option<f64>,
        delay: Option<f64>,
        tag: u32,
    ) -> Row {
        Row {
            place: u64::from(file) << OFFSET_BITS | offset,
            timestamp: timestamp.unwrap_or(f64::NAN),
            delay: delay.unwrap_or(f64::NAN),
            length,
            tag,
            record: 0,
        }
    }

    /// The row of record `number`, from 1.
    pub(crate) fn numbered(self, number: u64) -> Row {
        Row { record: number as u32, ..self }
    }

    /// Which record of the dataset it is: the same however the records are stored.
    pub(crate) fn record(self) -> u64 {
        self.record.into()
    }

    pub(crate) fn file(self) -> usize {
        (self.place >> OFFSET_BITS) as usize
    }

    pub(crate) fn offset(self) -> u64 {
        self.place & ((1 << OFFSET_BITS) - 1)
    }

    /// Orders rows as their records stand in the files.
    pub(crate) fn position(self) -> u64 {
        self.place
    }

    pub(crate) fn same_record(self, other: Row) -> bool {
        self.place == other.place
    }

    pub(crate) fn timestamp(self) -> Option<f64> {
        Some(self.timestamp).filter(|time| !time.is_nan())
    }

    pub(crate) fn set_timestamp(&mut self, timestamp: Option<f64>) {
        self.timestamp = timestamp.unwrap_or(f64::NAN);
    }

    pub(crate) fn delay(self) -> Option<f64> {
        Some(self.delay).filter(|delay| !delay.is_nan())
    }
}

/// A turn that a check found in a record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FoundTurn {
    pub(crate) timestamp: Option<f64>,
    pub(crate) delay: Option<f64>,
    pub(crate) tag: u32,
    /// Recorded length of the input, tokens; what is longer than asked for is left out.
    pub(crate) input_tokens: Option<u64>,
}

/// What a check found in a record; reused from record to record.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The session key, when `has_session`.
    pub(crate) session: String,
    pub(crate) has_session: bool,
    pub(crate) turns: Vec<FoundTurn>,
    /// 1-based line of the record.
    pub(crate) line: u64,
    /// Counts over all records, for notes.
    pub(crate) tally: Tally,
}

impl Found {
    pub(crate) fn clear(&mut self) {
        self.session.clear();
        self.has_session = false;
        self.turns.clear();
    }

    /// Takes the session key of a record; an empty one is none.
    pub(crate) fn take_session(&mut self, field: Field<'_>) -> Result<(), Fault> {
        if let Some(text) = field {
            let id = json::string("session_id", text)?;
            if !id.is_empty() {
                self.session.push_str(&id);
                self.has_session = true;
            }
        }
        Ok(())
    }
}

/// Counts that become notes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) input_raised: u64,
    pub(crate) output_raised: u64,
    pub(crate) output_capped: u64,
    /// Rows of a table, and those of them that were passed over.
    pub(crate) rows_read: u64,
    pub(crate) rows_unreadable: u64,
    /// Rows that belong to another type of the same kind of file.
    pub(crate) rows_of_others: u64,
    /// Line of the first row passed over, and what is wrong with it.
    pub(crate) first_unreadable: Option<(u64, Fault)>,
    /// Conversations whose prompts repeat what was said before, and those whose prompts go on from it.
    pub(crate) sessions_repeating: u64,
    pub(crate) sessions_adding: u64,
    /// Parameters of captured requests that are sent again.
    pub(crate) replayed: BTreeSet<String>,
    /// Prompts were to be reshaped, and no record has blocks.
    pub(crate) nothing_to_reshape: bool,
    pub(crate) delay_not_finite: u64,
    pub(crate) extra_beside_payload: u64,
    pub(crate) payload_not_streaming: u64,
}

impl Tally {
    /// Counts a recorded output length that is not sent as it is; the error, of `field`, is that nothing is as long as
    /// what is made of it.
    pub(crate) fn output(
        &mut self,
        field: &'static str,
        recorded: i64,
        outputs: Outputs,
    ) -> Result<(), Fault> {
        self.output_raised += u64::from(recorded < 1);
        self.output_capped += u64::from(outputs.caps(recorded));
        outputs.fault(recorded).map_or(Ok(()), |rule| Err(Fault::new(field, rule)))
    }

    /// Counts an input without tokens and without blocks, in whose place one token is sent.
    pub(crate) fn input(&mut self, tokens: u64, has_blocks: bool) {
        self.input_raised += u64::from(tokens == 0 && !has_blocks);
    }

    /// Notes a parameter of a captured request that is sent again.
    pub(crate) fn replays(&mut self, name: &str) {
        const MOST: usize = 100;
        if self.replayed.len() < MOST && !self.replayed.contains(name) {
            self.replayed.insert(name.to_owned());
        }
    }

    /// Counts an authored body that will not be answered as a stream although that was asked for.
    pub(crate) fn body(&mut self, streaming: bool, stream: Field<'_>) {
        if streaming && stream != Some("true") {
            self.payload_not_streaming += 1;
        }
    }
}

/// Checks records, one after the other, in file order.
pub(crate) trait Check: Send {
    /// The keys of a record that count, where others are of no use: only these columns of a table are read. All
    /// of them where nothing is said.
    fn keys(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Checks the columns of a table whose rows are the records.
    fn columns(&mut self, names: &[String]) -> Result<(), Fault> {
        let _ = names;
        Ok(())
    }

    /// Checks one record fully and says what the index must keep of it.
    fn record(&mut self, text: &str, found: &mut Found) -> Result<(), Fault>;

    /// The turns of the last record, as far as they were not left out.
    fn kept(&mut self, turns: usize) {
        let _ = turns;
    }

    /// All records of the file were read.
    fn finish(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Which conversation each turn kept belongs to, in the order of the file, where only the file as a whole
    /// tells.
    fn sessions(&mut self) -> Option<Vec<SessionKey>> {
        None
    }

    /// All turns kept, conversation by conversation: the last word on their tags.
    fn arrange(&mut self, turns: &mut Arranged<'_>, tally: &mut Tally) -> Result<(), DatasetError> {
        let _ = (turns, tally);
        Ok(())
    }
}

/// The conversation of a turn, and its place there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionKey {
    pub(crate) session: i64,
    pub(crate) order: i64,
}

/// The turns of a file, conversation by conversation.
pub(crate) struct Arranged<'a> {
    pub(crate) rows: &'a mut [Row],
    /// First row of every conversation, and the number of rows; `None` where every row is a conversation.
    pub(crate) starts: Option<&'a [u32]>,
    pub(crate) files: &'a [SourceFile],
}

impl Arranged<'_> {
    /// The record of a row once more.
    pub(crate) fn text(&self, row: usize) -> Result<String, DatasetError> {
        record_text(self.files, self.rows[row])
    }
}

/// The text of the record of a row.
pub(crate) fn record_text(files: &[SourceFile], row: Row) -> Result<String, DatasetError> {
    let record = files[row.file()].record(row.offset(), row.length)?;
    record.map_err(|fault| changed(files, row, fault))
}

/// The error for a record that was fine when it was indexed.
pub(crate) fn changed(files: &[SourceFile], row: Row, mut fault: Fault) -> DatasetError {
    fault.rule.push_str(" (the file changed since it was read at the start; leave it alone during a run)");
    row_fault(files, row, fault)
}

/// Makes turns of records.
pub(crate) trait Render: Send + Sync {
    /// Appends the turns of `rows`, which all belong to the record `text`. Times and missing output limits are
    /// filled in by the caller.
    fn turns(&self, text: &str, rows: &[Row], out: &mut Vec<Turn>) -> Result<(), Problem>;

    /// Appends what is recorded of `rows`, which all belong to the record `text`; formats whose prompts are made by
    /// the run say here what they are made from.
    fn facts(&self, text: &str, rows: &[Row], out: &mut Vec<TurnFacts>) -> Result<(), Problem> {
        let mut turns = Vec::new();
        self.turns(text, rows, &mut turns)?;
        out.extend(turns.into_iter().map(TurnFacts::from));
        Ok(())
    }

    /// How the turns of a conversation that starts with `first` build on each other.
    fn mode(&self, first: Row) -> ContextMode;

    /// Whether the first of `rows`, the turns of a conversation, is its system message and no request.
    fn hoists(&self, rows: &[Row]) -> bool {
        let _ = rows;
        false
    }

    /// Whether the rows of one conversation go together; otherwise the index of the first that does not.
    fn check_session(&self, rows: &[Row]) -> Result<(), (usize, Fault)> {
        let _ = rows;
        Ok(())
    }
}

/// Why a turn could not be made.
pub(crate) enum Problem {
    /// The record breaks a rule (it was fine when the file was indexed).
    Fault(Fault),
    /// Anything else.
    Error(DatasetError),
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Problem {
        Problem::Fault(fault)
    }
}

impl From<DatasetError> for Problem {
    fn from(error: DatasetError) -> Problem {
        Problem::Error(error)
    }
}

/// A format that is read line by line.
pub(crate) struct LineFormat {
    pub(crate) check: Box<dyn Check>,
    pub(crate) render: Arc<dyn Render>,
    /// A record may hold several turns.
    pub(crate) many_turns: bool,
    /// Keys that make it necessary to read the whole file before the first request.
    pub(crate) whole_keys: &'static [&'static str],
    /// Recorded times are absolute: the earliest of all records becomes 0.
    pub(crate) absolute_times: bool,
    /// Conversations go by their recorded times instead of their place in the file.
    pub(crate) by_time: bool,
    /// In a folder, the records of a file are the turns of one conversation.
    pub(crate) file_is_session: bool,
    /// The whole file must be read before the first request, whatever it holds.
    pub(crate) whole: bool,
}

impl LineFormat {
    /// A format whose records are conversations of one turn each, known one by one.
    pub(crate) fn new(check: Box<dyn Check>, render: Arc<dyn Render>) -> LineFormat {
        LineFormat {
            check,
            render,
            many_turns: false,
            whole_keys: &[],
            absolute_times: false,
            by_time: false,
            file_is_session: false,
            whole: false,
        }
    }
}

/// What a format has against a record.
pub(crate) fn complaint(mut format: LineFormat, text: &str) -> Option<Fault> {
    format.check.record(text, &mut Found::default()).err()
}

/// `timestamp` and `delay` of a record, ms. A delay that is not finite is none and is counted.
pub(crate) fn times(
    timestamp: Field<'_>,
    delay: Field<'_>,
    tally: &mut Tally,
) -> Result<(Option<f64>, Option<f64>), Fault> {
    let timestamp = timestamp.map(|text| json::number("timestamp", text)).transpose()?;
    if timestamp.is_some_and(|time| !time.is_finite()) {
        return Err(Fault::new("timestamp", "must be a finite number of milliseconds"));
    }
    let mut delay = delay.map(|text| json::number("delay", text)).transpose()?;
    match delay {
        Some(value) if !value.is_finite() => {
            tally.delay_not_finite += 1;
            delay = None;
        }
        Some(value) if value < 0.0 => {
            return Err(Fault::new("delay", format!("must be 0 or more milliseconds, is {value}")));
        }
        _ => {}
    }
    Ok((timestamp, delay))
}

/// Checks `type`: absent or the format's own name.
pub(crate) fn check_type(field: Field<'_>, name: &str) -> Result<(), Fault> {
    match field {
        Some(text) if json::string("type", text)? != name => Err(Fault::new(
            "type",
            format!(
                "is {}, and the file is read as {name}; remove the key or choose the format with --custom-dataset-type",
                json::excerpt(text)
            ),
        )),
        _ => Ok(()),
    }
}
