//! Request bodies.

mod authored;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use authored::payload;
mod chat;
mod completions;
mod embeddings;
mod history;
mod merge;
mod rankings;
mod texts;
mod tools;

pub(crate) use texts::joined;

use std::sync::{Arc, OnceLock};

use aiperf_config::{EndpointConfig, EndpointKind};
use aiperf_types::{Body, Content, Conversation, CountedText, MediaKind, Turn};
use bytes::Bytes;
use serde_json::{Map, Value};
use thiserror::Error;
use tools::Tools;

pub use history::History;

/// Why a conversation cannot be sent to an endpoint. Found when the data is loaded, never per request.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FormatError {
    /// Authored chat messages on an endpoint that takes text.
    #[error(
        "conversation '{conversation}', turn {turn}: `messages` cannot be sent to --endpoint-type {endpoint}; use \
         --endpoint-type chat, or data with texts"
    )]
    Messages {
        /// Session id.
        conversation: String,
        /// Index of the turn.
        turn: usize,
        /// The endpoint type.
        endpoint: &'static str,
    },
    /// Turns that build on each other on an endpoint that takes one turn.
    #[error(
        "conversation '{conversation}' has {turns} turns that build on each other, and --endpoint-type {endpoint} \
         takes one; use --endpoint-type chat, or data whose every turn is complete"
    )]
    SeveralTurns {
        /// Session id.
        conversation: String,
        /// Number of turns.
        turns: usize,
        /// The endpoint type.
        endpoint: &'static str,
    },
    /// A system prompt on an endpoint without one.
    #[error(
        "conversation '{conversation}' has a system prompt, which --endpoint-type {endpoint} cannot carry; drop \
         --system-prompt and --shared-system-prompt-length, or use --endpoint-type chat"
    )]
    SystemPrompt {
        /// Session id.
        conversation: String,
        /// The endpoint type.
        endpoint: &'static str,
    },
    /// A user context message on an endpoint without messages.
    #[error(
        "conversation '{conversation}' has a user context, which --endpoint-type {endpoint} cannot carry; drop \
         --user-context-prompt-length, or use --endpoint-type chat"
    )]
    UserContext {
        /// Session id.
        conversation: String,
        /// The endpoint type.
        endpoint: &'static str,
    },
    /// Media on an endpoint without them.
    #[error("conversation '{conversation}', turn {turn}: --endpoint-type {endpoint} cannot carry {media}")]
    Media {
        /// Session id.
        conversation: String,
        /// Index of the turn.
        turn: usize,
        /// The endpoint type.
        endpoint: &'static str,
        /// Plural of the kind of media.
        media: &'static str,
    },
    /// Audio that does not say its format.
    #[error(
        "conversation '{conversation}', turn {turn}: audio must be `format,base64` or a base64 data URI for \
         --endpoint-type {endpoint}"
    )]
    AudioForm {
        /// Session id.
        conversation: String,
        /// Index of the turn.
        turn: usize,
        /// The endpoint type.
        endpoint: &'static str,
    },
    /// No query, no passages, or texts that are neither, on an endpoint that ranks.
    #[error(
        "conversation '{conversation}', turn {turn}, {what}; --endpoint-type {endpoint} ranks texts named `passages` by \
         one named `query`"
    )]
    NothingToRank {
        /// Session id.
        conversation: String,
        /// Index of the turn.
        turn: usize,
        /// What is missing or too much.
        what: String,
        /// The endpoint type.
        endpoint: &'static str,
    },
    /// Whole bodies beside turns that are built.
    #[error(
        "conversation '{conversation}': turns {with} are whole payloads and turns {without} are not; a conversation \
         has payloads in all turns or in none"
    )]
    MixedPayloads {
        /// Session id.
        conversation: String,
        /// Indexes of the turns with a payload.
        with: String,
        /// Indexes of the others.
        without: String,
    },
}

/// The keys of a body in which this endpoint is asked.
pub fn prompt_keys(kind: EndpointKind) -> &'static [&'static str] {
    match kind {
        EndpointKind::Chat => &[chat::KEY],
        EndpointKind::Completions => &[completions::KEY],
        EndpointKind::Embeddings => &[embeddings::KEY],
        EndpointKind::CohereRankings | EndpointKind::HfTeiRankings | EndpointKind::NimRankings => {
            rankings::keys(kind)
        }
    }
}

/// A request, ready to be sent.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// The bytes.
    pub body: Body,
    /// The texts of the request in order. Its input length is the sum of their tokens: every text after the
    /// first is counted together with the one space that joins it to the text before.
    pub texts: Vec<Arc<CountedText>>,
    /// Output limit in the body.
    pub max_tokens: Option<u64>,
    /// Image parts in the body.
    pub num_images: u32,
    /// Length of the audio of the turn, seconds, where it is known.
    pub audio_seconds: Option<f64>,
    /// The body asks for a streamed answer (`Accept: text/event-stream`).
    pub streaming: bool,
    /// What a next request of the conversation repeats.
    carry: Option<Carry>,
}

/// What one chat request adds to the history of its conversation.
#[derive(Clone, Debug)]
struct Carry {
    /// The messages that are new with this request, with what stands before them.
    segment: Bytes,
    /// This request does not repeat what came before.
    fresh: bool,
    /// Whether the request has at least one message.
    any: bool,
    /// The texts of the messages, where those of the request are other ones because the user replaced them.
    built: Option<Vec<Arc<CountedText>>>,
    /// Tool definitions in effect.
    tools: Option<Tools>,
    /// Live answers are part of the history.
    keep_answers: bool,
    /// Where its messages end.
    marks: Vec<history::Mark>,
    /// Messages that were put in front of the data.
    lead: u32,
    /// Messages of the data that it kept of the past, where it did not keep all.
    kept: Option<u32>,
}

impl Rendered {
    /// The `messages` array of a chat request as JSON text, for counting through a chat template. `None` for
    /// other bodies.
    pub fn messages_json(&self) -> Option<String> {
        let carry = self.carry.as_ref()?;
        let mut json = Vec::new();
        if let [before @ .., _] = self.body.segments()
            && !carry.fresh
        {
            for segment in before {
                json.extend_from_slice(segment);
            }
        }
        json.extend_from_slice(&carry.segment);
        json.push(b']');
        json.drain(..chat::OPEN.len() - 1);
        String::from_utf8(json).ok()
    }

    /// The `tools` array of a chat request as JSON text.
    pub fn tools_json(&self) -> Option<&str> {
        let tools = self.carry.as_ref()?.tools.as_ref()?;
        std::str::from_utf8(&tools.json).ok()
    }
}

/// The settled form of the requests of a run.
#[derive(Debug)]
pub struct Format {
    kind: EndpointKind,
    model: Box<str>,
    streaming: bool,
    legacy_max_tokens: bool,
    per_chunk_usage: bool,
    force_parts: bool,
    extra: Map<String, Value>,
    /// The end of a body when no turn changes it; absent when an extra input replaces a built key.
    tail: Option<merge::Tail>,
    /// The system message of the run, counted once: most runs have one for all conversations.
    system: OnceLock<(Arc<str>, Arc<CountedText>)>,
}

impl Format {
    /// The form of the requests to `endpoint`, naming `model` unless a turn has its own.
    pub fn new(endpoint: &EndpointConfig, model: &str) -> Format {
        let streaming = endpoint.streaming && endpoint.kind.can_stream();
        let mut format = Format {
            kind: endpoint.kind,
            model: model.into(),
            streaming,
            legacy_max_tokens: endpoint.use_legacy_max_tokens,
            per_chunk_usage: endpoint.per_chunk_usage && endpoint.kind == EndpointKind::Chat,
            force_parts: false,
            extra: endpoint.extra_inputs.clone(),
            tail: None,
            system: OnceLock::new(),
        };
        format.tail = merge::Tail::of(&format);
        format
    }

    /// Message content is always an array of parts, single texts included.
    #[must_use]
    pub fn force_content_parts(mut self, force: bool) -> Format {
        self.force_parts = force;
        self
    }

    /// Whether `conversation` can be said in this API.
    pub fn check(&self, conversation: &Conversation) -> Result<(), FormatError> {
        let id = || conversation.id.to_string();
        let endpoint = self.kind.name();
        let is_payload = |turn: &Turn| matches!(turn.content, Content::Payload(_));
        let payloads = conversation.turns.iter().filter(|turn| is_payload(turn)).count();
        if payloads == conversation.turns.len() {
            return Ok(());
        }
        if payloads > 0 {
            let indexes = |wanted: bool| {
                let turns = conversation.turns.iter().enumerate();
                let picked = turns.filter(|(_, turn)| is_payload(turn) == wanted);
                picked.map(|(index, _)| index.to_string()).collect::<Vec<_>>().join(", ")
            };
            return Err(FormatError::MixedPayloads {
                conversation: id(),
                with: indexes(true),
                without: indexes(false),
            });
        }
        if self.kind.single_turn_only() {
            if conversation.turns.len() > 1 && conversation.context_mode.accumulates() {
                let turns = conversation.turns.len();
                return Err(FormatError::SeveralTurns { conversation: id(), turns, endpoint });
            }
            if conversation.system_message.is_some() {
                return Err(FormatError::SystemPrompt { conversation: id(), endpoint });
            }
            if conversation.user_context_message.is_some() {
                return Err(FormatError::UserContext { conversation: id(), endpoint });
            }
        }
        for (turn, content) in conversation.turns.iter().map(|turn| &turn.content).enumerate() {
            match content {
                Content::Messages { .. } if self.kind != EndpointKind::Chat => {
                    return Err(FormatError::Messages { conversation: id(), turn, endpoint });
                }
                Content::Parts { media, .. } => {
                    for item in media {
                        if self.kind != EndpointKind::Chat {
                            let media = match item.kind {
                                MediaKind::Image => "images",
                                MediaKind::Audio => "audio",
                                MediaKind::Video => "videos",
                            };
                            return Err(FormatError::Media { conversation: id(), turn, endpoint, media });
                        }
                        if item.kind == MediaKind::Audio && chat::audio(&item.content).is_none() {
                            return Err(FormatError::AudioForm { conversation: id(), turn, endpoint });
                        }
                    }
                }
                _ => {}
            }
        }
        if self.kind.ranks() {
            let faults = conversation.turns.iter().map(rankings::fault).enumerate();
            if let Some((turn, what)) = faults.into_iter().find_map(|(turn, fault)| Some((turn, fault?))) {
                return Err(FormatError::NothingToRank { conversation: id(), turn, what, endpoint });
            }
        }
        Ok(())
    }

    /// The request of turn `turn` (an index into the conversation), after what `history` holds. A payload is
    /// sent byte for byte. The texts are not counted here: whoever needs their number asks
    /// [`CountedText::tokens`], on a thread that may spend the time.
    pub fn render(&self, conversation: &Conversation, turn: usize, history: &History) -> Rendered {
        let Some(now) = conversation.turns.get(turn) else {
            // A caller's slip must not cost the run; an empty body is refused by every server.
            return Rendered::default();
        };
        if let Content::Payload(payload) = &now.content {
            return authored::payload(payload.get(), self.kind);
        }
        match self.kind {
            EndpointKind::Chat => chat::render(self, conversation, now, history),
            EndpointKind::Completions => completions::render(self, now),
            EndpointKind::Embeddings => embeddings::render(self, now),
            EndpointKind::CohereRankings | EndpointKind::HfTeiRankings | EndpointKind::NimRankings => {
                rankings::render(self, now)
            }
        }
    }

    /// The body of turn `turn` as if it were the only one of its conversation: what `inputs.json` shows.
    pub fn render_alone(&self, conversation: &Conversation, turn: usize) -> Body {
        self.render(conversation, turn, &History::default()).body
    }

    fn system_text(&self, text: &Arc<str>) -> Arc<CountedText> {
        let (first, counted) =
            self.system.get_or_init(|| (Arc::clone(text), Arc::new(CountedText::new(Arc::clone(text)))));
        if Arc::ptr_eq(first, text) || first == text {
            Arc::clone(counted)
        } else {
            Arc::new(CountedText::new(Arc::clone(text)))
        }
    }

    fn limit_key(&self) -> &'static str {
        match self.kind {
            EndpointKind::Chat if !self.legacy_max_tokens => "max_completion_tokens",
            _ => "max_tokens",
        }
    }
}
