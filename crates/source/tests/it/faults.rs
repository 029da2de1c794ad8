//! Hostile and broken sources: each gives one error, writes nothing outside the cache, and keeps what was there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aiperf_source::{Ask, Blame, SourceError};
use aiperf_test_servers::{Answer, Request, Server, StubHub, StubRepo, StubStore};
use serde_json::json;

use crate::support::{Machine, ask};

const LINES: &[u8] = b"{\"timestamp\": 0, \"input_length\": 12, \"output_length\": 5, \"hash_ids\": [0]}\n";

fn with(format: &'static str) -> Ask<'static> {
    Ask { format: Some(format), ..ask() }
}

fn files(machine: &Machine) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![machine.home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path(), std::fs::read(entry.path()).unwrap_or_default());
            }
        }
    }
    found
}

/// Fetches what must not work: one line, nothing written outside the cache, nothing lost in it, nothing half there.
fn refused(machine: &Machine, reference: &str, ask: &Ask<'_>) -> SourceError {
    let before = files(machine);
    let error = machine.fetch(reference, ask).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("Cannot use ") && text.ends_with('.'), "{text}");
    assert!(text.chars().all(|c| !c.is_control()), "{text:?}");
    let after = files(machine);
    // What a branch is may be another commit by now.
    for (path, bytes) in before.into_iter().filter(|(path, _)| !path.to_string_lossy().contains("/refs/")) {
        assert_eq!(after.get(&path), Some(&bytes), "{}", path.display());
    }
    let cache = machine.home.path().join(".cache");
    for path in after.keys() {
        let name = path.to_string_lossy();
        assert!(path.starts_with(&cache) && !name.contains("incomplete"), "{name}: {text}");
        assert!(!name.contains("/https/") && !name.contains("/s3/"), "{name}: {text}");
    }
    error
}

fn hub_with(files: &[(&str, &[u8])]) -> (StubHub, Machine) {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(files))]);
    let machine = Machine::new(&[("HF_ENDPOINT", &hub.endpoint())]);
    (hub, machine)
}

fn manifest_of(path: &str) -> String {
    json!({ "path": path, "format": "single_turn" }).to_string()
}

#[test]
fn manifests_that_break_a_rule_are_one_error_on_every_source() {
    let good = "\"path\": \"x.jsonl\", \"format\": \"single_turn\"";
    let with = |more: &str| format!("{{{good}, {more}}}");
    let long = "x/".repeat(500_000);
    let mut faults: Vec<(String, &str)> = [
        "../x",
        "/etc/passwd",
        "a/../../x",
        "..\\x",
        "C:\\x",
        "//host/x",
        "file:///x",
        "a\0b",
        "aiperf.json",
        "",
        "x.jsonl.aiperf.json",
        "a//b",
        "./x",
    ]
    .into_iter()
    .map(|path| (manifest_of(path), "aiperf.json is not valid"))
    .collect();
    faults.extend([
        (manifest_of(&long), "aiperf.json is not valid"),
        (manifest_of("%2e%2e/x"), "does not exist at this version"),
        (manifest_of("x.jsonl/"), "does not exist at this version"),
        ("not json".into(), "is not valid"),
        ("<!doctype html><html></html>".into(), "is not valid"),
        (format!("{{\"path\": \"{}\"}}", "x".repeat(2 << 20)), "is not valid"),
        ("[".repeat(100_000), "is not valid"),
        ("[]".into(), "is not valid"),
        ("null".into(), "is not valid"),
        ("{}".into(), "is not valid"),
        (with("\"path\": \"y\""), "\"path\""),
        (with("\"colour\": 1"), "\"colour\""),
        (with("\"block_size\": -1"), "block_size"),
        (with("\"block_size\": 1.0"), "block_size"),
        (with("\"block_size\": true"), "block_size"),
        (with("\"block_size\": 1e400"), "is not valid"),
        (with("\"block_size\": 99999999999999999999999"), "block_size"),
        (with(&format!("\"sha256\": \"{}\"", "a".repeat(63))), "sha256"),
        (with("\"requires\": {\"aiperf\": \"newest\"}"), "requires.aiperf"),
        (with("\"requires\": {\"aiperf\": \">=99\"}"), "needs AIPerf >=99"),
        (with("\"requires\": {\"endpoint_types\": []}"), "endpoint_types"),
        (with("\"requires\": {\"endpoint_types\": [\"rankings\"]}"), "supports endpoint types rankings"),
        (with("\"requires\": {\"max_context_tokens\": 0}"), "max_context_tokens"),
        (with("\"requires\": 1"), "requires"),
        (manifest_of("x.jsonl").replace("single_turn", "no_such"), "unknown format \"no_such\""),
    ]);
    let (hub, on_hub) = hub_with(&[("y.jsonl", LINES)]);
    on_hub.fetch("hf://org/repo/y.jsonl", &self::with("single_turn")).unwrap();
    for (manifest, part) in faults {
        hub.change("org/repo", |repo| {
            repo.commit(
                "main",
                &[("aiperf.json", manifest.as_bytes()), ("x.jsonl", LINES), ("y.jsonl", LINES)],
            )
        });
        let shown = &manifest[..manifest.len().min(80)];
        let error = refused(&on_hub, "hf://org/repo", &ask());
        assert!(error.to_string().contains(part), "{shown}: {error}");
        assert_eq!(error.problem.blame(), Blame::Input);
        let store = StubStore::start(&[("p/aiperf.json", manifest.as_bytes()), ("p/x.jsonl", LINES)]);
        let in_store = crate::s3::machine(&store);
        let same = refused(&in_store, "s3://traces/p/", &ask());
        assert!(same.to_string().contains(part), "{shown}: {same}");
        assert!(same.to_string().len() < 3_000, "{shown}");
    }
}

#[test]
fn a_manifest_that_promises_another_digest_deletes_what_came_and_is_not_asked_again() {
    let manifest = json!({"path": "x.jsonl", "format": "single_turn", "sha256": "a".repeat(64)}).to_string();
    let store = StubStore::start(&[("p/aiperf.json", manifest.as_bytes()), ("p/x.jsonl", LINES)]);
    let error = refused(&crate::s3::machine(&store), "s3://traces/p/", &ask());
    assert!(error.to_string().contains("sha256 does not match: p/x.jsonl has "), "{error}");
    assert!(error.to_string().contains("p/aiperf.json says aaaaaaaaaaaa. Tell the publisher"), "{error}");
    let data = |request: &Request| request.method == "GET" && request.path().ends_with("x.jsonl");
    assert_eq!(store.log().iter().filter(|request| data(request)).count(), 1);
    let folder = json!({"path": ".", "format": "raw_payload", "sha256": "a".repeat(64)}).to_string();
    store.put("p/aiperf.json", folder.as_bytes());
    let error = refused(&crate::s3::machine(&store), "s3://traces/p/", &ask());
    assert!(error.to_string().contains("sha256 is the digest of one file"), "{error}");
    // A format that cannot read the folder at all is said first.
    store.put("p/aiperf.json", folder.replace("raw_payload", "inputs_json").as_bytes());
    let error = refused(&crate::s3::machine(&store), "s3://traces/p/", &ask());
    assert!(error.to_string().contains("inputs_json reads one file"), "{error}");
}

/// A listing of one Hub folder.
fn listing(hub: &StubHub, names: &[&str]) {
    let items: Vec<_> = names
        .iter()
        .map(|name| json!({"type": "file", "path": name, "size": 4, "oid": "a".repeat(40)}))
        .collect();
    let answer = Answer::json(&json!(items));
    hub.fault(move |request| request.path().contains("/tree/").then(|| answer.clone()));
}

#[test]
fn names_of_a_listing_are_checked_before_they_become_paths() {
    let long = format!("d/{}.json", "x".repeat(256));
    for names in [
        &["d/a//b.json"][..],
        &["d/b\\c.json"],
        &["d/C:x.json"],
        &["d/con.json"],
        &["d/\u{1b}[2Jx.json"],
        &["d/a\0b.json"],
        &[&long],
        &["d/a", "d/a/b"],
        &["d/a", "d/a"],
    ] {
        let manifest = json!({"path": "d", "format": "raw_payload"}).to_string();
        let (hub, machine) = hub_with(&[("aiperf.json", manifest.as_bytes()), ("d/ok.json", b"{}")]);
        listing(&hub, names);
        let error = refused(&machine, "hf://org/repo", &ask());
        assert!(error.to_string().contains("cannot be used: "), "{names:?}: {error}");
        let keys: Vec<String> = names.iter().map(|name| format!("p/{name}")).collect();
        let store = StubStore::start(&[("p/aiperf.json", manifest.as_bytes())]);
        for key in &keys {
            store.put(key, b"{}");
        }
        if names.len() == 2 && names[0] == names[1] {
            continue;
        }
        let error = refused(&crate::s3::machine(&store), "s3://traces/p/", &ask());
        assert!(error.to_string().contains("cannot be used: "), "{names:?}: {error}");
    }
    // What lies elsewhere, or is not read, does no harm.
    let manifest = json!({"path": "d", "format": "raw_payload"}).to_string();
    let (hub, machine) = hub_with(&[("aiperf.json", manifest.as_bytes()), ("d/ok.json", b"{}")]);
    let ok = hub.change("org/repo", |repo| repo.commits.values().next().unwrap()["d/ok.json"].etag());
    let mut items: Vec<_> = ["/etc/passwd", "d/../../x.json", "e/\\", "d/.x/con.json"]
        .iter()
        .map(|name| json!({"type": "file", "path": name, "size": 4, "oid": "a".repeat(40)}))
        .collect();
    items.push(json!({"type": "file", "path": "d/ok.json", "size": 2, "oid": ok}));
    let answer = Answer::json(&json!(items));
    hub.fault(move |request| request.path().contains("/tree/").then(|| answer.clone()));
    let local = machine.fetch("hf://org/repo", &ask()).unwrap();
    assert_eq!(local.files.len(), 1);
}

#[test]
fn ids_that_are_no_ids_never_become_paths() {
    for oid in ["../../x", "", "a", "A", "zz", &"g".repeat(40)] {
        let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
        let answer = json!([{"type": "file", "path": "x.jsonl", "size": 4, "oid": oid}]);
        hub.fault(move |request| request.path().contains("/paths-info/").then(|| Answer::json(&answer)));
        let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
        assert!(error.to_string().contains("it is the blob id of a file, and no digest"), "{oid}: {error}");
    }
    for sha in ["../../x", "", "main", &"A".repeat(40)] {
        let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
        let answer = json!({ "sha": sha });
        hub.fault(move |request| request.path().contains("/revision/").then(|| Answer::json(&answer)));
        let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
        assert!(error.to_string().contains("a revision that is no commit"), "{sha}: {error}");
    }
    // Tags of other servers are digested.
    for etag in
        ["\"../../../../etc/passwd\"", "W/\"\\..\\x\"", &format!("\"{}\"", "x".repeat(5_000)), "/", "\"%00\""]
    {
        let etag = etag.to_owned();
        let store = StubStore::start(&[("x.jsonl", LINES)]);
        let tag = etag.clone();
        store.fault(move |request| {
            let data = request.path().ends_with("/x.jsonl");
            data.then(|| Answer::file(request, &LINES.into()).with("ETag", tag.clone()))
        });
        let machine = crate::s3::machine(&store);
        let local = machine.fetch("s3://traces/x.jsonl", &with("single_turn")).unwrap();
        assert!(local.files[0].path.starts_with(machine.home.path().join(".cache/aiperf/remote/v1/s3")));
        let server = Server::start(move |request| match request.path() {
            "/x.jsonl" => Answer::file(request, &LINES.into()).with("ETag", etag.clone()),
            _ => Answer::status(404),
        });
        let machine = Machine::new(&[]);
        let local = machine.fetch(&format!("{}/x.jsonl", server.url()), &with("single_turn")).unwrap();
        let name =
            local.files[0].path.strip_prefix(machine.home.path().join(".cache/aiperf/remote/v1/https"));
        assert_eq!(name.unwrap().components().count(), 3);
    }
}

#[test]
fn links_that_were_planted_in_a_cache_lead_nowhere() {
    use std::os::unix::fs::symlink;

    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    std::fs::write(&victim, LINES).unwrap();
    // In the place of a cached file: it is fetched again, and the file outside stays what it was.
    let server = Server::start(|request| match request.path() {
        "/x.jsonl" => Answer::file(request, &b"{}\n".to_vec().into()).with("ETag", "\"a\""),
        _ => Answer::status(404),
    });
    let url = format!("{}/x.jsonl", server.url());
    let machine = Machine::new(&[]);
    let local = machine.fetch(&url, &with("single_turn")).unwrap();
    std::fs::remove_file(&local.files[0].path).unwrap();
    symlink(&victim, &local.files[0].path).unwrap();
    let again = machine.fetch(&url, &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&again.files[0].path).unwrap(), b"{}\n");
    let (_hub, on_hub) = hub_with(&[("x.jsonl", b"{}\n"), ("lfs:y.jsonl", b"{}\n")]);
    let local = on_hub.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap();
    std::fs::remove_file(&local.files[0].path).unwrap();
    symlink(&victim, &local.files[0].path).unwrap();
    let again = on_hub.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&again.files[0].path).unwrap(), b"{}\n");
    assert_eq!(std::fs::read(&victim).unwrap(), LINES);
    // In the place of a folder, or of a lock: refused, and nothing is written there.
    let empty = outside.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    for folder in ["v1", "v1/tmp", "v1/locks", "v1/https"] {
        let machine = Machine::new(&[]);
        let path = machine.home.path().join(".cache/aiperf/remote").join(folder);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(&empty, &path).unwrap();
        let error = machine.fetch(&url, &with("single_turn")).unwrap_err().to_string();
        assert!(error.contains("leads out of the cache"), "{folder}: {error}");
        assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0, "{folder}");
    }
    for folder in ["datasets--org--repo", ".locks"] {
        let (_hub, machine) = hub_with(&[("lfs:y.jsonl", LINES)]);
        std::fs::create_dir_all(machine.hub_cache()).unwrap();
        symlink(&empty, machine.hub_cache().join(folder)).unwrap();
        let error = machine.fetch("hf://org/repo/y.jsonl", &with("single_turn")).unwrap_err().to_string();
        assert!(error.contains("leads out of the cache"), "{folder}: {error}");
        assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0, "{folder}");
    }
    let (hub, machine) = hub_with(&[("lfs:y.jsonl", LINES)]);
    let etag = hub.change("org/repo", |repo| repo.commits.values().next().unwrap()["y.jsonl"].etag());
    let locks = machine.hub_cache().join(".locks/datasets--org--repo");
    std::fs::create_dir_all(&locks).unwrap();
    symlink(outside.path().join("new"), locks.join(format!("{etag}.lock"))).unwrap();
    machine.fetch("hf://org/repo/y.jsonl", &with("single_turn")).unwrap_err();
    assert!(!outside.path().join("new").exists());
}

fn web(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> (Server, Machine, String) {
    let server = Server::start(move |request| match request.path() {
        "/x.jsonl" => answer(request),
        _ => Answer::status(404),
    });
    let url = format!("{}/x.jsonl", server.url());
    (server, Machine::new(&[]), url)
}

/// The file, with headers more.
fn file(request: &Request, more: &[(&str, &str)]) -> Answer {
    let answer = Answer::file(request, &LINES.into());
    more.iter().fold(answer, |answer, (name, value)| answer.with(name, *value))
}

#[test]
fn lengths_that_lie_are_errors() {
    let huge = (1u64 << 63).to_string();
    for length in ["-5", "many", "1e3", "99999999999999999999999", &huge] {
        let length = length.to_owned();
        let (_server, machine, url) = web(move |_| {
            Answer::status(200).with("ETag", "\"a\"").with("Content-Length", length.clone()).body(LINES)
        });
        refused(&machine, &url, &with("single_turn"));
    }
    // The check and the transfer tell two lengths, with one tag.
    for shift in [-5, 5] {
        let (_server, machine, url) = web(move |request| {
            if request.method == "HEAD" {
                let length = LINES.len() as i64 + shift;
                return Answer::status(200).with("ETag", "\"a\"").with("Content-Length", length.to_string());
            }
            file(request, &[("ETag", "\"a\"")])
        });
        let error = refused(&machine, &url, &with("single_turn"));
        assert!(error.to_string().contains("changed after AIPerf pinned its version"), "{error}");
    }
    // More comes than was announced, by a body that ends when it ends.
    let (server, machine, url) = web(|request| {
        if request.method == "HEAD" {
            return file(request, &[("ETag", "\"a\"")]);
        }
        let mut answer = Answer::status(200).with("ETag", "\"a\"").body(LINES.repeat(2));
        answer.without_length = true;
        answer
    });
    let error = refused(&machine, &url, &with("single_turn"));
    assert!(
        error.to_string().contains("the transfer was cut short")
            && error.to_string().contains("more than its")
    );
    let gets =
        server.log().iter().filter(|request| request.method == "GET" && request.path() == "/x.jsonl").count();
    assert_eq!(gets, 3);
}

#[test]
fn redirects_that_lead_astray_are_not_followed() {
    for (location, part) in [
        (Some("file:///etc/passwd"), "another scheme"),
        (Some("ftp://h/x"), "another scheme"),
        (Some("http://"), "leads to no URL"),
        (None, "says nowhere where it leads"),
        (Some("/x.jsonl"), "one of more than 10"),
    ] {
        let moved = move |_: &Request| {
            let answer = Answer::status(302);
            location.into_iter().fold(answer, |answer, location| answer.with("Location", location))
        };
        let (_server, machine, url) = web(moved);
        let error = refused(&machine, &url, &with("single_turn"));
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.problem.blame(), Blame::World);
        // The Hub: for its API, and for a file.
        for kind in ["/revision/", "/resolve/"] {
            let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
            hub.fault(move |request| {
                let here = location.map(|location| {
                    if location == "/x.jsonl" { request.target.clone() } else { location.to_owned() }
                });
                let answer = here
                    .into_iter()
                    .fold(Answer::status(302), |answer, location| answer.with("Location", location));
                request.path().contains(kind).then_some(answer)
            });
            let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
            assert!(error.to_string().contains(part), "{kind} {error}");
        }
    }
}

#[test]
fn no_token_goes_to_another_host() {
    let other = Server::start(|_| Answer::status(404));
    for kind in ["/revision/", "/paths-info/", "/tree/"] {
        let (hub, mut machine) = hub_with(&[("a/0.parquet", b"PAR1")]);
        machine.set("HF_TOKEN", "hf_good");
        let location = format!("http://localhost:{}/", other.port());
        hub.fault(move |request| {
            request.path().contains(kind).then(|| Answer::status(307).with("Location", location.clone()))
        });
        let error = refused(&machine, "hf://org/repo", &with("single_turn"));
        assert!(error.to_string().contains("it leaves the Hub"), "{kind}: {error}");
    }
    assert!(other.log().is_empty());
}

#[test]
fn what_answers_in_the_place_of_a_hub_is_named() {
    for (part, answer) in [
        ("an HTML page", Answer::status(200).with("Content-Type", "text/html").body(*b"<html>")),
        ("does not look like a Hugging Face Hub", Answer::status(200).body(*b"ok")),
        ("does not look like a Hugging Face Hub", Answer::status(418)),
    ] {
        let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
        hub.fault(move |_| Some(answer.clone()));
        let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.to_string().contains("Check HF_ENDPOINT, and whether a proxy"), "{error}");
        assert_eq!(error.problem.blame(), Blame::World);
    }
    let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
    hub.fault(|request| request.path().contains("/resolve/").then(|| Answer::status(200).body(LINES)));
    let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
    assert!(error.to_string().contains("a file without X-Repo-Commit"), "{error}");
    // Pages that lead back to each other.
    let (hub, machine) = hub_with(&[("a/0.parquet", b"PAR1")]);
    let next = format!("<{}/api/datasets/org/repo/tree/x?cursor=1>; rel=\"next\"", hub.endpoint());
    hub.fault(move |request| {
        request.path().contains("/tree/").then(|| Answer::json(&json!([])).with("Link", next.clone()))
    });
    let error = refused(&machine, "hf://org/repo", &with("single_turn"));
    assert!(error.to_string().contains("pages lead back to each other"), "{error}");
}

#[test]
fn a_limit_is_waited_for_or_told() {
    // Until the limit ends: no attempt before.
    for headers in [&[("RateLimit", "\"api\";r=0;t=3600")][..], &[("Retry-After", "3600")]] {
        let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
        hub.fault(move |_| {
            Some(headers.iter().fold(Answer::status(429), |answer, (name, value)| answer.with(name, *value)))
        });
        let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
        assert!(
            error.to_string().contains("it is rate limited for 3600 s. Retry later, in 3600 s"),
            "{error}"
        );
        assert_eq!((hub.log().len(), error.problem.blame()), (1, Blame::World));
    }
    // A wait of nothing, for ever: three attempts.
    let (server, machine, url) = web(|_| Answer::status(429).with("Retry-After", "0"));
    let error = refused(&machine, &url, &with("single_turn"));
    assert!(error.to_string().contains("the server answered 429"), "{error}");
    assert_eq!(server.log().len(), 3);
    // A limit with something left is none.
    let (hub, machine) = hub_with(&[("x.jsonl", LINES)]);
    hub.fault(|_| Some(Answer::status(429).with("RateLimit", "\"api\";r=5;t=3600")));
    let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
    assert!(error.to_string().contains("the server answered 429") && hub.log().len() == 3, "{error}");
}

#[test]
fn a_server_that_says_nothing_is_left_after_a_while() {
    let quick = |patience: &mut aiperf_source::Patience| {
        patience.headers = Duration::from_millis(100);
        patience.hub_headers = Duration::from_millis(100);
        patience.idle = Duration::from_millis(100);
        patience.hub_idle = Duration::from_millis(100);
    };
    let (server, mut machine, url) = web(|_| Answer::silence());
    machine.patience = quick;
    let error = refused(&machine, &url, &with("single_turn"));
    assert!(error.to_string().contains("could not connect to 127.0.0.1:"), "{error}");
    assert_eq!(server.log().len(), 3);
    // After the headers, and in the middle.
    for bytes in [0, 10] {
        let (server, mut machine, url) = web(move |request| {
            let mut answer = file(request, &[("ETag", "W/\"a\"")]);
            answer.stall_after = (request.method == "GET").then_some(bytes);
            answer
        });
        machine.patience = quick;
        let error = refused(&machine, &url, &with("single_turn"));
        assert!(error.to_string().contains("the transfer was cut short"), "{error}");
        assert!(error.to_string().contains("timed out"), "{error}");
        assert_eq!(server.log().iter().filter(|request| request.path() == "/x.jsonl").count(), 4);
    }
    let (hub, mut machine) = hub_with(&[("lfs:x.jsonl", LINES)]);
    hub.fault(|request| {
        request
            .target
            .contains("Signature=")
            .then(|| Answer { stall_after: Some(3), ..Answer::file(request, &LINES.into()) })
    });
    machine.patience = quick;
    let error = refused(&machine, "hf://org/repo/x.jsonl", &with("single_turn"));
    assert!(error.to_string().contains("the transfer was cut short"), "{error}");
}

#[test]
fn answers_that_are_not_of_the_pinned_version_are_a_change() {
    type Given = fn(&Request) -> Answer;
    let other: &[(&str, &str)] = &[("ETag", "\"b\"")];
    let changed = "changed after AIPerf pinned its version";
    let cases: [(&str, Given); 4] = [
        (changed, |_| Answer::status(412)),
        // A page of a proxy.
        (changed, |_| Answer::status(200).with("Content-Type", "text/html").body(*b"<html>busy</html>")),
        (changed, |request| file(request, &[("ETag", "\"b\"")])),
        // Only the weak form of the same tag, of a file that is not compressed on its way.
        (changed, |request| file(request, &[("ETag", "W/\"a\"")])),
    ];
    for (part, given) in cases {
        let (server, machine, url) =
            web(
                move |request| {
                    if request.method == "HEAD" {
                        file(request, &[("ETag", "\"a\"")])
                    } else {
                        given(request)
                    }
                },
            );
        let error = refused(&machine, &url, &with("single_turn"));
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(server.log().iter().filter(|request| request.path() == "/x.jsonl").count(), 2, "once");
    }
    // A weak tag cannot be a condition; it is compared.
    let (server, machine, url) = web(move |request| {
        if request.method == "HEAD" { file(request, &[("ETag", "W/\"a\"")]) } else { file(request, other) }
    });
    assert!(refused(&machine, &url, &with("single_turn")).to_string().contains(changed));
    assert!(server.log().iter().all(|request| request.header("if-match").is_none()));
    // A date is compared, too.
    let (_server, machine, url) = web(|request| {
        let day = if request.method == "HEAD" {
            "Mon, 30 Nov 2026 00:00:00 GMT"
        } else {
            "Tue, 01 Dec 2026 00:00:00 GMT"
        };
        file(request, &[("Last-Modified", day)])
    });
    assert!(refused(&machine, &url, &with("single_turn")).to_string().contains(changed));
}

#[test]
fn a_range_that_was_not_asked_for_is_not_taken() {
    // Cut once; then, where the rest is asked for, something else comes.
    let long: Arc<[u8]> = LINES.repeat(1_000).into();
    for (works, other) in
        [(false, "bytes 0-9/78000"), (false, "bytes 5-1/2"), (false, "lines 1-2/3"), (true, "")]
    {
        let bytes = Arc::clone(&long);
        let (server, machine, url) = web(move |request| {
            let whole = Answer::status(200).with("ETag", "\"a\"").body(Arc::clone(&bytes));
            match request.range() {
                _ if request.method == "HEAD" => whole,
                None => Answer { cut_after: Some(10_000), ..whole },
                // Ranges are not served after all: everything again.
                Some(_) if other.is_empty() => whole,
                Some(_) => {
                    Answer::status(206).with("ETag", "\"a\"").with("Content-Range", other).body(*b"xxxxx")
                }
            }
        });
        if works {
            let local = machine.fetch(&url, &with("single_turn")).unwrap();
            assert_eq!(std::fs::read(&local.files[0].path).unwrap(), *long);
        } else {
            let error = refused(&machine, &url, &with("single_turn"));
            assert!(error.to_string().contains("another range came"), "{other}: {error}");
        }
        assert!(server.log().iter().any(|request| request.range().is_some()));
    }
}

#[test]
fn a_clock_that_is_wrong_changes_a_hint_at_most() {
    // The local clock never refuses: only the server does.
    for query in [
        "X-Amz-Signature=canary&X-Amz-Date=20200101T000000Z&X-Amz-Expires=60",
        "X-Amz-Signature=canary&X-Amz-Date=29990101T000000Z&X-Amz-Expires=1",
        "X-Amz-Signature=canary&X-Amz-Date=soon&X-Amz-Expires=60",
        "X-Amz-Signature=canary&X-Amz-Date=20200101T000000Z&X-Amz-Expires=-60",
        "X-Amz-Signature=canary&X-Amz-Date=20200101T000000Z&X-Amz-Expires=99999999999999999999999",
        "X-Amz-Signature=canary&X-Amz-Date=99991231T235959Z&X-Amz-Expires=18446744073709551615",
        "AWSAccessKeyId=canary&Signature=canary&Expires=-1",
        "AWSAccessKeyId=canary&Signature=canary&Expires=18446744073709551615",
        "X-Goog-Signature=canary&X-Goog-Date=&X-Goog-Expires=",
        "sig=canary&se=9999-99-99T99:99:99Z&ske=never",
        "Key-Pair-Id=canary&Signature=canary&Policy=%%%",
    ] {
        let (_server, machine, url) = web(|request| file(request, &[("ETag", "\"a\"")]));
        machine.fetch(&format!("{url}?{query}"), &with("single_turn")).unwrap();
        for body in
            [&b"no"[..], b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"]
        {
            let (_server, machine, url) = web(move |_| Answer::status(403).body(body.to_vec()));
            let error = refused(&machine, &format!("{url}?{query}"), &with("single_turn")).to_string();
            assert!(error.contains("access was denied") && error.contains("Generate a new URL"), "{error}");
            assert!(!error.contains("canary"), "{error}");
            assert!(body == b"no" || error.contains("the presigned URL has expired"), "{error}");
        }
    }
}
