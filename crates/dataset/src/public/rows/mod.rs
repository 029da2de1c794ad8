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

/// Rows of one shard.
type OfShard = Box<dyn Iterator<Item = Result<Row, Fault>> + Send>;

/// Rows of shards, in their order. A shard is asked for when its first row is.
pub struct Rows<'a> {
    shards: &'a mut dyn Iterator<Item = Result<Shard, Fault>>,
    columns: Option<Vec<String>>,
    current: Option<OfShard>,
    /// Rows given so far.
    pub read: u64,
}

impl std::fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rows after {}", self.read)
    }
}

impl<'a> Rows<'a> {
    /// Of these shards; of columnar ones only `columns`, all of them without any.
    pub fn new(
        shards: &'a mut dyn Iterator<Item = Result<Shard, Fault>>,
        columns: Option<&[&str]>,
    ) -> Rows<'a> {
        let columns = columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        Rows { shards, columns, current: None, read: 0 }
    }

    fn open(&self, shard: &Shard) -> Result<OfShard, Fault> {
        let mut head = [0u8; 6];
        let length = usize::try_from(shard.bytes.size()).unwrap_or(usize::MAX).min(head.len());
        shard.bytes.read_at(0, &mut head[..length]).map_err(|error| unreadable(&shard.name, &error))?;
        if head.starts_with(b"PAR1") {
            return Ok(Box::new(parquet::ParquetRows::open(shard, self.columns.as_deref())?));
        }
        Ok(Box::new(json::JsonRows::open(shard, &head[..length])?))
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, Fault>;

    fn next(&mut self) -> Option<Result<Row, Fault>> {
        loop {
            if let Some(rows) = &mut self.current {
                match rows.next() {
                    None => self.current = None,
                    Some(row) => {
                        self.read += u64::from(row.is_ok());
                        return Some(row);
                    }
                }
            }
            match self.shards.next()?.and_then(|shard| self.open(&shard)) {
                Ok(rows) => self.current = Some(rows),
                Err(fault) => return Some(Err(fault)),
            }
        }
    }
}

/// The fault of bytes that cannot be had.
fn unreadable(shard: &str, error: &std::io::Error) -> Fault {
    Fault::damaged(format!("{shard} cannot be read: {error}"))
}
