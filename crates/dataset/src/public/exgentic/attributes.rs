//! The attributes of a span, however an export of the data stores them: as an object, as a list of keys and values,
//! or as the text of either.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::{self, Fault};
use crate::public::Value;

/// A value that is there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field<'a> {
    /// As JSON text.
    Json(Cow<'a, str>),
    /// What a string holds.
    Text(Cow<'a, str>),
}

impl<'a> Field<'a> {
    /// A cell; `None` where it has no value.
    pub(super) fn of(value: &'a Value) -> Option<Field<'a>> {
        match value {
            Value::Null => None,
            Value::Text(text) => Some(Field::Text(Cow::Borrowed(text))),
            other => Some(Field::Json(Cow::Owned(other.json()))),
        }
    }

    fn json(text: &'a str) -> Field<'a> {
        Field::Json(Cow::Borrowed(text))
    }

    /// A string.
    pub(super) fn string(&self, name: &'static str) -> Result<Cow<'_, str>, Fault> {
        match self {
            Field::Json(text) => json::string(name, text),
            Field::Text(text) => Ok(Cow::Borrowed(text)),
        }
    }

    /// A whole number, which may be written as a string.
    pub(super) fn integer(&self, name: &'static str) -> Result<i64, Fault> {
        json::integer(name, &self.quoted())
    }

    /// A number, which may be written as a string; may come out infinite.
    pub(super) fn number(&self, name: &'static str) -> Result<f64, Fault> {
        json::number(name, &self.quoted())
    }

    fn quoted(&self) -> Cow<'_, str> {
        match self {
            Field::Json(text) => Cow::Borrowed(text),
            Field::Text(text) => Cow::Owned(format!("\"{text}\"")),
        }
    }

    /// JSON text that may be stored as a string.
    pub(super) fn inner(&self, name: &'static str) -> Result<Cow<'_, str>, Fault> {
        match self {
            Field::Json(text) => unwrapped(name, text),
            Field::Text(text) => Ok(Cow::Borrowed(text.trim())),
        }
    }
}

/// Keys and their values; those without a value are left out.
#[derive(Debug, Default)]
pub(super) struct Attributes<'a>(Vec<(Cow<'a, str>, Field<'a>)>);

impl<'a> Attributes<'a> {
    /// Takes those of an object apart.
    pub(super) fn of(fields: &'a [(Arc<str>, Value)]) -> Attributes<'a> {
        let pairs = fields.iter().filter_map(|(key, value)| Some((Cow::Borrowed(&**key), Field::of(value)?)));
        Attributes(pairs.collect())
    }

    /// Reads the text of an object, or of a list of objects with `key` and `value`.
    pub(super) fn read(text: &'a str) -> Result<Attributes<'a>, Fault> {
        if text.starts_with('[') {
            let mut all = Vec::new();
            for item in json::list("attributes", text)? {
                let [key, value] = json::object(item, &["key", "value"])?;
                let key = key.ok_or_else(|| Fault::new("attributes", "an attribute has no key"))?;
                let key = json::string("key", key)?;
                all.extend(value.map(|value| (key, Field::json(value))));
            }
            return Ok(Attributes(all));
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        deserializer
            .deserialize_map(Entries)
            .and_then(|all| deserializer.end().map(|()| Attributes(all)))
            .map_err(|error| Fault::new("attributes", format!("cannot be read as an object: {error}")))
    }

    /// The value of a key; of equal keys the last counts.
    pub(super) fn get(&self, key: &str) -> Option<&Field<'a>> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The keys that start with `prefix`, without it.
    pub(super) fn below<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = &'s str> {
        self.0.iter().filter_map(move |(name, _)| name.strip_prefix(prefix))
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(Cow<'de, str>, Field<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
            if value.get() != "null" {
                all.push((key, Field::json(value.get())));
            }
        }
        Ok(all)
    }
}

/// A key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<'de>, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// The text of a value that may be stored as the text of a string: what is in the string.
pub(super) fn unwrapped<'a>(name: &'static str, text: &'a str) -> Result<Cow<'a, str>, Fault> {
    if text.starts_with('"') {
        // White space around a value is none of it.
        return Ok(match json::string(name, text)? {
            Cow::Borrowed(inner) => Cow::Borrowed(inner.trim()),
            Cow::Owned(inner) if inner.trim().len() == inner.len() => Cow::Owned(inner),
            Cow::Owned(inner) => Cow::Owned(inner.trim().to_owned()),
        });
    }
    Ok(Cow::Borrowed(text))
}

/// Appends a JSON text without the white space between its tokens.
pub(super) fn write_compact(text: &str, out: &mut String) {
    let mut start = 0;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b' ' | b'\n' | b'\r' | b'\t' if !in_string => {
                out.push_str(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push_str(&text[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_and_a_list_of_pairs_are_the_same_attributes() {
        for text in [
            r#"{"a.b":1,"c":null,"d\u0065":"x","a.b":2}"#,
            r#"[{"key":"a.b","value":1},{"key":"c","value":null},{"key":"de","value":"x"},{"key":"a.b","value":2}]"#,
        ] {
            let attributes = Attributes::read(text).unwrap();
            assert_eq!(attributes.get("a.b"), Some(&Field::json("2")));
            assert_eq!(attributes.get("c"), None);
            assert_eq!(attributes.get("de"), Some(&Field::json("\"x\"")));
            assert_eq!(attributes.below("a.").collect::<Vec<_>>(), ["b", "b"]);
        }
        for text in ["7", "{", "[7]", "{\"a\":1}x", "[{\"value\":1}]"] {
            assert!(Attributes::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn compact_text_keeps_everything_but_the_space_between_tokens() {
        let compact = |text: &str| {
            let mut out = String::new();
            write_compact(text, &mut out);
            out
        };
        assert_eq!(
            compact("{ \"b\" : [ 1.0 ,\n\t2 ], \"a \\\" \\\\\" : \"x y\" }"),
            "{\"b\":[1.0,2],\"a \\\" \\\\\":\"x y\"}"
        );
        assert_eq!(compact("\"\\\\\" "), "\"\\\\\"");
    }
}
