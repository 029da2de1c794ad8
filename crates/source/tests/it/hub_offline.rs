//! What a cache of the Hub that holds a part of a repository says offline.

use aiperf_source::{Ask, Blame};
use aiperf_test_servers::{Answer, StubHub, StubRepo};

use crate::support::{Machine, ask};

const A: &[u8] = b"PAR1 a";
const B: &[u8] = b"PAR1 b, another";
const MANIFEST: &[u8] = b"{\"path\": \"d\", \"format\": \"mooncake_trace\"}";
const NOT_HERE: &str = "was not found: it is not in the cache and offline mode is on";

fn mooncake() -> Ask<'static> {
    Ask { format: Some("mooncake_trace"), ..ask() }
}

/// Two shards, with a manifest and without one.
fn hub() -> StubHub {
    StubHub::start(&[
        (
            "org/shards",
            StubRepo::new(&[("aiperf.json", MANIFEST), ("d/a.parquet", A), ("lfs:d/b.parquet", B)]),
        ),
        ("org/layout", StubRepo::new(&[("d/a.parquet", A), ("lfs:d/b.parquet", B)])),
    ])
}

fn offline(machine: &mut Machine) {
    machine.set("HF_HUB_OFFLINE", "1");
}

fn names(local: &aiperf_source::Local) -> Vec<&str> {
    local.files.iter().map(|file| file.name.as_str()).collect()
}

#[test]
fn one_file_that_was_fetched_alone_is_not_the_folder() {
    let hub = hub();
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    for repo in ["shards", "layout"] {
        machine.fetch(&format!("hf://org/{repo}/d/a.parquet"), &mooncake()).unwrap();
    }
    offline(&mut machine);
    for reference in ["hf://org/shards", "hf://org/layout", "hf://org/layout/d", "hf://org/shards/d"] {
        let error = machine.fetch(reference, &mooncake()).unwrap_err();
        assert!(error.to_string().contains(NOT_HERE), "{error}");
        assert_eq!(error.problem.blame(), Blame::Input);
    }
    // That file still is what it was.
    machine.fetch("hf://org/layout/d/a.parquet", &mooncake()).unwrap();
}

#[test]
fn a_fetch_of_a_folder_that_was_ended_is_not_the_folder() {
    let hub = hub();
    // The second file never comes.
    hub.fault(|request| request.target.contains("Signature=").then(|| Answer::status(500)));
    for repo in ["shards", "layout"] {
        let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
        let plan = machine.access(&format!("hf://org/{repo}"), &ask()).unwrap();
        let commit = plan.version.unwrap();
        for reference in [format!("hf://org/{repo}@{commit}"), format!("hf://org/{repo}")] {
            machine.fetch(&reference, &mooncake()).unwrap_err();
        }
        offline(&mut machine);
        let error = machine.fetch(&format!("hf://org/{repo}@{commit}"), &mooncake()).unwrap_err().to_string();
        assert!(error.contains("d/b.parquet") && error.contains(NOT_HERE), "{error}");
        machine.fetch(&format!("hf://org/{repo}"), &mooncake()).unwrap_err();
    }
}

#[test]
fn a_folder_that_was_fetched_whole_runs_offline_by_its_listing() {
    let hub = hub();
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    let online: Vec<_> = ["hf://org/shards", "hf://org/layout", "hf://org/layout/d"]
        .map(|it| machine.fetch(it, &mooncake()).unwrap())
        .into();
    offline(&mut machine);
    hub.clear_logs();
    for (reference, online) in
        [("hf://org/shards", &online[0]), ("hf://org/layout", &online[1]), ("hf://org/layout/d", &online[2])]
    {
        let local = machine.fetch(reference, &mooncake()).unwrap();
        assert_eq!((names(&local), &local.files), (vec!["a.parquet", "b.parquet"], &online.files));
    }
    assert!(hub.log().is_empty());
    assert!(
        !machine.notes().iter().any(|note| note.contains("no list of the files")),
        "{:?}",
        machine.notes()
    );
}

#[test]
fn a_snapshot_of_another_client_without_a_listing_is_taken_whole_with_a_warning() {
    let hub = hub();
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    machine.fetch("hf://org/layout", &mooncake()).unwrap();
    let repo = machine.hub_cache().join("datasets--org--layout");
    for ours in [".aiperf", "trees"] {
        std::fs::remove_dir_all(repo.join(ours)).unwrap();
    }
    offline(&mut machine);
    let local = machine.fetch("hf://org/layout", &mooncake()).unwrap();
    assert_eq!(names(&local), ["a.parquet", "b.parquet"]);
    let notes = machine.notes();
    let told = "the cache has no list of the files in datasets/org/layout: the 2 that are there";
    assert!(notes.iter().any(|note| note.contains(told)), "{notes:?}");
}

#[test]
fn a_manifest_that_is_not_in_the_cache_is_not_said_not_to_exist() {
    let manifest = b"{\"path\": \"x.jsonl\", \"format\": \"mooncake_trace\"}";
    let hub =
        StubHub::start(&[("org/team", StubRepo::new(&[("aiperf.json", manifest), ("x.jsonl", b"{}\n")]))]);
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    machine.fetch("hf://org/team/x.jsonl", &mooncake()).unwrap();
    offline(&mut machine);
    let missing = |machine: &Machine| machine.fetch("hf://org/team", &ask()).unwrap_err().to_string();
    let text = missing(&machine);
    assert!(text.contains("datasets/org/team/aiperf.json") && text.contains(NOT_HERE), "{text}");
    // Nor where another client put the file there.
    std::fs::remove_dir_all(machine.hub_cache().join("datasets--org--team/.aiperf")).unwrap();
    assert_eq!(missing(&machine), text);
}

/// A file in a snapshot with other bytes of the same length in its blob.
fn damage(machine: &Machine, name: &str, from: &str, to: &str) -> std::path::PathBuf {
    assert_eq!(from.len(), to.len());
    let snapshots = machine.hub_cache().join("datasets--org--good/snapshots");
    let commit = std::fs::read_dir(snapshots).unwrap().next().unwrap().unwrap().path();
    let path = commit.join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from));
    std::fs::write(path.canonicalize().unwrap(), text.replace(from, to)).unwrap();
    path
}

#[test]
fn a_cached_file_of_git_that_was_changed_is_fetched_again_and_refused_offline() {
    let line = b"{\"timestamp\": 0, \"input_length\": 12, \"output_length\": 5}\n";
    let manifest = b"{\"path\": \"x.jsonl\", \"format\": \"mooncake_trace\", \"block_size\": 16}";
    let hub = StubHub::start(&[("org/good", StubRepo::new(&[("aiperf.json", manifest), ("x.jsonl", line)]))]);
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    let first = machine.fetch("hf://org/good", &ask()).unwrap();
    damage(&machine, "x.jsonl", "h\": 5", "h\": 9");
    let again = machine.fetch("hf://org/good", &ask()).unwrap();
    assert_eq!((&again.files, std::fs::read(&again.files[0].path).unwrap()), (&first.files, line.to_vec()));
    let notes = machine.notes();
    assert!(
        notes.iter().any(|note| note.contains("is not what it should be: it is fetched again")),
        "{notes:?}"
    );
    // The manifest, too.
    damage(&machine, "aiperf.json", "16", "61");
    assert_eq!(machine.access("hf://org/good", &ask()).unwrap().block_size, Some(16));
    let path = damage(&machine, "x.jsonl", "h\": 5", "h\": 9");
    offline(&mut machine);
    let before = machine.notes().len();
    let error = machine.fetch("hf://org/good", &ask()).unwrap_err();
    let told = format!(
        "{} is damaged: its bytes are not those that were downloaded. Run once online",
        path.display()
    );
    assert!(error.to_string().contains(&told), "{error}");
    assert_eq!(error.problem.blame(), Blame::World);
    let said = machine.notes().split_off(before);
    assert!(!said.iter().any(|note| note.contains("fetched again")), "{said:?}");
    damage(&machine, "x.jsonl", "h\": 9", "h\": 5");
    machine.fetch("hf://org/good", &ask()).unwrap();
    let path = damage(&machine, "aiperf.json", "16", "61");
    let error = machine.access("hf://org/good", &ask()).unwrap_err().to_string();
    assert!(error.contains(&format!("{} is damaged", path.display())), "{error}");
}

#[test]
fn offline_the_first_digits_of_a_commit_that_is_here_are_enough() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("x.jsonl", b"{\"text\": \"a\"}\n")]))]);
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    let single = aiperf_source::Ask { format: Some("single_turn"), ..ask() };
    let commit = machine.fetch("hf://org/repo/x.jsonl", &single).unwrap().provenance.version.unwrap();
    offline(&mut machine);
    let short = format!("hf://org/repo@{}/x.jsonl", &commit[..8]);
    let local = machine.fetch(&short, &single).unwrap();
    assert_eq!(local.provenance.version.as_ref(), Some(&commit));
    let told = format!("{short} is taken for the cached commit {commit}");
    assert!(machine.notes().iter().any(|note| note.contains(&told)), "{:?}", machine.notes());
    // Fewer are the name of a branch, and others are none that is here.
    let other = if commit.starts_with('0') { "1" } else { "0" };
    for revision in [commit[..6].to_owned(), other.repeat(8)] {
        let error = machine.access(&format!("hf://org/repo@{revision}/x.jsonl"), &single).unwrap_err();
        assert!(error.to_string().contains(NOT_HERE), "{error}");
    }
}
