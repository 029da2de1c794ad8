//! Recorded messages, made of parts, as the messages of a chat body.

use std::borrow::Cow;

use super::attributes::{Field, unwrapped, write_compact};
use crate::json::{self, Fault};
use crate::parquet::write_string;

const SYSTEM: &str = "gen_ai.system_instructions";
const INPUT: &str = "gen_ai.input.messages";

/// Appends the list of chat messages that system instructions and input messages come to.
pub(super) fn write(
    system: Option<&Field<'_>>,
    input: Option<&Field<'_>>,
    out: &mut String,
) -> Result<(), Fault> {
    let mut messages = Messages { out, count: 0 };
    messages.out.push('[');
    if let Some(system) = system {
        instructions(system, &mut messages).map_err(|fault| fault.within(SYSTEM))?;
    }
    if let Some(input) = input {
        let input = input.inner(INPUT)?;
        for (number, message) in array(INPUT, &input)?.into_iter().enumerate() {
            self::message(message, &mut messages)
                .map_err(|fault| fault.within(format!("{INPUT}[{number}]")))?;
        }
    }
    if messages.count == 0 {
        return Err(Fault::new(INPUT, "has no message; a chat call needs one"));
    }
    out.push(']');
    Ok(())
}

/// The elements of a list that may come from the inside of a string.
fn array<'a>(name: &'static str, text: &'a str) -> Result<Vec<&'a str>, Fault> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    json::list(name, text)
}

/// One system message: of the parts of a list, or of any other text as it is.
fn instructions(field: &Field<'_>, messages: &mut Messages<'_>) -> Result<(), Fault> {
    let plain = match field {
        Field::Json(text) if !text.starts_with('"') => None,
        other => Some(other.string("")?),
    };
    let list = match &plain {
        Some(plain) if plain.trim_start().starts_with('[') => Some(Cow::Borrowed(plain.trim())),
        Some(_) => None,
        None => Some(field.inner("")?),
    };
    // A text in brackets is a list of parts only when it is one.
    let parts = list.as_deref().and_then(|list| json::list("", list).ok());
    let parts = parts.filter(|parts| parts.iter().all(|part| part.starts_with('{')));
    let mut open = Open::new("system".into());
    match (parts, &plain) {
        (Some(parts), _) if parts.is_empty() => return Ok(()),
        (Some(parts), _) => {
            for (number, part) in parts.into_iter().enumerate() {
                match Part::read(part).map_err(|fault| fault.within(format!("[{number}]")))? {
                    Part::Response { .. } => {
                        return Err(Fault::new(
                            "type",
                            "is tool_call_response, which is no part of instructions",
                        )
                        .within(format!("[{number}]")));
                    }
                    other => open.take(other),
                }
            }
        }
        (None, Some(plain)) if plain.is_empty() => return Ok(()),
        (None, Some(plain)) => open.content.push_str(plain),
        (None, None) => {
            let found = list.as_deref().map_or("nothing", json::kind);
            return Err(Fault::new("", format!("expected a text or a list of parts, found {found}")));
        }
    }
    messages.close(&mut open);
    Ok(())
}

fn message(text: &str, messages: &mut Messages<'_>) -> Result<(), Fault> {
    let [role, parts] = json::object(text, &["role", "parts"])?;
    let role = json::string("role", role.ok_or_else(|| Fault::new("role", "is missing"))?)?;
    let parts = unwrapped("parts", parts.ok_or_else(|| Fault::new("parts", "is missing"))?)?;
    let mut open = Open::new(if role == "developer" { "system".into() } else { role.into_owned() });
    let before = messages.count;
    for (number, part) in array("parts", &parts)?.into_iter().enumerate() {
        match Part::read(part).map_err(|fault| fault.within(format!("parts[{number}]")))? {
            Part::Response { id, content } => {
                if !open.is_empty() {
                    messages.close(&mut open);
                }
                messages.response(id.as_deref(), &content);
            }
            other => open.take(other),
        }
    }
    if !open.is_empty() || messages.count == before {
        messages.close(&mut open);
    }
    Ok(())
}

/// A part of a message.
enum Part {
    Text(String),
    Thinking(String),
    /// A call of a tool, as JSON text.
    Call(String),
    Response {
        id: Option<String>,
        content: String,
    },
}

impl Part {
    fn read(text: &str) -> Result<Part, Fault> {
        const KEYS: [&str; 9] =
            ["type", "content", "thinking", "id", "name", "arguments", "result", "response", "text"];
        let [kind, content, thinking, id, name, arguments, result, response, text] =
            json::object(text, &KEYS)?;
        let kind =
            json::string("type", kind.ok_or_else(|| Fault::new("type", "is missing; every part has one"))?)?;
        let said = |name, field: Option<&str>| {
            let field = field.or(text).ok_or_else(|| Fault::new(name, "is missing"))?;
            json::string(name, field).map(String::from)
        };
        match &*kind {
            "text" => Ok(Part::Text(said("content", content)?)),
            "thinking" => Ok(Part::Thinking(said("thinking", thinking.or(content))?)),
            "tool_call" => {
                let name = json::string("name", name.ok_or_else(|| Fault::new("name", "is missing"))?)?;
                let mut call = String::from("{");
                if let Some(id) = id {
                    call.push_str("\"id\":");
                    write_string(&as_text("id", id)?, &mut call);
                    call.push(',');
                }
                call.push_str("\"type\":\"function\",\"function\":{\"name\":");
                write_string(&name, &mut call);
                call.push_str(",\"arguments\":");
                write_string(
                    &arguments.map_or(Ok("{}".into()), |text| as_text("arguments", text))?,
                    &mut call,
                );
                call.push_str("}}");
                Ok(Part::Call(call))
            }
            "tool_call_response" => Ok(Part::Response {
                id: id.map(|id| as_text("id", id)).transpose()?,
                content: result.or(response).map_or(Ok("null".into()), |text| as_text("result", text))?,
            }),
            other => Err(Fault::new(
                "type",
                format!(
                    "is {}; known are text, thinking, tool_call and tool_call_response",
                    json::excerpt(other)
                ),
            )),
        }
    }
}

/// A string as it is, anything else as compact JSON.
fn as_text(name: &'static str, text: &str) -> Result<String, Fault> {
    if text.starts_with('"') {
        return json::string(name, text).map(String::from);
    }
    let mut compact = String::with_capacity(text.len());
    write_compact(text, &mut compact);
    Ok(compact)
}

/// A message under construction.
struct Open {
    role: String,
    content: String,
    reasoning: String,
    /// With commas between.
    calls: String,
}

impl Open {
    fn new(role: String) -> Open {
        Open { role, content: String::new(), reasoning: String::new(), calls: String::new() }
    }

    fn is_empty(&self) -> bool {
        self.content.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    fn take(&mut self, part: Part) {
        match part {
            Part::Text(text) => self.content.push_str(&text),
            Part::Thinking(text) => self.reasoning.push_str(&text),
            Part::Call(call) => {
                if !self.calls.is_empty() {
                    self.calls.push(',');
                }
                self.calls.push_str(&call);
            }
            // Those are messages of their own.
            Part::Response { .. } => {}
        }
    }
}

/// The messages that were written.
struct Messages<'o> {
    out: &'o mut String,
    count: usize,
}

impl Messages<'_> {
    fn start(&mut self, role: &str) {
        if self.count > 0 {
            self.out.push(',');
        }
        self.count += 1;
        self.out.push_str("{\"role\":");
        write_string(role, self.out);
    }

    /// Writes what is under construction, and starts anew with the same role.
    fn close(&mut self, open: &mut Open) {
        self.start(&open.role);
        self.out.push_str(",\"content\":");
        write_string(&open.content, self.out);
        if !open.reasoning.is_empty() {
            self.out.push_str(",\"reasoning_content\":");
            write_string(&open.reasoning, self.out);
        }
        if !open.calls.is_empty() {
            self.out.push_str(",\"tool_calls\":[");
            self.out.push_str(&open.calls);
            self.out.push(']');
        }
        self.out.push('}');
        open.content.clear();
        open.reasoning.clear();
        open.calls.clear();
    }

    fn response(&mut self, id: Option<&str>, content: &str) {
        self.start("tool");
        if let Some(id) = id {
            self.out.push_str(",\"tool_call_id\":");
            write_string(id, self.out);
        }
        self.out.push_str(",\"content\":");
        write_string(content, self.out);
        self.out.push('}');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn made(system: Option<&str>, input: Option<&Value>) -> Result<Value, Fault> {
        let mut out = String::new();
        let json = |text: &str| Field::Json(text.to_owned().into());
        let (system, input) = (system.map(json), input.map(|input| json(&input.to_string())));
        write(system.as_ref(), input.as_ref(), &mut out)?;
        Ok(serde_json::from_str(&out).unwrap())
    }

    fn of(input: &Value) -> Result<Value, Fault> {
        made(None, Some(input))
    }

    #[test]
    fn instructions_are_one_system_message_of_parts_or_of_the_text_as_it_is() {
        let hello = json!([{"role": "user", "parts": [{"type": "text", "content": "hello"}]}]);
        let system = |text: &str| {
            let messages = made(Some(text), Some(&hello)).unwrap();
            assert_eq!(messages.as_array().unwrap().last().unwrap()["content"], "hello");
            let with = messages.as_array().unwrap().len() == 2;
            with.then(|| messages[0]["content"].as_str().unwrap().to_owned())
        };
        assert_eq!(system(r#""be careful ""#).unwrap(), "be careful ");
        assert_eq!(system(r#""[INST] be careful""#).unwrap(), "[INST] be careful");
        assert_eq!(system(r#""[1, 2]""#).unwrap(), "[1, 2]");
        let parts = r#"[{"type":"text","content":"a "},{"type":"text","content":"b"}]"#;
        assert_eq!(system(parts).unwrap(), "a b");
        assert_eq!(system(&Value::from(parts).to_string()).unwrap(), "a b");
        assert_eq!(system(r#""""#), None);
        assert_eq!(system("[]"), None);
        assert_eq!(system(r#""[]""#), None);
        let fault = made(Some(r#"[{"type":"text","content":"a"},{"type":"image"}]"#), None).unwrap_err();
        assert_eq!(fault.field, "gen_ai.system_instructions.[1].type");
        assert!(made(Some("7"), Some(&hello)).is_err());
    }

    #[test]
    fn a_result_of_a_tool_is_a_message_of_its_own_between_what_is_before_and_after() {
        let messages = of(&json!([{"role": "user", "parts": [
            {"type": "text", "content": "Before. "},
            {"type": "tool_call_response", "id": "c2", "result": {"ok": true, "lines": [1, 2]}},
            {"type": "tool_call_response", "id": "c3", "response": "text"},
            {"type": "text", "content": "After."},
        ]}]))
        .unwrap();
        assert_eq!(
            messages,
            json!([
                {"role": "user", "content": "Before. "},
                {"role": "tool", "tool_call_id": "c2", "content": "{\"ok\":true,\"lines\":[1,2]}"},
                {"role": "tool", "tool_call_id": "c3", "content": "text"},
                {"role": "user", "content": "After."},
            ])
        );
    }

    #[test]
    fn thoughts_and_calls_belong_to_the_message_and_content_is_always_there() {
        let messages = of(&json!([
            {"role": "developer", "parts": []},
            {"role": "assistant", "parts": [
                {"type": "thinking", "thinking": "Look"},
                {"type": "tool_call", "id": "c1", "name": "read", "arguments": {"b": 1, "a": "x y"}},
                {"type": "tool_call", "id": "c2", "name": "stop", "arguments": "{ }"},
                {"type": "thinking", "content": " first"},
            ]},
        ]))
        .unwrap();
        assert_eq!(
            messages,
            json!([
                {"role": "system", "content": ""},
                {"role": "assistant", "content": "", "reasoning_content": "Look first", "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"b\":1,\"a\":\"x y\"}"}},
                    {"id": "c2", "type": "function", "function": {"name": "stop", "arguments": "{ }"}},
                ]},
            ])
        );
    }

    #[test]
    fn arguments_keep_the_order_and_the_numbers_they_were_recorded_with() {
        let mut out = String::new();
        let input = r#"[{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"n",
            "arguments":{"z": 1.50, "a": 12345678901234567890123}}]}]"#;
        write(None, Some(&Field::Text(input.into())), &mut out).unwrap();
        assert!(out.contains(r#""arguments":"{\"z\":1.50,\"a\":12345678901234567890123}""#), "{out}");
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_place() {
        for (input, field) in [
            (json!([]), "gen_ai.input.messages"),
            (json!(""), "gen_ai.input.messages"),
            (json!([{"role": "user"}]), "gen_ai.input.messages[0].parts"),
            (json!([{"parts": []}]), "gen_ai.input.messages[0].role"),
            (
                json!([{"role": "user", "parts": [{"type": "image"}]}]),
                "gen_ai.input.messages[0].parts[0].type",
            ),
            (
                json!([{"role": "user", "parts": [{"type": "text"}]}]),
                "gen_ai.input.messages[0].parts[0].content",
            ),
            (
                json!([{"role": "a", "parts": [{"type": "tool_call"}]}]),
                "gen_ai.input.messages[0].parts[0].name",
            ),
        ] {
            assert_eq!(of(&input).unwrap_err().field, field, "{input}");
        }
        assert!(made(None, None).is_err());
        assert!(of(&json!("[{]")).is_err());
    }
}
