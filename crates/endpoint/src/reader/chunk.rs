//! One event or body, scanned: slices of the parts that matter, in one pass.

use aiperf_config::EndpointKind;

use super::template::Target;
use crate::json::{Scan, Scanner, Text, unsigned};

/// The parts of one JSON answer that are read. Of a key that occurs twice the last one counts.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    /// `object`, when it is a string.
    pub(super) object: Option<Text<'a>>,
    /// `choices`, when it is an array.
    pub(super) choices: Option<Choices<'a>>,
    /// The value of a top-level `error` that says something, or the whole text of an error object.
    pub(super) error: Option<&'a [u8]>,
    /// `usage`, or an envelope that stands for it, when it is an object with members.
    pub(super) usage: Option<&'a [u8]>,
    /// `metrics`, when it is an object.
    pub(super) metrics: Option<&'a [u8]>,
    /// `data` of an embeddings answer: whether it is a list of vectors.
    pub(super) vectors: bool,
}

/// `choices`: the first in parts, the others as they stand.
#[derive(Debug, Default)]
pub(super) struct Choices<'a> {
    pub(super) first: Option<Choice<'a>>,
    pub(super) others: Vec<&'a [u8]>,
}

/// One choice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<u64>,
    /// `delta` or `message`.
    pub(super) delta: Delta<'a>,
    /// `text` of a completion.
    pub(super) text: Option<Text<'a>>,
    pub(super) finish_reason: Option<Text<'a>>,
}

/// What a choice adds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) content: Option<Text<'a>>,
    pub(super) reasoning_content: Option<Text<'a>>,
    pub(super) reasoning: Option<Text<'a>>,
    pub(super) refusal: Option<Text<'a>>,
    /// `tool_calls`, when it is an array.
    pub(super) tool_calls: Option<&'a [u8]>,
    /// `function_call`, when it is an object.
    pub(super) function_call: Option<&'a [u8]>,
}

impl<'a> Chunk<'a> {
    /// Validates `json` from end to end and finds the parts.
    #[inline]
    pub(super) fn scan(json: &'a [u8], kind: EndpointKind) -> Scan<Chunk<'a>> {
        let mut scanner = Scanner::new(json);
        let mut chunk = Chunk::default();
        let (mut usage_metadata, mut meta) = (None, None);
        scanner.members(|scanner, key| {
            match key {
                b"choices" => chunk.choices = Choices::scan(scanner)?,
                b"object" => chunk.object = scanner.text()?,
                b"usage" => chunk.usage = filled(scanner.span()?),
                b"error" => chunk.error = said(scanner.span()?),
                b"metrics" => chunk.metrics = filled(scanner.span()?),
                b"usageMetadata" => usage_metadata = filled(scanner.span()?),
                b"meta" => meta = filled(scanner.span()?),
                b"data" if kind == EndpointKind::Embeddings => {
                    chunk.vectors = super::embeddings::vectors(scanner)?;
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
        Ok(chunk)
    }

    /// The text of choice 0, when the chunk has no second part that is read. The caller knows that it had output.
    pub(super) fn only_text(&self) -> Option<(Text<'a>, Target)> {
        if self.error.is_some() || self.usage.is_some() || self.metrics.is_some() || self.vectors {
            return None;
        }
        let choices = self.choices.as_ref().filter(|choices| choices.others.is_empty())?;
        let choice = choices.first.filter(|choice| choice.index.unwrap_or(0) == 0)?;
        let delta = choice.delta;
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
            None => self.choices.is_some(),
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
    fn scan(scanner: &mut Scanner<'a>) -> Scan<Option<Choices<'a>>> {
        let mut choices = Choices::default();
        let is_array = scanner.items(|scanner, index| {
            if index == 0 {
                choices.first = Some(Choice::scan(scanner)?);
            } else {
                choices.others.push(scanner.span()?);
            }
            Ok(())
        })?;
        Ok(is_array.then_some(choices))
    }
}

impl<'a> Choice<'a> {
    #[inline]
    pub(super) fn scan(scanner: &mut Scanner<'a>) -> Scan<Choice<'a>> {
        let mut choice = Choice::default();
        let (mut delta, mut message) = (None, None);
        scanner.members(|scanner, key| {
            match key {
                b"index" => choice.index = unsigned(scanner.span()?),
                b"delta" => delta = Delta::scan(scanner)?,
                b"message" => message = Delta::scan(scanner)?,
                b"text" => choice.text = scanner.text()?,
                b"finish_reason" => choice.finish_reason = scanner.text()?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        choice.delta = delta.or(message).unwrap_or_default();
        Ok(choice)
    }
}

impl<'a> Delta<'a> {
    #[inline]
    fn scan(scanner: &mut Scanner<'a>) -> Scan<Option<Delta<'a>>> {
        let mut delta = Delta::default();
        let is_object = scanner.members(|scanner, key| {
            match key {
                b"content" => delta.content = scanner.text()?,
                b"reasoning_content" => delta.reasoning_content = scanner.text()?,
                b"reasoning" => delta.reasoning = scanner.text()?,
                b"refusal" => delta.refusal = scanner.text()?,
                b"tool_calls" => delta.tool_calls = starting(scanner.span()?, b'['),
                b"function_call" => delta.function_call = starting(scanner.span()?, b'{'),
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
        Ok(is_object.then_some(delta))
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
