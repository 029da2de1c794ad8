//! What publishers and strangers write: manifests, names, ids and links that lead astray.

use aiperf_source::Blame;
use aiperf_test_servers::{Answer, Request, Server, StubHub, StubStore};
use serde_json::json;

use crate::faults::{hub_with, with};
use crate::support::{Machine, ask, refused};

const LINES: &[u8] = b"{\"timestamp\": 0, \"input_length\": 12, \"output_length\": 5, \"hash_ids\": [0]}\n";

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
fn names_that_differ_in_case_alone_are_two_files_where_the_cache_can_hold_two() {
    let manifest = json!({"path": "d", "format": "raw_payload"}).to_string();
    let files: &[(&str, &[u8])] =
        &[("aiperf.json", manifest.as_bytes()), ("d/A.json", b"{\"a\": 1}"), ("d/a.json", b"{}")];
    let (_hub, on_hub) = hub_with(files);
    let store = StubStore::start(&[]);
    for (name, bytes) in files {
        store.put(&format!("p/{name}"), bytes);
    }
    for (machine, reference) in [(on_hub, "hf://org/repo"), (crate::s3::machine(&store), "s3://traces/p/")] {
        let probe = |name: &str| machine.home.path().join(name);
        std::fs::write(probe("x"), "1").unwrap();
        std::fs::write(probe("X"), "2").unwrap();
        if std::fs::read(probe("x")).unwrap() == b"1" {
            let local = machine.fetch(reference, &ask()).unwrap();
            let sizes: Vec<_> =
                local.files.iter().map(|file| std::fs::read(&file.path).unwrap().len()).collect();
            assert_eq!(sizes, [8, 2], "{reference}");
        } else {
            let error = refused(&machine, reference, &ask());
            assert!(error.to_string().contains("differs from it in case alone"), "{error}");
        }
    }
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
