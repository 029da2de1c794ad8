//! `dataset publish-check`: what would not run for others, in the words of a run.

use std::path::PathBuf;

use aiperf_test_servers::{StubHub, StubRepo, rows};
use serde_json::{Value, json};

use crate::machine::{Machine, TRACE, files_below, stderr, stdout};

/// A folder that is to be published.
pub(crate) struct Set {
    pub(crate) machine: Machine,
    pub(crate) folder: PathBuf,
}

impl Set {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Set {
        let machine = Machine::bare();
        let folder = machine.home.path().join("set");
        let set = Set { machine, folder };
        for (name, bytes) in files {
            set.put(name, bytes);
        }
        set
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Exit code and findings.
    pub(crate) fn check(&self, more: &[&str]) -> (i32, Value) {
        let before = files_below(self.machine.home.path()).len();
        let output =
            self.machine.aiperf(&[&["dataset", "publish-check", "set", "--json"][..], more].concat());
        assert_eq!(files_below(self.machine.home.path()).len(), before, "it writes nothing");
        let shown: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let ok = shown["ok"].as_bool().unwrap();
        assert_eq!(output.status.code(), Some(i32::from(!ok)), "{shown}");
        let errors = shown["findings"].as_array().unwrap().iter().any(|finding| finding["level"] == "error");
        assert_eq!(ok, !errors, "{shown}");
        (output.status.code().unwrap(), shown)
    }

    /// The finding of this level about this file.
    pub(crate) fn finding(&self, more: &[&str], level: &str, file: &str, part: &str) -> Value {
        let (_, shown) = self.check(more);
        let found = shown["findings"].as_array().unwrap().iter().find(|finding| {
            finding["level"] == level
                && finding["file"] == file
                && finding["message"].as_str().unwrap().contains(part)
        });
        found.unwrap_or_else(|| panic!("no {level} of {file} with \"{part}\": {shown:#}")).clone()
    }
}

fn manifest(more: &Value) -> Vec<u8> {
    let mut manifest = json!({"path": "trace.jsonl", "format": "mooncake_trace"});
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    manifest.to_string().into_bytes()
}

#[test]
fn each_fault_of_a_manifest_is_one_of_a_run_with_the_same_text() {
    let set = Set::new(&[("trace.jsonl", TRACE)]);
    let hub = StubHub::start(&[("org/set", StubRepo::default())]);
    let reader = Machine::new(&hub);
    let faults = [
        json!({"path": "../x"}),
        json!({"path": "/etc/passwd"}),
        json!({"path": "a/../../x"}),
        json!({"path": "..\\x"}),
        json!({"path": "C:\\x"}),
        json!({"path": "//host/x"}),
        json!({"path": "file:///x"}),
        json!({"path": "a\0b"}),
        json!({"path": "%2e%2e/x"}),
        json!({"path": "none.jsonl"}),
        json!({"path": "aiperf.json"}),
        json!({"path": 1}),
        json!({"path": "x".repeat(1_000_000)}),
        json!({"format": "no_such"}),
        json!({"format": null}),
        json!({"block_size": 0}),
        json!({"block_size": -1}),
        json!({"block_size": 1.0}),
        json!({"block_size": true}),
        json!({"sha256": "a".repeat(63)}),
        json!({"colour": "red"}),
        json!({"requires": []}),
        json!({"requires": {"aiperf": "newest"}}),
        json!({"requires": {"endpoint_types": []}}),
        json!({"requires": {"max_context_tokens": "many"}}),
        json!({"requires": {"colour": 1}}),
    ];
    let mut documents: Vec<Vec<u8>> = faults.iter().map(manifest).collect();
    documents.extend([
        b"{\"path\": \"trace.jsonl\", \"path\": \"y\", \"format\": \"mooncake_trace\"}".to_vec(),
        b"{\"path\": \"trace.jsonl\"}".to_vec(),
        b"not json".to_vec(),
        b"<html></html>".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"\xff\xfe".to_vec(),
        "[".repeat(100_000).into_bytes(),
        format!("{{\"path\": \"{}\"}}", "x".repeat(2 << 20)).into_bytes(),
    ]);
    for document in documents {
        let shown = String::from_utf8_lossy(&document[..document.len().min(90)]).into_owned();
        set.put("aiperf.json", &document);
        hub.change("org/set", |repo| {
            repo.commit("main", &[("aiperf.json", &document), ("trace.jsonl", TRACE)])
        });
        let (code, found) = set.check(&[]);
        assert_eq!(code, 1, "{shown}");
        let message = found["findings"][0]["message"].as_str().unwrap().to_owned();
        assert_eq!(
            (&found["findings"][0]["level"], &found["findings"][0]["file"]),
            (&"error".into(), &"aiperf.json".into())
        );
        let output = reader.aiperf(&["dataset", "resolve", "hf://org/set"]);
        assert_eq!(output.status.code(), Some(2), "{shown}");
        assert!(stderr(&output).contains(&message), "{shown}: {message}\n{}", stderr(&output));
    }
}

#[test]
fn a_folder_without_a_manifest_gets_one_to_paste_and_then_runs() {
    let set = Set::new(&[("d/trace.jsonl", TRACE)]);
    let (code, shown) = set.check(&[]);
    assert_eq!(code, 1);
    let ready = shown["suggested"].clone();
    assert_eq!(
        (&ready["path"], &ready["format"], &ready["block_size"]),
        (&"d/trace.jsonl".into(), &"mooncake_trace".into(), &512.into())
    );
    assert_eq!(ready["sha256"].as_str().unwrap().len(), 64);
    set.put("aiperf.json", ready.to_string().as_bytes());
    assert_eq!(set.check(&[]), (0, json!({"ok": true, "findings": [], "suggested": ready})));
    let published = ready.to_string();
    let hub = StubHub::start(&[(
        "org/set",
        StubRepo::new(&[("aiperf.json", published.as_bytes()), ("lfs:d/trace.jsonl", TRACE)]),
    )]);
    let output = Machine::new(&hub).profile(&["--input-file", "hf://org/set"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // The same for people: ready to paste.
    std::fs::remove_file(set.folder.join("aiperf.json")).unwrap();
    let output = set.machine.aiperf(&["dataset", "publish-check", "set"]);
    let said = stdout(&output);
    assert!(
        said.contains("error aiperf.json: set has no aiperf.json. ")
            && said.contains("\"path\": \"d/trace.jsonl\""),
        "{said}"
    );
}

#[test]
fn what_is_right_and_not_as_one_would_wish_is_a_warning() {
    let set = Set::new(&[
        ("aiperf.json", &manifest(&json!({}))),
        ("trace.jsonl", TRACE),
        ("notes.txt", b"x"),
        ("README.md", b"x"),
        (".gitattributes", b"x"),
    ]);
    let fix =
        set.finding(&[], "warning", "aiperf.json", "it has no sha256")["fix"].as_str().unwrap().to_owned();
    assert!(fix.starts_with("Add \"sha256\": \""), "{fix}");
    set.finding(&[], "warning", "aiperf.json", "a run does not read notes.txt");
    let (code, shown) = set.check(&[]);
    assert_eq!((code, shown["findings"].as_array().unwrap().len()), (0, 2), "{shown:#}");
    // For another version: right where that one reads it.
    set.put("aiperf.json", &manifest(&json!({"requires": {"aiperf": ">=99"}})));
    set.finding(&[], "note", "aiperf.json", "needs AIPerf >=99");
    assert_eq!(set.check(&[]).0, 0);
    set.put("aiperf.json", &manifest(&json!({"requires": {"endpoint_types": ["chat"]}})));
    assert_eq!(set.check(&[]).0, 0);
    set.finding(
        &["--endpoint-type", "cohere-rankings"],
        "error",
        "aiperf.json",
        "supports endpoint types chat",
    );
    // Media that others do not have, and credentials.
    let records = [
        json!({"text": "a", "image": "pictures/a.png"}),
        json!({"text": "a", "image": "file:///home/me/a.png"}),
        json!({"text": "hf_abcdefghijklmnopqrstuvwxyz"}),
    ];
    let media = Set::new(&[("aiperf.json", b"{\"path\": \"x.jsonl\", \"format\": \"single_turn\"}")]);
    for (record, part) in
        records.iter().zip(["a file of this machine", "a file of this machine", "a credential"])
    {
        media.put("x.jsonl", format!("{}\n{record}\n", json!({"text": "fine"})).as_bytes());
        let finding = media.finding(&[], "warning", "x.jsonl", part);
        assert_eq!(finding["line"], 2, "{finding}");
    }
}

#[test]
fn keys_of_known_services_and_paths_in_home_folders_are_told() {
    let set = Set::new(&[("aiperf.json", b"{\"path\": \"x.jsonl\", \"format\": \"single_turn\"}")]);
    let key = |prefix: &str, length: usize| format!("{prefix}{}", &"aB3dE6gH9jK2".repeat(6)[..length]);
    let keys = [
        key("sk-", 48),
        key("sk-proj-", 48),
        key("sk-ant-api03-", 48),
        key("ghp_", 36),
        key("github_pat_", 60),
        key("AIza", 35),
        key("xoxb-1234567890-", 24),
        key("Authorization: Bearer ", 30),
        format!("{}.{}.{}", key("eyJ", 17), key("eyJ", 20), key("", 43)),
        "-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(),
    ];
    for key in keys {
        let record = json!({"text": format!("it said:\n{key}\nand no more")});
        set.put("x.jsonl", format!("{}\n{record}\n", json!({"text": "fine"})).as_bytes());
        let finding = set.finding(&[], "warning", "x.jsonl", "what looks like a credential");
        assert_eq!(finding["line"], 2, "{key}: {finding}");
        assert!(!finding.to_string().contains(&key), "{finding}");
    }
    let output = set.machine.aiperf(&["dataset", "publish-check", "set"]);
    assert!(
        stdout(&output).ends_with("; look at the warnings before it is published\n"),
        "{}",
        stdout(&output)
    );
    for path in ["/home/me/x.py", "/Users/me/x.py", "/root/x.py", "C:\\Users\\me\\x.py"] {
        let record = json!({"text": format!("open\n{path} please")});
        set.put("x.jsonl", format!("{record}\n").as_bytes());
        let finding = set.finding(&[], "note", "x.jsonl", "a path in a home folder");
        assert_eq!(finding["line"], 1, "{path}: {finding}");
    }
    let fine =
        json!({"text": "a task-oriented https://h/home/me/x, sk-learn, the bearer of hf_hub_download"});
    set.put("x.jsonl", format!("{fine}\n").as_bytes());
    let (_, shown) = set.check(&[]);
    assert_eq!(shown["findings"].as_array().unwrap().len(), 1, "no sha256, and nothing else: {shown:#}");
}

/// What another version is asked for is looked at all the same: nobody is told that data are good which were not read.
#[test]
fn a_manifest_for_another_version_does_not_hide_its_data() {
    let manifest = |more: Value| {
        let mut manifest =
            json!({"path": "x.jsonl", "format": "single_turn", "requires": {"aiperf": ">=99"}});
        manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        manifest.to_string().into_bytes()
    };
    let set = Set::new(&[("aiperf.json", &manifest(json!({}))), ("x.jsonl", b"{\"text\": 5}\n")]);
    set.finding(&[], "note", "aiperf.json", "needs AIPerf >=99");
    set.finding(&[], "error", "x.jsonl", "it does not look like single_turn");
    set.put("x.jsonl", b"{\"text\": \"hf_abcdefghijklmnopqrstuvwxyz\"}\n");
    set.finding(&[], "warning", "x.jsonl", "what looks like a credential");
    set.finding(&[], "warning", "aiperf.json", "it has no sha256");
    let output = set.machine.aiperf(&["dataset", "publish-check", "set"]);
    let said = stdout(&output);
    assert!(!said.contains("would run for others"), "{said}");
    assert!(said.ends_with("not checked: how AIPerf >=99 reads it\n"), "{said}");
    set.put("aiperf.json", &manifest(json!({"sha256": "b".repeat(64)})));
    set.finding(&[], "error", "aiperf.json", "sha256 does not match");
    // A key that this version does not know may be one of that version.
    set.put("aiperf.json", &manifest(json!({"colour": "red"})));
    set.finding(&[], "note", "aiperf.json", "colour");
    set.finding(&[], "warning", "x.jsonl", "what looks like a credential");
    let output = set.machine.aiperf(&["dataset", "publish-check", "set"]);
    let said = stdout(&output);
    assert!(
        said.ends_with("not checked: the data that aiperf.json names, and how AIPerf >=99 reads it\n"),
        "{said}"
    );
}

#[test]
fn the_publisher_is_not_told_to_ask_the_publisher() {
    let set = Set::new(&[("aiperf.json", &manifest(&json!({"colour": "red"}))), ("trace.jsonl", TRACE)]);
    let finding = set.finding(&[], "error", "aiperf.json", "colour");
    assert!(finding["fix"].as_str().unwrap().starts_with("Correct it: "), "{finding}");
}

#[test]
fn data_that_do_not_keep_what_is_declared_are_errors() {
    let set =
        Set::new(&[("aiperf.json", &manifest(&json!({"sha256": "b".repeat(64)}))), ("trace.jsonl", TRACE)]);
    let finding = set.finding(&[], "error", "aiperf.json", "sha256 does not match");
    assert!(finding["fix"].as_str().unwrap().starts_with("Set \"sha256\" to \""), "{finding}");
    // A record that is none: the first thousand are read, or all.
    let mut lines = TRACE.repeat(400);
    lines.extend_from_slice(b"{\"broken\": 1}\n");
    set.put("aiperf.json", &manifest(&json!({})));
    set.put("trace.jsonl", &lines);
    assert_eq!(set.check(&[]).0, 0);
    let finding = set.finding(&["--all"], "error", "trace.jsonl", "it does not look like mooncake_trace");
    assert_eq!(finding["line"], 1_201, "{finding}");
    let output = set.machine.aiperf(&["dataset", "publish-check", "set", "--all"]);
    assert!(stdout(&output).contains("error trace.jsonl:1201: it does not look like"), "{}", stdout(&output));
    // Names that cannot be on every machine, shards that are missing, columns that no record has.
    let shards = |names: &[&str]| {
        let set = Set::new(&[("aiperf.json", b"{\"path\": \"d\", \"format\": \"single_turn\"}")]);
        for name in names {
            set.put(&format!("d/{name}"), b"PAR1");
        }
        set
    };
    shards(&["train-00001-of-00002.parquet"]).finding(
        &[],
        "error",
        "aiperf.json",
        "train-00000-of-00002.parquet is missing",
    );
    shards(&["con.parquet"]).finding(&[], "error", "aiperf.json", "cannot be used: ");
    shards(&["a-00000-of-00001.parquet", "b-00000-of-00001.parquet"]).finding(
        &[],
        "error",
        "aiperf.json",
        "holds the splits a, b",
    );
    shards(&["x.parquet", "y.jsonl"]).finding(&[], "error", "aiperf.json", "\"y.jsonl\" lies beside");
    shards(&["x.parquet"]).finding(&[], "error", "d/x.parquet", "cannot read d/x.parquet: damaged");
    let set =
        Set::new(&[("aiperf.json", b"{\"path\": \"d\", \"format\": \"inputs_json\"}"), ("d/x.json", b"{}")]);
    set.finding(&[], "error", "aiperf.json", "inputs_json reads one file");
}

#[test]
fn sidecars_are_checked_with_their_files() {
    let set = Set::new(&[
        ("aiperf.json", &manifest(&json!({}))),
        ("trace.jsonl", TRACE),
        ("more/b.jsonl", b"{\"text\": \"x\"}\n"),
        ("more/b.jsonl.aiperf.json", b"{\"format\": \"single_turn\"}"),
    ]);
    assert_eq!(set.check(&[]).0, 0, "{}", set.check(&[]).1);
    set.put("more/b.jsonl.aiperf.json", b"{\"format\": \"mooncake_trace\"}");
    set.finding(&[], "error", "more/b.jsonl", "it does not look like mooncake_trace");
    let wrong = json!({"format": "single_turn", "sha256": "c".repeat(64)}).to_string();
    set.put("more/b.jsonl.aiperf.json", wrong.as_bytes());
    set.finding(&[], "error", "more/b.jsonl.aiperf.json", "sha256 does not match");
    set.put("more/b.jsonl.aiperf.json", b"{\"path\": \"b.jsonl\"}");
    set.finding(&[], "error", "more/b.jsonl.aiperf.json", "path");
    set.put("more/c.jsonl.aiperf.json", b"{}");
    set.finding(&[], "error", "more/c.jsonl.aiperf.json", "there is no file \"more/c.jsonl\" beside it");
}

#[test]
fn what_should_not_be_in_columns_is_found_with_its_row_and_column() {
    let rows = |secret_at: usize| -> Vec<Value> {
        let text =
            |row: usize| if row == secret_at { "see hf_canarycanarycanarycanary there" } else { "none" };
        (1..=1_600).map(|row| json!({"text": "a", "extra": {"notes": [text(row), "b"]}})).collect()
    };
    let set = |secret_at: usize| {
        let set = Set::new(&[("aiperf.json", b"{\"path\": \"d\", \"format\": \"single_turn\"}")]);
        set.put("d/train-00000-of-00002.parquet", &rows::parquet(&rows(0), 500));
        set.put("d/train-00001-of-00002.parquet", &rows::parquet(&rows(secret_at), 500));
        set
    };
    let found =
        set(900).finding(&[], "warning", "d/train-00001-of-00002.parquet", "what looks like a credential");
    assert!(found["message"].as_str().unwrap().starts_with("row 900, column `extra.notes`: "), "{found}");
    assert_eq!((&found["key"], &found["line"]), (&"extra.notes".into(), &Value::Null));
    assert!(!found.to_string().contains("canary"), "{found}");
    // Beyond the first thousand rows only where all are read.
    let late = set(1_500);
    let shown = late.check(&[]).1;
    let findings = shown["findings"].as_array().unwrap();
    assert!(findings.len() == 1 && findings[0]["level"] == "note", "{shown}");
    assert_eq!(findings[0]["message"], "only its first 1,000 records are read, and those of 1 more");
    let found = late.finding(
        &["--all"],
        "warning",
        "d/train-00001-of-00002.parquet",
        "row 1500, column `extra.notes`",
    );
    assert!(!found.to_string().contains("canary"), "{found}");
    // Media that others do not have.
    let media = Set::new(&[("aiperf.json", b"{\"path\": \"x.parquet\", \"format\": \"single_turn\"}")]);
    let row = json!({"text": "a", "image": "pictures/a.png"});
    media.put("x.parquet", &rows::parquet(&[row], 1));
    media.finding(&[], "warning", "x.parquet", "row 1, column `image`: it names a file of this machine");
}

#[test]
fn a_folder_of_shards_without_a_manifest_gets_one_that_names_the_folder() {
    let rows: Vec<Value> = (0..3).map(|_| json!({"text": "a", "output_length": 3})).collect();
    for (folder, path) in [("d/", "d"), ("", ".")] {
        let set = Set::new(&[]);
        for shard in ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"] {
            set.put(&format!("{folder}{shard}"), &rows::parquet(&rows, 1));
        }
        let (code, shown) = set.check(&[]);
        let ready = &shown["suggested"];
        assert_eq!((code, ready), (1, &json!({"path": path, "format": "single_turn"})));
        set.put("aiperf.json", ready.to_string().as_bytes());
        assert_eq!(set.check(&[]).0, 0, "{}", set.check(&[]).1);
    }
}

#[test]
fn splits_that_are_not_read_are_a_warning() {
    let shard = rows::parquet(&[json!({"text": "a"})], 1);
    let set = Set::new(&[("aiperf.json", b"{\"path\": \"d\", \"format\": \"single_turn\"}")]);
    for split in ["train", "test"] {
        set.put(&format!("d/{split}-00000-of-00001.parquet"), &shard);
    }
    set.finding(&[], "warning", "aiperf.json", "the folder holds more than is read; not read: test");
    assert_eq!(set.check(&[]).0, 0);
}

#[test]
fn names_that_differ_in_case_alone_are_a_warning_where_they_can_be() {
    let body = b"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}";
    let set = Set::new(&[
        ("aiperf.json", b"{\"path\": \"d\", \"format\": \"raw_payload\"}"),
        ("d/A.json", body),
        ("d/a.json", body),
    ]);
    // Where this machine takes them for one, there is nothing to tell.
    if files_below(&set.folder).len() == 3 {
        set.finding(&[], "warning", "d/a.json", "another file differs from it in case alone");
    }
}

#[test]
fn a_large_file_that_is_not_compressed_is_a_warning() {
    let set = Set::new(&[("aiperf.json", &manifest(&json!({}))), ("trace.jsonl", TRACE)]);
    let file = std::fs::File::options().write(true).open(set.folder.join("trace.jsonl")).unwrap();
    // Nothing but a hole after the records.
    file.set_len(100_000_001).unwrap();
    let found = set.finding(&[], "warning", "trace.jsonl", "it has 100000001 bytes and is not compressed");
    assert!(found["fix"].as_str().unwrap().contains(".jsonl.gz"), "{found}");
}

/// A link back to the folder makes no circle, and what lies behind a link is not taken for data of the folder.
#[test]
fn links_to_folders_are_told_and_not_followed() {
    let set =
        Set::new(&[("aiperf.json", &manifest(&json!({}))), ("trace.jsonl", TRACE), ("d/README.md", b"x")]);
    let (code, before) = set.check(&[]);
    for link in ["d/up", "loop"] {
        std::os::unix::fs::symlink(&set.folder, set.folder.join(link)).unwrap();
    }
    let (with_links, shown) = set.check(&[]);
    assert_eq!((code, with_links), (0, 0));
    let findings = |shown: &Value| shown["findings"].as_array().unwrap().len();
    assert_eq!(findings(&shown), findings(&before) + 2, "{shown:#}");
    for link in ["d/up", "loop"] {
        let finding = set.finding(&[], "warning", link, "such links are not followed");
        assert!(finding["fix"].as_str().unwrap().contains("the folder itself"), "{finding}");
    }
    // Without a manifest the one file of data is found all the same, here and by resolve.
    std::fs::remove_file(set.folder.join("aiperf.json")).unwrap();
    assert_eq!(set.check(&[]).1["suggested"]["path"], "trace.jsonl");
    let output = set.machine.aiperf(&["dataset", "resolve", "set"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("has no aiperf.json"), "{}", stderr(&output));
}

#[test]
fn a_device_is_no_data_and_is_not_to_be_deleted() {
    let machine = Machine::bare();
    let output = machine.aiperf(&["dataset", "resolve", "/dev/null"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("it is a pipe or a device") && said.contains("Save it to a file"), "{said}");
    assert!(!said.contains("delete") && !said.contains("download"), "{said}");
}

#[test]
fn a_check_ends_at_the_first_signal() {
    let set = Set::new(&[
        ("aiperf.json", &manifest(&json!({"path": "x.jsonl", "sha256": "b".repeat(64)}))),
        ("x.jsonl", TRACE),
    ]);
    // Nobody lives to see the digest of its zeros.
    std::fs::File::options().write(true).open(set.folder.join("x.jsonl")).unwrap().set_len(1 << 42).unwrap();
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let child = set.machine.start(&["dataset", "publish-check", "set"]);
        listens(&child);
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert_eq!(stderr(&output), "error: interrupted; nothing was left behind\n");
        assert_eq!(stdout(&output), "");
    }
}

/// Waits until a program catches Ctrl-C.
fn listens(child: &std::process::Child) {
    let is_caught = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        Some(u64::from_str_radix(line.trim(), 16).ok()? & (1 << 1) != 0)
    };
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        if is_caught(status) == Some(true) {
            return;
        }
        std::thread::yield_now();
    }
}

/// What was not read is not said to run.
#[test]
fn records_after_the_first_thousand_are_said_to_be_unread() {
    let set = Set::new(&[("aiperf.json", &manifest(&json!({}))), ("trace.jsonl", &TRACE.repeat(400))]);
    let finding = set.finding(&[], "note", "trace.jsonl", "only its first 1,000 records are read");
    assert_eq!(finding["fix"], "Read the rest with --all");
    let said = stdout(&set.machine.aiperf(&["dataset", "publish-check", "set"]));
    assert!(
        said.ends_with("; not checked: what follows the first 1,000 records (--all reads it)\n"),
        "{said}"
    );
    let said = stdout(&set.machine.aiperf(&["dataset", "publish-check", "set", "--all"]));
    assert!(said.contains("set would run for others") && !said.contains("1,000"), "{said}");
    set.put(
        "trace.jsonl",
        &[&TRACE.repeat(333)[..], TRACE.split_inclusive(|&byte| byte == b'\n').next().unwrap()].concat(),
    );
    let said = stdout(&set.machine.aiperf(&["dataset", "publish-check", "set"]));
    assert!(said.contains("set would run for others"), "a thousand are all of them: {said}");
    // Columns without a text.
    let rows: Vec<Value> =
        (0..1_001).map(|row| json!({"input_length": 5, "output_length": row + 1})).collect();
    set.put("x.parquet", &rows::parquet(&rows, 500));
    set.put("aiperf.json", &manifest(&json!({"path": "x.parquet"})));
    set.finding(&[], "note", "x.parquet", "only its first 1,000 records are read");
}

#[test]
fn endpoint_types_that_no_run_has_are_told() {
    let types = json!({"requires": {"endpoint_types": ["chatt", "completions", "COHERE_RANKINGS"]}});
    let set = Set::new(&[("aiperf.json", &manifest(&types)), ("trace.jsonl", TRACE)]);
    let finding = set.finding(&[], "warning", "aiperf.json", "endpoint_types");
    let message = finding["message"].as_str().unwrap();
    assert!(message.contains("chatt") && message.contains("near names: chat"), "{message}");
    assert_eq!(set.check(&[]).1["findings"].as_array().unwrap().len(), 2, "it, and the sha256");
    for command in ["publish-check", "resolve"] {
        let output = set.machine.aiperf(&["dataset", command, "set", "--endpoint-type", "bogus"]);
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(stderr(&output).starts_with("error: --endpoint-type: there is no"), "{}", stderr(&output));
    }
}

#[test]
fn credentials_under_plain_names_are_told() {
    let set = Set::new(&[("aiperf.json", b"{\"path\": \"x.jsonl\", \"format\": \"single_turn\"}")]);
    for record in [
        json!({"text": "a", "extra": {"api_key": "planted"}}),
        json!({"text": "a", "extra": {"headers": {"Authorization": "Basic dXNlcjpwdw=="}}}),
        json!({"text": "log in with password=planted1"}),
    ] {
        set.put("x.jsonl", format!("{record}\n").as_bytes());
        let finding = set.finding(&[], "warning", "x.jsonl", "what looks like a credential");
        assert!(!finding.to_string().contains("planted"), "{finding}");
    }
}

#[test]
fn data_behind_links_are_not_said_to_run_for_others() {
    let set = Set::new(&[("aiperf.json", &manifest(&json!({})))]);
    let elsewhere = set.machine.home.path().join("elsewhere.jsonl");
    std::fs::write(&elsewhere, TRACE).unwrap();
    std::os::unix::fs::symlink(&elsewhere, set.folder.join("trace.jsonl")).unwrap();
    let finding = set.finding(&[], "warning", "trace.jsonl", "it is a link to ");
    assert!(finding["message"].as_str().unwrap().contains("elsewhere.jsonl"), "{finding}");
    let said = stdout(&set.machine.aiperf(&["dataset", "publish-check", "set"]));
    assert!(
        !said.contains("would run for others") && said.contains("not checked: whether its links"),
        "{said}"
    );
}

#[test]
fn a_manifest_for_endpoints_that_no_run_has_is_not_said_to_run() {
    let types = |names: &[&str]| manifest(&json!({"requires": {"endpoint_types": names}}));
    let set = Set::new(&[("trace.jsonl", TRACE), ("aiperf.json", &types(&["bogus"]))]);
    let verdict = || stdout(&set.machine.aiperf(&["dataset", "publish-check", "set"]));
    let said = verdict();
    assert!(
        !said.contains("would run for others") && said.contains("not checked: a run, for no endpoint"),
        "{said}"
    );
    set.put("aiperf.json", &types(&["bogus", "chat"]));
    assert!(verdict().contains("would run for others"), "{}", verdict());
}

#[test]
fn how_many_lines_and_cells_hold_a_credential_is_told() {
    let key = format!("hf_{}", "aB3dE6gH9jK2".repeat(3));
    let line = |text: &str| json!({"text": text}).to_string() + "\n";
    let set = Set::new(&[("aiperf.json", b"{\"path\": \"x.jsonl\", \"format\": \"single_turn\"}")]);
    for (lines, told) in [(1, None), (2, Some("(and 1 more line)")), (12, Some("(and 11 more lines)"))] {
        set.put("x.jsonl", (line("fine") + &line(&key).repeat(lines) + &line("fine")).as_bytes());
        for more in [&[][..], &["--all"]] {
            let finding = set.finding(more, "warning", "x.jsonl", "what looks like a credential");
            assert_eq!(finding["line"], 2, "{finding}");
            let message = finding["message"].as_str().unwrap();
            match told {
                Some(told) => assert!(message.ends_with(told), "{message}"),
                None => assert!(!message.contains("more"), "{message}"),
            }
        }
    }
    let row = |texts: &[&str]| json!({"text": "fine", "texts": texts});
    let twice = [row(&["fine", "fine"]), row(&[&key, "fine", &key]), row(&[&key, "fine"])];
    set.put("x.parquet", &rows::parquet(&twice, 3));
    set.put("aiperf.json", b"{\"path\": \"x.parquet\", \"format\": \"single_turn\"}");
    let message =
        set.finding(&[], "warning", "x.parquet", "what looks like a credential")["message"].to_string();
    assert!(message.contains("row 2, column `texts`") && message.contains("(and 1 more cell)"), "{message}");
}

#[test]
fn a_file_of_this_machine_is_not_fetched() {
    let set = Set::new(&[("trace.jsonl", TRACE)]);
    let output = set.machine.aiperf(&["dataset", "fetch", "set/trace.jsonl"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.starts_with("set/trace.jsonl is on this disk, nothing to fetch: 1 file(s), "), "{said}");
    assert!(!said.contains("Remote dataset"), "{said}");
}
