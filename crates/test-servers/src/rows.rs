//! Parquet files of rows that are written as JSON, as data sets on the Hub have them.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, ListArray, NullArray, RecordBatch,
    StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::{Map, Value, json};

/// A key whose value, in hexadecimal, is bytes: see [`bytes`].
const BYTES: &str = "$bytes";

/// A cell of bytes.
pub fn bytes(content: &[u8]) -> Value {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in content {
        let _ = write!(text, "{byte:02x}");
    }
    json!({ BYTES: text })
}

/// A Parquet file of these objects, `group` rows in each row group. Columns are those of all rows together; numbers with a
/// fraction make a column of floats.
pub fn parquet(rows: &[Value], group: usize) -> Vec<u8> {
    let values: Vec<&Value> = rows.iter().collect();
    let DataType::Struct(fields) = kind(&values) else { panic!("rows are objects") };
    let schema = Arc::new(Schema::new(fields.clone()));
    let columns = fields.iter().map(|field| column(field, &values)).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns of one length");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, schema, Some(properties)).expect("a schema");
    writer.write(&batch).expect("a batch");
    writer.close().expect("a file");
    bytes
}

/// Where each row group of a Parquet file has a column: its first byte and the one after its last.
pub fn column_bytes(file: &[u8], column: &str) -> Vec<std::ops::Range<u64>> {
    let bytes = bytes::Bytes::copy_from_slice(file);
    let reader = SerializedFileReader::new(bytes).expect("a Parquet file");
    let prefix = format!("{column}.");
    let is_of = |name: String| name == column || name.starts_with(&prefix);
    let of_group = |group: &RowGroupMetaData| {
        let chunks = group.columns().iter().filter(|chunk| is_of(chunk.column_path().string()));
        let ranges: Vec<(u64, u64)> = chunks.map(ColumnChunkMetaData::byte_range).collect();
        let start = ranges.iter().map(|(start, _)| *start).min().expect("the column");
        let end = ranges.iter().map(|(start, length)| start + length).max().expect("the column");
        start..end
    };
    reader.metadata().row_groups().iter().map(of_group).collect()
}

fn key<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// The type that takes all values.
fn kind(values: &[&Value]) -> DataType {
    let some: Vec<&Value> = values.iter().copied().filter(|value| !value.is_null()).collect();
    match some.first() {
        None => DataType::Null,
        Some(Value::Bool(_)) => DataType::Boolean,
        Some(Value::Number(_)) if some.iter().all(|value| value.is_i64()) => DataType::Int64,
        Some(Value::Number(_)) => DataType::Float64,
        Some(Value::String(_)) => DataType::Utf8,
        Some(Value::Array(_)) => {
            let elements: Vec<&Value> = some.iter().filter_map(|value| value.as_array()).flatten().collect();
            DataType::List(Arc::new(Field::new("element", kind(&elements), true)))
        }
        Some(Value::Object(first)) if first.contains_key(BYTES) => DataType::Binary,
        Some(Value::Object(_)) => {
            let mut names = Map::new();
            for object in some.iter().filter_map(|value| value.as_object()) {
                names.extend(object.keys().map(|name| (name.clone(), Value::Null)));
            }
            let field = |name: &String| {
                let cells: Vec<&Value> = some.iter().map(|value| key(value, name)).collect();
                Field::new(name, kind(&cells), true)
            };
            DataType::Struct(names.keys().map(field).collect::<Vec<_>>().into())
        }
        Some(Value::Null) => unreachable!("left out above"),
    }
}

fn column(field: &Field, rows: &[&Value]) -> ArrayRef {
    let cells: Vec<&Value> = rows.iter().map(|row| key(row, field.name())).collect();
    array(field.data_type(), &cells)
}

fn nulls(values: &[&Value]) -> NullBuffer {
    values.iter().map(|value| !value.is_null()).collect()
}

fn array(kind: &DataType, values: &[&Value]) -> ArrayRef {
    match kind {
        DataType::Boolean => Arc::new(values.iter().map(|value| value.as_bool()).collect::<BooleanArray>()),
        DataType::Int64 => Arc::new(values.iter().map(|value| value.as_i64()).collect::<Int64Array>()),
        DataType::Float64 => Arc::new(values.iter().map(|value| value.as_f64()).collect::<Float64Array>()),
        DataType::Utf8 => Arc::new(values.iter().map(|value| value.as_str()).collect::<StringArray>()),
        DataType::Binary => Arc::new(
            values.iter().map(|value| Some(unhex(key(value, BYTES).as_str()?))).collect::<BinaryArray>(),
        ),
        DataType::List(element) => {
            let lists: Vec<&[Value]> =
                values.iter().map(|value| value.as_array().map_or(&[][..], Vec::as_slice)).collect();
            let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.len()));
            let elements: Vec<&Value> = lists.into_iter().flatten().collect();
            let elements = array(element.data_type(), &elements);
            Arc::new(ListArray::new(Arc::clone(element), offsets, elements, Some(nulls(values))))
        }
        DataType::Struct(fields) => structs(fields, values),
        _ => Arc::new(NullArray::new(values.len())),
    }
}

fn structs(fields: &Fields, values: &[&Value]) -> ArrayRef {
    let columns = fields.iter().map(|field| column(field, values)).collect();
    Arc::new(StructArray::new(fields.clone(), columns, Some(nulls(values))))
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().map(|digit| (digit as char).to_digit(16).unwrap_or(0) as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
