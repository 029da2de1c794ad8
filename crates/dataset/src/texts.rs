//! The texts of a file one after the other, whatever it is stored as: for those who look for what should not be there.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use crate::DatasetError;
use crate::parquet::{Table, has_texts, value};
use crate::source::{Coding, coding, read_error, reader};

/// A longer line is handed out in pieces of so many bytes.
const PIECE: usize = 16 << 20;
/// Bytes that a piece has in common with the one before, so that what lies across both is in one.
const OVERLAP: usize = 4 << 10;

/// Takes a text: the number of its line or row, from 1, and the dotted path of its column, where it has one. Whether more
/// is wanted.
pub(crate) type Take<'a> = &'a mut dyn FnMut(u64, Option<&str>, &str) -> bool;

/// Hands out the lines of a file, decompressed, or the texts in the rows of a columnar one at any depth: of the first
/// `most` lines or rows. Whether the file has more, unless `take` wanted no more. Memory is a piece of a line, or a batch
/// of rows.
pub fn texts(path: &Path, most: u64, take: Take<'_>) -> Result<bool, DatasetError> {
    match coding(path)? {
        Coding::Parquet | Coding::Arrow => of_rows(path, most, take),
        Coding::Plain | Coding::Gzip | Coding::Zstd => of_lines(path, most, take),
    }
}

fn of_lines(path: &Path, most: u64, take: Take<'_>) -> Result<bool, DatasetError> {
    let mut from = BufReader::with_capacity(1 << 16, reader(path)?);
    let mut line = Vec::new();
    let mut number = 1;
    while number <= most {
        let room = PIECE - line.len();
        let count = from
            .by_ref()
            .take(room as u64)
            .read_until(b'\n', &mut line)
            .map_err(|error| read_error(path, &error))?;
        if count == 0 || !take(number, None, &String::from_utf8_lossy(&line)) {
            return Ok(false);
        }
        if line.ends_with(b"\n") {
            number += 1;
            line.clear();
        } else {
            line.drain(..line.len().saturating_sub(OVERLAP));
        }
    }
    from.fill_buf().map(|rest| !rest.is_empty()).map_err(|error| read_error(path, &error))
}

fn of_rows(path: &Path, most: u64, take: Take<'_>) -> Result<bool, DatasetError> {
    let table = Arc::new(Table::open(path)?);
    let fields = table.schema().fields().iter().enumerate();
    let columns: Vec<usize> =
        fields.filter(|(_, field)| has_texts(field.data_type())).map(|(index, _)| index).collect();
    let has_more = table.rows() > most;
    if columns.is_empty() {
        return Ok(has_more);
    }
    for batch in table.batches(&columns, 0)? {
        let (first, batch) = batch?;
        for row in 0..batch.num_rows() {
            let number = first + row as u64 + 1;
            if number > most {
                return Ok(has_more);
            }
            if !row_texts(&batch, row, &mut |column, text| take(number, Some(column), text)) {
                return Ok(false);
            }
        }
    }
    Ok(has_more)
}

fn row_texts(batch: &RecordBatch, row: usize, take: &mut dyn FnMut(&str, &str) -> bool) -> bool {
    let schema = batch.schema();
    let mut column = String::new();
    schema.fields().iter().zip(batch.columns()).all(|(field, array)| {
        column.clear();
        column.push_str(field.name());
        cell_texts(array.as_ref(), row, &mut column, take)
    })
}

fn cell_texts(
    array: &dyn Array,
    index: usize,
    column: &mut String,
    take: &mut dyn FnMut(&str, &str) -> bool,
) -> bool {
    let Some((array, index)) = value::resolve(array, index) else { return true };
    if let DataType::Struct(fields) = array.data_type() {
        let length = column.len();
        return fields.iter().zip(array.as_struct().columns()).all(|(field, array)| {
            column.truncate(length);
            column.push('.');
            column.push_str(field.name());
            let goes_on = cell_texts(array.as_ref(), index, column, take);
            column.truncate(length);
            goes_on
        });
    }
    if let Some(elements) = value::elements(array, index) {
        return (0..elements.len()).all(|index| cell_texts(elements.as_ref(), index, column, take));
    }
    value::string(array, index).is_none_or(|text| take(column, text))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use parquet::file::properties::WriterProperties;
    use serde_json::json;

    use super::*;
    use crate::columnar::{field, list, object, schema, write};

    fn found(path: &Path, most: u64) -> Vec<(u64, Option<String>, String)> {
        let mut found = Vec::new();
        texts(path, most, &mut |number, column, text| {
            found.push((number, column.map(str::to_owned), text.to_owned()));
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn lines_are_handed_out_whatever_they_are_compressed_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let text = b"one\n\xff two\n\nlast";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        for stored in [text.to_vec(), gzip.finish().unwrap(), zstd::encode_all(&text[..], 1).unwrap()] {
            std::fs::write(&path, stored).unwrap();
            let lines = found(&path, u64::MAX);
            let lines: Vec<(u64, &str)> =
                lines.iter().map(|(number, _, text)| (*number, text.trim_end())).collect();
            assert_eq!(lines, [(1, "one"), (2, "\u{fffd} two"), (3, ""), (4, "last")]);
            assert_eq!(found(&path, 2).len(), 2);
        }
    }

    #[test]
    fn what_lies_across_two_pieces_of_a_long_line_is_in_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut text = vec![b'x'; 2 * PIECE];
        let needle = b"needle";
        text[PIECE - 3..PIECE + 3].copy_from_slice(needle);
        std::fs::write(&path, &text).unwrap();
        let (mut pieces, mut seen) = (0, 0);
        texts(&path, 1, &mut |number, _, text| {
            assert!(number == 1 && text.len() <= PIECE);
            pieces += 1;
            seen += usize::from(text.contains("needle"));
            true
        })
        .unwrap();
        assert_eq!((pieces, seen), (3, 1));
    }

    #[test]
    fn texts_of_columns_are_found_at_any_depth_with_their_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let meta = object(vec![
            field("n", DataType::Int64),
            field("token", DataType::Utf8),
            field("more", list(object(vec![field("text", DataType::LargeUtf8)]))),
        ]);
        let schema = schema(vec![
            field("id", DataType::Int64),
            field("text", DataType::Utf8),
            field("tags", list(DataType::Utf8)),
            field("meta", meta),
        ]);
        let row = |number: u64| match number {
            1 => json!({"id": 1, "text": "a", "tags": ["b", null, "c"]}),
            2 => json!({"text": null, "meta": {"n": 1, "token": "d", "more": [{"text": "e"}, null]}}),
            700 => json!({"text": "last"}),
            _ => json!({"id": 0}),
        };
        let rows: Vec<_> = (1..=700).map(row).collect();
        write(
            &path,
            &schema,
            &rows,
            WriterProperties::builder().set_max_row_group_row_count(Some(300)).build(),
        );
        let all = found(&path, u64::MAX);
        let all: Vec<(u64, &str, &str)> = all
            .iter()
            .map(|(row, column, text)| (*row, column.as_deref().unwrap_or_default(), text.as_str()))
            .collect();
        let expected = [
            (1, "text", "a"),
            (1, "tags", "b"),
            (1, "tags", "c"),
            (2, "meta.token", "d"),
            (2, "meta.more.text", "e"),
            (700, "text", "last"),
        ];
        assert_eq!(all, expected);
        assert_eq!(found(&path, 699).len(), 5);
        assert_eq!(found(&path, 1).len(), 3);
        // Whoever has seen enough is handed nothing more.
        let mut count = 0;
        texts(&path, u64::MAX, &mut |_, _, _| {
            count += 1;
            count < 2
        })
        .unwrap();
        assert_eq!(count, 2);
    }
}
