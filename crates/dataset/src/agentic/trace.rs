//! An agentic trace as it was recorded.

use std::path::PathBuf;
use std::sync::Arc;

use super::ids::BlockIds;
use crate::Place;

/// One call of a model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// When it started, seconds.
    pub(crate) at: f64,
    /// How long it took, seconds.
    pub(crate) took: f64,
    /// The pause of agent or user before it, seconds.
    pub(crate) think: Option<f64>,
    /// Which of the models of the trace.
    pub(crate) model: u32,
    /// Tokens of the prompt.
    pub(crate) input: u64,
    /// Tokens of the answer, as recorded.
    pub(crate) output: u64,
    /// Blocks of the prompt.
    pub(crate) ids: BlockIds,
}

impl Request {
    /// When its answer was there, seconds.
    pub(crate) fn end(&self) -> f64 {
        self.at + self.took
    }

    /// Most context it needs, tokens, with an answer of at most `cap`.
    pub(crate) fn peak(&self, cap: Option<u64>) -> u64 {
        self.input.saturating_add(limit(self.output, cap))
    }
}

/// The output limit that is sent for an answer of `output` tokens.
pub(crate) fn limit(output: u64, cap: Option<u64>) -> u64 {
    output.max(1).min(cap.unwrap_or(u64::MAX).max(1))
}

/// An agent that another one started.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) id: Arc<str>,
    /// When it was started, seconds.
    pub(crate) at: f64,
    /// How long it ran, where that is recorded, seconds.
    pub(crate) lasted: Option<f64>,
    /// Tokens of tools and system prompt.
    pub(crate) head: u64,
    pub(crate) requests: Vec<Request>,
}

/// One entry of the list of a trace.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Request(Request),
    Agent(Agent),
}

/// One recorded session with its agents.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) id: Arc<str>,
    /// Tokens of a block.
    pub(crate) block_size: u32,
    /// Tokens of tools and system prompt.
    pub(crate) head: u64,
    pub(crate) items: Vec<Item>,
    /// What block texts are drawn for.
    pub(crate) identity: [u8; 32],
    pub(crate) file: PathBuf,
    pub(crate) place: Place,
}
