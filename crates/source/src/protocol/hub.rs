//! Datasets on a Hugging Face Hub.

mod answers;
pub(crate) mod client;
mod near;
pub(crate) mod offline;
mod storage;

use crate::cache::hub::HubCache;
use crate::digest::{ITS_SOURCE, Promise, digests_of};
use crate::error::Problem;
use crate::http::{Body, Failure, retrying};
use crate::manifest::{self, MANIFEST, SIDECAR};
use crate::protocol::{Entry, Found, Node, Protocol, Range, Target};
use crate::reference::{HubReference, for_shell};
use client::{Client, Item, Repo};

/// A reference on a Hub that can be reached.
pub(crate) struct Hub<'a> {
    pub(crate) client: &'a Client,
    pub(crate) cache: &'a HubCache,
    pub(crate) reference: &'a HubReference,
    pub(crate) repo: &'a Repo,
}

impl Hub<'_> {
    fn commit(found: &Found) -> &str {
        // Invariant: `look_up` of a Hub always sets it.
        found.commit.as_deref().unwrap_or_default()
    }

    /// A file as the rest of the work sees it.
    pub(crate) fn entry(item: Item) -> Result<Entry, Problem> {
        let etag = item.etag().to_owned();
        let promise = promise(&etag);
        if promise.is_none() {
            return Err(Problem::UnsafeName {
                name: crate::error::printable(&etag),
                rule: "it is the blob id of a file, and no digest",
            });
        }
        Ok(Entry { size: Some(item.bytes()), etag: Some(etag), promise, path: item.path, ..Entry::default() })
    }

    /// The bytes of a manifest or sidecar, from the cache or the Hub.
    async fn declaration(&self, commit: &str, item: Item) -> Result<(String, Vec<u8>), Problem> {
        let entry = Self::entry(item)?;
        let place = entry.path.clone();
        if entry.size.is_some_and(|size| size > manifest::MOST_BYTES as u64) {
            // The reader of manifests says so.
            return Ok((place, vec![b' '; manifest::MOST_BYTES + 1]));
        }
        // One that is damaged is fetched again.
        if let Ok(Some(bytes)) = self.cache.small_file(commit, &entry) {
            return Ok((place, bytes));
        }
        let found = Found {
            commit: Some(commit.to_owned()),
            node: Node::Folder,
            declaration: None,
            declared_by: None,
        };
        let bytes = retrying(self.client.patience(), async || {
            let body = self.open(&found, &entry, Range::default()).await?;
            let bytes = body.small(manifest::MOST_BYTES).await?.unwrap_or_default();
            if let Some(promise) = &entry.promise
                && let Err((found, promised)) = digests_of(&bytes).check(promise)
            {
                let (kind, file, by) = (promise.kind(), entry.path.clone(), ITS_SOURCE.into());
                return Err(Failure::Final(Problem::Digest { kind, file, found, promised, by }));
            }
            Ok(bytes)
        })
        .await?;
        self.cache.keep_small_file(commit, &entry, &bytes);
        Ok((place, bytes))
    }

    async fn not_found(&self, commit: &str, path: &str) -> Problem {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let listed = self.client.tree(self.repo, commit, parent, false).await.unwrap_or_default();
        let mut near = near::names(path, listed.iter().map(|item| item.path.as_str()));
        if near.is_empty() {
            // Perhaps it lies in another folder.
            let all = self.client.tree(self.repo, commit, "", true).await.unwrap_or_default();
            near = near::same_name(path, all.iter().map(|item| item.path.as_str()));
        }
        let fix = if near.is_empty() {
            "Check the spelling of the path".to_owned()
        } else {
            format!("Check the spelling; near names are {}", near.join(", "))
        };
        Problem::NotFound {
            what: format!("the path \"{path}\" in {} at {}", self.repo, self.reference.revision()),
            fix,
        }
    }
}

/// What a blob id promises of the bytes.
pub(crate) fn promise(etag: &str) -> Option<Promise> {
    let hexadecimal = etag.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    match etag.len() {
        64 if hexadecimal => Some(Promise::Sha256(etag.to_owned())),
        40 if hexadecimal => Some(Promise::GitBlob(etag.to_owned())),
        _ => None,
    }
}

impl Protocol for Hub<'_> {
    async fn look_up(&self) -> Result<Found, Problem> {
        let repo = self.repo;
        let commit = self.client.commit(repo, self.reference.revision()).await?;
        let (wanted, manifest) = match &self.reference.path {
            None => (vec![MANIFEST.to_owned()], MANIFEST.to_owned()),
            Some(path) => {
                let manifest = format!("{path}/{MANIFEST}");
                (vec![path.clone(), format!("{path}{SIDECAR}"), manifest.clone()], manifest)
            }
        };
        let mut items = self.client.paths_info(repo, &commit, &wanted).await?;
        let mut take = |path: &str| {
            items.iter().position(|item| item.path == path).map(|index| items.swap_remove(index))
        };
        let (node, beside) = match &self.reference.path {
            None => (Node::Folder, manifest),
            Some(path) => match take(path) {
                Some(item) if item.is_folder() => (Node::Folder, manifest),
                Some(item) if !self.reference.folder => {
                    (Node::File(Self::entry(item)?), format!("{path}{SIDECAR}"))
                }
                _ => return Err(self.not_found(&commit, path).await),
            },
        };
        let item = take(&beside).filter(|item| !item.is_folder());
        let declaration = if let Some(item) = item {
            Some(self.declaration(&commit, item).await?)
        } else {
            self.cache.keep_absence(&commit, &beside);
            None
        };
        Ok(Found { commit: Some(commit), node, declaration, declared_by: None })
    }

    async fn node(&self, found: &Found, path: &str) -> Result<Option<Node>, Problem> {
        let items = self.client.paths_info(self.repo, Self::commit(found), &[path.to_owned()]).await?;
        items
            .into_iter()
            .find(|item| item.path == path)
            .map(|item| if item.is_folder() { Ok(Node::Folder) } else { Self::entry(item).map(Node::File) })
            .transpose()
    }

    async fn list(&self, found: &Found, folder: &str) -> Result<Vec<Entry>, Problem> {
        let commit = Self::commit(found);
        let mut items = self.client.tree(self.repo, commit, folder, true).await?;
        items.retain(|item| !item.is_folder());
        self.cache.keep_listing(commit, folder, &items);
        let mut entries = items.into_iter().map(Self::entry).collect::<Result<Vec<_>, _>>()?;
        entries.sort_by(|one, other| one.path.as_bytes().cmp(other.path.as_bytes()));
        Ok(entries)
    }

    async fn prove(&self, found: &Found, file: Entry) -> Result<Entry, Problem> {
        // In the cache under its own digest: it was read before, and is not asked for again.
        if self.cache.has_file(Self::commit(found), &file) {
            return Ok(file);
        }
        retrying(self.client.patience(), async || {
            self.client.head(self.repo, Self::commit(found), &file).await
        })
        .await?;
        Ok(file)
    }

    async fn open(&self, found: &Found, file: &Entry, range: Range) -> Result<Body, Failure> {
        self.client.open(self.repo, Self::commit(found), file, range).await
    }

    fn folder(&self) -> String {
        self.reference.path.clone().unwrap_or_default()
    }

    fn title(&self, folder: &str) -> String {
        if folder.is_empty() { self.repo.to_string() } else { format!("{}/{folder}", self.repo) }
    }

    fn reference_to(&self, path: &str) -> String {
        for_shell(&self.reference.with(self.reference.revision.as_deref(), Some(path)))
    }

    fn version(&self, found: &Found, target: &Target<'_>) -> (Option<String>, String) {
        let commit = Self::commit(found);
        (Some(commit.to_owned()), exact(self.reference, commit, target))
    }

    fn knows_layouts(&self) -> bool {
        true
    }

    fn keeps_paths(&self) -> bool {
        true
    }
}

/// The reference that names these files at a commit.
fn exact(reference: &HubReference, commit: &str, target: &Target<'_>) -> String {
    let path = match (target.folder, target.files) {
        (Some(folder), _) => Some(folder).filter(|folder| !folder.is_empty()),
        (None, files) => files.first().map(|file| file.path.as_str()),
    };
    reference.with(Some(commit), path)
}
