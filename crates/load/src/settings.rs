//! What every worker of a run needs, settled before the first thread starts.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use aiperf_config::Secret;
use aiperf_endpoint::{Format, ReadPlan};
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;

use crate::transport::{HeadTemplate, Origin, Resolver, SocketOptions, TlsSettings, tls};

/// Settings shared by all workers.
pub struct Settings {
    /// The server.
    pub origin: Origin,
    /// Its addresses.
    pub resolver: Resolver,
    /// The server is reached through a proxy, whose addresses the resolver has.
    pub proxy: Option<Proxy>,
    /// Socket options.
    pub sockets: SocketOptions,
    /// TLS, for `https` origins.
    pub tls: Option<Tls>,
    /// The head of every request.
    pub head: HeadTemplate,
    /// How later turns are rendered.
    pub format: Arc<Format>,
    /// How answers are read where the next turn needs them.
    pub read_plan: ReadPlan,
    /// Limit on one request.
    pub request_timeout: Option<Duration>,
    /// How long idle connections are kept.
    pub keep_alive: Duration,
    /// Connections at once in the whole process, idle ones included, where a limit is set. Each worker has an equal
    /// share: one that could take over another's idle connections would close and open them all the time.
    pub connection_limit: Option<NonZeroU32>,
    /// Keep chunk stamps, addresses and headers of each exchange.
    pub want_facts: bool,
    /// Keep the request headers.
    pub want_headers: bool,
    /// Keep the request body.
    pub want_body: bool,
    /// Keep the texts of the request: somebody counts them.
    pub want_texts: bool,
    /// Keep what a chat template is applied to.
    pub want_template_input: bool,
}

/// An HTTP proxy. Plain requests name the whole URL in their request line; TLS goes through a tunnel.
#[derive(Clone)]
pub struct Proxy {
    /// `host:port`, for messages.
    pub authority: String,
    /// The variable of the environment that names it, for messages.
    pub variable: String,
    /// Value of `Proxy-Authorization` for tunnels.
    pub credential: Option<Secret>,
}

/// TLS towards one server.
#[derive(Clone)]
pub struct Tls {
    pub(crate) connector: TlsConnector,
    pub(crate) name: ServerName<'static>,
}

impl Tls {
    /// TLS towards `origin`.
    pub fn new(origin: &Origin, settings: &TlsSettings) -> Result<Tls, tls::TlsError> {
        let config = tls::client_config(settings)?;
        let name = ServerName::try_from(origin.host.clone())
            .map_err(|error| tls::TlsError::Name(error.to_string()))?;
        Ok(Tls { connector: TlsConnector::from(config), name })
    }
}
