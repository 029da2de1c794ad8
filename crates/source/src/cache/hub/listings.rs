//! What a commit lists, so that offline a folder is whole or refused.
//!
//! `trees/<commit>.json` is the Python client's, and holds every file of the commit. A folder that was listed alone is
//! kept under a name that the client does not look at, `.aiperf/<commit>/<sha256 of its path>.json`. The folder
//! `.aiperf/<commit>` itself says that this program put files into the snapshot one by one: without a listing, the
//! snapshot is then not the whole commit.

use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::HubCache;
use crate::digest::sha256_hex;
use crate::names;
use crate::protocol::Entry;
use crate::protocol::hub::client::Item;
use crate::protocol::hub::promise;
use crate::reference::is_commit;
use crate::store::Store as _;

impl HubCache {
    fn marks(&self, commit: &str) -> PathBuf {
        self.repo().join(".aiperf").join(commit)
    }

    fn listing_path(&self, commit: &str, folder: &str) -> PathBuf {
        if folder.is_empty() {
            return self.repo().join("trees").join(format!("{commit}.json"));
        }
        self.marks(commit).join(format!("{}.json", sha256_hex(folder.as_bytes())))
    }

    /// Keeps the complete listing of a folder (empty for the root) of a commit: every file below it.
    pub(crate) fn keep_listing(&self, commit: &str, folder: &str, items: &[Item]) {
        if !is_commit(commit) {
            return;
        }
        let path = self.listing_path(commit, folder);
        // One that was cut off, by a loss of power, is none.
        let is_whole =
            |text: Vec<u8>| serde_json::from_slice::<Value>(&text).is_ok_and(|tree| tree.is_object());
        if std::fs::read(&path).is_ok_and(is_whole) {
            return;
        }
        let mut files = Map::new();
        for item in items {
            let mut file = json!({ "size": item.bytes(), "blob_id": item.oid });
            if let Some(lfs) = &item.lfs {
                file["lfs_sha256"] = json!(lfs.oid);
                file["lfs_size"] = json!(lfs.size);
            }
            if let Some(xet) = &item.xet {
                file["xet_hash"] = json!(xet);
            }
            files.insert(item.path.clone(), file);
        }
        let text = json!({ "format_version": 1, "files": files }).to_string();
        let _ = self.prepare().and_then(|()| self.write(&path, text.as_bytes()));
    }

    /// Every file below a folder (empty for the root) of a commit, sorted, where it or a folder above it was listed.
    pub(crate) fn listing(&self, commit: &str, folder: &str) -> Option<Vec<Entry>> {
        if !is_commit(commit) {
            return None;
        }
        let above = folder.match_indices('/').map(|(at, _)| &folder[..at]);
        let mut files = [""].into_iter().chain(above).chain((!folder.is_empty()).then_some(folder));
        let mut files = files.find_map(|listed| self.read_listing(commit, listed))?;
        if !folder.is_empty() {
            let prefix = format!("{folder}/");
            files.retain(|file| file.path.starts_with(&prefix));
        }
        Some(files)
    }

    fn read_listing(&self, commit: &str, folder: &str) -> Option<Vec<Entry>> {
        let tree: Value =
            serde_json::from_slice(&std::fs::read(self.listing_path(commit, folder)).ok()?).ok()?;
        if tree.get("format_version").and_then(Value::as_u64) != Some(1) {
            return None;
        }
        let files = tree.get("files")?.as_object()?.iter();
        let mut entries: Vec<Entry> = files
            .filter(|(path, _)| names::fault(path).is_none())
            .map(|(path, file)| {
                let text = |key: &str| file.get(key).and_then(Value::as_str);
                let count = |key: &str| file.get(key).and_then(Value::as_u64);
                let etag =
                    text("lfs_sha256").or_else(|| text("blob_id")).filter(|etag| promise(etag).is_some());
                Entry {
                    path: path.clone(),
                    size: count("lfs_size").or_else(|| count("size")),
                    etag: etag.map(str::to_owned),
                    promise: etag.and_then(promise),
                    ..Entry::default()
                }
            })
            .collect();
        entries.sort_by(|one, other| one.path.as_bytes().cmp(other.path.as_bytes()));
        Some(entries)
    }

    /// Notes that the snapshot of a commit is filled file by file.
    pub(super) fn mark_partial(&self, commit: &str) -> io::Result<()> {
        self.root().directory(&self.marks(commit))
    }

    /// Whether the snapshot of a commit may hold a part of it alone.
    pub(crate) fn is_partial(&self, commit: &str) -> bool {
        is_commit(commit) && self.marks(commit).is_dir()
    }
}
