//! What is kept of every record until the end of the run.

use aiperf_types::{PhaseKind, RequestRecord};

use crate::context::Context;
use crate::summary::{Summary, Window};

/// The records of a run, packed, warmup and profiling apart.
#[derive(Debug, Default)]
pub struct Store {}

impl Store {
    /// An empty store.
    pub fn new() -> Store {
        Store::default()
    }

    /// Keeps a record.
    pub fn push(&mut self, record: &RequestRecord, context: &Context) {
        let _ = (record, context);
    }

    /// Adds the records of another thread's store. The order of merging does not change any figure.
    pub fn merge(&mut self, other: Store) {
        let _ = other;
    }

    /// Every figure of one kind of phase.
    pub fn summarise(&self, phase: PhaseKind, context: &Context, window: &Window) -> Summary {
        let _ = (phase, context, window);
        Summary::default()
    }
}
