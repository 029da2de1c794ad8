//! `POST /v1/embeddings`.

use aiperf_types::{Body, Turn};

use super::authored::input_of;
use super::completions::{counted, push_array, texts_of};
use super::merge::{Members, Part};
use super::{Format, Rendered};
use crate::json::push_string;

/// The key of what is asked.
pub(super) const KEY: &str = "input";

pub(super) fn render(format: &Format, turn: &Turn) -> Rendered {
    let texts = texts_of(turn);
    let mut out = Vec::with_capacity(texts.iter().map(|text| text.len() + 4).sum::<usize>() + 128);
    let model = turn.model.as_deref().unwrap_or(&format.model);
    if let (Some(tail), None) = (&format.tail, &turn.extra_body) {
        out.extend_from_slice(b"{\"model\":");
        push_string(model, &mut out);
        out.extend_from_slice(b",\"input\":");
        push_array(&texts, &mut out);
        out.extend_from_slice(&tail.bytes);
    } else {
        let mut members = Members::new(vec![("model", Part::Text(model)), (KEY, Part::Main)]);
        members.overwrite(&format.extra);
        if let Some(extra) = &turn.extra_body {
            members.overwrite(extra);
        }
        out.push(b'{');
        members.write(0, &mut out, |out| push_array(&texts, out));
        out.push(b'}');
        if members.has_given_input() {
            let texts = input_of(&out).0;
            return Rendered { body: Body::single(out), texts, ..Rendered::default() };
        }
    }
    Rendered { body: Body::single(out), texts: counted(&texts, turn), ..Rendered::default() }
}
