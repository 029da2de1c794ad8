//! `raw_payload`: whole request bodies, sent byte for byte. A file holds conversations of one turn; in a folder
//! every file is a conversation.

use std::sync::Arc;

use aiperf_config::EndpointKind;
use aiperf_types::{Content, ContextMode, Turn};

use crate::json::{self, Fault};
use crate::record::{Check, Found, FoundTurn, LineFormat, Problem, Render, Row};

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

pub(crate) fn format(endpoint: EndpointKind, streaming: bool) -> LineFormat {
    LineFormat {
        check: Box::new(RawPayload { endpoint, streaming }),
        render: Arc::new(Verbatim),
        many_turns: false,
        whole_keys: &[],
    }
}
