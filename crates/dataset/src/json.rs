//! Records as JSON text: which fields are there, and what each may hold. Values are checked in place and
//! decoded only when a turn is built; no tree is made of a record.

use std::borrow::Cow;
use std::fmt;

use aiperf_config::InputColumns;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::parquet::write_string;

/// A rule that a record breaks; whoever read the record adds the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The field, or empty when the record as a whole is meant.
    pub(crate) field: Cow<'static, str>,
    /// The rule, and what to do.
    pub(crate) rule: String,
}

impl Fault {
    pub(crate) fn new(field: impl Into<Cow<'static, str>>, rule: impl Into<String>) -> Fault {
        Fault { field: field.into(), rule: rule.into() }
    }

    /// The same fault inside `parent`.
    pub(crate) fn within(self, parent: impl fmt::Display) -> Fault {
        let field =
            if self.field.is_empty() { parent.to_string() } else { format!("{parent}.{}", self.field) };
        Fault { field: field.into(), rule: self.rule }
    }
}

/// The text of one JSON value, or nothing: `null` counts as absent.
pub(crate) type Field<'a> = Option<&'a str>;

/// Takes the named fields of a JSON object apart; unknown keys are skipped, of equal keys the last counts.
/// `None` when `text` is JSON but not an object.
pub(crate) fn fields<'a, const N: usize>(
    text: &'a str,
    names: &[&str; N],
) -> Result<Option<[Field<'a>; N]>, Fault> {
    if !text.trim_start().starts_with('{') {
        return match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Ok(None),
            Err(error) => Err(not_json(&error)),
        };
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = deserializer
        .deserialize_map(FieldsVisitor { names })
        .and_then(|found| deserializer.end().map(|()| found))
        .map_err(|error| not_json(&error))?;
    Ok(Some(found))
}

/// As [`fields`]; anything but an object is a fault.
pub(crate) fn object<'a, const N: usize>(text: &'a str, names: &[&str; N]) -> Result<[Field<'a>; N], Fault> {
    fields(text, names)?.ok_or_else(|| {
        Fault::new(
            "",
            format!("a record must be a JSON object, found {}; put one object on each line", kind(text)),
        )
    })
}

/// As [`object`]; a key that is not among `names` is a fault.
pub(crate) fn strict<'a, const N: usize>(text: &'a str, names: &[&str; N]) -> Result<[Field<'a>; N], Fault> {
    let found = object(text, names)?;
    let keys: Keys = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    match keys.0.into_iter().find(|key| !names.contains(&key.as_str())) {
        None => Ok(found),
        Some(key) => {
            let rule = format!("is no key of this format; known here: {}", names.join(", "));
            Err(Fault::new(excerpt(&key), rule))
        }
    }
}

/// The keys of an object.
struct Keys(Vec<String>);

impl<'de> serde::Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Keys, D::Error> {
        struct KeysVisitor;
        impl<'de> Visitor<'de> for KeysVisitor {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, _)) = map.next_entry::<String, IgnoredAny>()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(KeysVisitor)
    }
}

/// Writes an object with the names of fields as its keys; `false`, and nothing of use in `out`, where `text` is none.
pub(crate) fn rename(text: &str, names: &InputColumns, out: &mut String) -> bool {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    out.clear();
    out.push('{');
    let renamed =
        deserializer.deserialize_map(RenameVisitor { names, out }).and_then(|()| deserializer.end()).is_ok();
    out.push('}');
    renamed
}

struct RenameVisitor<'o> {
    names: &'o InputColumns,
    out: &'o mut String,
}

impl<'de> Visitor<'de> for RenameVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if self.out.len() > 1 {
                self.out.push(',');
            }
            write_string(&self.names.field_of(&key), self.out);
            self.out.push(':');
            self.out.push_str(map.next_value::<&'de RawValue>()?.get());
        }
        Ok(())
    }
}

fn not_json(error: &serde_json::Error) -> Fault {
    // The parser counts lines inside the record; the column is what is of use here.
    let text = error.to_string();
    let reason = reason(&text);
    Fault::new(
        "",
        format!("not valid JSON: {reason} (column {}); write one JSON value per line", error.column()),
    )
}

/// What the parser says, in words for those who wrote the data.
fn reason(text: &str) -> &str {
    match text.rfind(" at line ").map_or(text, |at| &text[..at]) {
        "expected ident" => "a word that is none of true, false and null",
        "expected value" => "what stands there begins no value",
        "recursion limit exceeded" => "nested more than 127 levels deep",
        other => other,
    }
}

/// What is wrong with a file that should be one JSON document, and in which line; nothing where it is one.
pub(crate) fn document_fault(text: &str) -> Option<(u64, Fault)> {
    let error = serde_json::from_str::<IgnoredAny>(text).err()?;
    let shown = error.to_string();
    let rule = format!("not valid JSON: {} (column {})", reason(&shown), error.column());
    Some((error.line() as u64, Fault::new("", rule)))
}

/// What keeps a text that is JSON from being taken apart, and in which line; nothing where it can be.
pub(crate) fn value_fault(text: &str) -> Option<(u64, Fault)> {
    let error = serde_json::from_str::<Value>(text).err()?;
    let shown = error.to_string();
    Some((error.line() as u64, Fault::new("", format!("{} (column {})", reason(&shown), error.column()))))
}

struct FieldsVisitor<'n, const N: usize> {
    names: &'n [&'n str; N],
}

impl<'de, const N: usize> Visitor<'de> for FieldsVisitor<'_, N> {
    type Value = [Field<'de>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(index) = map.next_key_seed(NameSeed { names: self.names })? {
            match index {
                Some(index) => {
                    let value: &'de RawValue = map.next_value()?;
                    found[index] = Some(value.get()).filter(|value| *value != "null");
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

struct NameSeed<'n, const N: usize> {
    names: &'n [&'n str; N],
}

impl<'de, const N: usize> DeserializeSeed<'de> for NameSeed<'_, N> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<const N: usize> Visitor<'_> for NameSeed<'_, N> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.names.iter().position(|name| *name == key))
    }
}

/// What kind of value `text` is, for messages.
pub(crate) fn kind(text: &str) -> &'static str {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

fn wrong_kind(name: &'static str, expected: &str, text: &str) -> Fault {
    Fault::new(name, format!("expected {expected}, found {}", kind(text)))
}

/// A string.
pub(crate) fn string<'a>(name: &'static str, text: &'a str) -> Result<Cow<'a, str>, Fault> {
    if !text.starts_with('"') {
        return Err(wrong_kind(name, "a string", text));
    }
    let inner = &text[1..text.len() - 1];
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(text).map(Cow::Owned).map_err(|_| {
        Fault::new(
            name,
            "the string has an escape that is no character (half of a surrogate pair); correct it",
        )
    })
}

/// Checks that `text` is a string that can be decoded; whether it is not empty.
pub(crate) fn check_string(name: &'static str, text: &str) -> Result<bool, Fault> {
    if !text.starts_with('"') {
        return Err(wrong_kind(name, "a string", text));
    }
    // Only a `\u` escape can be well-formed JSON and yet no character.
    if memchr::memmem::find(text.as_bytes(), b"\\u").is_some() {
        string(name, text)?;
    }
    Ok(text.len() > 2)
}

/// The digits of a number, which may be written as a string.
fn numeral<'a>(name: &'static str, expected: &str, text: &'a str) -> Result<&'a str, Fault> {
    match text.as_bytes().first() {
        Some(b'-' | b'0'..=b'9') => Ok(text),
        Some(b'"') => Ok(text[1..text.len() - 1].trim()),
        _ => Err(wrong_kind(name, expected, text)),
    }
}

/// A number; may come out infinite.
pub(crate) fn number(name: &'static str, text: &str) -> Result<f64, Fault> {
    numeral(name, "a number", text)?
        .parse::<f64>()
        .map_err(|_| Fault::new(name, format!("expected a number, found {}", excerpt(text))))
}

/// A whole number: an integer, a float without fraction, or either as a string.
pub(crate) fn integer(name: &'static str, text: &str) -> Result<i64, Fault> {
    let digits = numeral(name, "an integer", text)?;
    if let Ok(value) = digits.parse::<i64>() {
        return Ok(value);
    }
    match digits.parse::<f64>() {
        Ok(value) if value.is_finite() && value.fract() == 0.0 && value.abs() < 9.2e18 => Ok(value as i64),
        Ok(value) if value.is_finite() && value.fract() != 0.0 => {
            Err(Fault::new(name, format!("expected an integer, {} has a fraction", excerpt(text))))
        }
        Ok(_) => Err(Fault::new(name, format!("{} is out of range", excerpt(text)))),
        Err(_) => Err(Fault::new(name, format!("expected an integer, found {}", excerpt(text)))),
    }
}

/// A boolean.
pub(crate) fn boolean(name: &'static str, text: &str) -> Result<bool, Fault> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(wrong_kind(name, "a boolean", text)),
    }
}

/// A list, as the texts of its elements.
pub(crate) fn list<'a>(name: &'static str, text: &'a str) -> Result<Vec<&'a str>, Fault> {
    if !text.starts_with('[') {
        return Err(wrong_kind(name, "a list", text));
    }
    let values: Vec<&'a RawValue> =
        serde_json::from_str(text).map_err(|error| Fault::new(name, error.to_string()))?;
    Ok(values.into_iter().map(RawValue::get).collect())
}

/// Visits the integers of a list without making a list of them.
pub(crate) fn integers(
    name: &'static str,
    text: &str,
    mut visit: impl FnMut(i64) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if !text.starts_with('[') {
        return Err(wrong_kind(name, "a list of integers", text));
    }
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        while matches!(bytes.get(at), Some(b' ' | b',' | b'\n' | b'\r' | b'\t')) {
            at += 1;
        }
        let start = at;
        let mut value: i64 = 0;
        while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            at += 1;
        }
        let ends = matches!(bytes.get(at), Some(b' ' | b',' | b']' | b'\n' | b'\r' | b'\t'));
        if at > start && at - start <= 18 && ends {
            visit(value)?;
        } else if bytes.get(at) == Some(&b']') && at == start {
            return Ok(());
        } else {
            // Not a run of plain digits: take the elements that are left one by one.
            let rest = format!("[{}", &text[start..]);
            for element in list(name, &rest)? {
                visit(integer(name, element)?)?;
            }
            return Ok(());
        }
    }
}

/// An object, decoded.
pub(crate) fn map(name: &'static str, text: &str) -> Result<Map<String, Value>, Fault> {
    if !text.starts_with('{') {
        return Err(wrong_kind(name, "an object", text));
    }
    serde_json::from_str(text).map_err(|error| Fault::new(name, error.to_string()))
}

/// Whether an object or list has anything in it.
pub(crate) fn is_hollow(text: &str) -> bool {
    text[1..text.len().max(2) - 1].trim().is_empty()
}

/// The text as authored, owned.
pub(crate) fn raw(name: &'static str, text: &str) -> Result<Box<RawValue>, Fault> {
    RawValue::from_string(text.to_owned()).map_err(|error| Fault::new(name, error.to_string()))
}

/// The start of `text`, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_fields_are_found_and_the_rest_is_skipped() {
        let text = r#" {"a": 1, "x": {"b": 2}, "b": "t", "c": null, "a": [3, 4]} "#;
        assert_eq!(fields(text, &["a", "b", "c"]).unwrap().unwrap(), [Some("[3, 4]"), Some("\"t\""), None]);
        assert_eq!(fields("[1]", &["a"]).unwrap(), None);
        assert!(object("[1]", &["a"]).unwrap_err().rule.contains("must be a JSON object, found a list"));
    }

    #[test]
    fn keys_are_renamed_and_values_stay_as_they_are_written() {
        let mut out = String::new();
        let names = InputColumns::new([("b", "a\n")]).unwrap();
        assert!(rename(r#" {"a\n" : 1e3 , "x": {"a\n": [ 2 ]}, "ü": "\ud83d\ude00"} "#, &names, &mut out));
        assert_eq!(out, r#"{"b":1e3,"x":{"a\n": [ 2 ]},"ü":"\ud83d\ude00"}"#);
        assert!(rename("{}", &names, &mut out) && out == "{}");
        for text in ["[1]", "{\"a\": 1", "{\"a\": 1} 2", ""] {
            assert!(!rename(text, &names, &mut out), "{text}");
        }
    }

    #[test]
    fn bad_json_gives_the_parsers_reason() {
        for text in
            ["{\"a\": 1,}", "{\"a\" 1}", "{\"a\": 1} x", "{\"a\": \"\u{1}\"}", "{", "NaN", "{\"a\": 01}"]
        {
            let fault = fields(text, &["a"]).unwrap_err();
            assert!(fault.rule.starts_with("not valid JSON: "), "{text}: {}", fault.rule);
            assert!(
                !fault.rule.contains("expected ident") && !fault.rule.contains("expected value"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_boolean_is_not_a_number() {
        assert!(integer("n", "true").unwrap_err().rule.contains("found a boolean"));
        assert!(number("n", "false").unwrap_err().rule.contains("found a boolean"));
    }

    #[test]
    fn integers_come_as_integers_integral_floats_and_strings() {
        for (text, value) in [("7", 7), ("-7", -7), ("7.0", 7), ("\"7\"", 7), ("\" 7.0\"", 7), ("7e2", 700)] {
            assert_eq!(integer("n", text).unwrap(), value, "{text}");
        }
        assert!(integer("n", "7.5").unwrap_err().rule.contains("has a fraction"));
        assert!(integer("n", "1e300").unwrap_err().rule.contains("out of range"));
        assert!(integer("n", "\"x\"").is_err());
        assert!(integer("n", "[7]").is_err());
    }

    #[test]
    fn lists_of_integers_are_read_in_place_and_odd_elements_still_count() {
        let read = |text: &str| {
            let mut all = Vec::new();
            integers("ids", text, |id| {
                all.push(id);
                Ok(())
            })
            .map(|()| all)
        };
        assert!(read("[]").unwrap().is_empty());
        assert_eq!(read("[ 1,2 , 30 ]").unwrap(), [1, 2, 30]);
        assert_eq!(read("[1, 2.0, \"3\", -4, 9223372036854775807]").unwrap(), [1, 2, 3, -4, i64::MAX]);
        assert!(read("[1, true]").is_err());
        assert!(read("[1, 2.5]").is_err());
        assert!(read("{}").is_err());
    }

    #[test]
    fn half_a_surrogate_pair_is_refused_and_whole_ones_are_read() {
        assert!(check_string("s", r#""\ud800""#).is_err());
        assert!(check_string("s", r#""\ud83d\ude00""#).unwrap());
        assert_eq!(string("s", r#""\ud83d\ude00\n""#).unwrap(), "😀\n");
        assert!(!check_string("s", "\"\"").unwrap());
        assert!(check_string("s", "5").unwrap_err().rule.contains("expected a string, found a number"));
    }
}
