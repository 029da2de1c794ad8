//! Rows of a Parquet file, one row group after the other.

use std::io::BufReader;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowSelection, RowSelector,
};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::reader::{ChunkReader, Length};
use arrow_array::RecordBatch;
use bytes::Bytes;

use super::cells::row;
use super::{Choice, Row, unreadable};
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
    /// The next row group, and the first row of it.
    group: usize,
    group_start: u64,
    reader: Option<ParquetRecordBatchReader>,
    /// Numbers of the rows that the reader gives.
    numbers: Numbers,
    batch: Option<(RecordBatch, usize)>,
    /// Rows up to here were given, or are not wanted.
    passed: u64,
    done: bool,
}

type Numbers = Box<dyn Iterator<Item = u64> + Send>;

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
            group_start: 0,
            reader: None,
            numbers: Box::new(std::iter::empty()),
            batch: None,
            passed: 0,
            done: false,
        })
    }

    /// Opens the next row group that has a row which is wanted; false when there is none.
    fn open_group(&mut self, choice: Option<&Choice<'_>>) -> Result<bool, Fault> {
        while let Some(group) = self.metadata.metadata().row_groups().get(self.group) {
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            let (number, start) = (self.group, self.group_start);
            self.group += 1;
            self.group_start = start.saturating_add(rows);
            let wanted = match choice {
                None => None,
                Some(choice) => Some(self.wanted(number, start, choice)?),
            };
            if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&true)) {
                self.passed = self.group_start;
                continue;
            }
            let selection = wanted.as_deref().map(selection);
            self.reader = Some(self.read(number, &self.columns, selection)?);
            self.numbers = match wanted {
                None => Box::new(start..self.group_start),
                Some(wanted) => {
                    Box::new((start..).zip(wanted).filter_map(|(row, wanted)| wanted.then_some(row)))
                }
            };
            return Ok(true);
        }
        self.passed = self.group_start;
        Ok(false)
    }

    /// Which rows of a row group are wanted, by the columns that this is told by.
    fn wanted(&self, group: usize, start: u64, choice: &Choice<'_>) -> Result<Vec<bool>, Fault> {
        let fields = self.metadata.schema().fields();
        let names = |index: &usize| choice.columns.contains(fields[*index].name());
        let columns: Vec<usize> = (0..fields.len()).filter(names).collect();
        let mut reader = self.read(group, &columns, None)?;
        let mut wanted = Vec::new();
        while let Some(batch) = self.next_batch(&mut reader, group)? {
            for index in 0..batch.num_rows() {
                wanted.push((choice.wants)(&self.row(&batch, index, start + wanted.len() as u64))?);
            }
        }
        Ok(wanted)
    }

    /// A reader of some columns of a row group, whose bytes are told to come next.
    fn read(
        &self,
        group: usize,
        columns: &[usize],
        selection: Option<RowSelection>,
    ) -> Result<ParquetRecordBatchReader, Fault> {
        let shard = &self.shard;
        let metadata = self.metadata.metadata().row_group(group);
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied());
        let chunks = || metadata.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf));
        let bytes =
            chunks().map(|(_, chunk)| chunk.uncompressed_size().max(0)).fold(0i64, i64::saturating_add);
        let batch = (BATCH_BYTES / (bytes / metadata.num_rows().max(1)).max(1)).clamp(1, BATCH_ROWS);
        let ranges: Vec<Range<u64>> = chunks()
            .filter_map(|(_, chunk)| {
                let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
                let start = u64::try_from(start.min(chunk.data_page_offset())).ok()?;
                let length = u64::try_from(chunk.compressed_size()).ok()?;
                Some(start..start.checked_add(length)?)
            })
            .collect();
        shard.bytes.expect(&ranges).map_err(|error| unreadable(&in_group(shard, Some(group)), &error))?;
        decoded(shard, &self.path, Some(group), || {
            let chunks = Chunks(Arc::clone(&shard.bytes));
            let mut builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.metadata.clone())
                    .with_projection(mask.clone())
                    .with_row_groups(vec![group])
                    .with_batch_size(usize::try_from(batch).unwrap_or(1));
            if let Some(selection) = selection {
                builder = builder.with_row_selection(selection);
            }
            builder.build()
        })
    }

    fn next_batch(
        &self,
        reader: &mut ParquetRecordBatchReader,
        group: usize,
    ) -> Result<Option<RecordBatch>, Fault> {
        decoded(&self.shard, &self.path, Some(group), || {
            reader.next().transpose().map_err(|error| ParquetError::ArrowError(error.to_string()))
        })
    }

    fn row(&self, batch: &RecordBatch, index: usize, number: u64) -> Row {
        Row {
            shard: Arc::clone(&self.shard.name),
            number,
            value: row(batch, index),
            schema: Some(Arc::clone(&self.schema)),
        }
    }

    fn step(&mut self, choice: Option<&Choice<'_>>) -> Result<Option<Row>, Fault> {
        loop {
            if let Some((batch, next)) = &mut self.batch
                && *next < batch.num_rows()
            {
                let index = *next;
                *next += 1;
                let number = self.numbers.next().unwrap_or(self.passed);
                self.passed = number + 1;
                let Some((batch, _)) = &self.batch else { continue };
                return Ok(Some(self.row(batch, index, number)));
            }
            self.batch = None;
            if let Some(mut reader) = self.reader.take() {
                if let Some(batch) = self.next_batch(&mut reader, self.group - 1)? {
                    self.batch = Some((batch, 0));
                    self.reader = Some(reader);
                }
            } else if !self.open_group(choice)? {
                return Ok(None);
            }
        }
    }

    /// Rows that were given, or are not wanted.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    pub(super) fn next(&mut self, choice: Option<&Choice<'_>>) -> Option<Result<Row, Fault>> {
        if self.done {
            return None;
        }
        let row = self.step(choice).transpose();
        self.done = !matches!(row, Some(Ok(_)));
        row
    }
}

/// The rows that are wanted, run by run.
fn selection(wanted: &[bool]) -> RowSelection {
    let runs = wanted.chunk_by(|one, other| one == other);
    let selector = |run: &[bool]| match run.first() {
        Some(true) => RowSelector::select(run.len()),
        _ => RowSelector::skip(run.len()),
    };
    runs.map(selector).collect::<Vec<_>>().into()
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
            failure = Some(error);
            DatasetError::Empty(String::new())
        })
    });
    result.map_err(|_| match failure {
        Some(ParquetError::External(error)) => match error.downcast::<std::io::Error>() {
            Ok(error) => unreadable(&place(), &error),
            Err(error) => Fault::damaged(format!("{} cannot be read: {error}", place())),
        },
        Some(cause) => Fault::damaged(format!("{} cannot be read: {cause}", place())),
        None => Fault::damaged(format!("{} cannot be read: the decoder gave up", place())),
    })
}
