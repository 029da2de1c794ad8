//! A stub of the Hugging Face Hub: enough of its API for the Python client and for ours, on two ports with two host
//! names, the second one being the storage that must never see a token.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use serde_json::{Value, json};

use crate::http::{Answer, Request, Server};

/// A file of a commit.
#[derive(Clone, Debug)]
pub struct StubFile {
    /// Its content.
    pub bytes: Arc<[u8]>,
    /// Stored as a large file: redirected to the storage, its etag a sha256.
    pub lfs: bool,
    /// Digests, taken once.
    git: String,
    sha256: String,
}

impl StubFile {
    fn new(bytes: &[u8], lfs: bool) -> StubFile {
        let mut git = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        git.update(format!("blob {}\0", bytes.len()).as_bytes());
        git.update(bytes);
        StubFile {
            lfs,
            git: hex(git.finish().as_ref()),
            sha256: hex(digest(&SHA256, bytes).as_ref()),
            bytes: Arc::from(bytes),
        }
    }

    fn git(&self) -> String {
        self.git.clone()
    }

    fn sha256(&self) -> String {
        self.sha256.clone()
    }

    /// The name of its blob.
    pub fn etag(&self) -> String {
        if self.lfs { self.sha256() } else { self.git() }
    }

    fn pointer_oid(&self) -> String {
        hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("pointer {}", self.sha256()).as_bytes()).as_ref())
    }
}

/// A repository.
#[derive(Clone, Debug, Default)]
pub struct StubRepo {
    /// Commits by their id.
    pub commits: BTreeMap<String, BTreeMap<String, StubFile>>,
    /// Branches, tags and special refs.
    pub refs: BTreeMap<String, String>,
    /// Only for this token.
    pub private: bool,
    /// Lists freely, files only after its terms were accepted.
    pub gated: bool,
    /// Taken down.
    pub disabled: bool,
}

impl StubRepo {
    /// A repository whose `main` has these files. Names that start with `lfs:` are large files, without the prefix.
    pub fn new(files: &[(&str, &[u8])]) -> StubRepo {
        let mut repo = StubRepo::default();
        repo.commit("main", files);
        repo
    }

    /// Puts a new commit with exactly these files on a branch, and returns its id.
    pub fn commit(&mut self, branch: &str, files: &[(&str, &[u8])]) -> String {
        let mut tree = BTreeMap::new();
        let mut text = format!("{branch} {}", self.commits.len());
        for (name, bytes) in files {
            let (name, lfs) = name.strip_prefix("lfs:").map_or((*name, false), |name| (name, true));
            let file = StubFile::new(bytes, lfs);
            let _ = write!(text, " {name} {}", file.etag());
            tree.insert(name.to_owned(), file);
        }
        let sha = hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()).as_ref());
        self.commits.insert(sha.clone(), tree);
        self.refs.insert(branch.to_owned(), sha.clone());
        sha
    }

    fn resolve(&self, revision: &str) -> Option<&str> {
        if self.commits.contains_key(revision) {
            return self.commits.get_key_value(revision).map(|(sha, _)| sha.as_str());
        }
        self.refs.get(revision).map(String::as_str)
    }
}

/// Everything that can be changed while it runs.
#[derive(Default)]
struct State {
    repos: BTreeMap<String, StubRepo>,
    /// Tokens that are valid.
    tokens: Vec<String>,
    /// Entries of a page of a listing.
    page: usize,
    /// Answers given instead, by a predicate on the request; for both ports.
    faults: Vec<Fault>,
}

type Fault = Box<dyn FnMut(&Request) -> Option<Answer> + Send>;

/// A running stub.
pub struct StubHub {
    state: Arc<Mutex<State>>,
    hub: Server,
    storage: Server,
}

impl std::fmt::Debug for StubHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StubHub({})", self.endpoint())
    }
}

impl StubHub {
    /// Starts one with these dataset repositories. The token `hf_good` may read all of them.
    pub fn start(repos: &[(&str, StubRepo)]) -> StubHub {
        let state = Arc::new(Mutex::new(State {
            repos: repos.iter().map(|(name, repo)| ((*name).to_owned(), repo.clone())).collect(),
            tokens: vec!["hf_good".into()],
            page: 2,
            faults: Vec::new(),
        }));
        let its_state = Arc::clone(&state);
        let storage = Server::start(move |request| {
            let mut state = its_state.lock().unwrap_or_else(PoisonError::into_inner);
            state.fault(request).unwrap_or_else(|| state.storage(request))
        });
        let its_state = Arc::clone(&state);
        let storage_url = format!("http://localhost:{}", storage.port());
        let hub = Server::start(move |request| {
            let mut state = its_state.lock().unwrap_or_else(PoisonError::into_inner);
            state.fault(request).unwrap_or_else(|| state.hub(request, &storage_url))
        });
        StubHub { state, hub, storage }
    }

    /// What `HF_ENDPOINT` must be.
    pub fn endpoint(&self) -> String {
        self.hub.url()
    }

    /// A signed address of a large file in the storage.
    pub fn storage_url(&self, sha256: &str) -> String {
        format!("http://localhost:{}/{sha256}?Signature=s", self.storage.port())
    }

    /// What the Hub's port was asked.
    pub fn log(&self) -> Vec<Request> {
        self.hub.log()
    }

    /// What the storage's port was asked.
    pub fn storage_log(&self) -> Vec<Request> {
        self.storage.log()
    }

    /// Forgets what both were asked.
    pub fn clear_logs(&self) {
        self.hub.clear_log();
        self.storage.clear_log();
    }

    /// Changes a repository.
    pub fn change<T>(&self, name: &str, change: impl FnOnce(&mut StubRepo) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(state.repos.entry(name.to_owned()).or_default())
    }

    /// Answers some requests, to either port, in another way: the first function that says something is heard.
    pub fn fault(&self, fault: impl FnMut(&Request) -> Option<Answer> + Send + 'static) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).faults.push(Box::new(fault));
    }

    /// Entries of a page of a listing.
    pub fn page_of(&self, entries: usize) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).page = entries;
    }
}

impl State {
    fn fault(&mut self, request: &Request) -> Option<Answer> {
        self.faults.iter_mut().find_map(|fault| fault(request))
    }

    fn storage(&self, request: &Request) -> Answer {
        let sha256 = request.path().trim_start_matches('/');
        let found = self
            .repos
            .values()
            .flat_map(|repo| repo.commits.values())
            .flat_map(BTreeMap::values)
            .find(|file| file.lfs && file.sha256() == sha256);
        match found {
            Some(file) if request.target.contains("Signature=") => {
                Answer::file(request, &file.bytes).with("ETag", format!("\"{sha256}\""))
            }
            _ => Answer::status(403).body(*b"<Error><Code>AccessDenied</Code></Error>"),
        }
    }

    fn hub(&self, request: &Request, storage: &str) -> Answer {
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let path = request.path().trim_start_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        let token = request.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
        if token.is_some_and(|token| !self.tokens.iter().any(|valid| valid == token)) {
            return error(401, "", "Invalid credentials in Authorization header");
        }
        let (name, rest, is_api) = match parts.as_slice() {
            // A repository is found as either kind.
            ["api", "models"] => return self.search(request),
            ["api", "datasets" | "models", org, repo, rest @ ..] => (format!("{org}/{repo}"), rest, true),
            ["datasets", org, repo, "resolve", rest @ ..] | [org, repo, "resolve", rest @ ..] => {
                (format!("{org}/{repo}"), rest, false)
            }
            _ => return error(404, "", "Not found"),
        };
        let Some(repo) = self.repos.get(&name).filter(|repo| !repo.private || token.is_some()) else {
            return error(if token.is_some() { 404 } else { 401 }, "RepoNotFound", "Repository not found");
        };
        if repo.disabled {
            return error(403, "", "Access to this resource is disabled.");
        }
        if !is_api {
            let [revision, path @ ..] = rest else { return error(404, "", "Not found") };
            if repo.gated && token.is_none() {
                return error(401, "GatedRepo", "Access to this dataset is restricted");
            }
            let path: Vec<String> = path.iter().map(|part| decode(part)).collect();
            return resolve(repo, &decode(revision), &path.join("/"), request, storage);
        }
        match rest {
            [] => info(&name, repo, "main"),
            ["revision", revision] => info(&name, repo, &decode(revision)),
            ["paths-info", revision] => paths_info(repo, &decode(revision), request),
            ["tree", revision, path @ ..] => {
                let path: Vec<String> = path.iter().map(|part| decode(part)).collect();
                self.tree(repo, &decode(revision), &path.join("/"), request)
            }
            _ => error(404, "", "Not found"),
        }
    }

    /// Models whose names hold what is searched; the later in order, the more downloads.
    fn search(&self, request: &Request) -> Answer {
        let query = request.target.split_once('?').map_or("", |(_, query)| query);
        let text = query.split('&').find_map(|pair| pair.strip_prefix("search=")).unwrap_or_default();
        let found = (1..).zip(self.repos.keys()).filter(|(_, name)| name.contains(text));
        Answer::json(&found.map(|(rank, name)| json!({ "id": name, "downloads": rank * 100 })).collect())
    }

    fn tree(&self, repo: &StubRepo, revision: &str, folder: &str, request: &Request) -> Answer {
        let Some(sha) = repo.resolve(revision) else { return revision_not_found(revision) };
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let query = request.target.split_once('?').map_or("", |(_, query)| query);
        let recursive = query.to_ascii_lowercase().contains("recursive=true");
        let mut entries: BTreeMap<String, Value> = BTreeMap::new();
        for (path, file) in &repo.commits[sha] {
            let Some(rest) = path.strip_prefix(&prefix) else { continue };
            let parts: Vec<&str> = rest.split('/').collect();
            let folders = if recursive { parts.len() } else { parts.len().min(2) };
            for depth in 1..folders {
                let folder = format!("{prefix}{}", parts[..depth].join("/"));
                let oid = hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, folder.as_bytes()).as_ref());
                entries.insert(
                    folder.clone(),
                    json!({"type": "directory", "path": folder, "oid": oid, "size": 0}),
                );
            }
            if recursive || parts.len() == 1 {
                entries.insert(path.clone(), entry(path, file));
            }
        }
        if entries.is_empty() && !folder.is_empty() {
            return error(404, "EntryNotFound", "does not exist on");
        }
        let from: usize = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("cursor="))
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let page: Vec<Value> = entries.values().skip(from).take(self.page).cloned().collect();
        let next = from + page.len();
        let answer = Answer::json(&Value::Array(page));
        if next >= entries.len() {
            return answer;
        }
        let query: Vec<&str> =
            query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("cursor=")).collect();
        let host = request.header("host").unwrap_or_default();
        answer.with(
            "Link",
            format!("<http://{host}{}?{}&cursor={next}>; rel=\"next\"", request.path(), query.join("&")),
        )
    }
}

fn entry(path: &str, file: &StubFile) -> Value {
    let mut entry = json!({"type": "file", "path": path, "size": file.bytes.len(), "oid": file.git()});
    if file.lfs {
        entry["oid"] = json!(file.pointer_oid());
        entry["lfs"] = json!({"oid": file.sha256(), "size": file.bytes.len(), "pointerSize": 130});
    }
    entry
}

fn info(name: &str, repo: &StubRepo, revision: &str) -> Answer {
    let Some(sha) = repo.resolve(revision) else { return revision_not_found(revision) };
    let siblings: Vec<Value> = repo.commits[sha].keys().map(|path| json!({ "rfilename": path })).collect();
    Answer::json(&json!({
        "_id": "1", "id": name, "author": name.split('/').next(), "sha": sha, "private": repo.private,
        "gated": if repo.gated { json!("auto") } else { json!(false) }, "disabled": false, "tags": [],
        "lastModified": "2026-01-01T00:00:00.000Z", "createdAt": "2026-01-01T00:00:00.000Z", "downloads": 1,
        "likes": 0, "siblings": siblings,
    }))
}

fn paths_info(repo: &StubRepo, revision: &str, request: &Request) -> Answer {
    let Some(sha) = repo.resolve(revision) else { return revision_not_found(revision) };
    let body = String::from_utf8_lossy(&request.body);
    let paths: Vec<String> = if request.header("content-type").is_some_and(|kind| kind.contains("json")) {
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        body["paths"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|path| path.as_str().map(str::to_owned))
            .collect()
    } else {
        body.split('&')
            .filter_map(|pair| pair.strip_prefix("paths="))
            .map(|text| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned())
            .collect()
    };
    let files = &repo.commits[sha];
    let found = paths.iter().filter_map(|path| {
        if let Some(file) = files.get(path) {
            return Some(entry(path, file));
        }
        let below = format!("{path}/");
        files
            .keys()
            .any(|name| name.starts_with(&below))
            .then(|| json!({"type": "directory", "path": path, "oid": "0".repeat(40), "size": 0}))
    });
    Answer::json(&Value::Array(found.collect()))
}

fn resolve(repo: &StubRepo, revision: &str, path: &str, request: &Request, storage: &str) -> Answer {
    let Some(sha) = repo.resolve(revision) else { return revision_not_found(revision) };
    let Some(file) = repo.commits[sha].get(path) else {
        return error(404, "EntryNotFound", "Entry not found").with("X-Repo-Commit", sha);
    };
    if !file.lfs {
        return Answer::file(request, &file.bytes)
            .with("X-Repo-Commit", sha)
            .with("ETag", format!("\"{}\"", file.git()));
    }
    let sha256 = file.sha256();
    Answer::status(302)
        .with("X-Repo-Commit", sha)
        .with("X-Linked-Etag", format!("\"{sha256}\""))
        .with("X-Linked-Size", file.bytes.len().to_string())
        .with("ETag", format!("\"{}\"", file.pointer_oid()))
        .with(
            "Location",
            format!(
                "{storage}/{sha256}?response-content-disposition={}&Signature=canary-signature&Key-Pair-Id=K",
                utf8_percent_encode(path, NON_ALPHANUMERIC)
            ),
        )
}

fn revision_not_found(revision: &str) -> Answer {
    error(404, "RevisionNotFound", &format!("Invalid rev id: {revision}"))
}

fn error(status: u16, code: &str, message: &str) -> Answer {
    let answer = Answer::status(status)
        .with("Content-Type", "application/json; charset=utf-8")
        .with("X-Error-Message", message)
        .body(json!({ "error": message }).to_string().into_bytes());
    if code.is_empty() { answer } else { answer.with("X-Error-Code", code) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
