//! Reading: line by line, every record checked, the rows that are kept handed on.

use std::sync::Arc;

use crate::json::Fault;
use crate::look::stem;
use crate::names::Names;
use crate::record::{Check, Found, LineFormat, Render, Row};
use crate::source::{Records, SourceFile};
use crate::{DatasetError, Note, Place, Survey};

use super::whole::{Groups, Whole};
use super::{FIRST_RECORDS, IDENTITY_RECORDS, Index, LONG_DELAY_MS, Range, Rules, row_fault, tally_notes};

/// Reads the files of a dataset and makes their index.
pub(crate) fn index(
    files: Arc<[SourceFile]>,
    format: LineFormat,
    rules: Rules,
    names: &Names,
    session_per_file: bool,
    survey: Option<&Survey>,
) -> Result<Arc<Index>, DatasetError> {
    let LineFormat {
        check,
        render,
        many_turns,
        whole_keys,
        absolute_times,
        by_time,
        file_is_session,
        whole: needs_whole,
    } = format;
    let session_per_file = file_is_session && session_per_file;
    let mut reader = Reader {
        source: Records::new(&files[0])?,
        files,
        file: 0,
        check,
        render,
        rules,
        session_per_file,
        absolute_times,
        by_time,
        needs_all: needs_whole || by_time || absolute_times && rules.fixed_schedule,
        found: Found::default(),
        earliest: f64::INFINITY,
        outside: 0,
        too_long: 0,
        longest_delay: 0.0,
        records: 0,
    };
    let mut whole =
        Whole { grouped: (many_turns || session_per_file).then(Groups::default), ..Whole::default() };
    // The first records, into memory of their own: whether sessions follow is not known yet.
    let ended = reader.read(FIRST_RECORDS, &mut whole, survey)?;
    let beside = !ended
        && survey.is_none()
        && !rules.whole
        && !needs_whole
        && !by_time
        && whole.grouped.as_ref().is_none_or(|groups| groups.by_id.is_empty())
        && !reader.any_key(whole_keys)?;
    if beside {
        return Ok(reader.continue_beside(whole, many_turns));
    }
    if !ended {
        reader.read(u64::MAX, &mut whole, survey)?;
    }
    if let Some(survey) = survey {
        survey.count(reader.records);
    }
    reader.check.finish().map_err(|fault| reader.fault(0, fault)).or_else(|fault| collect(survey, fault))?;
    reader.close(whole, names, survey)
}

/// Keeps the fault of a record when a dataset is only looked at; an error otherwise.
pub(crate) fn collect(survey: Option<&Survey>, fault: DatasetError) -> Result<(), DatasetError> {
    match survey {
        Some(survey) => {
            survey.take(fault);
            Ok(())
        }
        None => Err(fault),
    }
}

/// Where checked rows go.
pub(super) trait Sink {
    /// Takes the turns of a record that are inside the window; `cut` when its first was outside.
    fn take(&mut self, reader: &mut Reader, rows: &[Row], cut: bool) -> Result<(), DatasetError>;

    /// Conversations so far.
    fn conversations(&self) -> u64;
}

pub(super) struct Reader {
    pub(super) files: Arc<[SourceFile]>,
    file: usize,
    source: Records,
    pub(super) check: Box<dyn Check>,
    render: Arc<dyn Render>,
    pub(super) rules: Rules,
    session_per_file: bool,
    absolute_times: bool,
    by_time: bool,
    /// The first conversations are known only when all records are.
    needs_all: bool,
    pub(super) found: Found,
    /// The earliest time of all records, ms.
    earliest: f64,
    pub(super) outside: u64,
    pub(super) too_long: u64,
    longest_delay: f64,
    pub(super) records: u64,
}

impl Reader {
    /// Reads until `records` were read in all; whether the end was reached.
    pub(super) fn read(
        &mut self,
        records: u64,
        sink: &mut dyn Sink,
        survey: Option<&Survey>,
    ) -> Result<bool, DatasetError> {
        let mut rows = Vec::new();
        while self.records < records {
            // A file's identity needs its first records even where fewer are kept.
            let enough = sink.conversations() >= self.rules.limit && self.records >= IDENTITY_RECORDS;
            if enough && !self.needs_all {
                return Ok(true);
            }
            let Some(record) = self.source.next(&self.files[self.file])? else {
                if self.file + 1 == self.files.len() {
                    return Ok(true);
                }
                self.file += 1;
                self.source = Records::new(&self.files[self.file])?;
                continue;
            };
            self.records += 1;
            self.found.clear();
            let (offset, length, number) = (record.position, record.length, record.number);
            self.found.line = number;
            let checked = record.text.and_then(|text| self.check.record(text, &mut self.found));
            if let Err(fault) = checked {
                collect(survey, self.fault(number, fault))?;
                continue;
            }
            let mut cut = false;
            rows.clear();
            for (index, turn) in self.found.turns.iter().enumerate() {
                self.earliest = turn.timestamp.map_or(self.earliest, |time| time.min(self.earliest));
                let outside = !self.absolute_times && self.rules.is_outside(turn.timestamp);
                let too_long = turn
                    .input_tokens
                    .is_some_and(|tokens| self.rules.synthesis.max_isl.is_some_and(|most| tokens > most));
                if outside || too_long {
                    self.outside += u64::from(outside);
                    self.too_long += u64::from(too_long && !outside);
                    cut |= index == 0 && self.rules.fixed_schedule;
                    continue;
                }
                let (timestamp, delay) = if self.rules.drop_times {
                    (turn.timestamp.filter(|_| self.by_time), None)
                } else if self.absolute_times {
                    // Put on the clock of the run when the earliest is known, which only a schedule waits for.
                    (turn.timestamp.filter(|_| self.by_time || self.rules.fixed_schedule), turn.delay)
                } else {
                    (turn.timestamp.map(|time| self.rules.scaled(time)), turn.delay)
                };
                let delay = delay.map(|delay| self.rules.delay(delay));
                let row = Row::new(self.file as u16, offset, length, timestamp, delay, turn.tag);
                rows.push(row.numbered(self.records));
            }
            if self.session_per_file {
                self.found.session.push_str(&stem(&self.files[self.file].path));
                self.found.has_session = true;
            }
            self.check.kept(rows.len());
            sink.take(self, &rows, cut)?;
        }
        Ok(false)
    }

    /// Puts absolute times on the clock of the run, and leaves out what is then outside the window.
    pub(super) fn settle_times(&mut self, rows: &mut Vec<Row>) {
        if self.by_time {
            // All of them have one: the format demands it.
            rows.sort_by(|one, other| {
                one.timestamp().unwrap_or(0.0).total_cmp(&other.timestamp().unwrap_or(0.0))
            });
        }
        if !self.absolute_times {
            return;
        }
        let before = rows.len();
        rows.retain_mut(|row| {
            let time = row.timestamp().map(|time| time - self.earliest);
            row.set_timestamp(time.filter(|_| !self.rules.drop_times).map(|time| self.rules.scaled(time)));
            !self.rules.is_outside(time)
        });
        self.outside += (before - rows.len()) as u64;
    }

    fn any_key(&self, keys: &[&str]) -> Result<bool, DatasetError> {
        for key in keys {
            for file in &*self.files {
                if file.may_have(key)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The error for `fault` in line `number` of the current file; 0 means the file as a whole.
    pub(super) fn fault(&self, number: u64, fault: Fault) -> DatasetError {
        let file = &self.files[self.file];
        let place = if number == 0 { Place::Json(String::new()) } else { file.place(number) };
        DatasetError::invalid(&file.path, place, fault.field, fault.rule)
    }

    fn fault_at(&self, row: Row, field: &'static str, rule: String) -> DatasetError {
        row_fault(&self.files, row, Fault::new(field, rule))
    }

    /// Checks the turns of a conversation together; its range, which starts at row `start`.
    pub(super) fn conversation(
        &mut self,
        rows: &[Row],
        id: Option<&str>,
        start: u64,
    ) -> Result<Range, DatasetError> {
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

    pub(super) fn notes(&self, cut_sessions: u64) -> Vec<Note> {
        let mut notes = tally_notes(&self.found.tally);
        if self.outside > 0 {
            notes.push(Note::OutsideWindow { rows: self.outside });
        }
        if self.too_long > 0 {
            notes.push(Note::LongerThanAsked { rows: self.too_long });
        }
        if cut_sessions > 0 {
            notes.push(Note::SessionsCutByWindow { sessions: cut_sessions });
        }
        if self.rules.delay_cap_ms.is_none() && self.longest_delay > LONG_DELAY_MS {
            notes.push(Note::LongDelay { longest_ms: self.longest_delay });
        }
        notes
    }
}
