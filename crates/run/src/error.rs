//! Why a run did not start.

use aiperf_dataset::DatasetError;
use aiperf_load::preflight::{LimitError, SourceError};
use aiperf_load::transport::TlsError;
use aiperf_mock_server::{SettingsError, StartError};
use aiperf_report::remedy;
use aiperf_tokenize::TokenizerError;
use thiserror::Error;

/// A run that did not start. Nothing was sent.
#[derive(Debug, Error)]
pub enum RunError {
    /// What was given cannot be used: the command line, the data, the tokenizer.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Something outside the command line and the data is in the way.
    #[error(transparent)]
    Start(#[from] StartFailure),
}

/// What helps a run that lacks a tokenizer and makes no text with one, behind what else does.
pub const WITHOUT_TOKENIZER: &str = ", or use --use-server-token-count";

/// What was given cannot be used.
#[derive(Debug, Error)]
pub enum InputError {
    /// The data.
    #[error("{0}")]
    Dataset(#[from] DatasetError),
    /// The data of a file.
    #[error("--input-file: {0}")]
    File(DatasetError),
    /// A public data set.
    #[error("Cannot use public dataset {name} ({origin}): {cause}")]
    Public {
        /// Its name.
        name: &'static str,
        /// Its version.
        origin: String,
        /// What is wrong with it, and the next step.
        cause: String,
    },
    /// The tokenizer.
    #[error("{cause}{}", if *only_counts { WITHOUT_TOKENIZER } else { "" })]
    Tokenizer {
        /// Why there is none.
        cause: TokenizerError,
        /// The run needs it for nothing but counts, which the server may give.
        only_counts: bool,
    },
    /// The data cannot be said in this API.
    #[error("{0}")]
    Format(#[from] aiperf_endpoint::FormatError),
    /// `mock://…`
    #[error("--url: {0}")]
    Mock(#[from] SettingsError),
    /// A URL without a host.
    #[error("--url {0}: there is no host in it; give http://HOST:PORT")]
    Url(String),
    /// An address to send from.
    #[error("{0}")]
    Source(#[from] SourceError),
    /// A proxy of the environment. Its value may have a password in it.
    #[error(
        "{0} is no proxy that can be used: it must be http://HOST:PORT, with USER:PASSWORD@ before HOST where the proxy \
         asks for them"
    )]
    Proxy(String),
    /// A fixed schedule over data whose conversation has no time.
    #[error(
        "a fixed schedule needs a timestamp on the first turn of every conversation, and conversation {0} has none; \
         add it, or pass --no-fixed-schedule"
    )]
    NoTimestamp(u64),
    /// More lanes than traces, and repeats were refused.
    #[error(
        "--concurrency {concurrency} needs as many traces, and the data has {traces}: --no-allow-dataset-wrap keeps two \
         sessions from replaying the same one at once; lower --concurrency to {traces}, drop --no-allow-dataset-wrap, or \
         tell repeats apart with --cache-bust first-turn-prefix"
    )]
    Oversubscribed {
        /// Sessions that may run at once.
        concurrency: u32,
        /// Traces loaded.
        traces: u64,
    },
}

/// The host or the server is in the way.
#[derive(Debug, Error)]
pub enum StartFailure {
    /// The name does not resolve.
    #[error(
        "--url: cannot resolve host '{host}': {cause}; check the name, or give an address{}",
        if *.has_at { "; if this is a user name, write the / in its password as %2F" } else { "" }
    )]
    Resolve {
        /// The host.
        host: String,
        /// Whether an `@` follows in the path, as where the user info has a slash.
        has_at: bool,
        /// What the resolver says.
        cause: std::io::Error,
    },
    /// The name of the proxy does not resolve.
    #[error(
        "{variable}: cannot resolve the proxy '{host}': {cause}; correct it, or unset AIPERF_HTTP_TRUST_ENV"
    )]
    ResolveProxy {
        /// The variable that names it.
        variable: String,
        /// Its host.
        host: String,
        /// What the resolver says.
        cause: std::io::Error,
    },
    /// TLS cannot be set up.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The host's limits are too low.
    #[error("{0}")]
    Limits(#[from] LimitError),
    /// The in-process mock server did not start.
    #[error("the mock server did not start: {0}")]
    Mock(#[from] StartError),
    /// The result folder cannot be written.
    #[error("cannot write results to {dir}: {cause}; {}", remedy(cause, "--artifact-dir"))]
    Folder {
        /// The folder.
        dir: String,
        /// Why.
        cause: std::io::Error,
    },
    /// Another run writes there.
    #[error(
        "{0}: another run writes its results there; wait for it, or choose another folder with --artifact-dir"
    )]
    FolderTaken(String),
    /// Threads or timers cannot be made.
    #[error("the client cannot start its threads: {0}")]
    Threads(std::io::Error),
}
