//! A cell of a row, whatever the row is stored as: JSON with bytes.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Number;

/// A value of a row. Objects keep the order of their keys; a cell without a value is [`Value::Null`].
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A finite number.
    Number(Number),
    /// Text.
    Text(String),
    /// Bytes, as those of an image.
    Bytes(Vec<u8>),
    /// Values in order.
    List(Vec<Value>),
    /// Values by name.
    Object(Vec<(Arc<str>, Value)>),
}

impl Value {
    /// The value of this key of an object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let Value::Object(fields) = self else { return None };
        fields.iter().find(|(name, _)| &**name == key).map(|(_, value)| value)
    }

    /// The names of an object, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let fields: &[(Arc<str>, Value)] = if let Value::Object(fields) = self { fields } else { &[] };
        fields.iter().map(|(name, _)| &**name)
    }

    /// The text of a text.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The values of a list.
    pub fn list(&self) -> Option<&[Value]> {
        if let Value::List(values) = self { Some(values) } else { None }
    }

    /// The bytes of bytes.
    pub fn bytes(&self) -> Option<&[u8]> {
        if let Value::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// Whether there is none.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// As text: a text is itself, nothing is empty, anything else its JSON.
    pub fn shown(&self) -> String {
        match self {
            Value::Null => String::new(),
            Value::Text(text) => text.clone(),
            other => other.json(),
        }
    }

    /// As JSON; keys without a value are left out at every depth, bytes are a list of numbers.
    pub fn json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => {
                let _ = write!(out, "{number}");
            }
            Value::Text(text) => crate::parquet::write_string(text, out),
            Value::Bytes(bytes) => {
                let _ = write!(out, "{bytes:?}");
            }
            Value::List(values) => {
                out.push('[');
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    value.write_json(out);
                }
                out.push(']');
            }
            Value::Object(fields) => {
                out.push('{');
                let mut first = true;
                for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                    if !first {
                        out.push(',');
                    }
                    first = false;
                    crate::parquet::write_string(name, out);
                    out.push(':');
                    value.write_json(out);
                }
                out.push('}');
            }
        }
    }

    /// Bytes that it takes in memory, roughly.
    pub(crate) fn size(&self) -> usize {
        size_of::<Value>()
            + match self {
                Value::Text(text) => text.len(),
                Value::Bytes(bytes) => bytes.len(),
                Value::List(values) => values.iter().map(Value::size).sum(),
                Value::Object(fields) => fields.iter().map(|(_, value)| 16 + value.size()).sum(),
                _ => 0,
            }
    }
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Value {
        use serde_json::Value as Json;
        match value {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => Value::Number(number),
            Json::String(text) => Value::Text(text),
            Json::Array(values) => Value::List(values.into_iter().map(Value::from).collect()),
            Json::Object(fields) => {
                Value::Object(fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_as_text_and_without_the_keys_that_have_none() {
        let value =
            Value::from(serde_json::json!({"b": [1, null, 2.5, "x\"y"], "a": {"n": null, "t": true}}));
        assert_eq!(value.json(), r#"{"b":[1,null,2.5,"x\"y"],"a":{"t":true}}"#);
        assert_eq!(value.keys().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(Value::from(serde_json::json!("plain")).shown(), "plain");
        assert_eq!(Value::Null.shown(), "");
    }
}
