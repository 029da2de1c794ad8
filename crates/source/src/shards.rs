//! Folders of Parquet shards: which files are read, which split, which folder of several.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Problem;
use crate::manifest::is_manifest;
use crate::names;

/// Whether a file name is that of a Parquet file.
pub fn is_parquet(name: &str) -> bool {
    ends_with(name, ".parquet")
}

/// Whether a file name is that of an Arrow IPC file.
pub(crate) fn is_arrow(name: &str) -> bool {
    ends_with(name, ".arrow") || ends_with(name, ".ipc")
}

fn ends_with(name: &str, ending: &str) -> bool {
    name.len() > ending.len()
        && name.as_bytes()[name.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
}

/// Whether a file beside the data is skipped without a word: READMEs, manifests, names that start with `.` or `_`.
pub fn is_skipped(name: &str) -> bool {
    let readme = name.split('.').next().is_some_and(|stem| stem.eq_ignore_ascii_case("readme"));
    name.starts_with(['.', '_']) || readme || is_manifest(name)
}

/// Whether a name promises records that are not Parquet.
fn is_other_data(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".jsonl", ".json", ".csv", ".arrow"]
        .iter()
        .any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

/// What is read of a folder of shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shards {
    /// Names of the shards, in the order they are read.
    pub(crate) chosen: Vec<String>,
    /// Splits that are not read, and the names of files outside the pattern that are not.
    pub(crate) dropped: Vec<String>,
    /// What a person should know, a line each.
    pub(crate) notes: Vec<String>,
}

/// Why a folder cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShardFault {
    /// No Parquet file.
    NoParquet,
    /// A file of another kind lies beside the shards.
    Beside(String),
    /// Several splits, none of them `train`: each with its first shard.
    Splits(Vec<(String, String)>),
    /// A shard of the split that is read is not there.
    Missing(String),
    /// Two numberings for one split.
    Totals(String),
}

/// `<split>-NNNNN-of-NNNNN.parquet`, split.
fn numbered(name: &str) -> Option<(&str, u64, u64)> {
    let stem = &name[..name.len() - ".parquet".len()];
    let (rest, total) = stem.rsplit_once("-of-")?;
    let (split, number) = rest.rsplit_once('-')?;
    let digits = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    if split.is_empty() || !digits(number) || !digits(total) {
        return None;
    }
    Some((split, number.parse().ok()?, total.parse().ok()?))
}

/// Chooses the shards among the names that lie directly in a folder.
pub(crate) fn choose<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Shards, ShardFault> {
    let mut names: Vec<&str> = names.into_iter().filter(|name| !is_skipped(name)).collect();
    names.sort_unstable();
    let (shards, others): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| is_parquet(name));
    if shards.is_empty() {
        return Err(ShardFault::NoParquet);
    }
    if let Some(other) = others.iter().find(|name| is_other_data(name)) {
        return Err(ShardFault::Beside((*other).to_owned()));
    }
    let mut result = Shards::default();
    if !others.is_empty() {
        result.notes.push(format!("not read: {}", listed(&others)));
    }
    let mut splits: BTreeMap<&str, Vec<(&str, u64, u64)>> = BTreeMap::new();
    let mut outside = Vec::new();
    for name in &shards {
        match numbered(name) {
            Some((split, number, total)) => splits.entry(split).or_default().push((name, number, total)),
            None => outside.push(*name),
        }
    }
    if splits.len() > 1 {
        let Some(train) = splits.get("train") else {
            return Err(ShardFault::Splits(
                splits.iter().map(|(split, shards)| ((*split).to_owned(), shards[0].0.to_owned())).collect(),
            ));
        };
        complete("train", train)?;
        let left: Vec<&str> = splits.keys().copied().filter(|split| *split != "train").collect();
        result.notes.push(format!("the split train is read; not read: {}", left.join(", ")));
        if !outside.is_empty() {
            result.notes.push(format!("not read, they name no split: {}", listed(&outside)));
        }
        result.dropped = left.iter().chain(&outside).map(|name| (*name).to_owned()).collect();
        result.chosen = train.iter().map(|(name, ..)| (*name).to_owned()).collect();
    } else {
        for (split, shards) in &splits {
            complete(split, shards)?;
        }
        result.chosen = shards.iter().map(|name| (*name).to_owned()).collect();
    }
    Ok(result)
}

fn complete(split: &str, shards: &[(&str, u64, u64)]) -> Result<(), ShardFault> {
    let total = shards[0].2;
    if shards.iter().any(|shard| shard.2 != total) {
        return Err(ShardFault::Totals(split.to_owned()));
    }
    let present: BTreeSet<u64> = shards.iter().map(|shard| shard.1).collect();
    // Counted up to the first gap, not to a total that a name claims.
    match (0..total).find(|number| !present.contains(number)) {
        Some(number) => Err(ShardFault::Missing(format!("{split}-{number:05}-of-{total:05}.parquet"))),
        None => Ok(()),
    }
}

fn listed(names: &[&str]) -> String {
    const MOST: usize = 10;
    let text = names.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(MOST) {
        Some(more @ 1..) => format!("{text} and {more} more"),
        _ => text,
    }
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

impl ShardFault {
    /// As an error about a folder.
    pub(crate) fn problem(self, place: &Place<'_>) -> Problem {
        let name = &place.name;
        match self {
            ShardFault::NoParquet => Problem::Empty(name.clone()),
            ShardFault::Beside(file) => Problem::Layout {
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
            ShardFault::Missing(shard) => Problem::Layout {
                what: format!("the shard {shard} is missing in {name}"),
                fix: "Ask the publisher to complete the split".into(),
            },
            ShardFault::Totals(split) => Problem::Layout {
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
                notes.push(format!("not read, they are below the shards: {}", listed(&names)));
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
