//! The four requests of the Hub that are needed, for dataset and model repositories.

use std::collections::HashSet;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, RANGE};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use url::Url;

use super::answers::{Asked, classify, not_a_hub};
use super::storage::{answer_body, is_the_file, no_such_range};
use crate::error::Problem;
use crate::http::{
    Body, Failure, Http, MOST_HOPS, header, host_of, is_page, next_page, redirect_target, retrying,
};
use crate::models::FoundModel;
use crate::protocol::{Entry, Range};
use crate::reference::is_commit;
use crate::settings::{HUB, HubSettings, Patience, shown_address};

/// Everything but what an address may hold as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Entries of one listing.
const MOST_ENTRIES: usize = 100_000;
/// A page of a listing, and any other JSON answer.
const MOST_JSON: usize = 64 << 20;
/// Plain HTTP serves files of up to this many bytes.
const LARGEST: u64 = 50_000_000_000;

/// What kind of repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepoKind {
    /// `datasets/…`
    Dataset,
    /// `models/…`
    Model,
}

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repo {
    pub(crate) kind: RepoKind,
    /// With its owner, where it has one.
    pub(crate) name: String,
}

impl Repo {
    pub(crate) fn dataset(org: &str, repo: &str) -> Repo {
        Repo { kind: RepoKind::Dataset, name: format!("{org}/{repo}") }
    }

    pub(crate) fn model(name: &str) -> Repo {
        Repo { kind: RepoKind::Model, name: name.to_owned() }
    }

    /// The folder of its files in the cache.
    pub(crate) fn folder(&self) -> String {
        let kind = match self.kind {
            RepoKind::Dataset => "datasets",
            RepoKind::Model => "models",
        };
        format!("{kind}--{}", self.name.replace('/', "--"))
    }
}

impl fmt::Display for Repo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            RepoKind::Dataset => write!(f, "datasets/{}", self.name),
            RepoKind::Model => f.write_str(&self.name),
        }
    }
}

/// A file or folder as the Hub lists it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Item {
    #[serde(rename = "type")]
    kind: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) oid: String,
    pub(crate) lfs: Option<Lfs>,
    #[serde(rename = "xetHash")]
    pub(crate) xet: Option<String>,
}

/// What a large file is.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Lfs {
    pub(crate) oid: String,
    pub(crate) size: u64,
}

impl Item {
    pub(crate) fn is_folder(&self) -> bool {
        self.kind == "directory"
    }

    /// The name of its blob: sha256 of a large file, git's blob id of another.
    pub(crate) fn etag(&self) -> &str {
        self.lfs.as_ref().map_or(&self.oid, |lfs| &lfs.oid)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.lfs.as_ref().map_or(self.size, |lfs| lfs.size)
    }
}

/// A client of one Hub.
#[derive(Debug)]
pub(crate) struct Client {
    http: Http,
    settings: HubSettings,
}

impl Client {
    pub(crate) fn new(settings: HubSettings, patience: &Patience) -> Client {
        let endpoint = Url::parse(&settings.endpoint).ok().filter(|_| settings.endpoint != HUB);
        let http = Http::new(patience.clone(), patience.hub_idle).named_by(endpoint.as_ref(), "HF_ENDPOINT");
        Client { http, settings }
    }

    pub(crate) fn patience(&self) -> &Patience {
        self.http.patience()
    }

    /// The commit that a revision is.
    pub(crate) async fn commit(&self, repo: &Repo, revision: &str) -> Result<String, Problem> {
        #[derive(Deserialize)]
        struct Revision {
            sha: String,
        }
        let url = self.api(repo, &format!("revision/{}", encode(revision)))?;
        let asked = Asked { repo, revision, path: None, pinned: false };
        let (bytes, _) = self.json(Method::GET, &url, None, &asked).await?;
        let found: Revision = self.parsed(&bytes)?;
        if !is_commit(&found.sha) || (is_commit(revision) && found.sha != revision) {
            return Err(not_a_hub(&self.settings.endpoint, "a revision that is no commit"));
        }
        Ok(found.sha)
    }

    /// Model repositories whose names hold `text`.
    pub(crate) async fn search_models(&self, text: &str) -> Result<Vec<FoundModel>, Problem> {
        let mut url = self.url("api/models")?;
        url.query_pairs_mut()
            .append_pair("search", text)
            .append_pair("sort", "downloads")
            .append_pair("direction", "-1")
            .append_pair("limit", "100");
        let repo = Repo::model(text);
        let asked = Asked { repo: &repo, revision: "main", path: None, pinned: false };
        let (bytes, _) = self.json(Method::GET, &url, None, &asked).await?;
        self.parsed(&bytes)
    }

    /// What lies at some paths; those that do not exist are left out.
    pub(crate) async fn paths_info(
        &self,
        repo: &Repo,
        commit: &str,
        paths: &[String],
    ) -> Result<Vec<Item>, Problem> {
        let url = self.api(repo, &format!("paths-info/{commit}"))?;
        let body = serde_json::json!({ "paths": paths }).to_string();
        let asked = Asked { repo, revision: commit, path: None, pinned: true };
        let (bytes, _) = self.json(Method::POST, &url, Some(body), &asked).await?;
        self.parsed(&bytes)
    }

    /// Everything in a folder, or below it.
    pub(crate) async fn tree(
        &self,
        repo: &Repo,
        commit: &str,
        folder: &str,
        recursive: bool,
    ) -> Result<Vec<Item>, Problem> {
        let below = if folder.is_empty() { String::new() } else { format!("/{}", encode(folder)) };
        let mut url = self.api(repo, &format!("tree/{commit}{below}"))?;
        url.set_query(Some(&format!("recursive={recursive}&expand=false")));
        let asked = Asked { repo, revision: commit, path: Some(folder), pinned: true };
        let mut items: Vec<Item> = Vec::new();
        let mut seen = HashSet::new();
        loop {
            if !seen.insert(url.clone()) {
                return Err(not_a_hub(
                    &self.settings.endpoint,
                    "a listing whose pages lead back to each other",
                ));
            }
            let (bytes, headers) = self.json(Method::GET, &url, None, &asked).await?;
            let mut page: Vec<Item> = self.parsed(&bytes)?;
            items.append(&mut page);
            if items.len() > MOST_ENTRIES {
                return Err(Problem::TooMuch(format!("it lists more than {MOST_ENTRIES} entries")));
            }
            match next_page(&headers) {
                None => return Ok(items),
                Some(link) => {
                    let next = url.join(&link).ok().filter(|next| next.origin() == url.origin());
                    url = next.ok_or_else(|| Problem::Redirect {
                        what: format!(
                            "of a listing at {} leads to another host, which is not given the token",
                            host_of(&url)
                        ),
                    })?;
                }
            }
        }
    }

    /// Proves that a file may be read, and that it is the one that was listed.
    pub(crate) async fn head(&self, repo: &Repo, commit: &str, file: &Entry) -> Result<(), Failure> {
        self.resolve(Method::HEAD, repo, commit, file, Range::default()).await.map(|_| ())
    }

    /// Opens the bytes of a file.
    pub(crate) async fn open(
        &self,
        repo: &Repo,
        commit: &str,
        file: &Entry,
        range: Range,
    ) -> Result<Body, Failure> {
        match self.resolve(Method::GET, repo, commit, file, range).await? {
            Resolved::Answer(response) => answer_body(response, file, range),
            Resolved::Storage(url) => match self.storage(&url, file, range).await? {
                Some(body) => Ok(body),
                // Signed addresses age: a new one, once.
                None => match self.resolve(Method::GET, repo, commit, file, range).await? {
                    Resolved::Answer(response) => answer_body(response, file, range),
                    Resolved::Storage(url) => self.storage(&url, file, range).await?.ok_or_else(|| {
                        Failure::Final(Problem::Denied {
                            what: format!("the storage at {} refused {}", host_of(&url), file.path),
                            fix: "Run again; if it stays so, check whether a proxy changes requests".into(),
                        })
                    }),
                },
            },
        }
    }

    /// Bytes from the storage behind the Hub, which never sees the token; `None` when it refuses.
    async fn storage(&self, url: &Url, file: &Entry, range: Range) -> Result<Option<Body>, Failure> {
        let mut url = url.clone();
        for _ in 0..MOST_HOPS {
            let mut request = self.http.client()?.get(url.clone()).header(ACCEPT_ENCODING, "identity");
            if let Some(range) = range.header() {
                request = request.header(RANGE, range);
            }
            let response = self.http.send(request, self.patience().headers).await?;
            let status = response.status();
            if status.is_redirection() {
                url = redirect_target(&url, response.headers())?;
                continue;
            }
            if status == StatusCode::FORBIDDEN {
                return Ok(None);
            }
            if let Some(failure) =
                crate::http::transient_answer(status, response.headers(), &format!("GET {}", file.path))
            {
                return Err(failure);
            }
            if status.is_success() {
                is_the_file(&response, &url, file)?;
            }
            return answer_body(response, file, range).map(Some);
        }
        Err(too_many_hops(&url).into())
    }

    async fn resolve(
        &self,
        method: Method,
        repo: &Repo,
        commit: &str,
        file: &Entry,
        range: Range,
    ) -> Result<Resolved, Failure> {
        if file.size.is_some_and(|size| size > LARGEST) {
            return Err(Problem::Unreadable {
                what: format!("{} is larger than the 50 GB that the Hub serves over HTTP", file.path),
                fix: "Download it with the Hub's own client, and name the file on this disk".into(),
            }
            .into());
        }
        let path: Vec<String> = file.path.split('/').map(encode).collect();
        let kind = match repo.kind {
            RepoKind::Dataset => "datasets/",
            RepoKind::Model => "",
        };
        let mut url =
            self.url(&format!("{kind}{}/resolve/{commit}/{}", encode_name(&repo.name), path.join("/")))?;
        let asked = Asked { repo, revision: commit, path: Some(&file.path), pinned: true };
        for _ in 0..=MOST_HOPS {
            let mut request = self.http.client()?.request(method.clone(), url.clone());
            request = request.header(ACCEPT_ENCODING, "identity");
            if let Some(range) = range.header() {
                request = request.header(RANGE, range);
            }
            let response = self.ask(request, &url).await?;
            let status = response.status();
            if status.is_redirection() {
                let next = redirect_target(&url, response.headers())?;
                if self.is_hub(&next, &url) {
                    url = next;
                    continue;
                }
                self.check_pin(response.headers(), commit, file, false)?;
                return Ok(Resolved::Storage(next));
            }
            if status.is_success() {
                self.check_pin(response.headers(), commit, file, true)?;
                return Ok(Resolved::Answer(response));
            }
            if status == StatusCode::RANGE_NOT_SATISFIABLE {
                return Err(no_such_range(file));
            }
            return Err(self.failed(response, &asked).await);
        }
        Err(too_many_hops(&url).into())
    }

    /// The answer is about the version that was pinned.
    fn check_pin(
        &self,
        headers: &HeaderMap,
        commit: &str,
        file: &Entry,
        is_content: bool,
    ) -> Result<(), Problem> {
        let Some(found) = header(headers, "x-repo-commit") else {
            return Err(not_a_hub(&self.settings.endpoint, "a file without X-Repo-Commit"));
        };
        let changed = || Problem::Changed(file.path.clone());
        if found != commit {
            return Err(changed());
        }
        let etag = header(headers, "x-linked-etag")
            .or_else(|| is_content.then(|| header(headers, "etag")).flatten())
            .map(|etag| etag.trim_start_matches("W/").trim_matches('"'));
        if let (Some(etag), Some(pinned)) = (etag, file.etag.as_deref())
            && etag != pinned
        {
            return Err(changed());
        }
        let size = header(headers, "x-linked-size").and_then(|size| size.parse::<u64>().ok());
        if let (Some(size), Some(pinned)) = (size, file.size)
            && size != pinned
        {
            return Err(changed());
        }
        Ok(())
    }

    /// Asks for JSON, three times if need be.
    async fn json(
        &self,
        method: Method,
        url: &Url,
        body: Option<String>,
        asked: &Asked<'_>,
    ) -> Result<(Vec<u8>, HeaderMap), Problem> {
        retrying(self.patience(), async || {
            let mut url = url.clone();
            for _ in 0..=MOST_HOPS {
                let mut request = self.http.client()?.request(method.clone(), url.clone());
                if let Some(body) = &body {
                    request = request.header("content-type", "application/json").body(body.clone());
                }
                let response = self.ask(request, &url).await?;
                if response.status().is_redirection() {
                    let next = redirect_target(&url, response.headers())?;
                    if !self.is_hub(&next, &url) {
                        return Err(Problem::Redirect {
                            what: format!(
                                "from {} to {} is not followed: it leaves the Hub",
                                host_of(&url),
                                host_of(&next)
                            ),
                        }
                        .into());
                    }
                    url = next;
                    continue;
                }
                if !response.status().is_success() {
                    return Err(self.failed(response, asked).await);
                }
                let headers = response.headers().clone();
                if is_page(&headers) {
                    return Err(not_a_hub(&self.settings.endpoint, "an HTML page").into());
                }
                let bytes = Body::new(response, 0, None).small(MOST_JSON).await?;
                let bytes = bytes
                    .ok_or_else(|| not_a_hub(&self.settings.endpoint, "more than any list of its API has"))?;
                return Ok((bytes, headers));
            }
            Err(too_many_hops(&url).into())
        })
        .await
    }

    fn parsed<'a, T: Deserialize<'a>>(&self, bytes: &'a [u8]) -> Result<T, Problem> {
        serde_json::from_slice(bytes)
            .map_err(|_| not_a_hub(&self.settings.endpoint, "what is not the JSON of its API"))
    }

    /// Sends a request to a host of the Hub, with the token.
    async fn ask(&self, request: reqwest::RequestBuilder, url: &Url) -> Result<Response, Failure> {
        let request = match &self.settings.token {
            Some(token) if self.may_see_token(url) => {
                let value = reqwest::header::HeaderValue::from_str(&format!("Bearer {}", token.expose()));
                let mut value = value.map_err(|_| Problem::Denied {
                    what: "the Hub token has characters that no token has".into(),
                    fix: "Set HF_TOKEN to the token alone, or unset it".into(),
                })?;
                value.set_sensitive(true);
                request.header(AUTHORIZATION, value)
            }
            _ => request,
        };
        self.http.send(request, self.patience().hub_headers).await
    }

    async fn failed(&self, response: Response, asked: &Asked<'_>) -> Failure {
        let (status, headers) = (response.status(), response.headers().clone());
        let text = Body::new(response, 0, None).small(1 << 16).await.ok().flatten().unwrap_or_default();
        classify(status, &headers, &String::from_utf8_lossy(&text), asked, &self.settings)
    }

    /// Whether a redirect stays within the Hub.
    fn is_hub(&self, next: &Url, from: &Url) -> bool {
        next.origin() == from.origin() || self.may_see_token(next)
    }

    fn may_see_token(&self, url: &Url) -> bool {
        let own = Url::parse(&self.settings.endpoint).is_ok_and(|own| own.origin() == url.origin());
        own || (url.scheme() == "https" && matches!(url.host_str(), Some("huggingface.co" | "hf.co")))
    }

    fn api(&self, repo: &Repo, rest: &str) -> Result<Url, Problem> {
        let kind = match repo.kind {
            RepoKind::Dataset => "datasets",
            RepoKind::Model => "models",
        };
        self.url(&format!("api/{kind}/{}/{rest}", encode_name(&repo.name)))
    }

    fn url(&self, path: &str) -> Result<Url, Problem> {
        let endpoint = &self.settings.endpoint;
        Url::parse(&format!("{endpoint}/{path}"))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .filter(|url| url.username().is_empty() && url.password().is_none())
            .filter(|_| !endpoint.contains(['?', '#']))
            .ok_or_else(|| Problem::Setting {
                name: "HF_ENDPOINT",
                value: shown_address(endpoint),
                rule: "it must be the URL of a Hub, such as https://huggingface.co, without a query and credentials",
            })
    }
}

/// Where a file's bytes are.
enum Resolved {
    /// Here.
    Answer(Response),
    /// In the storage behind the Hub.
    Storage(Url),
}

fn too_many_hops(url: &Url) -> Problem {
    Problem::EndlessRedirect(host_of(url))
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// Owner and repository keep their slash.
fn encode_name(name: &str) -> String {
    name.split('/').map(encode).collect::<Vec<_>>().join("/")
}
