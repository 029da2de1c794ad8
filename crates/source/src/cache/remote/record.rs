//! What is on record of the files of an entry.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cache::times::Times;
use crate::digest::Digests;
use crate::plan::Plan;
use crate::protocol::Entry;

/// The files that tell what an entry holds.
pub(super) const RECORDS: [&str; 2] = ["entry.json", "partial.jsonl"];

/// `entry.json`
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) schema: u32,
    pub(super) reference: String,
    pub(super) version: Option<String>,
    pub(super) files: Vec<RecordedFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedFile {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) sha256: String,
    /// The size that the source told, where the bytes were decoded on their way and are not so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) announced: Option<u64>,
    /// When it was last written, nanoseconds since 1970: where that changes, its bytes may have, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) modified: Option<u64>,
    /// The same of anything about it (its ctime): who writes it and puts the other time back changes this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) changed: Option<u64>,
}

impl RecordedFile {
    /// The record of a file that lies at `path`.
    pub(super) fn of(plan: &Plan, file: &Entry, digests: &Digests, path: &Path) -> RecordedFile {
        RecordedFile {
            path: plan.name(file).to_owned(),
            size: digests.size,
            sha256: digests.sha256.clone(),
            announced: file.size.filter(|size| *size != digests.size),
            modified: None,
            changed: None,
        }
        .at_times_of(path)
    }

    /// The same with the times that the file at `path` has.
    pub(super) fn at_times_of(self, path: &Path) -> RecordedFile {
        let found = std::fs::symlink_metadata(path).ok();
        let Times { modified, changed } = found.as_ref().map(Times::of).unwrap_or_default();
        RecordedFile { modified, changed, ..self }
    }

    pub(super) fn times(&self) -> Times {
        Times { modified: self.modified, changed: self.changed }
    }

    /// Whether this is the file of which the source tells this size.
    pub(super) fn is_of(&self, size: u64) -> bool {
        size == self.announced.unwrap_or(self.size)
    }
}

/// A line of the record of an entry that is being made.
pub(super) fn line(file: &RecordedFile) -> io::Result<String> {
    // Invariant: the types of a record are those that JSON has.
    Ok(serde_json::to_string(file).map_err(io::Error::other)? + "\n")
}
