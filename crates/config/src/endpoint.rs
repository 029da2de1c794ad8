//! Where requests go, and in which dialect.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::{Secret, SecretUrl};

/// An API dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// `POST /v1/chat/completions`
    Chat,
    /// `POST /v1/completions`
    Completions,
    /// `POST /v1/embeddings`
    Embeddings,
    /// `POST /v2/rerank`
    CohereRankings,
    /// `POST /rerank`
    HfTeiRankings,
    /// `POST /v1/ranking`
    NimRankings,
}

impl EndpointKind {
    /// Every type.
    pub const ALL: [EndpointKind; 6] = [
        EndpointKind::Chat,
        EndpointKind::Completions,
        EndpointKind::Embeddings,
        EndpointKind::CohereRankings,
        EndpointKind::HfTeiRankings,
        EndpointKind::NimRankings,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            EndpointKind::Chat => "chat",
            EndpointKind::Completions => "completions",
            EndpointKind::Embeddings => "embeddings",
            EndpointKind::CohereRankings => "cohere-rankings",
            EndpointKind::HfTeiRankings => "hf-tei-rankings",
            EndpointKind::NimRankings => "nim-rankings",
        }
    }

    /// The type with this name.
    pub fn named(name: &str) -> Option<EndpointKind> {
        EndpointKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Path below the base URL.
    pub fn path(self) -> &'static str {
        match self {
            EndpointKind::Chat => "/v1/chat/completions",
            EndpointKind::Completions => "/v1/completions",
            EndpointKind::Embeddings => "/v1/embeddings",
            EndpointKind::CohereRankings => "/v2/rerank",
            EndpointKind::HfTeiRankings => "/rerank",
            EndpointKind::NimRankings => "/v1/ranking",
        }
    }

    /// Whether answers can be streamed.
    pub fn can_stream(self) -> bool {
        self.produces_tokens()
    }

    /// Whether answers are text made of tokens.
    pub fn produces_tokens(self) -> bool {
        matches!(self, EndpointKind::Chat | EndpointKind::Completions)
    }

    /// Whether a request asks which of several passages fit a query best.
    pub fn ranks(self) -> bool {
        matches!(self, EndpointKind::CohereRankings | EndpointKind::HfTeiRankings | EndpointKind::NimRankings)
    }

    /// Whether the input is text that is counted in tokens.
    pub fn tokenizes_input(self) -> bool {
        true
    }

    /// Whether a request carries one turn only.
    pub fn single_turn_only(self) -> bool {
        self != EndpointKind::Chat
    }

    /// Title of the metrics table (MX-130).
    pub fn metrics_title(self) -> &'static str {
        match self {
            EndpointKind::Chat | EndpointKind::Completions => "LLM Metrics",
            EndpointKind::Embeddings => "Embeddings Metrics",
            EndpointKind::CohereRankings | EndpointKind::HfTeiRankings | EndpointKind::NimRankings => {
                "Rankings Metrics"
            }
        }
    }
}

/// Where requests go.
#[derive(Clone, Debug)]
pub enum Target {
    /// A server, with the base URL as given.
    Server(SecretUrl),
    /// `mock://…`: a server started inside the process; the text as given.
    Mock(String),
}

/// A header the user asked for.
#[derive(Clone, Debug)]
pub struct Header {
    /// Name, as typed.
    pub name: String,
    /// Value; printed only when the name is not that of a credential.
    pub value: Secret,
}

/// Which addresses a name may resolve to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4 only.
    #[default]
    V4,
    /// IPv6 only.
    V6,
    /// Both, IPv6 as the system orders them.
    Auto,
}

/// When connections are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionReuse {
    /// Free connections are reused, oldest first.
    #[default]
    Pooled,
}

/// Where and how requests go.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// API dialect.
    pub kind: EndpointKind,
    /// The server.
    pub target: Target,
    /// Path that replaces the dialect's (`--endpoint`).
    pub custom_path: Option<String>,
    /// Ask for streamed answers.
    pub streaming: bool,
    /// Bearer token.
    pub api_key: Option<Secret>,
    /// Extra headers, in order.
    pub headers: Vec<Header>,
    /// Extra top-level body keys, in order.
    pub extra_inputs: Map<String, Value>,
    /// `max_tokens` instead of `max_completion_tokens` on chat.
    pub use_legacy_max_tokens: bool,
    /// Token counts from the server's usage instead of the client's tokenizer.
    pub use_server_token_count: bool,
    /// Ask for usage on every chunk.
    pub per_chunk_usage: bool,
    /// Limit on one request; `None` is none.
    pub request_timeout: Option<Duration>,
    /// Connection policy.
    pub connection_reuse: ConnectionReuse,
    /// Source addresses, used round robin.
    pub bind_addresses: Vec<IpAddr>,
}

impl EndpointConfig {
    /// A target in a dialect, with every option at its default.
    pub fn new(kind: EndpointKind, target: Target) -> EndpointConfig {
        EndpointConfig {
            kind,
            target,
            custom_path: None,
            streaming: false,
            api_key: None,
            headers: Vec::new(),
            extra_inputs: Map::new(),
            use_legacy_max_tokens: false,
            use_server_token_count: false,
            per_chunk_usage: false,
            request_timeout: None,
            connection_reuse: ConnectionReuse::Pooled,
            bind_addresses: Vec::new(),
        }
    }
}
