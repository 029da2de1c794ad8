//! `POST /v1/chat/completions`.

use aiperf_types::{Body, Content, ContextMode, Conversation, Media, MediaKind, TextGroup, Turn};
use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use super::authored::{input_of, message};
use super::history::{History, Mark};
use super::merge::{Members, Part, push_count};
use super::texts::Texts;
use super::tools::Tools;
use super::{Carry, Format, Rendered};
use crate::json::{push_compact, push_string, push_unquoted};

/// The key of what is asked.
pub(super) const KEY: &str = "messages";
/// How every chat body begins.
pub(super) const OPEN: &[u8] = b"{\"messages\":[";

pub(super) fn render(
    format: &Format,
    conversation: &Conversation,
    turn: &Turn,
    history: &History,
) -> Rendered {
    // Answers that came in between have no place in what is kept, so it is kept of authored pasts only.
    let kept = turn.keep_messages.filter(|_| conversation.context_mode == ContextMode::DeltasWithResponses);
    let mark = kept.and_then(|messages| history.mark(messages));
    let fresh = history.is_empty()
        || turn.reset_context
        || !conversation.context_mode.accumulates()
        || kept.is_some() && mark.is_none();
    let mut body = Body::default();
    let mut out = Vec::with_capacity(capacity(conversation, turn, history, fresh));
    let mut writer = if fresh {
        out.extend_from_slice(OPEN);
        Messages::new(format, out, Texts::default())
    } else if let Some(mark) = mark {
        let whole = mark.segment as usize;
        for segment in &history.segments[..whole] {
            body.push(segment.clone());
        }
        body.push(history.segments[whole].slice(..mark.end as usize));
        let texts = history.texts.get(..mark.texts as usize).unwrap_or(&history.texts);
        let texts = Texts::after(texts.to_vec());
        Messages { images: history.images, any: true, ..Messages::new(format, out, texts) }
    } else {
        for segment in &history.segments {
            body.push(segment.clone());
        }
        out.extend_from_slice(&history.pending);
        let texts = Texts::after(history.texts.clone());
        Messages { images: history.images, any: history.any, ..Messages::new(format, out, texts) }
    };
    writer.marking = conversation.context_mode == ContextMode::DeltasWithResponses;
    if fresh {
        writer.opening(conversation, turn);
    } else {
        writer.turn(turn);
    }
    let Messages { mut out, mut texts, images, any, marks, lead, .. } = writer;
    let head = out.len();
    out.push(b']');

    let tools = own_tools(turn).or_else(|| if fresh { None } else { history.tools.clone() });
    texts.list.extend(tools.as_ref().and_then(|tools| tools.text.clone()));
    let mut rendered = Rendered {
        texts: texts.list,
        num_images: images,
        audio_seconds: turn.audio_seconds,
        ..Rendered::default()
    };
    let (overwritten, replaced) =
        finish(format, turn, tools.as_ref().map(|tools| tools.json.as_ref()), &mut out, &mut rendered);

    let (segment, whole) = match overwritten {
        None => {
            let bytes = Bytes::from(out);
            body.push(bytes.clone());
            (bytes.slice(..head), body)
        }
        Some(whole) => {
            out.truncate(head);
            (Bytes::from(out), Body::single(whole))
        }
    };
    rendered.body = whole;
    let built = replaced.then(|| {
        let (texts, images) = input_of(&rendered.body.to_bytes());
        rendered.num_images = images;
        std::mem::replace(&mut rendered.texts, texts)
    });
    rendered.carry = Some(Carry {
        built,
        segment,
        fresh,
        any,
        tools,
        keep_answers: conversation.context_mode == ContextMode::DeltasWithoutResponses,
        marks,
        lead,
        kept: kept.filter(|_| !fresh),
    });
    rendered
}

/// Writes what follows the messages. Where the user replaced `messages` itself, the answer is the whole body; beside
/// it, whether the user replaced anything that counts as input.
fn finish(
    format: &Format,
    turn: &Turn,
    tools: Option<&[u8]>,
    out: &mut Vec<u8>,
    rendered: &mut Rendered,
) -> (Option<Vec<u8>>, bool) {
    let model = turn.model.as_deref().unwrap_or(&format.model);
    let limit = format.limit_key();
    if let (Some(tail), None) = (&format.tail, &turn.extra_body) {
        out.extend_from_slice(b",\"model\":");
        push_string(model, out);
        out.extend_from_slice(if format.streaming { b",\"stream\":true" } else { b",\"stream\":false" });
        if let Some(tools) = tools {
            out.extend_from_slice(b",\"tools\":");
            out.extend_from_slice(tools);
        }
        if let Some(tokens) = turn.max_tokens {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(limit.as_bytes());
            out.extend_from_slice(b"\":");
            push_count(tokens, out);
        }
        out.extend_from_slice(&tail.bytes);
        rendered.max_tokens = turn.max_tokens;
        rendered.streaming = tail.streaming;
        return (None, false);
    }
    let mut base =
        vec![(KEY, Part::Main), ("model", Part::Text(model)), ("stream", Part::Switch(format.streaming))];
    base.extend(tools.map(|tools| ("tools", Part::Raw(tools))));
    base.extend(turn.max_tokens.map(|tokens| (limit, Part::Count(tokens))));
    let mut members = Members::new(base);
    members.overwrite(&format.extra);
    if let Some(extra) = &turn.extra_body {
        members.overwrite(extra);
    }
    members.fix_stream_options(format);
    rendered.max_tokens = members.count(limit);
    rendered.streaming = members.streaming();
    let replaced = members.has_given_input();
    if members.starts_with_main() {
        members.write(1, out, |_| {});
        out.push(b'}');
        return (None, replaced);
    }
    let mut whole = vec![b'{'];
    members.write(0, &mut whole, |_| {});
    whole.push(b'}');
    (Some(whole), replaced)
}

fn own_tools(turn: &Turn) -> Option<Tools> {
    let Content::Messages { tools: Some(tools), .. } = &turn.content else { return None };
    Some(Tools::authored(tools.get()))
}

/// Room for the body in one allocation, escapes aside.
fn capacity(conversation: &Conversation, turn: &Turn, history: &History, fresh: bool) -> usize {
    let content = match &turn.content {
        Content::Parts { texts, media } => {
            let texts = texts.iter().flat_map(|group| &group.contents).map(|text| text.len() + 32);
            texts.sum::<usize>() + media.iter().map(|item| item.content.len() + 96).sum::<usize>()
        }
        Content::Messages { messages, .. } => messages.iter().map(|message| message.get().len()).sum(),
        Content::Payload(_) => 0,
    };
    let before = if fresh {
        let length = |text: &std::sync::Arc<str>| text.len() + 48;
        conversation.system_message.as_ref().map_or(0, length)
            + conversation.user_context_message.as_ref().map_or(0, length)
    } else {
        history.pending.len()
    };
    content + before + 320
}

struct Messages<'a> {
    out: Vec<u8>,
    texts: Texts,
    images: u32,
    any: bool,
    format: &'a Format,
    /// Ends of the messages written, where a later turn may keep some of them only.
    marks: Vec<Mark>,
    marking: bool,
    /// Messages written in front of the data.
    lead: u32,
}

impl<'a> Messages<'a> {
    fn new(format: &'a Format, out: Vec<u8>, texts: Texts) -> Messages<'a> {
        Messages { out, texts, images: 0, any: false, format, marks: Vec::new(), marking: false, lead: 0 }
    }

    /// A message is complete.
    fn mark(&mut self) {
        if self.marking {
            let (end, texts) = (self.out.len() as u32, self.texts.list.len() as u32);
            self.marks.push(Mark { segment: 0, end, texts });
        }
    }

    fn comma(&mut self) {
        if self.any {
            self.out.push(b',');
        }
        self.any = true;
    }

    fn role(&mut self, role: &str) {
        self.comma();
        self.out.extend_from_slice(b"{\"role\":");
        push_string(role, &mut self.out);
        self.out.extend_from_slice(b",\"content\":");
    }

    fn plain(&mut self, role: &str, text: &str) {
        self.role(role);
        push_string(text, &mut self.out);
        self.out.push(b'}');
    }

    /// The first request of a conversation: system prompt, user context, turn. A system message that the data
    /// begins with becomes one with the prompt.
    fn opening(&mut self, conversation: &Conversation, turn: &Turn) {
        let system = conversation.system_message.as_ref();
        let merged = system.is_some_and(|system| self.merge_system(system, turn));
        if let Some(system) = system.filter(|_| !merged) {
            self.plain("system", system);
            self.texts.push_first(self.format.system_text(system));
            self.lead += 1;
            self.mark();
        }
        if let Some(context) = &conversation.user_context_message {
            self.plain("user", context);
            self.texts.push_held(context, None);
            self.lead += 1;
            self.mark();
        }
        match &turn.content {
            Content::Messages { messages, .. } if merged => {
                self.authored(messages.get(1..).unwrap_or_default());
            }
            _ if merged => {}
            _ => self.turn(turn),
        }
    }

    /// Writes prompt and the data's own system message as one; whether there was one to merge with.
    fn merge_system(&mut self, system: &str, turn: &Turn) -> bool {
        let mut theirs = match &turn.content {
            Content::Parts { texts, media } if turn.role.as_deref() == Some("system") => {
                let mut content = Vec::new();
                let mut texts_seen = Texts::default();
                let mut part =
                    Messages::new(self.format, std::mem::take(&mut content), std::mem::take(&mut texts_seen));
                part.content(texts, media, None);
                let content = serde_json::from_slice(&part.out).unwrap_or(Value::Null);
                Value::Object(
                    [("role".into(), "system".into()), ("content".into(), content)].into_iter().collect(),
                )
            }
            Content::Messages { messages, .. } => {
                let first =
                    messages.first().and_then(|first| serde_json::from_str::<Value>(first.get()).ok());
                match first {
                    Some(first) if first.get("role").and_then(Value::as_str) == Some("system") => first,
                    _ => return false,
                }
            }
            _ => return false,
        };
        let Some(members) = theirs.as_object_mut() else { return false };
        let content = members.entry("content").or_insert(Value::Null);
        *content = match content.take() {
            Value::String(text) => Value::String(format!("{system}\n\n{text}")),
            Value::Array(mut parts) => {
                let first = [("type".into(), "text".into()), ("text".into(), system.into())];
                parts.insert(0, Value::Object(first.into_iter().collect()));
                Value::Array(parts)
            }
            _ => Value::String(system.into()),
        };
        let text = theirs.to_string();
        self.comma();
        self.out.extend_from_slice(text.as_bytes());
        message(text.as_bytes(), &mut self.texts, &mut self.images);
        self.mark();
        true
    }

    fn turn(&mut self, turn: &Turn) {
        match &turn.content {
            Content::Parts { texts, media } => {
                self.role(turn.role.as_deref().unwrap_or("user"));
                self.content(texts, media, turn.text_tokens);
                self.out.push(b'}');
                self.mark();
            }
            Content::Messages { messages, .. } => self.authored(messages),
            Content::Payload(_) => {}
        }
    }

    fn authored(&mut self, messages: &[Box<RawValue>]) {
        for raw in messages {
            self.comma();
            push_compact(raw.get(), &mut self.out);
            message(raw.get().as_bytes(), &mut self.texts, &mut self.images);
            self.mark();
        }
    }

    /// A string for one text alone; else parts: texts, images, audios, videos.
    fn content(&mut self, texts: &[TextGroup], media: &[Media], known: Option<u64>) {
        let mut all = texts.iter().flat_map(|group| &group.contents);
        if let (Some(text), None, true) =
            (all.next(), all.next(), media.is_empty() && !self.format.force_parts)
        {
            push_string(text, &mut self.out);
            self.texts.push_held(text, known);
            return;
        }
        let start = self.out.len();
        let mut count = 0;
        for text in texts.iter().flat_map(|group| &group.contents).filter(|text| !text.is_empty()) {
            self.part(&mut count);
            self.out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
            push_string(text, &mut self.out);
            self.out.push(b'}');
            // The turn's count is for all of its texts: it stands at the first of them.
            match known {
                Some(tokens) if count == 1 => self.texts.push(text, Some(tokens)),
                Some(_) => {}
                None => self.texts.push_held(text, None),
            }
        }
        for kind in [MediaKind::Image, MediaKind::Audio, MediaKind::Video] {
            for item in media.iter().filter(|item| item.kind == kind) {
                self.media(item, &mut count);
            }
        }
        if count == 0 {
            self.out.truncate(start);
            self.out.extend_from_slice(b"\"\"");
        } else {
            self.out.push(b']');
        }
    }

    fn part(&mut self, count: &mut u32) {
        self.out.push(if *count == 0 { b'[' } else { b',' });
        *count += 1;
    }

    fn media(&mut self, item: &Media, count: &mut u32) {
        if item.content.is_empty() && item.uuid.is_none() {
            return;
        }
        match item.kind {
            MediaKind::Image => {
                self.part(count);
                self.images += 1;
                self.out.extend_from_slice(b"{\"type\":\"image_url\",\"image_url\":{\"url\":");
                push_string(&item.content, &mut self.out);
                self.out.push(b'}');
                if let Some(uuid) = &item.uuid {
                    self.out.extend_from_slice(b",\"uuid\":");
                    push_string(uuid, &mut self.out);
                }
                self.out.push(b'}');
            }
            MediaKind::Audio => {
                let Some((format, data)) = audio(&item.content) else { return };
                self.part(count);
                self.out.extend_from_slice(b"{\"type\":\"input_audio\",\"input_audio\":{\"data\":");
                push_string(data, &mut self.out);
                self.out.extend_from_slice(b",\"format\":\"");
                push_unquoted(format, &mut self.out);
                self.out.extend_from_slice(b"\"}}");
            }
            MediaKind::Video => {
                self.part(count);
                self.out.extend_from_slice(b"{\"type\":\"video_url\",\"video_url\":{\"url\":");
                push_string(&item.content, &mut self.out);
                self.out.extend_from_slice(b"}}");
            }
        }
    }
}

/// Format and base64 data of `wav,<base64>` or `data:audio/wav;base64,<base64>`.
pub(super) fn audio(content: &str) -> Option<(&str, &str)> {
    let (head, data) = content.split_once(',')?;
    let format = match head.strip_prefix("data:") {
        Some(rest) => {
            let (media_type, encoding) = rest.split_once(';')?;
            if !encoding.split(';').any(|item| item.eq_ignore_ascii_case("base64")) {
                return None;
            }
            media_type.split_once('/')?.1
        }
        None => head,
    };
    let plain = !format.is_empty()
        && format.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+.".contains(&byte));
    (plain && !data.is_empty()).then_some((format, data))
}
