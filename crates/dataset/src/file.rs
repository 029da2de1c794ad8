//! Conversations of an indexed file, made from the index and the file when they are due.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use aiperf_config::Normal;
use aiperf_tokenize::seed::Streams;
use aiperf_types::{Content, Conversation, MediaKind, Turn};

use crate::index::{Index, Range};
use crate::names::Names;
use crate::record::{Problem, Render, Row, changed, record_text};
use crate::source::SourceFile;
use crate::{
    Dataset, DatasetError, Len, Note, OpenContext, Outline, Place, Stop, TurnFacts, TurnOutline, random,
};

/// What is done to every turn, wherever it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    names: Names,
    osl: Option<(Streams, Normal)>,
    system_prompt: Option<Arc<str>>,
    /// Images whose id was sent with content in an earlier turn go without.
    strip_repeats: bool,
    stop: Stop,
}

impl Finish {
    pub(crate) fn new(osl: Option<Normal>, system_prompt: Option<&str>, context: &OpenContext<'_>) -> Finish {
        Finish {
            names: Names::new(context.seed, context.seed_given),
            // A mean of 0 is no limit.
            osl: osl
                .filter(|normal| normal.mean > 0.0)
                .map(|normal| (Streams::new(context.seed, "dataset.output_length"), normal)),
            system_prompt: system_prompt.filter(|prompt| !prompt.is_empty()).map(Arc::from),
            strip_repeats: false,
            stop: Stop::default(),
        }
    }

    /// Gives up what is being made once `stop` is set.
    pub(crate) fn until(mut self, stop: &Stop) -> Finish {
        self.stop = stop.clone();
        self
    }

    /// What ends the making of a conversation.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Whether images are sent once per session, later only by their id.
    pub(crate) fn strip_repeats(mut self, strip: bool) -> Finish {
        self.strip_repeats = strip;
        self
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Output limits for turns without one, and the system prompt in front of the system message.
    pub(crate) fn apply(&self, index: u64, conversation: &mut Conversation) {
        if self.strip_repeats {
            strip_repeats(conversation);
        }
        if let Some((streams, normal)) = &self.osl {
            let mut stream = streams.at(index);
            for turn in &mut conversation.turns {
                // Drawn for every turn, so that a recorded limit moves no other turn's.
                let drawn = random::whole(&mut stream, *normal, 1);
                if turn.max_tokens.is_none() && !matches!(turn.content, Content::Payload(_)) {
                    turn.max_tokens = Some(drawn);
                }
            }
        }
        if let Some(prompt) = &self.system_prompt
            && !matches!(conversation.turns.first(), Some(Turn { content: Content::Payload(_), .. }))
        {
            conversation.system_message = Some(match &conversation.system_message {
                None => Arc::clone(prompt),
                Some(message) => format!("{prompt}\n\n{message}").into(),
            });
        }
    }
}

/// Empties images whose id carried content in an earlier turn; repeats within a turn keep theirs.
fn strip_repeats(conversation: &mut Conversation) {
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    for turn in &mut conversation.turns {
        let Content::Parts { media, .. } = &mut turn.content else { continue };
        let mut new = Vec::new();
        for item in media.iter_mut().filter(|item| item.kind == MediaKind::Image) {
            let Some(uuid) = &item.uuid else { continue };
            if seen.contains(uuid) {
                item.content = Arc::from("");
            } else if !item.content.is_empty() {
                new.push(Arc::clone(uuid));
            }
        }
        seen.extend(new);
    }
}

/// A file (or the files of a folder) with an index.
pub(crate) struct FileDataset {
    pub(crate) files: Arc<[SourceFile]>,
    pub(crate) index: Arc<Index>,
    pub(crate) render: Arc<dyn Render>,
    pub(crate) finish: Finish,
    /// What is known before the first record is read.
    pub(crate) notes: Vec<Note>,
}

impl FileDataset {
    fn range(&self, conversation: u64) -> Range {
        match self.index.range(conversation) {
            Some(range) => range,
            None => panic!("conversation {conversation} of {:?}", self.len()),
        }
    }

    fn row(&self, range: Range, number: u32) -> Row {
        let row = self.index.rows.get(u64::from(range.start) + u64::from(number));
        match row {
            Some(row) => row,
            None => panic!("row {number} of {range:?}"),
        }
    }
}

impl Dataset for FileDataset {
    fn len(&self) -> Len {
        self.index.len()
    }

    fn wait_for(&self, index: u64) -> Len {
        self.index.wait_for(index)
    }

    fn outline(&self, index: u64) -> Outline {
        let range = self.range(index);
        let turn = |number: u32| {
            let row = self.row(range, number);
            TurnOutline { timestamp_ms: row.timestamp(), delay_ms: row.delay() }
        };
        let skipped = u32::from(range.hoisted());
        if range.count() - skipped == 1 {
            return Outline::one(turn(skipped));
        }
        Outline::new(turn(skipped), (skipped + 1..range.count()).map(turn).collect::<Box<[_]>>())
    }

    fn build(&self, index: u64) -> Result<Conversation, DatasetError> {
        let range = self.range(index);
        let rows: Vec<Row> = (0..range.count()).map(|number| self.row(range, number)).collect();
        let mut turns = Vec::with_capacity(rows.len());
        for rows in rows.chunk_by(|one, other| one.same_record(*other)) {
            self.finish.stop().go_on()?;
            let text = record_text(&self.files, rows[0])?;
            self.render.turns(&text, rows, &mut turns).map_err(|problem| match problem {
                Problem::Fault(fault) => changed(&self.files, rows[0], fault),
                Problem::Error(error) => error,
            })?;
        }
        for (turn, row) in turns.iter_mut().zip(&rows) {
            turn.timestamp_ms = row.timestamp();
            turn.delay_ms = row.delay();
        }
        let system_message = range.hoisted().then(|| joined(&turns.remove(0).content));
        let mut conversation = Conversation {
            id: self.index.id(index).unwrap_or_else(|| self.finish.names().generate(index)),
            turns,
            context_mode: self.render.mode(rows[0]),
            system_message,
            user_context_message: None,
            source_session: None,
        };
        self.finish.apply(index, &mut conversation);
        Ok(conversation)
    }

    fn facts(&self, index: u64, turns: std::ops::Range<u32>) -> Result<Vec<TurnFacts>, DatasetError> {
        let range = self.range(index);
        let skipped = u32::from(range.hoisted());
        let rows: Vec<Row> =
            (turns.start + skipped..turns.end + skipped).map(|turn| self.row(range, turn)).collect();
        let mut facts = Vec::with_capacity(rows.len());
        for rows in rows.chunk_by(|one, other| one.same_record(*other)) {
            let text = record_text(&self.files, rows[0])?;
            self.render.facts(&text, rows, &mut facts).map_err(|problem| match problem {
                Problem::Fault(fault) => changed(&self.files, rows[0], fault),
                Problem::Error(error) => error,
            })?;
        }
        Ok(facts)
    }

    fn recorded_bytes(&self, index: u64) -> u64 {
        let range = self.range(index);
        let mut before: Option<Row> = None;
        let rows = (0..range.count()).map(|number| self.row(range, number));
        let records = rows.filter(|row| !before.replace(*row).is_some_and(|before| before.same_record(*row)));
        records.map(|row| u64::from(row.length)).sum()
    }

    fn position(&self, index: u64, turn: u32) -> u64 {
        let range = self.range(index);
        self.row(range, turn + u32::from(range.hoisted())).position()
    }

    fn place(&self, index: u64, turn: u32) -> Option<(PathBuf, Place)> {
        let range = self.range(index);
        let row = self.row(range, turn + u32::from(range.hoisted()));
        let file = &self.files[row.file()];
        Some((file.path.clone(), file.place_of(row.offset())))
    }

    fn total_turns(&self) -> Option<u64> {
        self.index.total_turns()
    }

    fn fault(&self) -> Option<DatasetError> {
        self.index.fault()
    }

    fn notes(&self) -> Vec<Note> {
        self.notes.iter().cloned().chain(self.index.notes()).collect()
    }

    fn late_notes(&self) -> Vec<Note> {
        // All shards of a dataset are copied together.
        self.files.first().and_then(SourceFile::late_note).into_iter().collect()
    }
}

impl Drop for FileDataset {
    fn drop(&mut self) {
        self.index.stop();
    }
}

/// All texts of a turn, one on each line.
fn joined(content: &Content) -> Arc<str> {
    let Content::Parts { texts, .. } = content else { return Arc::from("") };
    let all: Vec<&str> = texts.iter().flat_map(|group| &group.contents).map(AsRef::as_ref).collect();
    all.join("\n").into()
}
