//! The text that a server would get, out of the bodies that are sent to it.

use aiperf_tokenize::ChatTemplate;
use serde_json::{Value, json};

use super::AnonymizeError;

/// Why there is no text: a known field and a fixed rule, never what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The field.
    pub field: &'static str,
    /// The rule that is broken.
    pub rule: &'static str,
}

/// What is counted.
#[derive(Debug, PartialEq)]
pub(super) enum Prompt {
    Text(String),
    /// The request was given as tokens.
    Tokens(Vec<u32>),
}

/// A message whose content is text.
#[derive(Debug)]
pub(super) struct Message {
    role: String,
    text: String,
    /// As it was, for the template; the text otherwise.
    whole: Option<Value>,
}

impl Message {
    pub(super) fn new(role: &str, text: String) -> Message {
        Message { role: role.to_owned(), text, whole: None }
    }
}

type Outcome<T> = Result<T, AnonymizeError>;

fn refuse<T>(field: &'static str, rule: &'static str) -> Outcome<T> {
    Err(AnonymizeError::Refused(Refusal { field, rule }))
}

pub(super) fn parse(text: &str, field: &'static str) -> Outcome<Value> {
    serde_json::from_str(text).or_else(|_| refuse(field, "is not JSON"))
}

/// Messages through the template; without one: role, newline, content, newline, for each. Tools come first, as JSON.
pub(super) fn chat(
    messages: &[Message],
    tools: Option<&Value>,
    template: Option<&ChatTemplate>,
) -> Outcome<Prompt> {
    let tools = tools.filter(|tools| tools.as_array().is_none_or(|list| !list.is_empty()));
    if let Some(template) = template {
        let values: Vec<Value> = messages
            .iter()
            .map(|message| match &message.whole {
                Some(whole) => whole.clone(),
                None => json!({"role": message.role, "content": message.text}),
            })
            .collect();
        return match template.render_values(&Value::Array(values), tools, true) {
            Ok(text) => Ok(Prompt::Text(text)),
            Err(_) => refuse("messages", "the chat template of the tokenizer does not take these messages"),
        };
    }
    let mut text = tools.map(|tools| format!("{tools}\n")).unwrap_or_default();
    for message in messages {
        text.extend([&message.role, "\n", &message.text, "\n"]);
    }
    Ok(Prompt::Text(text))
}

/// The messages of a list.
pub(super) fn messages(list: &[Value], field: &'static str, into: &mut Vec<Message>) -> Outcome<()> {
    for item in list {
        let Value::Object(message) = item else { return refuse(field, "must be a list of objects") };
        // An item of another kind, such as the call of a tool, is text as it stands.
        let Some(role) = message.get("role") else {
            into.push(Message::new(field, item.to_string()));
            continue;
        };
        let Value::String(role) = role else { return refuse(field, "has a role that is no string") };
        let mut text = String::new();
        if let Some(content) = message.get("content") {
            contents(content, field, &mut text)?;
        }
        if let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) {
            text.push_str(&calls.to_string());
        }
        into.push(Message { role: role.clone(), text, whole: Some(item.clone()) });
    }
    Ok(())
}

/// The text of a content: a string, or a list of parts.
fn contents(content: &Value, field: &'static str, text: &mut String) -> Outcome<()> {
    match content {
        Value::Null => Ok(()),
        Value::String(content) => {
            text.push_str(content);
            Ok(())
        }
        Value::Array(parts) => {
            for part in parts {
                self::part(part, field, text)?;
            }
            Ok(())
        }
        _ => refuse(field, "has a content that is neither a string nor a list of parts"),
    }
}

fn part(part: &Value, field: &'static str, text: &mut String) -> Outcome<()> {
    const MEDIA: [&str; 5] = ["image", "audio", "video", "file", "document"];
    match part {
        Value::String(part) => text.push_str(part),
        Value::Object(map) => {
            let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
            if MEDIA.iter().any(|media| kind.contains(media) || map.contains_key(*media))
                || map.keys().any(|key| key.ends_with("_url") || key == "input_audio")
            {
                return Err(AnonymizeError::Media(field));
            }
            match (map.get("text"), map.get("content")) {
                (Some(Value::String(part)), _) => text.push_str(part),
                // A result of a tool has parts again.
                (_, Some(content)) if content.is_string() || content.is_array() => {
                    contents(content, field, text)?;
                }
                _ => text.push_str(&part.to_string()),
            }
        }
        _ => return refuse(field, "has a part that is neither a string nor an object"),
    }
    Ok(())
}

/// The prompt of a whole body, and the output limit that it sets.
pub(super) fn payload(body: &Value, template: Option<&ChatTemplate>) -> Outcome<(Prompt, Option<u64>)> {
    let Value::Object(map) = body else { return refuse("payload", "must be a JSON object") };
    let limit = ["max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens"]
        .iter()
        .find_map(|key| map.get(*key).and_then(Value::as_u64))
        .or_else(|| map.get("parameters")?.get("max_new_tokens")?.as_u64());
    let tools = map.get("tools").filter(|tools| !tools.is_null());
    let mut all = Vec::new();
    for (key, name) in [("system", "system"), ("instructions", "instructions")] {
        if let Some(before) = map.get(key).filter(|before| !before.is_null()) {
            let mut text = String::new();
            contents(before, name, &mut text)?;
            all.push(Message::new("system", text));
        }
    }
    let prompt = if let Some(list) = map.get("messages") {
        let Value::Array(list) = list else { return refuse("messages", "must be a list") };
        messages(list, "messages", &mut all)?;
        chat(&all, tools, template)?
    } else if let Some(prompt) = map.get("prompt") {
        plain(prompt, "prompt")?
    } else if let Some(input) = map.get("input") {
        match input {
            Value::Array(items) if items.iter().any(Value::is_object) => {
                messages(items, "input", &mut all)?;
                chat(&all, tools, template)?
            }
            _ if all.is_empty() => plain(input, "input")?,
            _ => {
                let mut text = String::new();
                contents(input, "input", &mut text)?;
                all.push(Message::new("user", text));
                chat(&all, tools, template)?
            }
        }
    } else if let Some(inputs) = map.get("inputs") {
        plain(inputs, "inputs")?
    } else if let Some(query) = map.get("query") {
        let passages = map.get("passages").or_else(|| map.get("documents")).or_else(|| map.get("texts"));
        let mut text = String::new();
        for value in std::iter::once(query).chain(passages.and_then(Value::as_array).into_iter().flatten()) {
            part(value, "query", &mut text)?;
            text.push('\n');
        }
        Prompt::Text(text)
    } else {
        return refuse("payload", "has none of `messages`, `prompt`, `input`, `inputs`, `query`");
    };
    Ok((prompt, limit))
}

/// A text, several texts, or tokens.
fn plain(value: &Value, field: &'static str) -> Outcome<Prompt> {
    match value {
        Value::String(text) => Ok(Prompt::Text(text.clone())),
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Ok(Prompt::Text(texts.join("\n")))
        }
        Value::Array(items) if !items.is_empty() => {
            let mut tokens = Vec::new();
            for item in items {
                let list = item.as_array().map_or(std::slice::from_ref(item), Vec::as_slice);
                for token in list {
                    match token.as_u64().and_then(|token| u32::try_from(token).ok()) {
                        Some(token) => tokens.push(token),
                        None => return refuse(field, "must be a text, a list of texts, or tokens"),
                    }
                }
            }
            Ok(Prompt::Tokens(tokens))
        }
        _ => refuse(field, "must be a text, a list of texts, or tokens"),
    }
}
