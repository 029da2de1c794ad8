//! What it takes to read rows of a parquet file: told by its footer and by where its pages are, before anything is
//! decoded.

use parquet::file::metadata::page_index::PageIndexProvider as _;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::pages::Pages;

/// Chunks up to this size count as one page: looking closer is not worth it.
const SMALL_CHUNK: u64 = 1 << 20;

/// Some columns of a file.
pub(super) struct Costs<'p> {
    pub(super) metadata: &'p ParquetMetaData,
    pub(super) pages: &'p Pages,
    /// Numbers of the columns of the schema.
    pub(super) columns: &'p [usize],
}

/// Bytes of a chunk when it is decoded.
pub(super) fn decoded(chunk: &ColumnChunkMetaData) -> u64 {
    let stored = chunk.uncompressed_size().max(0);
    chunk.unencoded_byte_array_data_bytes().unwrap_or(0).max(stored) as u64
}

/// What these bytes of a chunk, as they are stored, are about when they are decompressed.
fn decompressed(chunk: &ColumnChunkMetaData, stored: u64) -> u64 {
    let ratio = chunk.uncompressed_size().max(1) as f64 / chunk.compressed_size().max(1) as f64;
    (stored as f64 * ratio) as u64
}

fn dictionary(chunk: &ColumnChunkMetaData) -> u64 {
    let start = chunk.dictionary_page_offset();
    start.map_or(0, |start| chunk.data_page_offset().saturating_sub(start).max(0) as u64)
}

impl Costs<'_> {
    fn leaves(&self) -> impl Iterator<Item = usize> + '_ {
        let descriptor = self.metadata.file_metadata().schema_descr();
        (0..descriptor.num_columns())
            .filter(move |leaf| self.columns.contains(&descriptor.get_column_root_idx(*leaf)))
    }

    /// Bytes of a row group when it is decoded.
    pub(super) fn of_group(&self, group: usize) -> u64 {
        let group = self.metadata.row_group(group);
        self.leaves().map(|leaf| decoded(group.column(leaf))).fold(0, u64::saturating_add)
    }

    /// Bytes that a reader of a row group holds when it has come to the largest pages: each of them as it is stored,
    /// and decompressed.
    pub(super) fn of_reader(&self, group: usize) -> u64 {
        self.leaves().map(|leaf| self.of_pages(group, leaf)).fold(0, u64::saturating_add).saturating_mul(2)
    }

    fn of_pages(&self, group: usize, leaf: usize) -> u64 {
        let chunk = self.metadata.row_group(group).column(leaf);
        let whole = chunk.uncompressed_size().max(0) as u64;
        // Without an index, finding the rows of lists means reading them.
        let cheap = chunk.column_descr().max_rep_level() == 0 || self.pages.stored().is_some();
        if whole <= SMALL_CHUNK || !cheap {
            return whole;
        }
        let Some(index) = self.pages.offset_index(group, leaf) else { return whole };
        let sizes = index.page_locations().iter().map(|page| page.compressed_page_size.max(0) as u64);
        let stored = dictionary(chunk) + sizes.max().unwrap_or(0);
        decompressed(chunk, stored).min(whole)
    }

    /// Bytes that a reader has to decompress before it is at row `skipped` of a row group, from which on `rows` are
    /// wanted, and for these.
    pub(super) fn of_jump(&self, group: usize, skipped: u64, rows: u64) -> u64 {
        let all = self.metadata.row_group(group).num_rows().max(1) as u64;
        let of_leaf = |leaf| {
            let chunk = self.metadata.row_group(group).column(leaf);
            let whole = chunk.uncompressed_size().max(0) as u64;
            let Some(index) = self.pages.offset_index(group, leaf) else {
                return (whole as f64 * ((skipped + rows) as f64 / all as f64)) as u64;
            };
            let pages = index.page_locations();
            let ends = pages.iter().skip(1).map(|page| page.first_row_index as u64).chain([all]);
            let stored: u64 = pages
                .iter()
                .zip(ends)
                .filter(|(page, end)| *end > skipped && (page.first_row_index as u64) < skipped + rows)
                .map(|(page, _)| page.compressed_page_size.max(0) as u64)
                .sum();
            decompressed(chunk, dictionary(chunk) + stored).min(whole)
        };
        self.leaves().map(of_leaf).fold(0, u64::saturating_add)
    }
}
