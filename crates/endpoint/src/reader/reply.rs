//! What the next turn of a conversation repeats of an answer.

use std::sync::Arc;

use aiperf_types::CountedText;
use bytes::Bytes;

use crate::format::joined;
use crate::json::push_string;

/// An answer as the assistant message of the next request. Cloning copies pointers.
#[derive(Clone, Debug)]
pub struct Reply {
    message: Bytes,
    text: Option<Arc<CountedText>>,
}

impl Reply {
    /// The message: a JSON object.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Its text as part of an input.
    pub(crate) fn text(&self) -> Option<Arc<CountedText>> {
        self.text.clone()
    }
}

/// Tool calls, merged from their parts.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) list: Vec<Call>,
    /// Where the answer's text ends that came before the first call.
    pub(super) content_end: usize,
    /// Text of the answer that came after it.
    pub(super) content_after: String,
}

/// One tool call.
#[derive(Debug, Default)]
pub(super) struct Call {
    index: Option<u64>,
    /// A `function_call` of the older kind.
    legacy: bool,
    pub(super) id: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: String,
}

impl Calls {
    /// The call that a part with this index belongs to; a part without one begins a new call.
    pub(super) fn at(&mut self, index: Option<u64>, legacy: bool) -> &mut Call {
        let found = index
            .and_then(|_| self.list.iter().position(|call| call.index == index && call.legacy == legacy));
        let position = found.unwrap_or_else(|| {
            self.list.push(Call { index, legacy, ..Call::default() });
            self.list.len() - 1
        });
        &mut self.list[position]
    }
}

/// The reply of an answer: its text, its reasoning when it has nothing else, its tool calls with the text beside
/// them. `None` when there is nothing to repeat.
pub(super) fn of(text: &str, reasoning: &str, calls: Option<Calls>) -> Option<Reply> {
    let Some(calls) = calls.filter(|calls| !calls.list.is_empty()) else {
        let said = if text.is_empty() { reasoning } else { text };
        if said.is_empty() {
            return None;
        }
        let mut message = Vec::with_capacity(said.len() + 40);
        message.extend_from_slice(b"{\"role\":\"assistant\",\"content\":");
        push_string(said, &mut message);
        message.push(b'}');
        return Some(Reply { message: message.into(), text: Some(counted(said)) });
    };
    let mut content = text.get(..calls.content_end).unwrap_or_default().to_owned();
    content.push_str(&calls.content_after);
    let mut message = b"{\"role\":\"assistant\",\"content\":".to_vec();
    if content.is_empty() {
        message.extend_from_slice(b"null");
    } else {
        push_string(&content, &mut message);
    }
    if let Some(call) = calls.list.iter().find(|call| call.legacy) {
        message.extend_from_slice(b",\"function_call\":");
        push_function(call, &mut message);
    }
    let mut first = true;
    for call in calls.list.iter().filter(|call| !call.legacy) {
        message.extend_from_slice(if first { b",\"tool_calls\":[" } else { b"," });
        first = false;
        message.push(b'{');
        if let Some(id) = &call.id {
            message.extend_from_slice(b"\"id\":");
            push_string(id, &mut message);
            message.push(b',');
        }
        message.extend_from_slice(b"\"type\":");
        push_string(call.kind.as_deref().unwrap_or("function"), &mut message);
        message.extend_from_slice(b",\"function\":");
        push_function(call, &mut message);
        message.push(b'}');
    }
    if !first {
        message.push(b']');
    }
    message.push(b'}');
    // In a later request the server renders names and arguments into its prompt, so they count as input.
    let mut said = content;
    for call in calls.list.iter().filter(|call| !call.legacy) {
        for word in [call.name.as_deref().unwrap_or_default(), &call.arguments] {
            if !said.is_empty() && !word.is_empty() {
                said.push(' ');
            }
            said.push_str(word);
        }
    }
    let text = (!said.is_empty()).then(|| counted(&said));
    Some(Reply { message: message.into(), text })
}

fn push_function(call: &Call, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"name\":");
    push_string(call.name.as_deref().unwrap_or_default(), out);
    out.extend_from_slice(b",\"arguments\":");
    push_string(&call.arguments, out);
    out.push(b'}');
}

fn counted(text: &str) -> Arc<CountedText> {
    // An answer never stands first in a request.
    Arc::new(CountedText::new(joined(text)))
}
