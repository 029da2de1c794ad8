//! A folder of parquet shards.

use std::path::Path;

use aiperf_types::{ShardFault, Shards};

use crate::{DatasetError, Note};

/// The shards of a folder; `None` when there is none in it.
pub(crate) fn shards_of(folder: &Path) -> Result<Option<Shards>, DatasetError> {
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
        Err(fault) => Err(DatasetError::Unsuitable(message(&fault, folder))),
    }
}

/// What of a folder is not read.
pub(crate) fn notes(shards: &Shards) -> Vec<Note> {
    let mut notes = Vec::new();
    if !shards.dropped_splits.is_empty() {
        let dropped = shards.dropped_splits.iter().chain(&shards.dropped_files).cloned().collect();
        notes.push(Note::SplitsDropped { dropped });
    }
    if !shards.skipped.is_empty() {
        notes.push(Note::FilesSkipped { names: shards.skipped.clone() });
    }
    notes
}

/// The fault in the folder, and the way out.
fn message(fault: &ShardFault, folder: &Path) -> String {
    let path = folder.display();
    match fault {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(names: &[&str]) -> String {
        let fault = Shards::choose(names.iter().map(|name| (*name).to_owned()).collect()).unwrap_err();
        message(&fault, Path::new("/data/set"))
    }

    #[test]
    fn several_splits_without_train_are_an_error_with_a_shard_of_each() {
        assert_eq!(
            said(&["a-00000-of-00002.parquet", "a-00001-of-00002.parquet", "b.c-00000-of-00001.parquet"]),
            "/data/set holds the splits a, b.c and none is named 'train'. Use one split's shard, e.g. \
             /data/set/a-00000-of-00002.parquet or /data/set/b.c-00000-of-00001.parquet"
        );
    }

    #[test]
    fn gaps_two_totals_and_other_data_name_the_file() {
        assert!(
            said(&["train-00000-of-00003.parquet", "train-00002-of-00003.parquet"])
                .contains("train-00001-of-00003.parquet")
        );
        assert!(said(&["t-00000-of-00001.parquet", "t-00000-of-00002.parquet"]).contains("disagree"));
        assert!(said(&["a.parquet", "b.jsonl"]).contains("b.jsonl"));
    }
}
