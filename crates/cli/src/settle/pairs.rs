//! `key:value` pairs: `--extra-inputs` and `--header`.

use aiperf_config::{REDACTED, is_secret_pair, shown_extra, shown_extras};
use serde_json::{Map, Number, Value};

use crate::usage::UsageError;

/// The keys that several `--extra-inputs` add to a body, in order; later ones win.
pub(super) fn extra_inputs<'a>(
    name: &str,
    arguments: impl Iterator<Item = &'a str>,
) -> Result<Vec<(String, Value)>, UsageError> {
    let mut extra = Vec::new();
    let refuse = |value: &str, rule: String| UsageError::Value {
        flag: name.into(),
        value: value.into(),
        rule,
        similar: None,
    };
    for argument in arguments {
        if argument.trim_start().starts_with('{') {
            // What is no JSON cannot be told to have no credential in it.
            let object = serde_json::from_str::<Map<String, Value>>(argument)
                .map_err(|error| refuse("{…", format!("one JSON object ({error})")))?;
            extra.extend(object);
            continue;
        }
        let pairs = split_extras(argument).map_err(|rest| {
            let rule = "key:value pairs; a value with a comma needs the JSON form '{\"key\":\"value\"}'";
            refuse(rest, rule.into())
        })?;
        extra.extend(pairs.into_iter().map(|(key, value)| (key.to_owned(), scalar(value.trim()))));
    }
    Ok(extra)
}

/// Keys of pairs whose value goes on, behind a blank, with what looks like another pair: each with the key of that one.
pub(super) fn pairs_in_values<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<(&'a str, &'a str)> {
    let pairs = arguments.filter(|argument| !argument.trim_start().starts_with('{')).map(split_extras);
    pairs.flatten().flatten().filter_map(|(key, value)| Some((key, key_within(value)?))).collect()
}

/// A name behind a blank, with a colon and a value behind it.
fn key_within(value: &str) -> Option<&str> {
    let is_name = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    value.split_whitespace().skip(1).find_map(|word| {
        let (name, rest) = word.split_once(':')?;
        (is_name(name) && !rest.is_empty() && !rest.starts_with("//")).then_some(name)
    })
}

/// The pairs of an argument that is no JSON object; what is left of it where that is no pair.
fn split_extras(argument: &str) -> Result<Vec<(&str, &str)>, &str> {
    let mut pairs = Vec::new();
    let mut rest = argument.trim();
    while !rest.is_empty() {
        let (key, after) = split_pair(rest).ok_or(rest)?;
        // A template may hold commas: these two run to the end.
        let whole = ["payload_template", "response_field"].contains(&key);
        let (value, next) = if whole { (after, "") } else { after.split_once(',').unwrap_or((after, "")) };
        pairs.push((key, value));
        rest = next.trim_start();
    }
    Ok(pairs)
}

fn split_pair(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    let key = key.trim();
    (!key.is_empty() && !key.contains(',')).then_some((key, value))
}

/// `true`, `null`, plain integers and plain decimals become JSON scalars, all else stays text.
fn scalar(text: &str) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        "null" | "none" => return Value::Null,
        _ => {}
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = match digits.split_once('.') {
        None if !digits.is_empty() && all_digits(digits) && (digits == "0" || !digits.starts_with('0')) => {
            text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok()
        }
        Some((whole, part)) if digits.len() > 1 && all_digits(whole) && all_digits(part) => {
            text.parse().ok().and_then(Number::from_f64)
        }
        _ => None,
    };
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

/// The headers of one `--header` argument: `Name: value`, several with commas where what follows the comma is again
/// `Name:`, or a JSON object of texts.
pub(super) fn headers(name: &str, argument: &str) -> Result<Vec<(String, String)>, UsageError> {
    let refuse = |rule: &str| UsageError::Value {
        flag: name.into(),
        // The argument may hold a credential.
        value: argument.split_once(':').map_or(REDACTED.into(), |(name, _)| format!("{name}: {REDACTED}")),
        rule: rule.into(),
        similar: None,
    };
    let pairs = split_headers(argument).ok_or_else(|| refuse("Name: value, or a JSON object of texts"))?;
    for (header, value) in &pairs {
        if header.is_empty() || !header.bytes().all(is_token) {
            return Err(refuse("a header name of letters, digits and dashes before the colon"));
        }
        if value.bytes().any(|byte| byte < 0x20 && byte != b'\t' || byte == 0x7f) {
            return Err(refuse("a header value without line breaks"));
        }
        if ["content-length", "transfer-encoding", "expect", "upgrade", "accept-encoding"]
            .contains(&header.to_ascii_lowercase().as_str())
        {
            return Err(refuse("a header that does not change how the exchange is framed"));
        }
    }
    Ok(pairs)
}

fn split_headers(argument: &str) -> Option<Vec<(String, String)>> {
    let argument = argument.trim();
    if argument.starts_with('{') {
        let object: Map<String, Value> = serde_json::from_str(argument).ok()?;
        return object
            .into_iter()
            .map(|(name, value)| match value {
                Value::String(text) => Some((name, text)),
                Value::Number(number) => Some((name, number.to_string())),
                Value::Bool(on) => Some((name, on.to_string())),
                _ => None,
            })
            .collect();
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for part in argument.split(',') {
        match (part.split_once(':'), pairs.last_mut()) {
            (Some((name, value)), last) => {
                let plain =
                    !name.trim().is_empty() && name.trim().bytes().all(is_token) && !value.starts_with("//");
                match last {
                    Some((_, text)) if !plain => {
                        text.push(',');
                        text.push_str(part);
                    }
                    _ => pairs.push((name.trim().to_owned(), value.to_owned())),
                }
            }
            (None, Some((_, text))) => {
                text.push(',');
                text.push_str(part);
            }
            (None, None) => return None,
        }
    }
    for (_, value) in &mut pairs {
        *value = value.trim().to_owned();
    }
    Some(pairs)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A `--header` argument with the values of credential headers hidden.
pub(crate) fn redact_headers(argument: &str) -> String {
    match split_headers(argument) {
        None => REDACTED.to_owned(),
        Some(pairs) => pairs
            .iter()
            .map(|(name, value)| {
                format!("{name}: {}", if is_secret_pair(name, value) { REDACTED } else { value.as_str() })
            })
            .collect::<Vec<_>>()
            .join(","),
    }
}

/// An argument of `--extra-inputs` for people to read: what looks like a credential is hidden.
pub(crate) fn redact_extras(argument: &str) -> String {
    if argument.trim_start().starts_with('{') {
        return match serde_json::from_str::<Map<String, Value>>(argument) {
            Ok(extras) => match shown_extras(&extras) {
                shown if shown == extras => argument.to_owned(),
                shown => Value::Object(shown).to_string(),
            },
            Err(_) => REDACTED.to_owned(),
        };
    }
    let Ok(pairs) = split_extras(argument) else { return REDACTED.to_owned() };
    let shown = pairs.iter().map(|(key, value)| {
        let typed = scalar(value.trim());
        match shown_extra(key, &typed) {
            shown if shown == typed => format!("{key}:{value}"),
            Value::String(shown) => format!("{key}:{shown}"),
            _ => format!("{key}:{REDACTED}"),
        }
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extra(arguments: &[&str]) -> Value {
        let pairs = extra_inputs("--extra-inputs", arguments.iter().copied()).unwrap();
        Value::Object(pairs.into_iter().collect())
    }

    #[test]
    fn a_value_that_goes_on_with_another_pair_is_found() {
        let found = |argument: &'static str| pairs_in_values(std::iter::once(argument));
        assert_eq!(found("temperature:0 top_p:1"), [("temperature", "top_p")]);
        assert_eq!(found("a:1,b:x y c:{}"), [("b", "c")]);
        for argument in
            ["a:1,b:2", "a:see http://h", "a: b:c", "stop:Hi: there", "{\"a\":\"0 b:1\"}", "a:x 12:30"]
        {
            assert_eq!(found(argument), [], "{argument}");
        }
    }

    #[test]
    fn values_become_the_scalars_they_look_like() {
        assert_eq!(
            extra(&["d:http://x:1,e:007,f:1e3,g:-2,h:NULL,i:True,j:1.50,k:+1,l:.5,m:5.,n:nan,o:none"]),
            json!({"d": "http://x:1", "e": "007", "f": "1e3", "g": -2, "h": null, "i": true, "j": 1.5, "k": "+1",
                   "l": 0.5, "m": 5.0, "n": "nan", "o": null})
        );
        assert_eq!(extra(&["a: hello world ,b:\"q\""]), json!({"a": "hello world", "b": "\"q\""}));
    }

    #[test]
    fn objects_and_pairs_mix_and_later_ones_win() {
        assert_eq!(extra(&["{\"a\":1,\"b\":{\"c\":2}}", "b:2"]), json!({"a": 1, "b": 2}));
        assert_eq!(
            extra(&["payload_template:{\"x\": [1, 2]},y"]),
            json!({"payload_template": "{\"x\": [1, 2]},y"})
        );
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        for argument in ["noColon", "a:1,b", ":1", "{\"a\":"] {
            let error = extra_inputs("--extra-inputs", [argument].into_iter()).unwrap_err().to_string();
            assert!(error.starts_with("--extra-inputs: expected"), "{error}");
        }
        let error = extra_inputs("-e", ["{\"password\": \"planted\""].into_iter()).unwrap_err().to_string();
        assert!(!error.contains("planted"), "{error}");
    }

    #[test]
    fn credentials_are_hidden_in_both_forms_and_all_else_stays_as_typed() {
        for (argument, shown) in [
            ("max_tokens:7,stop:\"a b\"", "max_tokens:7,stop:\"a b\""),
            ("api_key:planted,max_tokens:7", "api_key:<redacted>,max_tokens:7"),
            ("password:12345678", "password:<redacted>"),
            ("note: sk-planted-0123456789 ", "note:<redacted>"),
            ("callback:http://u:planted@h", "callback:http://<redacted>@h"),
            ("{\"a\": 1, \"b\": [\"c\"]}", "{\"a\": 1, \"b\": [\"c\"]}"),
            ("{\"api_key\": \"pl\\u0061nted\", \"a\": 1}", "{\"api_key\":\"<redacted>\",\"a\":1}"),
        ] {
            assert_eq!(redact_extras(argument), shown);
        }
    }

    #[test]
    fn header_values_are_text_and_keep_their_commas() {
        let read = |argument: &str| headers("--header", argument).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read("X-A:1"), [pair("X-A", "1")]);
        assert_eq!(read("A: b,C: d"), [pair("A", "b"), pair("C", "d")]);
        assert_eq!(read("Accept-Language: de, en;q=0.5"), [pair("Accept-Language", "de, en;q=0.5")]);
        assert_eq!(read("Link: http://a, http://b"), [pair("Link", "http://a, http://b")]);
        assert_eq!(read("{\"X-A\":\"b, c\",\"N\":1}"), [pair("X-A", "b, c"), pair("N", "1")]);
    }

    #[test]
    fn bad_headers_are_refused_without_showing_their_value() {
        for argument in ["planted", "bad name: planted", "X-A: planted\nX-B: y", "Content-Length: 9planted"] {
            let error = headers("--header", argument).unwrap_err().to_string();
            assert!(error.starts_with("--header: expected") && !error.contains("planted"), "{error}");
        }
    }
}
