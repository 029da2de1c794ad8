//! What happens before a run: which bytes are looked at, and what is asked for.

use std::io::Write as _;
use std::sync::Arc;

use aiperf_test_servers::{Answer, Request, Server, StubHub, StubRepo};
use serde_json::json;

use crate::machine::{Machine, TRACE, stderr, stdout};

/// A first record of so many bytes that no compression makes smaller, and another.
fn long_record(bytes: usize) -> Vec<u8> {
    let mut state = 1u64;
    let noise = (0..bytes).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,"[(state >> 58) as usize],
        )
    });
    let text: String = noise.collect();
    let record = |text: &str| json!({"timestamp": 0, "text_input": text, "output_length": 2}).to_string();
    format!("{}\n{}\n", record(&text), record("x")).into_bytes()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Serves `/x.jsonl` by a function.
fn serve(file: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> (Server, String) {
    let server = Server::start(move |request| match request.path() {
        "/x.jsonl" => file(request),
        _ => Answer::status(404),
    });
    let url = format!("{}/x.jsonl", server.url());
    (server, url)
}

fn of_bytes(bytes: Vec<u8>) -> (Server, String) {
    let bytes: Arc<[u8]> = bytes.into();
    serve(move |request| Answer::file(request, &bytes).with("ETag", "\"a\""))
}

/// The ends of the ranges that were asked for; 0 is a whole file.
fn looks(server: &Server) -> Vec<u64> {
    let log = server.log();
    let gets = log.iter().filter(|request| request.method == "GET" && request.path() == "/x.jsonl");
    gets.map(|request| request.range().and_then(|(_, end)| end).map_or(0, |end| end + 1)).collect()
}

#[test]
fn the_first_record_is_looked_for_in_steps() {
    const STEPS: [u64; 3] = [64 << 10, 1 << 20, 8 << 20];
    let machine = Machine::bare();
    let arguments = ["dataset", "resolve", "--first-record", "--custom-dataset-type", "mooncake_trace"];
    for (bytes, packed) in
        [(30_000, false), (200_000, false), (200_000, true), (2_000_000, true), (9_000_000, false)]
    {
        let lines = long_record(bytes);
        let stored = if packed { gzipped(&lines) } else { lines };
        let size = stored.len() as u64;
        let (server, url) = of_bytes(stored);
        let output = machine.aiperf(&[&arguments[..], &[&url]].concat());
        assert!(stdout(&output).contains("fixed schedule   yes"), "{bytes} {}", stderr(&output));
        // Nearly all of the file is its first record: it is read to its end, and as a whole above the last step.
        let mut expected: Vec<u64> = STEPS.iter().map(|step| size.min(*step)).collect();
        expected.dedup();
        if size > STEPS[2] {
            expected.push(0);
        }
        assert_eq!(looks(&server), expected, "{bytes} {packed}");
    }
    // Short records are seen at once, in any coding.
    for name in ["stored.jsonl", "stored.jsonl.gz", "stored.jsonl.zst"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/files").join(name);
        let (server, url) = of_bytes(std::fs::read(path).unwrap());
        let output = machine.aiperf(&[&arguments[..], &[&url]].concat());
        assert!(stdout(&output).contains("fixed schedule   "), "{name} {}", stderr(&output));
        assert_eq!(looks(&server).len(), 1, "{name}");
    }
}

#[test]
fn where_ranges_are_not_served_no_more_than_the_step_is_read() {
    let body: Arc<[u8]> = TRACE.repeat(200_000).into();
    // More would never come.
    let (_server, url) = serve(move |request| {
        let answer = Answer::status(200).with("ETag", "\"a\"").body(Arc::clone(&body));
        Answer { stall_after: (request.method == "GET").then_some(200_000), ..answer }
    });
    let arguments = ["dataset", "resolve", "--first-record", "--custom-dataset-type", "mooncake_trace", &url];
    let output = Machine::bare().aiperf(&arguments);
    assert!(stdout(&output).contains("fixed schedule   yes"), "{}", stderr(&output));
}

#[test]
fn a_first_record_that_expands_without_an_end_is_refused() {
    let (_server, url) = of_bytes(gzipped(&vec![b' '; 70 << 20]));
    let mut machine = Machine::bare();
    let tmp = machine.home.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    machine.set("TMPDIR", tmp.to_str().unwrap());
    let output = machine.profile(&["--input-file", &url, "--custom-dataset-type", "mooncake_trace"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("it does not look like mooncake_trace: its first record does not end within 64 MiB"),
        "{said}"
    );
    assert!(!machine.home.path().join("out").exists());
    assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0);
}

#[test]
fn what_a_format_tells_is_not_looked_for_in_the_data() {
    let weka =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/files/weka_trace.json")).unwrap();
    let manifest = |format: &str| json!({"path": "data", "format": format}).to_string();
    let hub = StubHub::start(&[(
        "org/weka",
        StubRepo::new(&[("aiperf.json", manifest("weka_trace").as_bytes()), ("lfs:data/a.json", &weka)]),
    )]);
    let machine = Machine::new(&hub);
    let output = machine.aiperf(&["dataset", "resolve", "--first-record", "hf://org/weka"]);
    assert!(stdout(&output).contains("fixed schedule   yes"), "{}", stderr(&output));
    let output = machine.profile(&["--input-file", "hf://org/weka", "--request-rate", "5"]);
    assert!(
        stderr(&output).contains("--request-rate conflicts with the recorded times"),
        "{}",
        stderr(&output)
    );
    assert!(hub.storage_log().is_empty());
    // Turned off, nothing conflicts: the data are fetched, and run.
    for off in [&["--ignore-trace-delays"][..], &["--use-think-time-only"], &["--no-fixed-schedule"]] {
        let common =
            ["--input-file", "hf://org/weka", "--concurrency", "4", "--inter-turn-delay-cap-seconds", "0.01"];
        let output = machine.profile(&[&common[..], off].concat());
        assert!(
            output.status.success() && !stderr(&output).contains("recorded times"),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(hub.storage_log().len(), 1);
    // No format of single requests makes a schedule by itself.
    let (server, url) = of_bytes(b"{\"text\": \"a\", \"timestamp\": 0}\n".to_vec());
    let output = machine.profile(&[
        "--input-file",
        &url,
        "--custom-dataset-type",
        "single_turn",
        "--request-rate",
        "90",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(looks(&server), [0]);
}

#[test]
fn a_schedule_that_is_asked_for_is_checked_once_the_data_are_here() {
    let untimed = "{\"input_length\": 9, \"output_length\": 2, \"delay\": 3}\n".repeat(3);
    for (lines, works) in [(TRACE.to_vec(), true), (untimed.into_bytes(), false)] {
        let (server, url) = of_bytes(lines);
        let machine = Machine::bare();
        let arguments = ["--input-file", &url, "--custom-dataset-type", "mooncake_trace"];
        let output = machine.profile(&[&arguments[..], &["--fixed-schedule"]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(if works { 0 } else { 2 }), "{said}");
        assert_eq!(looks(&server), [0]);
        let text = "Cannot use";
        assert_eq!(said.contains(text), !works, "{said}");
        if !works {
            let what = "--fixed-schedule needs recorded times, and its first record (mooncake_trace) has no timestamp, only a delay";
            assert!(said.contains(what) && !machine.home.path().join("out").exists(), "{said}");
        }
        // Without times nothing is promoted, and nothing conflicts.
        let sampled = ["--dataset-sampling-strategy", "shuffle", "--request-count", "3"];
        let output = machine.profile(&[&arguments[..], &sampled].concat());
        assert_eq!(output.status.code(), Some(if works { 2 } else { 0 }), "{}", stderr(&output));
        if works {
            assert!(stderr(&output).contains("does not go with a fixed schedule"), "{}", stderr(&output));
        }
    }
}

#[test]
fn the_publishers_block_size_gives_way_to_the_option() {
    // Two blocks for an input of 24 tokens: of 16, and not of the 512 that nobody changed.
    let row = b"{\"timestamp\": 0, \"input_length\": 24, \"output_length\": 2, \"hash_ids\": [1, 2]}\n";
    let manifest = br#"{"path": "x.jsonl", "format": "mooncake_trace", "block_size": 16}"#;
    let hub = StubHub::start(&[("org/set", StubRepo::new(&[("aiperf.json", manifest), ("x.jsonl", row)]))]);
    let machine = Machine::new(&hub);
    let run = |more: &[&str]| machine.profile(&[&["--input-file", "hf://org/set"][..], more].concat());
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("--custom-dataset-type mooncake_trace --isl-block-size 16"),
        "{}",
        stderr(&output)
    );
    let output = run(&["--isl-block-size", "64"]);
    assert!(stderr(&output).contains("2 blocks of 64 tokens"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn proxies_of_the_environment_are_used() {
    let proxy = Server::start(|request| match request.target.as_str() {
        "http://example.invalid/x.jsonl" => Answer::file(request, &TRACE.into()).with("ETag", "\"a\""),
        _ => Answer::status(404),
    });
    let mut machine = Machine::bare();
    machine.set("HTTP_PROXY", &proxy.url());
    machine.set("http_proxy", &proxy.url());
    machine.set("NO_PROXY", "127.0.0.1");
    let shown = machine.fetched("http://example.invalid/x.jsonl");
    assert_eq!(shown["bytes"], TRACE.len());
    let asked = proxy.log().len();
    let (_server, url) = of_bytes(TRACE.to_vec());
    machine.fetched(&url);
    assert_eq!(proxy.log().len(), asked);
}

#[test]
fn everything_wrong_with_a_source_is_told_before_a_byte_of_its_data() {
    let parquet: &[u8] = b"PAR1";
    let manifest = |path: &str, format: &str| json!({"path": path, "format": format}).to_string();
    let graph = manifest("x.jsonl", "dag_jsonl");
    let single = manifest("d", "single_turn");
    let inputs = manifest("d", "inputs_json");
    let hub = StubHub::start(&[
        ("org/graph", StubRepo::new(&[("aiperf.json", graph.as_bytes()), ("lfs:x.jsonl", TRACE)])),
        ("org/jsonl", StubRepo::new(&[("aiperf.json", single.as_bytes()), ("lfs:d/x.jsonl", TRACE)])),
        ("org/doc", StubRepo::new(&[("aiperf.json", inputs.as_bytes()), ("lfs:d/x.parquet", parquet)])),
        ("org/gap", StubRepo::new(&[("lfs:d/train-00001-of-00002.parquet", parquet)])),
        (
            "org/mixed",
            StubRepo::new(&[("lfs:d/train-00000-of-00001.parquet", parquet), ("lfs:d/more.jsonl", TRACE)]),
        ),
        ("org/two", StubRepo::new(&[("lfs:a/0.parquet", parquet), ("lfs:b/0.parquet", parquet)])),
        ("org/arrow", StubRepo::new(&[("lfs:x.arrow", parquet)])),
        ("org/empty", StubRepo::new(&[("lfs:x.jsonl", b"")])),
    ]);
    let machine = Machine::new(&hub);
    for (reference, more, part) in [
        ("hf://org/graph", &[][..], "--conversation-num, --request-count or --benchmark-duration"),
        ("hf://org/jsonl", &[], "reads one file"),
        ("hf://org/doc", &[], "inputs_json does not read parquet files"),
        (
            "hf://org/two/a/0.parquet",
            &["--custom-dataset-type", "raw_payload"],
            "does not read parquet files",
        ),
        (
            "hf://org/gap",
            &["--custom-dataset-type", "single_turn"],
            "train-00000-of-00002.parquet is missing",
        ),
        (
            "hf://org/mixed",
            &["--custom-dataset-type", "single_turn"],
            "\"more.jsonl\" lies beside the parquet shards",
        ),
        ("hf://org/two", &["--custom-dataset-type", "single_turn"], "has several datasets under"),
        (
            "hf://org/gap/d",
            &["--custom-dataset-type", "baseten_trace"],
            "baseten_trace reads one parquet file",
        ),
        ("hf://org/arrow/x.arrow", &["--custom-dataset-type", "single_turn"], "only baseten_trace does"),
        ("hf://org/empty/x.jsonl", &[], "is empty"),
    ] {
        let output = machine.profile(&[&["--input-file", reference][..], more].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{reference}: {said}");
        assert!(said.contains("Cannot use ") && said.contains(part), "{reference}: {said}");
        assert!(!machine.home.path().join("out").exists());
    }
    assert!(hub.storage_log().is_empty());
}
