//! `raw_payload`: whole request bodies, sent byte for byte. A file holds conversations of one turn; in a folder
//! every file is a conversation.

use std::path::Path;
use std::sync::Arc;

use aiperf_config::{EndpointKind, FileFormat};
use aiperf_types::{Content, ContextMode, Turn};
use serde_json::{Map, Value};

use super::{Files, Folder, Format, Near, speed_bench};
use crate::json::{self, Fault};
use crate::look::{Look, has_extension};
use crate::record::{Check, Found, FoundTurn, LineFormat, Problem, Render, Row, complaint};

pub(crate) const FORMAT: Format = Format {
    ranks: true,
    options: &["--num-dataset-entries"],
    fits: |_, look| {
        let is_payload = |look: &Look| look.record().is_some_and(|(_, record)| is_payload(record));
        match look.files(is_jsonl).find(|file| file.record().is_some()) {
            Some(file) => is_payload(&file),
            None => is_payload(look),
        }
    },
    folder: Folder::Files(is_jsonl),
    near: Some(Near {
        keys: &["messages", "model", "stream", "prompt", "input", "max_tokens", "temperature"],
        fault: |line| complaint(format(EndpointKind::Chat, false), line),
    }),
    ..Format::new(FileFormat::RawPayload, Files::Jsonl, "one request body", |opening| {
        let format = format(opening.context.endpoint, opening.context.streaming);
        opening.records(format)
    })
};

fn is_jsonl(file: &Path) -> bool {
    has_extension(file, "jsonl")
}

fn is_payload(record: &Map<String, Value>) -> bool {
    record.get("messages").is_some_and(Value::is_array)
        && !record.contains_key("conversation_id")
        && !record.get("data").is_some_and(Value::is_array)
        && !speed_bench::is_row(record)
}

struct RawPayload {
    endpoint: EndpointKind,
    streaming: bool,
}

impl Check for RawPayload {
    fn record(&mut self, text: &str, found: &mut Found) -> Result<(), Fault> {
        let [messages, prompt, input, stream] =
            json::object(text, &["messages", "prompt", "input", "stream"])?;
        if let Some(messages) = messages
            && !messages.starts_with('[')
        {
            return Err(Fault::new("messages", format!("expected a list, found {}", json::kind(messages))));
        }
        if self.endpoint == EndpointKind::Chat && messages.is_none() {
            return Err(Fault::new("messages", "is missing; a chat body needs a list of messages"));
        }
        if messages.is_none() && prompt.is_none() && input.is_none() {
            return Err(Fault::new("", "the body has none of `prompt`, `input` and `messages`"));
        }
        found.tally.body(self.streaming, stream);
        found.turns.push(FoundTurn::default());
        Ok(())
    }
}

/// Turns that are the record itself.
pub(crate) struct Verbatim;

impl Render for Verbatim {
    fn turns(&self, text: &str, _rows: &[Row], out: &mut Vec<Turn>) -> Result<(), Problem> {
        out.push(Turn { content: Content::Payload(json::raw("", text)?), ..Turn::default() });
        Ok(())
    }

    fn mode(&self, _first: Row) -> ContextMode {
        ContextMode::MessageArrayWithResponses
    }
}

fn format(endpoint: EndpointKind, streaming: bool) -> LineFormat {
    LineFormat {
        file_is_session: true,
        ..LineFormat::new(Box::new(RawPayload { endpoint, streaming }), Arc::new(Verbatim))
    }
}
