//! How a body comes together: base keys, optional keys, `--extra-inputs`, the turn's own keys; each a shallow
//! overwrite that keeps the place of the key it replaces. Then `stream_options`.

use serde_json::{Map, Value};

use super::Format;
use crate::json::{push_string, push_unquoted};

/// A value of a body.
#[derive(Clone, Debug)]
pub(super) enum Part<'a> {
    /// What the endpoint is about (`messages`, `prompt`, `input`): written by its dialect.
    Main,
    /// JSON text.
    Raw(&'a [u8]),
    /// A string.
    Text(&'a str),
    /// A count.
    Count(u64),
    /// A switch.
    Switch(bool),
    /// What a user gave.
    Given(&'a Value),
    /// A value made here.
    Made(Value),
}

impl Part<'_> {
    /// Whether a server that reads loosely takes it for "yes".
    fn is_truthy(&self) -> bool {
        match self {
            Part::Switch(on) => *on,
            Part::Given(value) => truthy(value),
            Part::Made(value) => truthy(value),
            Part::Count(count) => *count != 0,
            Part::Text(text) => !text.is_empty(),
            Part::Raw(_) | Part::Main => true,
        }
    }

    fn as_count(&self) -> Option<u64> {
        match self {
            Part::Count(count) => Some(*count),
            Part::Given(value) => value.as_u64(),
            _ => None,
        }
    }
}

fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(on) => *on,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// A body as ordered members.
#[derive(Debug)]
pub(super) struct Members<'a> {
    list: Vec<(&'a str, Part<'a>)>,
}

impl<'a> Members<'a> {
    pub(super) fn new(base: Vec<(&'a str, Part<'a>)>) -> Members<'a> {
        Members { list: base }
    }

    fn set(&mut self, key: &'a str, part: Part<'a>) {
        match self.list.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = part,
            None => self.list.push((key, part)),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Part<'a>> {
        self.list.iter().find(|(name, _)| *name == key).map(|(_, part)| part)
    }

    /// Whether the dialect still writes its main value, in first place.
    pub(super) fn starts_with_main(&self) -> bool {
        matches!(self.list.first(), Some((_, Part::Main)))
    }

    pub(super) fn overwrite(&mut self, extra: &'a Map<String, Value>) {
        for (key, value) in extra {
            self.set(key, Part::Given(value));
        }
    }

    /// Whether the user replaced a value that counts as input, so that the body has to be read for it.
    pub(super) fn has_given_input(&self) -> bool {
        ["messages", "prompt", "input", "tools"]
            .iter()
            .any(|key| matches!(self.get(key), Some(Part::Given(_))))
    }

    pub(super) fn count(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(Part::as_count)
    }

    /// Whether the body asks for a stream.
    pub(super) fn streaming(&self) -> bool {
        self.get("stream").is_some_and(Part::is_truthy)
    }

    /// A streamed answer is asked to end with its usage, unless the user said otherwise.
    pub(super) fn fix_stream_options(&mut self, format: &Format) {
        if !format.kind.can_stream() || !self.streaming() {
            return;
        }
        let mut options = match self.get("stream_options") {
            None | Some(Part::Given(Value::Null)) => Map::new(),
            Some(Part::Given(Value::Object(options))) => options.clone(),
            Some(_) => return,
        };
        if !options.contains_key("include_usage") {
            options.insert("include_usage".into(), Value::Bool(true));
        }
        if format.per_chunk_usage && !options.contains_key("continuous_usage_stats") {
            options.insert("continuous_usage_stats".into(), Value::Bool(true));
        }
        self.set("stream_options", Part::Made(Value::Object(options)));
    }

    /// Writes the members from index `from` on, each with a comma in front unless it is the first of the body;
    /// `main` writes the dialect's value.
    pub(super) fn write(&self, from: usize, out: &mut Vec<u8>, mut main: impl FnMut(&mut Vec<u8>)) {
        for (index, (key, part)) in self.list.iter().enumerate().skip(from) {
            if index > 0 {
                out.push(b',');
            }
            push_string(key, out);
            out.push(b':');
            match part {
                Part::Main => main(out),
                Part::Raw(raw) => out.extend_from_slice(raw),
                Part::Text(text) => push_string(text, out),
                Part::Count(count) => push_count(*count, out),
                Part::Switch(on) => out.extend_from_slice(if *on { b"true" } else { b"false" }),
                Part::Given(value) => push_value(value, out),
                Part::Made(value) => push_value(value, out),
            }
        }
    }
}

/// Appends a count in decimal digits.
pub(super) fn push_count(count: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = count;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn push_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(on) => out.extend_from_slice(if *on { b"true" } else { b"false" }),
        Value::Number(number) => match number.as_u64() {
            Some(count) => push_count(count, out),
            None => out.extend_from_slice(number.to_string().as_bytes()),
        },
        Value::String(text) => push_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_value(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (index, (key, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.push(b'"');
                push_unquoted(key, out);
                out.extend_from_slice(b"\":");
                push_value(member, out);
            }
            out.push(b'}');
        }
    }
}

/// The end of a body that is the same for all turns without keys of their own: extra inputs, `stream_options`
/// and the closing brace, ready to be copied.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) bytes: Vec<u8>,
    pub(super) streaming: bool,
}

impl Tail {
    /// `None` when an extra input replaces a key that turns build.
    pub(super) fn of(format: &Format) -> Option<Tail> {
        const BUILT: [&str; 6] = ["messages", "prompt", "input", "model", "stream", "tools"];
        let replaced = |key: &str| BUILT.contains(&key) || key == format.limit_key();
        if format.extra.keys().any(|key| replaced(key)) {
            return None;
        }
        let mut members = Members::new(if format.kind.can_stream() {
            vec![("stream", Part::Switch(format.streaming))]
        } else {
            Vec::new()
        });
        let base = members.list.len();
        members.overwrite(&format.extra);
        members.fix_stream_options(format);
        let mut bytes = Vec::new();
        if base == 0 && !members.list.is_empty() {
            bytes.push(b',');
        }
        members.write(base, &mut bytes, |_| {});
        bytes.push(b'}');
        Some(Tail { bytes, streaming: format.streaming })
    }
}
