//! Recorded request controls, as keys of the body.

use serde_json::{Map, Number, Value};

use super::attributes::Attributes;
use crate::json::{self, Fault};

const PREFIX: &str = "gen_ai.request.";

/// Numbers that have the same name in the body: attribute, key, and whether it is a whole number.
const NUMBERS: [(&str, &str, bool); 6] = [
    ("gen_ai.request.temperature", "temperature", false),
    ("gen_ai.request.top_p", "top_p", false),
    ("gen_ai.request.top_k", "top_k", true),
    ("gen_ai.request.frequency_penalty", "frequency_penalty", false),
    ("gen_ai.request.presence_penalty", "presence_penalty", false),
    ("gen_ai.request.seed", "seed", true),
];
const STOP: &str = "gen_ai.request.stop_sequences";

/// Controls that are kept in another way.
const ELSEWHERE: [&str; 2] = ["model", "max_tokens"];

/// The body keys of a call.
pub(super) fn read(attributes: &Attributes<'_>) -> Result<Map<String, Value>, Fault> {
    let mut body = Map::new();
    for (attribute, key, whole) in NUMBERS {
        let Some(field) = attributes.get(attribute) else { continue };
        let number = if whole {
            Number::from(field.integer(attribute)?)
        } else {
            let number = field.number(attribute)?;
            Number::from_f64(number).ok_or_else(|| Fault::new(attribute, "must be a finite number"))?
        };
        body.insert(key.to_owned(), Value::Number(number));
    }
    if let Some(field) = attributes.get(STOP) {
        let text = field.inner(STOP)?;
        let stops = if text.is_empty() { Vec::new() } else { json::list(STOP, &text)? };
        let stops = stops
            .into_iter()
            .map(|stop| json::string(STOP, stop).map(|stop| Value::String(stop.into_owned())))
            .collect::<Result<Vec<_>, _>>()?;
        if !stops.is_empty() {
            body.insert("stop".to_owned(), Value::Array(stops));
        }
    }
    Ok(body)
}

/// Recorded controls that no body key is known for.
pub(super) fn unknown<'s>(attributes: &'s Attributes<'_>) -> impl Iterator<Item = &'s str> {
    let known = |name: &str| {
        let is = |attribute: &str| attribute.strip_prefix(PREFIX) == Some(name);
        ELSEWHERE.contains(&name) || is(STOP) || NUMBERS.iter().any(|(attribute, ..)| is(attribute))
    };
    attributes.below(PREFIX).filter(move |name| !known(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(text: &str) -> Result<(Value, Vec<String>), Fault> {
        let attributes = Attributes::read(text)?;
        let unknown = unknown(&attributes).map(str::to_owned).collect();
        Ok((Value::Object(read(&attributes)?), unknown))
    }

    #[test]
    fn all_known_controls_reach_the_body_and_the_others_are_named() {
        let (body, unknown) = of(
            r#"{"gen_ai.request.temperature":0.0,"gen_ai.request.top_p":0.9,"gen_ai.request.top_k":40.0,
                "gen_ai.request.frequency_penalty":0.5,"gen_ai.request.presence_penalty":-1,"gen_ai.request.seed":"7",
                "gen_ai.request.stop_sequences":["</done>"],"gen_ai.request.max_tokens":5,"gen_ai.request.model":"m",
                "gen_ai.request.choice.count":1,"gen_ai.request.encoding_formats":null,"gen_ai.usage.input_tokens":1}"#,
        )
        .unwrap();
        assert_eq!(
            body,
            json!({"temperature": 0.0, "top_p": 0.9, "top_k": 40, "frequency_penalty": 0.5,
                "presence_penalty": -1.0, "seed": 7, "stop": ["</done>"]})
        );
        assert_eq!(unknown, ["choice.count"]);
    }

    #[test]
    fn stop_sequences_are_a_list_or_its_text_and_are_left_out_when_there_are_none() {
        assert_eq!(
            of(r#"{"gen_ai.request.stop_sequences":"[\"a\",\"b\"]"}"#).unwrap().0,
            json!({"stop": ["a", "b"]})
        );
        assert_eq!(of(r#"{"gen_ai.request.stop_sequences":[]}"#).unwrap().0, json!({}));
        assert_eq!(of(r#"{"gen_ai.request.stop_sequences":""}"#).unwrap().0, json!({}));
        assert!(of(r#"{"gen_ai.request.stop_sequences":[1]}"#).is_err());
        assert!(of(r#"{"gen_ai.request.stop_sequences":{"a":1}}"#).is_err());
    }

    #[test]
    fn a_control_that_is_no_number_is_refused_by_name() {
        for text in [
            r#"{"gen_ai.request.temperature":"warm"}"#,
            r#"{"gen_ai.request.temperature":"inf"}"#,
            r#"{"gen_ai.request.temperature":1e999}"#,
            r#"{"gen_ai.request.seed":1.5}"#,
            r#"{"gen_ai.request.top_p":true}"#,
        ] {
            let fault = of(text).unwrap_err();
            assert!(fault.field.starts_with("gen_ai.request."), "{text}: {fault:?}");
        }
    }
}
