//! Which files of a folder of parquet shards are read.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{DatasetError, Note};

/// The files of a folder by name, as far as they are told by their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shards {
    /// Those that are read, in the order of their names.
    pub(crate) read: Vec<String>,
    /// Splits, and shards of none, that are left out because there is `train`.
    pub(crate) dropped: Vec<String>,
    /// Other files, which hold no data as far as their names say.
    pub(crate) skipped: Vec<String>,
}

/// Why a folder cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ShardFault {
    /// A file of data that is no shard.
    Foreign(String),
    /// Several splits, none of them `train`: their names, each with one of its shards.
    Splits(Vec<(String, String)>),
    /// A shard of the split is not there.
    Missing { split: String, shard: String },
    /// Two numbers of shards for one split.
    Totals { split: String, one: String, other: String },
}

impl Shards {
    /// Chooses among the names of a folder; none are read where there is no shard.
    pub(crate) fn choose(mut names: Vec<String>) -> Result<Shards, ShardFault> {
        names.sort_unstable();
        let mut chosen = Shards::default();
        let mut shards = Vec::new();
        let mut foreign = None;
        for name in names {
            match kind(&name) {
                Kind::Shard => shards.push(name),
                Kind::Data => foreign = foreign.or(Some(name)),
                Kind::Marker => {}
                Kind::Other => chosen.skipped.push(name),
            }
        }
        if shards.is_empty() {
            return Ok(Shards::default());
        }
        if let Some(name) = foreign {
            return Err(ShardFault::Foreign(name));
        }
        let mut splits: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for name in &shards {
            if let Some(shard) = Numbered::of(name) {
                splits.entry(shard.split).or_default().push(name);
            }
        }
        let only_train = splits.len() > 1;
        if only_train && !splits.contains_key("train") {
            let splits = splits.into_iter().map(|(split, shards)| (split.to_owned(), shards[0].to_owned()));
            return Err(ShardFault::Splits(splits.collect()));
        }
        let complete_split = if only_train { Some("train") } else { splits.keys().next().copied() };
        if let Some(split) = complete_split {
            complete(split, &splits[split])?;
        }
        if only_train {
            chosen.dropped =
                splits.keys().filter(|split| **split != "train").map(|split| (*split).to_owned()).collect();
            chosen.dropped.extend(shards.iter().filter(|name| Numbered::of(name).is_none()).cloned());
        }
        chosen.read = shards
            .iter()
            .filter(|name| !only_train || Numbered::of(name).is_some_and(|shard| shard.split == "train"))
            .cloned()
            .collect();
        Ok(chosen)
    }

    /// Chooses among the files of a folder; `None` when there is no shard in it.
    pub(crate) fn of(folder: &Path) -> Result<Option<Shards>, DatasetError> {
        let mut names = Vec::new();
        for file in super::files_of(folder, |_| true)? {
            // A name that is no text is none of those that count.
            if let Some(name) = file.file_name().and_then(|name| name.to_str()) {
                names.push(name.to_owned());
            }
        }
        match Shards::choose(names) {
            Ok(shards) if shards.read.is_empty() => Ok(None),
            Ok(shards) => Ok(Some(shards)),
            Err(fault) => Err(DatasetError::Unsuitable(fault.message(folder))),
        }
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        if !self.dropped.is_empty() {
            notes.push(Note::SplitsDropped { dropped: self.dropped.clone() });
        }
        if !self.skipped.is_empty() {
            notes.push(Note::FilesSkipped { names: self.skipped.clone() });
        }
        notes
    }
}

impl ShardFault {
    /// The fault in the folder, and the way out.
    pub(crate) fn message(&self, folder: &Path) -> String {
        let path = folder.display();
        match self {
            ShardFault::Foreign(name) => format!(
                "{path}: {name} lies beside parquet shards, and a folder of shards holds one dataset; move it away, or \
                 name it as the input file"
            ),
            ShardFault::Splits(splits) => {
                let names: Vec<&str> = splits.iter().map(|(split, _)| split.as_str()).collect();
                let shards: Vec<String> =
                    splits.iter().map(|(_, shard)| folder.join(shard).display().to_string()).collect();
                format!(
                    "{path} holds the splits {} and none is named 'train'. Use one split's shard, e.g. {}",
                    names.join(", "),
                    shards.join(" or ")
                )
            }
            ShardFault::Missing { split, shard } => {
                format!(
                    "{path}: the shard {shard} of the split {split} is missing; fetch it, or rename the others"
                )
            }
            ShardFault::Totals { split, one, other } => format!(
                "{path}: {one} and {other} disagree on how many shards the split {split} has; keep those of one export"
            ),
        }
    }
}

enum Kind {
    Shard,
    Data,
    /// Lies beside data and is none.
    Marker,
    Other,
}

fn kind(name: &str) -> Kind {
    let lower = name.to_ascii_lowercase();
    let is = |extension: &str| lower.strip_suffix(extension).is_some_and(|stem| stem.ends_with('.'));
    let stem = lower.strip_suffix(".gz").or_else(|| lower.strip_suffix(".zst")).unwrap_or(&lower);
    if name.starts_with(['.', '_'])
        || lower.split('.').next() == Some("readme")
        || name == "aiperf.json"
        || name.ends_with(".aiperf.json")
    {
        Kind::Marker
    } else if is("parquet") {
        Kind::Shard
    } else if [".jsonl", ".json", ".csv", ".arrow", ".ipc"].iter().any(|data| stem.ends_with(data)) {
        Kind::Data
    } else {
        Kind::Other
    }
}

/// A name like `train-00000-of-00002.parquet`.
struct Numbered<'a> {
    split: &'a str,
    number: u64,
    total: u64,
    /// Digits of the numbers.
    width: usize,
}

impl Numbered<'_> {
    fn of(name: &str) -> Option<Numbered<'_>> {
        let number = |digits: &str| {
            (digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| digits.parse().ok())
                .flatten()
        };
        let stem = name.strip_suffix(".parquet")?;
        let (rest, total) = stem.rsplit_once("-of-")?;
        let (split, digits) = rest.rsplit_once('-')?;
        let width = digits.len();
        Some(Numbered { split, number: number(digits)?, total: number(total)?, width })
            .filter(|_| !split.is_empty())
    }
}

/// Whether all shards of a split are there; `names` are in order.
fn complete(split: &str, names: &[&str]) -> Result<(), ShardFault> {
    let shards: Vec<Numbered<'_>> = names.iter().filter_map(|name| Numbered::of(name)).collect();
    let (total, width) = (shards[0].total, shards[0].width);
    if let Some(other) = shards.iter().position(|shard| shard.total != total) {
        return Err(ShardFault::Totals {
            split: split.to_owned(),
            one: names[0].to_owned(),
            other: names[other].to_owned(),
        });
    }
    let mut numbers: Vec<u64> = shards.iter().map(|shard| shard.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let missing = (0..total).find(|number| numbers.get(*number as usize) != Some(number));
    match missing {
        Some(number) => Err(ShardFault::Missing {
            split: split.to_owned(),
            shard: format!("{split}-{number:0width$}-of-{total:0width$}.parquet"),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(names: &[&str]) -> Result<Shards, ShardFault> {
        Shards::choose(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn read(names: &[&str]) -> Vec<String> {
        choose(names).unwrap().read
    }

    #[test]
    fn shards_are_read_in_the_order_of_their_names() {
        assert_eq!(read(&["b.parquet", "a.PARQUET", "10.parquet"]), ["10.parquet", "a.PARQUET", "b.parquet"]);
        assert!(read(&["README.md", "data.jsonl"]).is_empty());
    }

    #[test]
    fn of_several_splits_train_is_read_and_the_others_are_named() {
        let found = choose(&[
            "validation-00000-of-00001.parquet",
            "train-00001-of-00002.parquet",
            "train-00000-of-00002.parquet",
            "test-00000-of-00001.parquet",
            "extra.parquet",
        ])
        .unwrap();
        assert_eq!(found.read, ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]);
        assert_eq!(found.dropped, ["test", "validation", "extra.parquet"]);
    }

    #[test]
    fn one_split_of_any_name_is_read_with_the_names_outside_the_pattern() {
        let names = ["test-00000-of-00001.parquet", "more.parquet"];
        assert_eq!(read(&names), ["more.parquet", "test-00000-of-00001.parquet"]);
        // Four digits are no pattern, and neither is a split without a name.
        assert_eq!(
            read(&["a-0000-of-0001.parquet", "b-0000-of-0001.parquet", "-00000-of-00001.parquet"]).len(),
            3
        );
    }

    #[test]
    fn several_splits_without_train_are_an_error_with_a_shard_of_each() {
        let fault =
            choose(&["a-00000-of-00002.parquet", "a-00001-of-00002.parquet", "b.c-00000-of-00001.parquet"])
                .unwrap_err();
        assert_eq!(
            fault.message(Path::new("/data/set")),
            "/data/set holds the splits a, b.c and none is named 'train'. Use one split's shard, e.g. \
             /data/set/a-00000-of-00002.parquet or /data/set/b.c-00000-of-00001.parquet"
        );
    }

    #[test]
    fn gaps_and_two_totals_are_errors_that_name_the_shard() {
        let message = |names: &[&str]| choose(names).unwrap_err().message(Path::new("d"));
        assert!(
            message(&["train-00000-of-00003.parquet", "train-00002-of-00003.parquet"])
                .contains("train-00001-of-00003.parquet")
        );
        assert!(message(&["t-000001-of-000002.parquet"]).contains("t-000000-of-000002.parquet"));
        assert!(message(&["t-00000-of-00001.parquet", "t-00000-of-00002.parquet"]).contains("disagree"));
        assert!(message(&["t-00000-of-99999999999999.parquet"]).contains("t-00001-of-"));
        // What is dropped may have gaps.
        assert_eq!(read(&["train-00000-of-00001.parquet", "x-00004-of-00009.parquet"]).len(), 1);
    }

    #[test]
    fn files_that_are_no_data_are_skipped() {
        let found = choose(&[
            "a.parquet",
            "README",
            "readme.txt",
            "ReadMe.md",
            "aiperf.json",
            "a.parquet.aiperf.json",
            "_SUCCESS",
            "_committed_12",
            "_metadata",
            ".a.parquet.crc",
            ".hidden.jsonl",
            "_temporary.parquet",
            "notes.txt",
            "part-00000-9c1d-c000.snappy.parquet",
        ])
        .unwrap();
        assert_eq!(found.read, ["a.parquet", "part-00000-9c1d-c000.snappy.parquet"]);
        assert_eq!(found.skipped, ["notes.txt"]);
    }

    #[test]
    fn other_data_beside_shards_is_an_error_that_names_it() {
        for name in ["b.jsonl", "b.json", "b.csv.gz", "B.ARROW", "b.jsonl.zst", "b.ipc"] {
            let message = choose(&["a.parquet", name]).unwrap_err().message(Path::new("d"));
            assert!(message.contains(name), "{message}");
        }
    }
}
