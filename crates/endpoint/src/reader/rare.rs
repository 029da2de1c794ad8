//! What few answers have: kept apart so that a reader stays small.

use aiperf_clock::Mono;
use aiperf_config::EndpointKind;
use aiperf_types::{Packet, RawEvent, RequestError};

use super::reply::Calls;
use super::speculation::Speculation;
use crate::json::{Scanner, Text, integer, push_lossy};
use crate::sse::Event;

/// The rare parts of an answer.
#[derive(Debug, Default)]
pub(super) struct Rare {
    pub(super) error: Option<RequestError>,
    pub(super) transcript: Option<String>,
    pub(super) finish_reason: Option<String>,
    pub(super) calls: Option<Calls>,
    pub(super) speculation: Speculation,
    /// Texts of the choices after the first.
    pub(super) other_texts: Vec<String>,
    pub(super) raw: Option<Vec<RawEvent>>,
    packets: Vec<Packet>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) content_type: String,
}

/// Choices told apart; a server that counts higher gets its text joined to the last.
const MAX_CHOICES: u64 = 1024;

impl Rare {
    /// Text of choice `number`, which is not 0.
    pub(super) fn other_text(&mut self, number: u64) -> &mut String {
        let slot = number.clamp(1, MAX_CHOICES) as usize - 1;
        if self.other_texts.len() <= slot {
            self.other_texts.resize_with(slot + 1, String::new);
        }
        &mut self.other_texts[slot]
    }

    pub(super) fn push_packet(&mut self, name: &[u8], value: &[u8]) {
        self.packets.push(Packet { name: lossy(name), value: lossy(value) });
    }

    pub(super) fn continue_packet(&mut self, value: &[u8]) {
        if let Some(packet) = self.packets.iter_mut().rev().find(|packet| packet.name == "data") {
            packet.value.push('\n');
            push_lossy(value, &mut packet.value);
        }
    }

    pub(super) fn end_event(&mut self, at: Mono) {
        let packets = std::mem::take(&mut self.packets);
        if let Some(raw) = &mut self.raw {
            raw.push(RawEvent { at, packets });
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The error that an event named `error` reports: its first comment line, else the message in its data, else
/// its data.
pub(super) fn event_error(event: &Event<'_>) -> RequestError {
    let data = event.data.unwrap_or_default();
    let parts = ErrorParts::of(data);
    let message = if event.comment.is_empty() {
        parts.message.map_or_else(|| lossy(data), Text::to_text)
    } else {
        lossy(event.comment)
    };
    let mut error = RequestError::new(502, "SSEResponseError", message);
    error.cause =
        parts.code.filter(|code| (400..600).contains(code)).map(|code| format!("code {code} in the event"));
    error
}

/// The error of an answer without a body.
pub(super) fn empty_body() -> RequestError {
    RequestError::new(None, "InvalidInferenceResultError", "no content in the answer: its body is empty")
}

/// The error of an answer that has none of the parts that are content.
pub(super) fn no_content(kind: EndpointKind) -> RequestError {
    RequestError::new(
        None,
        "InvalidInferenceResultError",
        format!(
            "no content in the answer: nothing in it is output of --endpoint-type {} (roles, usage and end markers are not)",
            kind.name()
        ),
    )
}

/// Whether a body begins as streams of events do.
pub(super) fn looks_like_events(body: &[u8]) -> bool {
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|field| body.starts_with(field))
}

/// The error of a stream of events that its server calls something else.
pub(super) fn misnamed_stream(content_type: &str) -> RequestError {
    let called = match content_type {
        "" => "has no Content-Type".to_owned(),
        other => format!("its Content-Type is {other}"),
    };
    let message = format!(
        "the answer is an event stream, but {called}: the server, or a proxy before it, must send text/event-stream"
    );
    RequestError::new(None, "MalformedResponseError", message)
}

/// The error that a data event reports in `error` (an object or a text), or as an object of its own.
pub(super) fn data_error(json: &[u8]) -> RequestError {
    let parts = ErrorParts::of(json);
    let kind =
        parts.kind.filter(|kind| !kind.is_empty()).map_or_else(|| "StreamError".to_owned(), Text::to_text);
    let message = parts.message.map_or_else(|| lossy(json), Text::to_text);
    RequestError::new(parts.code, kind, message)
}

/// Gateways write codes as texts too: LiteLLM sends `"code": "500"`.
fn unquoted(json: &[u8]) -> &[u8] {
    json.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(json)
}

#[derive(Default)]
struct ErrorParts<'a> {
    code: Option<i64>,
    kind: Option<Text<'a>>,
    message: Option<Text<'a>>,
}

impl<'a> ErrorParts<'a> {
    /// Of `{"message", "type", "code"}`, of the same one level down in `error`, or of a text.
    fn of(json: &'a [u8]) -> ErrorParts<'a> {
        let mut parts = ErrorParts::default();
        let mut inner = None;
        let mut scanner = Scanner::new(json);
        if scanner.peek() == Some(b'"') {
            parts.message = scanner.text().ok().flatten();
            return parts;
        }
        let outcome = scanner.members(|scanner, key| {
            match key {
                b"code" => parts.code = integer(unquoted(scanner.span()?)),
                b"type" => parts.kind = scanner.text()?,
                b"message" => parts.message = scanner.text()?,
                b"error" => inner = Some(scanner.span()?),
                _ => scanner.skip()?,
            }
            Ok(())
        });
        if outcome.is_err() {
            return ErrorParts::default();
        }
        match (inner, parts.message) {
            (Some(inner), None) => {
                let below = ErrorParts::shallow(inner);
                if below.message.is_some() { below } else { parts }
            }
            _ => parts,
        }
    }

    fn shallow(json: &'a [u8]) -> ErrorParts<'a> {
        let mut parts = ErrorParts::default();
        let mut scanner = Scanner::new(json);
        if scanner.peek() == Some(b'"') {
            parts.message = scanner.text().ok().flatten();
            return parts;
        }
        let outcome = scanner.members(|scanner, key| {
            match key {
                b"code" => parts.code = integer(unquoted(scanner.span()?)),
                b"type" => parts.kind = scanner.text()?,
                b"message" => parts.message = scanner.text()?,
                _ => scanner.skip()?,
            }
            Ok(())
        });
        if outcome.is_err() { ErrorParts::default() } else { parts }
    }
}
