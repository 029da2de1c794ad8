//! A block of records: their facts column by column, and the gaps between their content events.

use std::cell::OnceCell;

use super::pack::{self, PADDING};
use crate::facts::{Facts, Field, Source, gap_count};

/// Records in a full block. Small enough that its rows stay in a core's cache while they are gathered.
pub(crate) const ROWS: usize = 512;

/// Gaps at which a block is full before it has all its rows.
const GAPS: usize = 16 * 1024;

/// Gaps packed at a time: a pause in one answer does not widen those of all others.
const GAP_RUN: usize = 512;

/// How a column says which rows have a value.
const NO_ROW: u8 = 0;
const ALL_ROWS: u8 = 1;
const SOME_ROWS: u8 = 2;

/// Rows that are gathered before they are packed.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    rows: Vec<Facts>,
    /// The gaps of all rows, but the first and the last of each: those follow from its facts.
    gaps: Vec<i64>,
    column: Vec<i64>,
    packed: Vec<u8>,
}

impl Builder {
    /// Adds a record; `gap` tells each gap between its content events.
    pub(crate) fn push(&mut self, facts: &Facts, gap: impl Fn(usize) -> i64) {
        if self.rows.capacity() == 0 {
            self.rows.reserve_exact(ROWS);
        }
        self.rows.push(*facts);
        let count = gap_count(facts);
        for index in 1..count.saturating_sub(1) {
            self.gaps.push(gap(index));
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= ROWS || self.gaps.len() >= GAPS
    }

    /// Packs what was gathered; the memory is kept for the next block.
    pub(crate) fn seal(&mut self) -> Option<Block> {
        let rows = self.rows.len();
        if rows == 0 {
            return None;
        }
        let mut offsets = [0u32; Field::COUNT + 1];
        let mut from = i64::MAX;
        let mut until = i64::MIN;
        for row in &self.rows {
            let start = row.values[Field::Start as usize];
            from = from.min(start);
            until = until.max(start + elapsed(row));
        }
        self.packed.clear();
        for (field, offset) in offsets.iter_mut().enumerate().take(Field::COUNT) {
            *offset = self.packed.len() as u32;
            self.pack_column(field);
        }
        offsets[Field::COUNT] = self.packed.len() as u32;
        for run in self.gaps.chunks(GAP_RUN) {
            pack::pack(run, &mut self.packed);
        }
        self.packed.extend([0; PADDING]);
        let block = Block {
            rows,
            gaps: self.gaps.len(),
            from,
            until,
            offsets: Box::new(offsets),
            data: self.packed.as_slice().into(),
        };
        self.rows.clear();
        self.gaps.clear();
        Some(block)
    }

    fn pack_column(&mut self, field: usize) {
        self.column.clear();
        let mut present = [0u64; ROWS / 64];
        for (index, row) in self.rows.iter().enumerate() {
            if row.present >> field & 1 != 0 {
                present[index / 64] |= 1 << (index % 64);
                self.column.push(row.values[field]);
            }
        }
        match self.column.len() {
            0 => self.packed.push(NO_ROW),
            all if all == self.rows.len() => self.packed.push(ALL_ROWS),
            _ => {
                self.packed.push(SOME_ROWS);
                for word in &present[..self.rows.len().div_ceil(64)] {
                    self.packed.extend(word.to_le_bytes());
                }
            }
        }
        pack::pack(&self.column, &mut self.packed);
    }
}

/// Send to end of a record, ns.
pub(crate) fn elapsed(facts: &impl Source) -> i64 {
    let part = |field| facts.get(field).unwrap_or(0);
    part(Field::FirstContent) + part(Field::Decode) + part(Field::Tail)
}

/// A packed block of records.
#[derive(Debug)]
pub(crate) struct Block {
    rows: usize,
    gaps: usize,
    /// Earliest send of its records.
    pub(crate) from: i64,
    /// Latest end of its records.
    pub(crate) until: i64,
    offsets: Box<[u32; Field::COUNT + 1]>,
    data: Box<[u8]>,
}

impl Block {
    /// Bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Block>() + size_of_val(&*self.offsets) + self.data.len()
    }

    fn column(&self, field: Field) -> Column {
        let mut column = Column { present: [0; ROWS / 64], values: [0; ROWS] };
        let mut at = self.offsets[field as usize] as usize;
        let kind = self.data[at];
        at += 1;
        match kind {
            NO_ROW => {}
            ALL_ROWS => {
                column.present = [u64::MAX; ROWS / 64];
                pack::unpack(&self.data, at, &mut column.values[..self.rows]);
            }
            _ => {
                let mut count = 0;
                for word in column.present.iter_mut().take(self.rows.div_ceil(64)) {
                    *word = u64::from_le_bytes(self.data[at..at + 8].try_into().unwrap_or_default());
                    count += word.count_ones() as usize;
                    at += 8;
                }
                pack::unpack(&self.data, at, &mut column.values[..count]);
                spread(&mut column, self.rows, count);
            }
        }
        column
    }

    /// All stored gaps, appended to `into`.
    fn unpack_gaps(&self, into: &mut Vec<i64>) {
        into.clear();
        into.resize(self.gaps, 0);
        let mut at = self.offsets[Field::COUNT] as usize;
        for run in into.chunks_mut(GAP_RUN) {
            at = pack::unpack(&self.data, at, run);
        }
    }
}

/// Moves the values of a column, unpacked one after the other, to their rows.
fn spread(column: &mut Column, rows: usize, mut count: usize) {
    for row in (0..rows).rev() {
        if column.present[row / 64] >> (row % 64) & 1 != 0 {
            count -= 1;
            column.values[row] = column.values[count];
        }
    }
}

#[derive(Debug)]
struct Column {
    present: [u64; ROWS / 64],
    values: [i64; ROWS],
}

/// A block being read: a column is unpacked when it is first asked for.
pub(crate) struct View<'a> {
    block: &'a Block,
    columns: [OnceCell<Box<Column>>; Field::COUNT],
}

impl<'a> View<'a> {
    pub(crate) fn new(block: &'a Block) -> View<'a> {
        View { block, columns: [const { OnceCell::new() }; Field::COUNT] }
    }

    /// The facts of its records.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.block.rows).map(move |row| Row { view: self, row })
    }

    /// Each record with the gaps between its content events; `scratch` and `gaps` are working memory.
    pub(crate) fn each_with_gaps(
        &self,
        scratch: &mut Vec<i64>,
        gaps: &mut Vec<i64>,
        mut visit: impl FnMut(&Row<'_>, &[i64]),
    ) {
        self.block.unpack_gaps(scratch);
        let mut at = 0;
        for row in self.rows() {
            gaps.clear();
            let count = gap_count(&row);
            if count > 0 {
                let first = row.get(Field::FirstGap).unwrap_or(0);
                gaps.push(first);
                let inner = count.saturating_sub(2);
                gaps.extend_from_slice(&scratch[at..at + inner]);
                at += inner;
                if count > 1 {
                    let so_far: i64 = gaps.iter().sum();
                    gaps.push(row.get(Field::Decode).unwrap_or(0) - so_far);
                }
            }
            visit(&row, gaps);
        }
    }
}

/// One record of a block being read.
pub(crate) struct Row<'a> {
    view: &'a View<'a>,
    row: usize,
}

impl Source for Row<'_> {
    #[inline]
    fn get(&self, field: Field) -> Option<i64> {
        let column =
            self.view.columns[field as usize].get_or_init(|| Box::new(self.view.block.column(field)));
        (column.present[self.row / 64] >> (self.row % 64) & 1 != 0).then(|| column.values[self.row])
    }
}
