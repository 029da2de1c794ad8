//! What happens to bytes on their way, who is told to be at fault, and what a person sees meanwhile.

use std::path::Path;
use std::sync::{Arc, Mutex};

use aiperf_source::{Ask, Blame, Event, Local, SourceError};
use aiperf_test_servers::{Answer, Request, Server, StubHub, StubRepo, StubStore};
use serde_json::json;

use crate::faults::{hub_with, with};
use crate::support::{Machine, ask};

const LINES: &[u8] = b"{\"timestamp\": 0, \"input_length\": 12, \"output_length\": 5, \"hash_ids\": [0]}\n";

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_a_killed_download_left_goes_with_the_next_one_and_that_of_others_stays() {
    let (_hub, machine) = hub_with(&[("lfs:x.jsonl", LINES)]);
    let fetch = || machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap();
    let etag = fetch().files[0].sha256.clone();
    let blobs = machine.hub_cache().join("datasets--org--repo/blobs");
    std::fs::remove_file(blobs.join(&etag)).unwrap();
    let random = "0123456789abcdef";
    // The second is that of a run that may go on, the third is one that the Python client goes on with.
    let others = [format!("{}.{random}.incomplete", "b".repeat(64)), format!("{etag}.incomplete")];
    let mine = format!("{etag}.{random}.incomplete");
    for name in others.iter().chain([&mine]) {
        std::fs::write(blobs.join(name), "half").unwrap();
    }
    // However old, the latter is none of ours.
    let python = std::fs::File::options().write(true).open(blobs.join(&others[1])).unwrap();
    python.set_modified(std::time::UNIX_EPOCH).unwrap();
    fetch();
    let mut left = vec![etag.clone(), others[0].clone(), others[1].clone()];
    left.sort();
    assert_eq!(names(&blobs), left);

    let server = Server::start(|request| match request.path() {
        "/x.jsonl" => Answer::file(request, &LINES.into()).with("ETag", "\"a\""),
        _ => Answer::status(404),
    });
    let url = format!("{}/x.jsonl", server.url());
    let fetch = || machine.fetch(&url, &with("single_turn")).unwrap();
    fetch();
    let v1 = machine.home.path().join(".cache/aiperf/remote/v1");
    let lock = names(&v1.join("locks")).pop().unwrap();
    let key = lock.strip_suffix(".lock").unwrap();
    std::fs::remove_dir_all(v1.join("https")).unwrap();
    let other = format!("{}.{random}.incomplete", "b".repeat(64));
    for name in [&other, &format!("{key}.{random}.incomplete")] {
        std::fs::write(v1.join("tmp").join(name), "half").unwrap();
    }
    fetch();
    assert_eq!(names(&v1.join("tmp")), [other]);
}

/// Fetches a file of the Hub whose storage answers the first `times` requests otherwise.
fn from_storage(
    times: usize,
    answer: impl Fn(&Request) -> Answer + Send + 'static,
) -> (StubHub, Machine, Result<Local, SourceError>) {
    let digest = {
        let (_hub, machine) = hub_with(&[("lfs:x.jsonl", LINES)]);
        machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap().files[0].sha256.clone()
    };
    let manifest = json!({"path": "x.jsonl", "format": "single_turn", "sha256": digest}).to_string();
    let (hub, machine) = hub_with(&[("aiperf.json", manifest.as_bytes()), ("lfs:x.jsonl", LINES)]);
    let mut left = times;
    hub.fault(move |request| {
        let is_data = request.method == "GET" && request.target.contains("Signature=");
        if !is_data || left == 0 {
            return None;
        }
        left -= 1;
        Some(answer(request))
    });
    let fetched = machine.fetch("hf://org/repo", &ask());
    (hub, machine, fetched)
}

#[test]
fn bytes_that_are_not_those_of_the_hub_are_no_fault_of_the_publisher() {
    let flipped = |request: &Request| {
        let mut bytes = LINES.to_vec();
        bytes[3] ^= 1;
        Answer::file(request, &bytes.into())
    };
    let (hub, _machine, fetched) = from_storage(1, flipped);
    let text = fetched.unwrap_err().to_string();
    assert!(
        text.contains("sha256 does not match: x.jsonl has ") && text.contains("its source says"),
        "{text}"
    );
    assert!(text.contains("Run again") && !text.contains("publisher"), "{text}");
    assert_eq!(hub.storage_log().len(), 1, "a wrong digest is not retried");
    // Where the file is what the Hub has, the manifest is at fault.
    let manifest = json!({"path": "x.jsonl", "format": "single_turn", "sha256": "a".repeat(64)}).to_string();
    let (_hub, machine) = hub_with(&[("aiperf.json", manifest.as_bytes()), ("lfs:x.jsonl", LINES)]);
    let text = machine.fetch("hf://org/repo", &ask()).unwrap_err().to_string();
    assert!(text.contains("aiperf.json says aaaaaaaaaaaa. Tell the publisher"), "{text}");
}

#[test]
fn what_a_storage_sends_in_place_of_a_file_is_no_new_version_of_it() {
    type Given = fn(&Request) -> Answer;
    const PAGE: &[u8] = b"<html>sign in</html>";
    let cases: [(&str, Given); 4] = [
        ("20 bytes (an HTML page)", |_| {
            Answer::status(200).with("Content-Type", "Text/HTML; charset=utf-8").body(PAGE)
        }),
        ("an HTML page", |_| Answer {
            without_length: true,
            ..Answer::status(200).with("Content-Type", "text/html").body(PAGE)
        }),
        ("0 bytes", |_| Answer::status(200)),
        ("3 bytes", |_| Answer::status(200).body(*b"{}\n")),
    ];
    for (sent, given) in cases {
        let (hub, machine, fetched) = from_storage(usize::MAX, given);
        let error = fetched.unwrap_err();
        let told =
            format!("sent {sent} in place of the {} bytes of x.jsonl at this commit. Run again", LINES.len());
        let text = error.to_string();
        assert!(text.contains("the storage at localhost:") && text.contains(&told), "{text}");
        assert_eq!((error.problem.blame(), hub.storage_log().len()), (Blame::World, 3));
        let blobs = machine.hub_cache().join("datasets--org--repo/blobs");
        assert_eq!(names(&blobs).len(), 1, "the manifest");
        // What happens once is put right.
        let (hub, _machine, fetched) = from_storage(1, given);
        assert_eq!(std::fs::read(&fetched.unwrap().files[0].path).unwrap(), LINES);
        assert_eq!(hub.storage_log().len(), 2);
    }
}

/// Cuts the first transfer, and says that the place to go on from does not exist.
fn cuts_once_and_knows_no_ranges(
    bytes: &Arc<[u8]>,
) -> impl Fn(&Request) -> Option<Answer> + Send + Sync + use<> {
    let (bytes, cut) = (Arc::clone(bytes), std::sync::atomic::AtomicBool::new(false));
    move |request| {
        if request.range().is_some_and(|(start, _)| start > 0) {
            return Some(Answer::status(416).with("Content-Range", format!("bytes */{}", bytes.len())));
        }
        let is_first = request.range().is_none() && !cut.swap(true, std::sync::atomic::Ordering::Relaxed);
        is_first.then(|| Answer { cut_after: Some(40_000), ..Answer::file(request, &bytes) })
    }
}

#[test]
fn a_transfer_that_cannot_go_on_starts_again_from_the_first_byte() {
    let bytes: Arc<[u8]> = LINES.repeat(1_000).into();
    let single = with("single_turn");
    let check = |machine: &Machine, reference: &str| {
        let local = machine.fetch(reference, &single).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(std::fs::read(&local.files[0].path).unwrap(), *bytes, "{reference}");
    };
    for name in ["lfs:x.jsonl", "x.jsonl"] {
        let (hub, machine) = hub_with(&[(name, &bytes)]);
        let fault = cuts_once_and_knows_no_ranges(&bytes);
        let is_large = name.starts_with("lfs:");
        hub.fault(move |request| {
            let of_file = if is_large { "Signature=" } else { "/resolve/" };
            let is_data = request.method == "GET" && request.target.contains(of_file);
            // The Hub itself tells the commit.
            let commit = request.path().split('/').nth(5).unwrap_or_default().to_owned();
            is_data.then(|| fault(request)).flatten().map(|answer| answer.with("X-Repo-Commit", commit))
        });
        check(&machine, "hf://org/repo/x.jsonl");
        let ranges = hub.storage_log().into_iter().chain(hub.log());
        assert!(ranges.filter_map(|request| request.range()).any(|(start, _)| start > 0), "it was tried");
    }
    let fault = cuts_once_and_knows_no_ranges(&bytes);
    let file = Arc::clone(&bytes);
    let server = Server::start(move |request| match request.path() {
        "/x.jsonl" if request.method == "HEAD" => Answer::file(request, &file).with("ETag", "\"a\""),
        "/x.jsonl" => fault(request).unwrap_or_else(|| Answer::file(request, &file)).with("ETag", "\"a\""),
        _ => Answer::status(404),
    });
    check(&Machine::new(&[]), &format!("{}/x.jsonl", server.url()));
    let store = StubStore::start(&[("x.jsonl", &bytes)]);
    let fault = cuts_once_and_knows_no_ranges(&bytes);
    let etag = aiperf_test_servers::s3::etag(&bytes);
    store.fault(move |request| {
        let is_data = request.method == "GET" && request.path().ends_with("/x.jsonl");
        is_data.then(|| fault(request)).flatten().map(|answer| answer.with("ETag", etag.clone()))
    });
    check(&crate::s3::machine(&store), "s3://traces/x.jsonl");
}

/// What is told of a transfer.
fn told(machine: &Machine) -> Vec<Event> {
    let events = machine.events.lock().unwrap();
    events.iter().filter(|event| !matches!(event, Event::Note { .. })).cloned().collect()
}

#[test]
fn files_that_are_small_are_told_one_by_one() {
    let store = StubStore::start(&[("p/aiperf.json", br#"{"path": "d", "format": "raw_payload"}"#)]);
    for name in ["a", "b", "c"] {
        store.put(&format!("p/d/{name}.json"), b"{\"a\": 1}");
    }
    let machine = crate::s3::machine(&store);
    let local = machine.fetch("s3://traces/p/", &ask()).unwrap();
    let progress = |done| Event::Progress { done };
    let start = Event::Start { files: 3, bytes: Some(24) };
    assert_eq!(told(&machine), [start, progress(8), progress(16), progress(24), Event::End]);
    // One that is fetched again is announced like any other, from its first byte on.
    machine.events.lock().unwrap().clear();
    std::fs::write(&local.files[1].path, "{\"a\": 10}").unwrap();
    machine.fetch("s3://traces/p/", &ask()).unwrap();
    assert_eq!(told(&machine), [Event::Start { files: 1, bytes: Some(8) }, progress(8), Event::End]);
    machine.events.lock().unwrap().clear();
    machine.fetch("s3://traces/p/", &ask()).unwrap();
    assert_eq!(told(&machine), []);
}

/// Returns once somebody waits for the download of another.
fn until_one_waits(events: &Mutex<Vec<Event>>) {
    let waits = |event: &Event| matches!(event, Event::Note { text, .. } if text.starts_with("waiting for"));
    while !events.lock().unwrap().iter().any(waits) {
        std::thread::yield_now();
    }
}

/// As a fault of a Hub: no file is sent before somebody waits for it.
fn sends_when_one_waits(machine: &Machine) -> impl FnMut(&Request) -> Option<Answer> + Send + use<> {
    let events = Arc::clone(&machine.events);
    move |request| {
        if request.method == "GET" && !request.path().starts_with("/api/") {
            until_one_waits(&events);
        }
        None
    }
}

/// Does it four times at once; what was said to start meanwhile.
fn starts_of_four(machine: &Machine, work: impl Fn() + Sync) -> Vec<Event> {
    machine.events.lock().unwrap().clear();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(&work);
        }
    });
    told(machine).into_iter().filter(|event| matches!(event, Event::Start { .. })).collect()
}

#[test]
fn who_waits_for_another_download_does_not_say_that_it_downloads() {
    let one = [Event::Start { files: 1, bytes: Some(LINES.len() as u64) }];
    let (hub, machine) = hub_with(&[("lfs:x.jsonl", LINES), ("tokenizer.json", LINES)]);
    let events = Arc::clone(&machine.events);
    let server = Server::start(move |request| match request.path() {
        "/x.jsonl" => {
            if request.method == "GET" {
                until_one_waits(&events);
            }
            Answer::file(request, &LINES.into()).with("ETag", "\"a\"")
        }
        _ => Answer::status(404),
    });
    let plan = |reference: &str| machine.access(reference, &with("single_turn")).unwrap();
    let plans = [plan(&format!("{}/x.jsonl", server.url())), plan("hf://org/repo/x.jsonl")];
    let listing = machine.sources().model("org/repo", "main").unwrap();
    hub.fault(sends_when_one_waits(&machine));
    for plan in plans {
        let starts = starts_of_four(&machine, || _ = machine.sources().fetch(&plan).unwrap());
        assert_eq!(starts, one);
    }
    let starts = starts_of_four(&machine, || {
        machine.sources().model_files(&listing, &["tokenizer.json"]).unwrap();
    });
    assert_eq!(starts, one);
}

#[test]
fn a_transfer_that_fails_has_an_end_for_who_watches_it() {
    let (hub, machine) = hub_with(&[("lfs:x.jsonl", LINES), ("tokenizer.json", LINES)]);
    hub.fault(|request| {
        let is_file = request.method == "GET" && !request.path().starts_with("/api/");
        is_file.then(|| Answer { cut_after: Some(10), ..Answer::file(request, &LINES.into()) })
    });
    let ends = || {
        let told = told(&machine);
        let last = told.iter().rposition(|event| matches!(event, Event::Start { .. }));
        assert!(last.is_some() && told.last() == Some(&Event::End), "{told:?}");
        machine.events.lock().unwrap().clear();
    };
    machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap_err();
    ends();
    let sources = machine.sources();
    let listing = sources.model("org/repo", "main").unwrap();
    sources.model_files(&listing, &["tokenizer.json"]).unwrap_err();
    ends();
}

#[test]
fn a_token_that_a_hub_repeats_is_not_shown() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("x.jsonl", LINES)]))]);
    hub.fault(|request| {
        let sent = request.header("authorization")?.strip_prefix("Bearer ")?.to_owned();
        let other = "hf_canaryabcdefghijklmnopqrstuvw";
        // The second time it stands where what is quoted ends.
        let message = format!("token {sent} ({other}) is expired: {} {sent}", "x".repeat(130));
        Some(Answer::status(401).with("X-Error-Message", message))
    });
    for token in ["hf_canaryZYXWVUTSRQPONMLKJIHGFEDCBA", "canary-of-a-mirror"] {
        let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint()), ("HF_TOKEN", token)]);
        let text = machine.access("hf://org/repo/x.jsonl", &with("single_turn")).unwrap_err().to_string();
        assert!(text.contains(": token <redacted> (<redacted>) is expired"), "{text}");
        assert!(!text.contains("canary"), "{text}");
    }
}

#[test]
fn a_token_that_was_refused_is_said_to_be_also_of_a_public_repository() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("x.jsonl", LINES)]))]);
    hub.fault(|request| {
        let message = "User Access Token \"ci\" is expired";
        request.header("authorization").map(|_| Answer::status(401).with("X-Error-Message", message))
    });
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint()), ("HF_TOKEN", "hf_good")]);
    let single: Ask<'_> = with("single_turn");
    let text = machine.access("hf://org/repo/x.jsonl", &single).unwrap_err().to_string();
    let told = "access was denied: the Hub rejected the token for datasets/org/repo: User Access Token \"ci\" is \
                expired. Set HF_TOKEN to a valid token, or unset it";
    assert!(text.contains(told), "{text}");
    machine.set("HF_TOKEN", "");
    machine.access("hf://org/repo/x.jsonl", &single).unwrap();
}

#[test]
fn a_token_file_that_cannot_be_read_is_named() {
    let hub =
        StubHub::start(&[("org/repo", StubRepo { private: true, ..StubRepo::new(&[("x.jsonl", LINES)]) })]);
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    let folder = machine.home.path().to_str().unwrap().to_owned();
    machine.set("HF_TOKEN_PATH", &folder);
    let text = machine.access("hf://org/repo/x.jsonl", &with("single_turn")).unwrap_err().to_string();
    let told = format!("HF_TOKEN_PATH names {folder}: ");
    assert!(text.contains("needs a token in HF_TOKEN, and ") && text.contains(&told), "{text}");
    let warned = format!("the Hub is asked without a token: {told}");
    assert!(machine.notes().iter().any(|note| note.starts_with(&warned)), "{:?}", machine.notes());
}
