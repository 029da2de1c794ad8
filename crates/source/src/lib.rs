//! Where do the bytes come from, exactly which bytes, and may we have them?
//!
//! A reference becomes files on this machine in three steps, each a method of [`Sources`]: the access check fixes
//! the version and decides which files are read, the first-record check looks at the leading bytes, and the fetch
//! brings every file into a cache and verifies it. What is here is told by [`Provenance`].

mod access;
mod cache;
mod card;
mod digest;
mod error;
mod events;
mod fetch;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod http;
mod hub_files;
mod lock;
mod manifest;
mod models;
mod names;
mod plan;
mod protocol;
mod provenance;
mod ranges;
mod reference;
mod settings;
mod shards;
mod sources;
mod splits;
mod store;
mod temp;
mod transfer;

pub use access::Ask;
pub use error::{Blame, Problem, SourceError, printable};
pub use events::{Event, Events, Stop};
pub use fetch::LocalFile;
pub use format::{Format, Formats, Parquet};
pub use hub_files::HubFiles;
pub use manifest::Role;
pub use models::{FoundModel, ModelListing, is_damaged_copy};
pub use names::alike_but_for_case;
pub use plan::{FormatSource, ManifestMark, Plan};
pub use protocol::hub::client::RepoKind;
pub use provenance::Provenance;
pub use ranges::RangedFile;
pub use reference::{HubReference, Reference, S3Reference, SCHEMES, WebReference};
pub use settings::{
    HUB_CACHE_VARIABLE, HubSettings, LOCK_VARIABLE, OFFLINE_VARIABLE, Patience, REMOTE_CACHE_VARIABLE,
    Settings,
};
pub use shards::{is_parquet, is_skipped};
pub use sources::{Leading, Local, Presence, Sources};
pub use splits::{CONVERTED, converted_files, known_subsets, named_files, split_files};
pub use transfer::sha256_of_file;
