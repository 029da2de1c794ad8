//! The files of a Hub repository at one commit, for rooms that know which of them they want: lists, ranges, and
//! whole files through the cache.

use crate::cache::hub::HubCache;
use crate::error::{Problem, SourceError};
use crate::fetch::LocalFile;
use crate::http::retrying;
use crate::plan::Plan;
use crate::protocol::hub::Hub;
use crate::protocol::hub::client::{Repo, RepoKind};
use crate::protocol::hub::offline::OfflineHub;
use crate::protocol::{Entry, Found, Node, Protocol, Range};
use crate::reference::{HubReference, Reference};
use crate::sources::Sources;
use crate::store::Store as _;

/// A repository at a commit, and the files that lie below a folder of it.
#[derive(Clone, Debug)]
pub struct HubFiles {
    repo: Repo,
    reference: HubReference,
    commit: String,
    entries: Vec<Entry>,
    offline: bool,
}

impl HubFiles {
    /// The commit.
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// Path in the repository and size of each file, in the byte order of the paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, Option<u64>)> {
        self.entries.iter().map(|entry| (entry.path.as_str(), entry.size))
    }

    pub(crate) fn repo(&self) -> &Repo {
        &self.repo
    }

    pub(crate) fn reference(&self) -> &HubReference {
        &self.reference
    }

    pub(crate) fn is_offline(&self) -> bool {
        self.offline
    }

    /// The same with one file alone.
    pub(crate) fn only(&self, path: &str) -> Result<HubFiles, SourceError> {
        let entries = vec![self.entry(path)?];
        let (repo, reference, commit) = (self.repo.clone(), self.reference.clone(), self.commit.clone());
        Ok(HubFiles { repo, reference, commit, entries, offline: self.offline })
    }

    fn found(&self) -> Found {
        Found { commit: Some(self.commit.clone()), node: Node::Folder, declaration: None, declared_by: None }
    }

    pub(crate) fn entry(&self, path: &str) -> Result<Entry, SourceError> {
        self.entries.iter().find(|entry| entry.path == path).cloned().ok_or_else(|| {
            Problem::NotFound {
                what: format!("the path \"{path}\" in {} at {}", self.repo, self.commit),
                fix: "Check the spelling of the path".into(),
            }
            .about(self.reference.typed.clone())
        })
    }

    /// A plan of one file.
    pub(crate) fn plan(&self, entry: Entry) -> Plan {
        Plan {
            reference: Reference::Hub(self.reference.clone()),
            resolved_reference: self.reference.with(Some(&self.commit), Some(&entry.path)),
            version: Some(self.commit.clone()),
            pinned: self.reference.commit().is_some(),
            format: None,
            format_source: None,
            block_size: None,
            endpoint_types: None,
            max_context_tokens: None,
            dropped: Vec::new(),
            manifest: None,
            offline: self.offline,
            files: vec![entry],
            folder: None,
            data_sha256: None,
            found: self.found(),
        }
    }
}

impl Sources {
    /// The files below a folder (empty for the root) of a repository at a revision (`None` is `main`). `name` is
    /// `<owner>/<repository>`; old models have no owner. Offline they are those that the cache knows.
    pub fn hub_files(
        &self,
        kind: RepoKind,
        name: &str,
        revision: Option<&str>,
        folder: &str,
    ) -> Result<HubFiles, SourceError> {
        let (org, repo_name) = name.split_once('/').unwrap_or(("", name));
        let at = revision.map(|revision| format!("@{revision}")).unwrap_or_default();
        let reference = HubReference {
            typed: format!("{name}{at}"),
            org: org.to_owned(),
            repo: repo_name.to_owned(),
            revision: revision.map(str::to_owned),
            path: None,
            folder: true,
        };
        let repo = Repo { kind, name: name.to_owned() };
        let cache = HubCache::new(&self.settings.hub, &repo);
        let about = Reference::Hub(reference.clone());
        let offline = self.settings.offline;
        let (commit, entries) = self.run(&about, async {
            if offline {
                let protocol = OfflineHub { cache: &cache, reference: &reference, events: &self.events };
                let commit = protocol.commit()?;
                let found = Found {
                    commit: Some(commit.clone()),
                    node: Node::Folder,
                    declaration: None,
                    declared_by: None,
                };
                return Ok((commit, protocol.list(&found, folder).await?));
            }
            let protocol = Hub { client: self.hub(), cache: &cache, reference: &reference, repo: &repo };
            let commit = self.hub().commit(&repo, reference.revision()).await?;
            if reference.commit().is_none() {
                cache.keep_ref(reference.revision(), &commit);
            }
            let found = Found {
                commit: Some(commit.clone()),
                node: Node::Folder,
                declaration: None,
                declared_by: None,
            };
            Ok((commit, protocol.list(&found, folder).await?))
        })?;
        Ok(HubFiles { repo, reference, commit, entries, offline })
    }

    /// Whether a file is in the cache.
    pub fn hub_has(&self, files: &HubFiles, path: &str) -> bool {
        let cache = HubCache::new(&self.settings.hub, &files.repo);
        files.entry(path).is_ok_and(|entry| cache.hit(&files.plan(entry.clone()), &entry).is_some())
    }

    /// A whole file, through the cache.
    pub fn hub_fetch(&self, files: &HubFiles, path: &str) -> Result<LocalFile, SourceError> {
        let plan = files.plan(files.entry(path)?);
        let cache = HubCache::new(&self.settings.hub, &files.repo);
        let reference = &files.reference;
        self.run(&plan.reference, async {
            if files.offline {
                let protocol = OfflineHub { cache: &cache, reference, events: &self.events };
                return self.work(&protocol, &cache, &plan).first().await;
            }
            let protocol = Hub { client: self.hub(), cache: &cache, reference, repo: &files.repo };
            self.work(&protocol, &cache, &plan).first().await
        })
    }

    /// The bytes of a file from `start` up to and without `end`: from the cache where the file is there, else by a
    /// request of its own that puts nothing into the cache.
    pub fn hub_read(
        &self,
        files: &HubFiles,
        path: &str,
        start: u64,
        end: u64,
    ) -> Result<Vec<u8>, SourceError> {
        use std::os::unix::fs::FileExt as _;

        let entry = files.entry(path)?;
        let end = entry.size.map_or(end, |size| end.min(size)).max(start);
        let length = usize::try_from(end - start).unwrap_or(usize::MAX);
        let plan = files.plan(entry.clone());
        let cache = HubCache::new(&self.settings.hub, &files.repo);
        self.run(&plan.reference, async {
            if let Some(local) = cache.hit(&plan, &entry) {
                let cannot = |error: std::io::Error| Problem::CannotRead {
                    path: local.clone(),
                    cause: error.to_string(),
                };
                let mut bytes = vec![0; length];
                std::fs::File::open(&local)
                    .and_then(|file| file.read_exact_at(&mut bytes, start))
                    .map_err(cannot)?;
                return Ok(bytes);
            }
            if files.offline {
                return Err(Problem::Offline(entry.path.clone()));
            }
            let protocol =
                Hub { client: self.hub(), cache: &cache, reference: &files.reference, repo: &files.repo };
            retrying(&self.settings.patience, async || {
                let mut body = protocol.open(&plan.found, &entry, Range { start, end: Some(end) }).await?;
                // Where ranges are not served the bytes before are read and dropped.
                let mut skip = start - body.start.min(start);
                let mut bytes = Vec::with_capacity(length.min(64 << 20));
                while bytes.len() < length {
                    let Some(chunk) = body.chunk().await? else { break };
                    let dropped = skip.min(chunk.len() as u64);
                    skip -= dropped;
                    bytes.extend_from_slice(&chunk[dropped as usize..]);
                }
                bytes.truncate(length);
                if bytes.len() == length {
                    return Ok(bytes);
                }
                let what = format!("{} of {length} bytes came", bytes.len());
                Err(crate::http::Failure::transient(Problem::CutShort { file: entry.path.clone(), what }))
            })
            .await
        })
    }
}
