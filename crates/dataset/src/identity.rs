//! What file this is, by the content of its first records: the same records stored another way are the same
//! file, and no full read is needed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use serde_json::value::RawValue;
use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

/// Values nested deeper are none: what reads records as trees refuses them, too.
const DEEPEST: u32 = 127;

/// SHA-256 over records as canonical JSON.
#[derive(Default)]
pub(crate) struct Identity {
    digest: Sha256,
}

impl Identity {
    /// Adds a record. Text that is no JSON adds nothing: it is refused elsewhere.
    pub(crate) fn add(&mut self, record: &str) {
        let before = self.digest.clone();
        match canonical(record.trim_ascii(), 0, &mut self.digest) {
            Ok(()) => self.digest.update(b"\n"),
            Err(NoJson) => self.digest = before,
        }
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.digest.finalize().into()
    }
}

/// A text that is no JSON, or has no form as a tree.
struct NoJson;

impl From<serde_json::Error> for NoJson {
    fn from(_: serde_json::Error) -> NoJson {
        NoJson
    }
}

/// Takes one value in: keys sorted, nulls of objects dropped, numbers by value. Neither a tree nor another text is made
/// of it, since a record may be as long as the memory allows.
fn canonical(text: &str, depth: u32, out: &mut Sha256) -> Result<(), NoJson> {
    match text.as_bytes().first() {
        Some(b'{' | b'[') if depth >= DEEPEST => return Err(NoJson),
        Some(b'{') => {
            let entries: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            let entries = entries.iter().filter(|(_, value)| value.get() != "null");
            out.update(b"{");
            for (index, (key, value)) in entries.enumerate() {
                if index > 0 {
                    out.update(b",");
                }
                out.update(Value::from(key.as_str()).to_string());
                out.update(b":");
                canonical(value.get(), depth + 1, out)?;
            }
            out.update(b"}");
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            out.update(b"[");
            for (index, item) in items.into_iter().enumerate() {
                if index > 0 {
                    out.update(b",");
                }
                canonical(item.get(), depth + 1, out)?;
            }
            out.update(b"]");
        }
        Some(b'"') => match serde_json::from_str::<&RawValue>(text).map(RawValue::get)? {
            // Without an escape it is written as it would be anew.
            whole if memchr::memchr(b'\\', whole.as_bytes()).is_none() => out.update(whole),
            whole => serde_json::to_writer(Sink(out), &serde_json::from_str::<Cow<'_, str>>(whole)?)?,
        },
        Some(b'-' | b'0'..=b'9') => {
            let number: Number = serde_json::from_str(text)?;
            match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9.0e15 => {
                    out.update((float as i64).to_string());
                }
                _ => out.update(number.to_string()),
            }
        }
        _ => out.update(serde_json::from_str::<&RawValue>(text)?.get()),
    }
    Ok(())
}

/// A digest that takes what is written.
struct Sink<'d>(&'d mut Sha256);

impl io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(records: &[&str]) -> [u8; 32] {
        let mut identity = Identity::default();
        for record in records {
            identity.add(record);
        }
        identity.finish()
    }

    /// What a tree of the record says of it.
    fn by_tree(record: &str) -> Option<[u8; 32]> {
        fn write(value: &Value, out: &mut String) {
            match value {
                Value::Object(map) => {
                    let sorted: BTreeMap<_, _> = map.iter().filter(|(_, value)| !value.is_null()).collect();
                    out.push('{');
                    for (index, (key, value)) in sorted.into_iter().enumerate() {
                        out.push_str(if index > 0 { "," } else { "" });
                        out.push_str(&Value::from(key.as_str()).to_string());
                        out.push(':');
                        write(value, out);
                    }
                    out.push('}');
                }
                Value::Array(list) => {
                    out.push('[');
                    for (index, item) in list.iter().enumerate() {
                        out.push_str(if index > 0 { "," } else { "" });
                        write(item, out);
                    }
                    out.push(']');
                }
                Value::Number(number) => match number.as_f64() {
                    Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9.0e15 => {
                        out.push_str(&(float as i64).to_string());
                    }
                    _ => out.push_str(&number.to_string()),
                },
                other => out.push_str(&other.to_string()),
            }
        }
        let value: Value = serde_json::from_str(record).ok()?;
        let mut out = String::new();
        write(&value, &mut out);
        out.push('\n');
        Some(Sha256::digest(&out).into())
    }

    #[test]
    fn what_is_taken_in_is_what_a_tree_would_say() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        let mut records: Vec<String> = [1, 126, 127, 128, 129, 5000].map(nested).to_vec();
        records.extend(
            [
                r#" {"b": [1, null, true, {"x": null}], "a": "\u00e9\n\"\\\/\ud83d\ude00", "ü": "ü\u007f"} "#,
                r#"{"a": 1, "a": {"b": 2}, "\u0061": null}"#,
                r#"{"a": [1.0, -0.0, 1e3, 1E400]}"#,
                r#"{"a": [1.0, -0.0, 1e3, 18446744073709551615, 18446744073709551616, 9.5e15, 0.1]}"#,
                r#"{"a": "\ud800"}"#,
                r#"{"a": "\x"}"#,
                r#"{"a": 01}"#,
                r#"{"a": 1,}"#,
                r#"{"a": nul}"#,
                "[]",
                "null",
                "\"t\\u0041\"",
                "5.0",
                "",
                "{",
                "{} x",
            ]
            .map(str::to_owned),
        );
        for record in &records {
            let found = identity(&[record]);
            assert_eq!(found, by_tree(record).unwrap_or_else(|| identity(&[])), "{record}");
        }
    }

    #[test]
    fn the_way_a_record_is_written_does_not_matter() {
        let plain = identity(&[r#"{"a":1,"b":{"c":"x","d":[1,2.5]}}"#]);
        assert_eq!(plain, identity(&[r#" { "b": {"d": [1.0, 2.5], "e": null, "c": "\u0078"}, "a": 1e0 } "#]));
        assert_ne!(plain, identity(&[r#"{"a":2,"b":{"c":"x","d":[1,2.5]}}"#]));
        assert_ne!(plain, identity(&[r#"{"a":1,"b":{"c":"x","d":[1,2.5]}}"#, "{}"]));
    }
}
