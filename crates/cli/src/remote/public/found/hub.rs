//! Sets of the Hub: a repository at one commit, and the files of a split of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use aiperf_config::PublicDataset;
use aiperf_dataset::public::{Place, PublicSet, Shard};
use aiperf_source::{
    CONVERTED, HubFiles, LocalFile, Problem, RepoKind, SourceError, Sources, converted_files, known_subsets,
    named_files, split_files,
};
use serde_json::Value;

use super::ranged::{Met, Ranged};

/// The card of a repository.
const CARD: &str = "README.md";

/// The shards of a set at one commit.
#[derive(Debug)]
pub(in crate::remote::public) struct OfHub {
    repo: String,
    files: HubFiles,
    shards: Vec<String>,
    split: &'static str,
    subset: Option<String>,
    /// They are read by ranges.
    streamed: bool,
    met: Arc<Met>,
}

/// A repository at a version, as it is written in references.
fn reference(repo: &str, version: &str) -> String {
    format!("hf://datasets/{repo}@{version}")
}

impl OfHub {
    /// Fixes the version of a set and finds its files. No data is read.
    pub(super) fn of(
        sources: &Sources,
        set: &PublicSet,
        public: &PublicDataset,
    ) -> Result<OfHub, SourceError> {
        let repo = public.repo.as_deref().or(set.repo()).unwrap_or_default().to_owned();
        let revision = set.revision();
        let located = |mut error: SourceError| {
            error.reference = reference(&repo, revision.unwrap_or("main"));
            error
        };
        let files = sources.hub_files(RepoKind::Dataset, &repo, revision, "").map_err(located)?;
        let subset = public.subset.clone().or_else(|| set.subset.map(str::to_owned));
        let found = |files: HubFiles, shards: Vec<String>| OfHub {
            repo: repo.clone(),
            files,
            shards,
            split: set.split,
            subset: subset.clone(),
            streamed: set.streamed,
            met: Arc::default(),
        };
        if let Place::HubFile { path, .. } = set.place {
            let shards =
                files.files().filter(|(name, _)| *name == path).map(|(name, _)| name.to_owned()).collect();
            return found(files, shards).with_shards(|| format!("the file {path}"), &[]);
        }
        let names: Vec<&str> = files.files().map(|(name, _)| name).collect();
        let card =
            if names.contains(&CARD) { card(sources, &files).map_err(located)? } else { String::new() };
        let shards = split_files(&names, &card, subset.as_deref(), set.split);
        if !shards.is_empty() {
            return Ok(found(files, shards));
        }
        let what = || match &subset {
            Some(subset) => format!("the split {} of the subset {subset}", set.split),
            None => format!("the split {}", set.split),
        };
        let mut known = known_subsets(&card);
        let mut unknown = None;
        match sources.hub_files(RepoKind::Dataset, &repo, Some(CONVERTED), "") {
            Ok(converted) => {
                let names: Vec<&str> = converted.files().map(|(name, _)| name).collect();
                let shards = converted_files(&names, subset.as_deref(), set.split);
                if !shards.is_empty() {
                    return Ok(found(converted, shards));
                }
                if known.is_empty() {
                    known = folders(&names);
                }
            }
            // The branch is not there.
            Err(SourceError { problem: Problem::RevisionNotFound(_) | Problem::NotFound { .. }, .. }) => {}
            // It was not downloaded before; nor was it needed, if the files tell by their names.
            Err(error) if matches!(error.problem, Problem::Offline(_)) => unknown = Some(error),
            Err(error) => return Err(located(error)),
        }
        let shards = named_files(&names, subset.as_deref(), set.split);
        if let Some(error) = unknown.filter(|_| shards.is_empty()) {
            return Err(located(error));
        }
        found(files, shards).with_shards(what, &known)
    }

    fn with_shards(self, what: impl FnOnce() -> String, known: &[String]) -> Result<OfHub, SourceError> {
        if self.shards.is_empty() {
            return Err(missing(&self.repo, self.files.commit(), &what(), known));
        }
        Ok(self)
    }

    /// The repository at its commit, as it is written in references.
    pub(super) fn origin(&self) -> String {
        reference(&self.repo, self.files.commit())
    }

    /// The shards, each fetched when it is asked for.
    pub(super) fn shards<'a>(
        &'a self,
        sources: &'a Sources,
    ) -> impl Iterator<Item = Result<LocalFile, SourceError>> + 'a {
        let located = |mut error: SourceError| {
            error.reference = self.origin();
            error
        };
        self.shards.iter().map(move |path| {
            let here = sources.hub_has(&self.files, path);
            let mut local = sources.hub_fetch(&self.files, path).map_err(located)?;
            local.name.clone_from(path);
            if !here {
                self.met.fetched.fetch_add(local.size, Ordering::Relaxed);
            }
            Ok(local)
        })
    }

    /// The shards of which only some ranges are fetched; `None` where they are fetched whole.
    pub(super) fn ranged<'a>(
        &'a self,
        sources: &'a Arc<Sources>,
    ) -> Option<impl Iterator<Item = Result<Shard, SourceError>> + 'a> {
        self.streamed.then(|| {
            self.shards.iter().map(move |path| {
                let file = sources.hub_ranged(&self.files, path).map_err(|mut error| {
                    error.reference = self.origin();
                    error
                })?;
                let bytes = Arc::new(Ranged { file, origin: self.origin(), met: Arc::clone(&self.met) });
                Ok(Shard { name: path.as_str().into(), bytes })
            })
        })
    }

    /// Bytes of shards that were fetched now.
    pub(super) fn fetched(&self) -> u64 {
        self.met.fetched.load(Ordering::Relaxed)
    }

    /// Why bytes of a shard could not be had: whoever reads them hears only what to say.
    pub(super) fn lost(&self) -> Option<SourceError> {
        self.met.lost()
    }

    /// What tells which bytes they are.
    pub(super) fn identity(&self) -> impl Iterator<Item = (String, Value)> {
        let keys = [
            ("hf_dataset_name", Some(self.repo.clone())),
            ("hf_split", Some(self.split.to_owned())),
            ("hf_subset", self.subset.clone()),
            ("revision", Some(self.files.commit().to_owned())),
        ];
        keys.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into())))
    }
}

/// The card; a card that is no text says nothing.
fn card(sources: &Sources, files: &HubFiles) -> Result<String, SourceError> {
    let local = match sources.hub_fetch(files, CARD) {
        Ok(local) => local,
        // A set whose card was not needed when it was downloaded.
        Err(SourceError { problem: Problem::Offline(_), .. }) => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let bytes = std::fs::read(&local.path).unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first folders of paths, each once.
fn folders(names: &[&str]) -> Vec<String> {
    let mut folders: Vec<String> =
        names.iter().filter_map(|name| Some(name.split_once('/')?.0.to_owned())).collect();
    folders.dedup();
    folders
}

fn missing(repo: &str, commit: &str, what: &str, known: &[String]) -> SourceError {
    let fix = if known.is_empty() {
        "Check --hf-subset, or choose another set with `aiperf datasets`".to_owned()
    } else {
        format!("Choose a subset with --hf-subset; there are {}", known.join(", "))
    };
    Problem::Layout { what: format!("{what} was not found in its files"), fix }.about(reference(repo, commit))
}
