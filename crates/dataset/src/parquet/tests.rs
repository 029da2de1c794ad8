//! Rows in order and at any place, of files written in many ways.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

use crate::columnar::*;

fn sample_schema(string: &DataType) -> Arc<Schema> {
    let part = object(vec![field("kind", string.clone()), field("value", DataType::Float64)]);
    schema(vec![
        field("id", DataType::Int64),
        field("text", string.clone()),
        field("hash_ids", list(DataType::Int64)),
        field("turns", list(object(vec![field("text", string.clone()), field("extra", part)]))),
        field("flag", DataType::Boolean),
    ])
}

fn sample_row(number: usize) -> Value {
    let long = "word ".repeat(number * 7 % 90);
    match number % 5 {
        0 => {
            json!({"id": number, "text": format!("{number} {long}"), "hash_ids": [number, null, 7], "turns": [], "flag": true})
        }
        1 => {
            json!({"id": null, "text": "same", "hash_ids": [], "turns": [{"text": "a", "extra": {"kind": null, "value": 0.1}}, null]})
        }
        2 => json!({"text": null, "hash_ids": null, "turns": null, "flag": null}),
        3 => {
            json!({"id": -5, "text": "ü\"\n", "turns": [{"text": null, "extra": null}, {"text": long}, {"extra": {"kind": "k", "value": -2.0}}]})
        }
        _ => json!({"id": number, "hash_ids": (0..number % 40).collect::<Vec<_>>(), "flag": false}),
    }
}

/// In the order of the schema, as rows are written.
fn expected(schema: &Schema, row: &Value) -> String {
    let ordered: serde_json::Map<String, Value> = schema
        .fields()
        .iter()
        .filter_map(|field| Some((field.name().clone(), row.get(field.name())?.clone())))
        .collect();
    without_nulls(&Value::Object(ordered)).to_string()
}

fn all_columns(table: &Table) -> Vec<usize> {
    (0..table.schema().fields().len()).collect()
}

fn in_order(table: &Arc<Table>) -> Vec<String> {
    let writer = Writer::new(table.schema().fields());
    let mut rows = Vec::new();
    for batch in table.batches(&all_columns(table), 0).unwrap() {
        let (first, batch) = batch.unwrap();
        assert_eq!(first, rows.len() as u64);
        for index in 0..batch.num_rows() {
            let mut out = String::new();
            writer.row(&batch, index, &mut out).unwrap();
            rows.push(out);
        }
    }
    rows
}

fn at(cells: &Cells, writer: &Writer, row: u64) -> String {
    let cell = cells.row(0, row).unwrap();
    let (batch, index) = cell.in_batch();
    let mut out = String::new();
    writer.row(batch, index, &mut out).unwrap();
    out
}

/// Every row in order, and every row in an order that jumps.
fn check(path: &Path, expected: &[String]) {
    let table = Arc::new(Table::open(path).unwrap());
    table.check_json().unwrap();
    assert_eq!(table.rows(), expected.len() as u64);
    assert_eq!(in_order(&table), expected, "{}", path.display());
    let writer = Writer::new(table.schema().fields());
    // A stride that meets every row once.
    let (count, stride) = (expected.len() as u64, 389);
    assert_ne!(count % stride, 0);
    let cells = Cells::of(&table, &all_columns(&table));
    for step in 0..count {
        let row = step * stride % count;
        assert_eq!(at(&cells, &writer, row), expected[row as usize], "{} row {row}", path.display());
    }
    // Nothing is known yet when the first row that is asked for is one in the middle.
    let cells = Cells::of(&table, &all_columns(&table));
    assert_eq!(at(&cells, &writer, count / 2), expected[count as usize / 2]);
}

/// Pages of few rows and row groups of some, so that there are many of both.
fn small() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_data_page_row_count_limit(60)
        .set_write_batch_size(20)
        .set_max_row_group_row_count(Some(450))
}

#[test]
fn every_row_is_found_whatever_way_the_file_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let strings = [
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    ];
    let rows: Vec<Value> = (0..1000).map(sample_row).collect();
    for (number, string) in strings.iter().enumerate() {
        let schema = sample_schema(string);
        let expected: Vec<String> = rows.iter().map(|row| expected(&schema, row)).collect();
        for (name, properties) in [
            ("plain", small()),
            (
                "no_index",
                small().set_offset_index_disabled(true).set_statistics_enabled(EnabledStatistics::None),
            ),
            (
                "v2",
                small().set_writer_version(WriterVersion::PARQUET_2_0).set_compression(Compression::SNAPPY),
            ),
            (
                "v2_no_index",
                small().set_writer_version(WriterVersion::PARQUET_2_0).set_offset_index_disabled(true),
            ),
            ("no_dictionary", small().set_dictionary_enabled(false).set_offset_index_disabled(true)),
            ("one_group", small().set_max_row_group_row_count(None).set_offset_index_disabled(true)),
        ] {
            let path = folder.path().join(format!("{name}_{number}.parquet"));
            write(&path, &schema, &rows, properties.build());
            check(&path, &expected);
        }
    }
}

#[test]
fn pages_found_by_walking_are_those_of_the_offset_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let schema = sample_schema(&DataType::Utf8);
    let rows: Vec<Value> = (0..1000).map(sample_row).collect();
    for properties in [
        small(),
        small().set_dictionary_enabled(false).set_compression(Compression::SNAPPY),
        small().set_writer_version(WriterVersion::PARQUET_2_0),
    ] {
        write(&path, &schema, &rows, properties.build());
        let bytes = bytes::FileBytes::open(&path).unwrap();
        let metadata =
            parquet::file::metadata::ParquetMetaDataReader::new().parse_and_finish(&bytes).unwrap();
        let pages = pages::Pages::new(path.clone(), Arc::new(metadata.clone()));
        let stored = pages.stored().unwrap();
        let mut most = 0;
        for group in 0..metadata.num_row_groups() {
            for column in 0..metadata.row_group(group).num_columns() {
                let walked = pages.walk(group, column).unwrap().unwrap();
                let walked = walked.page_locations();
                assert_eq!(Some(walked), stored.page_locations(group, column), "{group} {column}");
                most = most.max(walked.len());
            }
        }
        assert!(most > 5, "{most} pages");
    }
}

#[test]
fn every_codec_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let schema = sample_schema(&DataType::Utf8);
    let rows: Vec<Value> = (0..500).map(sample_row).collect();
    let expected: Vec<String> = rows.iter().map(|row| expected(&schema, row)).collect();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(parquet::basic::GzipLevel::default()),
        Compression::BROTLI(parquet::basic::BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(parquet::basic::ZstdLevel::default()),
    ] {
        let path = folder.path().join("a.parquet");
        write(&path, &schema, &rows, small().set_compression(codec).build());
        check(&path, &expected);
    }
}

#[test]
fn an_arrow_file_is_read_like_a_parquet_file() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Value> = (0..1000).map(sample_row).collect();
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    for (string, per_batch) in [(DataType::Utf8, 300), (DataType::Utf8View, 300), (dictionary, 1000)] {
        let schema = sample_schema(&string);
        let expected: Vec<String> = rows.iter().map(|row| expected(&schema, row)).collect();
        let path = folder.path().join("a.arrow");
        write_arrow(&path, &schema, &rows, per_batch);
        check(&path, &expected);
    }
}

#[test]
fn cells_of_one_column_come_in_any_order_from_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let rows: Vec<Value> = (0..3000)
        .map(|number| json!({"other": "x".repeat(50), "prompt": format!("prompt {number}"), "hashes": [number, number + 1]}))
        .collect();
    let schema = schema(vec![
        field("other", DataType::Utf8),
        field("prompt", DataType::LargeUtf8),
        field("hashes", list(DataType::UInt32)),
    ]);
    write(&path, &schema, &rows, small().set_offset_index_disabled(true).build());
    let table = Arc::new(Table::open(&path).unwrap());
    let cells = Cells::of(&table, &table.columns(&["hashes", "prompt"]).unwrap());
    assert_eq!(table.columns(&["prompt", "none"]), Err("none"));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let cells = &cells;
            scope.spawn(move || {
                for step in 0..600 {
                    let row = (step * 997 + thread * 5) % 3000;
                    let cell = cells.row(0, row).unwrap();
                    let (batch, index) = cell.in_batch();
                    let column = |name| batch.column_by_name(name).unwrap();
                    assert_eq!(value::string(column("prompt"), index), Some(&*format!("prompt {row}")));
                    let hashes = value::elements(column("hashes"), index).unwrap();
                    let hashes: Vec<_> = (0..2).map(|index| value::integer(&hashes, index)).collect();
                    assert_eq!(hashes, [Some(i128::from(row)), Some(i128::from(row) + 1)]);
                    assert!(batch.column_by_name("other").is_none(), "not asked for");
                }
            });
        }
    });
    assert!(cells.row(0, 3000).is_err());
}

#[test]
fn what_is_kept_is_bounded_whatever_the_size_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let schema = schema(vec![field("text", DataType::Utf8)]);
    let rows: Vec<Value> =
        (0..4000).map(|number| json!({"text": format!("{number} {}", "x".repeat(1000))})).collect();
    write(&path, &schema, &rows, small().build());
    let table = Arc::new(Table::open(&path).unwrap());
    let cells = Cells::keeping(&table, 1 << 20, u64::MAX);
    // A batch of 256 rows of a thousand bytes and what their arrays take besides.
    let batch = 400_000;
    for row in (0..4000).chain((0..4000).map(|step| step * 1777 % 4000)) {
        let cell = cells.row(0, row).unwrap();
        let (values, index) = cell.in_batch();
        assert!(value::string(values.column(0), index).unwrap().starts_with(&format!("{row} ")));
        let (bytes, batches, readers) = cells.held();
        assert!(bytes <= (1 << 20) + batch && batches <= 20 && readers <= 4, "{bytes} {batches} {readers}");
    }
}

#[test]
fn a_dictionary_with_keys_of_eight_bits_has_no_limit_across_row_groups() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let schema =
        schema(vec![field("a", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)))]);
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, Arc::clone(&schema), None).unwrap();
    let rows: Vec<Value> = (0..400).map(|number| json!({"a": format!("value {number}")})).collect();
    for rows in rows.chunks(100) {
        writer.write(&batch(&schema, rows)).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    check(&path, &rows.iter().map(Value::to_string).collect::<Vec<_>>());
}

#[test]
fn numbers_keep_their_width_and_their_value() {
    let schema = schema(vec![
        field("i8", DataType::Int8),
        field("i64", DataType::Int64),
        field("u8", DataType::UInt8),
        field("u32", DataType::UInt32),
        field("u64", DataType::UInt64),
        field("f16", DataType::Float16),
        field("f32", DataType::Float32),
        field("f64", DataType::Float64),
        field("none", DataType::Null),
        field("nones", list(DataType::Null)),
        field("pair", DataType::FixedSizeList(Arc::new(field("element", DataType::Int32)), 2)),
        field("large", DataType::LargeList(Arc::new(field("element", DataType::Int16)))),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        json!({
            "i8": -128, "i64": i64::MIN, "u8": 255, "u32": u32::MAX, "u64": u64::MAX, "f16": 0.5, "f32": 0.1,
            "f64": 0.1, "pair": [1, null], "large": [-3],
        }),
        json!({"f32": 16_777_216.0, "f64": 1e300, "i64": i64::MAX, "large": []}),
    ];
    let expected = [
        r#"{"i8":-128,"i64":-9223372036854775808,"u8":255,"u32":4294967295,"u64":18446744073709551615,"f16":0.5,"f32":0.1,"f64":0.1,"pair":[1,null],"large":[-3]}"#.to_owned(),
        r#"{"i64":9223372036854775807,"f32":16777216.0,"f64":1e+300,"large":[]}"#.to_owned(),
    ];
    let path = folder.path().join("a.parquet");
    write(&path, &schema, &rows, WriterProperties::default());
    check(&path, &expected);
    let path = folder.path().join("a.arrow");
    write_arrow(&path, &schema, &rows, 1);
    check(&path, &expected);
}

#[test]
fn a_number_that_is_none_is_named_by_its_column() {
    let schema = schema(vec![
        field("fine", DataType::Float64),
        field(
            "turns",
            list(object(vec![field("a", DataType::Int64), field("score", list(DataType::Float32))])),
        ),
    ]);
    let scores = arrow_array::Float32Array::from(vec![1.0, f32::NEG_INFINITY]);
    let sample = batch(&schema, &[json!({"fine": 1.0, "turns": [{"a": 1, "score": [1.0, 2.0]}]})]);
    let turns = sample.column(1);
    // The same list with another number in it.
    let data = turns.to_data();
    let score = data.child_data()[0].child_data()[1].clone();
    let score = score.into_builder().child_data(vec![arrow_array::Array::to_data(&scores)]).build().unwrap();
    let object = data.child_data()[0].clone();
    let a = object.child_data()[0].clone();
    let object = object.into_builder().child_data(vec![a, score]).build().unwrap();
    let turns = arrow_array::make_array(data.into_builder().child_data(vec![object]).build().unwrap());
    let bad = arrow_array::RecordBatch::try_new(Arc::clone(&schema), vec![sample.column(0).clone(), turns])
        .unwrap();
    let found = Writer::new(schema.fields()).row(&bad, 0, &mut String::new()).unwrap_err();
    assert_eq!(found, NotFinite { column: "turns.score".into(), value: "-infinity" });
}

#[test]
fn a_damaged_file_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let schema = sample_schema(&DataType::Utf8);
    let rows: Vec<Value> = (0..200).map(sample_row).collect();
    write(&path, &schema, &rows, small().set_encoding(Encoding::PLAIN).build());
    let bytes = std::fs::read(&path).unwrap();
    for cut in [4, 12, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let error = Table::open(&path).err().unwrap().to_string();
        assert!(error.contains("a.parquet") && error.contains("damaged"), "{error}");
    }
}

fn leaf() -> impl Strategy<Value = (DataType, BoxedStrategy<Value>)> {
    prop_oneof![
        Just((DataType::Int64, any::<i64>().prop_map(Value::from).boxed())),
        Just((DataType::UInt8, any::<u8>().prop_map(Value::from).boxed())),
        Just((DataType::Int16, any::<i16>().prop_map(Value::from).boxed())),
        Just((DataType::UInt64, any::<u64>().prop_map(Value::from).boxed())),
        Just((DataType::Float64, proptest::num::f64::NORMAL.prop_map(Value::from).boxed())),
        Just((DataType::Boolean, any::<bool>().prop_map(Value::from).boxed())),
        Just((DataType::Utf8, any::<String>().prop_map(Value::from).boxed())),
        Just((DataType::LargeUtf8, "[a-c\"\\\\\n]{0,5}".prop_map(Value::from).boxed())),
        Just((DataType::Utf8View, ".{0,30}".prop_map(Value::from).boxed())),
        Just((DataType::Null, Just(Value::Null).boxed())),
    ]
}

/// A type, and values of it.
fn column(depth: u32) -> BoxedStrategy<(DataType, BoxedStrategy<Value>)> {
    if depth == 0 {
        return leaf().boxed();
    }
    let or_null = |values: BoxedStrategy<Value>| prop_oneof![4 => values, 1 => Just(Value::Null)].boxed();
    let lists = column(depth - 1).prop_map(move |(kind, values)| {
        let values = prop::collection::vec(or_null(values), 0..4).prop_map(Value::from).boxed();
        (list(kind), values)
    });
    let objects = prop::collection::vec(column(depth - 1), 1..4).prop_map(move |columns| {
        let fields: Vec<_> = columns
            .iter()
            .enumerate()
            .map(|(number, (kind, _))| field(&format!("f{number}"), kind.clone()))
            .collect();
        let values: Vec<_> = columns.into_iter().map(|(_, values)| or_null(values)).collect();
        let values = values
            .prop_map(|values| {
                Value::Object(
                    values.into_iter().enumerate().map(|(number, v)| (format!("f{number}"), v)).collect(),
                )
            })
            .boxed();
        (object(fields), values)
    });
    prop_oneof![leaf(), lists, objects].boxed()
}

/// A schema and rows of it.
fn table() -> impl Strategy<Value = (Arc<Schema>, Vec<Value>)> {
    prop::collection::vec(column(3), 1..4).prop_flat_map(|columns| {
        let fields = columns
            .iter()
            .enumerate()
            .map(|(number, (kind, _))| field(&format!("c{number}"), kind.clone()))
            .collect();
        let schema = schema(fields);
        let values: Vec<_> = columns.into_iter().map(|(_, values)| values).collect();
        let row = values.prop_map(|values| {
            Value::Object(
                values.into_iter().enumerate().map(|(number, v)| (format!("c{number}"), v)).collect(),
            )
        });
        (Just(schema), prop::collection::vec(row, 1..20))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn rows_read_as_the_json_they_were_made_of((schema, rows) in table(), index: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let properties = small().set_data_page_row_count_limit(3).set_write_batch_size(1)
            .set_offset_index_disabled(index).build();
        write(&path, &schema, &rows, properties);
        let expected: Vec<String> = rows.iter().map(|row| without_nulls(row).to_string()).collect();
        check(&path, &expected);
    }
}
