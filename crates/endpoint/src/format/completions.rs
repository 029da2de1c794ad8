//! `POST /v1/completions`.

use std::sync::Arc;

use aiperf_types::{Body, Content, Turn};

use super::authored::input_of;
use super::merge::{Members, Part, push_count};
use super::texts::Texts;
use super::{Format, Rendered};
use crate::json::push_string;

/// The key of what is asked.
pub(super) const KEY: &str = "prompt";

pub(super) fn render(format: &Format, turn: &Turn) -> Rendered {
    let texts = texts_of(turn);
    let mut rendered = Rendered { texts: counted(&texts, turn), ..Rendered::default() };
    let mut out = Vec::with_capacity(texts.iter().map(|text| text.len() + 4).sum::<usize>() + 320);
    let model = turn.model.as_deref().unwrap_or(&format.model);
    if let (Some(tail), None) = (&format.tail, &turn.extra_body) {
        out.extend_from_slice(b"{\"prompt\":");
        push_prompt(&texts, &mut out);
        out.extend_from_slice(b",\"model\":");
        push_string(model, &mut out);
        out.extend_from_slice(if format.streaming { b",\"stream\":true" } else { b",\"stream\":false" });
        if let Some(tokens) = turn.max_tokens {
            out.extend_from_slice(b",\"max_tokens\":");
            push_count(tokens, &mut out);
        }
        out.extend_from_slice(&tail.bytes);
        rendered.max_tokens = turn.max_tokens;
        rendered.streaming = tail.streaming;
    } else {
        let mut base =
            vec![(KEY, Part::Main), ("model", Part::Text(model)), ("stream", Part::Switch(format.streaming))];
        base.extend(turn.max_tokens.map(|tokens| ("max_tokens", Part::Count(tokens))));
        let mut members = Members::new(base);
        members.overwrite(&format.extra);
        if let Some(extra) = &turn.extra_body {
            members.overwrite(extra);
        }
        members.fix_stream_options(format);
        rendered.max_tokens = members.count("max_tokens");
        rendered.streaming = members.streaming();
        out.push(b'{');
        members.write(0, &mut out, |out| push_prompt(&texts, out));
        out.push(b'}');
        if members.has_given_input() {
            rendered.texts = input_of(&out).0;
        }
    }
    rendered.body = Body::single(out);
    rendered
}

/// A bare string for one text, an array otherwise.
fn push_prompt(texts: &[&Arc<str>], out: &mut Vec<u8>) {
    match texts {
        [one] => push_string(one, out),
        many => push_array(many, out),
    }
}

/// The texts as an array of strings.
pub(super) fn push_array(texts: &[&Arc<str>], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_string(text, out);
    }
    out.push(b']');
}

/// The texts of a turn that are not empty.
pub(super) fn texts_of(turn: &Turn) -> Vec<&Arc<str>> {
    match &turn.content {
        Content::Parts { texts, .. } => {
            texts.iter().flat_map(|group| &group.contents).filter(|text| !text.is_empty()).collect()
        }
        _ => Vec::new(),
    }
}

/// The texts as they count; a count of the whole turn stands at the first.
pub(super) fn counted(texts: &[&Arc<str>], turn: &Turn) -> Vec<Arc<aiperf_types::CountedText>> {
    let mut list = Texts::default();
    match (texts, turn.text_tokens) {
        ([first, ..], Some(tokens)) => list.push_held(first, Some(tokens)),
        (texts, _) => texts.iter().for_each(|text| list.push_held(text, None)),
    }
    list.list
}
