//! What publishers declare, and what caches keep.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aiperf_source::{Ask, Blame, Reference};
use aiperf_test_servers::s3::etag;
use aiperf_test_servers::{Answer, Request, Server, StubHub, StubRepo, StubStore};
use serde_json::json;

use crate::support::{Machine, ask};

const LINES: &[u8] = b"{\"timestamp\": 0, \"input_length\": 12, \"output_length\": 5, \"hash_ids\": [0]}\n";

fn with(format: &'static str) -> Ask<'static> {
    Ask { format: Some(format), ..ask() }
}

fn published(manifest: &serde_json::Value) -> (StubHub, Machine) {
    let text = manifest.to_string();
    let files: &[(&str, &[u8])] = &[("aiperf.json", text.as_bytes()), ("lfs:x.jsonl", LINES)];
    let hub = StubHub::start(&[("org/repo", StubRepo::new(files))]);
    let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    (hub, machine)
}

#[test]
fn a_block_size_for_a_format_without_blocks_is_told_and_dropped() {
    for (format, used) in [("single_turn", None), ("mooncake_trace", Some(64))] {
        let (_hub, machine) = published(&json!({"path": "x.jsonl", "format": format, "block_size": 64}));
        let plan = machine.access("hf://org/repo", &ask()).unwrap();
        assert_eq!(plan.block_size, used);
        let told = machine.notes().iter().filter(|note| note.contains("block_size 64 is ignored")).count();
        assert_eq!(told, usize::from(used.is_none()), "{:?}", machine.notes());
    }
}

#[test]
fn a_context_that_is_larger_than_the_limit_is_a_warning_with_both_numbers() {
    let requires = json!({"max_context_tokens": 9_000});
    for (given, warns) in [(None, false), (Some(9_000), false), (Some(8_999), true)] {
        let (_hub, machine) =
            published(&json!({"path": "x.jsonl", "format": "single_turn", "requires": requires}));
        machine.fetch("hf://org/repo", &Ask { max_context_length: given, ..ask() }).unwrap();
        let notes = machine.notes();
        let told = notes.iter().filter(|note| note.contains("9000 tokens") && note.contains("8999")).count();
        assert_eq!(told, usize::from(warns), "{notes:?}");
    }
}

#[test]
fn a_graph_needs_an_end_before_anything_is_downloaded() {
    let (hub, machine) = published(&json!({"path": "x.jsonl", "format": "dag_jsonl"}));
    // The flag alone tells: nobody is asked.
    let error = machine.access("hf://org/repo/x.jsonl", &with("dag_jsonl")).unwrap_err();
    assert!(
        error.to_string().contains("--conversation-num, --request-count or --benchmark-duration"),
        "{error}"
    );
    assert!(hub.log().is_empty());
    // Else the manifest.
    assert_eq!(machine.access("hf://org/repo", &ask()).unwrap_err().problem, error.problem);
    assert!(hub.storage_log().is_empty());
    assert!(!hub.log().iter().any(|request| request.path().contains("/tree/")));
    machine.access("hf://org/repo", &Ask { has_stop: true, ..ask() }).unwrap();
}

#[test]
fn requirements_are_those_of_the_run() {
    for (requires, endpoint, works) in [
        (json!({"endpoint_types": ["chat", "some-later-type"]}), Some("chat"), true),
        (json!({"endpoint_types": ["image_generation"]}), Some("image-generation"), true),
        (json!({"endpoint_types": ["completions"]}), Some("chat"), false),
        // Nothing is said: shown, not checked.
        (json!({"endpoint_types": ["completions"]}), None, true),
        (json!({"aiperf": ">=0.14,<1.0"}), Some("chat"), true),
        (json!({"aiperf": "==0.13.*"}), Some("chat"), false),
    ] {
        let (hub, machine) =
            published(&json!({"path": "x.jsonl", "format": "single-turn", "requires": requires}));
        let result = machine.access("hf://org/repo", &Ask { endpoint_type: endpoint, ..ask() });
        assert_eq!(result.is_ok(), works, "{requires} {result:?}");
        assert!(hub.storage_log().is_empty());
    }
}

#[test]
fn a_manifest_folder_is_fetched_by_its_split_on_the_hub_and_whole_from_s3() {
    let manifest = json!({"path": "data/", "format": "single_turn"}).to_string();
    let files: &[(&str, &[u8])] = &[
        ("aiperf.json", manifest.as_bytes()),
        ("data/train-00000-of-00001.parquet", b"PAR1"),
        ("data/test-00000-of-00001.parquet", b"PAR1"),
        ("data/_SUCCESS", b"x"),
    ];
    let hub = StubHub::start(&[("org/repo", StubRepo::new(files))]);
    let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    let names = |plan: &aiperf_source::Plan| -> Vec<String> {
        plan.files().map(|(name, _)| name.to_owned()).collect()
    };
    let plan = machine.access("hf://org/repo", &ask()).unwrap();
    assert_eq!(names(&plan), ["train-00000-of-00001.parquet"]);
    assert_eq!(plan.dropped, ["test"]);
    assert!(machine.notes().iter().any(|note| note.contains("the split train is read; not read: test")));
    let store = StubStore::start(&[]);
    for (name, bytes) in files {
        store.put(&format!("p/{name}"), bytes);
    }
    let plan = crate::s3::machine(&store).access("s3://traces/p/", &ask()).unwrap();
    // Whether the run has a schedule is decided by the first record of the first.
    assert_eq!(names(&plan), ["train-00000-of-00001.parquet", "test-00000-of-00001.parquet"]);
    assert_eq!(plan.dropped, ["test"]);
}

#[test]
fn shards_in_folders_below_the_shards_are_said_to_be_left_out() {
    let manifest = json!({"path": "data", "format": "single_turn"}).to_string();
    let files: &[(&str, &[u8])] = &[
        ("aiperf.json", manifest.as_bytes()),
        ("data/a.parquet", b"PAR1"),
        ("data/more/b.parquet", b"PAR1"),
        ("data/more/c.parquet", b"PAR1"),
        ("data/_old/d.parquet", b"PAR1"),
        ("data/texts/e.txt", b"x"),
    ];
    let hub = StubHub::start(&[("org/repo", StubRepo::new(files))]);
    let on_hub = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    let store = StubStore::start(&[]);
    for (name, bytes) in files {
        store.put(&format!("p/{name}"), bytes);
    }
    for (machine, reference) in [(on_hub, "hf://org/repo"), (crate::s3::machine(&store), "s3://traces/p/")] {
        machine.access(reference, &ask()).unwrap();
        let notes = machine.notes();
        assert!(
            notes.iter().any(|note| note.ends_with("not read, they are below the shards: more")),
            "{notes:?}"
        );
    }
}

fn sha256(text: &str) -> String {
    use std::fmt::Write as _;

    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[test]
fn a_folder_has_the_digests_of_its_listing_and_of_its_files() {
    let manifest = r#"{"path": "d", "format": "raw_payload"}"#;
    let files: [(&str, &[u8]); 3] =
        [("p/aiperf.json", manifest.as_bytes()), ("p/d/a.json", b"{}"), ("p/d/b.json", b"[]")];
    let store = StubStore::start(&files);
    let local = crate::s3::machine(&store).fetch("s3://traces/p/", &ask()).unwrap();
    // The version: key, tag and size of everything, sorted.
    let listed = files.map(|(key, bytes)| format!("{key}\0{}\0{}\n", etag(bytes), bytes.len())).concat();
    assert_eq!(local.provenance.version, Some(format!("listing:{}", sha256(&listed))));
    // What was read: the path and digest of each file, sorted.
    let read = files[1..]
        .iter()
        .map(|(key, bytes)| format!("{key}\0{}\n", sha256(std::str::from_utf8(bytes).unwrap())));
    let read = sha256(&read.collect::<String>());
    assert_eq!(local.provenance.sha256(), read);
    let told = format!("2 file(s), 4 bytes, sha256 {})", &read[..12]);
    assert!(local.provenance.lines()[0].ends_with(&told), "{:?}", local.provenance.lines());
}

#[test]
fn a_file_that_is_too_large_for_plain_http_is_refused_before_it_is_asked_for() {
    for (size, refused) in [(50_000_000_001_u64, true), (50_000_000_000, false)] {
        let (hub, machine) = published(&json!({"path": "x.jsonl", "format": "single_turn"}));
        hub.fault(move |request| {
            let item = json!([{
                "type": "file", "path": "x.jsonl", "size": size, "oid": "a".repeat(40), "xetHash": "b".repeat(64),
            }]);
            request.path().contains("/paths-info/").then(|| Answer::json(&item))
        });
        let error = machine.access("hf://org/repo/x.jsonl", &with("single_turn")).unwrap_err();
        let told =
            error.to_string().contains("x.jsonl is larger than the 50 GB that the Hub serves over HTTP");
        assert_eq!(told, refused, "{error}");
        let asked = hub.log().iter().any(|request| request.path().contains("/resolve/"));
        assert_ne!(asked, refused);
    }
}

fn tagged() -> (Server, String) {
    let server = Server::start(|request| match request.path() {
        "/x.jsonl" => Answer::file(request, &LINES.into()).with("ETag", "\"a\""),
        _ => Answer::status(404),
    });
    let url = format!("{}/x.jsonl", server.url());
    (server, url)
}

#[test]
fn a_lock_that_is_held_for_too_long_is_named() {
    let (server, url) = tagged();
    let mut machine = Machine::new(&[]);
    let reference = Reference::parse(&url).unwrap();
    machine.patience = |patience| patience.lock = Duration::from_millis(300);
    let sources = machine.sources();
    let plan = sources.access(&reference, &with("single_turn")).unwrap();
    // The first fetch shows which lock it is.
    sources.fetch(&plan).unwrap();
    let v1 = machine.home.path().join(".cache/aiperf/remote/v1");
    let locks: Vec<_> =
        std::fs::read_dir(v1.join("locks")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(locks.len(), 1);
    let held = std::fs::File::open(&locks[0]).unwrap();
    held.lock().unwrap();
    // A hit needs no lock.
    sources.fetch(&plan).unwrap();
    std::fs::remove_dir_all(v1.join("https")).unwrap();
    server.clear_log();
    let error = sources.fetch(&plan).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("another process holds {}", locks[0].display())), "{text}");
    assert!(
        text.contains("a lock ends with the process that holds it") && error.problem.blame() == Blame::World,
        "{text}"
    );
    assert!(server.log().is_empty());
    assert!(machine.notes().iter().any(|note| note.contains("waiting for another process that holds")));
    // Deleted: whoever held it holds a file that is nobody's lock any more.
    std::fs::remove_file(&locks[0]).unwrap();
    sources.fetch(&plan).unwrap();
}

#[test]
fn the_cache_is_for_one_user_and_has_its_layout() {
    let (_server, url) = tagged();
    let machine = Machine::new(&[]);
    machine.fetch(&url, &with("single_turn")).unwrap();
    let root = machine.home.path().join(".cache/aiperf/remote");
    let mut folders = vec![root.clone()];
    let mut seen = Vec::new();
    while let Some(folder) = folders.pop() {
        let mode = folder.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            }
            seen.push(entry.path().strip_prefix(&root).unwrap().display().to_string());
        }
    }
    let has = |start: &str, end: &str| seen.iter().any(|path| path.starts_with(start) && path.ends_with(end));
    for (start, end) in [
        ("v1/https/", "/files/x.jsonl"),
        ("v1/https/", "/entry.json"),
        ("v1/refs/", ".json"),
        ("v1/locks/", ".lock"),
    ] {
        assert!(has(start, end), "{start} {end}: {seen:?}");
    }
    assert!(!has("v1/https", "partial.jsonl"), "{seen:?}");
}

#[test]
fn a_hit_is_hashed_where_the_publisher_declares_a_digest_and_put_right_once() {
    let digest = "aa".repeat(32);
    // The true digest of the lines, as the cache records it.
    let (_server, url) = tagged();
    let probe = Machine::new(&[]);
    let sha256 = probe.fetch(&url, &with("single_turn")).unwrap().files[0].sha256.clone();
    for (declared, rehashed) in [(Some(sha256.clone()), true), (None, false)] {
        let mut manifest = json!({"path": "x.jsonl", "format": "single_turn"});
        if let Some(sha256) = &declared {
            manifest["sha256"] = json!(sha256.to_uppercase());
        }
        let store =
            StubStore::start(&[("p/aiperf.json", manifest.to_string().as_bytes()), ("p/x.jsonl", LINES)]);
        let machine = crate::s3::machine(&store);
        let local = machine.fetch("s3://traces/p/", &ask()).unwrap();
        let other = vec![b'x'; LINES.len()];
        // As if it had not been touched: neither length nor time tell.
        let time = std::fs::metadata(&local.files[0].path).unwrap().modified().unwrap();
        std::fs::write(&local.files[0].path, &other).unwrap();
        let file = std::fs::File::options().write(true).open(&local.files[0].path).unwrap();
        file.set_modified(time).unwrap();
        note_change(&local.files[0].path);
        let again = machine.fetch("s3://traces/p/", &ask()).unwrap();
        let bytes = std::fs::read(&again.files[0].path).unwrap();
        assert_eq!(bytes == LINES, rehashed);
        let warned =
            machine.notes().iter().any(|note| note.contains("is not what it should be: it is fetched again"));
        assert_eq!(warned, rehashed);
        // Another length is seen without a digest.
        std::fs::write(&local.files[0].path, b"short").unwrap();
        machine.fetch("s3://traces/p/", &ask()).unwrap();
        assert_eq!(std::fs::read(&local.files[0].path).unwrap(), LINES);
    }
    // A source that has changed under a strong tag, and still does not keep the promise.
    let manifest = json!({"path": "x.jsonl", "format": "single_turn", "sha256": digest}).to_string();
    let store = StubStore::start(&[("p/aiperf.json", manifest.as_bytes()), ("p/x.jsonl", LINES)]);
    let error = crate::s3::machine(&store).fetch("s3://traces/p/", &ask()).unwrap_err();
    assert!(error.to_string().contains("sha256 does not match") && error.problem.blame() == Blame::Input);
}

/// Puts the time of the last change into the record, as if the file had always been so.
fn note_change(path: &Path) {
    let entry =
        path.ancestors().map(|folder| folder.join("entry.json")).find(|entry| entry.exists()).unwrap();
    let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&entry).unwrap()).unwrap();
    let found = path.metadata().unwrap();
    record["files"][0]["changed"] = json!(found.ctime() * 1_000_000_000 + found.ctime_nsec());
    std::fs::write(entry, record.to_string()).unwrap();
}

/// A store with a folder of three files, and what of it was transferred.
fn folder_of_three() -> (StubStore, impl Fn(&StubStore) -> Vec<String>) {
    let store = StubStore::start(&[("p/aiperf.json", br#"{"path": "d", "format": "raw_payload"}"#)]);
    for name in ["a", "b", "c"] {
        store.put(&format!("p/d/{name}.json"), format!("{{\"{name}\": 1}}").as_bytes());
    }
    let transferred = |store: &StubStore| {
        let log = store.log();
        let data = log.iter().filter(|request| request.method == "GET" && request.path().contains("/d/"));
        data.map(|request| request.path().rsplit('/').next().unwrap_or_default().to_owned()).collect()
    };
    (store, transferred)
}

#[test]
fn one_damaged_file_of_a_folder_is_fetched_again_and_the_others_are_not() {
    let (store, transferred) = folder_of_three();
    let machine = crate::s3::machine(&store);
    let local = machine.fetch("s3://traces/p/", &ask()).unwrap();
    for damage in [&b"{\"b\": 2}"[..], b"", b"longer than before"] {
        std::fs::write(&local.files[1].path, damage).unwrap();
        store.clear_log();
        let again = machine.fetch("s3://traces/p/", &ask()).unwrap();
        assert_eq!((&again.files, transferred(&store)), (&local.files, vec!["b.json".to_owned()]));
        assert_eq!(std::fs::read(&again.files[1].path).unwrap(), b"{\"b\": 1}");
    }
}

#[test]
fn a_fetch_of_a_folder_goes_on_where_the_one_before_it_ended() {
    let (store, transferred) = folder_of_three();
    let machine = crate::s3::machine(&store);
    store.fault(|request| {
        let is_last = request.method == "GET" && request.path().ends_with("/c.json");
        is_last.then(|| aiperf_test_servers::s3::error(403, "AccessDenied"))
    });
    machine.fetch("s3://traces/p/", &ask()).unwrap_err();
    let partial = {
        let s3 = machine.home.path().join(".cache/aiperf/remote/v1/s3");
        let entry = std::fs::read_dir(s3).unwrap().next().unwrap().unwrap();
        entry.path().join("partial.jsonl")
    };
    // As if the power had gone in the middle of a line.
    let text = std::fs::read_to_string(&partial).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    std::fs::write(&partial, &text[..text.len() - 20]).unwrap();
    store.fault(|_| None);
    store.clear_log();
    let local = machine.fetch("s3://traces/p/", &ask()).unwrap();
    assert_eq!((local.files.len(), transferred(&store)), (3, vec!["b.json".to_owned(), "c.json".to_owned()]));
    assert!(!partial.exists());
    // Nobody's link is written through.
    let victim = machine.home.path().join("victim");
    std::fs::write(&victim, "mine").unwrap();
    let entry = partial.parent().unwrap();
    std::fs::remove_file(entry.join("entry.json")).unwrap();
    symlink(&victim, &partial).unwrap();
    let error = machine.fetch("s3://traces/p/", &ask()).unwrap_err().to_string();
    assert!(error.contains("cannot write ") && std::fs::read(&victim).unwrap() == b"mine", "{error}");
}

#[test]
fn the_hub_cache_is_read_in_every_form_of_the_python_client() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("lfs:d/x.jsonl", LINES)]))]);
    let reference = "hf://org/repo/d/x.jsonl";
    // Copies instead of links.
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint()), ("HF_HUB_DISABLE_SYMLINKS", "1")]);
    let local = machine.fetch(reference, &with("single_turn")).unwrap();
    assert!(local.files[0].path.symlink_metadata().unwrap().is_file());
    machine.set("HF_HUB_OFFLINE", "1");
    assert_eq!(machine.fetch(reference, &with("single_turn")).unwrap().files[0].path, local.files[0].path);
    // A blob that links to one that repositories share.
    let mut machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    let local = machine.fetch(reference, &with("single_turn")).unwrap();
    let blob = local.files[0].path.canonicalize().unwrap();
    let shared = machine.hub_cache().join("blobs/ab/abcdef");
    std::fs::create_dir_all(shared.parent().unwrap()).unwrap();
    std::fs::rename(&blob, &shared).unwrap();
    symlink("../../blobs/ab/abcdef", &blob).unwrap();
    hub.clear_logs();
    assert_eq!(machine.fetch(reference, &with("single_turn")).unwrap().files, local.files);
    assert!(hub.storage_log().is_empty());
    machine.set("HF_HUB_OFFLINE", "1");
    assert_eq!(machine.fetch(reference, &with("single_turn")).unwrap().files, local.files);
}

#[test]
fn a_pinned_reference_is_asked_for_and_a_branch_is_asked_for_again() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("x.jsonl", LINES)]))]);
    let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    let first = machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap();
    let commit = first.provenance.version.clone().unwrap();
    let exact = first.provenance.resolved_reference.clone();
    hub.change("org/repo", |repo| repo.commit("main", &[("x.jsonl", b"{\"text\": \"new\"}\n")]));
    // The exact reference is the first version, whatever came since.
    let again = machine.fetch(&exact, &with("single_turn")).unwrap();
    assert_eq!((again.provenance.version.as_ref(), &again.files), (Some(&commit), &first.files));
    let newest = machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap();
    assert_ne!(newest.provenance.version, Some(commit));
    let gone = format!("hf://org/repo@{}/x.jsonl", "0".repeat(40));
    let error = machine.access(&gone, &with("single_turn")).unwrap_err();
    assert!(error.to_string().contains("revision \"0000"), "{error}");
}

#[test]
fn three_attempts_are_made_of_each_request_and_other_refusals_are_final() {
    let asked = Arc::new(AtomicUsize::new(0));
    for (status, attempts) in [(429, 3), (500, 3), (502, 3), (503, 3), (504, 3), (400, 2), (404, 1), (418, 1)]
    {
        let (counter, is_file) = (Arc::clone(&asked), |request: &Request| request.path() == "/x.jsonl");
        let server = Server::start(move |request| {
            counter.fetch_add(usize::from(is_file(request)), Ordering::SeqCst);
            Answer::status(status)
        });
        asked.store(0, Ordering::SeqCst);
        let machine = Machine::new(&[]);
        machine.access(&format!("{}/x.jsonl", server.url()), &with("single_turn")).unwrap_err();
        // Where HEAD may not be allowed, the first byte is asked for: that is another request, not an attempt.
        assert_eq!(asked.load(Ordering::SeqCst), attempts, "{status}");
    }
}
