//! The cache of HTTPS files where something in it is not what was put there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_source::Ask;
use aiperf_test_servers::{Answer, Server};

use crate::support::{Machine, ask};

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
