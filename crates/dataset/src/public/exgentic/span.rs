//! One span of a session: whether it is a call that is replayed, and what is sent then.

use serde_json::Map;

use super::attributes::{Attributes, Field};
use super::{controls, messages, tools};
use crate::instant;
use crate::json::{self, Fault};
use crate::public::Value;

const OPERATION: &str = "gen_ai.operation.name";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const INSTRUCTIONS: &str = "gen_ai.system_instructions";
const MESSAGES: &str = "gen_ai.input.messages";
const TOOLS: &str = "gen_ai.tool.definitions";
const MAX_TOKENS: &str = "gen_ai.request.max_tokens";

/// What a span is to a replay.
#[derive(Debug, PartialEq)]
pub(crate) enum Span {
    /// No call of a model.
    NotACall,
    /// A call that did not succeed.
    Failed,
    /// A call without input or output tokens.
    NoTokens,
    /// A call that is replayed.
    Call(Box<Call>),
}

/// A recorded call.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    /// Nanoseconds since 1970.
    pub(crate) start: i128,
    /// Nanoseconds since 1970, not before the start.
    pub(crate) end: i128,
    /// Tokens of the input, as recorded.
    pub(crate) input_tokens: u64,
    /// The recorded limit, else the recorded length of the output.
    pub(crate) max_tokens: u64,
    /// A JSON array of chat messages.
    pub(crate) messages: String,
    /// A JSON array of tools.
    pub(crate) tools: Option<String>,
    /// Request controls, as body keys.
    pub(crate) controls: Map<String, serde_json::Value>,
    /// Names of controls that have no body key.
    pub(crate) unknown_controls: Vec<String>,
}

impl Span {
    /// Reads a span: an object, or the text of one.
    pub(crate) fn read(span: &Value) -> Result<Span, Fault> {
        let parsed;
        let span = match span {
            Value::Object(_) => span,
            Value::Text(text) => {
                let json: serde_json::Value =
                    serde_json::from_str(text).map_err(|error| Fault::new("", error.to_string()))?;
                parsed = Value::from(json);
                &parsed
            }
            other => {
                return Err(Fault::new(
                    "",
                    format!("expected an object, found {}", json::kind(&other.json())),
                ));
            }
        };
        let field = |name| span.get(name).and_then(Field::of);
        let list;
        let attributes = match span.get("attributes") {
            None | Some(Value::Null) => Attributes::default(),
            Some(Value::Object(fields)) => Attributes::of(fields),
            Some(Value::Text(text)) if text.trim().is_empty() => Attributes::default(),
            Some(Value::Text(text)) => Attributes::read(text.trim())?,
            Some(other) => {
                list = other.json();
                Attributes::read(&list)?
            }
        };
        let considered = match field("type") {
            Some(kind) => kind.string("type")? == "llm_call",
            None => attributes
                .get(OPERATION)
                .map_or(Ok(false), |name| Ok::<_, Fault>(name.string(OPERATION)? == "chat"))?,
        };
        if !considered {
            return Ok(Span::NotACall);
        }
        if span.get("status").is_some_and(has_failed) {
            return Ok(Span::Failed);
        }
        let (input, output) = (tokens(&attributes, INPUT_TOKENS)?, tokens(&attributes, OUTPUT_TOKENS)?);
        let (Some(input_tokens), Some(output)) = (input, output) else { return Ok(Span::NoTokens) };
        let max_tokens = match attributes.get(MAX_TOKENS) {
            None => output,
            Some(limit) => {
                let limit = limit.integer(MAX_TOKENS)?;
                u64::try_from(limit)
                    .ok()
                    .filter(|limit| *limit > 0)
                    .ok_or_else(|| Fault::new(MAX_TOKENS, format!("is {limit}; a limit must be 1 or more")))?
            }
        };
        let (start, end) =
            (instant("start_time", field("start_time"))?, instant("end_time", field("end_time"))?);
        if end < start {
            return Err(Fault::new("end_time", "is before start_time"));
        }
        let mut messages = String::new();
        messages::write(attributes.get(INSTRUCTIONS), attributes.get(MESSAGES), &mut messages)?;
        Ok(Span::Call(Box::new(Call {
            start,
            end,
            input_tokens,
            max_tokens,
            messages,
            tools: attributes.get(TOOLS).map_or(Ok(None), tools::read)?,
            controls: controls::read(&attributes)?,
            unknown_controls: controls::unknown(&attributes).map(str::to_owned).collect(),
        })))
    }
}

/// Whether a status says so: by number, by either of its names, or as an object that has a code.
fn has_failed(status: &Value) -> bool {
    match status {
        Value::Number(code) => code.as_f64() == Some(2.0),
        Value::Text(code) => match code.trim() {
            "2" => true,
            text if text.starts_with('{') => serde_json::from_str::<serde_json::Value>(text)
                .is_ok_and(|status| has_failed(&status["code"].clone().into())),
            text => text.eq_ignore_ascii_case("ERROR") || text.eq_ignore_ascii_case("STATUS_CODE_ERROR"),
        },
        Value::Object(_) => {
            status.get("code").is_some_and(|code| !matches!(code, Value::Object(_)) && has_failed(code))
        }
        _ => false,
    }
}

/// A count of tokens; `None` when it is not positive.
fn tokens(attributes: &Attributes<'_>, name: &'static str) -> Result<Option<u64>, Fault> {
    let count =
        attributes.get(name).ok_or_else(|| Fault::new(name, "is missing; a successful call needs it"))?;
    Ok(u64::try_from(count.integer(name)?).ok().filter(|count| *count > 0))
}

fn instant(name: &'static str, field: Option<Field<'_>>) -> Result<i128, Fault> {
    let field = field.ok_or_else(|| Fault::new(name, "is missing"))?;
    let text = field.string(name)?;
    instant::nanoseconds(&text)
        .ok_or_else(|| Fault::new(name, format!("{} is no ISO 8601 time", json::excerpt(&text))))
}
