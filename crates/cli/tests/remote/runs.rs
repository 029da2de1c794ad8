//! Data that are somewhere else, through the program.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiperf_test_servers::{Answer, Server, StubHub, StubRepo, StubStore};
use serde_json::Value;

use crate::machine::{MANIFEST, Machine, TRACE, files_below, stderr, stdout};

fn hub() -> StubHub {
    StubHub::start(&[(
        "org/trace",
        StubRepo::new(&[("aiperf.json", MANIFEST), ("lfs:trace.jsonl", TRACE), ("other.jsonl", b"{}\n")]),
    )])
}

#[test]
fn a_reference_runs_on_its_recorded_schedule_and_the_version_is_on_record() {
    let hub = hub();
    let machine = Machine::new(&hub);
    let output = machine.profile(&["--input-file", "hf://org/trace", "--streaming"]);
    let talk = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{talk}");
    let summary = machine.summary();
    let dataset = &summary["metadata"]["dataset"];
    let commit = dataset["resolved_version"].as_str().unwrap();
    assert_eq!(dataset["reference"], "hf://org/trace");
    assert_eq!(dataset["resolved_reference"], format!("hf://datasets/org/trace@{commit}/trace.jsonl"));
    assert_eq!(
        (&dataset["format"], &dataset["format_source"]),
        (&"mooncake_trace".into(), &"manifest".into())
    );
    assert_eq!(dataset["files"][0]["size"], TRACE.len());
    assert_eq!(summary["request_count"]["avg"], 3.0);
    assert_eq!(
        summary["input_config"]["datasets"][0]["path"], "hf://org/trace",
        "{}",
        summary["input_config"]
    );
    assert!(talk.contains(&format!(
        "Remote dataset hf://org/trace: using hf://datasets/org/trace@{commit}/trace.jsonl"
    )));
    // On schedule: the last request leaves 274 ms after the first.
    assert!(talk.contains("recorded times"), "{talk}");
    assert!(!talk.contains("hf_good") && !summary.to_string().contains("hf_good"));
}

#[test]
fn a_remote_run_sends_what_a_local_one_sends() {
    let hub = hub();
    let machine = Machine::new(&hub);
    std::fs::write(machine.home.path().join("local.jsonl"), TRACE).unwrap();
    let inputs = |arguments: &[&str]| {
        let seeded = [arguments, &["--random-seed", "7", "--export-level", "raw"]].concat();
        let output = machine.profile(&seeded);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let raw = std::fs::read_to_string(machine.home.path().join("out/profile_export_raw.jsonl")).unwrap();
        let mut payloads: Vec<String> = raw
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].to_string())
            .collect();
        payloads.sort();
        assert!(payloads.len() == 3 && payloads[0].len() > 1000, "{payloads:?}");
        payloads
    };
    let local = inputs(&["--input-file", "local.jsonl"]);
    assert_eq!(machine.summary()["metadata"]["dataset"], Value::Null, "only of data from elsewhere");
    let remote = inputs(&["--input-file", "hf://org/trace/trace.jsonl"]);
    assert_eq!(local, remote);
}

#[test]
fn what_lies_in_the_cache_beside_the_data_is_not_read() {
    let body = br#"{"model": "m", "messages": [{"role": "user", "content": "hi"}]}"#;
    let hub = StubHub::start(&[(
        "org/set",
        StubRepo::new(&[
            ("aiperf.json", br#"{"path": "data", "format": "raw_payload"}"#),
            ("data/a.jsonl", body),
            ("data/_draft.jsonl", b"no body"),
        ]),
    )]);
    let machine = Machine::new(&hub);
    // In the same snapshot, by a reference of its own.
    machine.fetched("hf://org/set/data/_draft.jsonl");
    let output = machine.profile(&["--input-file", "hf://org/set", "--request-count", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let files = &machine.summary()["metadata"]["dataset"]["files"];
    assert_eq!((files.as_array().map(Vec::len), &files[0]["path"]), (Some(1), &"data/a.jsonl".into()));
}

#[test]
fn what_the_user_must_put_right_ends_with_2_and_what_the_world_must_with_1() {
    let hub = hub();
    let mut machine = Machine::new(&hub);
    for (reference, arguments, code, text) in [
        ("hf://org/none", &[][..], 2, "datasets/org/none was not found"),
        (
            "hf://org/trace",
            &["--custom-dataset-type", "single_turn"],
            2,
            "declares format mooncake_trace but",
        ),
        (
            "hf://org/trace",
            &["--request-rate", "5"],
            2,
            "--request-rate conflicts with the recorded times of hf://org/trace",
        ),
        (
            "hf://org/trace/other.jsonl",
            &["--custom-dataset-type", "mooncake_trace"],
            2,
            "does not look like mooncake_trace",
        ),
        ("hf://org/trace/aiperf.json", &[], 2, "names a manifest"),
    ] {
        let output = machine.profile(&[&["--input-file", reference][..], arguments].concat());
        let talk = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{talk}");
        assert!(talk.contains(text), "{talk}");
        assert!(!machine.home.path().join("out").exists(), "{reference}");
    }
    machine.set("HF_ENDPOINT", "http://127.0.0.1:9");
    let output = machine.profile(&["--input-file", "hf://org/trace"]);
    assert_eq!(output.status.code(), Some(1));
    let talk = stderr(&output);
    assert!(talk.contains("Cannot use hf://org/trace: could not connect to 127.0.0.1:9: "), "{talk}");
    // The host is there because of a variable, and no proxy is in the way.
    assert!(talk.contains("HF_ENDPOINT, which names this host") && !talk.contains("HTTPS_PROXY"), "{talk}");
}

#[test]
fn the_schedule_is_decided_before_the_data_are_downloaded() {
    let hub = StubHub::start(&[("org/trace", StubRepo::new(&[("lfs:trace.jsonl", &big_trace())]))]);
    let machine = Machine::new(&hub);
    let output = machine.profile(&[
        "--input-file",
        "hf://org/trace/trace.jsonl",
        "--custom-dataset-type",
        "mooncake_trace",
        "--request-rate",
        "5",
    ]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let ranges: Vec<_> =
        hub.storage_log().iter().map(|request| request.header("range").map(str::to_owned)).collect();
    assert_eq!(ranges, [Some("bytes=0-65535".to_owned())]);
}

fn big_trace() -> Vec<u8> {
    TRACE.repeat(1_000)
}

#[test]
fn resolve_shows_what_would_run_and_reads_no_data() {
    let hub = hub();
    let machine = Machine::new(&hub);
    let output = machine.aiperf(&["dataset", "resolve", "hf://org/trace", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(shown["resolved_version"].as_str().unwrap().len(), 40);
    assert_eq!(shown["defaults"]["block_size"], 512);
    assert_eq!(
        (&shown["pinned"], &shown["cached"], &shown["fixed_schedule"]),
        (&false.into(), &false.into(), &Value::Null)
    );
    assert_eq!(shown["files"][0]["path"], "trace.jsonl");
    assert_eq!(shown["bytes"], TRACE.len());
    assert!(hub.storage_log().is_empty());
    let output = machine.aiperf(&["dataset", "resolve", "hf://org/trace", "--first-record"]);
    let text = stdout(&output);
    assert!(text.contains("fixed schedule   yes") && text.contains("mooncake_trace (by manifest)"), "{text}");
    assert!(text.contains(" (the newest)\n"), "{text}");
    hub.change("org/trace", |repo| repo.commit("v1.0", &[("trace.jsonl", TRACE)]));
    let text = stdout(&machine.aiperf(&["dataset", "resolve", "hf://org/trace@v1.0/trace.jsonl"]));
    assert!(text.contains(" (what v1.0 names now)\n"), "{text}");
    let text = stderr(&machine.aiperf(&["dataset", "resolve", "hf:/org/trace"]));
    assert!(text.contains("Write hf://org/trace, if that is meant"), "{text}");
    let text = stderr(&machine.profile(&["--input-file", "hf//org/trace"]));
    assert!(text.contains("did you mean hf://org/trace?"), "{text}");
    std::fs::create_dir_all(machine.home.path().join("bare")).unwrap();
    std::fs::write(machine.home.path().join("bare/x.jsonl"), TRACE).unwrap();
    let text = stderr(&machine.aiperf(&["dataset", "resolve", "bare"]));
    assert!(text.contains("aiperf.json that `aiperf dataset publish-check` suggests"), "{text}");
    let local = machine.home.path().join("x.jsonl");
    std::fs::write(&local, TRACE).unwrap();
    let output = machine.aiperf(&["dataset", "resolve", "x.jsonl", "--json"]);
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&shown["resolved_version"], &shown["format"]), (&Value::Null, &Value::Null));
    let text = stdout(&machine.aiperf(&["dataset", "resolve", "x.jsonl"]));
    assert!(text.contains("\nversion          none (local)\n"), "{text}");
}

#[test]
fn fetch_fills_the_cache_for_offline_runs_and_goes_on_after_a_failure() {
    let hub = hub();
    let mut machine = Machine::new(&hub);
    let output = machine.aiperf(&["dataset", "fetch", "hf://org/none", "hf://org/trace"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).starts_with("Remote dataset hf://org/trace: using hf://datasets/org/trace@"));
    assert!(stderr(&output).contains("datasets/org/none was not found"));
    hub.clear_logs();
    let again = machine.aiperf(&["dataset", "fetch", "--json", "hf://org/trace"]);
    let shown: Value = serde_json::from_str(&stdout(&again)).unwrap();
    assert_eq!(shown[0]["files"][0]["sha256"].as_str().unwrap().len(), 64);
    assert!(hub.storage_log().is_empty());
    machine.set("AIPERF_DATASET_REMOTE_OFFLINE", "1");
    machine.set("HF_ENDPOINT", "http://127.0.0.1:9");
    let output = machine.profile(&["--input-file", "hf://org/trace"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(machine.summary()["metadata"]["dataset"]["offline"], true);
}

#[test]
fn the_example_of_the_documentation_replays_on_its_schedule_by_url() {
    let server = Server::start(|request| match request.path() {
        "/trace.jsonl" => {
            Answer::file(request, &TRACE.into()).with("Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT")
        }
        _ => Answer::status(404),
    });
    let machine = Machine::new(&hub());
    let url = format!("{}/trace.jsonl", server.url());
    let run = || {
        let output = machine.profile(&[
            "--streaming",
            "--input-file",
            &url,
            "--custom-dataset-type",
            "mooncake_trace",
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(run().contains("recorded times"));
    let dataset = machine.summary()["metadata"]["dataset"].clone();
    assert_eq!(dataset["format_source"], "flag");
    assert!(dataset["resolved_version"].as_str().unwrap().starts_with("modified:Mon, 30 Nov"), "{dataset}");
    server.clear_log();
    run();
    assert!(server.log().iter().all(|request| request.method == "HEAD" || request.path() != "/trace.jsonl"));
}

#[test]
fn what_a_run_says_of_its_data_names_them_as_they_were_typed() {
    let server = Server::start(|request| match request.path() {
        "/good.jsonl" => Answer::file(request, &TRACE.into()).with("ETag", "\"a\""),
        "/bad.jsonl" => Answer::file(request, &[TRACE, b"no record\n"].concat().into()).with("ETag", "\"b\""),
        _ => Answer::status(404),
    });
    let machine = Machine::bare();
    for (name, code, part) in
        [("good.jsonl", 0, ": detected as mooncake_trace; it is replayed"), ("bad.jsonl", 2, ":4: ")]
    {
        let url = format!("{}/{name}", server.url());
        let output = machine.profile(&["--input-file", &url]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(&format!("{url}{part}")), "{said}");
        let log = std::fs::read_to_string(machine.home.path().join("out/logs/aiperf.log")).unwrap();
        for told in [said, log] {
            assert!(!told.contains("/v1/https/") && !told.contains(".cache"), "{told}");
        }
    }
}

/// With the very server that the documentation starts: it has no tags, and takes no ranges.
#[test]
fn the_example_of_the_documentation_runs_from_pythons_server_and_is_transferred_once_for_each_version() {
    let machine = Machine::bare();
    let folder = machine.home.path().join("remote-demo");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("trace.jsonl"), TRACE).unwrap();
    let log = machine.home.path().join("log");
    let mut python = Command::new("python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"])
        .arg(&folder)
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(python.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let port = line.split("port ").nth(1).unwrap().split(' ').next().unwrap();
    let url = format!("http://127.0.0.1:{port}/trace.jsonl");
    let run = || {
        let arguments = ["--streaming", "--input-file", &url, "--custom-dataset-type", "mooncake_trace"];
        let output = machine.profile(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("recorded times"), "{}", stderr(&output));
        let transfers = std::fs::read_to_string(&log).unwrap().matches("\"GET /trace.jsonl HTTP").count();
        (machine.summary()["request_count"]["avg"].as_f64().unwrap() as u64, transfers)
    };
    let (requests, transfers) = run();
    assert!(requests == 3 && transfers > 0, "{requests} {transfers}");
    assert_eq!(run(), (3, transfers), "the second run transfers nothing");
    let longer =
        [TRACE, b"{\"timestamp\": 280, \"input_length\": 9, \"output_length\": 5, \"hash_ids\": [9]}\n"];
    std::fs::write(folder.join("trace.jsonl"), longer.concat()).unwrap();
    let (requests, again) = run();
    assert!(requests == 4 && again > transfers, "{requests} {again}");
    python.kill().unwrap();
    python.wait().unwrap();
}

/// A server that sends a part of a file and then nothing more, for as long as it is told to.
fn stalling(stalls: &Arc<AtomicBool>) -> Server {
    let stalls = Arc::clone(stalls);
    let body: Arc<[u8]> = TRACE.repeat(20_000).into();
    Server::start(move |request| {
        if request.path() != "/x.jsonl" {
            return Answer::status(404);
        }
        let mut answer = Answer::file(request, &body).with("ETag", "\"a\"");
        answer.stall_after = (request.method == "GET" && stalls.load(Ordering::Relaxed)).then_some(1_000_000);
        answer
    })
}

fn partial_files(machine: &Machine) -> usize {
    let tmp = machine.home.path().join(".cache/aiperf/remote/v1/tmp");
    std::fs::read_dir(tmp).map_or(0, Iterator::count)
}

/// Starts a fetch and returns once a part of the file is on the disk.
fn in_mid_transfer(machine: &Machine, url: &str) -> std::process::Child {
    let child = Command::new(env!("CARGO_BIN_EXE_aiperf"))
        .env_clear()
        .env("HOME", machine.home.path())
        .args(["dataset", "fetch", url])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let tmp = machine.home.path().join(".cache/aiperf/remote/v1/tmp");
    let has_bytes = || {
        std::fs::read_dir(&tmp).is_ok_and(|entries| {
            entries.flatten().any(|entry| entry.metadata().is_ok_and(|found| found.len() > 0))
        })
    };
    while !has_bytes() {
        std::thread::yield_now();
    }
    child
}

#[test]
fn a_signal_ends_a_transfer_with_1_and_leaves_nothing_behind() {
    let stalls = Arc::new(AtomicBool::new(true));
    let server = stalling(&stalls);
    let machine = Machine::new(&hub());
    let url = format!("{}/x.jsonl", server.url());
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let mut child = in_mid_transfer(&machine, &url);
        let pid = rustix::process::Pid::from_child(&child);
        let start = aiperf_clock::now();
        rustix::process::kill_process(pid, signal).unwrap();
        let status = child.wait().unwrap();
        // Within a second where the machine is free; in any case not only when the server gives up.
        assert!(aiperf_clock::now().saturating_since(start) < 10_000_000_000);
        assert_eq!(status.code(), Some(1));
        assert_eq!(partial_files(&machine), 0);
    }
}

#[test]
fn a_killed_transfer_is_never_taken_for_a_file() {
    let stalls = Arc::new(AtomicBool::new(true));
    let server = stalling(&stalls);
    let mut machine = Machine::new(&hub());
    let url = format!("{}/x.jsonl", server.url());
    let mut child = in_mid_transfer(&machine, &url);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(partial_files(&machine), 1);
    machine.set("AIPERF_DATASET_REMOTE_OFFLINE", "1");
    let offline = machine.aiperf(&["dataset", "fetch", &url]);
    assert!(stderr(&offline).contains("offline mode is on"), "{}", stderr(&offline));
    machine.variables.pop();
    stalls.store(false, Ordering::Relaxed);
    let output = machine.aiperf(&["dataset", "fetch", "--json", &url]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(shown[0]["bytes"], TRACE.len() * 20_000);
}

fn with_store(store: &StubStore) -> Machine {
    let mut machine = Machine::new(&hub());
    for (name, value) in [
        ("AWS_ENDPOINT_URL_S3", store.endpoint().as_str()),
        ("AWS_ACCESS_KEY_ID", "AKIACANARY"),
        ("AWS_SECRET_ACCESS_KEY", "canary-secret"),
        ("AWS_SESSION_TOKEN", "canary-session"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ] {
        machine.set(name, value);
    }
    machine
}

#[test]
fn a_prefix_of_s3_runs_like_the_same_file_on_disk() {
    let store = StubStore::start(&[("chat/aiperf.json", MANIFEST), ("chat/trace.jsonl", TRACE)]);
    let machine = with_store(&store);
    let output =
        machine.profile(&["--streaming", "--input-file", "s3://traces/chat/", "--log-level", "TRACE"]);
    let mut said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("recorded times"), "{said}");
    assert!(
        said.contains("Remote dataset s3://traces/chat/: using s3://traces/chat/ (version etag:"),
        "{said}"
    );
    let dataset = machine.summary()["metadata"]["dataset"].clone();
    assert_eq!(dataset["reference"], "s3://traces/chat/");
    assert_eq!(dataset["files"][0]["path"], "chat/trace.jsonl");
    assert_eq!(dataset["manifest"]["path"], "chat/aiperf.json");
    assert!(dataset["resolved_version"].as_str().unwrap().starts_with("etag:"), "{dataset}");
    let output = machine.aiperf(&["dataset", "resolve", "s3://traces/chat/", "--json"]);
    let resolved: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&resolved["cached"], &resolved["fixed_schedule"]), (&Value::Bool(true), &Value::Null));
    assert_eq!(resolved["files"][0]["path"], dataset["files"][0]["path"], "one key, one meaning");
    store.clear_log();
    let output = machine.aiperf(&["dataset", "fetch", "s3://traces/chat/"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let data = |request: &aiperf_test_servers::Request| {
        request.method == "GET" && request.path().ends_with("trace.jsonl")
    };
    assert!(!store.log().iter().any(data), "a second fetch transfers nothing");
    store.fault(|_| Some(aiperf_test_servers::s3::error(403, "AccessDenied")));
    let output = machine.profile(&["--input-file", "s3://traces/chat/"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    said += &stderr(&output);
    said += &String::from_utf8_lossy(&output.stdout);
    for path in files_below(machine.home.path()) {
        said += &String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default());
    }
    assert!(!said.to_lowercase().contains("canary"), "a key or token is printed or kept");
}

#[test]
fn offline_a_part_of_a_folder_is_no_run() {
    let manifest = b"{\"path\": \"d\", \"format\": \"mooncake_trace\"}";
    let hub = StubHub::start(&[(
        "org/shards",
        StubRepo::new(&[("aiperf.json", manifest), ("d/a.parquet", b"PAR1 a"), ("d/b.parquet", b"PAR1 b")]),
    )]);
    let mut machine = Machine::new(&hub);
    machine.fetched("hf://org/shards/d/a.parquet");
    machine.set("TRANSFORMERS_OFFLINE", "1");
    let output = machine.profile(&["--input-file", "hf://org/shards"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("was not found: it is not in the cache and offline mode is on"), "{said}");
    assert!(!machine.home.path().join("out").exists());
}
