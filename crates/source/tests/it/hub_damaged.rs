//! The cache of the Hub where something in it is not what was put there.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use aiperf_source::{Ask, RepoKind, is_damaged_copy};
use aiperf_test_servers::{StubHub, StubRepo};
use serde_json::json;

use crate::support::{Machine, ask, write_at_the_same_time};

const LINE: &[u8] = b"{\"text\": \"hello\"}\n";
const REFERENCE: &str = "hf://org/set/d/x.jsonl";

fn single() -> Ask<'static> {
    Ask { format: Some("single_turn"), ..ask() }
}

/// A file that git keeps elsewhere, fetched, and where its bytes lie.
fn fetched(variables: &[(&str, &str)]) -> (StubHub, Machine, PathBuf) {
    let hub =
        StubHub::start(&[("org/set", StubRepo::new(&[("lfs:d/x.jsonl", LINE), ("README.md", b"# x")]))]);
    let mut machine = Machine::new(variables);
    machine.set("HF_ENDPOINT", &hub.endpoint());
    let local = machine.fetch(REFERENCE, &single()).unwrap();
    let path = local.files[0].path.canonicalize().unwrap();
    (hub, machine, path)
}

fn sha256(machine: &Machine) -> String {
    machine.fetch(REFERENCE, &single()).unwrap().files[0].sha256.clone()
}

fn refused(machine: &Machine, reference: &str) -> String {
    machine.fetch(reference, &single()).unwrap_err().to_string()
}

fn is_said_to_be_damaged(machine: &Machine, path: &Path) {
    let text = refused(machine, REFERENCE);
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(
        text.contains("is damaged: its bytes") && (text.contains(name) || text.contains("x.jsonl")),
        "{text}"
    );
}

fn repo(machine: &Machine) -> PathBuf {
    machine.hub_cache().join("datasets--org--set")
}

/// The one mark of a cache.
fn mark(machine: &Machine) -> PathBuf {
    let mut folder = repo(machine).join(".aiperf/files");
    while folder.is_dir() {
        folder = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    }
    folder
}

#[test]
fn a_hub_file_that_was_altered_and_kept_length_and_time_is_fetched_again() {
    for copies in ["0", "1"] {
        let (hub, mut machine, path) = fetched(&[("HF_HUB_DISABLE_SYMLINKS", copies)]);
        let good = sha256(&machine);
        write_at_the_same_time(&path, &LINE.to_ascii_uppercase());
        assert_eq!(sha256(&machine), good);
        assert_eq!(std::fs::read(&path).unwrap(), LINE);
        assert!(machine.notes().iter().any(|note| note.contains("it is fetched again")));
        machine.set("HF_HUB_OFFLINE", "1");
        write_at_the_same_time(&path, &LINE.to_ascii_uppercase());
        hub.clear_logs();
        is_said_to_be_damaged(&machine, &path);
        // The same bytes at another time are read, and run.
        write_at_the_same_time(&path, LINE);
        assert_eq!(sha256(&machine), good);
    }
}

#[test]
fn offline_a_hub_file_that_was_cut_is_called_damaged() {
    let (_hub, mut machine, path) = fetched(&[]);
    machine.set("HF_HUB_OFFLINE", "1");
    std::fs::write(&path, &LINE[..9]).unwrap();
    // Named directly it was never listed: nothing else tells its size.
    is_said_to_be_damaged(&machine, &path);
    machine.set("HF_HUB_OFFLINE", "0");
    let sources = machine.sources();
    sources.hub_files(RepoKind::Dataset, "org/set", None, "").unwrap();
    machine.set("HF_HUB_OFFLINE", "1");
    is_said_to_be_damaged(&machine, &path);
    let sources = machine.sources();
    let files = sources.hub_files(RepoKind::Dataset, "org/set", None, "").unwrap();
    let text = sources.hub_fetch(&files, "d/x.jsonl").unwrap_err().to_string();
    assert!(text.contains("is damaged: its bytes"), "{text}");
    std::fs::remove_file(&path).unwrap();
    let text = sources.hub_fetch(&files, "d/x.jsonl").unwrap_err().to_string();
    assert!(text.contains("is not in the cache"), "{text}");
}

#[test]
fn a_big_hub_file_is_read_once_and_not_at_every_start() {
    let (hub, mut machine, path) = fetched(&[]);
    let good = sha256(&machine);
    // A cache that another client filled has no mark: the file is read, and marked.
    std::fs::remove_dir_all(repo(&machine).join(".aiperf/files")).unwrap();
    hub.clear_logs();
    assert_eq!(sha256(&machine), good);
    let text = std::fs::read_to_string(mark(&machine)).unwrap();
    assert!(text.contains(&good), "{text}");
    // Whoever forges the mark sees that nobody reads the bytes again, but for those who fetch.
    write_at_the_same_time(&path, &LINE.to_ascii_uppercase());
    let found = path.metadata().unwrap();
    let nanos = |seconds: i64, nanos: i64| seconds * 1_000_000_000 + nanos;
    let forged = json!({
        "etag": good,
        "size": found.len(),
        "modified": nanos(found.mtime(), found.mtime_nsec()),
        "changed": nanos(found.ctime(), found.ctime_nsec()),
    });
    std::fs::write(mark(&machine), forged.to_string()).unwrap();
    assert_eq!(sha256(&machine), good);
    assert_eq!(std::fs::read(&path).unwrap(), LINE.to_ascii_uppercase());
    machine.compares = true;
    assert_eq!(sha256(&machine), good);
    assert_eq!(std::fs::read(&path).unwrap(), LINE);
}

#[test]
fn where_no_mark_can_be_written_a_hub_file_is_read_each_time() {
    let (_hub, machine, path) = fetched(&[]);
    let marks = repo(&machine).join(".aiperf/files");
    std::fs::remove_dir_all(&marks).unwrap();
    std::fs::write(&marks, "").unwrap();
    let good = sha256(&machine);
    write_at_the_same_time(&path, &LINE.to_ascii_uppercase());
    assert_eq!(sha256(&machine), good);
    assert_eq!(std::fs::read(&path).unwrap(), LINE);
}

#[test]
fn the_beginning_of_a_damaged_hub_file_is_not_looked_into() {
    let (_hub, mut machine, path) = fetched(&[]);
    write_at_the_same_time(&path, &LINE.to_ascii_uppercase());
    let leading = |machine: &Machine| {
        let sources = machine.sources();
        let plan = sources.access(&aiperf_source::Reference::parse(REFERENCE).unwrap(), &single()).unwrap();
        sources.leading(&plan, 1 << 16)
    };
    assert_eq!(leading(&machine).unwrap().bytes, LINE);
    machine.set("HF_HUB_OFFLINE", "1");
    let text = leading(&machine).unwrap_err().to_string();
    assert!(text.contains("is damaged: its bytes"), "{text}");
}

#[test]
fn a_listing_that_was_cut_off_is_kept_anew() {
    let (_hub, mut machine, _) = fetched(&[]);
    let list = |machine: &Machine| machine.sources().hub_files(RepoKind::Dataset, "org/set", None, "");
    let commit = list(&machine).unwrap().commit().to_owned();
    let listing = repo(&machine).join("trees").join(format!("{commit}.json"));
    let whole = std::fs::read(&listing).unwrap();
    for cut in [0, whole.len() / 2] {
        std::fs::write(&listing, &whole[..cut]).unwrap();
        machine.set("HF_HUB_OFFLINE", "1");
        list(&machine).unwrap_err();
        machine.set("HF_HUB_OFFLINE", "0");
        list(&machine).unwrap();
        assert_eq!(std::fs::read(&listing).unwrap(), whole);
        machine.set("HF_HUB_OFFLINE", "1");
        assert_eq!(list(&machine).unwrap().files().count(), 2);
    }
}

#[test]
fn a_copy_of_a_model_file_that_links_no_blob_is_known_by_what_was_noted_of_it() {
    let hub = StubHub::start(&[("org/tok", StubRepo::new(&[("tokenizer.json", LINE)]))]);
    let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint()), ("HF_HUB_DISABLE_SYMLINKS", "1")]);
    let sources = machine.sources();
    let listing = sources.model("org/tok", "main").unwrap();
    let fetch = || sources.model_files(&listing, &["tokenizer.json"]).unwrap().join("tokenizer.json");
    let copy = fetch();
    assert!(copy.read_link().is_err() && !is_damaged_copy(&copy));
    std::fs::write(&copy, LINE.to_ascii_uppercase()).unwrap();
    assert!(is_damaged_copy(&copy));
    fetch();
    assert!(std::fs::read(&copy).unwrap() == LINE && !is_damaged_copy(&copy));
}
