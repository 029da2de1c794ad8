//! One event or body, scanned: slices of the parts that matter, in one pass.

use aiperf_config::EndpointKind;

use super::template::Target;
use crate::json::{Scan, Scanner, Text, unsigned};

/// The parts of one JSON answer that are read. Of a key that occurs twice the last one counts.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    /// `object`, when it is a string.
    pub(super) object: Option<Text<'a>>,
    /// `choices`.
    pub(super) choices: Choices<'a>,
    /// The value of a top-level `error` that says something, or the whole text of an error object.
    pub(super) error: Option<&'a [u8]>,
    /// `usage`, or an envelope that stands for it, when it is an object with members.
    pub(super) usage: Option<&'a [u8]>,
    /// `metrics`, when it is an object.
    pub(super) metrics: Option<&'a [u8]>,
    /// `data` of an embeddings answer: whether it is a list of vectors.
    pub(super) vectors: bool,
    /// A list of ranked passages.
    pub(super) ranked: bool,
}

/// `choices`: the first in parts, the others as they stand.
#[derive(Debug, Default)]
pub(super) struct Choices<'a> {
    /// Whether they are an array at all.
    pub(super) present: bool,
    /// Without output when there is none.
    pub(super) first: Choice<'a>,
    pub(super) others: Vec<&'a [u8]>,
}

/// One choice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<u64>,
    delta: Delta<'a>,
    message: Delta<'a>,
    /// `text` of a completion.
    pub(super) text: Option<Text<'a>>,
    pub(super) finish_reason: Option<Text<'a>>,
}

/// What a choice adds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delta<'a> {
    /// Whether it is an object at all.
    present: bool,
    pub(super) content: Option<Text<'a>>,
    /// `content`, when it is an array: parts with the text in them.
    pub(super) parts: Option<&'a [u8]>,
    pub(super) reasoning_content: Option<Text<'a>>,
    pub(super) reasoning: Option<Text<'a>>,
    pub(super) refusal: Option<Text<'a>>,
    /// `tool_calls`, when it is an array.
    pub(super) tool_calls: Option<&'a [u8]>,
    /// `function_call`, when it is an object.
    pub(super) function_call: Option<&'a [u8]>,
}

impl<'a> Chunk<'a> {
    /// Validates `json` from end to end and finds the parts. They are written where they stay: moving what was
    /// just written in pieces costs more than the scan.
    #[inline]
    pub(super) fn scan(&mut self, json: &'a [u8], kind: EndpointKind) -> Scan<()> {
        let chunk = self;
        let mut scanner = Scanner::new(json);
        let (mut usage_metadata, mut meta) = (None, None);
        if kind.ranks() && scanner.peek() == Some(b'[') {
            chunk.ranked = super::rankings::ranked(&mut scanner)?;
            return scanner.end();
        }
        scanner.members(|scanner, key| {
            match key {
                b"choices" => chunk.choices.scan(scanner)?,
                b"object" => chunk.object = scanner.text()?,
                b"usage" => chunk.usage = filled(scanner.span()?),
                b"error" => chunk.error = said(scanner.span()?),
                b"metrics" => chunk.metrics = filled(scanner.span()?),
                b"usageMetadata" => usage_metadata = filled(scanner.span()?),
                b"meta" => meta = filled(scanner.span()?),
                b"data" if kind == EndpointKind::Embeddings => {
                    chunk.vectors = super::embeddings::vectors(scanner)?;
                }
                b"rankings" | b"results" if kind.ranks() => {
                    chunk.ranked = super::rankings::ranked(scanner)?;
                }
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        scanner.end()?;
        if chunk.usage.is_none() {
            chunk.usage = usage_metadata.or(meta);
        }
        if chunk.error.is_none() && chunk.object.is_some_and(|object| object.raw == b"error") {
            chunk.error = Some(json);
        }
        Ok(())
    }

    /// The text of choice 0, when the chunk has no second part that is read. The caller knows that it had output.
    pub(super) fn only_text(&self) -> Option<(Text<'a>, Target)> {
        if self.error.is_some() || self.usage.is_some() || self.metrics.is_some() || self.vectors {
            return None;
        }
        let choice = &self.choices.first;
        if !self.choices.others.is_empty() || choice.index.unwrap_or(0) > 0 {
            return None;
        }
        let delta = choice.delta();
        let filled = |text: Option<Text<'a>>| text.filter(|text| !text.is_empty());
        if choice.finish_reason.is_some()
            || filled(delta.refusal).is_some()
            || delta.tool_calls.is_some_and(|calls| calls != b"[]")
            || delta.function_call.is_some()
        {
            return None;
        }
        let reasoning = [filled(delta.reasoning_content), filled(delta.reasoning)];
        match (filled(delta.content), filled(choice.text), reasoning) {
            (Some(text), None, [None, None]) | (None, Some(text), [None, None]) => Some((text, Target::Text)),
            (None, None, [Some(text), None] | [None, Some(text)]) => Some((text, Target::Reasoning)),
            _ => None,
        }
    }

    /// Whether `object` is one of `names`. An absent one will do beside `choices`: some gateways omit it.
    #[inline]
    pub(super) fn is_one_of(&self, names: &[&[u8]]) -> bool {
        match self.object {
            Some(object) => names.contains(&object.raw),
            None => self.choices.present,
        }
    }
}

/// An object with members.
fn filled(span: &[u8]) -> Option<&[u8]> {
    match span {
        [b'{', inner @ .., b'}'] if !inner.trim_ascii().is_empty() => Some(span),
        _ => None,
    }
}

/// An error that is an object or a text.
fn said(span: &[u8]) -> Option<&[u8]> {
    match span {
        [b'{', ..] | [b'"', _, _, ..] => Some(span),
        _ => None,
    }
}

impl<'a> Choices<'a> {
    #[inline]
    fn scan(&mut self, scanner: &mut Scanner<'a>) -> Scan<()> {
        self.first = Choice::default();
        self.others.clear();
        self.present = scanner.items(|scanner, index| {
            if index == 0 {
                return self.first.scan(scanner);
            }
            self.others.push(scanner.span()?);
            Ok(())
        })?;
        Ok(())
    }
}

impl<'a> Choice<'a> {
    /// One of the choices after the first.
    pub(super) fn of(json: &'a [u8]) -> Choice<'a> {
        let mut choice = Choice::default();
        // The chunk was validated: this cannot fail.
        let _valid = choice.scan(&mut Scanner::new(json));
        choice
    }

    #[inline]
    fn scan(&mut self, scanner: &mut Scanner<'a>) -> Scan<()> {
        scanner.members(|scanner, key| {
            match key {
                b"index" => self.index = unsigned(scanner.span()?),
                b"delta" => self.delta.scan(scanner)?,
                b"message" => self.message.scan(scanner)?,
                b"text" => self.text = scanner.text()?,
                b"finish_reason" => self.finish_reason = scanner.text()?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        Ok(())
    }

    /// What the choice adds: its `delta`, else its `message`.
    #[inline]
    pub(super) fn delta(&self) -> &Delta<'a> {
        if self.delta.present { &self.delta } else { &self.message }
    }
}

impl<'a> Delta<'a> {
    #[inline]
    fn scan(&mut self, scanner: &mut Scanner<'a>) -> Scan<()> {
        if self.present {
            *self = Delta::default();
        }
        self.present = scanner.members(|scanner, key| {
            match key {
                b"content" if scanner.peek() == Some(b'"') => self.content = Some(scanner.string()?),
                b"content" => (self.content, self.parts) = (None, starting(scanner.span()?, b'[')),
                b"reasoning_content" => self.reasoning_content = scanner.text()?,
                b"reasoning" => self.reasoning = scanner.text()?,
                b"refusal" => self.refusal = scanner.text()?,
                b"tool_calls" => self.tool_calls = starting(scanner.span()?, b'['),
                b"function_call" => self.function_call = starting(scanner.span()?, b'{'),
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        Ok(())
    }

    /// The reasoning that counts: `reasoning_content`, else `reasoning`.
    pub(super) fn thought(&self) -> Option<Text<'a>> {
        let filled = |text: &Text<'_>| !text.is_empty();
        self.reasoning_content.filter(filled).or(self.reasoning.filter(filled))
    }
}

fn starting(span: &[u8], byte: u8) -> Option<&[u8]> {
    (span.first() == Some(&byte)).then_some(span)
}
