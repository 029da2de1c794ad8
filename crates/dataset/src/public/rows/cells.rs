//! Cells of columns as values.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use serde_json::Number;

use crate::parquet::value::{boolean, elements, float, integer, resolve, string};
use crate::public::Value;

/// A row of a batch.
pub(super) fn row(batch: &RecordBatch, index: usize) -> Value {
    let schema = batch.schema_ref();
    let fields = schema.fields().iter().zip(batch.columns());
    Value::Object(fields.map(|(field, column)| (field.name().as_str().into(), cell(column, index))).collect())
}

/// A cell. Types without a form here (times, decimals) are nothing: no set has them where it is read.
fn cell(array: &dyn Array, index: usize) -> Value {
    let Some((array, index)) = resolve(array, index) else { return Value::Null };
    if let Some(text) = string(array, index) {
        return Value::Text(text.to_owned());
    }
    if let Some(value) = boolean(array, index) {
        return Value::Bool(value);
    }
    if let Some(value) = integer(array, index) {
        return Number::from_i128(value).map_or(Value::Null, Value::Number);
    }
    if let Some(value) = float(array, index) {
        return Number::from_f64(value).map_or(Value::Null, Value::Number);
    }
    match array.data_type() {
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(index).to_vec()),
        DataType::LargeBinary => Value::Bytes(array.as_binary::<i64>().value(index).to_vec()),
        DataType::BinaryView => Value::Bytes(array.as_binary_view().value(index).to_vec()),
        DataType::FixedSizeBinary(_) => Value::Bytes(array.as_fixed_size_binary().value(index).to_vec()),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let named = fields.iter().zip(columns);
            Value::Object(
                named.map(|(field, column)| (field.name().as_str().into(), cell(column, index))).collect(),
            )
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(index);
            let [keys, values] = entries.columns() else { return Value::Null };
            let key = |entry| string(keys, entry).map(Arc::from);
            Value::Object(
                (0..entries.len()).filter_map(|entry| Some((key(entry)?, cell(values, entry)))).collect(),
            )
        }
        _ => match elements(array, index) {
            Some(values) => Value::List((0..values.len()).map(|element| cell(&values, element)).collect()),
            None => Value::Null,
        },
    }
}
