//! The records of a file from first to last, whatever it is stored as: JSON text, one record after the other.

use crate::DatasetError;
use crate::json::Fault;

use super::columns::ColumnRows;
use super::csv::Rows;
use super::{Layout, Lines, SourceFile};

/// One record.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    /// JSON text, or why there is none.
    pub(crate) text: Result<&'a str, Fault>,
    /// Where it is: byte offset, or row from 0 of a columnar file.
    pub(crate) position: u64,
    /// Its length in the file, bytes; 0 in a columnar file.
    pub(crate) length: u32,
    /// 1-based line, or row of a columnar file.
    pub(crate) number: u64,
}

/// Reads the records of a file.
pub(crate) struct Records {
    from: From,
    text: String,
}

enum From {
    Lines(Lines),
    Csv(Rows),
    Columns(Box<ColumnRows>),
}

impl Records {
    pub(crate) fn new(file: &SourceFile) -> Result<Records, DatasetError> {
        let from = match &file.layout {
            Layout::Lines => From::Lines(Lines::new(file)?),
            Layout::Csv(_) => {
                let mut rows = Rows::new(file)?;
                // The names of the columns.
                rows.next(file)?;
                From::Csv(rows)
            }
            Layout::Columns(columns, number) => From::Columns(Box::new(ColumnRows::new(columns, *number)?)),
        };
        Ok(Records { from, text: String::new() })
    }

    /// The next record.
    pub(crate) fn next<'s>(&'s mut self, file: &SourceFile) -> Result<Option<Record<'s>>, DatasetError> {
        match &mut self.from {
            From::Lines(lines) => {
                let Some(line) = lines.next(file)? else { return Ok(None) };
                let text = match utf8(line.bytes) {
                    Ok(text) => Ok(file.with_fields(text, &mut self.text)),
                    Err(fault) => Err(fault),
                };
                Ok(Some(Record {
                    text,
                    position: line.offset,
                    length: line.bytes.len() as u32,
                    number: line.number,
                }))
            }
            From::Csv(rows) => {
                let Some(row) = rows.next(file)? else { return Ok(None) };
                let text = utf8(row.bytes).map(|row| {
                    if let Layout::Csv(header) = &file.layout {
                        header.record(row, &mut self.text);
                    }
                    self.text.as_str()
                });
                Ok(Some(Record {
                    text,
                    position: row.offset,
                    length: row.bytes.len() as u32,
                    number: row.number,
                }))
            }
            From::Columns(rows) => {
                let Some((row, written)) = rows.next(&mut self.text)? else { return Ok(None) };
                Ok(Some(Record {
                    text: written.map(|()| self.text.as_str()),
                    position: row,
                    length: 0,
                    number: row + 1,
                }))
            }
        }
    }
}

pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        Fault::new(
            "",
            format!(
                "not valid UTF-8 at byte {} of the line; save the file as UTF-8",
                error.valid_up_to() + 1
            ),
        )
    })
}
