//! Sets of one file in a repository of GitHub, at a commit.

use std::cell::{Cell, OnceCell};
use std::path::PathBuf;

use aiperf_source::{Ask, LocalFile, Plan, Problem, Reference, SourceError, Sources};
use serde_json::Value;

use crate::environment::{Environment, GITHUB_VARIABLE};
use crate::remote::{Table, VERSION};

/// Where files of GitHub are, when nothing else is said.
const GITHUB: &str = "https://raw.githubusercontent.com";

/// The file.
#[derive(Debug)]
pub(in crate::remote::public) struct OfWeb {
    url: String,
    commit: &'static str,
    plan: Plan,
    fetched: Cell<u64>,
    /// Where the file was put, when it was fetched now.
    put: OnceCell<PathBuf>,
}

impl OfWeb {
    pub(super) fn of(
        environment: &Environment,
        sources: &Sources,
        repo: &str,
        commit: &'static str,
        path: &str,
    ) -> Result<OfWeb, SourceError> {
        let server = environment.variables.get(GITHUB_VARIABLE).map_or(GITHUB, String::as_str);
        let url = format!("{}/{repo}/{commit}/{path}", server.trim_end_matches('/'));
        let ask = Ask {
            format: None,
            endpoint_type: None,
            has_stop: true,
            max_context_length: None,
            formats: &Table,
            own_version: VERSION,
        };
        let plan = sources.access(&Reference::parse(&url)?, &ask).map_err(|mut error| {
            if let (Problem::Connect { named_by, .. }, true) = (&mut error.problem, server != GITHUB) {
                *named_by = Some(GITHUB_VARIABLE);
            }
            error
        })?;
        Ok(OfWeb { url, commit, plan, fetched: Cell::new(0), put: OnceCell::new() })
    }

    pub(super) fn origin(&self) -> &str {
        &self.url
    }

    pub(super) fn file(&self, sources: &Sources) -> Result<LocalFile, SourceError> {
        let here = sources.present(&self.plan)?.iter().all(|file| file.cached);
        let fetched = sources.fetch(&self.plan)?;
        let local = fetched.files.into_iter().next();
        let local = local.ok_or_else(|| Problem::Empty(self.url.clone()).about(self.url.as_str()))?;
        if !here {
            self.fetched.set(local.size);
            let _ = self.put.set(local.path.clone());
        }
        Ok(local)
    }

    /// Takes what was fetched out of the cache again: it was a page of some gateway rather than the file.
    pub(super) fn discard(&self) {
        if let Some(path) = self.put.get() {
            // What cannot be removed is as it would have been without this.
            let _ = std::fs::remove_file(path);
        }
    }

    pub(super) fn fetched(&self) -> u64 {
        self.fetched.get()
    }

    pub(super) fn identity(&self) -> Vec<(String, Value)> {
        vec![("revision".to_owned(), self.commit.into()), ("url".to_owned(), self.url.as_str().into())]
    }
}
