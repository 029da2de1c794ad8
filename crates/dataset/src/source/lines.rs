//! Text line by line.

use std::fs::File;
use std::ops::Range;

use super::coding::{BOM, open};
use super::{SourceFile, Store};
use crate::DatasetError;

/// A longer line is an error rather than a reason to run out of memory.
const LONGEST_LINE: usize = 512 << 20;

/// One line of a file, trimmed and not blank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where it starts in the (decompressed) file.
    pub(crate) offset: u64,
    /// 1-based.
    pub(crate) number: u64,
}

/// Finds the end of a line that comes piece by piece. No byte is looked at twice: a line of many megabytes takes as long
/// as it is, not as long squared.
#[derive(Debug, Default)]
struct LineEnd {
    /// Bytes at the start of the line that have no end in them.
    searched: usize,
}

impl LineEnd {
    /// Where the line ends that begins with `line`, of which more may be there than last time. After an end comes
    /// another line.
    fn find(&mut self, line: &[u8]) -> Option<usize> {
        let found = memchr::memchr(b'\n', &line[self.searched..]).map(|at| self.searched + at);
        self.searched = if found.is_some() { 0 } else { line.len() };
        found
    }

    /// The line begins elsewhere.
    fn restart(&mut self) {
        self.searched = 0;
    }
}

/// Reads the lines of a file from start to end in large pieces.
pub(crate) struct Lines {
    /// The file again, when its source does not keep it open.
    handle: Option<File>,
    buffer: Vec<u8>,
    /// Filled part of the buffer.
    filled: usize,
    /// Start of what has not been handed out.
    start: usize,
    /// File offset of the start of the buffer.
    base: u64,
    number: u64,
    ended: bool,
}

impl Lines {
    pub(crate) fn new(file: &SourceFile) -> Result<Lines, DatasetError> {
        let handle = match file.store {
            Store::Path => Some(open(&file.path)?),
            _ => None,
        };
        Ok(Lines { handle, buffer: vec![0; 1 << 18], filled: 0, start: 0, base: 0, number: 0, ended: false })
    }

    /// The next line that is not blank.
    pub(crate) fn next<'s>(&'s mut self, file: &SourceFile) -> Result<Option<Line<'s>>, DatasetError> {
        while let Some((range, number)) = self.raw(file, &mut |_| true)? {
            let line = &self.buffer[range.clone()];
            let lead = line.len() - line.trim_ascii_start().len();
            let length = line.trim_ascii().len();
            if length > 0 {
                let first = range.start + lead;
                return Ok(Some(Line {
                    bytes: &self.buffer[first..first + length],
                    offset: self.base + first as u64,
                    number,
                }));
            }
        }
        Ok(None)
    }

    /// The next lines up to the one that `ends` says is the last, or up to the end of the file: where they are in
    /// the buffer, without the last line break, and the number of the first.
    pub(super) fn raw(
        &mut self,
        file: &SourceFile,
        ends: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Option<(Range<usize>, u64)>, DatasetError> {
        // Bytes and lines that are taken, counted from the start: the buffer may be moved.
        let (mut taken, mut lines) = (0, 0);
        let mut line_end = LineEnd::default();
        let length = loop {
            let from = self.start + taken;
            let end = match line_end.find(&self.buffer[from..self.filled]) {
                Some(end) => from + end,
                None if self.ended => {
                    line_end.restart();
                    self.filled
                }
                None => {
                    self.fill(file)?;
                    continue;
                }
            };
            if self.ended && from >= self.filled {
                if lines == 0 {
                    return Ok(None);
                }
                break taken;
            }
            lines += 1;
            if self.number == 0 && lines == 1 && self.buffer[from..end].starts_with(&BOM) {
                self.start += BOM.len();
            }
            let from = self.start + taken;
            taken = (end + 1).min(self.filled) - self.start;
            if ends(&self.buffer[from..end]) {
                break end - self.start;
            }
        };
        let range = self.start..self.start + length;
        let number = self.number + 1;
        self.start += taken;
        self.number += lines;
        Ok(Some((range, number)))
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Where a place in the buffer is in the file.
    pub(super) fn offset(&self, place: usize) -> u64 {
        self.base + place as u64
    }

    fn fill(&mut self, file: &SourceFile) -> Result<(), DatasetError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.base += self.start as u64;
            self.filled -= self.start;
            self.start = 0;
        }
        if self.filled == self.buffer.len() {
            if self.filled >= LONGEST_LINE {
                return Err(DatasetError::invalid(
                    &file.path,
                    crate::Place::Line(self.number + 1),
                    "",
                    format!("the line is longer than {} MiB; is this a JSONL file?", LONGEST_LINE >> 20),
                ));
            }
            // One byte beyond the end of the file tells that it is the end.
            let most = file.size(self.handle.as_ref()).map_or(usize::MAX, |size| {
                usize::try_from(size.saturating_sub(self.base) + 1).unwrap_or(usize::MAX)
            });
            self.buffer.reserve_exact((self.filled * 2).min(most).max(self.filled + 1) - self.filled);
            self.buffer.resize(self.buffer.capacity(), 0);
        }
        let offset = self.base + self.filled as u64;
        let count = file
            .read_some(self.handle.as_ref(), offset, &mut self.buffer[self.filled..])
            .map_err(|error| DatasetError::io(&file.path, &error))?;
        self.filled += count;
        self.ended = count == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_a_long_line_is_looked_at_twice() {
        let mut end = LineEnd::default();
        assert_eq!(end.find(b"abc"), None);
        // An end where there was none before shows that only what is new is looked at.
        assert_eq!(end.find(b"\nbcdef"), None);
        assert_eq!(end.find(b"abcdefg\nh"), Some(7));
        assert_eq!(end.find(b"\n"), Some(0));
        assert_eq!(end.find(b"ab"), None);
        end.restart();
        assert_eq!(end.find(b"\nb"), Some(0));
    }
}
