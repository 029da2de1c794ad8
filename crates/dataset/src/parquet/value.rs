//! Single cells of a column, whatever way the column is stored.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowDictionaryKeyType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// The values of a dictionary-coded column and where in them the cell `index` is; `None` when it is null.
fn looked_up<K: ArrowDictionaryKeyType>(array: &dyn Array, index: usize) -> Option<(&ArrayRef, usize)> {
    let dictionary = array.as_dictionary::<K>();
    let key = dictionary.key(index)?;
    Some((dictionary.values(), key))
}

/// The array and index that really hold the cell `index`; `None` when it is null.
pub(crate) fn resolve(array: &dyn Array, index: usize) -> Option<(&dyn Array, usize)> {
    if array.is_null(index) {
        return None;
    }
    let DataType::Dictionary(key, _) = array.data_type() else { return Some((array, index)) };
    let (values, index) = match key.as_ref() {
        DataType::Int8 => looked_up::<Int8Type>(array, index),
        DataType::Int16 => looked_up::<Int16Type>(array, index),
        DataType::Int32 => looked_up::<Int32Type>(array, index),
        DataType::Int64 => looked_up::<Int64Type>(array, index),
        DataType::UInt8 => looked_up::<UInt8Type>(array, index),
        DataType::UInt16 => looked_up::<UInt16Type>(array, index),
        DataType::UInt32 => looked_up::<UInt32Type>(array, index),
        _ => looked_up::<UInt64Type>(array, index),
    }?;
    resolve(values.as_ref(), index)
}

/// A string cell; `None` when it is null or no string.
pub(crate) fn string(array: &dyn Array, index: usize) -> Option<&str> {
    let (array, index) = resolve(array, index)?;
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(index)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(index)),
        DataType::Utf8View => Some(array.as_string_view().value(index)),
        _ => None,
    }
}

/// A boolean cell; `None` when it is null or no boolean.
pub(crate) fn boolean(array: &dyn Array, index: usize) -> Option<bool> {
    let (array, index) = resolve(array, index)?;
    (*array.data_type() == DataType::Boolean).then(|| array.as_boolean().value(index))
}

/// A cell of an integer column of any width; `None` when it is null or no integer.
pub(crate) fn integer(array: &dyn Array, index: usize) -> Option<i128> {
    let (array, index) = resolve(array, index)?;
    Some(match array.data_type() {
        DataType::Int8 => array.as_primitive::<Int8Type>().value(index).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(index).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(index).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(index).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(index).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(index).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(index).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(index).into(),
        _ => return None,
    })
}

/// A cell of a floating-point column; `None` when it is null or no float.
pub(crate) fn float(array: &dyn Array, index: usize) -> Option<f64> {
    let (array, index) = resolve(array, index)?;
    Some(match array.data_type() {
        DataType::Float16 => array.as_primitive::<Float16Type>().value(index).to_f64(),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(index).into(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(index),
        _ => return None,
    })
}

/// The elements of a list cell; `None` when it is null or no list.
pub(crate) fn elements(array: &dyn Array, index: usize) -> Option<ArrayRef> {
    let (array, index) = resolve(array, index)?;
    match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().value(index)),
        DataType::LargeList(_) => Some(array.as_list::<i64>().value(index)),
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().value(index)),
        DataType::ListView(_) => Some(array.as_list_view::<i32>().value(index)),
        DataType::LargeListView(_) => Some(array.as_list_view::<i64>().value(index)),
        _ => None,
    }
}
