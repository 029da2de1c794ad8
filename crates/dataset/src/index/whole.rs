//! A file that is read whole before anything is sent: its rows are grouped into conversations.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use crate::growing::Appender;
use crate::json::Fault;
use crate::names::Names;
use crate::record::{Arranged, Row, SessionKey};
use crate::{DatasetError, Survey};

use super::Index;
use super::reader::{Reader, Sink, collect};

/// Rows of a file that is read whole before anything is sent.
#[derive(Default)]
pub(super) struct Whole {
    pub(super) rows: Vec<Row>,
    /// Present as soon as a conversation may have more than one row.
    pub(super) grouped: Option<Groups>,
}

/// Which conversation each row belongs to.
#[derive(Default)]
pub(super) struct Groups {
    of_row: Vec<u32>,
    ids: Vec<Option<Arc<str>>>,
    pub(super) by_id: HashMap<Arc<str>, u32>,
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

    /// Conversations by number instead of by what single records say, in the order of their first rows; `rows` come
    /// out in the order that the keys give them inside their conversations.
    fn by_key(rows: &mut Vec<Row>, keys: &[SessionKey]) -> Groups {
        let mut groups = Groups::default();
        let mut numbers: HashMap<i64, u32> = HashMap::new();
        let mut all: Vec<(SessionKey, u32, Row)> = Vec::with_capacity(rows.len());
        for (row, key) in rows.iter().zip(keys) {
            let group = *numbers.entry(key.session).or_insert_with(|| {
                let id: Arc<str> = key.session.to_string().into();
                groups.by_id.insert(Arc::clone(&id), groups.ids.len() as u32);
                groups.ids.push(Some(id));
                groups.ids.len() as u32 - 1
            });
            all.push((*key, group, *row));
        }
        all.sort_by_key(|(key, ..)| key.order);
        *rows = all.iter().map(|(_, _, row)| *row).collect();
        groups.of_row = all.iter().map(|(_, group, _)| *group).collect();
        groups
    }

    /// Rows by conversation, in file order inside each, and the start of each conversation (and the end).
    pub(super) fn sort(&self, rows: &[Row]) -> (Vec<Row>, Vec<u32>) {
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

impl Reader {
    /// Groups what was read into conversations.
    pub(super) fn close(
        mut self,
        mut whole: Whole,
        names: &Names,
        survey: Option<&Survey>,
    ) -> Result<Arc<Index>, DatasetError> {
        if let Some(keys) = self.check.sessions() {
            whole.grouped = Some(Groups::by_key(&mut whole.rows, &keys));
        }
        self.settle_times(&mut whole.rows);
        let index = Index::new(whole.grouped.is_some());
        let mut cut_sessions = 0;
        let mut turns = 0;
        let mut rows_out = Appender::new();
        let mut conversations = 0;
        match whole.grouped {
            None => {
                self.arrange(&mut whole.rows, None)?;
                for row in whole.rows {
                    if conversations == self.rules.limit {
                        break;
                    }
                    if let Err(fault) = self.conversation(&[row], None, rows_out.len()) {
                        collect(survey, fault)?;
                        continue;
                    }
                    rows_out.push(&index.rows, row);
                    conversations += 1;
                }
                turns = conversations;
            }
            Some(groups) => {
                let (mut sorted, starts) = groups.sort(&whole.rows);
                self.arrange(&mut sorted, Some(&starts))?;
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
                    let range = match self.conversation(rows, id.map(AsRef::as_ref), rows_out.len()) {
                        Ok(range) => range,
                        Err(fault) => {
                            collect(survey, fault)?;
                            continue;
                        }
                    };
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

    fn arrange(&mut self, rows: &mut [Row], starts: Option<&[u32]>) -> Result<(), DatasetError> {
        let mut turns = Arranged { rows, starts, files: &self.files };
        self.check.arrange(&mut turns, &mut self.found.tally)
    }

    fn nothing(&self, cut_sessions: u64) -> DatasetError {
        let path = self.files[0].path.display();
        if self.records == 0 {
            return DatasetError::Empty(format!("{path}: the file has no records; nothing can be sent"));
        }
        let tally = &self.found.tally;
        if let Some((line, fault)) = &tally.first_unreadable
            && tally.rows_unreadable == self.records
        {
            let rule = format!(
                "{}; none of the {} row(s) can be read: correct the file, or name its type with --custom-dataset-type",
                fault.rule, self.records
            );
            return self.fault(*line, Fault::new(fault.field.clone(), rule));
        }
        let mut why = Vec::new();
        for (count, what) in [
            (tally.rows_unreadable, "row(s) cannot be read as numbers"),
            (tally.rows_of_others, "row(s) are of another category"),
            (self.outside, "turn(s) are outside the window of the schedule"),
            (cut_sessions, "session(s) lost their first turn"),
            (self.too_long, "turn(s) have a longer input than --synthesis-max-isl"),
        ] {
            if count > 0 {
                why.push(format!("{count} {what}"));
            }
        }
        let widen = self.outside > 0 || cut_sessions > 0;
        DatasetError::Empty(format!(
            "{path}: nothing is left to send: of {} record(s) {}{}",
            self.records,
            if why.is_empty() { "none is a request".to_owned() } else { why.join(", ") },
            if widen { "; widen --fixed-schedule-start-offset and --fixed-schedule-end-offset" } else { "" }
        ))
    }
}
