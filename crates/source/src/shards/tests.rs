use proptest::prelude::*;

use super::*;

fn place(of_manifest: bool) -> Place<'static> {
    Place { name: "data".into(), reference: &|path| format!("hf://datasets/o/r/data/{path}"), of_manifest }
}

#[test]
fn what_is_not_read_is_told() {
    let read = choose(["part-0.parquet", "LICENSE", "notes.txt", "_SUCCESS"]).unwrap();
    assert_eq!(notes(&read), ["not read: LICENSE, notes.txt"]);
    let read = choose([
        "test-00000-of-00001.parquet",
        "train-00001-of-00002.parquet",
        "train-00000-of-00002.parquet",
        "validation-00000-of-00001.parquet",
        "extra.parquet",
    ])
    .unwrap();
    assert_eq!(
        notes(&read),
        [
            "the split train is read; not read: test, validation",
            "not read, they name no split: extra.parquet"
        ]
    );
}

#[test]
fn other_data_beside_shards_is_an_error_that_names_it() {
    for other in ["x.jsonl", "x.json", "x.csv", "x.arrow", "x.JSONL.gz", "x.csv.gz"] {
        let fault = choose(["a.parquet", other]).unwrap_err();
        assert!(place(false).problem(fault).to_string().contains(&format!("\"{other}\"")));
    }
}

#[test]
fn several_splits_without_train_are_an_error_with_a_ready_reference_to_a_shard_of_each() {
    let names = ["a-b-00000-of-00002.parquet", "a-b-00001-of-00002.parquet", "dev-00000-of-00001.parquet"];
    let problem = place(false).problem(choose(names).unwrap_err());
    assert_eq!(problem.to_string(), "data holds the splits a-b, dev and none is named 'train'");
    assert_eq!(
        problem.fix(),
        "Use one split's shard, e.g. hf://datasets/o/r/data/a-b-00000-of-00002.parquet, \
         hf://datasets/o/r/data/dev-00000-of-00001.parquet"
    );
    let problem = place(true).problem(choose(names).unwrap_err());
    assert_eq!(
        problem.to_string(),
        "its manifest folder data holds the splits a-b, dev and none is named 'train'"
    );
    assert!(problem.fix().contains("name it train"));
}

#[test]
fn a_gap_or_two_totals_in_the_split_that_is_read_is_an_error() {
    let said = |names: [&'static str; 2]| place(false).problem(choose(names).unwrap_err()).to_string();
    assert_eq!(
        said(["t-00000-of-00003.parquet", "t-00002-of-00003.parquet"]),
        "the shard t-00001-of-00003.parquet is missing in data"
    );
    assert!(said(["t-00000-of-00001.parquet", "t-00000-of-00002.parquet"]).contains("numbered in two ways"));
}

#[test]
fn the_only_folder_with_parquet_is_entered() {
    let found = descend(&["cfg/train-00000-of-00001.parquet", "docs/x.md"], &place(false)).unwrap().unwrap();
    assert_eq!(found, ("cfg".into(), vec![]));
    let found = descend(&["cfg/deep/train/0000.parquet", "cfg/deep/test/0000.parquet"], &place(false));
    assert_eq!(found.unwrap().unwrap().0, "cfg/deep/train");
}

#[test]
fn shards_in_the_folder_itself_come_first() {
    let (folder, notes) = descend(&["x.parquet", "old/y.parquet"], &place(false)).unwrap().unwrap();
    assert_eq!(folder, "");
    assert_eq!(notes, ["not read, they are below the shards: old"]);
}

#[test]
fn several_folders_without_train_are_an_error_with_ready_references() {
    let problem = descend(&["a/x.parquet", "b/y.parquet"], &place(false)).unwrap_err();
    assert_eq!(problem.to_string(), "it has several datasets under data");
    assert_eq!(problem.fix(), "Use one of: hf://datasets/o/r/data/a, hf://datasets/o/r/data/b");
    let problem = descend(&["c/a/x.parquet", "c/b/y.parquet"], &place(false)).unwrap_err();
    assert_eq!(problem.to_string(), "it has several datasets under data/c");
    assert_eq!(problem.fix(), "Use one of: hf://datasets/o/r/data/c/a, hf://datasets/o/r/data/c/b");
}

#[test]
fn hidden_folders_hold_nothing() {
    assert_eq!(descend(&["/x.parquet", "a//y.parquet", "../z.parquet"], &place(false)), Ok(None));
    assert_eq!(descend(&[".cache/x.parquet", "a/_tmp/y.parquet", "z.jsonl"], &place(false)), Ok(None));
}

proptest! {
    #[test]
    fn no_names_panic(names in proptest::collection::vec("[a-z._/-]{0,3}(-[0-9]{4,6}-of-[0-9]{4,6})?(.parquet)?", 0..6)) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let _ = choose(names.clone());
        let _ = descend(&names, &place(false));
    }
}
