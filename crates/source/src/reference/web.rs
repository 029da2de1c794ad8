//! `https://…`, `http://…`

use std::net::IpAddr;

use aiperf_config::SecretUrl;
use url::{Host, Url};

use super::grammar;
use crate::error::Problem;

/// A file behind a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebReference {
    /// The URL, without its fragment.
    pub url: SecretUrl,
}

impl WebReference {
    /// Whether the transfer is neither private nor authenticated: `http` to another machine.
    pub fn is_open(&self) -> bool {
        let url = self.url.expose();
        url.scheme() == "http"
            && !match url.host() {
                Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
                Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
                Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
                None => false,
            }
    }

    /// The sidecar's URL; none beside a URL with a query.
    pub fn sidecar(&self) -> Option<Url> {
        let mut url = self.url.expose().clone();
        if url.query().is_some() {
            return None;
        }
        let path = format!("{}.aiperf.json", url.path());
        url.set_path(&path);
        Some(url)
    }
}

pub(super) fn parse(text: &str) -> Result<WebReference, Problem> {
    let mut url = Url::parse(text)
        .map_err(|error| grammar(format!("it is no URL: {error}"), "Write https://<host>/<path>"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(grammar(
            "the URL holds a user name or password",
            "Take it out; only a URL that is signed in its query, or a public one, can be read",
        ));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(grammar("the URL has no host", "Write https://<host>/<path>"));
    }
    url.set_fragment(None);
    if url.path_segments().is_none_or(|mut segments| segments.next_back().is_none_or(str::is_empty)) {
        return Err(grammar(
            "a URL names one file, and this one ends in /",
            "Give the URL of the file; folders are read from hf:// and s3://",
        ));
    }
    let typed = text.split('#').next().unwrap_or(text);
    Ok(WebReference { url: SecretUrl::new(url, typed) })
}

#[cfg(test)]
mod tests {
    use super::super::Reference;
    use super::*;

    fn read(text: &str) -> WebReference {
        match Reference::parse(text) {
            Ok(Reference::Web(web)) => web,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_url_names_one_file() {
        let url = read("https://host/a/b%20c.jsonl?x=1#part");
        assert_eq!(url.url.expose().as_str(), "https://host/a/b%20c.jsonl?x=1");
        assert_eq!(url.url.typed(), "https://host/a/b%20c.jsonl?x=1");
        for text in ["https://host", "https://host/", "https://host/a/", "http://host/a/?x=1"] {
            let error = Reference::parse(text).unwrap_err().to_string();
            assert!(error.contains("names one file"), "{text}: {error}");
        }
        for text in ["https://", "https:///", "https://[::1"] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn user_info_is_refused_and_not_repeated() {
        for text in ["https://canary-user:canary-pass@h/x", "https://canary-user@h/x"] {
            let error = Reference::parse(text).unwrap_err().to_string();
            assert!(error.contains("user name"), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn only_plain_http_to_another_machine_is_open() {
        for text in ["https://h/x", "http://127.0.0.1:1/x", "http://localhost/x", "http://[::1]/x"] {
            assert!(!read(text).is_open(), "{text}");
        }
        assert!(read("http://h/x").is_open());
    }

    #[test]
    fn a_sidecar_lies_beside_a_url_without_a_query() {
        assert_eq!(
            read("https://h/a/x.jsonl#f").sidecar().unwrap().as_str(),
            "https://h/a/x.jsonl.aiperf.json"
        );
        assert_eq!(read("https://h/x?y=1").sidecar(), None);
        assert_eq!(read("https://h/x?").sidecar(), None);
    }
}
