//! Request bodies as shared slices, and texts that are counted at most once.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A request body: its bytes in order, in as few shared slices as it was made of. Cloning copies pointers.
#[derive(Clone, Debug, Default)]
pub struct Body {
    segments: Vec<Bytes>,
    len: usize,
}

impl Body {
    /// A body of one slice.
    pub fn single(bytes: impl Into<Bytes>) -> Body {
        let bytes = bytes.into();
        Body { len: bytes.len(), segments: vec![bytes] }
    }

    /// Appends a slice.
    pub fn push(&mut self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.len += bytes.len();
            self.segments.push(bytes);
        }
    }

    /// The slices, in order.
    pub fn segments(&self) -> &[Bytes] {
        &self.segments
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes in one piece; free when there is one slice.
    pub fn to_bytes(&self) -> Bytes {
        match self.segments.as_slice() {
            [one] => one.clone(),
            many => many.concat().into(),
        }
    }
}

/// A body that left memory comes back in one piece.
impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Body, D::Error> {
        let mut body = Body::default();
        body.push(Vec::<u8>::deserialize(deserializer)?);
        Ok(body)
    }
}

/// The characters of a text: shared with whoever else has them, or held alone. Neither way copies them.
#[derive(Debug)]
pub enum Characters {
    /// Of a conversation, too.
    Shared(Arc<str>),
    /// Made for the count.
    Own(Box<str>),
}

impl Default for Characters {
    fn default() -> Characters {
        Characters::Own(Box::default())
    }
}

impl std::ops::Deref for Characters {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Characters::Shared(text) => text,
            Characters::Own(text) => text,
        }
    }
}

impl From<Arc<str>> for Characters {
    fn from(text: Arc<str>) -> Characters {
        Characters::Shared(text)
    }
}

impl From<String> for Characters {
    fn from(text: String) -> Characters {
        Characters::Own(text.into())
    }
}

impl From<&str> for Characters {
    fn from(text: &str) -> Characters {
        Characters::Own(text.into())
    }
}

/// A text whose token count is found once, by whichever thread first needs it. A text whose count is known
/// from the start need not keep its characters.
#[derive(Debug, Default)]
pub struct CountedText {
    text: Characters,
    tokens: OnceLock<u64>,
}

impl CountedText {
    /// A text to be counted when first asked for.
    pub fn new(text: impl Into<Characters>) -> CountedText {
        CountedText { text: text.into(), tokens: OnceLock::new() }
    }

    /// A text that was counted when it was made; the characters are not kept.
    pub fn known(tokens: u64) -> CountedText {
        CountedText { text: Characters::default(), tokens: OnceLock::from(tokens) }
    }

    /// Bytes of the characters that are still needed: none once they are counted.
    pub fn held_bytes(&self) -> usize {
        if self.tokens.get().is_some() { 0 } else { self.text.len() }
    }

    /// The number of tokens, counted by `count` if nobody has yet.
    pub fn tokens(&self, count: impl FnOnce(&str) -> u64) -> u64 {
        *self.tokens.get_or_init(|| count(&self.text))
    }
}

/// The characters stay behind once they are counted.
impl Serialize for CountedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tokens = self.tokens.get();
        let text = if tokens.is_some() { "" } else { &*self.text };
        (text, tokens).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CountedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CountedText, D::Error> {
        let (text, tokens) = <(String, Option<u64>)>::deserialize(deserializer)?;
        Ok(CountedText { text: text.into(), tokens: tokens.map(OnceLock::from).unwrap_or_default() })
    }
}
