//! The cache of HTTPS files where something in it is not what was put there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_source::Ask;
use aiperf_test_servers::{Answer, Server};

use crate::support::{Machine, ask, write_at_the_same_time};

const LINE: &[u8] = b"{\"text\": \"hello\"}\n";

fn single() -> Ask<'static> {
    Ask { format: Some("single_turn"), ..ask() }
}

/// A file that was fetched: its server, its reference, and where it lies.
fn fetched() -> (Server, Machine, String, PathBuf) {
    let server = Server::start(|request| {
        let is_data = request.path() == "/x.jsonl";
        if is_data {
            Answer::file(request, &Arc::from(LINE)).with("ETag", "\"v1\"")
        } else {
            Answer::status(404)
        }
    });
    let machine = Machine::new(&[]);
    let reference = format!("{}/x.jsonl", server.url());
    let local = machine.fetch(&reference, &single()).unwrap();
    let path = local.files[0].path.clone();
    (server, machine, reference, path)
}

fn refused(machine: &Machine, reference: &str) -> String {
    machine.fetch(reference, &single()).unwrap_err().to_string()
}

#[test]
fn offline_a_damaged_file_is_called_that_and_not_said_to_be_fetched_again() {
    let (_server, mut machine, reference, path) = fetched();
    std::fs::write(&path, LINE.to_ascii_uppercase()).unwrap();
    // Written at another time than the record says.
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)).unwrap();
    machine.set("HF_HUB_OFFLINE", "1");
    let text = refused(&machine, &reference);
    assert!(text.contains(&format!("{} is damaged", path.display())), "{text}");
    assert!(!machine.notes().iter().any(|note| note.contains("fetched again")), "{:?}", machine.notes());
}

#[test]
fn what_lies_in_the_place_of_a_cached_file_is_named() {
    let (_server, mut machine, reference, path) = fetched();
    let in_its_place = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    };
    in_its_place(&path);
    let told =
        format!("cannot read {}: it is a directory. Check its permissions, or delete it", path.display());
    let text = refused(&machine, &reference);
    assert!(text.contains(&told), "{text}");
    machine.set("HF_HUB_OFFLINE", "1");
    let text = refused(&machine, &reference);
    assert!(text.contains(&told), "{text}");
    let record = path.parent().unwrap().parent().unwrap().join("entry.json");
    in_its_place(&record);
    let text = refused(&machine, &reference);
    assert!(text.contains(&format!("cannot read {}: it is a directory", record.display())), "{text}");
}

/// The record of the one file that is in the cache.
fn record(path: &Path) -> PathBuf {
    path.ancestors().map(|folder| folder.join("entry.json")).find(|entry| entry.exists()).unwrap()
}

#[test]
fn a_cached_file_that_was_altered_and_kept_length_and_time_is_fetched_again() {
    let (server, mut machine, reference, path) = fetched();
    let sha256 = machine.fetch(&reference, &single()).unwrap().files[0].sha256.clone();
    write_at_the_same_time(&path, &LINE.to_ascii_uppercase());
    let again = machine.fetch(&reference, &single()).unwrap();
    assert_eq!((std::fs::read(&path).unwrap().as_slice(), &again.files[0].sha256), (LINE, &sha256));
    write_at_the_same_time(&path, &LINE.to_ascii_uppercase());
    machine.set("HF_HUB_OFFLINE", "1");
    let text = refused(&machine, &reference);
    assert!(text.contains(&format!("{} is damaged", path.display())), "{text}");
    // The same bytes are read once, and their times noted, without the source, too.
    write_at_the_same_time(&path, LINE);
    let before = std::fs::read_to_string(record(&path)).unwrap();
    server.clear_log();
    machine.fetch(&reference, &single()).unwrap();
    let noted = std::fs::read_to_string(record(&path)).unwrap();
    assert!(noted != before && server.log().is_empty(), "{before} {noted}");
    machine.fetch(&reference, &single()).unwrap();
    assert_eq!(std::fs::read_to_string(record(&path)).unwrap(), noted);
}

#[test]
fn a_record_of_an_earlier_version_is_checked_once() {
    let (server, machine, reference, path) = fetched();
    let old = || {
        let text = std::fs::read_to_string(record(&path)).unwrap();
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["files"][0].as_object_mut().unwrap().remove("changed").unwrap();
        std::fs::write(record(&path), value.to_string()).unwrap();
    };
    old();
    server.clear_log();
    machine.fetch(&reference, &single()).unwrap();
    assert!(!server.log().iter().any(|request| request.method == "GET" && request.path() == "/x.jsonl"));
    assert!(std::fs::read_to_string(record(&path)).unwrap().contains("\"changed\":"));
    old();
    write_at_the_same_time(&path, &LINE.to_ascii_uppercase());
    machine.fetch(&reference, &single()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), LINE);
}

#[test]
fn a_cache_that_cannot_be_entered_is_not_said_to_be_empty() {
    use std::os::unix::fs::symlink;

    let (_server, mut machine, reference, _) = fetched();
    let hub = aiperf_test_servers::StubHub::start(&[(
        "org/repo",
        aiperf_test_servers::StubRepo::new(&[("x.jsonl", LINE)]),
    )]);
    machine.set("HF_ENDPOINT", &hub.endpoint());
    machine.fetch("hf://org/repo/x.jsonl", &single()).unwrap();
    let remote = machine.home.path().join(".cache/aiperf/remote/v1");
    let repo = machine.hub_cache().join("datasets--org--repo");
    for folder in [&remote, &repo] {
        // Root enters everything: a link that leads to itself keeps it out as well.
        std::fs::rename(folder, folder.with_extension("away")).unwrap();
        symlink(folder, folder).unwrap();
    }
    for (reference, folder, variable) in [
        (reference.as_str(), &remote, "AIPERF_DATASET_REMOTE_CACHE_DIR"),
        ("hf://org/repo/x.jsonl", &repo, "HF_HUB_CACHE"),
    ] {
        for offline in ["1", "0"] {
            machine.set("HF_HUB_OFFLINE", offline);
            let text = refused(&machine, reference);
            assert!(text.contains(&format!("cannot read {}: ", folder.display())), "{text}");
            let fix = format!("Check its permissions, or set {variable} to another directory.");
            assert!(text.ends_with(&fix), "{text}");
        }
    }
}

#[test]
fn offline_a_file_that_was_cut_is_called_damaged_and_not_missing() {
    let (_server, mut machine, reference, path) = fetched();
    std::fs::write(&path, &LINE[..9]).unwrap();
    machine.set("HF_HUB_OFFLINE", "1");
    let text = refused(&machine, &reference);
    assert!(text.contains(&format!("{} is damaged", path.display())), "{text}");
}
