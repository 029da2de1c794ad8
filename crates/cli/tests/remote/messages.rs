//! One fault, one message: under `profile`, `dataset resolve` and `dataset fetch`, and under the commands that look into
//! data.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Output;

use aiperf_test_servers::{Answer, Server, StubHub, StubRepo, StubStore};
use serde_json::json;

use crate::machine::{MANIFEST, Machine, TRACE, files_below, stderr};

/// Which commands meet a fault.
#[derive(Clone, Copy, PartialEq)]
enum Met {
    /// All three.
    ByAll,
    /// Those that take this option: `fetch` has none.
    With(&'static [&'static str]),
    /// Those that download and look at the first record.
    Downloading,
    /// Everything that downloads. The first record of such data lies behind their end: `resolve` brings them, too, where it is
    /// asked for that record.
    Bringing,
}

struct Row {
    reference: String,
    met: Met,
    /// What went wrong, and the next step.
    what: String,
    fix: String,
    code: i32,
}

fn row(reference: impl Into<String>, met: Met, what: &str, fix: &str, code: i32) -> Row {
    Row { reference: reference.into(), met, what: what.into(), fix: fix.into(), code }
}

/// Each command that meets the fault, all at once.
fn outputs(machine: &Machine, row: &Row) -> Vec<Output> {
    let reference = row.reference.as_str();
    let more: &[&str] = match row.met {
        Met::With(more) => more,
        Met::Bringing => &["--custom-dataset-type", "mooncake_trace"],
        _ => &[],
    };
    let run = [
        "profile",
        "--model",
        "m",
        "--url",
        "mock://",
        "--output-artifact-dir",
        "out",
        "--input-file",
        reference,
    ];
    let mut started = vec![machine.start(&[&run[..], more].concat())];
    if row.met != Met::Downloading {
        let look: &[&str] = if row.met == Met::Bringing { &["--first-record"] } else { &[] };
        started.push(machine.start(&[&["dataset", "resolve", reference][..], more, look].concat()));
    }
    if !matches!(row.met, Met::With(_)) {
        started.push(machine.start(&["dataset", "fetch", reference]));
    }
    if matches!(row.met, Met::Bringing | Met::ByAll) {
        started.push(machine.start(&["validate", "auto", reference]));
        started.push(machine.start(&["analyze-trace", reference]));
        started.push(machine.start(&["anonymize", reference, "--output", "out"]));
    }
    started.into_iter().map(|child| child.wait_with_output().unwrap()).collect()
}

/// How much is free changes while others write.
fn without_free_space(line: &str) -> String {
    match (line.rsplit_once(" and "), line.rsplit_once(" are free")) {
        (Some((before, _)), Some((_, after))) => format!("{before} and N are free{after}"),
        _ => line.to_owned(),
    }
}

fn check(machine: &Machine, rows: &[Row]) {
    for row in rows {
        let outputs = outputs(machine, row);
        let said: Vec<String> = outputs
            .iter()
            .map(|output| {
                let talk = stderr(output);
                // `validate` says first what that means.
                let starts = ["error: ", "Validation failed: "];
                let told = |line| starts.iter().find_map(|start| str::strip_prefix(line, start));
                let line = talk.lines().filter_map(told).find(|line| line.starts_with("Cannot use "));
                without_free_space(line.unwrap_or_else(|| panic!("{}: {talk}", row.reference)))
            })
            .collect();
        assert!(said[0].contains(&row.what) && said[0].contains(&row.fix), "{}", said[0]);
        assert!(said[0].ends_with('.') && !said[0].contains("canary"), "{}", said[0]);
        assert!(said.iter().all(|line| *line == said[0]), "{said:#?}");
        assert!(outputs.iter().all(|output| output.status.code() == Some(row.code)), "{said:#?}");
        assert!(!machine.home.path().join("out").exists(), "{said:#?}");
    }
}

/// Repositories that each have one fault.
fn published() -> StubHub {
    let file: &[(&str, &[u8])] = &[("lfs:x.jsonl", TRACE)];
    let needs =
        json!({"path": "x.jsonl", "format": "mooncake_trace", "requires": {"endpoint_types": ["rankings"]}});
    let needs = needs.to_string();
    StubHub::start(&[
        ("org/bare", StubRepo::new(file)),
        ("org/gated", StubRepo { gated: true, ..StubRepo::new(file) }),
        ("org/off", StubRepo { disabled: true, ..StubRepo::new(file) }),
        ("org/bad", StubRepo::new(&[("aiperf.json", b"{\"path\": 1}"), ("lfs:x.jsonl", TRACE)])),
        ("org/new", StubRepo::new(&[("aiperf.json", b"{\"requires\": {\"aiperf\": \">=99\"}}")])),
        ("org/needs", StubRepo::new(&[("aiperf.json", needs.as_bytes()), ("lfs:x.jsonl", TRACE)])),
        ("org/good", StubRepo::new(&[("aiperf.json", MANIFEST), ("lfs:trace.jsonl", TRACE)])),
        (
            "org/splits",
            StubRepo::new(&[
                ("lfs:d/a-00000-of-00001.parquet", b"PAR1"),
                ("lfs:d/b-00000-of-00001.parquet", b"PAR1"),
            ]),
        ),
        ("org/sets", StubRepo::new(&[("lfs:a/0.parquet", b"PAR1"), ("lfs:b/0.parquet", b"PAR1")])),
        ("org/empty", StubRepo::new(&[("lfs:x.jsonl", b"")])),
        (
            "org/odd",
            StubRepo::new(&[
                ("aiperf.json", b"{\"path\": \"x.jsonl\", \"format\": \"no_such\"}"),
                ("lfs:x.jsonl", TRACE),
            ]),
        ),
    ])
}

#[test]
fn what_is_wrong_with_a_reference_or_its_source() {
    use Met::{ByAll, With};

    let hub = published();
    let mut machine = Machine::new(&hub);
    machine.variables.retain(|(name, _)| name != "HF_TOKEN");
    let store = StubStore::start(&[
        ("p/x.jsonl", TRACE),
        ("q/aiperf.json", b"{\"path\": \".\", \"format\": \"single_turn\"}"),
        ("q/a-00000-of-00001.parquet", b"PAR1"),
        ("q/b-00000-of-00001.parquet", b"PAR1"),
    ]);
    machine.set("AWS_ENDPOINT_URL_S3", &store.endpoint());
    machine.set("AWS_EC2_METADATA_DISABLED", "true");
    let typed = With(&["--custom-dataset-type", "single_turn"]);
    check(
        &machine,
        &[
            row("s3://traces/p", ByAll, "was not found", "Add a / at its end", 2),
            row("s3://traces/p/", ByAll, "has no aiperf.json", "Point at one file", 2),
            row(
                "s3://traces/q/",
                ByAll,
                "its manifest folder s3://traces/q/ holds the splits a, b and none is named 'train'",
                "Ask the publisher to keep one split in the folder, or to name it train",
                2,
            ),
            row(
                "hf://org/odd",
                ByAll,
                "unknown format \"no_such\"",
                "aiperf plugins custom-dataset-loader",
                2,
            ),
            row("s3://none/x.jsonl", ByAll, "the bucket none was not found", "Check its spelling", 2),
            row("hf://org", ByAll, "the owner is missing", "hf://<org>/<repo>", 2),
            row("gs://b/x", ByAll, "gs:// is not supported", "hf://, s3://, https://, http://", 2),
            row("hf://org/none", ByAll, "was not found", "needs a token in HF_TOKEN", 2),
            row("hf://org/bare@v9/x.jsonl", ByAll, "revision \"v9\" was not found", "%2F", 2),
            row("hf://org/bare/y.jsonl", ByAll, "the path \"y.jsonl\"", "Check the spelling", 2),
            row("hf://org/bare", ByAll, "has no aiperf.json", "Point at one file", 2),
            row(
                "hf://org/gated/x.jsonl",
                ByAll,
                "is gated",
                "Accept its terms on the Hub, then set HF_TOKEN",
                2,
            ),
            row("hf://org/off", ByAll, "access was denied: ", "Ask its owner", 2),
            row("hf://org/bad", ByAll, "aiperf.json is not valid: ", "Ask the publisher to correct it", 2),
            row("hf://org/new", ByAll, "needs AIPerf >=99", "Use a version of AIPerf that is >=99", 2),
            row(
                "hf://org/needs",
                With(&["--endpoint-type", "chat"]),
                "supports endpoint types rankings",
                "Change --endpoint-type",
                2,
            ),
            row(
                "hf://org/good",
                typed,
                "declares format mooncake_trace but --custom-dataset-type is single_turn",
                "Drop",
                2,
            ),
            row(
                "hf://org/splits",
                ByAll,
                "holds the splits a, b",
                "Use one split's shard, e.g. hf://datasets/org/splits/d/a-",
                2,
            ),
            row(
                "hf://org/sets",
                ByAll,
                "has several datasets under ",
                "Use one of: hf://datasets/org/sets/a, ",
                2,
            ),
            row(
                "hf://org/sets/a/0.parquet",
                With(&["--custom-dataset-type", "inputs_json"]),
                "inputs_json does not read parquet files",
                "Convert the data to JSONL",
                2,
            ),
            row("hf://org/empty/x.jsonl", ByAll, "is empty", "Ask the publisher", 2),
            row("hf://org/bare/aiperf.json", ByAll, "names a manifest", "Name the folder", 2),
        ],
    );
    machine.set("HF_HUB_ETAG_TIMEOUT", "soon");
    let wrong = "HF_HUB_ETAG_TIMEOUT is \"soon\": it must be seconds";
    check(&machine, &[row("hf://org/bare/x.jsonl", ByAll, wrong, "Correct the variable, or unset it", 2)]);
    machine.set("HF_HUB_ETAG_TIMEOUT", "9");
    // None of it was told after a byte of the data.
    assert!(hub.storage_log().is_empty());
    machine.set("AIPERF_DATASET_REMOTE_OFFLINE", "1");
    let offline = "was not found: it is not in the cache and offline mode is on";
    check(&machine, &[row("hf://org/bare/x.jsonl", ByAll, offline, "download it once online", 2)]);
}

#[test]
fn what_servers_answer_instead_of_a_file() {
    use Met::ByAll;

    let server = Server::start(|request| match request.path() {
        "/denied" => Answer::status(403),
        "/moved" => Answer::status(302).with("Location", "ftp://h/x"),
        "/busy" => Answer::status(503).with("Retry-After", "0"),
        "/limited" => Answer::status(429).with("Retry-After", "7200"),
        _ => Answer::status(404),
    });
    let url = |path: &str| format!("{}{path}", server.url());
    let mut machine = Machine::bare();
    check(
        &machine,
        &[
            row(url("/x"), ByAll, "was not found", "Check the spelling of the URL", 2),
            row(url("/denied"), ByAll, "access was denied: ", "Use a public URL", 2),
            row(
                url("/denied?sig=canary&se=2020-01-01"),
                ByAll,
                "access was denied: the presigned URL has expired (at 2020-01-01T00:00:00.000000Z UTC)",
                "Generate a new URL",
                2,
            ),
            row(url("/moved"), ByAll, "the redirect of 127.0.0.1:", "Use the address that it leads to", 1),
            row(url("/busy"), ByAll, "the server answered 503 to ", "Retry later", 1),
            row(url("/limited"), ByAll, "it is rate limited for 7200 s", "Retry later, in 7200 s", 1),
            row("http://127.0.0.1:9/x", ByAll, "could not connect to 127.0.0.1:9: ", "Check the network", 1),
        ],
    );
    machine.set("HF_ENDPOINT", &server.url());
    check(&machine, &[row("hf://org/x", ByAll, "was not found", "HF_TOKEN", 2)]);
}

#[test]
fn what_goes_wrong_with_a_download() {
    let bad = json!({"path": "x.jsonl", "format": "mooncake_trace", "sha256": "a".repeat(64)}).to_string();
    let other = json!({"path": "x.jsonl", "format": "single_turn"}).to_string();
    let store = StubStore::start(&[
        ("bad/aiperf.json", bad.as_bytes()),
        ("bad/x.jsonl", TRACE),
        ("other/aiperf.json", other.as_bytes()),
        ("other/x.jsonl", TRACE),
        ("folder/aiperf.json", b"{\"path\": \"d\", \"format\": \"raw_payload\"}"),
        ("folder/d/a.jsonl", b"no body\n"),
    ]);
    let server = Server::start(|request| {
        let whole = Answer::file(request, &TRACE.into()).with("ETag", "W/\"a\"");
        match (request.path(), request.method.as_str()) {
            ("/short", "GET") if request.range().is_none() => Answer { cut_after: Some(20), ..whole },
            ("/new", "GET") => Answer::file(request, &TRACE.into()).with("ETag", "\"b\""),
            ("/short" | "/new" | "/fine", _) => whole,
            _ => Answer::status(404),
        }
    });
    let mut machine = Machine::bare();
    machine.set("AWS_ENDPOINT_URL_S3", &store.endpoint());
    machine.set("AWS_EC2_METADATA_DISABLED", "true");
    let url = |path: &str| format!("{}{path}", server.url());
    let met = Met::Downloading;
    check(
        &machine,
        &[
            row("s3://traces/bad/", met, "sha256 does not match: bad/x.jsonl has ", "Tell the publisher", 2),
            row(
                "s3://traces/other/",
                met,
                "does not look like single_turn: other/x.jsonl",
                "Choose another format",
                2,
            ),
            row(
                "s3://traces/folder/",
                met,
                "does not look like raw_payload: d/a.jsonl",
                "Choose another format",
                2,
            ),
            row(url("/new"), met, "changed after AIPerf pinned its version", "Run again", 1),
            row(url("/short"), met, "the transfer was cut short: ", "Run again", 1),
        ],
    );
    let blocked = machine.home.path().join("blocked");
    std::fs::write(&blocked, "x").unwrap();
    machine.set("AIPERF_DATASET_REMOTE_CACHE_DIR", blocked.to_str().unwrap());
    check(
        &machine,
        &[row(
            url("/fine"),
            met,
            "cannot write ",
            "set AIPERF_DATASET_REMOTE_CACHE_DIR to another directory",
            1,
        )],
    );
}

/// The one lock file below a folder.
fn lock_below(folder: &Path) -> PathBuf {
    let mut locks = files_below(folder);
    locks.retain(|path| path.extension().is_some_and(|ending| ending == "lock"));
    assert_eq!(locks.len(), 1, "{locks:?}");
    locks.remove(0)
}

#[test]
fn what_keeps_a_download_from_its_place() {
    let parquet: &[u8] = b"PAR1";
    let hub = StubHub::start(&[("org/set", StubRepo::new(&[("lfs:x.parquet", parquet)]))]);
    let store = StubStore::start(&[("x.parquet", parquet)]);
    let server = Server::start(move |request| {
        let file = |etag: &str| Answer::file(request, &parquet.into()).with("ETag", etag);
        match (request.path(), request.method.as_str()) {
            // More than any disk has.
            ("/huge.parquet", _) => file("\"a\"").with("Content-Length", (1u64 << 60).to_string()),
            ("/new.parquet", "GET") => file("\"b\""),
            ("/x.parquet" | "/new.parquet", _) => file("\"a\""),
            _ => Answer::status(404),
        }
    });
    let url = |name: &str| format!("{}/{name}.parquet", server.url());
    let mut machine = Machine::new(&hub);
    machine.set("AWS_ENDPOINT_URL_S3", &store.endpoint());
    machine.set("AWS_EC2_METADATA_DISABLED", "true");
    machine.set("AIPERF_DATASET_REMOTE_LOCK_TIMEOUT", "0.2");
    let hub_cache = machine.home.path().join(".cache/huggingface/hub");
    for (reference, cache, content) in [
        (url("x"), machine.cache(), "https"),
        ("s3://traces/x.parquet".to_owned(), machine.cache(), "s3"),
        ("hf://org/set/x.parquet".to_owned(), hub_cache, "datasets--org--set"),
    ] {
        // The first fetch shows which lock it is; then its files are gone, and somebody else is at it.
        machine.fetched(&reference);
        let lock = lock_below(&cache);
        std::fs::remove_dir_all(cache.join(content)).unwrap();
        let held = File::open(&lock).unwrap();
        held.lock().unwrap();
        let what = format!("another process holds {}", lock.display());
        check(
            &machine,
            &[row(reference, Met::Bringing, &what, "a lock ends with the process that holds it", 1)],
        );
        drop(held);
        std::fs::remove_file(&lock).unwrap();
    }
    // From here on those that are started together wait for each other.
    machine.set("AIPERF_DATASET_REMOTE_LOCK_TIMEOUT", "600");
    let changed = "changed after AIPerf pinned its version";
    let full = "not enough disk space in ";
    let elsewhere = "set AIPERF_DATASET_REMOTE_CACHE_DIR to a directory with more";
    check(
        &machine,
        &[
            row(url("huge"), Met::Bringing, full, elsewhere, 1),
            row(url("new"), Met::Bringing, changed, "Run again", 1),
        ],
    );
    let blocked = machine.home.path().join("blocked");
    std::fs::write(&blocked, "x").unwrap();
    let blocked = blocked.to_str().unwrap();
    machine.set("AIPERF_DATASET_REMOTE_CACHE_DIR", blocked);
    machine.set("HF_HUB_CACHE", blocked);
    for (reference, variable) in [
        (url("x"), "AIPERF_DATASET_REMOTE_CACHE_DIR"),
        ("s3://traces/x.parquet".to_owned(), "AIPERF_DATASET_REMOTE_CACHE_DIR"),
        ("hf://org/set/x.parquet".to_owned(), "HF_HUB_CACHE"),
    ] {
        let elsewhere = format!("set {variable} to another directory");
        check(&machine, &[row(reference, Met::Bringing, "cannot write ", &elsewhere, 1)]);
    }
}
