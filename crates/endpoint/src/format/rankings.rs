//! Which of these passages fit this query best? Three servers ask for it in their own words.

use std::sync::Arc;

use aiperf_config::EndpointKind;
use aiperf_types::{Body, Content, Ranked, Turn};

use super::authored::texts_of_body;
use super::completions::{counted, push_array};
use super::merge::{Members, Part};
use super::{Format, Rendered};
use crate::json::push_string;

/// What a turn gives to rank.
#[derive(Debug, Default)]
struct Texts<'a> {
    query: Option<&'a Arc<str>>,
    passages: Vec<&'a Arc<str>>,
}

/// The texts of a turn by what they are for; `Err` is the name of a group that is for neither.
fn texts_of(turn: &Turn) -> Result<Texts<'_>, &str> {
    let mut texts = Texts::default();
    let Content::Parts { texts: groups, .. } = &turn.content else { return Ok(texts) };
    for group in groups {
        let name = group.name.as_deref().unwrap_or_default();
        let mut filled = group.contents.iter().filter(|text| !text.is_empty());
        match Ranked::named(name).ok_or(name)? {
            Ranked::Query => texts.query = texts.query.or_else(|| filled.next()),
            Ranked::Passages => texts.passages.extend(filled),
        }
    }
    Ok(texts)
}

/// Why a turn cannot be ranked, in words that follow its name.
pub(super) fn fault(turn: &Turn) -> Option<String> {
    match texts_of(turn) {
        Err("") => Some("has texts without a name".into()),
        Err(name) => Some(format!("has texts named `{name}`")),
        Ok(Texts { query: None, .. }) => Some("has no query".into()),
        Ok(texts) if texts.passages.is_empty() => Some("has no passages".into()),
        Ok(_) => None,
    }
}

/// How a server wants to be asked.
struct Shape {
    /// Whether a model is named.
    model: bool,
    /// The keys of the query and of the passages.
    keys: &'static [&'static str; 2],
    /// Whether texts are objects with a `text`.
    objects: bool,
}

impl Shape {
    fn of(kind: EndpointKind) -> Shape {
        match kind {
            EndpointKind::NimRankings => Shape { model: true, keys: &["query", "passages"], objects: true },
            EndpointKind::HfTeiRankings => Shape { model: false, keys: &["query", "texts"], objects: false },
            _ => Shape { model: true, keys: &["query", "documents"], objects: false },
        }
    }
}

/// The keys of what is asked.
pub(super) fn keys(kind: EndpointKind) -> &'static [&'static str] {
    Shape::of(kind).keys
}

pub(super) fn render(format: &Format, turn: &Turn) -> Rendered {
    let shape = Shape::of(format.kind);
    let [asks, offers] = *shape.keys;
    // A turn without a query was refused when it was loaded.
    let Texts { query, passages } = texts_of(turn).unwrap_or_default();
    let mut texts: Vec<_> = query.into_iter().collect();
    texts.extend(&passages);
    let mut asked = Vec::new();
    push_text(query.map_or("", |query| query), shape.objects, &mut asked);
    let mut base = Vec::with_capacity(3);
    if shape.model {
        base.push(("model", Part::Text(turn.model.as_deref().unwrap_or(&format.model))));
    }
    base.push((asks, Part::Raw(&asked)));
    base.push((offers, Part::Main));
    let mut members = Members::new(base);
    members.overwrite(&format.extra);
    if let Some(extra) = &turn.extra_body {
        members.overwrite(extra);
    }
    let mut out = Vec::with_capacity(texts.iter().map(|text| text.len() + 16).sum::<usize>() + 128);
    out.push(b'{');
    members.write(0, &mut out, |out| {
        if shape.objects {
            push_objects(&passages, out);
        } else {
            push_array(&passages, out);
        }
    });
    out.push(b'}');
    let replaced = |key: &str| matches!(members.get(key), Some(Part::Given(_)));
    let texts = if replaced(asks) || replaced(offers) {
        texts_of_body(&out, format.kind)
    } else {
        counted(&texts, turn)
    };
    Rendered { body: Body::single(out), texts, ..Rendered::default() }
}

fn push_objects(texts: &[&Arc<str>], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_text(text, true, out);
    }
    out.push(b']');
}

fn push_text(text: &str, object: bool, out: &mut Vec<u8>) {
    if !object {
        return push_string(text, out);
    }
    out.extend_from_slice(b"{\"text\":");
    push_string(text, out);
    out.push(b'}');
}
