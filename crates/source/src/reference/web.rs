//! `https://…`, `http://…`

use std::net::IpAddr;

use aiperf_config::SecretUrl;
use url::{Host, Url};

use super::{for_shell, grammar, percent_decoded};
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
    if let Some(reference) = behind_page(&url) {
        return Err(grammar(
            "it is a page of the Hugging Face Hub, and no file",
            format!("Use {}", for_shell(&reference)),
        ));
    }
    if url.path_segments().is_none_or(|mut segments| segments.next_back().is_none_or(str::is_empty)) {
        return Err(grammar(
            "a URL names one file, and this one has no name after its last /",
            "Give the URL of the file; folders are read from hf:// and s3://",
        ));
    }
    let typed = text.split('#').next().unwrap_or(text);
    Ok(WebReference { url: SecretUrl::new(url, typed) })
}

/// The reference that names what a page of the Hub shows: a dataset, or a file or folder in it.
fn behind_page(url: &Url) -> Option<String> {
    if !matches!(url.host_str()?, "huggingface.co" | "www.huggingface.co" | "hf.co") {
        return None;
    }
    let decoded = |part: &str| percent_decoded(part);
    let mut parts = url.path_segments()?.filter(|part| !part.is_empty());
    if parts.next()? != "datasets" {
        return None;
    }
    let mut reference = format!("hf://datasets/{}/{}", decoded(parts.next()?)?, decoded(parts.next()?)?);
    match parts.next() {
        None | Some("viewer" | "discussions") => return Some(reference),
        Some("blob" | "tree") => {}
        // What resolves to the bytes of a file is a URL like any other.
        Some(_) => return None,
    }
    if let Some(revision) = parts.next().filter(|revision| *revision != "main") {
        reference.push('@');
        reference.push_str(revision);
    }
    for part in parts {
        reference.push('/');
        reference.push_str(&decoded(part)?);
    }
    Some(reference)
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
    fn a_page_of_the_hub_is_told_from_a_file_with_the_reference_to_use() {
        for (page, reference) in [
            ("datasets/org/set", "hf://datasets/org/set"),
            ("datasets/org/set/", "hf://datasets/org/set"),
            ("datasets/org/set/viewer/default/train?row=1", "hf://datasets/org/set"),
            ("datasets/org/set/tree/main", "hf://datasets/org/set"),
            ("datasets/org/set/tree/v1/data", "hf://datasets/org/set@v1/data"),
            ("datasets/org/set/blob/main/a%20b/x.jsonl", "hf://datasets/org/set/a b/x.jsonl"),
            (
                "datasets/org/set/blob/refs%2Fconvert%2Fparquet/x.parquet",
                "hf://datasets/org/set@refs%2Fconvert%2Fparquet/x.parquet",
            ),
        ] {
            let error = Reference::parse(&format!("https://huggingface.co/{page}")).unwrap_err().to_string();
            assert!(error.ends_with(&format!("Use {}.", for_shell(reference))), "{page}: {error}");
            assert!(Reference::parse(reference).is_ok(), "{reference}");
        }
        for url in [
            "https://huggingface.co/datasets/org/set/resolve/main/x.jsonl",
            "https://huggingface.co/datasets/org/set/raw/main/x.jsonl",
            "https://example.com/datasets/org/set",
            "https://huggingface.co/org/model/blob/main/x.jsonl",
        ] {
            read(url);
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
