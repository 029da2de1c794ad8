//! Datasets whose conversations start each other: the drawn ones come first, then those that only others start.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use aiperf_types::{BranchPlan, Conversation};

use crate::file::Finish;
use crate::{Dataset, DatasetError, Len, Note, Outline, Place, TurnFacts};

/// One conversation of a graph, without its text.
pub(crate) struct Node {
    pub(crate) outline: Outline,
    pub(crate) branches: Option<Arc<BranchPlan>>,
}

impl Node {
    /// Requests of one run of it.
    fn requests(&self) -> u64 {
        let spine = self.branches.as_ref().is_some_and(|plan| plan.spine.is_some());
        if spine { 0 } else { u64::from(self.outline.turns()) }
    }
}

/// Makes what a graph only outlines.
pub(crate) trait MakeNode: Send + Sync {
    /// Conversation `index`, with the times of its outline filled in by the caller.
    fn make(&self, index: usize) -> Result<Conversation, DatasetError>;

    /// What is recorded of its turns, where that is not all in what [`MakeNode::make`] makes.
    fn facts(&self, index: usize) -> Result<Vec<TurnFacts>, DatasetError> {
        Ok(self.make(index)?.turns.into_iter().map(TurnFacts::from).collect())
    }

    /// Where a turn is recorded.
    fn place(&self, index: usize, turn: usize) -> Option<(PathBuf, Place)>;
}

/// Conversations that start each other.
pub(crate) struct Graph<M> {
    pub(crate) nodes: Box<[Node]>,
    /// The first so many are drawn.
    pub(crate) roots: usize,
    pub(crate) maker: M,
    pub(crate) finish: Finish,
    pub(crate) notes: Vec<Note>,
    /// Records that were read, left out or not, where each is a whole trace.
    pub(crate) rows: Option<u64>,
}

impl<M: MakeNode> Graph<M> {
    fn node(&self, index: u64) -> &Node {
        match self.nodes.get(index as usize) {
            Some(node) => node,
            None => panic!("conversation {index} of {}", self.nodes.len()),
        }
    }
}

impl<M: MakeNode> Dataset for Graph<M> {
    fn len(&self) -> Len {
        Len::Exact(self.roots as u64)
    }

    fn outline(&self, index: u64) -> Outline {
        self.node(index).outline.clone()
    }

    fn build(&self, index: u64) -> Result<Conversation, DatasetError> {
        let node = self.node(index);
        let mut conversation = self.maker.make(index as usize)?;
        for (turn, number) in conversation.turns.iter_mut().zip(0..) {
            let times = node.outline.turn(number).unwrap_or_default();
            turn.timestamp_ms = times.timestamp_ms;
            turn.delay_ms = times.delay_ms;
        }
        self.finish.apply(index, &mut conversation);
        Ok(conversation)
    }

    fn facts(&self, index: u64, turns: Range<u32>) -> Result<Vec<TurnFacts>, DatasetError> {
        let mut all = self.maker.facts(index as usize)?;
        // A conversation that only starts others has turns and no requests.
        all.resize_with(all.len().max(turns.end as usize), TurnFacts::default);
        Ok(all.drain(turns.start as usize..turns.end as usize).collect())
    }

    fn place(&self, index: u64, turn: u32) -> Option<(PathBuf, Place)> {
        self.maker.place(index as usize, turn as usize)
    }

    fn branches(&self, index: u64) -> Option<Arc<BranchPlan>> {
        self.node(index).branches.clone()
    }

    fn children(&self) -> u64 {
        (self.nodes.len() - self.roots) as u64
    }

    fn total_turns(&self) -> Option<u64> {
        Some(self.nodes.iter().map(Node::requests).sum())
    }

    fn rows_read(&self) -> Option<u64> {
        self.rows
    }

    fn notes(&self) -> Vec<Note> {
        self.notes.clone()
    }
}
