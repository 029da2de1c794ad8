//! The texts of a request, collected in the order in which they are counted.

use std::sync::Arc;

use aiperf_types::CountedText;

/// Collects texts. Input length is defined over all texts joined by one space, so every text after the first is
/// kept with that space in front: the sum of the parts is then the count of the whole without ever encoding a
/// history twice.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) list: Vec<Arc<CountedText>>,
}

impl Texts {
    /// After the texts of earlier requests.
    pub(super) fn after(list: Vec<Arc<CountedText>>) -> Texts {
        Texts { list }
    }

    /// Adds a text; `known` is its number of tokens where somebody has counted it.
    pub(super) fn push(&mut self, text: &str, known: Option<u64>) {
        let first = self.list.is_empty();
        let counted = match known {
            Some(tokens) if first => CountedText::known(tokens),
            // The joining space melts into the first word, except before white space, where it is a token of
            // its own.
            Some(tokens) => CountedText::known(tokens + u64::from(text.starts_with(char::is_whitespace))),
            None if first => CountedText::new(text),
            None => CountedText::new(joined(text)),
        };
        self.list.push(Arc::new(counted));
    }

    /// The same for a text that the conversation holds: the first one is shared with it.
    pub(super) fn push_held(&mut self, text: &Arc<str>, known: Option<u64>) {
        if known.is_none() && self.list.is_empty() {
            self.list.push(Arc::new(CountedText::new(Arc::clone(text))));
        } else {
            self.push(text, known);
        }
    }

    /// Adds a text that was made for this.
    pub(super) fn push_made(&mut self, mut text: String) {
        if !self.list.is_empty() {
            text.insert(0, ' ');
        }
        self.list.push(Arc::new(CountedText::new(text)));
    }

    /// Adds a text that came as `ids` token ids.
    pub(super) fn push_ids(&mut self, ids: u64) {
        self.list.push(Arc::new(CountedText::known(ids)));
    }

    /// Adds a text that is shared between requests and stands first in them.
    pub(super) fn push_first(&mut self, text: Arc<CountedText>) {
        self.list.push(text);
    }
}

/// `text` with the joining space in front.
pub(crate) fn joined(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    out.push(' ');
    out.push_str(text);
    out
}
