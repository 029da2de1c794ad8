//! One columnar file: its schema, its rows in order, and what is needed to read any of them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_config::InputColumns;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::reader::FileDecoder;
use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
    RowSelection, RowSelector,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::metadata::page_index::PageIndexProvider;

use super::bytes::FileBytes;
use super::costs::Costs;
use super::guard::{damaged, guarded};
use super::ipc::ArrowFile;
use super::pages::Pages;
use super::types;
use crate::DatasetError;
use crate::source::{Coding, check_columns, coding};

/// Decoded bytes that are aimed at for a batch.
const BATCH_BYTES: u64 = 1 << 20;
/// Rows of a batch, at most. Small, because dictionary-coded rows can be far longer than they are stored.
const BATCH_ROWS: u64 = 256;
/// Rows of a batch of numbers alone.
const BATCH_NUMBERS: u64 = 4096;

/// A parquet file, or an Arrow IPC file mapped into memory.
pub(crate) struct Table {
    path: PathBuf,
    rows: u64,
    schema: SchemaRef,
    store: Store,
    /// Where fields are, if not under their own names.
    names: InputColumns,
}

enum Store {
    Parquet(Box<Parquet>),
    Arrow(ArrowFile),
}

struct Parquet {
    size: u64,
    /// For reading from the start of a row group on.
    plain: ArrowReaderMetadata,
    /// For reading from a row on: knows where pages are.
    paged: ArrowReaderMetadata,
    pages: Arc<Pages>,
    /// First row of each row group, and the number of all rows.
    starts: Box<[u64]>,
    /// A column that JSON has no form for: its dotted path and type.
    rejected: Option<(String, &'static str)>,
}

impl Table {
    /// Opens a file by its content, whatever its name.
    pub(crate) fn open(path: &Path) -> Result<Table, DatasetError> {
        let unreadable = |reason| DatasetError::Unreadable { path: path.to_owned(), reason };
        match coding(path)? {
            Coding::Arrow => {
                let file = guarded(path, || ArrowFile::open(path).map_err(unreadable))?;
                let rows = file.starts().last().copied().unwrap_or(0);
                Ok(Table {
                    path: path.to_owned(),
                    rows,
                    schema: file.schema.clone(),
                    store: Store::Arrow(file),
                    names: InputColumns::default(),
                })
            }
            Coding::Parquet => {
                let parquet = guarded(path, || Parquet::open(path))?;
                let rows = parquet.starts.last().copied().unwrap_or(0);
                let schema = parquet.plain.schema().clone();
                Ok(Table {
                    path: path.to_owned(),
                    rows,
                    schema,
                    store: Store::Parquet(Box::new(parquet)),
                    names: InputColumns::default(),
                })
            }
            _ => Err(unreadable("it is not a parquet file: it does not start with PAR1".into())),
        }
    }

    /// Opens a file some of whose columns hold fields of other names: from then on they have these.
    pub(crate) fn named(path: &Path, names: &InputColumns) -> Result<Table, DatasetError> {
        let table = Table::open(path)?;
        check_columns(path, names, table.schema.fields().iter().map(|field| field.name().as_str()))?;
        Ok(Table { schema: with_fields(&table.schema, names), names: names.clone(), ..table })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Rows, by the footer.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The columns as they are read: strings and lists in any of their layouts.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The error when a column has no form as JSON, by the types it was written with.
    pub(crate) fn check_json(&self) -> Result<(), DatasetError> {
        let rejected = match &self.store {
            Store::Parquet(parquet) => parquet.rejected.clone(),
            Store::Arrow(file) => types::rejected(file.schema.fields()),
        };
        rejected.map_or(Ok(()), |(column, kind)| {
            Err(DatasetError::Unsuitable(format!(
                "{}: column `{column}` is of type {kind}, which has no form as JSON; drop the column, or convert it \
                 to numbers or strings",
                self.path.display()
            )))
        })
    }

    /// The numbers of the columns of these names, in the order of the schema; the first name that there is none of.
    pub(crate) fn columns<'n>(&self, names: &[&'n str]) -> Result<Vec<usize>, &'n str> {
        let mut columns = names
            .iter()
            .map(|name| self.schema.index_of(name).map_err(|_| *name))
            .collect::<Result<Vec<_>, _>>()?;
        columns.sort_unstable();
        columns.dedup();
        Ok(columns)
    }

    /// The rows of these columns from row `first` on, batch by batch.
    pub(crate) fn batches(self: &Arc<Table>, columns: &[usize], first: u64) -> Result<Batches, DatasetError> {
        let (reader, next) = match &self.store {
            Store::Parquet(parquet) => {
                // One length of batches for the whole file: that of the row group with the longest rows.
                let groups = 0..parquet.starts.len() - 1;
                let rows = groups.map(|group| self.batch_rows(group, columns)).min().unwrap_or(1);
                let reader = guarded(&self.path, || {
                    let builder = parquet.builder(&self.path, &parquet.plain, columns)?;
                    let builder = builder.with_batch_size(rows as usize).with_offset(first as usize);
                    builder.build().map_err(|error| damaged(&self.path, &error.to_string()))
                })?;
                (Reader::Parquet(Box::new(reader)), first)
            }
            Store::Arrow(file) => {
                let number = self.group_of(first);
                (Reader::Arrow(Box::new(self.decoder(columns)?), number), file.starts()[number])
            }
        };
        Ok(Batches { table: Arc::clone(self), reader, first, next })
    }

    /// Whether some row may have a value in this column; told by the footer, as far as that goes.
    pub(crate) fn may_have(&self, column: &str) -> bool {
        let Ok(column) = self.schema.index_of(column) else { return false };
        let Store::Parquet(parquet) = &self.store else { return true };
        let descriptor = parquet.plain.parquet_schema();
        let leaves: Vec<usize> = (0..descriptor.num_columns())
            .filter(|leaf| descriptor.get_column_root_idx(*leaf) == column)
            .collect();
        parquet.plain.metadata().row_groups().iter().any(|group| {
            leaves.iter().any(|leaf| {
                let chunk = group.column(*leaf);
                let nulls =
                    chunk.statistics().and_then(parquet::file::statistics::Statistics::null_count_opt);
                nulls.is_none_or(|nulls| nulls != chunk.num_values().max(0) as u64)
            })
        })
    }

    fn decoder(&self, columns: &[usize]) -> Result<FileDecoder, DatasetError> {
        match &self.store {
            Store::Arrow(file) => guarded(&self.path, || {
                file.decoder(columns.to_vec())
                    .map_err(|reason| DatasetError::Unreadable { path: self.path.clone(), reason })
            }),
            Store::Parquet(_) => Err(damaged(&self.path, "it is no Arrow file")),
        }
    }

    /// Rows of a batch of a row group that are about as long as is aimed at.
    fn batch_rows(&self, group: usize, columns: &[usize]) -> u64 {
        let Store::Parquet(parquet) = &self.store else { return BATCH_ROWS };
        let bytes = parquet.costs(columns).of_group(group);
        let group = parquet.plain.metadata().row_group(group);
        let of_one = (bytes / (group.num_rows().max(1) as u64)).max(1);
        let numbers = columns.iter().all(|column| self.schema.field(*column).data_type().is_primitive());
        (BATCH_BYTES / of_one).clamp(1, if numbers { BATCH_NUMBERS } else { BATCH_ROWS })
    }

    /// The batch that row `row` is read with: its first row and how many it has.
    pub(super) fn batch_of(&self, row: u64, columns: &[usize]) -> (u64, u64) {
        let group = self.group_of(row);
        let (start, end) = (self.starts()[group], self.starts()[group + 1]);
        match &self.store {
            Store::Arrow(_) => (start, end - start),
            Store::Parquet(_) => {
                let rows = self.batch_rows(group, columns);
                let first = start + (row - start) / rows * rows;
                (first, rows.min(end - first))
            }
        }
    }

    fn starts(&self) -> &[u64] {
        match &self.store {
            Store::Parquet(parquet) => &parquet.starts,
            Store::Arrow(file) => file.starts(),
        }
    }

    /// How many row groups, or batches, there are.
    pub(super) fn groups(&self) -> usize {
        self.starts().len() - 1
    }

    /// The row group, or batch, of a row.
    pub(super) fn group_of(&self, row: u64) -> usize {
        let starts = self.starts();
        (starts.partition_point(|start| *start <= row) - 1).min(starts.len() - 2)
    }

    /// The rows of a row group.
    pub(super) fn range_of(&self, group: usize) -> Range<u64> {
        self.starts()[group]..self.starts()[group + 1]
    }

    /// Bytes of these columns of a row group when they are decoded; 0 where they are not decoded but mapped.
    pub(super) fn group_bytes(&self, group: usize, columns: &[usize]) -> u64 {
        let Store::Parquet(parquet) = &self.store else { return 0 };
        parquet.costs(columns).of_group(group)
    }

    /// Bytes of these columns when they are decoded; 0 where they are not decoded but mapped.
    pub(super) fn decoded_bytes(&self, columns: &[usize]) -> u64 {
        (0..self.groups()).map(|group| self.group_bytes(group, columns)).fold(0, u64::saturating_add)
    }

    /// Bytes that a reader of a row group holds at most.
    pub(super) fn reader_bytes(&self, group: usize, columns: &[usize]) -> u64 {
        let Store::Parquet(parquet) = &self.store else { return 0 };
        let costs = parquet.costs(columns);
        // Pages that cannot be found cannot be read either, and reading them says why.
        guarded(&self.path, || Ok(costs.of_reader(group))).unwrap_or(0)
    }

    /// Bytes that a reader opened for these rows has to decode.
    pub(super) fn jump_bytes(&self, first: u64, rows: u64, columns: &[usize]) -> u64 {
        let Store::Parquet(parquet) = &self.store else { return 0 };
        let group = self.group_of(first);
        let costs = parquet.costs(columns);
        guarded(&self.path, || Ok(costs.of_jump(group, first - parquet.starts[group], rows))).unwrap_or(0)
    }

    /// A reader that gives the batch which starts with row `first`, and then the next ones of its row group.
    pub(super) fn reader_at(&self, first: u64, columns: &[usize]) -> Result<Reader, DatasetError> {
        let group = self.group_of(first);
        let Store::Parquet(parquet) = &self.store else {
            return Ok(Reader::Arrow(Box::new(self.decoder(columns)?), group));
        };
        let skipped = (first - parquet.starts[group]) as usize;
        let rows = self.batch_rows(group, columns) as usize;
        let reader = guarded(&self.path, || {
            let metadata = if skipped == 0 { &parquet.plain } else { &parquet.paged };
            let mut builder = parquet
                .builder(&self.path, metadata, columns)?
                .with_batch_size(rows)
                .with_row_groups(vec![group]);
            if skipped > 0 {
                let left = (parquet.starts[group + 1] - first) as usize;
                let selection = vec![RowSelector::skip(skipped), RowSelector::select(left)];
                builder = builder.with_row_selection(RowSelection::from(selection));
            }
            builder.build().map_err(|error| damaged(&self.path, &error.to_string()))
        })?;
        Ok(Reader::Parquet(Box::new(reader)))
    }

    /// Whether a reader that came to row `next` can go on with it.
    pub(super) fn goes_on(&self, next: u64) -> bool {
        match &self.store {
            Store::Parquet(parquet) => parquet.starts.binary_search(&next).is_err(),
            Store::Arrow(_) => next < self.rows,
        }
    }

    /// The next batch of a reader.
    pub(super) fn next(&self, reader: &mut Reader) -> Result<Option<RecordBatch>, DatasetError> {
        let Some(batch) = self.stored(reader)? else { return Ok(None) };
        if self.names.is_empty() {
            return Ok(Some(batch));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = with_fields(batch.schema_ref(), &self.names);
        RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &options)
            .map(Some)
            .map_err(|error| damaged(&self.path, &error.to_string()))
    }

    /// The same with the names that the columns have in the file.
    fn stored(&self, reader: &mut Reader) -> Result<Option<RecordBatch>, DatasetError> {
        guarded(&self.path, || match (reader, &self.store) {
            (Reader::Parquet(reader), _) => {
                reader.next().transpose().map_err(|error| damaged(&self.path, &error.to_string()))
            }
            (Reader::Arrow(decoder, next), Store::Arrow(file)) => {
                if *next + 1 >= file.starts().len() {
                    return Ok(None);
                }
                *next += 1;
                file.batch(decoder, *next - 1)
                    .map(Some)
                    .map_err(|reason| DatasetError::Unreadable { path: self.path.clone(), reason })
            }
            (Reader::Arrow(..), Store::Parquet(_)) => Ok(None),
        })
    }

    /// Bytes that a decoded batch takes.
    pub(super) fn weight(&self, batch: &RecordBatch) -> u64 {
        match &self.store {
            // Its values lie in the mapped file.
            Store::Arrow(file) if !file.compressed() => 512 * batch.num_columns() as u64,
            _ => batch.get_array_memory_size() as u64,
        }
    }

    /// Columns that hold floats at any depth.
    pub(crate) fn columns_with_floats(&self) -> impl Iterator<Item = usize> + '_ {
        let fields = self.schema.fields().iter().enumerate();
        fields.filter(|(_, field)| types::has_floats(field.data_type())).map(|(index, _)| index)
    }

    /// How many cells of a column are null, where the file says so.
    pub(crate) fn nulls(&self, name: &str) -> Option<u64> {
        let Store::Parquet(parquet) = &self.store else { return None };
        let column = self.schema.index_of(name).ok()?;
        let metadata = parquet.plain.metadata();
        let descriptor = metadata.file_metadata().schema_descr();
        metadata
            .row_groups()
            .iter()
            .flat_map(|group| (0..group.num_columns()).map(move |leaf| (group, leaf)))
            .filter(|(_, leaf)| descriptor.get_column_root_idx(*leaf) == column)
            .map(|(group, leaf)| match descriptor.column(leaf).max_def_level() {
                0 => Some(0),
                _ => group.column(leaf).statistics()?.null_count_opt(),
            })
            .sum()
    }

    /// Bytes of a column before compression; 0 where they are not stored but mapped.
    pub(crate) fn stored_bytes(&self, name: &str) -> u64 {
        let (Store::Parquet(parquet), Ok(column)) = (&self.store, self.schema.index_of(name)) else {
            return 0;
        };
        let metadata = parquet.plain.metadata();
        let descriptor = metadata.file_metadata().schema_descr();
        let leaves =
            |group: usize| (0..metadata.row_group(group).num_columns()).map(move |leaf| (group, leaf));
        (0..metadata.num_row_groups())
            .flat_map(leaves)
            .filter(|(_, leaf)| descriptor.get_column_root_idx(*leaf) == column)
            .map(|(group, leaf)| metadata.row_group(group).column(leaf).uncompressed_size().max(0) as u64)
            .sum()
    }

    /// The type of a column by name.
    pub(crate) fn column_type(&self, name: &str) -> Option<&DataType> {
        self.schema.field_with_name(name).ok().map(arrow_schema::Field::data_type)
    }
}

/// The columns of a file under the names of fields.
fn with_fields(schema: &SchemaRef, names: &InputColumns) -> SchemaRef {
    let field = |field: &FieldRef| field.as_ref().clone().with_name(names.field_of(field.name()));
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Fields>()))
}

impl Parquet {
    fn open(path: &Path) -> Result<Parquet, DatasetError> {
        let bytes = FileBytes::open(path).map_err(|error| DatasetError::io(path, &error))?;
        // Without the schema that Arrow writers leave behind: it only says how to lay strings out in memory, and
        // reading into a dictionary can fail where reading into strings does not.
        let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let broken = |error: parquet::errors::ParquetError| damaged(path, &error.to_string());
        let plain = ArrowReaderMetadata::load(&bytes, options()).map_err(broken)?;
        let metadata = Arc::clone(plain.metadata());
        let found = Arc::new(Pages::new(path.to_owned(), Arc::clone(&metadata)));
        let index: Arc<dyn PageIndexProvider> = Arc::clone(&found) as _;
        let with_index = ParquetMetaData::clone(&metadata).into_builder().set_page_index(Some(index)).build();
        let paged = ArrowReaderMetadata::try_new(Arc::new(with_index), options()).map_err(broken)?;
        let mut starts = vec![0u64];
        let mut rows = 0u64;
        for group in metadata.row_groups() {
            rows = u64::try_from(group.num_rows())
                .ok()
                .and_then(|count| rows.checked_add(count))
                .ok_or_else(|| damaged(path, "a row group has no length"))?;
            starts.push(rows);
        }
        // Durations, for one, can only be told by the schema that Arrow writers leave behind.
        let file = metadata.file_metadata();
        let written =
            parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata()).map_err(broken)?;
        let rejected = types::rejected(written.fields()).or_else(|| types::rejected(plain.schema().fields()));
        Ok(Parquet { size: bytes.size(), plain, paged, pages: found, starts: starts.into(), rejected })
    }

    fn costs<'p>(&'p self, columns: &'p [usize]) -> Costs<'p> {
        Costs { metadata: self.plain.metadata(), pages: &self.pages, columns }
    }

    fn builder(
        &self,
        path: &Path,
        metadata: &ArrowReaderMetadata,
        columns: &[usize],
    ) -> Result<ParquetRecordBatchReaderBuilder<FileBytes>, DatasetError> {
        let bytes = FileBytes::open(path).map_err(|error| DatasetError::io(path, &error))?;
        if bytes.size() != self.size {
            return Err(DatasetError::Unreadable {
                path: path.to_owned(),
                reason: "the file changed since it was read at the start; leave it alone during a run".into(),
            });
        }
        let mask = ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied());
        Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata.clone()).with_projection(mask))
    }
}

/// Reads batches of a table in order.
pub(super) enum Reader {
    Parquet(Box<ParquetRecordBatchReader>),
    /// And the number of the next batch.
    Arrow(Box<FileDecoder>, usize),
}

/// The rows of a table, batch by batch.
pub(crate) struct Batches {
    table: Arc<Table>,
    reader: Reader,
    /// Rows before this one are left out.
    first: u64,
    next: u64,
}

impl Iterator for Batches {
    /// Number of the first row, from 0, and the batch.
    type Item = Result<(u64, RecordBatch), DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.table.next(&mut self.reader) {
            Ok(Some(batch)) => {
                let left_out = self.first.saturating_sub(self.next).min(batch.num_rows() as u64);
                let first = self.next + left_out;
                self.next += batch.num_rows() as u64;
                let left_out = left_out as usize;
                Some(Ok((first, batch.slice(left_out, batch.num_rows() - left_out))))
            }
            Ok(None) if self.next == self.table.rows => None,
            Ok(None) => {
                let reason = format!("it ends after {} rows of {}", self.next, self.table.rows);
                self.next = self.table.rows;
                Some(Err(damaged(&self.table.path, &reason)))
            }
            Err(error) => Some(Err(error)),
        }
    }
}
