//! Tables as text: cells between commas, the first row names the columns. A row becomes a record, a JSON object
//! of strings.

use crate::DatasetError;
use crate::parquet::write_string;

use super::lines::Lines;
use super::{SourceFile, check_columns};

/// The columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    names: Box<[String]>,
    /// Each name as a key: JSON text and a colon.
    keys: Box<[String]>,
}

impl Header {
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The first row of a file. Not one row is an empty header.
    pub(super) fn read(file: &SourceFile) -> Result<Header, DatasetError> {
        let mut rows = Rows::new(file)?;
        let mut names = Vec::new();
        if let Some(row) = rows.next(file)? {
            let text = String::from_utf8_lossy(row.bytes);
            names = cells(&text).map(|cell| cell.trim().to_owned()).collect();
            if let Some(name) = named_twice(&names) {
                let rule = "names two columns, and one of the two would be left out; give each its own name";
                return Err(DatasetError::invalid(&file.path, crate::Place::Line(row.number), name, rule));
            }
            check_columns(&file.path, &file.names, names.iter().map(String::as_str))?;
            names = names.iter().map(|name| file.names.field_of(name).into_owned()).collect();
        }
        let mut keys = Vec::with_capacity(names.len());
        for name in &names {
            let mut key = String::new();
            write_string(name, &mut key);
            key.push(':');
            keys.push(key);
        }
        Ok(Header { names: names.into(), keys: keys.into() })
    }

    /// A row as JSON text: its cells as strings, those without text left out. A row with more or fewer cells than
    /// there are columns is an empty object, since no cell can be told from another.
    pub(super) fn record(&self, row: &str, out: &mut String) {
        out.clear();
        out.push('{');
        let mut count = 0;
        for cell in cells(row) {
            if let Some(key) = self.keys.get(count)
                && !cell.is_empty()
            {
                if out.len() > 1 {
                    out.push(',');
                }
                out.push_str(key);
                write_string(&cell, out);
            }
            // Empty cells at the end of all rows are a habit of spreadsheets.
            count += usize::from(count < self.keys.len() || !cell.is_empty());
        }
        if count != self.keys.len() {
            out.truncate(1);
        }
        out.push('}');
    }
}

/// A name that two columns have; those without one are nobody's.
fn named_twice(names: &[String]) -> Option<&str> {
    let mut met = std::collections::HashSet::new();
    names.iter().map(String::as_str).find(|name| !name.is_empty() && !met.insert(*name))
}

/// One row, which may go over several lines.
pub(super) struct RawRow<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: u64,
    /// 1-based line it starts in.
    pub(super) number: u64,
}

/// Reads the rows of a file from start to end, the names of the columns being the first.
pub(super) struct Rows {
    lines: Lines,
}

impl Rows {
    pub(super) fn new(file: &SourceFile) -> Result<Rows, DatasetError> {
        Ok(Rows { lines: Lines::new(file)? })
    }

    /// The next row that is not blank.
    pub(super) fn next<'s>(&'s mut self, file: &SourceFile) -> Result<Option<RawRow<'s>>, DatasetError> {
        loop {
            let mut quotes = Quotes::default();
            let Some((range, number)) = self.lines.raw(file, &mut |line| quotes.line(line))? else {
                return Ok(None);
            };
            if quotes.open {
                return Err(DatasetError::invalid(
                    &file.path,
                    crate::Place::Line(number),
                    "",
                    "a quoted cell starts in this row and never ends; close the quote",
                ));
            }
            let bytes = self.lines.bytes(range.clone());
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            let offset = self.lines.offset(range.start);
            return Ok(Some(RawRow { bytes: self.lines.bytes(range), offset, number }));
        }
    }
}

/// Whether a row goes on in the next line: a quoted cell may hold line breaks.
#[derive(Default)]
struct Quotes {
    open: bool,
}

impl Quotes {
    /// Takes one more line; whether the row ends with it.
    fn line(&mut self, line: &[u8]) -> bool {
        if !self.open && memchr::memchr(b'"', line).is_none() {
            return true;
        }
        // Outside a quoted cell, a quote opens one only where a cell starts.
        let mut start = true;
        let mut at = 0;
        while at < line.len() {
            match (self.open, line[at]) {
                (true, b'"') if line.get(at + 1) == Some(&b'"') => at += 1,
                (true, b'"') => self.open = false,
                (false, b'"') if start => self.open = true,
                _ => {}
            }
            start = !self.open && (line[at] == b',' || start && line[at] == b' ');
            at += 1;
        }
        !self.open
    }
}

/// The cells of a row, unquoted.
fn cells(row: &str) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
    use std::borrow::Cow;
    let mut rest = Some(row.trim_end_matches(['\n', '\r']));
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(mut quoted) = text.trim_start_matches(' ').strip_prefix('"') else {
            let (cell, after) =
                text.split_once(',').map_or((text, None), |(cell, after)| (cell, Some(after)));
            rest = after;
            return Some(Cow::Borrowed(cell.trim()));
        };
        let mut cell = Cow::Borrowed("");
        loop {
            let (part, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            if cell.is_empty() {
                cell = Cow::Borrowed(part);
            } else {
                cell.to_mut().push_str(part);
            }
            if let Some(more) = after.strip_prefix('"') {
                cell.to_mut().push('"');
                quoted = more;
                continue;
            }
            // What stands between the quote and the comma belongs to the cell.
            let (tail, next) = after.split_once(',').map_or((after, None), |(tail, next)| (tail, Some(next)));
            if !tail.trim().is_empty() {
                cell.to_mut().push_str(tail);
            }
            rest = next;
            return Some(cell);
        }
    })
}

#[cfg(test)]
mod tests {
    use aiperf_config::InputColumns;

    use super::*;

    fn file(text: &str) -> (tempfile::NamedTempFile, SourceFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let source = SourceFile::open_table(file.path(), &InputColumns::default()).unwrap();
        (file, source)
    }

    /// Line and record of each row below the header.
    fn records(text: &str) -> Vec<(u64, String)> {
        let (_keep, source) = file(text);
        let mut records = super::super::Records::new(&source).unwrap();
        let mut all = Vec::new();
        while let Some(record) = records.next(&source).unwrap() {
            let again = source.record(record.position, record.length).unwrap().unwrap();
            assert_eq!(record.text.as_ref().unwrap(), &again, "the same once more, from its place");
            assert_eq!(source.line_of(record.position), record.number);
            all.push((record.number, again));
        }
        all
    }

    #[test]
    fn rows_are_objects_of_strings_by_column() {
        let text = "\u{feff}a,\"b c\", d \r\n1,2,3\r\n\r\n4,,\" 6,\"\"x\"\" \"\r\n";
        assert_eq!(
            records(text),
            [
                (2, r#"{"a":"1","b c":"2","d":"3"}"#.to_owned()),
                (4, r#"{"a":"4","d":" 6,\"x\" "}"#.to_owned()),
            ]
        );
        let (_keep, source) = file(text);
        assert_eq!(source.header().unwrap().names(), ["a", "b c", "d"]);
    }

    #[test]
    fn a_quoted_cell_may_hold_line_breaks_and_lines_are_still_counted() {
        let text = "a,b\n\"one\n two\",x\ny,\"z\n\n\"\n5,6";
        assert_eq!(
            records(text),
            [
                (2, r#"{"a":"one\n two","b":"x"}"#.to_owned()),
                (4, r#"{"a":"y","b":"z\n\n"}"#.to_owned()),
                (7, r#"{"a":"5","b":"6"}"#.to_owned()),
            ]
        );
    }

    #[test]
    fn a_row_with_other_cells_than_columns_is_empty() {
        let text = "a,b\n1\n1,2,3\n1,2,,\n5 \"x\" 6,7\n";
        let found: Vec<String> = records(text).into_iter().map(|(_, record)| record).collect();
        assert_eq!(found, ["{}", "{}", r#"{"a":"1","b":"2"}"#, r#"{"a":"5 \"x\" 6","b":"7"}"#]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_an_error_with_its_line() {
        let (_keep, source) = file("a,b\n1,2\n3,\"4\n5,6\n");
        let mut records = super::super::Records::new(&source).unwrap();
        assert!(records.next(&source).unwrap().is_some());
        let error = records.next(&source).err().unwrap().to_string();
        assert!(error.contains(":3: ") && error.contains("never ends"), "{error}");
    }

    #[test]
    fn a_file_without_rows_has_no_columns() {
        let (_keep, source) = file("\n\n");
        assert!(source.header().unwrap().names().is_empty());
        assert!(records("\n").is_empty());
        assert!(records("a,b\n").is_empty());
    }
}
