//! What is kept of a row.

/// No session is recorded.
pub(super) const NO_SESSION: u32 = u32::MAX;
/// No block size is recorded.
pub(super) const NO_BLOCK_SIZE: u32 = 0;

/// A row without its texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// When it starts, ms: as recorded at first, on the clock of the replay at last. NaN when the row waits for the
    /// answer before it instead.
    pub(super) time: f64,
    /// Recorded duration, ms, NaN when there is none; of a planned row the wait after the answer before it.
    pub(super) wait: f64,
    /// Place in the file, from 0.
    pub(super) number: u32,
    /// Session by each candidate column, in their order; of a planned row the first is that of the chosen column.
    pub(super) session: [u32; 2],
    /// Recorded tokens of the prompt.
    pub(super) input_tokens: u32,
    /// Recorded tokens of the answer; of a planned row the output limit.
    pub(super) output_tokens: u32,
    /// Tokens of a cache block.
    pub(super) block_size: u32,
}

const _: () = assert!(size_of::<Row>() <= 64);

impl Row {
    /// When it is to start, ms, if that does not hang on an answer.
    pub(super) fn timestamp(&self) -> Option<f64> {
        Some(self.time).filter(|time| !time.is_nan())
    }

    /// The wait after the answer before it, ms, if there is one.
    pub(super) fn delay(&self) -> Option<f64> {
        Some(self.wait).filter(|wait| !wait.is_nan())
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// A row of one token each way.
    pub(in super::super) fn row(number: u32, time: f64, session: u32) -> Row {
        Row {
            time,
            wait: f64::NAN,
            number,
            session: [session, NO_SESSION],
            input_tokens: 1,
            output_tokens: 1,
            block_size: NO_BLOCK_SIZE,
        }
    }
}
