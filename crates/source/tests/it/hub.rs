//! The Hub, as a stub.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiperf_source::{Ask, Blame, FormatSource, RepoKind};
use aiperf_test_servers::{Answer, StubHub, StubRepo};

use crate::support::{Machine, ask};

const LINES: &[u8] = b"{\"timestamp\": 0, \"input_length\": 12, \"output_length\": 5, \"hash_ids\": [0]}\n";
const MANIFEST: &[u8] =
    b"{\"path\": \"data/chat.jsonl\", \"format\": \"mooncake_trace\", \"block_size\": 16}";

fn big() -> Vec<u8> {
    (0..3_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn machine(hub: &StubHub) -> Machine {
    Machine::new(&[("HF_ENDPOINT", &hub.endpoint())])
}

fn with(format: &'static str) -> Ask<'static> {
    Ask { format: Some(format), ..ask() }
}

#[test]
fn a_repo_with_a_manifest_is_pinned_fetched_and_recorded() {
    let hub = StubHub::start(&[(
        "org/repo",
        StubRepo::new(&[("aiperf.json", MANIFEST), ("lfs:data/chat.jsonl", LINES), ("README.md", b"x")]),
    )]);
    let machine = machine(&hub);
    let sources = machine.sources();
    let reference = aiperf_source::Reference::parse("hf://org/repo").unwrap();
    let plan = sources.access(&reference, &ask()).unwrap();
    let commit = plan.version.clone().unwrap();
    assert_eq!(commit.len(), 40);
    assert!(!plan.pinned);
    assert_eq!((plan.format, plan.format_source), (Some("mooncake_trace"), Some(FormatSource::Manifest)));
    assert_eq!(plan.block_size, Some(16));
    assert_eq!(plan.resolved_reference, format!("hf://datasets/org/repo@{commit}/data/chat.jsonl"));
    // The access check read no data.
    assert!(hub.storage_log().is_empty());
    let local = sources.fetch(&plan).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), LINES);
    assert_eq!(local.files[0].name, "chat.jsonl");
    let lines = local.provenance.lines();
    let sha = &local.files[0].sha256[..12];
    assert_eq!(
        lines[0],
        format!(
            "Remote dataset hf://org/repo: using hf://datasets/org/repo@{commit}/data/chat.jsonl (version {commit}, \
             1 file(s), {} bytes, sha256 {sha})",
            LINES.len()
        )
    );
    assert!(lines[1].ends_with("--custom-dataset-type mooncake_trace --isl-block-size 16"), "{}", lines[1]);
    let json = local.provenance.json();
    assert_eq!(json["manifest"]["path"], "aiperf.json");
    assert_eq!(json["files"][0]["path"], "data/chat.jsonl");
    // The manifest of a folder says nothing about a file that is named by itself.
    let alone = machine.access("hf://org/repo/data/chat.jsonl", &ask()).unwrap();
    assert_eq!((alone.format, alone.block_size, alone.manifest), (None, None, None));
}

#[test]
fn a_second_run_asks_for_the_version_and_transfers_nothing() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("lfs:x.jsonl", &big())]))]);
    let machine = machine(&hub);
    machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap();
    hub.clear_logs();
    machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap();
    assert!(hub.storage_log().is_empty());
    let asked: Vec<String> = hub.log().iter().map(|request| request.target.clone()).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
}

#[test]
fn the_token_goes_to_the_hub_and_never_to_the_storage() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("lfs:x.jsonl", LINES)]))]);
    let mut machine = machine(&hub);
    machine.set("HF_TOKEN", "hf_good");
    machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap();
    assert!(hub.log().iter().all(|request| request.header("authorization") == Some("Bearer hf_good")));
    assert!(!hub.storage_log().is_empty());
    assert!(hub.storage_log().iter().all(|request| request.header("authorization").is_none()));
}

#[test]
fn each_refusal_of_the_hub_has_its_own_error() {
    let files: &[(&str, &[u8])] = &[("x.jsonl", LINES)];
    let hub = StubHub::start(&[
        ("org/public", StubRepo::new(files)),
        ("org/private", StubRepo { private: true, ..StubRepo::new(files) }),
        ("org/gated", StubRepo { gated: true, ..StubRepo::new(files) }),
        ("org/off", StubRepo { disabled: true, ..StubRepo::new(files) }),
        ("org/deep", StubRepo::new(&[("data/2026/chat.jsonl", LINES)])),
    ]);
    let mut machine = machine(&hub);
    let refused = |machine: &Machine, reference: &str| {
        let error = machine.access(reference, &with("single_turn")).unwrap_err();
        assert_eq!(error.problem.blame(), Blame::Input, "{error}");
        error.to_string()
    };
    for (reference, what, fix) in [
        ("hf://org/none/x.jsonl", "datasets/org/none was not found", "HF_TOKEN"),
        ("hf://org/private/x.jsonl", "datasets/org/private was not found", "HF_TOKEN"),
        ("hf://org/gated/x.jsonl", "datasets/org/gated is gated", "Accept its terms"),
        ("hf://org/off/x.jsonl", "access was denied: datasets/org/off is disabled", "Ask its owner"),
        ("hf://org/public@v9/x.jsonl", "revision \"v9\" was not found", "%2F"),
        (
            "hf://org/public/y.jsonl",
            "the path \"y.jsonl\" in datasets/org/public at main was not found",
            "\"x.jsonl\"",
        ),
        ("hf://org/deep/chat.jsonl", "was not found", "near names are \"data/2026/chat.jsonl\""),
        (
            "hf://org/public",
            "has no aiperf.json, and no parquet files",
            "Point at one file of it, e.g. hf://datasets/org/public/x.jsonl, or ask the publisher for an aiperf.json",
        ),
    ] {
        let error = refused(&machine, reference);
        assert!(error.starts_with(&format!("Cannot use {reference}: ")), "{error}");
        assert!(error.contains(what) && error.contains(fix) && error.ends_with('.'), "{error}");
    }
    machine.set("HF_TOKEN", "hf_canary_bad");
    let error = refused(&machine, "hf://org/public/x.jsonl");
    assert!(error.contains("rejected the token") && !error.contains("canary"), "{error}");
    machine.set("HF_TOKEN", "hf_good");
    for reference in ["hf://org/private/x.jsonl", "hf://org/gated/x.jsonl"] {
        machine.access(reference, &with("single_turn")).unwrap();
    }
    // Who answers may be no Hub at all.
    hub.fault(|request| {
        let page = Answer::status(404).with("Content-Type", "text/html").body(*b"<!DOCTYPE HTML>\n<html>");
        request.path().contains("/datasets/org/page/").then_some(page)
    });
    let error = machine.access("hf://org/page/x.jsonl", &with("single_turn")).unwrap_err().to_string();
    assert!(
        error.contains("does not look like a Hugging Face Hub: it answered with an HTML page"),
        "{error}"
    );
    // Refused without a code: by what the token may do, or by its absence.
    hub.fault(|request| request.path().contains("/revision/").then(|| Answer::status(403)));
    let error = refused(&machine, "hf://org/public/x.jsonl");
    assert!(error.contains("the Hub refused datasets/org/public with the Hub token"), "{error}");
    assert!(error.contains("Give the token of HF_TOKEN permission to read the repository"), "{error}");
    machine.set("HF_TOKEN", "");
    let error = refused(&machine, "hf://org/public/x.jsonl");
    assert!(error.contains("without a token. Set HF_TOKEN to a token that may read"), "{error}");
}

#[test]
fn branches_special_refs_and_odd_names_are_found() {
    let odd = "a b#c%41@d/x y.jsonl";
    let mut repo = StubRepo::new(&[(odd, LINES)]);
    let feature = repo.commit("feature/x", &[("x.jsonl", b"1\n")]);
    repo.commit(
        "refs/convert/parquet",
        &[("cfg/train/0000.parquet", b"PAR1"), ("cfg/test/0000.parquet", b"PAR1")],
    );
    let hub = StubHub::start(&[("org/repo", repo)]);
    let machine = machine(&hub);
    let local = machine.fetch(&format!("hf://org/repo/{odd}"), &with("single_turn")).unwrap();
    assert_eq!(local.files[0].name, "x y.jsonl");
    for reference in
        ["hf://org/repo@feature%2Fx/x.jsonl".to_owned(), format!("hf://org/repo@{feature}/x.jsonl")]
    {
        let plan = machine.access(&reference, &with("single_turn")).unwrap();
        assert_eq!(plan.version.as_deref(), Some(feature.as_str()));
        assert_eq!(plan.pinned, reference.contains(&feature));
    }
    for reference in ["hf://org/repo@refs%2Fconvert%2Fparquet", "hf://org/repo@refs/convert/parquet/cfg"] {
        let plan = machine.access(reference, &with("single_turn")).unwrap();
        let files: Vec<_> = plan.files().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(files, ["0000.parquet"]);
        assert!(plan.resolved_reference.ends_with("/cfg/train"), "{}", plan.resolved_reference);
    }
    assert!(machine.notes().iter().any(|note| note.contains("the folder train is read; not read: test")));
    let refs = machine.hub_cache().join("datasets--org--repo/refs");
    assert!(!refs.join("feature").exists() && !refs.join("refs").exists(), "looked at, and not fetched");
    machine.fetch("hf://org/repo@feature%2Fx/x.jsonl", &with("single_turn")).unwrap();
    machine.fetch("hf://org/repo@refs%2Fconvert%2Fparquet", &with("single_turn")).unwrap();
    assert_eq!(std::fs::read_to_string(refs.join("feature/x")).unwrap(), feature);
    assert!(refs.join("refs/convert/parquet").is_file());
}

#[test]
fn of_a_folder_of_shards_only_the_chosen_split_is_fetched() {
    let mut repo = StubRepo::default();
    repo.commit(
        "main",
        &[
            ("cfg/train-00000-of-00002.parquet", b"PAR1 a"),
            ("cfg/train-00001-of-00002.parquet", b"PAR1 b"),
            ("lfs:cfg/test-00000-of-00001.parquet", b"PAR1 c"),
            ("README.md", b"x"),
        ],
    );
    let hub = StubHub::start(&[("org/repo", repo)]);
    let machine = machine(&hub);
    let local = machine.fetch("hf://datasets/org/repo", &with("mooncake_trace")).unwrap();
    let names: Vec<_> = local.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]);
    assert!(local.folder);
    assert!(hub.storage_log().is_empty());
    let error = machine.access("hf://org/repo", &with("inputs_json")).unwrap_err().to_string();
    assert!(error.contains("inputs_json does not read parquet files"), "{error}");
    let error = machine.access("hf://org/repo/cfg", &with("baseten_trace")).unwrap_err().to_string();
    assert!(error.contains("baseten_trace reads one parquet file"), "{error}");
}

#[test]
fn ambiguous_layouts_name_ready_references() {
    let mut repo = StubRepo::new(&[("a/0.parquet", b"PAR1"), ("b c/0.parquet", b"PAR1")]);
    repo.commit("x/y", &[("dev-00000-of-00001.parquet", b"PAR1"), ("test-00000-of-00001.parquet", b"PAR1")]);
    let hub = StubHub::start(&[("org/repo", repo)]);
    let machine = machine(&hub);
    let error = machine.access("hf://org/repo", &with("single_turn")).unwrap_err().to_string();
    assert!(error.contains("has several datasets under datasets/org/repo"), "{error}");
    assert!(error.contains("Use one of: hf://datasets/org/repo/a, 'hf://datasets/org/repo/b c'"), "{error}");
    let error = machine.access("hf://org/repo@x%2Fy", &with("single_turn")).unwrap_err().to_string();
    assert!(error.contains("holds the splits dev, test"), "{error}");
    let ready = "hf://datasets/org/repo@x%2Fy/dev-00000-of-00001.parquet";
    assert!(error.contains(ready), "{error}");
    machine.access(ready, &with("single_turn")).unwrap();
}

#[test]
fn a_cut_transfer_goes_on_where_it_ended() {
    let bytes = big();
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("lfs:x.jsonl", &bytes)]))]);
    let body: std::sync::Arc<[u8]> = bytes.clone().into();
    let mut cuts = 0;
    hub.fault(move |request| {
        if request.method != "GET" || !request.target.contains("Signature=") || cuts == 2 {
            return None;
        }
        cuts += 1;
        let mut answer = Answer::file(request, &body);
        answer.cut_after = Some(1_000_000);
        Some(answer)
    });
    let machine = machine(&hub);
    let local = machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), bytes);
    let ranges: Vec<_> =
        hub.storage_log().iter().map(|request| request.header("range").map(str::to_owned)).collect();
    assert_eq!(ranges[0], None);
    assert_eq!(ranges.len(), 3);
    assert!(ranges[1..].iter().all(Option::is_some), "{ranges:?}");
}

#[test]
fn three_attempts_then_an_error_and_nothing_in_the_cache() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("lfs:x.jsonl", LINES)]))]);
    hub.fault(|request| request.target.contains("Signature=").then(|| Answer::status(503)));
    let machine = machine(&hub);
    let error = machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap_err();
    assert!(error.to_string().contains("the server answered 503 to GET x.jsonl after 3 attempts"), "{error}");
    assert_eq!(error.problem.blame(), Blame::World);
    assert_eq!(hub.storage_log().len(), 3);
    let blobs = machine.hub_cache().join("datasets--org--repo/blobs");
    assert_eq!(std::fs::read_dir(blobs).unwrap().count(), 0);
}

#[test]
fn a_storage_that_refuses_is_asked_once_more_with_a_new_address() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("lfs:x.jsonl", LINES)]))]);
    let mut refused = false;
    hub.fault(move |request| {
        let first = request.target.contains("Signature=") && !std::mem::replace(&mut refused, true);
        first.then(|| Answer::status(403).body(*b"expired"))
    });
    // A fault function also sees other requests first.
    let machine = machine(&hub);
    let result = machine.fetch("hf://org/repo/x.jsonl", &with("single_turn"));
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn bytes_that_are_not_what_their_etag_says_never_enter_the_cache() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("lfs:x.jsonl", LINES), ("y.jsonl", LINES)]))]);
    hub.fault(|request| {
        let data = request.target.contains("Signature=");
        data.then(|| Answer::status(200).body(vec![b'x'; LINES.len()]))
    });
    let machine = machine(&hub);
    let error = machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap_err();
    assert!(error.to_string().contains("sha256 does not match"), "{error}");
    assert_eq!(hub.storage_log().len(), 1, "a wrong digest is not retried");
    let blobs = machine.hub_cache().join("datasets--org--repo/blobs");
    assert_eq!(std::fs::read_dir(blobs).unwrap().count(), 0);
}

#[test]
fn offline_uses_what_is_there_and_touches_no_socket() {
    let hub = StubHub::start(&[(
        "org/repo",
        StubRepo::new(&[("aiperf.json", MANIFEST), ("data/chat.jsonl", LINES), ("data/other.jsonl", LINES)]),
    )]);
    let mut machine = machine(&hub);
    let online = machine.fetch("hf://org/repo", &ask()).unwrap();
    machine.set("AIPERF_DATASET_REMOTE_OFFLINE", "1");
    hub.clear_logs();
    let offline = machine.fetch("hf://org/repo", &ask()).unwrap();
    assert_eq!(offline.files, online.files);
    assert!(offline.provenance.offline);
    assert_eq!(offline.provenance.json()["offline"], true);
    let warned = machine.notes();
    assert!(
        warned.iter().any(|note| note.contains("newest cached version") && note.contains("ago")),
        "{warned:?}"
    );
    for missing in ["hf://org/other", "hf://org/repo/data/other.jsonl", "hf://org/repo@v2"] {
        let error = machine.fetch(missing, &with("mooncake_trace")).unwrap_err().to_string();
        assert!(error.contains("was not found: it is not in the cache and offline mode is on"), "{error}");
    }
    assert!(hub.log().is_empty() && hub.storage_log().is_empty());
}

#[test]
fn offline_a_branch_is_the_newest_commit_that_was_fetched_and_not_one_that_was_seen() {
    let hub = StubHub::start(&[(
        "org/repo",
        StubRepo::new(&[("aiperf.json", MANIFEST), ("lfs:data/chat.jsonl", LINES)]),
    )]);
    let mut machine = machine(&hub);
    let old = machine.fetch("hf://org/repo", &ask()).unwrap();
    let newer = [LINES, LINES].concat();
    let files: [(&str, &[u8]); 2] = [("aiperf.json", MANIFEST), ("lfs:data/chat.jsonl", &newer)];
    hub.change("org/repo", |repo| repo.commit("main", &files));
    // Looked at, and not fetched; then not fetched for another reason.
    machine.access("hf://org/repo", &ask()).unwrap();
    let is_broken = Arc::new(AtomicBool::new(true));
    let its_state = Arc::clone(&is_broken);
    hub.fault(move |request| {
        let is_data = request.target.contains("Signature=");
        (is_data && its_state.load(Ordering::SeqCst)).then(|| Answer::status(500))
    });
    machine.fetch("hf://org/repo", &ask()).unwrap_err();
    machine.set("HF_HUB_OFFLINE", "1");
    let offline = machine.fetch("hf://org/repo", &ask()).unwrap();
    assert_eq!((&offline.provenance.version, &offline.files), (&old.provenance.version, &old.files));
    machine.set("HF_HUB_OFFLINE", "0");
    is_broken.store(false, Ordering::SeqCst);
    let new = machine.fetch("hf://org/repo", &ask()).unwrap();
    machine.set("HF_HUB_OFFLINE", "1");
    assert_eq!(machine.fetch("hf://org/repo", &ask()).unwrap().files, new.files);
}

#[test]
fn the_flag_and_the_manifest_must_agree_before_anything_is_downloaded() {
    let hub = StubHub::start(&[(
        "org/repo",
        StubRepo::new(&[("aiperf.json", MANIFEST), ("lfs:data/chat.jsonl", LINES)]),
    )]);
    let machine = machine(&hub);
    let error = machine.fetch("hf://org/repo", &with("single_turn")).unwrap_err().to_string();
    assert!(
        error.contains("declares format mooncake_trace but --custom-dataset-type is single_turn"),
        "{error}"
    );
    assert!(hub.storage_log().is_empty());
    machine.fetch("hf://org/repo", &with("mooncake-trace")).unwrap();
    let error = machine.access("hf://org/repo", &with("no_such")).unwrap_err().to_string();
    assert!(error.contains("unknown format \"no_such\""), "{error}");
}

#[test]
fn a_force_push_between_check_and_download_is_a_change() {
    let hub = StubHub::start(&[("org/repo", StubRepo::new(&[("lfs:x.jsonl", LINES)]))]);
    let machine = machine(&hub);
    let sources = machine.sources();
    let reference = aiperf_source::Reference::parse("hf://org/repo/x.jsonl").unwrap();
    let plan = sources.access(&reference, &with("single_turn")).unwrap();
    hub.change("org/repo", |repo| {
        repo.commits.clear();
        repo.commit("main", &[("lfs:x.jsonl", b"new\n")]);
    });
    let error = sources.fetch(&plan).unwrap_err();
    assert!(error.to_string().contains("changed after AIPerf pinned its version. Run again"), "{error}");
    assert_eq!(error.problem.blame(), Blame::World);
    machine.fetch("hf://org/repo/x.jsonl", &with("single_turn")).unwrap();
}

#[test]
fn a_listing_with_hostile_names_or_pages_writes_nothing() {
    let hub = StubHub::start(&[(
        "org/repo",
        StubRepo::new(&[("a/0.parquet", b"PAR1"), ("a/1.parquet", b"PAR1"), ("b", b"x")]),
    )]);
    hub.fault(|request| {
        let tree = request.path().contains("/tree/") && !request.target.contains("cursor");
        tree.then(|| {
            Answer::json(&serde_json::json!([
                {"type": "file", "path": "d/../../x.parquet", "size": 4, "oid": "a".repeat(40)},
                {"type": "file", "path": "d/\u{1b}[2J.parquet", "size": 4, "oid": "a".repeat(40)},
            ]))
            .with("Link", "<http://evil.example/next>; rel=\"next\"")
        })
    });
    let machine = machine(&hub);
    let error = machine.access("hf://org/repo", &with("single_turn")).unwrap_err().to_string();
    assert!(error.contains("leads to another host"), "{error}");
    assert!(!error.contains('\u{1b}'));
}

#[test]
fn other_rooms_list_read_ranges_and_fetch_through_the_same_cache() {
    let bytes = big();
    let hub = StubHub::start(&[(
        "org/set",
        StubRepo::new(&[("lfs:data/a.parquet", &bytes), ("data/b.json", LINES), ("x/c", LINES)]),
    )]);
    let mut machine = machine(&hub);
    let sources = machine.sources();
    let files = sources.hub_files(RepoKind::Dataset, "org/set", None, "data").unwrap();
    let names: Vec<_> = files.files().map(|(path, _)| path.to_owned()).collect();
    assert_eq!(names, ["data/a.parquet", "data/b.json"]);
    let tail = sources.hub_read(&files, "data/a.parquet", 2_999_000, u64::MAX).unwrap();
    assert_eq!(tail, &bytes[2_999_000..]);
    assert_eq!(hub.storage_log()[0].header("range"), Some("bytes=2999000-2999999"));
    let local = sources.hub_fetch(&files, "data/a.parquet").unwrap();
    assert_eq!(std::fs::read(&local.path).unwrap(), bytes);
    hub.clear_logs();
    assert_eq!(sources.hub_read(&files, "data/a.parquet", 10, 20).unwrap(), &bytes[10..20]);
    assert!(hub.storage_log().is_empty());
    assert!(sources.hub_fetch(&files, "none").unwrap_err().to_string().contains("\"none\""));
    machine.set("HF_HUB_OFFLINE", "1");
    hub.clear_logs();
    let sources = machine.sources();
    let files = sources.hub_files(RepoKind::Dataset, "org/set", None, "data").unwrap();
    assert_eq!(sources.hub_fetch(&files, "data/a.parquet").unwrap(), local);
    assert!(hub.log().is_empty());
}
