//! Chunks of one stream are alike to the byte but for their text. Once one of them was scanned, the next is known
//! to be the same JSON if all around the text is equal and the text is plain.

use crate::json::{Text, is_plain};

/// Where the text of a template goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Target {
    /// Answer text.
    #[default]
    Text,
    /// Reasoning.
    Reasoning,
}

/// The last chunk whose only output was one plain text of choice 0.
#[derive(Debug, Default)]
pub(super) struct Template {
    bytes: Vec<u8>,
    /// The text is `bytes[from..to]`.
    from: u32,
    to: u32,
    target: Target,
}

impl Template {
    /// The text of `data` and where it goes, when `data` differs from the template in nothing else.
    #[inline]
    pub(super) fn text<'a>(&self, data: &'a [u8]) -> Option<(&'a [u8], Target)> {
        let (from, to) = (self.from as usize, self.to as usize);
        let (before, after) = (&self.bytes[..from], &self.bytes[to..]);
        let middle = data.strip_prefix(before)?.strip_suffix(after)?;
        // A quote, an escape or a control character could end the string early, or break it.
        (from > 0 && !middle.is_empty() && is_plain(middle)).then_some((middle, self.target))
    }

    /// Keeps `data`, whose text is `text`, as the template of what follows.
    pub(super) fn learn(&mut self, data: &[u8], text: Text<'_>, target: Target) {
        let from = text.raw.as_ptr().addr().wrapping_sub(data.as_ptr().addr());
        let to = from.wrapping_add(text.raw.len());
        // An event is at most 16 MiB; a long one is no chunk of a stream of tokens.
        if to < data.len() && data.len() <= 4096 {
            self.bytes.clear();
            self.bytes.extend_from_slice(data);
            (self.from, self.to, self.target) = (from as u32, to as u32, target);
        }
    }

    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(data: &[u8], text: &str) -> Template {
        let at = data.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
        let mut template = Template::default();
        template.learn(data, Text { raw: &data[at..at + text.len()] }, Target::Text);
        template
    }

    #[test]
    fn only_a_plain_text_in_the_same_place_matches() {
        let template = learned(br#"{"c":"one","d":0}"#, "one");
        assert_eq!(template.text(br#"{"c":"twenty","d":0}"#), Some((&b"twenty"[..], Target::Text)));
        for other in [
            &br#"{"c":"","d":0}"#[..],
            br#"{"c":"a\n","d":0}"#,
            br#"{"c":"a","c":"b","d":0}"#,
            b"{\"c\":\"a\x01\",\"d\":0}",
            br#"{"c":"a","d":1}"#,
            br#"{"c":"a","d":0} "#,
            br#"{"c":""#,
            br#"","d":0}"#,
            b"",
        ] {
            assert_eq!(template.text(other), None, "{}", String::from_utf8_lossy(other));
        }
        assert_eq!(Template::default().text(b"anything"), None);
    }

    #[test]
    fn before_and_after_may_not_overlap() {
        let template = learned(br#"["","x",""]"#, "x");
        assert_eq!(template.text(br#"["",""]"#), None);
    }
}
