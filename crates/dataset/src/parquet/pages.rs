//! Where the pages of a column chunk are, and with which row each starts: from the file's offset index, or found
//! out by walking the page headers of a chunk when its rows are asked for out of order.

use std::io::BufReader;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::Result;
use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::metadata::{
    OffsetIndexBuilder, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::bytes::{FileBytes, From};

/// The page index of a file, made chunk by chunk as it is needed.
#[derive(Debug)]
pub(super) struct Pages {
    path: PathBuf,
    metadata: Arc<ParquetMetaData>,
    columns: usize,
    /// The index that the file brings along.
    stored: OnceLock<Option<Arc<dyn PageIndexProvider>>>,
    /// By row group and column; `None` where pages do not start with a row.
    walked: Box<[OnceLock<Option<OffsetIndexMetaData>>]>,
}

impl Pages {
    pub(super) fn new(path: PathBuf, metadata: Arc<ParquetMetaData>) -> Pages {
        let columns = metadata.file_metadata().schema_descr().num_columns();
        let walked = (0..columns * metadata.num_row_groups()).map(|_| OnceLock::new()).collect();
        Pages { path, metadata, columns, stored: OnceLock::new(), walked }
    }

    pub(super) fn stored(&self) -> Option<&Arc<dyn PageIndexProvider>> {
        let read = || {
            let mut reader = ParquetMetaDataReader::new_with_metadata(self.metadata.as_ref().clone())
                .with_column_index_policy(PageIndexPolicy::Skip)
                .with_offset_index_policy(PageIndexPolicy::Optional);
            // An index that cannot be read is as good as none.
            reader.read_page_indexes(&FileBytes::open(&self.path).ok()?).ok()?;
            reader.finish().ok()?.page_index().cloned()
        };
        let has_some = || {
            let chunks = || self.metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
            chunks().any(|chunk| chunk.offset_index_offset().is_some())
        };
        self.stored.get_or_init(|| if has_some() { read() } else { None }).as_ref()
    }

    /// Walks the pages of a chunk. `None` when a row goes on from one page to the next, as old writers had it:
    /// then nothing can be skipped.
    pub(super) fn walk(&self, row_group: usize, column: usize) -> Result<Option<OffsetIndexMetaData>> {
        let group = self.metadata.row_group(row_group);
        let chunk = group.column(column);
        let rows = group.num_rows();
        let repetition = chunk.column_descr().max_rep_level();
        let watched = Arc::new(Watched { bytes: FileBytes::open(&self.path)?, last: AtomicU64::new(0) });
        let mut reader = SerializedPageReader::new(Arc::clone(&watched), chunk, rows as usize, None)?;
        let mut pages: Vec<(u64, i64)> = Vec::new();
        while let Some(next) = reader.peek_next_page()? {
            // Peeking reads the header where it starts.
            let offset = watched.last.load(Ordering::Relaxed);
            if next.is_dict {
                reader.skip_next_page()?;
                continue;
            }
            let count = match (next.num_rows, next.num_levels) {
                (Some(count), _) => count,
                (None, Some(count)) if repetition == 0 => count,
                _ => {
                    let Some(Page::DataPage { buf, num_values, rep_level_encoding: Encoding::RLE, .. }) =
                        reader.get_next_page()?
                    else {
                        return Ok(None);
                    };
                    let Some(count) = rows_of(&buf, num_values, repetition) else { return Ok(None) };
                    pages.push((offset, count as i64));
                    continue;
                }
            };
            reader.skip_next_page()?;
            pages.push((offset, count as i64));
        }
        if pages.iter().map(|(_, count)| count).sum::<i64>() != rows {
            return Ok(None);
        }
        let (start, length) = chunk.byte_range();
        let ends = pages.iter().skip(1).map(|(offset, _)| *offset).chain([start + length]);
        let mut index = OffsetIndexBuilder::new();
        for ((offset, count), end) in pages.iter().zip(ends) {
            let (Some(size), Ok(at)) =
                (end.checked_sub(*offset).and_then(|size| i32::try_from(size).ok()), i64::try_from(*offset))
            else {
                return Ok(None);
            };
            index.append_row_count(*count);
            index.append_offset_and_size(at, size);
        }
        Ok(Some(index.build()))
    }
}

impl PageIndexProvider for Pages {
    fn has_offset_indexes(&self) -> bool {
        true
    }

    fn has_column_indexes(&self) -> bool {
        false
    }

    fn column_index(&self, _row_group: usize, _column: usize) -> Option<&ColumnIndexMetaData> {
        None
    }

    fn offset_index(&self, row_group: usize, column: usize) -> Option<&OffsetIndexMetaData> {
        if let Some(index) = self.stored().and_then(|stored| stored.offset_index(row_group, column)) {
            return Some(index);
        }
        let slot = self.walked.get(row_group * self.columns + column)?;
        // A chunk that cannot be walked cannot be read either, and reading it says why.
        slot.get_or_init(|| self.walk(row_group, column).unwrap_or(None)).as_ref()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// A file that remembers where it was last read from.
struct Watched {
    bytes: FileBytes,
    last: AtomicU64,
}

impl Length for Watched {
    fn len(&self) -> u64 {
        self.bytes.size()
    }
}

impl ChunkReader for Watched {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<BufReader<From>> {
        self.last.store(start, Ordering::Relaxed);
        self.bytes.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.bytes.get_bytes(start, length)
    }
}

/// Rows that start in a page of the first format: its repetition levels that are 0. `None` when the page starts
/// inside a row, or is damaged.
fn rows_of(page: &[u8], values: u32, max_level: i16) -> Option<u64> {
    let (length, rest) = page.split_first_chunk::<4>()?;
    let mut runs = rest.get(..u32::from_le_bytes(*length) as usize)?;
    let width = (i16::BITS - max_level.leading_zeros()) as usize;
    let mut left = u64::from(values);
    let mut zeros = 0;
    let mut first = true;
    while left > 0 {
        let header = varint(&mut runs)?;
        if header & 1 == 0 {
            let count = (header >> 1).min(left);
            let (value, rest) = runs.split_at_checked(width.div_ceil(8))?;
            runs = rest;
            let zero = value.iter().all(|byte| *byte == 0);
            if first && !zero {
                return None;
            }
            zeros += if zero { count } else { 0 };
            left -= count;
            first &= count == 0;
        } else {
            let packed = usize::try_from(header >> 1).ok()?.checked_mul(width)?;
            let (packed, rest) = runs.split_at_checked(packed)?;
            runs = rest;
            let count = (header >> 1).saturating_mul(8).min(left);
            for index in 0..count as usize {
                let zero =
                    (index * width..(index + 1) * width).all(|bit| packed[bit / 8] >> (bit % 8) & 1 == 0);
                if first && !zero {
                    return None;
                }
                first = false;
                zeros += u64::from(zero);
            }
            left -= count;
        }
    }
    Some(zeros)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(runs: &[u8]) -> Vec<u8> {
        [&(runs.len() as u32).to_le_bytes()[..], runs, b"definition levels and values"].concat()
    }

    #[test]
    fn rows_are_counted_by_the_levels_that_start_one() {
        // Five times 0, then the bits 0 1 1 0 1 0 0 0 of which six count.
        assert_eq!(rows_of(&page(&[10, 0, 3, 0b0001_0110]), 11, 1), Some(8));
        // Two bits for each: 0 1 2 0.
        assert_eq!(rows_of(&page(&[3, 0b0010_0100, 0]), 4, 2), Some(2));
        // The first value belongs to the row before.
        assert_eq!(rows_of(&page(&[10, 1]), 5, 1), None);
        assert_eq!(rows_of(&page(&[3, 0b0001_0111]), 8, 1), None);
        // Cut short.
        assert_eq!(rows_of(&page(&[10]), 5, 1), None);
        assert_eq!(rows_of(&page(&[0x80]), 5, 1), None);
        assert_eq!(rows_of(&[9, 0, 0, 0, 1], 5, 1), None);
        assert_eq!(rows_of(&[], 5, 1), None);
    }
}
