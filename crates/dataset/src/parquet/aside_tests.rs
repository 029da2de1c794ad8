//! Rows in an order that has nothing to do with that of their file, whose row groups are one page each.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::DataType;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use super::*;
use crate::columnar::*;

const ROWS: u64 = 3000;
const GROUPS: u64 = 30;

fn row(number: u64) -> Value {
    let text = format!("{number} {}", "word ".repeat(number as usize * 13 % 400));
    match number % 7 {
        0 => json!({"text": null, "hashes": [number, null], "part": null}),
        _ => {
            json!({"text": text, "hashes": (0..number % 9).collect::<Vec<_>>(), "part": {"a": number as f64 / 4.0}})
        }
    }
}

/// Written as pyarrow does: a row group is a dictionary and one page, or one page alone, and there is no index.
fn table(path: &Path, dictionary: bool) -> Arc<Table> {
    let schema = schema(vec![
        field("text", DataType::Utf8),
        field("hashes", list(DataType::Int64)),
        field("part", object(vec![field("a", DataType::Float64)])),
    ]);
    let rows: Vec<Value> = (0..ROWS).map(row).collect();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(dictionary)
        .set_dictionary_page_size_limit(usize::MAX)
        .set_data_page_size_limit(usize::MAX)
        .set_max_row_group_row_count(Some((ROWS / GROUPS) as usize))
        .set_offset_index_disabled(true)
        .set_compression(Compression::SNAPPY);
    write(path, &schema, &rows, properties.build());
    Arc::new(Table::open(path).unwrap())
}

/// Every row once, far from the one before.
fn shuffled() -> impl Iterator<Item = u64> {
    (0..ROWS).map(|step| step * 1777 % ROWS)
}

fn read(cells: &Cells, writer: &Writer, number: u64) -> String {
    let cell = cells.row(0, number).unwrap();
    let (batch, index) = cell.in_batch();
    let mut out = String::new();
    writer.row(batch, index, &mut out).unwrap();
    out
}

fn wait_for_copy(cells: &Cells) {
    while !cells.copies().1 {
        std::thread::yield_now();
    }
}

#[test]
fn rows_in_another_order_are_decoded_once_and_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for dictionary in [false, true] {
        let table = table(&folder.path().join("a.parquet"), dictionary);
        let writer = Writer::new(table.schema().fields());
        let cells = Cells::keeping(&table, 1000, 0);
        let mut order = shuffled();
        let mut seen = 0;
        while !cells.copies().0 {
            let number = order.next().unwrap();
            assert_eq!(read(&cells, &writer, number), without_nulls(&row(number)).to_string());
            seen += 1;
        }
        // Each of them had a row group decoded, most of it in vain.
        assert!(seen <= GROUPS / 2, "{seen} rows were read directly");
        // A row group is copied when the first of its rows is asked for, unless the one before it was read just now.
        for number in order {
            assert_eq!(read(&cells, &writer, number), without_nulls(&row(number)).to_string());
        }
        let opened = cells.opened();
        assert!(opened <= 2 * GROUPS, "{opened} readers were opened");
        for number in shuffled() {
            assert_eq!(read(&cells, &writer, number), without_nulls(&row(number)).to_string());
        }
        assert_eq!(cells.opened(), opened, "rows that are copied or kept are not decoded again");
        assert_eq!(cells.late_note(), None);
    }
}

#[test]
fn rows_are_the_same_while_they_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(&folder.path().join("a.parquet"), true);
    let writer = Writer::new(table.schema().fields());
    let cells = Cells::keeping(&table, 1000, 0);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (cells, writer) = (&cells, &writer);
            scope.spawn(move || {
                for number in shuffled().skip(thread * 100) {
                    assert_eq!(read(cells, writer, number), without_nulls(&row(number)).to_string());
                }
            });
        }
    });
    assert!(cells.copies().0);
}

#[test]
fn rows_in_the_order_of_the_file_are_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(&folder.path().join("a.parquet"), true);
    let writer = Writer::new(table.schema().fields());
    let cells = Cells::keeping(&table, 100_000, 0);
    for number in 0..ROWS {
        read(&cells, &writer, number);
    }
    assert_eq!((cells.opened(), cells.copies().0), (GROUPS, false));
    // Nor is what can be kept as a whole.
    let cells = Cells::keeping(&table, u64::MAX, 0);
    for number in shuffled() {
        read(&cells, &writer, number);
    }
    assert!(!cells.copies().0);
}

#[test]
fn rows_that_cannot_be_copied_are_read_from_the_file_and_it_is_said_why() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(&folder.path().join("a.parquet"), true);
    let writer = Writer::new(table.schema().fields());
    let full = std::fs::OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
    let cells = Cells::keeping(&table, 1000, 0).copying_to(full);
    for number in shuffled() {
        assert_eq!(read(&cells, &writer, number), without_nulls(&row(number)).to_string());
    }
    wait_for_copy(&cells);
    let note = cells.late_note().unwrap().to_string();
    assert!(note.contains("No space left on device") && note.contains("TMPDIR"), "{note}");
    assert_eq!(read(&cells, &writer, 5), without_nulls(&row(5)).to_string());
}

#[test]
fn row_groups_that_are_waited_for_are_copied_before_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(&folder.path().join("a.parquet"), true);
    let writer = Writer::new(table.schema().fields());
    let cells = Cells::keeping(&table, 1000, 0);
    // Nothing is copied unasked before half of everything was decoded in vain.
    let in_group = ROWS / GROUPS;
    for group in (0..GROUPS).rev().step_by(3).take(5) {
        read(&cells, &writer, group * in_group + 7);
    }
    assert!(cells.copies().0);
    let opened = cells.opened();
    for group in (0..GROUPS).rev().step_by(3).take(5) {
        for number in group * in_group..(group + 1) * in_group {
            assert_eq!(read(&cells, &writer, number), without_nulls(&row(number)).to_string());
        }
    }
    // Those read before the copy was begun are copied at their second row; the others are there.
    assert!(cells.opened() <= opened + 2, "{} after {opened}", cells.opened());
    assert!(!cells.copies().1);
}

#[test]
fn nobody_copies_for_cells_that_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(&folder.path().join("a.parquet"), true);
    let cells = Cells::keeping(&table, 1000, 0);
    let mut order = shuffled();
    while !cells.copies().0 {
        cells.row(0, order.next().unwrap()).unwrap();
    }
    drop(cells);
    // The thread holds the table as long as it copies.
    while Arc::strong_count(&table) > 1 {
        std::thread::yield_now();
    }
}
