//! What is known of a session without its spans.

use super::attributes::Field;
use crate::json::Fault;
use crate::public::Value;

/// The columns that a session can be chosen by.
pub(crate) const COLUMNS: [&str; 4] = ["harness", "models", "benchmark", "session_id"];

/// A session without its spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) session_id: String,
    pub(crate) harness: String,
    pub(crate) models: Vec<String>,
    pub(crate) benchmark: String,
}

impl Head {
    /// Takes it from a row that has at least [`COLUMNS`].
    pub(crate) fn of(row: &Value) -> Result<Head, Fault> {
        let text = |name: &'static str| {
            let field = row.get(name).and_then(Field::of);
            field.map_or(Ok(String::new()), |field| field.string(name).map(String::from))
        };
        let session_id = text("session_id")?;
        if session_id.is_empty() {
            return Err(Fault::new("session_id", "is missing; every session needs one"));
        }
        // It becomes a header of every request.
        if session_id.chars().any(char::is_control) {
            return Err(Fault::new("session_id", "has control characters, which no header can carry"));
        }
        let models = match row.get("models") {
            Some(Value::List(models)) => models
                .iter()
                .filter_map(Field::of)
                .map(|model| model.string("models").map(String::from))
                .collect::<Result<_, _>>()?,
            // One model, in exports that have no lists.
            Some(Value::Text(model)) => vec![model.clone()],
            Some(Value::Null) | None => Vec::new(),
            Some(_) => return Err(Fault::new("models", "must be a list of strings")),
        };
        Ok(Head { session_id, harness: text("harness")?, models, benchmark: text("benchmark")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(row: &str) -> Result<Head, Fault> {
        Head::of(&serde_json::from_str::<serde_json::Value>(row).unwrap().into())
    }

    #[test]
    fn a_row_is_read_with_what_it_lacks() {
        let head = of(r#"{"session_id":"a","models":["m",null,"n"],"harness":"h","spans":[]}"#).unwrap();
        assert_eq!(
            head,
            Head {
                session_id: "a".into(),
                harness: "h".into(),
                models: vec!["m".into(), "n".into()],
                benchmark: String::new()
            }
        );
        assert!(of(r#"{"harness":"h"}"#).unwrap_err().rule.contains("every session needs one"));
        assert!(of(r#"{"session_id":7}"#).is_err());
        assert!(of(r#"{"session_id":"a\r\nx-evil: 1"}"#).unwrap_err().rule.contains("control characters"));
    }
}
