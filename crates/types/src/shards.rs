//! Folders of Parquet shards: which files are read, told by their names alone.

use std::collections::BTreeMap;

/// The files of a folder by name, as far as they are told by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shards {
    /// Those that are read, in the byte order of their names.
    pub read: Vec<String>,
    /// Splits that are left out because there is `train`.
    pub dropped_splits: Vec<String>,
    /// Shards of no split that are left out because there is `train`.
    pub dropped_files: Vec<String>,
    /// Other files, which hold no data as far as their names say.
    pub skipped: Vec<String>,
}

/// Why a folder cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardFault {
    /// A file of data that is no shard.
    Foreign(String),
    /// Several splits, none of them `train`: their names, each with its first shard.
    Splits(Vec<(String, String)>),
    /// A shard of the split that is read is not there.
    Missing {
        /// The split.
        split: String,
        /// The name that the shard would have.
        shard: String,
    },
    /// Two numbers of shards for one split.
    Totals {
        /// The split.
        split: String,
        /// A shard of the one numbering.
        one: String,
        /// A shard of the other.
        other: String,
    },
}

impl Shards {
    /// Chooses among the names that lie directly in a folder; none are read where there is no shard.
    pub fn choose(mut names: Vec<String>) -> Result<Shards, ShardFault> {
        names.sort_unstable();
        let mut chosen = Shards::default();
        let mut shards = Vec::new();
        let mut foreign = None;
        for name in names {
            if is_skipped(&name) {
            } else if is_parquet(&name) {
                shards.push(name);
            } else if is_other_data(&name) {
                foreign = foreign.or(Some(name));
            } else {
                chosen.skipped.push(name);
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
            chosen.dropped_splits =
                splits.keys().filter(|split| **split != "train").map(|split| (*split).to_owned()).collect();
            chosen.dropped_files =
                shards.iter().filter(|name| Numbered::of(name).is_none()).cloned().collect();
        }
        chosen.read = shards
            .iter()
            .filter(|name| !only_train || Numbered::of(name).is_some_and(|shard| shard.split == "train"))
            .cloned()
            .collect();
        Ok(chosen)
    }
}

/// Whether a file name is that of a Parquet file.
pub fn is_parquet(name: &str) -> bool {
    stem_of(name, ".parquet").is_some()
}

/// Whether a file beside the data is skipped without a word: READMEs, manifests, names that start with `.` or `_`.
pub fn is_skipped(name: &str) -> bool {
    let readme = name.split('.').next().is_some_and(|stem| stem.eq_ignore_ascii_case("readme"));
    name.starts_with(['.', '_']) || readme || name == "aiperf.json" || name.ends_with(".aiperf.json")
}

/// Whether a name promises records that are not Parquet.
pub fn is_other_data(name: &str) -> bool {
    let stem = stem_of(name, ".gz").or_else(|| stem_of(name, ".zst")).unwrap_or(name);
    [".jsonl", ".json", ".csv", ".arrow", ".ipc"].iter().any(|ending| stem_of(stem, ending).is_some())
}

/// What stands before an ending, in capitals or not, when it is not alone.
fn stem_of<'a>(name: &'a str, ending: &str) -> Option<&'a str> {
    let at = name.len().checked_sub(ending.len()).filter(|at| *at > 0)?;
    let found = name.as_bytes()[at..].eq_ignore_ascii_case(ending.as_bytes());
    found.then(|| &name[..at])
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
        let (rest, total) = stem_of(name, ".parquet")?.rsplit_once("-of-")?;
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
        assert_eq!(found.dropped_splits, ["test", "validation"]);
        assert_eq!(found.dropped_files, ["extra.parquet"]);
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
        let first = |split: &str, shard: &str| (split.to_owned(), shard.to_owned());
        assert_eq!(
            fault,
            ShardFault::Splits(vec![
                first("a", "a-00000-of-00002.parquet"),
                first("b.c", "b.c-00000-of-00001.parquet")
            ])
        );
    }

    #[test]
    fn gaps_and_two_totals_are_errors_that_name_the_shard() {
        let missing = |names: &[&str]| match choose(names) {
            Err(ShardFault::Missing { shard, .. }) => shard,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            missing(&["train-00000-of-00003.parquet", "train-00002-of-00003.parquet"]),
            "train-00001-of-00003.parquet"
        );
        assert_eq!(missing(&["t-000001-of-000002.parquet"]), "t-000000-of-000002.parquet");
        // Counted up to the first gap, not to a total that a name claims.
        assert_eq!(missing(&["t-00000-of-99999999999999.parquet"]), "t-00001-of-99999999999999.parquet");
        assert!(matches!(
            choose(&["t-00000-of-00001.parquet", "t-00000-of-00002.parquet"]),
            Err(ShardFault::Totals { .. })
        ));
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
            assert_eq!(choose(&["a.parquet", name]), Err(ShardFault::Foreign(name.into())));
        }
    }
}
