//! What a dataset records of its turns, for those who look at it instead of sending it.

use std::sync::{Mutex, PoisonError};

use aiperf_types::{Content, Turn};

use crate::DatasetError;

/// What is recorded of one turn. What a format does not carry is absent.
#[derive(Clone, Debug, Default)]
pub struct TurnFacts {
    /// Tokens of the input, where a record says so.
    pub input_tokens: Option<u64>,
    /// The input itself, where it is recorded.
    pub content: Option<Content>,
    /// Tokens of the output, or their limit, as recorded; may be 0.
    pub output_tokens: Option<u64>,
    /// Numbers of the blocks of the input; empty where there are none.
    pub hash_ids: Vec<i64>,
    /// Which other turns mean the same blocks by the same numbers: those of the same scope.
    pub hash_scope: u64,
    /// Tokens of a block, where a record says so.
    pub block_size: Option<u32>,
    /// Whether the request was cancelled, where a format records that.
    pub cancelled: Option<bool>,
}

impl From<Turn> for TurnFacts {
    fn from(turn: Turn) -> TurnFacts {
        TurnFacts { content: Some(turn.content), output_tokens: turn.max_tokens, ..TurnFacts::default() }
    }
}

/// Opens a dataset to look at it: no text is made, so no tokenizer is needed, and reading goes on after a bad
/// record. The faults are collected here; [`open`](crate::open) fails only where nothing can be read at all.
#[derive(Debug, Default)]
pub struct Survey {
    most: usize,
    /// Sizes of blocks are not checked.
    figures_only: bool,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    faults: Vec<DatasetError>,
    count: u64,
    records: u64,
}

impl Survey {
    /// Keeps the first `most` faults and counts the others.
    pub fn new(most: usize) -> Survey {
        Survey { most, ..Survey::default() }
    }

    /// For those who want the figures of a dataset: keeps the first fault, and takes blocks of any size, since none
    /// is made.
    pub fn figures() -> Survey {
        Survey { most: 1, figures_only: true, ..Survey::default() }
    }

    pub(crate) fn checks_blocks(&self) -> bool {
        !self.figures_only
    }

    /// The first faults, in the order of reading, and how many there are in all.
    pub fn faults(&self) -> (Vec<DatasetError>, u64) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.faults.clone(), seen.count)
    }

    /// Records that were read, good and bad.
    pub fn records(&self) -> u64 {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).records
    }

    pub(crate) fn take(&self, fault: DatasetError) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.count += 1;
        if seen.faults.len() < self.most {
            seen.faults.push(fault);
        }
    }

    pub(crate) fn count(&self, records: u64) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).records += records;
    }
}
