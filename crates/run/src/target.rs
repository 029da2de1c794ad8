//! Where requests go: a server by its URL, or one started in this process.

use std::net::{Ipv4Addr, SocketAddr};

use aiperf_config::{EndpointConfig, Header, RunConfig, Target, basic_credential};
use aiperf_load::transport::{AffinityHeaders, HeadTemplate, Origin, Question, Resolver, TlsSettings};
use aiperf_load::{Proxy, Tls};
use aiperf_mock_server::{Server, Settings};
use url::Url;

use crate::error::{InputError, RunError, StartFailure};
use crate::proxy;

/// The server of a run.
pub(crate) struct Destination {
    pub(crate) origin: Origin,
    pub(crate) resolver: Resolver,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) tls: Option<Tls>,
    pub(crate) head: HeadTemplate,
    /// Asks it for the models that it serves.
    pub(crate) models: Question,
    /// The server in this process, when there is one.
    pub(crate) mock: Option<Server>,
}

/// Finds the server, or starts it.
pub(crate) fn open(config: &RunConfig, version: &str) -> Result<Destination, RunError> {
    let endpoint = &config.endpoint;
    let path = endpoint.custom_path.as_deref().unwrap_or_else(|| endpoint.kind.path());
    let (url, mock) = match &endpoint.target {
        Target::Server(url) => (url.expose().clone(), None),
        Target::Mock(text) => {
            let settings = Settings::from_url(text).map_err(InputError::from)?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let server = Server::start(&settings, address).map_err(StartFailure::from)?;
            let url = format!("http://{}", server.addr());
            let url = Url::parse(&url).map_err(|_| InputError::Url(url.clone()))?;
            (url, Some(server))
        }
    };
    let Some(origin) = Origin::new(&url, path) else {
        return Err(InputError::Url(aiperf_config::redact_text(url.as_str())).into());
    };
    let named = if config.tuning.trust_environment_proxies && mock.is_none() {
        proxy::for_target(&url, |name| std::env::var(name).ok()).map_err(InputError::Proxy)?
    } else {
        None
    };
    let proxy_origin = named.as_ref().and_then(|named| Origin::new(&named.url, ""));
    let peer = proxy_origin.as_ref().unwrap_or(&origin);
    let resolver = Resolver::new(peer, config.tuning.ip_version).map_err(|cause| {
        let host = peer.host.clone();
        match &named {
            Some(named) => StartFailure::ResolveProxy { variable: named.variable.clone(), host, cause },
            None => StartFailure::Resolve { host, has_at: url.path().contains('@'), cause },
        }
    })?;
    let tls = if origin.tls {
        let settings = TlsSettings { insecure: !config.tuning.verify_tls };
        Some(Tls::new(&origin, &settings).map_err(StartFailure::from)?)
    } else {
        None
    };
    let mut endpoint = with_user_info(endpoint, &url);
    let credential = named.as_ref().and_then(|named| basic_credential(&named.url));
    let through_proxy = proxy_origin.is_some() && !origin.tls;
    if let (true, Some(value)) = (through_proxy, credential.clone()) {
        endpoint.headers.push(Header { name: "Proxy-Authorization".into(), value });
    }
    let whole = |path: &str| {
        if through_proxy { format!("http://{}{path}", origin.host_header) } else { path.to_owned() }
    };
    let host = &origin.host_header;
    let head = HeadTemplate::new(host, &whole(&origin.path), version, &endpoint, affinity(config));
    let proxy = proxy_origin.zip(named).map(|(proxy, named)| Proxy {
        authority: proxy.authority(),
        variable: named.variable,
        credential,
    });
    let models = Question {
        origin: origin.clone(),
        addresses: resolver.last(),
        proxy: proxy.clone(),
        tls: tls.clone(),
        head: HeadTemplate::question(host, &whole(&models_path(&origin.path)), version, &endpoint),
    };
    Ok(Destination { origin, resolver, proxy, tls, head, models, mock })
}

/// Where the list of models lies, beside the path of the requests.
fn models_path(path: &str) -> String {
    let base = path.find("/v1/").map_or("", |at| &path[..at]);
    format!("{base}/v1/models")
}

/// The endpoint, with `user:password@` of its URL as a basic credential; a header or key given otherwise wins.
fn with_user_info(endpoint: &EndpointConfig, url: &Url) -> EndpointConfig {
    let mut endpoint = endpoint.clone();
    if let Some(value) = basic_credential(url) {
        endpoint.headers.insert(0, Header { name: "Authorization".into(), value });
    }
    endpoint
}

fn affinity(config: &RunConfig) -> AffinityHeaders {
    let has =
        |name: &str| config.tuning.affinity_headers.iter().any(|header| header.eq_ignore_ascii_case(name));
    AffinityHeaders {
        session_affinity: has("X-Session-Affinity"),
        session_id: has("X-Session-ID"),
        smg_routing_key: has("X-SMG-Routing-Key"),
        dynamo_session_id: has("X-Dynamo-Session-ID"),
    }
}
