//! What tool definitions and tool calls add to the input of a request: a server renders them into its prompt, so they
//! count as text.

use std::sync::Arc;

use aiperf_types::CountedText;
use bytes::Bytes;

use super::texts::joined;
use crate::json::{Scan, Scanner, push_compact, push_string};

/// Tool definitions in effect in a conversation.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    /// The JSON array.
    pub(super) json: Bytes,
    /// Their text, counted once for all requests that repeat them; it stands after the messages.
    pub(super) text: Option<Arc<CountedText>>,
}

impl Tools {
    /// The tools of an authored turn.
    pub(super) fn authored(json: &str) -> Tools {
        let mut compact = Vec::with_capacity(json.len());
        push_compact(json, &mut compact);
        let text = tool_text(&compact).map(|text| Arc::new(CountedText::new(joined(&text))));
        Tools { json: compact.into(), text }
    }
}

/// Name, description and parameters (as compact JSON) of every tool, joined by spaces; empty ones are left out.
pub(super) fn tool_text(json: &[u8]) -> Option<String> {
    let mut words = Words::default();
    // The text was parsed when it was loaded, so that there is nothing to report here.
    let _valid = Scanner::new(json).items(|scanner, _| {
        let tool = scanner.span()?;
        let nested = member(tool, b"function")?.filter(|function| function.first() == Some(&b'{'));
        let function = nested.unwrap_or(tool);
        words.text(member(function, b"name")?)?;
        words.text(member(function, b"description")?)?;
        words.object(member(function, b"parameters")?)
    });
    words.done()
}

/// Names and arguments of a message's tool calls, joined by spaces.
pub(super) fn called(json: &[u8]) -> Option<String> {
    let mut words = Words::default();
    // As above.
    let _valid = Scanner::new(json).items(|scanner, _| {
        let call = scanner.span()?;
        let function = member(call, b"function")?.unwrap_or_default();
        words.text(member(function, b"name")?)?;
        words.text(member(function, b"arguments")?)
    });
    words.done()
}

fn member<'a>(object: &'a [u8], name: &[u8]) -> Scan<Option<&'a [u8]>> {
    let mut found = None;
    if object.first() == Some(&b'{') {
        Scanner::new(object).members(|scanner, key| {
            let value = scanner.span()?;
            if key == name {
                found = Some(value);
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// Compact JSON with no more escapes than it needs: a file may write every letter beyond ASCII as one.
fn plainly_escaped(compact: &[u8]) -> Scan<Vec<u8>> {
    let mut out = Vec::with_capacity(compact.len());
    let mut rest = compact;
    while let Some(at) = rest.iter().position(|byte| *byte == b'"') {
        let (before, string) = rest.split_at(at);
        out.extend_from_slice(before);
        let text = Scanner::new(string).string()?;
        push_string(&text.to_text(), &mut out);
        rest = string.get(text.raw.len() + 2..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Ok(out)
}

#[derive(Default)]
struct Words {
    joined: String,
}

impl Words {
    fn add(&mut self, word: &str) {
        if word.is_empty() {
            return;
        }
        if !self.joined.is_empty() {
            self.joined.push(' ');
        }
        self.joined.push_str(word);
    }

    /// Adds a string; other values have no text.
    fn text(&mut self, json: Option<&[u8]>) -> Scan<()> {
        if let Some(text) = Scanner::new(json.unwrap_or(b"null")).text()? {
            self.add(&text.to_text());
        }
        Ok(())
    }

    /// Adds an object as compact JSON.
    fn object(&mut self, json: Option<&[u8]>) -> Scan<()> {
        let Some(json @ [b'{', ..]) = json else { return Ok(()) };
        let mut compact = Vec::with_capacity(json.len());
        push_compact(&String::from_utf8_lossy(json), &mut compact);
        if compact.contains(&b'\\') {
            compact = plainly_escaped(&compact)?;
        }
        self.add(&String::from_utf8_lossy(&compact));
        Ok(())
    }

    fn done(self) -> Option<String> {
        (!self.joined.is_empty()).then_some(self.joined)
    }
}
