//! What is sent? From a file or a generator to conversations of turns.
//!
//! A dataset is opened in one step (files are indexed: every record is checked, texts are not kept) and its
//! conversations are built one by one, by any thread in any order, just before they are due.

mod agentic;
#[cfg(test)]
#[path = "../tests/common/columnar.rs"]
mod columnar;
mod detect;
mod error;
mod facts;
mod file;
mod formats;
mod from_run;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod graph;
mod growing;
mod identity;
mod index;
mod instant;
mod json;
mod look;
mod media;
mod names;
mod note;
mod open;
mod parquet;
mod prompt;
pub mod public;
mod random;
mod raw_records;
mod record;
mod sampler;
mod source;
mod stop;
mod synthesis;
mod synthetic;
mod texts;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use aiperf_config::EndpointKind;
use aiperf_tokenize::Tokenizer;
use aiperf_types::{BranchPlan, Content, Conversation};

pub use detect::{Detected, Timing, detect, first_record_timing, is_html};
pub use error::{DatasetError, Invalid, Place, check_the_path};
pub use facts::{Survey, TurnFacts};
pub use formats::{Files, Format, NAMES, format, formats};
pub use from_run::{Converted, PhaseChoice, from_run};
pub use note::{Note, NoteLevel};
pub use open::{open, open_until};
pub use parquet::panic_is_caught;
pub use raw_records::{RawRecords, RawRequest};
pub use sampler::Sampler;
pub use source::{Beginning, WRONG_COLUMN, beginning, decoded_head, whole_lines};
pub use stop::Stop;
pub use texts::texts;

/// How many conversations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Len {
    /// All of them are known.
    Exact(u64),
    /// At least so many: the file is still being read.
    AtLeast(u64),
}

impl Len {
    /// Conversations that can be built now.
    pub fn known(self) -> u64 {
        match self {
            Len::Exact(len) | Len::AtLeast(len) => len,
        }
    }

    /// Whether more may follow.
    pub fn is_growing(self) -> bool {
        matches!(self, Len::AtLeast(_))
    }
}

/// When one turn wants to leave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TurnOutline {
    /// Recorded time, ms; drives only the fixed schedule.
    pub timestamp_ms: Option<f64>,
    /// Wait after the previous turn returned, ms.
    pub delay_ms: Option<f64>,
}

/// A conversation without its text: how many turns, and when they want to leave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    first: TurnOutline,
    rest: Box<[TurnOutline]>,
}

impl Outline {
    /// The outline of a conversation of one turn.
    pub fn one(first: TurnOutline) -> Outline {
        Outline { first, rest: Box::default() }
    }

    /// The outline of a conversation; `rest` are the turns after the first.
    pub fn new(first: TurnOutline, rest: impl Into<Box<[TurnOutline]>>) -> Outline {
        Outline { first, rest: rest.into() }
    }

    /// Number of turns, at least 1.
    pub fn turns(&self) -> u32 {
        self.rest.len() as u32 + 1
    }

    /// Recorded time of the first turn, ms.
    pub fn first_timestamp_ms(&self) -> Option<f64> {
        self.first.timestamp_ms
    }

    /// When turn `index` wants to leave.
    pub fn turn(&self, index: u32) -> Option<TurnOutline> {
        match index {
            0 => Some(self.first),
            _ => self.rest.get(index as usize - 1).copied(),
        }
    }
}

/// An answer as it was recorded: for debugging and for checks without a server. Answers of a run are measured fresh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedAnswer {
    /// The client gave up.
    pub canceled: Option<bool>,
    /// What was said.
    pub text: Option<String>,
    /// From the start to the first token, ms.
    pub time_to_first_token_ms: Option<f64>,
    /// From the start to the end, ms.
    pub duration_ms: Option<f64>,
}

#[expect(clippy::len_without_is_empty, reason = "an empty dataset is an error of `open`")]
/// Conversations by index. Shared by all threads; nothing but the index is kept in memory.
pub trait Dataset: Send + Sync {
    /// How many conversations there are.
    fn len(&self) -> Len;

    /// Blocks until conversation `index` is known, or reading has ended, and returns the length then.
    fn wait_for(&self, index: u64) -> Len {
        let _ = index;
        self.len()
    }

    /// Turns and times of conversation `index`, without its text. Cheap.
    ///
    /// # Panics
    /// When `index` is not below `len().known()`.
    fn outline(&self, index: u64) -> Outline;

    /// Makes conversation `index`: the same one whenever and wherever it is called.
    ///
    /// # Panics
    /// When `index` is not below `len().known()`.
    fn build(&self, index: u64) -> Result<Conversation, DatasetError>;

    /// Whether turns are made one by one with [`Dataset::build_turn`] as cheaply as all at once.
    fn makes_single_turns(&self) -> bool {
        false
    }

    /// Makes one turn of conversation `index`, as the only one of a conversation.
    ///
    /// # Panics
    /// When there is no such conversation or turn.
    fn build_turn(&self, index: u64, turn: u32) -> Result<Conversation, DatasetError> {
        let mut conversation = self.build(index)?;
        conversation.turns.swap(0, turn as usize);
        conversation.turns.truncate(1);
        Ok(conversation)
    }

    /// What is recorded of `turns` of conversation `index`, in order. Makes no text that is not recorded.
    ///
    /// # Panics
    /// When there is no such conversation or turn.
    fn facts(&self, index: u64, turns: Range<u32>) -> Result<Vec<TurnFacts>, DatasetError> {
        let mut all = self.build(index)?.turns;
        let turns = all.drain(turns.start as usize..turns.end as usize);
        Ok(turns.map(TurnFacts::from).collect())
    }

    /// The request that is recorded of a turn, as [`Dataset::facts`] have it; read, too, where they leave it out because it
    /// is long and seldom wanted.
    ///
    /// # Panics
    /// When there is no such conversation or turn.
    fn recorded_content(&self, index: u64, turn: u32) -> Result<Option<Content>, DatasetError> {
        Ok(self.facts(index, turn..turn + 1)?.pop().and_then(|facts| facts.content))
    }

    /// Bytes of the records of a file that conversation `index` is made of; 0 where that is not known. Cheap.
    ///
    /// # Panics
    /// When `index` is not below `len().known()`.
    fn recorded_bytes(&self, index: u64) -> u64 {
        let _ = index;
        0
    }

    /// Where a turn stands among all others in the order of the file.
    fn position(&self, index: u64, turn: u32) -> u64 {
        let _ = turn;
        index
    }

    /// Where the record of a turn is; `None` where it is no record of a file.
    fn place(&self, index: u64, turn: u32) -> Option<(PathBuf, Place)> {
        let _ = (index, turn);
        None
    }

    /// What conversation `index` starts beside itself. Children have indexes from `len()` on, and are known to
    /// `outline` and `build` like the others.
    fn branches(&self, index: u64) -> Option<Arc<BranchPlan>> {
        let _ = index;
        None
    }

    /// Conversations that only others start.
    fn children(&self) -> u64 {
        0
    }

    /// Turns of all conversations together, those of children included; `None` while the file is still being read.
    fn total_turns(&self) -> Option<u64>;

    /// Records that were read, left out or not, where each is a whole trace; `None` otherwise.
    fn rows_read(&self) -> Option<u64> {
        None
    }

    /// What the data say of the answer that turn `turn` of conversation `index` got when it was recorded; nothing
    /// where they say nothing.
    ///
    /// # Panics
    /// When `index` is not below `len().known()`.
    fn recorded_answer(&self, index: u64, turn: u32) -> Result<Option<RecordedAnswer>, DatasetError> {
        let _ = (index, turn);
        Ok(None)
    }

    /// A bad record that was found after the dataset was opened.
    fn fault(&self) -> Option<DatasetError> {
        None
    }

    /// What the user should know; complete once `len` is exact.
    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }

    /// What went wrong while conversations were made, without keeping any from being made.
    fn late_notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// What a dataset must know of the run.
#[derive(Clone, Copy, Debug)]
pub struct OpenContext<'a> {
    /// The seed in effect.
    pub seed: u64,
    /// Whether it was given: session ids are counted then, random otherwise.
    pub seed_given: bool,
    /// The run's tokenizer; needed wherever prompts are made.
    pub tokenizer: Option<&'a Tokenizer>,
    /// The endpoint that the conversations go to.
    pub endpoint: EndpointKind,
    /// Keys that are added to every body.
    pub extra_inputs: Option<&'a serde_json::Map<String, serde_json::Value>>,
    /// Streamed answers are asked for.
    pub streaming: bool,
    /// The profiling phase plays a fixed schedule.
    pub fixed_schedule: bool,
    /// Prompts shrink by what the chat template adds.
    pub apply_chat_template: bool,
    /// The dataset is looked at, not sent.
    pub survey: Option<&'a Survey>,
}

impl<'a> OpenContext<'a> {
    /// For those who look at a dataset: as for the chat endpoint, without a tokenizer.
    pub fn survey(survey: &'a Survey, fixed_schedule: bool) -> OpenContext<'a> {
        OpenContext {
            seed: 0,
            seed_given: true,
            tokenizer: None,
            endpoint: EndpointKind::Chat,
            extra_inputs: None,
            streaming: false,
            fixed_schedule,
            apply_chat_template: false,
            survey: Some(survey),
        }
    }
}
