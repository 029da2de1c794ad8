//! What is sent: conversations of turns, in the one shape that every source produces.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::TraceSource;

/// Which earlier turns and answers a request of a conversation carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextMode {
    /// All turns so far plus this one; live answers are inserted as assistant messages.
    #[default]
    DeltasWithoutResponses,
    /// All authored turns so far plus this one; live answers are discarded.
    DeltasWithResponses,
    /// This turn only, sent as it is; nothing accumulates.
    MessageArrayWithResponses,
}

impl ContextMode {
    /// Whether a request repeats the turns before it.
    pub fn accumulates(self) -> bool {
        self != ContextMode::MessageArrayWithResponses
    }
}

/// One conversation: turns that are sent strictly one after the other.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Session id, unique in the dataset.
    pub id: Arc<str>,
    /// The turns, in order; empty only where nothing is sent and children are all there is.
    pub turns: Vec<Turn>,
    /// How turns build on each other.
    pub context_mode: ContextMode,
    /// Put in front of every request as a system message.
    pub system_message: Option<Arc<str>>,
    /// Put in front of the first user turn as a user message (generated data).
    pub user_context_message: Option<Arc<str>>,
    /// The session that it was recorded in, sent as `X-Dynamo-Session-ID`; a header value.
    pub source_session: Option<Arc<str>>,
}

/// One turn: what one request adds.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// Recorded time, ms; drives only the fixed schedule.
    pub timestamp_ms: Option<f64>,
    /// Wait after the previous turn returned, ms; without effect on a first turn.
    pub delay_ms: Option<f64>,
    /// Model of this turn; else the configured one.
    pub model: Option<Arc<str>>,
    /// Output limit, at least 1.
    pub max_tokens: Option<u64>,
    /// Role of the message; `user` when absent.
    pub role: Option<Arc<str>>,
    /// What is said.
    pub content: Content,
    /// Top-level body keys of this turn; they win over everything built.
    pub extra_body: Option<Map<String, Value>>,
    /// Tokens of this turn's text by the run's tokenizer, when whoever made the text already knows.
    pub text_tokens: Option<u64>,
    /// Length of its first audio clip, seconds, where whoever brought the clip knows.
    pub audio_seconds: Option<f64>,
    /// Drop what was accumulated before this turn.
    pub reset_context: bool,
    /// Keep only so many of the messages that earlier turns brought, where answers are part of the data.
    pub keep_messages: Option<u32>,
    /// Where an agentic trace has it.
    pub source: Option<Arc<TraceSource>>,
}

/// The content of a turn.
#[derive(Clone, Debug)]
pub enum Content {
    /// Texts and media, to be wrapped as the endpoint wants them.
    Parts {
        /// Text groups, in order.
        texts: Vec<TextGroup>,
        /// Media, in order of kind (images, audios, videos).
        media: Vec<Media>,
    },
    /// Authored chat messages (and tools), spliced as they are.
    Messages {
        /// The messages: a JSON array, text as authored.
        messages: Vec<Box<RawValue>>,
        /// Tool definitions: the JSON array as authored.
        tools: Option<Box<RawValue>>,
    },
    /// An authored whole body, sent byte for byte.
    Payload(Box<RawValue>),
}

impl Default for Content {
    fn default() -> Self {
        Content::Parts { texts: Vec::new(), media: Vec::new() }
    }
}

impl Content {
    /// One unnamed text.
    pub fn text(text: impl Into<Arc<str>>) -> Content {
        Content::Parts {
            texts: vec![TextGroup { name: None, contents: vec![text.into()] }],
            media: Vec::new(),
        }
    }
}

/// Texts under one name (`query`, `passages`, or none).
#[derive(Clone, Debug, Default)]
pub struct TextGroup {
    /// Name of the group, where the format has names.
    pub name: Option<Arc<str>>,
    /// The texts.
    pub contents: Vec<Arc<str>>,
}

/// What a text is for, where passages are ranked by a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranked {
    /// What is asked.
    Query,
    /// What is ranked.
    Passages,
}

impl Ranked {
    /// What the texts of a group of this name are for; `None` where they are for neither.
    pub fn named(name: &str) -> Option<Ranked> {
        match name {
            "query" | "queries" => Some(Ranked::Query),
            "passages" | "passage" => Some(Ranked::Passages),
            _ => None,
        }
    }
}

/// The kind of a media item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// An image: a `data:` or `http(s)://` URL.
    Image,
    /// Audio: `format,base64`, a data URI or a URL.
    Audio,
    /// A video: a `data:` or `http(s)://` URL.
    Video,
}

/// One image, audio clip or video.
#[derive(Clone, Debug)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// Name of its group, where the format has names.
    pub name: Option<Arc<str>>,
    /// The URL or encoded content, as it goes on the wire.
    pub content: Arc<str>,
    /// Authored identity of an image.
    pub uuid: Option<Arc<str>>,
}
