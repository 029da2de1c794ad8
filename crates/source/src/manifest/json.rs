//! JSON with its duplicate keys, and no deeper than a manifest may be.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Levels of nesting.
const DEEPEST: u8 = 32;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// `null`
    Null,
    /// `true`, `false`
    Switch,
    /// Digits.
    Count(u64),
    /// Any other number.
    Number,
    /// A text.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// An object, duplicates included.
    Object(Vec<Member>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    /// The key.
    pub(super) key: String,
    /// The value.
    pub(super) value: Node,
}

impl Node {
    /// With its article, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Switch => "true or false",
            Node::Count(_) | Node::Number => "a number",
            Node::Text(_) => "a text",
            Node::List(_) => "an array",
            Node::Object(_) => "an object",
        }
    }
}

/// Reads a document; the error says where and what.
pub(super) fn parse(bytes: &[u8]) -> Result<Node, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text =
        std::str::from_utf8(bytes).map_err(|error| format!("byte {} is not UTF-8", error.valid_up_to()))?;
    let start = text.trim_start();
    if start.is_empty() {
        return Err("it is empty".into());
    }
    if start.starts_with('<') {
        return Err("it is HTML, no JSON".into());
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let node = Depth(DEEPEST).deserialize(&mut reader).and_then(|node| reader.end().map(|()| node));
    node.map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or(&text);
        format!("line {line}, column {column}: {what}")
    })
}

/// The line of the n-th `"key"` in a document.
pub(super) fn line_of(bytes: &[u8], key: &str, nth: usize) -> Option<usize> {
    let text = std::str::from_utf8(bytes).ok()?;
    let quoted = serde_json::to_string(key).ok()?;
    let (at, _) = text.match_indices(quoted.as_str()).nth(nth - 1)?;
    Some(text[..at].matches('\n').count() + 1)
}

#[derive(Clone, Copy)]
struct Depth(u8);

impl Depth {
    fn below<E: Error>(self) -> Result<Depth, E> {
        self.0.checked_sub(1).map(Depth).ok_or_else(|| E::custom("nested deeper than 32 levels"))
    }
}

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Depth {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Switch)
    }

    fn visit_u64<E>(self, count: u64) -> Result<Node, E> {
        Ok(Node::Count(count))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let below = self.below()?;
        let mut list = Vec::new();
        while let Some(node) = seq.next_element_seed(below)? {
            list.push(node);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let below = self.below()?;
        let mut members = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            members.push(Member { key, value: map.next_value_seed(below)? });
        }
        Ok(Node::Object(members))
    }
}
