//! Rows of a Parquet file, one row group after the other.

use std::io::BufReader;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::reader::{ChunkReader, Length};
use arrow_array::RecordBatch;
use bytes::Bytes;

use super::cells::row;
use super::{Row, unreadable};
use crate::DatasetError;
use crate::parquet::guarded;
use crate::public::shard::From;
use crate::public::{Fault, Shard, ShardBytes};

/// Decoded bytes that are aimed at for a batch.
const BATCH_BYTES: i64 = 8 << 20;
/// Rows of a batch, at most.
const BATCH_ROWS: i64 = 1024;

/// The bytes of a shard, for the decoder.
#[derive(Clone, Debug)]
struct Chunks(Arc<dyn ShardBytes>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> ParquetResult<BufReader<From>> {
        Ok(BufReader::new(From::new(&self.0, start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        // Asked before anything is allocated: the length may be a lie.
        if start.checked_add(length as u64).is_none_or(|end| end > self.0.size()) {
            return Err(ParquetError::EOF(format!("bytes from {start} on are asked for beyond its end")));
        }
        let mut buffer = vec![0; length];
        self.0.read_at(start, &mut buffer)?;
        Ok(buffer.into())
    }
}

pub(super) struct ParquetRows {
    shard: Shard,
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    schema: Arc<[Arc<str>]>,
    /// Numbers of the columns that are read, in order.
    columns: Vec<usize>,
    /// The next row group.
    group: usize,
    reader: Option<ParquetRecordBatchReader>,
    batch: Option<(RecordBatch, usize)>,
    number: u64,
    done: bool,
}

impl ParquetRows {
    pub(super) fn open(shard: &Shard, columns: Option<&[String]>) -> Result<ParquetRows, Fault> {
        let path = PathBuf::from(&*shard.name);
        // Without the schema that Arrow writers leave behind: it only says how strings are laid out in memory.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = decoded(shard, &path, None, || {
            ArrowReaderMetadata::load(&Chunks(Arc::clone(&shard.bytes)), options)
        })?;
        let fields = metadata.schema().fields();
        let wanted = |name: &str| columns.is_none_or(|names| names.iter().any(|wanted| wanted == name));
        let mut read: Vec<usize> = (0..fields.len()).filter(|index| wanted(fields[*index].name())).collect();
        // Rows without one column cannot be told from no rows.
        if read.is_empty() && !fields.is_empty() {
            read.push(0);
        }
        let schema = fields.iter().map(|field| Arc::from(field.name().as_str())).collect();
        Ok(ParquetRows {
            shard: shard.clone(),
            path,
            metadata,
            schema,
            columns: read,
            group: 0,
            reader: None,
            batch: None,
            number: 0,
            done: false,
        })
    }

    /// Opens the next row group; false when there is none.
    fn open_group(&mut self) -> Result<bool, Fault> {
        let metadata = Arc::clone(self.metadata.metadata());
        let Some(group) = metadata.row_groups().get(self.group) else { return Ok(false) };
        let number = self.group;
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), self.columns.iter().copied());
        let rows = group.num_rows().max(1);
        let batch = (BATCH_BYTES / (group.total_byte_size() / rows).max(1)).clamp(1, BATCH_ROWS);
        let ranges: Vec<Range<u64>> = (0..group.num_columns())
            .filter(|leaf| mask.leaf_included(*leaf))
            .filter_map(|leaf| {
                let chunk = group.column(leaf);
                let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
                let start = u64::try_from(start.min(chunk.data_page_offset())).ok()?;
                let length = u64::try_from(chunk.compressed_size()).ok()?;
                Some(start..start.checked_add(length)?)
            })
            .collect();
        let shard = &self.shard;
        shard.bytes.expect(&ranges).map_err(|error| unreadable(&in_group(shard, Some(number)), &error))?;
        let reader = decoded(shard, &self.path, Some(number), || {
            let chunks = Chunks(Arc::clone(&shard.bytes));
            ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.metadata.clone())
                .with_projection(mask)
                .with_row_groups(vec![number])
                .with_batch_size(usize::try_from(batch).unwrap_or(1))
                .build()
        })?;
        self.reader = Some(reader);
        self.group += 1;
        Ok(true)
    }

    fn step(&mut self) -> Result<Option<Row>, Fault> {
        loop {
            if let Some((batch, next)) = &mut self.batch
                && *next < batch.num_rows()
            {
                let value = row(batch, *next);
                *next += 1;
                self.number += 1;
                return Ok(Some(Row {
                    shard: Arc::clone(&self.shard.name),
                    number: self.number - 1,
                    value,
                    schema: Some(Arc::clone(&self.schema)),
                }));
            }
            self.batch = None;
            if let Some(reader) = &mut self.reader {
                let group = self.group - 1;
                let batch = decoded(&self.shard, &self.path, Some(group), || {
                    reader.next().transpose().map_err(|error| ParquetError::ArrowError(error.to_string()))
                })?;
                match batch {
                    Some(batch) => self.batch = Some((batch, 0)),
                    None => self.reader = None,
                }
            } else if !self.open_group()? {
                return Ok(None);
            }
        }
    }
}

impl Iterator for ParquetRows {
    type Item = Result<Row, Fault>;

    fn next(&mut self) -> Option<Result<Row, Fault>> {
        if self.done {
            return None;
        }
        let row = self.step().transpose();
        self.done = !matches!(row, Some(Ok(_)));
        row
    }
}

/// A shard, or a row group of it, in words.
fn in_group(shard: &Shard, group: Option<usize>) -> String {
    match group {
        None => shard.name.to_string(),
        Some(group) => format!("{}: row group {}", shard.name, group + 1),
    }
}

/// Runs the decoder, whose panics on damaged files are errors like any other.
fn decoded<T>(
    shard: &Shard,
    path: &std::path::Path,
    group: Option<usize>,
    work: impl FnOnce() -> ParquetResult<T>,
) -> Result<T, Fault> {
    let place = || in_group(shard, group);
    let mut failure = None;
    let result = guarded(path, || {
        work().map_err(|error| {
            failure = Some(error.to_string());
            DatasetError::Empty(String::new())
        })
    });
    result.map_err(|_| match failure {
        Some(cause) => Fault::damaged(format!("{} cannot be read: {cause}", place())),
        None => Fault::damaged(format!("{} cannot be read: the decoder gave up", place())),
    })
}
