//! Objects and prefixes of S3, and of stores that speak like it.

mod answers;
pub(crate) mod client;
mod credentials;
mod place;
mod process;
mod profiles;
mod sign_on;
pub(crate) mod xml;

use std::collections::HashSet;

use reqwest::StatusCode;
use reqwest::header::{HeaderName, IF_MATCH, RANGE};

use crate::digest::sha256_hex;
use crate::error::Problem;
use crate::events::Events;
use crate::http::{Body, Failure, content_range, header, retrying};
use crate::manifest::{MANIFEST, MOST_BYTES, SIDECAR};
use crate::protocol::{Entry, Found, Node, Protocol, Range, Target};
use crate::reference::S3Reference;
use crate::settings::Settings;
use answers::{Object, Refusal};
use client::{Client, entry};

/// Objects of one listing.
const MOST_ENTRIES: usize = 100_000;

/// A reference to a store that can be reached.
pub(crate) struct S3<'a> {
    pub(crate) client: &'a Client,
    pub(crate) reference: &'a S3Reference,
    pub(crate) events: &'a Events,
}

/// The store that the settings name, for the identity of what is cached; empty for AWS.
pub(crate) fn store(settings: &Settings) -> String {
    let profiles = profiles::Profiles::of(settings);
    profiles.endpoint(settings, "s3").unwrap_or_default().to_owned()
}

/// A prefix as a folder: without the `/` at its end.
pub(crate) fn folder_of(prefix: &str) -> String {
    prefix.strip_suffix('/').unwrap_or(prefix).to_owned()
}

impl S3<'_> {
    fn object<'b>(&'b self, key: &'b str, version: Option<&'b str>) -> Object<'b> {
        Object { bucket: &self.reference.bucket, key, version }
    }

    /// An object, or why there is none.
    async fn head(&self, object: Object<'_>) -> Result<Result<Entry, Refusal>, Problem> {
        retrying(self.client.patience(), async || match self.client.head(object).await? {
            Err(refusal) if refusal.is_transient() => Err(refusal.failure(object)),
            answer => Ok(answer),
        })
        .await
    }

    /// The problem of an answer that is not worth another attempt.
    fn refused(refusal: &Refusal, object: Object<'_>) -> Problem {
        match refusal.failure(object) {
            Failure::Final(problem) | Failure::Transient { problem, .. } | Failure::NoSuchRange(problem) => {
                problem
            }
        }
    }

    /// Whether anything lies below a prefix; a caller that may not list learns nothing.
    async fn has_any(&self, prefix: &str) -> Result<Option<bool>, Problem> {
        let object = self.object(prefix, None);
        retrying(self.client.patience(), async || {
            match self.client.page(object.bucket, prefix, None, Some("2")).await? {
                Ok((listed, next)) => Ok(Some(!listed.is_empty() || next.is_some())),
                Err(refusal) if refusal.is_transient() => Err(refusal.failure(object)),
                Err(_) => Ok(None),
            }
        })
        .await
    }

    /// A manifest or sidecar in its newest version.
    async fn declaration(&self, key: &str) -> Result<Result<(Entry, Vec<u8>), Refusal>, Problem> {
        let object = self.object(key, None);
        retrying(self.client.patience(), async || match self.client.get(object, &[]).await? {
            Err(refusal) if refusal.is_transient() => Err(refusal.failure(object)),
            Err(refusal) => Ok(Err(refusal)),
            Ok(response) => {
                let entry = entry(object, &response);
                let coded = header(response.headers(), "content-encoding")
                    .is_some_and(|coding| coding.eq_ignore_ascii_case("gzip"));
                let total = entry.size.filter(|_| !coded);
                let body = Body::new(response, 0, total);
                let body = if coded { body.decoded() } else { body };
                let bytes = body.small(MOST_BYTES).await?;
                // What is larger is refused by the reader of manifests.
                let bytes = bytes.unwrap_or_else(|| vec![b' '; MOST_BYTES + 1]);
                if total.is_some_and(|total| total <= MOST_BYTES as u64 && total != bytes.len() as u64) {
                    return Err(Failure::transient(Problem::CutShort {
                        file: key.to_owned(),
                        what: format!("{} of {} bytes came", bytes.len(), total.unwrap_or_default()),
                    }));
                }
                Ok(Ok((entry, bytes)))
            }
        })
        .await
    }

    async fn look_up_object(&self) -> Result<Found, Problem> {
        let key = &self.reference.key;
        if key.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(Problem::UnsafeName {
                name: crate::error::printable(key),
                rule: "it has a part '.' or '..', which addresses do not keep",
            });
        }
        let object = self.object(key, self.reference.version.as_deref());
        let file = match self.head(object).await? {
            Ok(entry) => entry,
            Err(refusal) => {
                let prefix = format!("{key}/");
                if refusal.is_absent()
                    && object.version.is_none()
                    && self.has_any(&prefix).await? == Some(true)
                {
                    return Err(Problem::NotFound {
                        what: object.to_string(),
                        fix: format!("Add a / at its end: {object}/ is a prefix"),
                    });
                }
                return Err(Self::refused(&refusal, object));
            }
        };
        let sidecar = format!("{key}{SIDECAR}");
        let (declaration, declared_by) = match self.declaration(&sidecar).await? {
            Ok((entry, bytes)) => (Some((sidecar, bytes)), Some(entry)),
            Err(refusal) if refusal.is_absent() => (None, None),
            Err(refusal) if refusal.status == StatusCode::FORBIDDEN => {
                self.events.info(format!("{sidecar} may not be read: taken as absent"));
                (None, None)
            }
            Err(refusal) => return Err(Self::refused(&refusal, self.object(&sidecar, None))),
        };
        Ok(Found { commit: None, node: Node::File(file), declaration, declared_by })
    }

    async fn look_up_prefix(&self) -> Result<Found, Problem> {
        let prefix = &self.reference.key;
        if prefix == "/" {
            return Err(Problem::UnsafeName { name: prefix.clone(), rule: "as a prefix it has no name" });
        }
        let manifest = format!("{prefix}{MANIFEST}");
        let object = self.object(&manifest, None);
        let (declaration, declared_by) = match self.declaration(&manifest).await? {
            Ok((entry, bytes)) => (Some((manifest, bytes)), Some(entry)),
            Err(refusal) if refusal.is_absent() => {
                if self.has_any(prefix).await? == Some(false) {
                    return Err(Problem::NotFound {
                        what: format!("an object below s3://{}/{prefix}", self.reference.bucket),
                        fix: "Check the spelling of the prefix".into(),
                    });
                }
                (None, None)
            }
            Err(refusal) if refusal.is_denied() => {
                return Err(Problem::Denied {
                    what: format!(
                        "{object} was asked for with {}: it is denied, or the prefix has no aiperf.json",
                        refusal.who.name
                    ),
                    fix: refusal.grant(
                        "Grant s3:GetObject on it, and s3:ListBucket so that S3 tells whether it exists; a prefix \
                         needs an aiperf.json"
                            .into(),
                    ),
                });
            }
            Err(refusal) => return Err(Self::refused(&refusal, object)),
        };
        Ok(Found { commit: None, node: Node::Folder, declaration, declared_by })
    }
}

impl Protocol for S3<'_> {
    async fn look_up(&self) -> Result<Found, Problem> {
        if self.reference.is_folder() { self.look_up_prefix().await } else { self.look_up_object().await }
    }

    async fn node(&self, _: &Found, path: &str) -> Result<Option<Node>, Problem> {
        let object = self.object(path, None);
        match self.head(object).await? {
            Ok(entry) => Ok(Some(Node::File(entry))),
            Err(refusal) if refusal.is_absent() || refusal.is_denied() => {
                match self.has_any(&format!("{path}/")).await? {
                    Some(true) => Ok(Some(Node::Folder)),
                    _ if refusal.is_denied() => Err(Self::refused(&refusal, object)),
                    _ => Ok(None),
                }
            }
            Err(refusal) => Err(Self::refused(&refusal, object)),
        }
    }

    async fn list(&self, _: &Found, folder: &str) -> Result<Vec<Entry>, Problem> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let object = self.object(&prefix, None);
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = HashSet::new();
        let mut token: Option<String> = None;
        loop {
            let (listed, next) = retrying(self.client.patience(), async || {
                let answer = self.client.page(object.bucket, &prefix, token.as_deref(), None).await?;
                answer.map_err(|refusal| match refusal.failure(object) {
                    Failure::Final(Problem::Denied { what, .. }) if refusal.is_denied() => {
                        Failure::Final(Problem::Denied {
                            what,
                            fix: refusal
                                .grant(format!("Grant s3:ListBucket on the bucket {}", object.bucket)),
                        })
                    }
                    failure => failure,
                })
            })
            .await?;
            entries.extend(listed.into_iter().filter(|listed| listed.key.starts_with(&prefix)).map(
                |listed| Entry {
                    path: listed.key,
                    size: Some(listed.size),
                    etag: Some(listed.etag).filter(|etag| !etag.is_empty()),
                    ..Entry::default()
                },
            ));
            if entries.len() > MOST_ENTRIES || seen.len() > MOST_ENTRIES {
                return Err(Problem::TooMuch(format!("it lists more than {MOST_ENTRIES} entries")));
            }
            let Some(next) = next else { break };
            if !seen.insert(next.clone()) {
                return Err(Problem::Unexpected {
                    what: "a listing whose pages lead back to each other".into(),
                    fix: "Check the endpoint".into(),
                });
            }
            token = Some(next);
        }
        entries.sort_by(|one, other| one.path.as_bytes().cmp(other.path.as_bytes()));
        Ok(entries)
    }

    async fn prove(&self, found: &Found, file: Entry) -> Result<Entry, Problem> {
        if matches!(found.node, Node::File(_)) {
            return Ok(file);
        }
        let object = self.object(&file.path, file.version_id.as_deref());
        match self.head(object).await? {
            Ok(entry) if entry.etag != file.etag || entry.size != file.size => {
                Err(Problem::Changed(object.to_string()))
            }
            Ok(_) => Ok(file),
            Err(refusal) => Err(Self::refused(&refusal, object)),
        }
    }

    async fn open(&self, _: &Found, file: &Entry, range: Range) -> Result<Body, Failure> {
        let object = self.object(&file.path, file.version_id.as_deref());
        let mut headers: Vec<(HeaderName, String)> = Vec::new();
        headers.extend(range.header().map(|range| (RANGE, range)));
        if file.version_id.is_none() {
            headers.extend(file.etag.iter().map(|etag| (IF_MATCH, etag.clone())));
        }
        let is_change = Problem::Changed(object.to_string());
        let changed = || Failure::Final(is_change.clone());
        let response = match self.client.get(object, &headers).await? {
            Ok(response) => response,
            Err(refusal) if refusal.status == StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(Failure::NoSuchRange(is_change));
            }
            Err(refusal) if refusal.is_change() => return Err(changed()),
            Err(refusal) => return Err(refusal.failure(object)),
        };
        let found = entry(object, &response);
        let other_version = file.version_id.is_some() && found.version_id != file.version_id;
        if found.etag != file.etag || other_version {
            return Err(changed());
        }
        if let (Some(size), Some(pinned)) = (found.size, file.size)
            && size != pinned
        {
            return Err(changed());
        }
        if response.status() != StatusCode::PARTIAL_CONTENT {
            let total = header(response.headers(), "content-length").and_then(|text| text.parse().ok());
            return Ok(Body::new(response, 0, total).promised(found.promise));
        }
        match content_range(response.headers()) {
            Some((start, total)) if start == range.start => Ok(Body::new(response, start, total)),
            _ => Err(Failure::transient(Problem::CutShort {
                file: file.path.clone(),
                what: "another range came than the one asked for".into(),
            })),
        }
    }

    fn folder(&self) -> String {
        folder_of(&self.reference.key)
    }

    fn title(&self, folder: &str) -> String {
        let end = if folder.is_empty() || folder.ends_with('/') { "" } else { "/" };
        format!("s3://{}/{folder}{end}", self.reference.bucket)
    }

    fn reference_to(&self, path: &str) -> String {
        format!("s3://{}/{path}", self.reference.bucket)
    }

    fn version(&self, found: &Found, target: &Target<'_>) -> (Option<String>, String) {
        let typed = self.reference.typed.clone();
        let (None, [file]) = (target.folder, target.files) else {
            let line = |entry: &Entry| {
                let etag = entry.etag.as_deref().unwrap_or_default();
                format!("{}\0{etag}\0{}\n", entry.path, entry.size.unwrap_or_default())
            };
            let mut lines: Vec<String> = target.files.iter().chain(&found.declared_by).map(line).collect();
            lines.sort_unstable();
            return (Some(format!("listing:{}", sha256_hex(lines.concat().as_bytes()))), typed);
        };
        let exact = file.version_id.as_deref().map(|version| {
            format!("{}?versionId={}", self.reference_to(&file.path), place::encoded(version))
        });
        (file.version(), exact.unwrap_or(typed))
    }

    fn fetches_whole_folders(&self) -> bool {
        true
    }
}
