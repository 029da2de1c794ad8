//! A dataset as the cache knows it: no socket, no name lookup.

use super::exact;
use crate::cache::hub::HubCache;
use crate::error::Problem;
use crate::events::Events;
use crate::http::{Body, Failure};
use crate::manifest::{MANIFEST, SIDECAR};
use crate::protocol::{Entry, Found, Node, Protocol, Range, Target};
use crate::reference::{HubReference, for_shell};
use crate::shards::is_parquet;

/// A reference on a Hub that is not asked.
pub(crate) struct OfflineHub<'a> {
    pub(crate) cache: &'a HubCache,
    pub(crate) reference: &'a HubReference,
    pub(crate) events: &'a Events,
}

impl OfflineHub<'_> {
    fn missing(&self, path: &str) -> Problem {
        Problem::Offline(self.title(path))
    }

    pub(crate) fn commit(&self) -> Result<String, Problem> {
        if let Some(commit) = self.reference.commit() {
            return if self.cache.knows(commit) { Ok(commit.to_owned()) } else { Err(self.unknown(commit)) };
        }
        let revision = self.reference.revision();
        let kept = self.cache.kept_ref(revision).filter(|(commit, _)| self.cache.knows(commit));
        let Some((commit, kept)) = kept else {
            // As the Hub takes them, too.
            let commit = self.cache.commit_of(revision).ok_or_else(|| self.unknown(revision))?;
            self.events.warn(format!(
                "offline mode is on: {} is taken for the cached commit {commit}",
                self.reference.typed
            ));
            return Ok(commit);
        };
        let age = kept.map(|at| {
            let seconds = aiperf_clock::wall(aiperf_clock::now()).saturating_sub(at) / 1_000_000_000;
            format!(", first seen {} ago", age(seconds))
        });
        self.events.warn(format!(
            "offline mode is on: {} uses the newest cached version, {commit}{}",
            self.reference.typed,
            age.unwrap_or_default()
        ));
        Ok(commit)
    }

    /// Why nothing is known of a commit or a revision.
    fn unknown(&self, name: &str) -> Problem {
        self.cache.barrier(name).unwrap_or_else(|| Problem::Offline(self.reference.canonical()))
    }

    fn file(&self, commit: &str, path: &str) -> Option<Entry> {
        self.listed(commit, path).or_else(|| self.cache.snapshot_file(commit, path))
    }

    /// A file as the listing of its folder, or of one above it, has it.
    fn listed(&self, commit: &str, path: &str) -> Option<Entry> {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.cache.listing(commit, folder)?.into_iter().find(|entry| entry.path == path)
    }

    /// What keeps a folder without its manifest from being read: it may have one that is not here.
    fn unknown_manifest(&self, commit: &str, folder: &str, manifest: &str) -> Result<(), Problem> {
        if self.listed(commit, manifest).is_some() {
            return Err(self.missing(manifest));
        }
        let is_known = self.cache.is_absent(commit, manifest) || self.cache.listing(commit, folder).is_some();
        // A folder of shards may go without one.
        let has_shards =
            || self.cache.snapshot_files(commit, folder).iter().any(|file| is_parquet(&file.path));
        if is_known || has_shards() { Ok(()) } else { Err(self.missing(manifest)) }
    }

    fn is_folder(&self, commit: &str, path: &str) -> bool {
        self.cache.is_folder(commit, path)
            || self.cache.listing(commit, path).is_some_and(|files| !files.is_empty())
    }
}

/// In words.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

impl Protocol for OfflineHub<'_> {
    async fn look_up(&self) -> Result<Found, Problem> {
        let commit = self.commit()?;
        let (node, beside) = match self.reference.path.as_deref() {
            None => (Node::Folder, MANIFEST.to_owned()),
            Some(path) => match self.file(&commit, path) {
                Some(entry) if !self.reference.folder => (Node::File(entry), format!("{path}{SIDECAR}")),
                _ if self.is_folder(&commit, path) => (Node::Folder, format!("{path}/{MANIFEST}")),
                _ => return Err(self.missing(path)),
            },
        };
        let declaration = match self.cache.snapshot_file(&commit, &beside) {
            Some(entry) => self.cache.small_file(&commit, &entry)?.map(|bytes| (beside.clone(), bytes)),
            None => None,
        };
        if declaration.is_none() {
            match node {
                Node::Folder => {
                    let folder = self.reference.path.as_deref().unwrap_or_default();
                    self.unknown_manifest(&commit, folder, &beside)?;
                }
                Node::File(_) if self.listed(&commit, &beside).is_some() => {
                    return Err(self.missing(&beside));
                }
                Node::File(_) => {}
            }
        }
        Ok(Found { commit: Some(commit), node, declaration, declared_by: None })
    }

    async fn node(&self, found: &Found, path: &str) -> Result<Option<Node>, Problem> {
        let commit = found.commit.as_deref().unwrap_or_default();
        if let Some(entry) = self.file(commit, path) {
            return Ok(Some(Node::File(entry)));
        }
        if self.is_folder(commit, path) { Ok(Some(Node::Folder)) } else { Err(self.missing(path)) }
    }

    async fn list(&self, found: &Found, folder: &str) -> Result<Vec<Entry>, Problem> {
        let commit = found.commit.as_deref().unwrap_or_default();
        if let Some(files) = self.cache.listing(commit, folder) {
            return Ok(files);
        }
        // Files that were fetched one by one are not the folder.
        if self.cache.is_partial(commit) {
            return Err(Problem::Offline(format!("the list of the files in {}", self.title(folder))));
        }
        let files = self.cache.snapshot_files(commit, folder);
        self.events.warn_once(format!(
            "offline mode is on, and the cache has no list of the files in {}: the {} that are there are taken for all \
             of them",
            self.title(folder),
            files.len()
        ));
        Ok(files)
    }

    async fn prove(&self, found: &Found, file: Entry) -> Result<Entry, Problem> {
        let commit = found.commit.as_deref().unwrap_or_default();
        if self.cache.has_file(commit, &file) {
            return Ok(file);
        }
        let damaged = self.cache.remains_of(commit, &file).map(Problem::Damaged);
        Err(damaged.unwrap_or_else(|| self.missing(&file.path)))
    }

    async fn open(&self, _: &Found, file: &Entry, _: Range) -> Result<Body, Failure> {
        Err(self.missing(&file.path).into())
    }

    fn folder(&self) -> String {
        self.reference.path.clone().unwrap_or_default()
    }

    fn title(&self, folder: &str) -> String {
        let repo = format!("datasets/{}/{}", self.reference.org, self.reference.repo);
        if folder.is_empty() { repo } else { format!("{repo}/{folder}") }
    }

    fn reference_to(&self, path: &str) -> String {
        for_shell(&self.reference.with(self.reference.revision.as_deref(), Some(path)))
    }

    fn version(&self, found: &Found, target: &Target<'_>) -> (Option<String>, String) {
        let commit = found.commit.clone().unwrap_or_default();
        let exact = exact(self.reference, &commit, target);
        (Some(commit), exact)
    }

    fn knows_layouts(&self) -> bool {
        true
    }

    fn keeps_paths(&self) -> bool {
        true
    }
}
