//! The real Python library of data sets reads the stub, and takes the same files for a split as we do.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use aiperf_source::{CONVERTED, RepoKind, converted_files, split_files};
use aiperf_test_servers::{StubHub, StubRepo, rows};
use serde_json::{Value, json};

use crate::support::{Machine, venv};

/// An interpreter with the library in it.
fn python() -> &'static PathBuf {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| venv("python-datasets-5.2", "import datasets", &["datasets==5.2.0"]))
}

/// What each of these calls of `load_dataset` gives: rows, in order.
// Its readers have threads that an interpreter on its way out may abort at: everything is said by then.
const SCRIPT: &str = "
import json, os, sys
from datasets import load_dataset
for name, subset, split in json.loads(sys.argv[1]):
    print(json.dumps(list(load_dataset(name, subset, split=split, streaming=True))))
sys.stdout.flush()
os._exit(0)
";

fn texts(from: usize, count: usize) -> Vec<Value> {
    (from..from + count)
        .map(|n| json!({"question": format!("q{n}"), "n": n, "nested": {"a": [n, n]}}))
        .collect()
}

/// A repository, the subset and the split to read, and the rows that are there.
type Layout = (&'static str, StubRepo, Option<&'static str>, &'static str, Vec<Value>);

/// Repositories in the layouts that sets have.
fn layouts() -> Vec<Layout> {
    let shard = |from, count| rows::parquet(&texts(from, count), 2);
    let card: &[u8] = b"---\nlicense: mit\nconfigs:\n- config_name: main\n  data_files:\n  - split: train\n    path: main/train-*\n  \
                        - split: test\n    path: main/test-*\n- config_name: other\n  data_files:\n  - split: test\n    path: \
                        odd/**/*.parquet\n---\n# Card\n";
    let of_lines: &[u8] =
        b"---\nconfigs:\n- config_name: other\n  data_files:\n  - split: test\n    path: other/*.jsonl\n---\n";
    let lines = texts(20, 3).iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let of_card: &[(&str, &[u8])] = &[
        ("README.md", card),
        ("lfs:main/test-00001-of-00002.parquet", &shard(5, 3)),
        ("lfs:main/test-00000-of-00002.parquet", &shard(0, 5)),
        ("lfs:main/train-00000-of-00001.parquet", &shard(10, 2)),
        ("odd/deep/x.parquet", &shard(30, 2)),
    ];
    vec![
        ("org/card", StubRepo::new(of_card), Some("main"), "test", texts(0, 8)),
        ("org/deep", StubRepo::new(of_card), Some("other"), "test", texts(30, 2)),
        (
            "org/lines",
            StubRepo::new(&[("README.md", of_lines), ("other/a.jsonl", lines.as_bytes())]),
            Some("other"),
            "test",
            texts(20, 3),
        ),
        (
            "org/folder",
            StubRepo::new(&[
                ("data/test-00000-of-00001.parquet", &shard(0, 5)),
                ("data/train-00000-of-00001.parquet", &shard(7, 2)),
            ]),
            None,
            "test",
            texts(0, 5),
        ),
    ]
}

#[test]
fn the_python_library_reads_the_stub_and_the_same_files() {
    let layouts = layouts();
    let repos: Vec<(&str, StubRepo)> = layouts.iter().map(|(name, repo, ..)| (*name, repo.clone())).collect();
    let hub = StubHub::start(&repos);
    hub.page_of(100);
    let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    let calls: Vec<Value> =
        layouts.iter().map(|(name, _, subset, split, _)| json!([name, subset, split])).collect();
    let output = Command::new(python())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", machine.home.path())
        .env("HF_ENDPOINT", hub.endpoint())
        .env("HF_HUB_DISABLE_TELEMETRY", "1")
        .env("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        .env("HF_HUB_DISABLE_XET", "1")
        .args(["-c", SCRIPT, &Value::from(calls).to_string()])
        .output()
        .unwrap();
    let theirs = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{theirs}\n{}", String::from_utf8_lossy(&output.stderr));
    let sources = machine.sources();
    let mut lines = theirs.lines();
    for (name, repo, subset, split, rows) in &layouts {
        let theirs: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!(theirs, Value::from(rows.clone()), "{name}");
        // The rows are those of the files that we choose, in our order.
        let files = sources.hub_files(RepoKind::Dataset, name, None, "").unwrap();
        let names: Vec<&str> = files.files().map(|(name, _)| name).collect();
        let of_card = &repo.commits[&repo.refs["main"]];
        let card = of_card
            .get("README.md")
            .map(|card| String::from_utf8_lossy(&card.bytes).into_owned())
            .unwrap_or_default();
        let chosen = split_files(&names, &card, *subset, split);
        let expected: Vec<&str> = match *name {
            "org/card" => vec!["main/test-00000-of-00002.parquet", "main/test-00001-of-00002.parquet"],
            "org/deep" => vec!["odd/deep/x.parquet"],
            "org/lines" => vec!["other/a.jsonl"],
            _ => vec!["data/test-00000-of-00001.parquet"],
        };
        assert_eq!(chosen, expected, "{name}");
    }
}

#[test]
fn files_that_the_hub_converted_are_found_by_subset_and_split() {
    let shard = rows::parquet(&texts(0, 2), 1);
    let mut repo = StubRepo::new(&[("data.csv", b"question\nq\n")]);
    repo.commit(CONVERTED, &[("default/test/0001.parquet", &shard), ("default/test/0000.parquet", &shard)]);
    let hub = StubHub::start(&[("org/csv", repo)]);
    let sources = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]).sources();
    let files = sources.hub_files(RepoKind::Dataset, "org/csv", Some(CONVERTED), "").unwrap();
    let names: Vec<&str> = files.files().map(|(name, _)| name).collect();
    assert_eq!(
        converted_files(&names, None, "test"),
        ["default/test/0000.parquet", "default/test/0001.parquet"]
    );
}
