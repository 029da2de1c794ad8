//! What is kept of every record until the end of the run: facts, packed in blocks of a few hundred records.
//!
//! A block's memory is exactly what its packed records need; nothing that grows with the run is ever copied or
//! doubled. The figures are made from the blocks one metric at a time (see `summary`).

pub(crate) mod block;
mod errors;
mod pack;
mod tally;

use aiperf_types::{PhaseKind, RequestRecord};

use crate::context::Context;
use crate::facts::Facts;
use crate::summary::{self, Summary, Window};
use block::{Block, Builder, View};
use errors::ErrorGroups;
pub(crate) use tally::Tally;

/// The records of a run, packed, warmup and profiling apart. Each thread that finishes records has its own;
/// they are merged at the end.
#[derive(Debug, Default)]
pub struct Store {
    warmup: PhaseStore,
    profiling: PhaseStore,
}

impl Store {
    /// An empty store.
    pub fn new() -> Store {
        Store::default()
    }

    /// Keeps a record.
    pub fn push(&mut self, record: &RequestRecord) {
        match record.identity.phase {
            PhaseKind::Warmup => self.warmup.push(record),
            PhaseKind::Profiling => self.profiling.push(record),
        }
    }

    /// Adds the records of another thread's store. No figure depends on the order of merging.
    pub fn merge(&mut self, other: Store) {
        self.warmup.merge(other.warmup);
        self.profiling.merge(other.profiling);
    }

    /// Records kept of one kind of phase.
    pub fn len(&self, phase: PhaseKind) -> u64 {
        let tally = &self.phase(phase).tally;
        tally.valid + tally.failed
    }

    /// Whether no record of this kind of phase was kept.
    pub fn is_empty(&self, phase: PhaseKind) -> bool {
        self.len(phase) == 0
    }

    /// Bytes held in packed blocks.
    pub fn bytes(&self) -> usize {
        [&self.warmup, &self.profiling].iter().flat_map(|phase| &phase.blocks).map(Block::bytes).sum()
    }

    /// Every figure of one kind of phase.
    pub fn summarise(&mut self, phase: PhaseKind, context: &Context, window: &Window) -> Summary {
        let store = match phase {
            PhaseKind::Warmup => &mut self.warmup,
            PhaseKind::Profiling => &mut self.profiling,
        };
        store.seal();
        summary::summarise(store, context, window)
    }

    fn phase(&self, phase: PhaseKind) -> &PhaseStore {
        match phase {
            PhaseKind::Warmup => &self.warmup,
            PhaseKind::Profiling => &self.profiling,
        }
    }
}

/// The records of one kind of phase.
#[derive(Debug, Default)]
pub(crate) struct PhaseStore {
    builder: Builder,
    pub(crate) blocks: Vec<Block>,
    pub(crate) tally: Tally,
    pub(crate) errors: ErrorGroups,
}

impl PhaseStore {
    pub(crate) fn push(&mut self, record: &RequestRecord) {
        let facts = Facts::of(record);
        let content = &record.answer.content;
        self.builder.push(&facts, |gap| content[gap + 1].at.since(content[gap].at));
        self.tally.count(record, &facts);
        if let Some(error) = &record.error {
            self.errors.count(error, (record.identity.phase_index, record.identity.number));
        }
        if self.builder.is_full() {
            self.seal();
        }
    }

    pub(crate) fn seal(&mut self) {
        self.blocks.extend(self.builder.seal());
    }

    fn merge(&mut self, mut other: PhaseStore) {
        other.seal();
        self.blocks.append(&mut other.blocks);
        self.tally.merge(&other.tally);
        self.errors.merge(other.errors);
    }

    /// The blocks, each ready to be read.
    pub(crate) fn views(&self) -> impl Iterator<Item = View<'_>> {
        self.blocks.iter().map(View::new)
    }
}
