//! One request and what came back: instants, not durations. Every figure is derived from these.

use std::sync::Arc;

use aiperf_clock::Mono;
use serde::{Deserialize, Serialize};

use crate::{Body, CountedText, Lineage, SpecDecode, TraceSource, Usage};

/// Which kind of phase a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PhaseKind {
    /// Excluded from all results.
    Warmup,
    /// Measured.
    Profiling,
}

impl PhaseKind {
    /// `warmup` or `profiling`, as exports spell it.
    pub fn name(self) -> &'static str {
        match self {
            PhaseKind::Warmup => "warmup",
            PhaseKind::Profiling => "profiling",
        }
    }
}

/// Which request this is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// Number of the request within its phase, in issue order, from 0 (`session_num`).
    pub number: u64,
    /// `X-Request-ID`, a UUID in its 36-character form.
    #[serde(with = "request_id")]
    pub request_id: [u8; 36],
    /// `X-Correlation-ID` of the run of the conversation.
    pub correlation_id: Arc<str>,
    /// Session id of the conversation.
    pub conversation_id: Arc<str>,
    /// Index of the turn in its conversation.
    pub turn_index: u32,
    /// Kind of the phase.
    pub phase: PhaseKind,
    /// Index of the phase among all phases of the run.
    pub phase_index: u16,
    /// The network worker that sent it.
    pub worker: u16,
    /// Who started its conversation, where conversations start each other.
    pub lineage: Option<Arc<Lineage>>,
    /// Where an agentic trace has it.
    pub source: Option<Arc<TraceSource>>,
}

/// What the plan wanted of a request, and when it was let go.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PlanInstants {
    /// When the plan wanted it; absent in a closed loop.
    pub scheduled: Option<Mono>,
    /// From when on waiting is not the plan's doing.
    pub due: Mono,
    /// When a requested cap let it go; equal to `due` when no cap held it.
    pub let_go: Mono,
    /// When the scheduler committed the turn (`credit_issued_ns`).
    pub issued: Mono,
    /// Part of the first fill of a closed loop: not counted as lateness.
    pub initial_fill: bool,
}

/// Instants and counts of one exchange on the wire. Instants are absent where the event did not occur.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HttpTrace {
    /// A connection was wanted and none was free: from, until.
    pub pool_wait: Option<(Mono, Mono)>,
    /// Name lookup: from, until.
    pub dns: Option<(Mono, Mono)>,
    /// TCP connect and TLS handshake: from, until.
    pub connect: Option<(Mono, Mono)>,
    /// TLS handshake alone: from, until.
    pub tls: Option<(Mono, Mono)>,
    /// The connection had served a request before.
    pub reused: bool,
    /// First byte of the request written (a connection was held by then).
    pub send_start: Option<Mono>,
    /// Head accepted by the socket.
    pub headers_sent: Option<Mono>,
    /// Last byte of the body accepted by the socket.
    pub send_end: Option<Mono>,
    /// First bytes of the body of the answer.
    pub receive_start: Option<Mono>,
    /// Last bytes of the body of the answer.
    pub receive_end: Option<Mono>,
    /// Body writes.
    pub chunks_sent: u32,
    /// Body reads.
    pub chunks_received: u32,
    /// Body bytes sent.
    pub bytes_sent: u64,
    /// Body bytes received, after transfer decoding.
    pub bytes_received: u64,
    /// Details that only `--export-http-trace` asks for.
    pub facts: Option<Box<TransportFacts>>,
}

/// What `--export-http-trace` and the raw export add to a trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TransportFacts {
    /// Each body write: instant, bytes.
    pub writes: Vec<(Mono, u32)>,
    /// Each body read: instant, bytes.
    pub reads: Vec<(Mono, u32)>,
    /// Reason phrase of the answer.
    pub reason: String,
    /// Headers of the answer, in order.
    pub response_headers: Vec<(String, String)>,
    /// Local address.
    pub local: Option<std::net::SocketAddr>,
    /// Remote address.
    pub remote: Option<std::net::SocketAddr>,
}

/// The channel of a content event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Channel {
    /// Answer text (or a refusal).
    Text,
    /// Reasoning, with nothing of the answer beside it.
    Reasoning,
    /// Reasoning with text of the answer in the same event.
    ReasoningAndText,
    /// A tool call (with or without text beside it).
    ToolCall,
    /// A result object without text: embeddings and the like.
    Object,
}

/// One event with output in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentEvent {
    /// When the read that completed the event returned.
    pub at: Mono,
    /// What it carried.
    pub channel: Channel,
}

/// What an answer said, as its endpoint reads it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Events with output, in order of arrival.
    pub content: Vec<ContentEvent>,
    /// Last event of any kind (usage, `[DONE]`).
    pub last_event: Option<Mono>,
    /// All text that is not reasoning, joined (tool-call text included).
    pub text: String,
    /// All reasoning text, joined.
    pub reasoning: String,
    /// Text and reasoning joined in stream order; filled only when asked for.
    pub transcript: Option<String>,
    /// The last non-empty usage.
    pub usage: Option<Usage>,
    /// Cumulative completion tokens in the usage of the first content event that has one.
    pub first_chunk_completion_tokens: Option<u64>,
    /// Speculative decoding statistics, when exactly one event carried them.
    pub spec_decode: Option<SpecDecode>,
    /// `finish_reason` of choice 0.
    pub finish_reason: Option<String>,
    /// Saw `[DONE]`, a finish reason or the protocol's terminal event; absent when not a stream.
    pub stream_complete: Option<bool>,
    /// Events that were skipped: unknown event names, empty or comment payloads.
    pub skipped_events: u32,
    /// Content events that shared their read with the one before.
    pub coalesced_events: u32,
    /// A streaming request was answered with a whole body.
    pub not_streamed: bool,
    /// Everything that came back, for the raw export.
    pub raw: Option<RawResponse>,
}

/// The answer as it came, for the raw export.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RawResponse {
    /// A stream of events.
    Events(Vec<RawEvent>),
    /// A whole body.
    Text {
        /// When its last byte was read.
        at: Mono,
        /// The body.
        text: String,
        /// Its `Content-Type`.
        content_type: String,
    },
}

/// One event of a stream, field by field.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RawEvent {
    /// When the read that completed it returned.
    pub at: Mono,
    /// Its fields, in order.
    pub packets: Vec<Packet>,
}

/// One field of an event: name (`data`, `event`, `comment`, …) and value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    /// Field name.
    pub name: String,
    /// Field value.
    pub value: String,
}

/// Why a request failed. Equal `(code, kind, message)` count as one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RequestError {
    /// HTTP status or the code of the error object; absent for transport errors.
    pub code: Option<i64>,
    /// Error class or reason phrase.
    pub kind: String,
    /// Plain text, at most 4,096 characters.
    pub message: String,
    /// The underlying error, when there is one.
    pub cause: Option<String>,
    /// Classes of the underlying errors, outermost first.
    pub cause_chain: Vec<String>,
    /// `Retry-After` of the answer, as sent; not part of the group.
    pub retry_after: Option<String>,
}

impl RequestError {
    /// An error of class `kind`.
    pub fn new(
        code: impl Into<Option<i64>>,
        kind: impl Into<String>,
        message: impl Into<String>,
    ) -> RequestError {
        let mut message = message.into();
        if message.len() > 4096 {
            // Cut on a character boundary: messages quote foreign text.
            let cut = message.char_indices().nth(4096).map_or(message.len(), |(index, _)| index);
            message.truncate(cut);
        }
        RequestError { code: code.into(), kind: kind.into(), message, ..RequestError::default() }
    }

    /// Whether the text says that the prompt did not fit the model's context.
    pub fn is_context_overflow(&self) -> bool {
        let text = self.message.to_ascii_lowercase();
        ["context length", "maximum context", "context_length_exceeded", "prompt is too long"]
            .iter()
            .any(|sign| text.contains(sign))
    }
}

/// What is known of the request itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequestFacts {
    /// The body as sent; filled only when an export wants it.
    pub body: Body,
    /// The texts of the request, in order: its input length is the sum of their tokens. Filled only when the client
    /// counts them.
    pub texts: Vec<Arc<CountedText>>,
    /// Output limit that was sent.
    pub max_tokens: Option<u64>,
    /// Image parts.
    pub num_images: u32,
    /// Length of the audio that was sent, seconds, where it is known.
    pub audio_seconds: Option<f64>,
    /// Headers as sent, secrets redacted; filled only when an export wants them.
    pub headers: Option<Vec<(String, String)>>,
    /// The mark that keeps prefix caches from answering.
    pub marker: Option<Arc<CacheBustMarker>>,
}

/// A mark that was put into a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheBustMarker {
    /// The mark, with the line ends that set it off.
    pub text: Arc<str>,
    /// Where it was put, as exports name it.
    pub target: Arc<str>,
}

/// Token counts of one request, from the client's tokenizer or the server's usage as configured. Absent where
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Tokens of the input.
    pub input: Option<u64>,
    /// Tokens of the output without reasoning.
    pub output: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning: Option<u64>,
}

/// One request, finished.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// Which request.
    pub identity: Identity,
    /// What the plan wanted.
    pub plan: PlanInstants,
    /// Bytes ready, just before a connection was asked for.
    pub start: Mono,
    /// Status and headers of the answer were in.
    pub headers: Option<Mono>,
    /// Last event of any kind; else end of the exchange; for a failure, when it was known.
    pub end: Mono,
    /// The wire.
    pub trace: HttpTrace,
    /// Status of the answer.
    pub status: Option<u16>,
    /// The request.
    pub request: RequestFacts,
    /// The answer.
    pub answer: Answer,
    /// Token counts.
    pub tokens: TokenCounts,
    /// Why it failed; absent for a valid record.
    pub error: Option<RequestError>,
    /// When the client cancelled it.
    pub cancelled_at: Option<Mono>,
    /// The failure was a prompt too long for the model.
    pub context_overflow: bool,
    /// The worker was late to its sockets while this request ran.
    pub client_delayed: bool,
}

impl RequestRecord {
    /// Whether the request succeeded.
    pub fn is_valid(&self) -> bool {
        self.error.is_none()
    }

    /// First event with output.
    pub fn first_content(&self) -> Option<Mono> {
        self.answer.content.first().map(|event| event.at)
    }

    /// Last event with output.
    pub fn last_content(&self) -> Option<Mono> {
        self.answer.content.last().map(|event| event.at)
    }
}

/// Arrays of this length are beyond what serde derives.
mod request_id {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(id: &[u8; 36], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 36], D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        bytes.try_into().map_err(|_| D::Error::custom("a request id has 36 characters"))
    }
}
