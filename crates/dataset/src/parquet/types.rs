//! Which columns have a form as JSON. Told by the schema, before any row is read.

use arrow_schema::{DataType, Field, Fields};

/// The first column without a JSON form: its dotted path, and what it is.
pub(super) fn rejected(fields: &Fields) -> Option<(String, &'static str)> {
    fields.iter().find_map(|field| rejected_in(field, ""))
}

fn rejected_in(field: &Field, parent: &str) -> Option<(String, &'static str)> {
    let path = if parent.is_empty() { field.name().clone() } else { format!("{parent}.{}", field.name()) };
    of(field.data_type(), path)
}

/// The elements of a list have no name of their own in a path.
fn of(kind: &DataType, path: String) -> Option<(String, &'static str)> {
    let what = match kind {
        DataType::Null
        | DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View => return None,
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => return of(element.data_type(), path),
        DataType::Struct(fields) => {
            return fields.iter().find_map(|field| rejected_in(field, &path));
        }
        DataType::Dictionary(_, values) => return of(values, path),
        DataType::Timestamp(..) => "timestamp",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Duration(_) => "duration",
        DataType::Interval(_) => "interval",
        DataType::Binary | DataType::FixedSizeBinary(_) | DataType::LargeBinary | DataType::BinaryView => {
            "binary"
        }
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => "decimal",
        DataType::Map(..) => "map",
        DataType::Union(..) => "union",
        DataType::RunEndEncoded(..) => "run-end encoded",
    };
    Some((path, what))
}

/// Whether a column holds floats at any depth, of which some may be no number.
pub(super) fn has_floats(kind: &DataType) -> bool {
    holds(kind, &|kind| matches!(kind, DataType::Float16 | DataType::Float32 | DataType::Float64))
}

/// Whether a column holds texts at any depth.
pub(crate) fn has_texts(kind: &DataType) -> bool {
    holds(kind, &|kind| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View))
}

/// Whether a type is one of these, or is made of such.
fn holds(kind: &DataType, is: &dyn Fn(&DataType) -> bool) -> bool {
    match kind {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => holds(element.data_type(), is),
        DataType::Struct(fields) => fields.iter().any(|field| holds(field.data_type(), is)),
        DataType::Dictionary(_, values) => holds(values, is),
        other => is(other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_column_without_a_json_form_is_found_at_any_depth() {
        let list = |kind| DataType::List(Arc::new(Field::new_list_field(kind, true)));
        let object = |name, kind| DataType::Struct(Fields::from(vec![Field::new(name, kind, true)]));
        let schema =
            |kind| Fields::from(vec![Field::new("fine", DataType::Utf8, true), Field::new("a", kind, true)]);
        assert_eq!(rejected(&schema(list(object("b", DataType::LargeUtf8)))), None);
        for (kind, path, what) in [
            (DataType::Binary, "a", "binary"),
            (list(DataType::Date32), "a", "date"),
            (list(object("b", list(DataType::Decimal128(10, 2)))), "a.b", "decimal"),
            (
                object("b", object("c", DataType::Duration(arrow_schema::TimeUnit::Second))),
                "a.b.c",
                "duration",
            ),
            (DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeBinary)), "a", "binary"),
        ] {
            assert_eq!(rejected(&schema(kind)), Some((path.to_owned(), what)));
        }
    }
}
