//! Folders of Parquet shards: which files are read, which split, which folder of several.

use std::collections::BTreeSet;

use aiperf_types::shards::is_other_data;
pub use aiperf_types::shards::{is_parquet, is_skipped};
pub(crate) use aiperf_types::{ShardFault, Shards};

use crate::error::Problem;
use crate::names;

/// Whether a file name is that of an Arrow IPC file.
pub(crate) fn is_arrow(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".arrow", ".ipc"].iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

/// Chooses the shards among the names that lie directly in a folder.
pub(crate) fn choose<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Shards, ShardFault> {
    Shards::choose(names.into_iter().map(str::to_owned).collect())
}

/// What a person should know of what is not read, a line each.
pub(crate) fn notes(shards: &Shards) -> Vec<String> {
    let mut notes = Vec::new();
    if !shards.skipped.is_empty() {
        notes.push(format!("not read: {}", listed(&shards.skipped)));
    }
    if !shards.dropped_splits.is_empty() {
        notes.push(format!("the split train is read; not read: {}", shards.dropped_splits.join(", ")));
    }
    if !shards.dropped_files.is_empty() {
        notes.push(format!("not read, they name no split: {}", listed(&shards.dropped_files)));
    }
    notes
}

/// What a person should know of shards in folders below those that are read; `paths` are relative to these.
pub(crate) fn note_of_folders<'a>(paths: impl Iterator<Item = &'a str>) -> Option<String> {
    let folders: BTreeSet<&str> = paths
        .filter(|path| is_parquet(path) && !path.split('/').any(is_skipped))
        .filter_map(|path| Some(path.split_once('/')?.0))
        .collect();
    (!folders.is_empty()).then(|| below_the_shards(&folders.into_iter().collect::<Vec<_>>()))
}

fn below_the_shards(folders: &[&str]) -> String {
    format!("not read, they are below the shards: {}", listed(folders))
}

fn listed(names: &[impl AsRef<str>]) -> String {
    const MOST: usize = 10;
    let text = names.iter().take(MOST).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(MOST) {
        Some(more @ 1..) => format!("{text} and {more} more"),
        _ => text,
    }
}

/// Paths that promise records which are not Parquet.
pub(crate) fn other_data<'a>(paths: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    paths.iter().copied().filter(|path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        is_other_data(name)
            && names::fault(path).is_none()
            && path.split('/').all(|segment| !is_skipped(segment))
    })
}

/// How a folder is called in messages, and how a ready reference to something in it is written.
pub(crate) struct Place<'a> {
    /// The folder, for messages.
    pub(crate) name: String,
    /// A reference to a path below the folder.
    pub(crate) reference: &'a dyn Fn(&str) -> String,
    /// The folder is one that an S3 manifest names.
    pub(crate) of_manifest: bool,
}

impl Place<'_> {
    /// A fault of this folder, as an error.
    pub(crate) fn problem(&self, fault: ShardFault) -> Problem {
        let (place, name) = (self, &self.name);
        match fault {
            ShardFault::Foreign(file) => Problem::Layout {
                what: format!("\"{file}\" lies beside the parquet shards of {name}"),
                fix: "Keep one kind of data in the folder, or point at one file".into(),
            },
            ShardFault::Splits(splits) => {
                let names: Vec<&str> = splits.iter().map(|(split, _)| split.as_str()).collect();
                let names = names.join(", ");
                if place.of_manifest {
                    return Problem::Layout {
                        what: format!(
                            "its manifest folder {name} holds the splits {names} and none is named 'train'"
                        ),
                        fix: "Ask the publisher to keep one split in the folder, or to name it train".into(),
                    };
                }
                let ready: Vec<String> = splits.iter().map(|(_, shard)| (place.reference)(shard)).collect();
                Problem::Layout {
                    what: format!("{name} holds the splits {names} and none is named 'train'"),
                    fix: format!("Use one split's shard, e.g. {}", ready.join(", ")),
                }
            }
            ShardFault::Missing { shard, .. } => Problem::Layout {
                what: format!("the shard {shard} is missing in {name}"),
                fix: "Ask the publisher to complete the split".into(),
            },
            ShardFault::Totals { split, .. } => Problem::Layout {
                what: format!("the shards of the split {split} in {name} are numbered in two ways"),
                fix: "Ask the publisher to remove the shards of the older upload".into(),
            },
        }
    }
}

/// The folder of shards below `folder` that is read when there is no manifest, and what a person should know.
/// `paths` are relative to `folder`. The answer is relative to it too, empty for itself; `None` when nothing is
/// Parquet.
pub(crate) fn descend(paths: &[&str], place: &Place<'_>) -> Result<Option<(String, Vec<String>)>, Problem> {
    let parquet: Vec<&str> = paths
        .iter()
        .copied()
        .filter(|path| {
            is_parquet(path)
                && names::fault(path).is_none()
                && path.split('/').all(|segment| !segment.starts_with(['.', '_']))
        })
        .collect();
    let mut folder = String::new();
    let mut notes = Vec::new();
    loop {
        let below = |path: &str| -> Option<String> {
            if folder.is_empty() {
                return Some(path.to_owned());
            }
            path.strip_prefix(folder.as_str())?.strip_prefix('/').map(str::to_owned)
        };
        let inside: Vec<String> = parquet.iter().filter_map(|path| below(path)).collect();
        if inside.is_empty() {
            return Ok(None);
        }
        let subfolders: BTreeSet<&str> =
            inside.iter().filter_map(|path| path.split_once('/')).map(|(first, _)| first).collect();
        if inside.iter().any(|path| !path.contains('/')) {
            if !subfolders.is_empty() {
                let names: Vec<&str> = subfolders.into_iter().collect();
                notes.push(below_the_shards(&names));
            }
            return Ok(Some((folder, notes)));
        }
        let next = match subfolders.len() {
            1 => subfolders.first().copied().unwrap_or_default().to_owned(),
            _ if subfolders.contains("train") => {
                let left: Vec<&str> = subfolders.iter().copied().filter(|name| *name != "train").collect();
                notes.push(format!("the folder train is read; not read: {}", listed(&left)));
                "train".to_owned()
            }
            _ => {
                let join = |name: &str| {
                    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
                };
                let ready: Vec<String> =
                    subfolders.iter().map(|name| (place.reference)(&join(name))).collect();
                let name =
                    if folder.is_empty() { place.name.clone() } else { format!("{}/{folder}", place.name) };
                return Err(Problem::Layout {
                    what: format!("it has several datasets under {name}"),
                    fix: format!("Use one of: {}", ready.join(", ")),
                });
            }
        };
        folder = if folder.is_empty() { next } else { format!("{folder}/{next}") };
    }
}

#[cfg(test)]
mod tests;
