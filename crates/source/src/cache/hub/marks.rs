//! Which bytes were compared with the name of their blob, so that a big file is read once and not by every run.
//!
//! `.aiperf/files/<place>` is the mark of the file at `blobs/<etag>`, or of a copy at `snapshots/<commit>/<path>`: its
//! blob id, and what it looked like when it was compared. Whoever alters it, or brings it from elsewhere, leaves it with
//! other times; it is compared once more then. Without a mark that can be written, that is each time.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::HubCache;
use crate::cache::times::Times;

/// What a file looked like when its bytes were those of its blob id.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    etag: String,
    size: u64,
    #[serde(flatten)]
    times: Times,
}

/// Where the mark of a file of a repository's cache is.
fn place(repo: &Path, file: &Path) -> Option<PathBuf> {
    let marked = match file.read_link() {
        Ok(blob) => Path::new("blobs").join(blob.file_name()?),
        Err(_) => file.strip_prefix(repo).ok()?.to_owned(),
    };
    Some(repo.join(".aiperf/files").join(marked))
}

fn read(repo: &Path, file: &Path) -> Option<Mark> {
    serde_json::from_slice(&std::fs::read(place(repo, file)?).ok()?).ok()
}

/// The blob id that a copy in a snapshot had when it was put there.
pub(crate) fn blob_of_copy(copy: &Path) -> Option<String> {
    let repo = copy.ancestors().find(|above| above.file_name().is_some_and(|name| name == "snapshots"))?;
    read(repo.parent()?, copy).map(|mark| mark.etag)
}

impl HubCache {
    /// Whether a file is as it was when its bytes were those of this blob id.
    pub(super) fn is_marked(&self, file: &Path, etag: &str) -> bool {
        let Ok(found) = file.metadata() else { return false };
        read(&self.repo(), file).is_some_and(|mark| {
            mark.etag == etag && mark.size == found.len() && mark.times.are_still(&Times::of(&found))
        })
    }

    /// Notes that the bytes of a file are those of its blob id. What cannot be written is compared again next time.
    pub(super) fn mark(&self, file: &Path, etag: &str) {
        let (Ok(found), Some(place)) = (file.metadata(), place(&self.repo(), file)) else { return };
        if self.is_marked(file, etag) {
            return;
        }
        let mark = Mark { etag: etag.to_owned(), size: found.len(), times: Times::of(&found) };
        if let Ok(text) = serde_json::to_vec(&mark) {
            let _ = self.write(&place, &text);
        }
    }
}
