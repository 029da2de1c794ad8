//! A planned trace: its conversations are made from the file when they are due.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use aiperf_config::EndpointKind;
use aiperf_types::{Content, ContextMode, Conversation, Turn};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::columns::{CANCELED, Cell, Columns, E2E, HASHES, OUTPUT_TEXT, OUTPUT_TOKENS, PROMPT, TTFT};
use super::group::Grouped;
use super::read::numbers;
use super::row::{NO_BLOCK_SIZE, Row};
use crate::file::Finish;
use crate::parquet::{self, Cells, Table};
use crate::{Dataset, DatasetError, Len, Note, Outline, Place, RecordedAnswer, TurnFacts, TurnOutline};

/// What goes into the body of a row besides its prompt and its limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extras {
    pub(super) hints: bool,
    pub(super) min_tokens: bool,
    pub(super) endpoint: EndpointKind,
}

pub(super) struct Trace {
    pub(super) table: Arc<Table>,
    /// Prompts, and hashes where they are sent.
    requests: Cells,
    /// What was recorded of the answers.
    answers: Cells,
    /// What is told of a row without its texts.
    facts: Cells,
    conversations: Grouped,
    ids: Vec<Arc<str>>,
    /// Conversations are single rows of sessions.
    strict: bool,
    extras: Extras,
    finish: Finish,
    notes: Vec<Note>,
}

impl Trace {
    pub(super) fn new(
        table: Arc<Table>,
        (conversations, ids): (Grouped, Vec<Arc<str>>),
        strict: bool,
        extras: Extras,
        finish: Finish,
        notes: Vec<Note>,
    ) -> Trace {
        let mut sent = vec![PROMPT];
        sent.extend(extras.hints.then_some(HASHES));
        let requests = Cells::of(&table, &numbers(&table, &sent));
        let answers = Cells::of(&table, &numbers(&table, &[CANCELED, OUTPUT_TEXT, TTFT, E2E]));
        let facts = Cells::of(&table, &numbers(&table, &[OUTPUT_TOKENS, HASHES, CANCELED]));
        Trace { table, requests, answers, facts, conversations, ids, strict, extras, finish, notes }
    }

    fn rows(&self, conversation: u64) -> &[Row] {
        &self.conversations.rows[self.conversations.range(conversation as usize)]
    }

    fn id(&self, conversation: u64) -> Arc<str> {
        let range = self.conversations.range(conversation as usize);
        let all = &self.conversations.rows;
        let session = all[range.start].session[0];
        let id = &self.ids[session as usize];
        if !self.strict {
            return Arc::clone(id);
        }
        let before = all[..range.start].iter().rev().take_while(|row| row.session[0] == session).count();
        format!("{id}#{before}").into()
    }

    /// A conversation of these of its rows.
    fn conversation(&self, index: u64, rows: &[Row]) -> Result<Conversation, DatasetError> {
        let turns = rows.iter().map(|row| self.turn(row)).collect::<Result<_, _>>()?;
        let mut conversation = Conversation {
            id: self.id(index),
            turns,
            // Prompts hold the whole history already.
            context_mode: ContextMode::MessageArrayWithResponses,
            ..Conversation::default()
        };
        self.finish.apply(index, &mut conversation);
        Ok(conversation)
    }

    fn prompt<'c>(&self, number: u64, cell: &'c parquet::Cell) -> Result<&'c str, DatasetError> {
        let file = Columns { table: &self.table };
        match of_column(cell, PROMPT) {
            Some(cell) => file.prompt(cell, number),
            None => Err(file.bad(number, PROMPT, "is missing in a part of the file")),
        }
    }

    fn turn(&self, row: &Row) -> Result<Turn, DatasetError> {
        let number = u64::from(row.number);
        let file = Columns { table: &self.table };
        let cell = self.requests.row(0, number)?;
        let column = |name| of_column(&cell, name);
        let prompt = self.prompt(number, &cell)?;
        let mut extra = Map::new();
        if prompt.is_empty() && self.extras.endpoint == EndpointKind::Completions {
            // A prompt without text is sent as one, too.
            extra.insert("prompt".into(), Value::from(""));
        }
        if self.extras.min_tokens {
            extra.insert("min_tokens".into(), row.output_tokens.into());
        }
        if self.extras.hints {
            let hashes = column(HASHES).map(|cell| file.hashes(cell, number)).transpose()?;
            if let Some(hashes) = hashes.filter(|hashes| !hashes.is_empty()) {
                extra.insert("hash_ids".into(), hashes.into());
            }
            if row.block_size != NO_BLOCK_SIZE {
                extra.insert("block_size".into(), row.block_size.into());
            }
        }
        Ok(Turn {
            timestamp_ms: row.timestamp(),
            delay_ms: row.delay(),
            max_tokens: Some(u64::from(row.output_tokens)),
            content: Content::text(prompt),
            extra_body: (!extra.is_empty()).then_some(extra),
            ..Turn::default()
        })
    }
}

impl Dataset for Trace {
    fn len(&self) -> Len {
        Len::Exact(self.conversations.len() as u64)
    }

    fn outline(&self, index: u64) -> Outline {
        let rows = self.rows(index);
        let turn = |row: &Row| TurnOutline { timestamp_ms: row.timestamp(), delay_ms: row.delay() };
        Outline::new(turn(&rows[0]), rows[1..].iter().map(turn).collect::<Box<[_]>>())
    }

    fn build(&self, index: u64) -> Result<Conversation, DatasetError> {
        self.conversation(index, self.rows(index))
    }

    fn makes_single_turns(&self) -> bool {
        true
    }

    fn build_turn(&self, index: u64, turn: u32) -> Result<Conversation, DatasetError> {
        self.conversation(index, &self.rows(index)[turn as usize..=turn as usize])
    }

    fn facts(&self, index: u64, turns: Range<u32>) -> Result<Vec<TurnFacts>, DatasetError> {
        let file = Columns { table: &self.table };
        let facts = |row: &Row| {
            let number = u64::from(row.number);
            let cell = self.facts.row(0, number)?;
            let column = |name| of_column(&cell, name);
            let hashes = column(HASHES).map(|cell| file.hashes(cell, number)).transpose()?;
            let canceled = column(CANCELED).map(|cell| file.switch(cell, number, CANCELED)).transpose()?;
            let output = column(OUTPUT_TOKENS);
            Ok(TurnFacts {
                input_tokens: Some(u64::from(row.input_tokens)),
                content: None,
                output_tokens: output
                    .map(|cell| file.needed(cell, number, OUTPUT_TOKENS, u64::MAX))
                    .transpose()?,
                hash_ids: hashes.unwrap_or_default().into_iter().map(u64::cast_signed).collect(),
                hash_scope: 0,
                block_size: (row.block_size != NO_BLOCK_SIZE).then_some(row.block_size),
                cancelled: canceled.flatten(),
            })
        };
        self.rows(index)[turns.start as usize..turns.end as usize].iter().map(facts).collect()
    }

    fn recorded_content(&self, index: u64, turn: u32) -> Result<Option<Content>, DatasetError> {
        let number = self.position(index, turn);
        let cell = self.requests.row(0, number)?;
        // The whole text that the model got, and not a message.
        let body = json!({"prompt": self.prompt(number, &cell)?}).to_string();
        Ok(RawValue::from_string(body).ok().map(Content::Payload))
    }

    fn position(&self, index: u64, turn: u32) -> u64 {
        self.rows(index)[turn as usize].number.into()
    }

    fn place(&self, index: u64, turn: u32) -> Option<(PathBuf, Place)> {
        Some((self.table.path().to_owned(), Place::Row(self.position(index, turn) + 1)))
    }

    fn total_turns(&self) -> Option<u64> {
        Some(self.conversations.rows.len() as u64)
    }

    fn notes(&self) -> Vec<Note> {
        self.notes.clone()
    }

    fn late_notes(&self) -> Vec<Note> {
        // One is enough: they share their reason.
        [&self.requests, &self.answers, &self.facts]
            .into_iter()
            .find_map(Cells::late_note)
            .into_iter()
            .collect()
    }

    fn recorded_answer(&self, conversation: u64, turn: u32) -> Result<Option<RecordedAnswer>, DatasetError> {
        let Some(row) = self.rows(conversation).get(turn as usize) else { return Ok(None) };
        let number = u64::from(row.number);
        let file = Columns { table: &self.table };
        if ![CANCELED, OUTPUT_TEXT, TTFT, E2E].iter().any(|column| file.has(column)) {
            return Ok(None);
        }
        let cell = self.answers.row(0, number)?;
        let column = |name| of_column(&cell, name);
        let duration = |name| match column(name) {
            Some(cell) => file.duration(cell, number, name),
            None => Ok(None),
        };
        Ok(Some(RecordedAnswer {
            canceled: match column(CANCELED) {
                Some(cell) => file.switch(cell, number, CANCELED)?,
                None => None,
            },
            text: column(OUTPUT_TEXT).and_then(Cell::text).map(Into::into),
            time_to_first_token_ms: duration(TTFT)?,
            duration_ms: duration(E2E)?,
        }))
    }
}

/// The cell of one of the columns that a row was read with.
fn of_column<'r>(row: &'r parquet::Cell, name: &str) -> Option<Cell<'r>> {
    let (batch, index) = row.in_batch();
    batch.column_by_name(name).map(|array| Cell { array: array.as_ref(), index })
}
