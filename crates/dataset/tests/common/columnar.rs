//! Columnar files from JSON rows.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "helpers of tests, of which each test binary uses its part"
)]

use std::path::Path;
use std::sync::Arc;

use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, LargeListArray, LargeStringArray, ListArray,
    NullArray, PrimitiveArray, RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

pub fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, true)
}

pub fn object(fields: Vec<Field>) -> DataType {
    DataType::Struct(fields.into())
}

pub fn list(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", element, true)))
}

pub fn schema(fields: Vec<Field>) -> Arc<Schema> {
    Arc::new(Schema::new(fields))
}

/// The values as an array; what does not fit is null.
pub fn array(kind: &DataType, values: &[&Value]) -> ArrayRef {
    let strings = || values.iter().map(|value| value.as_str());
    let integers = || values.iter().map(|value| value.as_i64());
    let nulls = || values.iter().map(|value| !value.is_null()).collect::<NullBuffer>();
    let lists = || {
        let lists: Vec<&[Value]> =
            values.iter().map(|value| value.as_array().map_or(&[][..], Vec::as_slice)).collect();
        let lengths: Vec<usize> = lists.iter().map(|list| list.len()).collect();
        (lengths, lists.concat())
    };
    match kind {
        DataType::Null => Arc::new(NullArray::new(values.len())),
        DataType::Utf8 => Arc::new(strings().collect::<StringArray>()),
        DataType::LargeUtf8 => Arc::new(strings().collect::<LargeStringArray>()),
        DataType::Utf8View => Arc::new(strings().collect::<StringViewArray>()),
        DataType::Dictionary(key, _) if **key == DataType::Int8 => {
            Arc::new(strings().collect::<DictionaryArray<Int8Type>>())
        }
        DataType::Dictionary(..) => Arc::new(strings().collect::<DictionaryArray<Int32Type>>()),
        DataType::Boolean => Arc::new(values.iter().map(|value| value.as_bool()).collect::<BooleanArray>()),
        DataType::Int8 => {
            Arc::new(integers().map(|n| n.map(|n| n as i8)).collect::<PrimitiveArray<Int8Type>>())
        }
        DataType::Int16 => {
            Arc::new(integers().map(|n| n.map(|n| n as i16)).collect::<PrimitiveArray<Int16Type>>())
        }
        DataType::Int32 => {
            Arc::new(integers().map(|n| n.map(|n| n as i32)).collect::<PrimitiveArray<Int32Type>>())
        }
        DataType::Int64 => Arc::new(integers().collect::<PrimitiveArray<Int64Type>>()),
        DataType::UInt8 => {
            Arc::new(integers().map(|n| n.map(|n| n as u8)).collect::<PrimitiveArray<UInt8Type>>())
        }
        DataType::UInt16 => {
            Arc::new(integers().map(|n| n.map(|n| n as u16)).collect::<PrimitiveArray<UInt16Type>>())
        }
        DataType::UInt32 => {
            Arc::new(integers().map(|n| n.map(|n| n as u32)).collect::<PrimitiveArray<UInt32Type>>())
        }
        DataType::UInt64 => {
            Arc::new(values.iter().map(|value| value.as_u64()).collect::<PrimitiveArray<UInt64Type>>())
        }
        DataType::Float64 => {
            Arc::new(values.iter().map(|value| value.as_f64()).collect::<PrimitiveArray<Float64Type>>())
        }
        DataType::Float32 => Arc::new(
            values
                .iter()
                .map(|value| value.as_f64().map(|n| n as f32))
                .collect::<PrimitiveArray<Float32Type>>(),
        ),
        DataType::Float16 => {
            let half = |n: f64| <Float16Type as arrow_array::ArrowPrimitiveType>::Native::from_f64(n);
            Arc::new(
                values.iter().map(|value| value.as_f64().map(half)).collect::<PrimitiveArray<Float16Type>>(),
            )
        }
        DataType::List(element) => {
            let (lengths, all) = lists();
            let all = array(element.data_type(), &all.iter().collect::<Vec<_>>());
            Arc::new(ListArray::new(
                Arc::clone(element),
                OffsetBuffer::from_lengths(lengths),
                all,
                Some(nulls()),
            ))
        }
        DataType::LargeList(element) => {
            let (lengths, all) = lists();
            let all = array(element.data_type(), &all.iter().collect::<Vec<_>>());
            Arc::new(LargeListArray::new(
                Arc::clone(element),
                OffsetBuffer::from_lengths(lengths),
                all,
                Some(nulls()),
            ))
        }
        DataType::FixedSizeList(element, size) => {
            let absent = vec![Value::Null; *size as usize];
            let all: Vec<&Value> =
                values.iter().flat_map(|value| value.as_array().unwrap_or(&absent).iter()).collect();
            let all = array(element.data_type(), &all);
            Arc::new(FixedSizeListArray::new(Arc::clone(element), *size, all, Some(nulls())))
        }
        DataType::Struct(fields) => {
            Arc::new(StructArray::new(fields.clone(), columns(fields, values), Some(nulls())))
        }
        other => panic!("no such column here: {other}"),
    }
}

fn columns(fields: &Fields, rows: &[&Value]) -> Vec<ArrayRef> {
    let column = |field: &Arc<Field>| {
        let values: Vec<&Value> =
            rows.iter().map(|row| row.get(field.name()).unwrap_or(&Value::Null)).collect();
        array(field.data_type(), &values)
    };
    fields.iter().map(column).collect()
}

pub fn batch(schema: &Arc<Schema>, rows: &[Value]) -> RecordBatch {
    let rows: Vec<&Value> = rows.iter().collect();
    RecordBatch::try_new(Arc::clone(schema), columns(schema.fields(), &rows)).unwrap()
}

/// Writes a parquet file.
pub fn write(path: &Path, schema: &Arc<Schema>, rows: &[Value], properties: WriterProperties) {
    write_batch(path, &batch(schema, rows), properties);
}

pub fn write_batch(path: &Path, batch: &RecordBatch, properties: WriterProperties) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// Writes an Arrow IPC file of batches of so many rows.
pub fn write_arrow(path: &Path, schema: &Arc<Schema>, rows: &[Value], per_batch: usize) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, schema).unwrap();
    for rows in rows.chunks(per_batch) {
        writer.write(&batch(schema, rows)).unwrap();
    }
    writer.finish().unwrap();
}

/// The row as JSON text without keys that are null, in the order of its keys.
pub fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}
