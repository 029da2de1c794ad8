//! How many leading blocks each row takes from the prefix of its group, so that the whole reaches a given reuse.

use super::Shape;
use super::draws::Row;

/// How the reuse is spread over the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Every row takes all it can.
    Highest,
    /// Rows take shares about the one wanted; what one takes too little, the next ones take more.
    Even,
    /// Rows take all they can until so many blocks were there before, and none after that.
    Early {
        /// Blocks that were there before.
        hits: u64,
    },
}

/// Decides row by row; memory follows the groups.
pub(super) struct Leader {
    wanted: f64,
    mode: Mode,
    /// Blocks of each group's prefix that a row had.
    seen: Vec<u64>,
    pub(super) blocks: u64,
    hits: u64,
}

impl Leader {
    pub(super) fn new(shape: &Shape, mode: Mode) -> Leader {
        Leader { wanted: shape.reuse, mode, seen: vec![0; shape.groups as usize], blocks: 0, hits: 0 }
    }

    /// Leading blocks of a row with `blocks` blocks of which `whole` are whole.
    pub(super) fn lead(&mut self, row: &Row, blocks: u64, whole: u64) -> u64 {
        self.blocks += blocks;
        let leading = match self.mode {
            Mode::Highest => whole,
            Mode::Early { hits } => {
                // The last one that takes any takes what is missing, and no more.
                let missing = hits.saturating_sub(self.hits);
                if missing >= self.seen[row.group as usize].min(whole) { whole } else { missing }
            }
            Mode::Even => {
                let missing = self.wanted * self.blocks as f64 - self.hits as f64;
                let spread = 0.8 * self.wanted.min(1.0 - self.wanted) * blocks as f64;
                let leading = missing + spread * (2.0 * row.share - 1.0);
                if self.wanted > 0.0 { leading.round().clamp(0.0, whole as f64) as u64 } else { 0 }
            }
        };
        let seen = &mut self.seen[row.group as usize];
        self.hits += leading.min(*seen);
        *seen = leading.max(*seen);
        leading
    }

    /// Share of all blocks so far that an earlier row had in the same place.
    pub(super) fn reuse(&self) -> f64 {
        self.hits as f64 / self.blocks.max(1) as f64
    }
}
