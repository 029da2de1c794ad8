//! Credentials among the extra keys of a body (`--extra-inputs`): they are sent, and recorded nowhere else.

use serde_json::{Map, Value};

use crate::redact::redact_text;
use crate::secret::{REDACTED, is_secret_name, looks_like_credential};

/// `extras` as results record them: what looks like a credential is hidden at every depth.
pub fn shown_extras(extras: &Map<String, Value>) -> Map<String, Value> {
    extras.iter().map(|(name, value)| (name.clone(), shown_extra(name, value))).collect()
}

/// The same of one key.
pub fn shown_extra(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if is_secret_name(&as_header(name)) || looks_like_credential(text) => {
            REDACTED.into()
        }
        Value::String(text) => redact_text(text).into(),
        Value::Number(_) if is_numeric_secret(name) => REDACTED.into(),
        Value::Array(items) => items.iter().map(|item| shown_extra(name, item)).collect(),
        Value::Object(inner) => Value::Object(shown_extras(inner)),
        other => other.clone(),
    }
}

/// The texts among `extras` that a server may echo and nobody should read. Only names that say plainly what they are,
/// and values that look like a key: an `author` must not vanish from every answer.
pub fn secrets_of_extras(extras: &Map<String, Value>) -> Vec<String> {
    extras.iter().flat_map(|(name, value)| secrets_of_extra(name, value)).collect()
}

/// The same of one key.
pub fn secrets_of_extra(name: &str, value: &Value) -> Vec<String> {
    let mut secrets = Vec::new();
    collect(name, value, &mut secrets);
    secrets
}

/// Whether a name says plainly that its value is a credential.
pub fn names_a_secret(name: &str) -> bool {
    const PLAIN: [&str; 9] = [
        "api-key",
        "apikey",
        "authorization",
        "password",
        "passwd",
        "passphrase",
        "secret",
        "access-token",
        "auth-token",
    ];
    let name = as_header(name).to_ascii_lowercase();
    PLAIN.iter().any(|part| name.contains(part))
}

fn collect(name: &str, value: &Value, secrets: &mut Vec<String>) {
    match value {
        Value::String(text)
            if names_a_secret(name) || looks_like_credential(text) || redact_text(text) != *text =>
        {
            secrets.push(text.clone());
        }
        Value::Number(number) if is_numeric_secret(name) => secrets.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(name, item, secrets)),
        Value::Object(inner) => inner.iter().for_each(|(name, value)| collect(name, value, secrets)),
        _ => {}
    }
}

fn as_header(name: &str) -> String {
    name.replace('_', "-")
}

/// Numbers under names with `token` in them count tokens (`max_tokens`, `stop_token_ids`).
fn is_numeric_secret(name: &str) -> bool {
    let name = as_header(name);
    is_secret_name(&name) && !name.to_ascii_lowercase().contains("token")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extras(value: Value) -> Map<String, Value> {
        let Value::Object(extras) = value else { panic!("{value}") };
        extras
    }

    #[test]
    fn credentials_are_hidden_at_every_depth_and_limits_are_not() {
        let all = extras(json!({
            "max_tokens": 7,
            "stop_token_ids": [1, 2],
            "temperature": 0.5,
            "keyword": "blue",
            "api_key": "planted",
            "password": 1_234_567,
            "upstream": {"keys": ["sk-planted-0123456789", "blue"], "auth": [{"token": "planted"}]},
            "callback": "https://me:planted@h/x?sig=planted&page=2",
        }));
        let shown = shown_extras(&all);
        assert_eq!(
            Value::Object(shown),
            json!({
                "max_tokens": 7,
                "stop_token_ids": [1, 2],
                "temperature": 0.5,
                "keyword": "blue",
                "api_key": REDACTED,
                "password": REDACTED,
                "upstream": {"keys": [REDACTED, "blue"], "auth": [{"token": REDACTED}]},
                "callback": "https://<redacted>@h/x?sig=<redacted>&page=2",
            })
        );
    }

    #[test]
    fn only_what_is_plainly_a_secret_is_searched_for_in_answers() {
        let all = extras(json!({
            "author": "shakespeare",
            "stop_token": "<|end|>",
            "api_key": "one",
            "nested": {"db_password": ["two"], "other": "hf_0123456789abcdef"},
        }));
        assert_eq!(secrets_of_extras(&all), ["one", "two", "hf_0123456789abcdef"]);
    }
}
