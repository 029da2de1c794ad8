//! `dataset publish-check` of a folder without a manifest: one to paste.

use aiperf_test_servers::rows;
use serde_json::json;

use crate::machine::{TRACE, stdout};
use crate::publish::Set;

#[test]
fn a_manifest_that_is_suggested_fits_the_data_or_says_what_is_wrong_with_them() {
    let record = |length: u64, ids: u64| {
        let ids: Vec<u64> = (0..ids).collect();
        json!({"timestamp": 0, "input_length": length, "output_length": 5, "hash_ids": ids}).to_string()
            + "\n"
    };
    let set = Set::new(&[("trace.jsonl", record(600, 38).as_bytes())]);
    let (_, shown) = set.check(&[]);
    assert_eq!(shown["suggested"]["block_size"], 16);
    assert_eq!(shown["findings"].as_array().unwrap().len(), 1, "{shown:#}");
    set.put("aiperf.json", shown["suggested"].to_string().as_bytes());
    assert_eq!(set.check(&[]).0, 0);
    // More blocks than tokens.
    let set = Set::new(&[("trace.jsonl", (record(600, 2) + &record(5, 38)).as_bytes())]);
    set.finding(&[], "error", "trace.jsonl", "it does not look like mooncake_trace");
}

#[test]
fn the_next_step_without_a_manifest_is_one_that_can_be_taken() {
    let fix = |files: &[(&str, &[u8])]| {
        let set = Set::new(files);
        std::fs::create_dir_all(&set.folder).unwrap();
        let finding = set.finding(&[], "error", "aiperf.json", "has no aiperf.json");
        let suggests = !set.check(&[]).1["suggested"].is_null();
        let fix = finding["fix"].as_str().unwrap().to_owned();
        assert_eq!(suggests, fix.contains("the one suggested"), "{fix}");
        fix
    };
    assert!(fix(&[]).starts_with("Put the data there"));
    assert!(fix(&[("README.md", b"x")]).starts_with("Put the data there"));
    let several = fix(&[("a.jsonl", TRACE), ("b.jsonl", TRACE), ("LICENSE", b"MIT\n")]);
    assert!(several.contains("names one file of data (a.jsonl, b.jsonl could be it)"), "{several}");
    assert!(fix(&[("a.csv", b"a,b\n1,2\n"), ("b.csv", b"a,b\n1,2\n")]).contains("names one file of data"));
    assert!(fix(&[("a.txt", b"what is this\n")]).ends_with("with the format filled in"));
    let beside: [(&str, &[u8]); 2] =
        [("a.jsonl", TRACE), ("a.jsonl.aiperf.json", b"{\"format\": \"mooncake_trace\"}")];
    assert!(fix(&beside).ends_with("only one to a.jsonl, which has a sidecar"));
}

#[test]
fn what_lies_beside_the_only_data_keeps_nobody_from_a_manifest() {
    let set = Set::new(&[
        ("data/a.jsonl", TRACE),
        ("LICENSE", b"MIT License\n"),
        ("CITATION.cff", b"cff-version: 1.2.0\n"),
        ("load.py", b"import sys\n"),
        ("picture.png", b"\x89PNG\r\n\x1a\n"),
        ("notes.txt", b"some words\n"),
        ("b.csv", b"a,b\n1,2\n"),
    ]);
    let (_, shown) = set.check(&[]);
    assert_eq!(shown["suggested"]["path"], "data/a.jsonl", "{shown:#}");
    assert_eq!(shown["suggested"]["format"], "mooncake_trace");
    let row = json!({"text": "hello"});
    let set = Set::new(&[
        ("s/train-00000-of-00002.parquet", &rows::parquet(std::slice::from_ref(&row), 5)),
        ("s/train-00001-of-00002.parquet", &rows::parquet(std::slice::from_ref(&row), 5)),
        ("LICENSE", b"MIT License\n"),
    ]);
    let (_, shown) = set.check(&[]);
    assert_eq!(shown["suggested"]["path"], "s", "{shown:#}");
}

/// `publish-check DIR > DIR/aiperf.json`: the shell empties the file before it is read.
#[test]
fn a_manifest_that_is_empty_gets_one_to_paste() {
    for blank in ["", " \n"] {
        let set = Set::new(&[("trace.jsonl", TRACE), ("aiperf.json", blank.as_bytes())]);
        let (code, shown) = set.check(&[]);
        assert_eq!((code, &shown["suggested"]["path"]), (1, &json!("trace.jsonl")), "{shown:#}");
        let finding = set.finding(&[], "error", "aiperf.json", "is not valid");
        assert!(finding["fix"].as_str().unwrap().starts_with("Paste the one suggested"), "{finding}");
        let said = stdout(&set.machine.aiperf(&["dataset", "publish-check", "set"]));
        assert!(said.contains("\n{\n") && said.contains("\"format\": \"mooncake_trace\""), "{said}");
    }
}
