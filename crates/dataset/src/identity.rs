//! What file this is, by the content of its first records: the same records stored another way are the same
//! file, and no full read is needed.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// SHA-256 over records as canonical JSON.
#[derive(Default)]
pub(crate) struct Identity {
    digest: Sha256,
    line: String,
}

impl Identity {
    /// Adds a record. Text that is no JSON adds nothing: it is refused elsewhere.
    pub(crate) fn add(&mut self, record: &str) {
        if let Ok(value) = serde_json::from_str::<Value>(record) {
            self.line.clear();
            canonical(&value, &mut self.line);
            self.line.push('\n');
            self.digest.update(&self.line);
        }
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.digest.finalize().into()
    }
}

/// Keys sorted, nulls of objects dropped, numbers by value.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().filter(|(_, value)| !value.is_null()).collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (index, value) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                canonical(value, out);
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

    #[test]
    fn the_way_a_record_is_written_does_not_matter() {
        let plain = identity(&[r#"{"a":1,"b":{"c":"x","d":[1,2.5]}}"#]);
        assert_eq!(plain, identity(&[r#" { "b": {"d": [1.0, 2.5], "e": null, "c": "\u0078"}, "a": 1e0 } "#]));
        assert_ne!(plain, identity(&[r#"{"a":2,"b":{"c":"x","d":[1,2.5]}}"#]));
        assert_ne!(plain, identity(&[r#"{"a":1,"b":{"c":"x","d":[1,2.5]}}"#, "{}"]));
    }
}
