//! The real Python client of the Hub: against the stub, so that the stub is one, and against our cache, both ways.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use aiperf_source::Ask;
use aiperf_test_servers::{StubHub, StubRepo};

use crate::support::{Machine, ask, venv};

const LINES: &[u8] = b"{\"text\": \"one\"}\n{\"text\": \"two\"}\n";
const ODD: &str = "odd name#1%41@x/y z.jsonl";

/// An interpreter with the client in it.
fn python() -> &'static PathBuf {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        venv("python-hub-2.4", "import huggingface_hub, filelock", &["huggingface_hub==2.4.0", "filelock"])
    })
}

/// Runs a script, which must succeed.
fn run(machine: &Machine, endpoint: &str, offline: bool, script: &str) -> String {
    let output = start(machine, endpoint, offline, script).wait_with_output().unwrap();
    text(&output)
}

fn text(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn start(machine: &Machine, endpoint: &str, offline: bool, script: &str) -> std::process::Child {
    let mut command = Command::new(python());
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", machine.home.path())
        .env("HF_ENDPOINT", endpoint)
        .env("HF_HUB_DISABLE_TELEMETRY", "1")
        .env("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        .env("HF_HUB_DISABLE_XET", "1")
        .args(["-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if offline {
        command.env("HF_HUB_OFFLINE", "1");
    }
    if let Some(token) = machine.variables.get("HF_TOKEN") {
        command.env("HF_TOKEN", token);
    }
    command.spawn().unwrap()
}

fn with(format: &'static str) -> Ask<'static> {
    Ask { format: Some(format), ..ask() }
}

fn repo() -> (StubRepo, String, String) {
    let mut repo = StubRepo::new(&[
        ("README.md", b"# x\n"),
        ("data/plain.jsonl", LINES),
        ("lfs:data/large.jsonl", LINES),
        (ODD, LINES),
    ]);
    let main = repo.refs["main"].clone();
    let special = repo.commit("refs/convert/parquet", &[("cfg/train/0000.parquet", b"PAR1")]);
    repo.commit("feature/x", &[("x.jsonl", LINES)]);
    (repo, main, special)
}

#[test]
fn the_python_client_takes_the_stub_for_a_hub() {
    let (repo, main, special) = repo();
    let files: &[(&str, &[u8])] = &[("x.jsonl", LINES)];
    let hub = StubHub::start(&[
        ("org/repo", repo),
        ("org/gated", StubRepo { gated: true, ..StubRepo::new(files) }),
    ]);
    let machine = Machine::new(&[]);
    let script = format!(
        r#"
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (RepositoryNotFoundError, GatedRepoError, RevisionNotFoundError,
    RemoteEntryNotFoundError)
api = HfApi()
assert api.dataset_info("org/repo").sha == "{main}"
assert api.dataset_info("org/repo", revision="feature/x").sha
assert api.dataset_info("org/repo", revision="refs/convert/parquet").sha == "{special}"
tree = list(api.list_repo_tree("org/repo", repo_type="dataset", recursive=True))
assert sorted(e.path for e in tree) == sorted(["README.md", "data", "data/plain.jsonl", "data/large.jsonl",
    "odd name#1%41@x", "{ODD}"]), tree
inner = list(api.list_repo_tree("org/repo", "data", repo_type="dataset"))
assert sorted(e.path for e in inner) == ["data/large.jsonl", "data/plain.jsonl"], inner
info = api.get_paths_info("org/repo", ["data", "data/large.jsonl", "none"], repo_type="dataset")
assert [e.path for e in info] == ["data", "data/large.jsonl"] and info[1].lfs.sha256, info
for name in ["data/plain.jsonl", "data/large.jsonl", "{ODD}"]:
    path = hf_hub_download("org/repo", name, repo_type="dataset")
    assert open(path, "rb").read() == {lines}, name
snapshot_download("org/repo", repo_type="dataset")
def fails(kind, *args, **kwargs):
    try:
        hf_hub_download(*args, repo_type="dataset", **kwargs)
    except kind:
        return
    raise AssertionError(kind)
fails(RepositoryNotFoundError, "org/none", "x")
fails(GatedRepoError, "org/gated", "x.jsonl")
fails(RevisionNotFoundError, "org/repo", "README.md", revision="none")
fails(RemoteEntryNotFoundError, "org/repo", "none")
try:
    list(api.list_repo_tree("org/repo", "none", repo_type="dataset"))
    raise AssertionError("a tree of nothing")
except RemoteEntryNotFoundError:
    pass
"#,
        lines = python_bytes(LINES),
    );
    let mut machine = machine;
    run(&machine, &hub.endpoint(), false, &script);
    machine.set("HF_TOKEN", "hf_good");
    run(
        &machine,
        &hub.endpoint(),
        false,
        "from huggingface_hub import hf_hub_download\nhf_hub_download('org/repo', 'data/large.jsonl', \
         repo_type='dataset', force_download=True)",
    );
    assert!(!hub.storage_log().is_empty());
    assert!(hub.storage_log().iter().all(|request| request.header("authorization").is_none()));
}

fn python_bytes(bytes: &[u8]) -> String {
    format!("bytes({bytes:?})")
}

#[test]
fn the_python_client_reads_offline_what_we_fetched() {
    let (repo, main, _) = repo();
    let hub = StubHub::start(&[("org/repo", repo)]);
    let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    for name in ["data/large.jsonl", "data/plain.jsonl", ODD, "README.md"] {
        machine.fetch(&format!("hf://org/repo/{name}"), &with("single_turn")).unwrap();
    }
    hub.clear_logs();
    let said = run(
        &machine,
        &hub.endpoint(),
        true,
        &format!(
            r#"
import os, warnings
warnings.simplefilter("error")
from huggingface_hub import hf_hub_download, snapshot_download, scan_cache_dir, try_to_load_from_cache
from huggingface_hub.file_download import _CACHED_NO_EXIST
for revision in [None, "main", "{main}"]:
    for name in ["data/large.jsonl", "data/plain.jsonl", "{ODD}"]:
        path = hf_hub_download("org/repo", name, repo_type="dataset", revision=revision)
        assert open(path, "rb").read() == {lines}, name
        assert os.path.islink(path)
    assert try_to_load_from_cache("org/repo", "data/plain.jsonl", repo_type="dataset", revision=revision) == \
        hf_hub_download("org/repo", "data/plain.jsonl", repo_type="dataset", revision=revision)
absent = try_to_load_from_cache("org/repo", "README.md.aiperf.json", repo_type="dataset", revision="main")
assert absent is _CACHED_NO_EXIST, absent
folder = snapshot_download("org/repo", repo_type="dataset")
assert os.path.basename(folder) == "{main}"
info = scan_cache_dir()
assert not info.warnings, info.warnings
print([ (r.repo_id, r.nb_files) for r in info.repos])
"#,
            lines = python_bytes(LINES),
        ),
    );
    // Two of the four have one content, and so one blob.
    assert!(said.contains("('org/repo', 3)"), "{said}");
    assert!(hub.log().is_empty());
}

#[test]
fn the_python_client_reads_folders_that_we_listed_and_knows_a_part_from_the_whole() {
    let mut repo = StubRepo::new(&[("d/a.parquet", b"PAR1 a"), ("lfs:d/b.parquet", b"PAR1 b")]);
    let commit = repo.refs["main"].clone();
    repo.commit("other", &[("d/a.parquet", b"PAR1 a"), ("e/b.parquet", b"PAR1 b")]);
    let hub = StubHub::start(&[("org/repo", repo)]);
    let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    machine.fetch("hf://org/repo", &with("mooncake_trace")).unwrap();
    machine.fetch("hf://org/repo@other/e", &with("mooncake_trace")).unwrap();
    let said = run(
        &machine,
        &hub.endpoint(),
        true,
        &format!(
            r#"
import os
from huggingface_hub import snapshot_download, scan_cache_dir, get_cached_repo_tree
folder = snapshot_download("org/repo", repo_type="dataset")
assert os.path.basename(folder) == "{commit}" and sorted(os.listdir(folder + "/d")) == ["a.parquet", "b.parquet"]
assert sorted(f.path for f in get_cached_repo_tree("org/repo", repo_type="dataset")) == ["d/a.parquet", "d/b.parquet"]
assert os.listdir(snapshot_download("org/repo", repo_type="dataset", revision="other")) == ["e"]
info = scan_cache_dir()
assert not info.warnings, info.warnings
print([(r.repo_id, len(r.revisions)) for r in info.repos])
"#
        ),
    );
    assert!(said.contains("('org/repo', 2)"), "{said}");
    // The client completes what we began, and then it is whole for us, too.
    let mut machine = machine;
    let download = "from huggingface_hub import snapshot_download\nsnapshot_download('org/repo', \
                    repo_type='dataset', revision='other')";
    run(&machine, &hub.endpoint(), false, download);
    machine.set("HF_HUB_OFFLINE", "1");
    let local = machine.fetch("hf://org/repo@other/d", &with("mooncake_trace")).unwrap();
    assert_eq!(local.files[0].name, "a.parquet");
}

#[test]
fn we_read_offline_what_the_python_client_fetched() {
    let (repo, main, _) = repo();
    let hub = StubHub::start(&[("org/repo", repo)]);
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    run(
        &machine,
        &hub.endpoint(),
        false,
        "from huggingface_hub import snapshot_download, hf_hub_download\nsnapshot_download('org/repo', \
         repo_type='dataset')\nhf_hub_download('org/repo', 'cfg/train/0000.parquet', repo_type='dataset', \
         revision='refs/convert/parquet')",
    );
    hub.clear_logs();
    machine.set("HF_HUB_OFFLINE", "1");
    for name in ["data/large.jsonl", "data/plain.jsonl", ODD] {
        for revision in [String::new(), format!("@{main}")] {
            let local =
                machine.fetch(&format!("hf://org/repo{revision}/{name}"), &with("single_turn")).unwrap();
            assert_eq!(std::fs::read(&local.files[0].path).unwrap(), LINES);
            assert_eq!(local.provenance.version.as_deref(), Some(main.as_str()));
        }
    }
    let local = machine.fetch("hf://org/repo@refs%2Fconvert%2Fparquet", &with("single_turn")).unwrap();
    assert_eq!(local.files[0].name, "0000.parquet");
    assert!(hub.log().is_empty() && hub.storage_log().is_empty());
}

#[test]
fn a_lock_of_the_python_client_makes_us_wait_and_the_reverse() {
    let (repo, ..) = repo();
    let etag = repo.commits[&repo.refs["main"]]["data/large.jsonl"].etag();
    let hub = StubHub::start(&[("org/repo", repo)]);
    let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    let lock = machine.hub_cache().join(format!(".locks/datasets--org--repo/{etag}.lock"));
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let hold = format!(
        "import sys, filelock\nwith filelock.FileLock({lock:?}):\n    print('held', flush=True)\n    sys.stdin.readline()\n"
    );
    let mut command = Command::new(python());
    let mut child = command.args(["-c", &hold]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "held\n");
    std::thread::scope(|scope| {
        let fetched = scope.spawn(|| machine.fetch("hf://org/repo/data/large.jsonl", &with("single_turn")));
        // It says that it waits; only then is the lock given up.
        while !machine.notes().iter().any(|note| note.contains("waiting for another process")) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(hub.storage_log().is_empty());
        drop(child.stdin.take());
        assert!(fetched.join().unwrap().is_ok());
    });
    assert!(child.wait().unwrap().success());
    // The reverse: the client cannot take a lock that we hold.
    let file = std::fs::File::options().write(true).open(&lock).unwrap();
    file.lock().unwrap();
    let try_it = format!(
        "import filelock\ntry:\n    filelock.FileLock({lock:?}, timeout=0.1).acquire()\nexcept filelock.Timeout:\n    print('busy')"
    );
    assert_eq!(run(&machine, &hub.endpoint(), true, &try_it), "busy\n");
}
