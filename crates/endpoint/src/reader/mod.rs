//! What comes back.
//!
//! One reader for whole bodies and for streams. It stamps each event with the instant of the read that completed
//! it, scans the event where it lies and keeps of it only what the record needs.

mod chat;
mod chunk;
mod completions;
mod embeddings;
mod instants;
mod rankings;
mod rare;
mod reply;
mod speculation;
mod template;
mod usage;

use aiperf_clock::Mono;
use aiperf_config::EndpointKind;
use aiperf_types::{Answer, Channel, ContentEvent, RawResponse, RequestError, Usage};

use crate::json::{Text, fault, push_lossy};
use crate::sse::{Event, Sink, Splitter};
use chunk::Chunk;
use instants::Instants;
use rare::Rare;
pub use reply::Reply;
use template::{Target, Template};

/// What the answers of a run are read for.
#[derive(Clone, Copy, Debug)]
pub struct ReadPlan {
    /// The API dialect.
    pub kind: EndpointKind,
    /// The request asked for a stream.
    pub streaming_requested: bool,
    /// Fill [`Answer::text`] and [`Answer::reasoning`], which nobody needs where the server counts the tokens. What is
    /// kept of a stream then does not grow with its text.
    pub keep_text: bool,
    /// Fill [`Answer::raw`].
    pub keep_raw: bool,
    /// Fill [`Answer::transcript`].
    pub keep_transcript: bool,
    /// Fill [`Reading::reply`], for the next turn of the conversation.
    pub keep_history: bool,
}

impl ReadPlan {
    /// A plan that keeps the text, and nothing beyond what every record needs.
    pub fn new(kind: EndpointKind, streaming_requested: bool) -> ReadPlan {
        ReadPlan {
            kind,
            streaming_requested,
            keep_text: true,
            keep_raw: false,
            keep_transcript: false,
            keep_history: false,
        }
    }

    /// Whether anything is made of the text.
    fn needs_text(self) -> bool {
        self.keep_text || self.keep_transcript || self.keep_history
    }
}

/// An answer that was read to its end.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// What it said.
    pub answer: Answer,
    /// Why it fails the request; `answer` then holds what came before.
    pub error: Option<RequestError>,
    /// What the next turn repeats; only when asked for, and only of an answer that succeeded.
    pub reply: Option<Reply>,
    /// Speculative decoding statistics came that contradict themselves, and were dropped; worth one warning.
    pub bad_spec_decode: bool,
}

/// Reads one answer, read by read.
#[derive(Debug)]
pub struct Reader {
    splitter: Splitter,
    state: State,
}

/// How the body is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A stream of events.
    Events,
    /// One JSON text.
    Text,
    /// A text that its server does not call JSON; it is read as one.
    OtherText,
    /// Media: bytes of no further interest.
    Bytes,
}

impl Shape {
    fn of(content_type: &str) -> Shape {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let is = |name: &str| media_type.eq_ignore_ascii_case(name);
        let starts = |prefix: &str| {
            media_type.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        if is("text/event-stream") {
            Shape::Events
        } else if is("application/json") {
            Shape::Text
        } else if is("application/octet-stream") || starts("video/") || starts("image/") || starts("audio/") {
            Shape::Bytes
        } else {
            Shape::OtherText
        }
    }
}

/// Everything but the splitter.
#[derive(Debug)]
struct State {
    plan: ReadPlan,
    shape: Shape,
    /// The instant of the read at hand.
    at: Mono,
    last_event: Option<Mono>,
    /// Reads so far.
    read: u32,
    /// The read of the last content event.
    content_read: u32,
    content: Instants,
    /// Text is only looked at.
    drop_text: bool,
    /// A whole body so far.
    body: Vec<u8>,
    /// Text of choice 0.
    text: String,
    reasoning: String,
    usage: Option<Box<Usage>>,
    first_chunk_completion_tokens: Option<u64>,
    rare: Option<Box<Rare>>,
    template: Template,
    skipped_events: u32,
    coalesced_events: u32,
    /// `[DONE]` came: whatever follows is ignored.
    done: bool,
    /// A finish reason came.
    finished: bool,
    failed: bool,
    /// The last finish reason of choice 0 was `stop`, by far the most frequent one.
    finish_stop: bool,
}

impl Reader {
    /// A reader for an answer with this `Content-Type`.
    pub fn new(plan: &ReadPlan, content_type: &str) -> Reader {
        let shape = Shape::of(content_type);
        let mut state = State {
            plan: *plan,
            shape,
            at: Mono(0),
            last_event: None,
            read: 0,
            content_read: 0,
            content: Instants::default(),
            drop_text: !plan.needs_text(),
            body: Vec::new(),
            text: String::new(),
            reasoning: String::new(),
            usage: None,
            first_chunk_completion_tokens: None,
            rare: None,
            template: Template::default(),
            skipped_events: 0,
            coalesced_events: 0,
            done: false,
            finished: false,
            failed: false,
            finish_stop: false,
        };
        if plan.keep_raw || plan.keep_transcript || shape == Shape::OtherText {
            let rare = state.rare();
            if plan.keep_transcript {
                rare.transcript = Some(String::new());
            }
            if plan.keep_raw {
                rare.raw = Some(Vec::new());
            }
            if plan.keep_raw || shape == Shape::OtherText {
                content_type.clone_into(&mut rare.content_type);
            }
        }
        Reader { splitter: Splitter::default(), state }
    }

    /// Takes the body bytes of one read that returned at `at`. Reads come in order.
    #[inline]
    pub fn push(&mut self, bytes: &[u8], at: Mono) {
        if bytes.is_empty() {
            return;
        }
        self.state.at = at;
        self.state.read += 1;
        match self.state.shape {
            Shape::Events => self.splitter.push(bytes, &mut self.state),
            Shape::Text | Shape::OtherText => self.state.body.extend_from_slice(bytes),
            Shape::Bytes => {}
        }
    }

    /// First event with output so far; of a whole body nothing is known before its end.
    pub fn first_content(&self) -> Option<Mono> {
        self.state.content.first()
    }

    /// An event has failed the request: nothing that follows will change that.
    pub fn has_failed(&self) -> bool {
        self.state.failed
    }

    /// Heap bytes held, for reports of memory.
    pub fn held(&self) -> usize {
        self.splitter.held()
            + self.state.body.capacity()
            + self.state.text.capacity()
            + self.state.reasoning.capacity()
            + self.state.content.held()
            + self.state.template.held()
    }

    /// The exchange ended at `end` as HTTP says it should.
    pub fn finish(mut self, end: Mono) -> Reading {
        match self.state.shape {
            Shape::Events => self.splitter.finish(&mut self.state),
            Shape::Text | Shape::OtherText => self.state.whole_body(end),
            Shape::Bytes => {}
        }
        if !self.state.failed && self.state.content.is_empty() {
            self.state.without_content();
        }
        self.state.into_reading(end)
    }

    /// The exchange broke off at `end`: what came whole until then stands, and the caller knows the error.
    pub fn abort(self, end: Mono) -> Reading {
        let mut state = self.state;
        state.done = false;
        state.into_reading(end)
    }
}

impl Sink for State {
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.plan.keep_raw {
            self.rare().push_packet(name, value);
        }
    }

    fn field_continued(&mut self, value: &[u8]) {
        if self.plan.keep_raw {
            self.rare().continue_packet(value);
        }
    }

    #[inline]
    fn event(&mut self, event: Event<'_>) {
        if self.plan.keep_raw {
            let at = self.at;
            self.rare().end_event(at);
        }
        if self.done || self.failed {
            return;
        }
        if !event.name.is_empty() && !self.accepts(&event) {
            return;
        }
        let Some(data) = event.data else { return };
        self.last_event = Some(self.at);
        self.data(data);
    }

    fn overflow(&mut self) {
        self.fail(RequestError::new(None, "ClientPayloadError", "an event of the stream exceeds 16 MiB"));
    }
}

impl State {
    #[inline]
    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn fail(&mut self, error: RequestError) {
        if !self.failed {
            self.failed = true;
            self.rare().error = Some(error);
        }
    }

    /// Whether the data of an event with a name is to be read.
    #[cold]
    fn accepts(&mut self, event: &Event<'_>) -> bool {
        match event.name {
            b"error" => {
                self.last_event = Some(self.at);
                self.fail(rare::event_error(event));
                false
            }
            // Names under which gateways send what others send without one.
            b"message"
            | b"data"
            | b"chat.completion.chunk"
            | b"chat.completion"
            | b"text_completion"
            | b"completion" => true,
            _ => {
                self.last_event = Some(self.at);
                self.skipped_events += 1;
                false
            }
        }
    }

    #[inline]
    fn data(&mut self, data: &[u8]) {
        let data = data.trim_ascii();
        match data.first() {
            Some(b'{') => {}
            None | Some(b':') => {
                self.skipped_events += 1;
                return;
            }
            Some(_) => {
                if data == b"[DONE]" {
                    self.done = true;
                    return;
                }
            }
        }
        if let Some((text, target)) = self.template.text(data) {
            return self.same_again(text, target);
        }
        let mut chunk = Chunk::default();
        match chunk.scan(data, self.plan.kind) {
            Ok(()) => {
                let channel = self.chunk(&chunk);
                if let (Some(Channel::Text | Channel::Reasoning), Some((text, target))) =
                    (channel, chunk.only_text())
                {
                    self.template.learn(data, text, target);
                }
            }
            Err(_) => self.malformed(data),
        }
    }

    /// A chunk that differs from one before in its text alone.
    #[inline]
    fn same_again(&mut self, text: &[u8], target: Target) {
        let text = Text { raw: text };
        match target {
            Target::Text => {
                self.say(text, 0);
                self.content_event(Channel::Text);
            }
            Target::Reasoning => {
                self.think(text, 0);
                self.content_event(Channel::Reasoning);
            }
        }
    }

    #[cold]
    fn without_content(&mut self) {
        self.fail(if self.read == 0 { rare::empty_body() } else { rare::no_content(self.plan.kind) });
    }

    #[cold]
    fn malformed(&mut self, data: &[u8]) {
        if self.shape != Shape::Events && rare::looks_like_events(data) {
            let called =
                if self.shape == Shape::Text { "application/json" } else { &self.rare().content_type };
            let error = rare::misnamed_stream(called);
            return self.fail(error);
        }
        let mut message = String::from("not JSON: ");
        // Four bytes a character at most; the error cuts to its own limit.
        push_lossy(&data[..data.len().min(4 * 4096)], &mut message);
        let mut error = RequestError::new(None, "MalformedResponseError", message);
        error.cause = fault(data).map(|fault| format!("expected {} at byte {}", fault.expected, fault.at));
        self.fail(error);
    }

    #[inline]
    fn chunk(&mut self, chunk: &Chunk<'_>) -> Option<Channel> {
        if let Some(error) = chunk.error {
            self.fail(rare::data_error(error));
            return None;
        }
        let completion_tokens = match chunk.usage {
            Some(_) => self.take_usage(chunk),
            None => None,
        };
        if let Some(metrics) = chunk.metrics {
            self.rare().speculation.take(metrics);
        }
        let channel = match self.plan.kind {
            EndpointKind::Chat => chat::take(self, chunk),
            EndpointKind::Completions => completions::take(self, chunk),
            EndpointKind::Embeddings => embeddings::take(chunk),
            EndpointKind::CohereRankings | EndpointKind::HfTeiRankings | EndpointKind::NimRankings => {
                rankings::take(chunk)
            }
        };
        if let Some(channel) = channel {
            self.content_event(channel);
            if self.first_chunk_completion_tokens.is_none() {
                self.first_chunk_completion_tokens = completion_tokens;
            }
        }
        channel
    }

    #[inline]
    fn content_event(&mut self, channel: Channel) {
        if self.content_read == self.read && !self.content.is_empty() {
            self.coalesced_events += 1;
        }
        self.content_read = self.read;
        self.content.push(ContentEvent { at: self.at, channel });
    }

    fn take_usage(&mut self, chunk: &Chunk<'_>) -> Option<u64> {
        let usage = usage::read(chunk)?;
        let tokens = usage.completion_tokens;
        match &mut self.usage {
            Some(old) => **old = usage,
            None => self.usage = Some(Box::new(usage)),
        }
        tokens
    }

    fn whole_body(&mut self, end: Mono) {
        if self.read == 0 {
            self.at = end;
        }
        let body = std::mem::take(&mut self.body);
        let data = body.trim_ascii();
        if data.is_empty() {
            self.fail(rare::empty_body());
        } else {
            let mut chunk = Chunk::default();
            match chunk.scan(data, self.plan.kind) {
                Ok(()) => {
                    self.chunk(&chunk);
                }
                Err(_) => self.malformed(data),
            }
        }
        if self.plan.keep_raw {
            self.rare().body = Some(body);
        }
    }

    fn into_reading(mut self, end: Mono) -> Reading {
        let mut rare = self.rare.take().unwrap_or_default();
        let stream = self.shape == Shape::Events;
        let error = rare.error.take();
        let reply = (self.plan.keep_history && error.is_none())
            .then(|| reply::of(&self.text, &self.reasoning, rare.calls.take()))
            .flatten();
        let mut text = self.text;
        rare.other_texts.iter().for_each(|other| text.push_str(other));
        let (spec_decode, bad_spec_decode) = std::mem::take(&mut rare.speculation).settle();
        let raw = rare.raw.take().map(|events| {
            if stream {
                RawResponse::Events(events)
            } else {
                let at = if self.read == 0 { end } else { self.at };
                let text = rare.body.take().map(|body| String::from_utf8_lossy(&body).into_owned());
                let content_type = std::mem::take(&mut rare.content_type);
                RawResponse::Text { at, text: text.unwrap_or_default(), content_type }
            }
        });
        let answer = Answer {
            content: self.content.expand(),
            last_event: if stream { self.last_event } else { (self.read > 0).then_some(self.at) },
            text,
            reasoning: self.reasoning,
            transcript: rare.transcript,
            usage: self.usage.map(|usage| *usage),
            first_chunk_completion_tokens: self.first_chunk_completion_tokens,
            spec_decode,
            finish_reason: if self.finish_stop { Some("stop".to_owned()) } else { rare.finish_reason },
            stream_complete: stream.then_some(self.done || self.finished),
            skipped_events: self.skipped_events,
            coalesced_events: self.coalesced_events,
            not_streamed: self.plan.streaming_requested && !stream,
            raw,
        };
        Reading { answer, error, reply, bad_spec_decode }
    }
}
