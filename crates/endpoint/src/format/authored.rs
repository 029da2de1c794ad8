//! Bodies and messages that somebody else wrote: sent as they are, read only for what the records need.

use std::sync::Arc;

use aiperf_config::EndpointKind;
use aiperf_types::{Body, CountedText};

use super::Rendered;
use super::texts::Texts;
use super::tools::{called, tool_text};
use crate::json::{Scan, Scanner, Text, unsigned};

/// The input of a body in which the user replaced what was built.
pub(super) fn input_of(json: &[u8]) -> (Vec<Arc<CountedText>>, u32) {
    // Extra inputs are of all endpoints alike, and nothing else in the answer depends on it.
    let read = read(json, EndpointKind::Chat);
    (read.texts, read.num_images)
}

/// The texts of a body of this endpoint.
pub(super) fn texts_of_body(json: &[u8], kind: EndpointKind) -> Vec<Arc<CountedText>> {
    read(json, kind).texts
}

/// A whole body, sent byte for byte.
pub(crate) fn payload(json: &str, kind: EndpointKind) -> Rendered {
    Rendered { body: Body::single(json.as_bytes().to_vec()), ..read(json.as_bytes(), kind) }
}

fn read(json: &[u8], kind: EndpointKind) -> Rendered {
    let mut rendered = Rendered::default();
    let mut texts = Texts::default();
    let mut tools = None;
    let mut stream = None;
    let mut limits = [None; 2];
    let mut scanner = Scanner::new(json);
    // The text was parsed when it was loaded, so that there is nothing to report here.
    let _valid = scanner.members(|scanner, key| {
        match key {
            b"messages" => {
                scanner.items(|scanner, _| message_in(scanner, &mut texts, &mut rendered.num_images))?;
            }
            b"prompt" | b"input" => text_or_texts(scanner, &mut texts)?,
            b"query" | b"documents" | b"texts" | b"passages" if kind.ranks() => {
                ranked_texts(scanner, &mut texts)?;
            }
            b"tools" => tools = tool_text(scanner.span()?),
            b"stream" => stream = Some(scanner.span()?),
            b"max_completion_tokens" => limits[0] = unsigned(scanner.span()?),
            b"max_tokens" => limits[1] = unsigned(scanner.span()?),
            _ => scanner.skip()?,
        }
        Ok(())
    });
    if let Some(tools) = tools {
        texts.push(&tools, None);
    }
    rendered.texts = texts.list;
    rendered.max_tokens = limits[0].or(limits[1]);
    rendered.streaming = kind.can_stream() && stream.is_some_and(truthy);
    rendered
}

fn truthy(raw: &[u8]) -> bool {
    match raw.first() {
        Some(b't') => true,
        Some(b'"' | b'[' | b'{') => raw.len() > 2,
        Some(b'n' | b'f') | None => false,
        Some(_) => raw.iter().any(|byte| (b'1'..=b'9').contains(byte)),
    }
}

/// A text, several, or texts that are token ids already: `[1, 2]` or `[[1, 2], [3]]`.
fn text_or_texts(scanner: &mut Scanner<'_>, texts: &mut Texts) -> Scan<()> {
    let mut ids = 0;
    if let Some(b'[') = scanner.peek() {
        scanner.items(|scanner, _| match scanner.peek() {
            Some(b'[') => scanner.items(|scanner, _| token_id(scanner, &mut ids)).map(|_| ()),
            Some(b'"') => {
                push(scanner.string()?, texts);
                Ok(())
            }
            _ => token_id(scanner, &mut ids),
        })?;
    } else if let Some(text) = scanner.text()? {
        push(text, texts);
    }
    if ids > 0 {
        texts.push_ids(ids);
    }
    Ok(())
}

/// A text to rank or to rank by, or several.
fn ranked_texts(scanner: &mut Scanner<'_>, texts: &mut Texts) -> Scan<()> {
    if let Some(b'[') = scanner.peek() {
        scanner.items(|scanner, _| ranked_text(scanner, texts))?;
        return Ok(());
    }
    ranked_text(scanner, texts)
}

/// A text, or an object with a `text`.
fn ranked_text(scanner: &mut Scanner<'_>, texts: &mut Texts) -> Scan<()> {
    let mut found = None;
    if let Some(b'{') = scanner.peek() {
        scanner.members(|scanner, key| {
            match key {
                b"text" => found = scanner.text()?,
                _ => scanner.skip()?,
            }
            Ok(())
        })?;
    } else {
        found = scanner.text()?;
    }
    if let Some(text) = found {
        push(text, texts);
    }
    Ok(())
}

fn token_id(scanner: &mut Scanner<'_>, ids: &mut u64) -> Scan<()> {
    *ids += u64::from(unsigned(scanner.span()?).is_some());
    Ok(())
}

fn push(text: Text<'_>, texts: &mut Texts) {
    match text.plain() {
        Some(plain) => texts.push(plain, None),
        None => texts.push_made(text.to_text()),
    }
}

/// Texts and images of one authored chat message.
pub(super) fn message(json: &[u8], texts: &mut Texts, images: &mut u32) {
    // See `payload`: the text is known to be JSON.
    let _valid = message_in(&mut Scanner::new(json), texts, images);
}

fn message_in(scanner: &mut Scanner<'_>, texts: &mut Texts, images: &mut u32) -> Scan<()> {
    let mut calls = None;
    scanner.members(|scanner, key| {
        match key {
            b"content" if scanner.peek() == Some(b'[') => {
                scanner.items(|scanner, _| part(scanner, texts, images))?;
            }
            b"content" => {
                if let Some(text) = scanner.text()? {
                    push(text, texts);
                }
            }
            b"tool_calls" => calls = called(scanner.span()?),
            _ => scanner.skip()?,
        }
        Ok(())
    })?;
    if let Some(calls) = calls {
        texts.push(&calls, None);
    }
    Ok(())
}

fn part(scanner: &mut Scanner<'_>, texts: &mut Texts, images: &mut u32) -> Scan<()> {
    let mut image = false;
    let mut text = None;
    scanner.members(|scanner, key| {
        match key {
            b"type" => {
                let kind = scanner.text()?;
                image = kind.is_some_and(|kind| kind.raw == b"image_url" || kind.raw == b"input_image");
            }
            b"text" => text = scanner.text()?,
            _ => scanner.skip()?,
        }
        Ok(())
    })?;
    if let Some(text) = text {
        push(text, texts);
    }
    *images += u32::from(image);
    Ok(())
}
