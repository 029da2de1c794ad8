//! What a file format must be able to do: check a record when the file is indexed, and make its turns when
//! they are about to be sent.

use std::sync::Arc;

use aiperf_types::{ContextMode, Turn};

use crate::json::{self, Fault, Field};
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
}

/// What a check found in a record; reused from record to record.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The session key, when `has_session`.
    pub(crate) session: String,
    pub(crate) has_session: bool,
    pub(crate) turns: Vec<FoundTurn>,
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
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) output_raised: u64,
    pub(crate) delay_not_finite: u64,
    pub(crate) extra_beside_payload: u64,
    pub(crate) payload_not_streaming: u64,
}

impl Tally {
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

    /// All records of the file were read.
    fn finish(&mut self) -> Result<(), Fault> {
        Ok(())
    }
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
