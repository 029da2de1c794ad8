//! Rows as JSON text: keys in the order of the schema, keys without a value left out at every depth.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Fields};

use super::value;

/// A number that JSON cannot express, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotFinite {
    /// Dotted path of the column.
    pub(crate) column: String,
    /// `NaN` or an infinity.
    pub(crate) value: &'static str,
}

/// How the rows of a schema are written.
#[derive(Debug)]
pub(crate) struct Writer {
    columns: Object,
}

/// The fields of an object, each with its key as JSON text and a colon.
type Object = Box<[(Box<str>, Shape)]>;

#[derive(Debug)]
enum Shape {
    Value,
    List(Box<Shape>),
    Object(Object),
}

impl Writer {
    pub(crate) fn new(fields: &Fields) -> Writer {
        Writer { columns: object(fields) }
    }

    /// Appends row `index` of `batch`, which has the schema this was made for.
    pub(crate) fn row(&self, batch: &RecordBatch, index: usize, out: &mut String) -> Result<(), NotFinite> {
        let columns = batch.columns().iter().map(AsRef::as_ref);
        write_object(&self.columns, columns, index, out)
            .map_err(|found| found.in_schema(batch.schema_ref().fields()))
    }
}

fn object(fields: &Fields) -> Object {
    let key = |name: &str| format!("{}:", serde_json::Value::from(name)).into_boxed_str();
    fields.iter().map(|field| (key(field.name()), shape(field.data_type()))).collect()
}

fn shape(kind: &DataType) -> Shape {
    match kind {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => Shape::List(Box::new(shape(element.data_type()))),
        DataType::Struct(fields) => Shape::Object(object(fields)),
        _ => Shape::Value,
    }
}

/// A number that is none, and the way to it: field numbers, innermost first.
struct Found {
    value: &'static str,
    way: Vec<usize>,
}

impl Found {
    fn in_schema(self, mut fields: &Fields) -> NotFinite {
        let mut column = String::new();
        for step in self.way.into_iter().rev() {
            if !column.is_empty() {
                column.push('.');
            }
            column.push_str(fields[step].name());
            let mut kind = fields[step].data_type();
            loop {
                match kind {
                    DataType::List(element)
                    | DataType::LargeList(element)
                    | DataType::ListView(element)
                    | DataType::LargeListView(element)
                    | DataType::FixedSizeList(element, _) => kind = element.data_type(),
                    DataType::Dictionary(_, values) => kind = values,
                    DataType::Struct(inner) => {
                        fields = inner;
                        break;
                    }
                    _ => break,
                }
            }
        }
        NotFinite { column, value: self.value }
    }
}

fn write_object<'a>(
    fields: &Object,
    columns: impl Iterator<Item = &'a dyn Array>,
    index: usize,
    out: &mut String,
) -> Result<(), Found> {
    out.push('{');
    let mut first = true;
    for (number, ((key, shape), array)) in fields.iter().zip(columns).enumerate() {
        if array.data_type() == &DataType::Null {
            continue;
        }
        let Some((array, index)) = value::resolve(array, index) else { continue };
        if !first {
            out.push(',');
        }
        first = false;
        out.push_str(key);
        write(shape, array, index, out).map_err(|mut found| {
            found.way.push(number);
            found
        })?;
    }
    out.push('}');
    Ok(())
}

/// Writes a cell that is not null.
fn write(shape: &Shape, array: &dyn Array, index: usize, out: &mut String) -> Result<(), Found> {
    match shape {
        Shape::Object(fields) => {
            let columns = array.as_struct().columns().iter().map(AsRef::as_ref);
            write_object(fields, columns, index, out)
        }
        Shape::List(shape) => match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                let range = offsets[index] as usize..offsets[index + 1] as usize;
                write_list(shape, list.values().as_ref(), range, out)
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets();
                let range = offsets[index] as usize..offsets[index + 1] as usize;
                write_list(shape, list.values().as_ref(), range, out)
            }
            _ => value::elements(array, index)
                .map_or(Ok(()), |elements| write_list(shape, elements.as_ref(), 0..elements.len(), out)),
        },
        Shape::Value => write_value(array, index, out),
    }
}

fn write_list(
    shape: &Shape,
    array: &dyn Array,
    range: std::ops::Range<usize>,
    out: &mut String,
) -> Result<(), Found> {
    out.push('[');
    let start = range.start;
    for index in range {
        if index > start {
            out.push(',');
        }
        match value::resolve(array, index) {
            Some((array, index)) if array.data_type() != &DataType::Null => write(shape, array, index, out)?,
            _ => out.push_str("null"),
        }
    }
    out.push(']');
    Ok(())
}

fn write_value(array: &dyn Array, index: usize, out: &mut String) -> Result<(), Found> {
    fn integer<T: ArrowPrimitiveType<Native: itoa::Integer>>(
        array: &dyn Array,
        index: usize,
        out: &mut String,
    ) {
        out.push_str(itoa::Buffer::new().format(array.as_primitive::<T>().value(index)));
    }
    match array.data_type() {
        DataType::Utf8 => write_string(array.as_string::<i32>().value(index), out),
        DataType::LargeUtf8 => write_string(array.as_string::<i64>().value(index), out),
        DataType::Utf8View => write_string(array.as_string_view().value(index), out),
        DataType::Boolean => out.push_str(if array.as_boolean().value(index) { "true" } else { "false" }),
        DataType::Int8 => integer::<Int8Type>(array, index, out),
        DataType::Int16 => integer::<Int16Type>(array, index, out),
        DataType::Int32 => integer::<Int32Type>(array, index, out),
        DataType::Int64 => integer::<Int64Type>(array, index, out),
        DataType::UInt8 => integer::<UInt8Type>(array, index, out),
        DataType::UInt16 => integer::<UInt16Type>(array, index, out),
        DataType::UInt32 => integer::<UInt32Type>(array, index, out),
        DataType::UInt64 => integer::<UInt64Type>(array, index, out),
        DataType::Float64 => {
            let number = array.as_primitive::<Float64Type>().value(index);
            finite(number)?;
            out.push_str(zmij::Buffer::new().format_finite(number));
        }
        DataType::Float32 => write_short(array.as_primitive::<Float32Type>().value(index), out)?,
        DataType::Float16 => write_short(array.as_primitive::<Float16Type>().value(index).to_f32(), out)?,
        // The schema was checked: nothing else is left.
        _ => out.push_str("null"),
    }
    Ok(())
}

/// The shortest text that is this very number as a float of 32 bits.
fn write_short(number: f32, out: &mut String) -> Result<(), Found> {
    finite(number.into())?;
    out.push_str(zmij::Buffer::new().format_finite(number));
    Ok(())
}

fn finite(number: f64) -> Result<(), Found> {
    let value = match number {
        _ if number.is_nan() => "NaN",
        f64::INFINITY => "infinity",
        f64::NEG_INFINITY => "-infinity",
        _ => return Ok(()),
    };
    Err(Found { value, way: Vec::new() })
}

/// `text` as a JSON string.
pub(crate) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[start..at]);
        start = at + 1;
        if short.is_empty() {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.push_str("\\u00");
            out.push(HEX[usize::from(byte >> 4)].into());
            out.push(HEX[usize::from(byte & 15)].into());
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[start..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_everywhere() {
        for text in ["", "plain", "a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}", "ü😀\u{2028}"] {
            let mut out = String::new();
            write_string(text, &mut out);
            assert_eq!(out, serde_json::Value::from(text).to_string());
        }
    }
}
