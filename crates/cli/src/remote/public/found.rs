//! Where the rows of a set are: the version that is read, and the files of its split.

mod hub;
mod ranged;
mod web;

use std::sync::Arc;

use aiperf_config::PublicDataset;
use aiperf_dataset::public::{Place, PublicSet, Shard};
use aiperf_source::{LocalFile, SourceError, Sources};
use serde_json::Value;

use crate::environment::Environment;
use hub::OfHub;
use web::OfWeb;

/// The files of a set at one version.
#[derive(Debug)]
pub(super) enum Found {
    /// In a repository of the Hub.
    Hub(Box<OfHub>),
    /// Elsewhere: one file.
    Web(Box<OfWeb>),
}

impl Found {
    /// Fixes the version of a set and finds its files. No data is read.
    pub(super) fn of(
        environment: &Environment,
        sources: &Sources,
        set: &PublicSet,
        public: &PublicDataset,
    ) -> Result<Found, SourceError> {
        match set.place {
            Place::GitHub { repo, commit, path } => {
                OfWeb::of(environment, sources, repo, commit, path).map(Box::new).map(Found::Web)
            }
            Place::Hub { .. } | Place::HubFile { .. } | Place::Named => {
                OfHub::of(sources, set, public).map(Box::new).map(Found::Hub)
            }
        }
    }

    /// The version, as it is written in references.
    pub(super) fn origin(&self) -> String {
        match self {
            Found::Hub(hub) => hub.origin(),
            Found::Web(web) => web.origin().to_owned(),
        }
    }

    /// The files, each fetched when it is asked for.
    pub(super) fn files<'a>(
        &'a self,
        sources: &'a Sources,
    ) -> Box<dyn Iterator<Item = Result<LocalFile, SourceError>> + 'a> {
        match self {
            Found::Hub(hub) => Box::new(hub.shards(sources)),
            Found::Web(web) => Box::new(std::iter::once_with(|| web.file(sources))),
        }
    }

    /// The files of which only some ranges are fetched; `None` where they are fetched whole.
    pub(super) fn ranged<'a>(
        &'a self,
        sources: &'a Arc<Sources>,
    ) -> Option<impl Iterator<Item = Result<Shard, SourceError>> + 'a> {
        match self {
            Found::Hub(hub) => hub.ranged(sources),
            Found::Web(_) => None,
        }
    }

    /// Why bytes of a file could not be had: whoever reads them hears only what to say.
    pub(super) fn lost(&self) -> Option<SourceError> {
        match self {
            Found::Hub(hub) => hub.lost(),
            Found::Web(_) => None,
        }
    }

    /// Forgets a file that was fetched now and cannot be read, where nothing tells whether it is the one that was meant. A
    /// file of the Hub is known by its digest.
    pub(super) fn discard(&self) {
        if let Found::Web(web) = self {
            web.discard();
        }
    }

    /// Bytes that were fetched now.
    pub(super) fn fetched(&self) -> u64 {
        match self {
            Found::Hub(hub) => hub.fetched(),
            Found::Web(web) => web.fetched(),
        }
    }

    /// What tells which bytes they are, for the results.
    pub(super) fn identity(&self) -> Vec<(String, Value)> {
        match self {
            Found::Hub(hub) => hub.identity().collect(),
            Found::Web(web) => web.identity(),
        }
    }
}
