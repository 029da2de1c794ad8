//! Where requests go: a server by its URL, or one started in this process.

use std::net::{Ipv4Addr, SocketAddr};

use aiperf_config::{EndpointConfig, Header, RunConfig, Secret, Target};
use aiperf_load::Tls;
use aiperf_load::transport::{AffinityHeaders, HeadTemplate, Origin, Resolver, TlsSettings};
use aiperf_mock_server::{Server, Settings};
use url::Url;

use crate::error::{InputError, RunError, StartFailure};

/// The server of a run.
pub(crate) struct Destination {
    pub(crate) origin: Origin,
    pub(crate) resolver: Resolver,
    pub(crate) tls: Option<Tls>,
    pub(crate) head: HeadTemplate,
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
    let resolver = Resolver::new(&origin, config.tuning.ip_version)
        .map_err(|cause| StartFailure::Resolve { host: origin.host.clone(), cause })?;
    let tls = if origin.tls {
        let settings = TlsSettings { insecure: !config.tuning.verify_tls };
        Some(Tls::new(&origin, &settings).map_err(StartFailure::from)?)
    } else {
        None
    };
    let head = HeadTemplate::new(
        &origin.host_header,
        &origin.path,
        version,
        &with_user_info(endpoint, &url),
        affinity(config),
    );
    Ok(Destination { origin, resolver, tls, head, mock })
}

/// The endpoint, with `user:password@` of its URL as a basic credential; a header or key given otherwise wins.
fn with_user_info(endpoint: &EndpointConfig, url: &Url) -> EndpointConfig {
    let mut endpoint = endpoint.clone();
    if !url.username().is_empty() || url.password().is_some() {
        let decode = |text: &str| percent_decode(text);
        let pair = format!("{}:{}", decode(url.username()), decode(url.password().unwrap_or_default()));
        let value = Secret::new(format!("Basic {}", base64(pair.as_bytes())));
        endpoint.headers.insert(0, Header { name: "Authorization".into(), value });
    }
    endpoint
}

fn percent_decode(text: &str) -> String {
    // The form decoder of the URL library reads `+` as a space; user info has no such rule.
    let escaped = text.replace('+', "%2B");
    url::form_urlencoded::parse(escaped.as_bytes())
        .next()
        .map_or_else(String::new, |(text, _)| text.into_owned())
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let shown = digit <= chunk.len();
            text.push(if shown { DIGITS[(word >> (18 - 6 * digit) & 63) as usize] as char } else { '=' });
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_remainder() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foo"), "Zm9v");
        assert_eq!(base64(b"user:p\xff\xfe"), "dXNlcjpw//4=");
    }

    #[test]
    fn user_info_is_decoded() {
        assert_eq!(percent_decode("a%40b+c"), "a@b+c");
        assert_eq!(percent_decode(""), "");
    }
}
