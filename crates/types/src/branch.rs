//! Conversations that start others: agents and their subagents, forks of a dialogue.

use std::sync::Arc;

/// What a conversation starts beside itself, and which of its turns wait for that. Conversations are named by
/// their index in the dataset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BranchPlan {
    /// Session id of the conversation.
    pub id: Arc<str>,
    /// Groups of children.
    pub groups: Vec<BranchGroup>,
    /// The conversation sends nothing itself: its turns only start children and wait for them.
    pub spine: Option<Spine>,
}

impl BranchPlan {
    /// Groups that start when `start` has come.
    pub fn starting(&self, start: BranchStart) -> impl Iterator<Item = &BranchGroup> {
        self.groups.iter().filter(move |group| group.start == start)
    }

    /// Whether a child repeats what was said up to turn `turn`.
    pub fn forks_after(&self, turn: u32) -> bool {
        self.starting(BranchStart::After(turn)).flat_map(|group| &group.children).any(|child| child.inherits)
    }
}

/// A conversation without requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spine {
    /// Pause before each turn, once what it waits for has finished; none where the list has ended.
    pub think: Vec<Option<ThinkTime>>,
}

/// Children that start together.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchGroup {
    /// When they start.
    pub start: BranchStart,
    /// The children, in order.
    pub children: Vec<BranchChild>,
    /// The turn that waits until all of them have finished; later than the one they start after. Without one they run
    /// in the background.
    pub joins: Option<u32>,
}

/// When children start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchStart {
    /// Just before the first turn, as relatives without a parent.
    BeforeFirst,
    /// When this turn has come back.
    After(u32),
}

/// A conversation that another one starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BranchChild {
    /// Index in the dataset.
    pub conversation: u64,
    /// It goes on from what the parent has said and heard so far; otherwise it begins with nothing.
    pub inherits: bool,
    /// Wait before its first request, ms.
    pub offset_ms: f64,
}

/// A pause: fixed, or drawn from a log-normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThinkTime {
    /// The pause, or the median of it, ms.
    pub median_ms: f64,
    /// Standard deviation of its logarithm; 0 for a fixed pause.
    pub sigma: f64,
    /// No draw is shorter, ms.
    pub min_ms: f64,
    /// No draw is longer, ms; may be infinite.
    pub max_ms: f64,
}

/// Where a request stood in an agentic trace, and what the recorded server had of it in its cache.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TraceSource {
    /// The trace.
    pub trace_id: Arc<str>,
    /// Place in the list of the trace.
    pub outer_index: u32,
    /// Place in the list of a subagent.
    pub inner_index: Option<u32>,
    /// What kind of agent asked.
    pub kind: Arc<str>,
    /// Leading prompt blocks that an earlier request of the trace had sent.
    pub cached_blocks: u64,
    /// Prompt blocks.
    pub blocks: u64,
}

/// Which conversation started the one that a request belongs to.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Lineage {
    /// Conversations above this one.
    pub depth: u32,
    /// Turns that the conversation has.
    pub turns: u32,
    /// Correlation id of the one that started it.
    pub parent: Option<Arc<str>>,
    /// Correlation id of the first of the line.
    pub root: Arc<str>,
}
