//! Texts of recorded inputs.

use aiperf_types::Content;
use serde_json::Value;

/// Hands out every text of an input.
pub(crate) fn each(content: &Content, visit: &mut dyn FnMut(&str)) {
    match content {
        Content::Parts { texts, .. } => {
            texts.iter().flat_map(|group| &group.contents).for_each(|text| visit(text));
        }
        Content::Messages { messages, .. } => {
            for message in messages {
                if let Ok(message) = serde_json::from_str::<Value>(message.get()) {
                    said(&message["content"], visit);
                }
            }
        }
        Content::Payload(body) => {
            let Ok(body) = serde_json::from_str::<Value>(body.get()) else { return };
            for message in body["messages"].as_array().into_iter().flatten() {
                said(&message["content"], visit);
            }
            for key in ["prompt", "input"] {
                said(&body[key], visit);
            }
        }
    }
}

/// A text, or a list of texts and parts.
fn said(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(parts) => {
            for part in parts {
                match part {
                    Value::String(text) => visit(text),
                    _ => {
                        if let Some(text) = part["text"].as_str() {
                            visit(text);
                        }
                    }
                }
            }
        }
        _ => {}
    }
}
