//! The rows of the shards of a set, one after the other.

mod cells;
mod json;
mod parquet;

use std::sync::Arc;

use super::{Fault, Shard, Value};

/// One row, and where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The shard.
    pub shard: Arc<str>,
    /// Its number in the shard, from 0.
    pub number: u64,
    /// Its cells: an object with those columns that are read.
    pub value: Value,
    /// Every column of its shard, where the shard tells; otherwise a row has the columns that it has.
    pub(super) schema: Option<Arc<[Arc<str>]>>,
}

impl Row {
    /// A row that is all there is.
    pub fn new(shard: &str, number: u64, value: Value) -> Row {
        Row { shard: shard.into(), number, value, schema: None }
    }

    /// The columns that there are, read or not.
    pub fn columns(&self) -> Vec<&str> {
        match &self.schema {
            Some(columns) => columns.iter().map(AsRef::as_ref).collect(),
            None => self.value.keys().collect(),
        }
    }

    /// Where it is, in words.
    pub fn place(&self) -> String {
        format!("{}: row {}", self.shard, self.number + 1)
    }

    /// A cell; `None` where there is no such column or no value.
    pub fn cell(&self, column: &str) -> Option<&Value> {
        self.value.get(column).filter(|value| !value.is_null())
    }
}

/// Which rows are wanted. Of columnar shards other columns are read only where a row group has one that is.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// The columns that this is told by.
    pub columns: &'a [String],
    /// Tells it of a row that has them.
    pub wants: &'a dyn Fn(&Row) -> Result<bool, Fault>,
}

impl std::fmt::Debug for Choice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Choice by {:?}", self.columns)
    }
}

/// Rows of one shard.
enum OfShard {
    Columns(Box<parquet::ParquetRows>),
    Objects(Box<json::JsonRows>),
}

/// Rows of shards, in their order. A shard is asked for when its first row is.
pub struct Rows<'a> {
    shards: &'a mut dyn Iterator<Item = Result<Shard, Fault>>,
    columns: Option<Vec<String>>,
    current: Option<OfShard>,
    /// Rows of the shards that are behind.
    behind: u64,
}

impl std::fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rows after {}", self.read())
    }
}

impl<'a> Rows<'a> {
    /// Of these shards; of columnar ones only `columns`, all of them without any.
    pub fn new(
        shards: &'a mut dyn Iterator<Item = Result<Shard, Fault>>,
        columns: Option<&[&str]>,
    ) -> Rows<'a> {
        let columns = columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        Rows { shards, columns, current: None, behind: 0 }
    }

    /// Rows that were read so far: those given, and those before them that were not wanted.
    pub fn read(&self) -> u64 {
        let of_current = match &self.current {
            None => 0,
            Some(OfShard::Columns(rows)) => rows.passed(),
            Some(OfShard::Objects(rows)) => rows.passed(),
        };
        self.behind + of_current
    }

    /// The next row; with a `choice` the next that is wanted.
    pub fn next_of(&mut self, choice: Option<&Choice<'_>>) -> Option<Result<Row, Fault>> {
        loop {
            let row = match &mut self.current {
                None => None,
                Some(OfShard::Columns(rows)) => rows.next(choice),
                Some(OfShard::Objects(rows)) => rows.next(choice),
            };
            if row.is_some() {
                return row;
            }
            self.behind = self.read();
            self.current = None;
            match self.shards.next()?.and_then(|shard| self.open(&shard)) {
                Ok(rows) => self.current = Some(rows),
                Err(fault) => return Some(Err(fault)),
            }
        }
    }

    fn open(&self, shard: &Shard) -> Result<OfShard, Fault> {
        let columns = || {
            let rows = parquet::ParquetRows::open(shard, self.columns.as_deref())?;
            Ok(OfShard::Columns(Box::new(rows)))
        };
        // Of a shard that lies elsewhere no byte is asked for that is not needed.
        if shard.name.ends_with(".parquet") {
            return columns();
        }
        let mut head = [0u8; 6];
        let length = usize::try_from(shard.bytes.size()).unwrap_or(usize::MAX).min(head.len());
        shard.bytes.read_at(0, &mut head[..length]).map_err(|error| unreadable(&shard.name, &error))?;
        if head.starts_with(b"PAR1") {
            return columns();
        }
        Ok(OfShard::Objects(Box::new(json::JsonRows::open(shard, &head[..length])?)))
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, Fault>;

    fn next(&mut self) -> Option<Result<Row, Fault>> {
        self.next_of(None)
    }
}

/// The fault of bytes that cannot be had; who was to bring them may say why.
fn unreadable(place: &str, error: &std::io::Error) -> Fault {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
        Some(fault) => Fault::new(format!("{place}: {}", fault.what), fault.fix.clone()),
        None => Fault::damaged(format!("{place} cannot be read: {error}")),
    }
}
