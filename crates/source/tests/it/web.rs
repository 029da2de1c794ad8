//! Files behind URLs.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use aiperf_source::{Ask, Blame, Event, FormatSource, Reference};
use aiperf_test_servers::{Answer, Request, Server};

use crate::support::{Machine, ask};

const LINES: &[u8] = b"{\"timestamp\": 0, \"input_length\": 12, \"output_length\": 5, \"hash_ids\": [0]}\n";

fn with(format: &'static str) -> Ask<'static> {
    Ask { format: Some(format), ..ask() }
}

/// Serves `/x.jsonl` by a function, and nothing else.
fn serve(file: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Server {
    Server::start(move |request| {
        if request.path().ends_with("/x.jsonl") || request.path().ends_with("/x.jsonl.gz") {
            file(request)
        } else {
            Answer::status(404)
        }
    })
}

fn tagged(bytes: &[u8], etag: &str) -> impl Fn(&Request) -> Answer + Send + Sync + 'static + use<> {
    let bytes: Arc<[u8]> = bytes.into();
    let etag = etag.to_owned();
    move |request| Answer::file(request, &bytes).with("ETag", etag.clone())
}

fn asked(server: &Server) -> Vec<String> {
    server.log().iter().map(|request| format!("{} {}", request.method, request.target)).collect()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_file_is_transferred_once_for_each_version() {
    let current = Arc::new(Mutex::new(("\"one\"", LINES)));
    let answers = Arc::clone(&current);
    let server = serve(move |request| {
        let (etag, bytes) = *answers.lock().unwrap();
        Answer::file(request, &bytes.into()).with("ETag", etag)
    });
    let machine = Machine::new(&[]);
    let url = format!("{}/x.jsonl", server.url());
    let local = machine.fetch(&url, &with("mooncake_trace")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), LINES);
    assert_eq!(local.provenance.version.as_deref(), Some("etag:\"one\""));
    assert_eq!(local.files[0].name, "x.jsonl");
    assert_eq!(asked(&server), ["HEAD /x.jsonl", "GET /x.jsonl.aiperf.json", "GET /x.jsonl"]);
    server.clear_log();
    machine.fetch(&url, &with("mooncake_trace")).unwrap();
    assert_eq!(asked(&server), ["HEAD /x.jsonl", "GET /x.jsonl.aiperf.json"]);
    *current.lock().unwrap() = ("\"two\"", b"{}\n");
    let local = machine.fetch(&url, &with("mooncake_trace")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), b"{}\n");
}

/// What is sent must be what the results say was sent.
#[test]
fn a_cached_file_that_was_altered_and_kept_its_length_is_fetched_again() {
    let server = serve(tagged(LINES, "\"one\""));
    let machine = Machine::new(&[]);
    let url = format!("{}/x.jsonl", server.url());
    let local = machine.fetch(&url, &with("mooncake_trace")).unwrap();
    let path = &local.files[0].path;
    let write = |bytes: &[u8], seconds: u64| {
        std::fs::write(path, bytes).unwrap();
        // A time of its own, however coarse the clock of the filesystem.
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    };
    let mut altered = LINES.to_vec();
    altered[15] = b'7';
    write(&altered, 1_000_000_000);
    server.clear_log();
    let again = machine.fetch(&url, &with("mooncake_trace")).unwrap();
    assert_eq!(std::fs::read(&again.files[0].path).unwrap(), LINES);
    assert_eq!(again.files[0].sha256, local.files[0].sha256);
    assert_eq!(asked(&server).last().map(String::as_str), Some("GET /x.jsonl"));
    let notes = machine.notes();
    assert!(
        notes.iter().any(|note| note.contains("is not what it should be: it is fetched again")),
        "{notes:?}"
    );
    // The same bytes at another time, as in a cache that was copied, are no reason to fetch.
    write(LINES, 1_100_000_000);
    server.clear_log();
    machine.fetch(&url, &with("mooncake_trace")).unwrap();
    assert_eq!(asked(&server), ["HEAD /x.jsonl", "GET /x.jsonl.aiperf.json"]);
    // That time is on record now.
    let entry =
        path.ancestors().map(|folder| folder.join("entry.json")).find(|entry| entry.exists()).unwrap();
    let entry = std::fs::read_to_string(entry).unwrap();
    assert!(entry.contains("\"modified\":1100000000000000000"), "{entry}");
}

#[test]
fn no_download_is_announced_offline() {
    let server = serve(tagged(LINES, "\"a\""));
    let mut machine = Machine::new(&[]);
    let url = format!("{}/x.jsonl", server.url());
    let local = machine.fetch(&url, &with("single_turn")).unwrap();
    std::fs::remove_file(&local.files[0].path).unwrap();
    machine.events.lock().unwrap().clear();
    machine.set("AIPERF_DATASET_REMOTE_OFFLINE", "1");
    let error = machine.fetch(&url, &with("single_turn")).unwrap_err();
    assert!(error.to_string().contains("offline mode is on"), "{error}");
    let events = machine.events.lock().unwrap();
    assert!(!events.iter().any(|event| matches!(event, Event::Start { .. })), "{events:?}");
}

#[test]
fn a_sidecar_supplies_format_and_defaults() {
    let server = Server::start(|request| match request.path() {
        "/x.jsonl" => tagged(LINES, "\"a\"")(request),
        "/x.jsonl.aiperf.json" => {
            Answer::status(200).body(*b"{\"format\": \"mooncake_trace\", \"block_size\": 16}")
        }
        _ => Answer::status(404),
    });
    let machine = Machine::new(&[]);
    let plan = machine.access(&format!("{}/x.jsonl", server.url()), &ask()).unwrap();
    assert_eq!((plan.format_source, plan.block_size), (Some(FormatSource::Sidecar), Some(16)));
    // Not beside a URL with a query.
    let plan = machine.access(&format!("{}/x.jsonl?v=1", server.url()), &ask()).unwrap();
    assert_eq!(plan.format, None);
}

#[test]
fn offline_a_sidecar_is_the_newest_one_though_the_file_beside_it_is_the_same() {
    let sidecar = Arc::new(Mutex::new("single_turn"));
    let its_format = Arc::clone(&sidecar);
    let server = Server::start(move |request| match request.path() {
        "/x.jsonl" => tagged(LINES, "\"a\"")(request),
        "/x.jsonl.aiperf.json" => Answer::json(&serde_json::json!({"format": *its_format.lock().unwrap()})),
        _ => Answer::status(404),
    });
    let url = format!("{}/x.jsonl", server.url());
    let mut machine = Machine::new(&[]);
    machine.fetch(&url, &ask()).unwrap();
    *sidecar.lock().unwrap() = "mooncake_trace";
    machine.fetch(&url, &ask()).unwrap();
    machine.set("AIPERF_DATASET_REMOTE_OFFLINE", "1");
    assert_eq!(machine.access(&url, &ask()).unwrap().format, Some("mooncake_trace"));
}

#[test]
fn the_sidecar_lies_beside_the_url_as_it_was_given() {
    let server = Server::start(|request| match request.path() {
        "/moved/x.jsonl" => Answer::status(302).with("Location", "/real/x.jsonl"),
        "/real/x.jsonl" => tagged(LINES, "\"a\"")(request),
        "/moved/x.jsonl.aiperf.json" => Answer::status(200).body(*b"{\"format\": \"mooncake_trace\"}"),
        "/real/x.jsonl.aiperf.json" => Answer::status(200).body(*b"{\"format\": \"single_turn\"}"),
        _ => Answer::status(404),
    });
    let plan = Machine::new(&[]).access(&format!("{}/moved/x.jsonl", server.url()), &ask()).unwrap();
    assert_eq!(plan.format, Some("mooncake_trace"));
}

#[test]
fn what_stands_in_the_place_of_a_sidecar_is_none_unless_the_server_is_in_trouble() {
    for (status, kind, absent) in
        [(200, "text/html", true), (401, "", true), (403, "", true), (410, "", true), (500, "", false)]
    {
        let server = Server::start(move |request| {
            if request.path() == "/x.jsonl" {
                tagged(LINES, "\"a\"")(request)
            } else {
                Answer::status(status).with("Content-Type", kind).body(*b"<html>")
            }
        });
        let machine = Machine::new(&[]);
        let result = machine.access(&format!("{}/x.jsonl", server.url()), &with("single_turn"));
        assert_eq!(result.is_ok(), absent, "{status} {result:?}");
        let attempts = asked(&server).iter().filter(|line| line.contains("aiperf.json")).count();
        assert_eq!(attempts, if absent { 1 } else { 3 });
    }
}

#[test]
fn where_head_is_not_allowed_the_first_byte_tells() {
    for status in [400, 403, 405, 501] {
        let server = serve(move |request| {
            if request.method == "HEAD" { Answer::status(status) } else { tagged(LINES, "W/\"a\"")(request) }
        });
        let machine = Machine::new(&[]);
        let plan = machine.access(&format!("{}/x.jsonl", server.url()), &with("single_turn")).unwrap();
        assert_eq!(plan.bytes(), Some(LINES.len() as u64));
        assert_eq!(server.log()[1].header("range"), Some("bytes=0-0"));
    }
}

#[test]
fn a_presigned_url_is_asked_by_get_and_shares_its_cache_with_the_next_signature() {
    let server = serve(tagged(LINES, "\"a\""));
    let machine = Machine::new(&[]);
    let url = |signature: &str| {
        format!(
            "{}/x.jsonl?part=1&X-Amz-Date=20200101T000000Z&X-Amz-Expires=60&X-Amz-Signature={signature}",
            server.url()
        )
    };
    let local = machine.fetch(&url("canary1"), &with("single_turn")).unwrap();
    assert!(server.log().iter().all(|request| request.method == "GET"));
    assert!(!local.provenance.json().to_string().contains("canary"));
    assert!(local.provenance.reference.contains("part=1"), "{}", local.provenance.reference);
    server.clear_log();
    let again = machine.fetch(&url("canary2"), &with("single_turn")).unwrap();
    assert_eq!(again.files, local.files);
    assert_eq!(server.log().len(), 1);
    // The clock of this machine did not refuse it; the server may.
    let refusing = serve(|_| Answer::status(403).body(*b"<Message>Request has expired</Message>"));
    let url = url("canary3").replace(&server.url(), &refusing.url());
    let error = machine.access(&url, &with("single_turn")).unwrap_err();
    assert!(
        error.to_string().contains("access was denied: the presigned URL has expired (at 2020-01-01"),
        "{error}"
    );
    assert!(
        error.to_string().contains("Generate a new URL") && !error.to_string().contains("canary"),
        "{error}"
    );
    for query in ["X-Amz-Signature=<redacted>", "token=<redacted>"] {
        let printed = machine.access(&format!("https://h/x?{query}"), &with("single_turn")).unwrap_err();
        assert!(printed.to_string().contains("Give the whole URL"), "{printed}");
    }
}

#[test]
fn a_file_without_a_version_is_fetched_every_time_with_a_warning() {
    let server = serve(|request| {
        let mut answer = Answer::status(200).body(LINES);
        answer.without_length = true;
        let _ = request;
        answer
    });
    let mut machine = Machine::new(&[]);
    let url = format!("{}/x.jsonl", server.url());
    for _ in 0..2 {
        let local = machine.fetch(&url, &with("single_turn")).unwrap();
        assert_eq!(local.provenance.version, None);
        assert_eq!(std::fs::read(&local.files[0].path).unwrap(), LINES);
    }
    assert!(machine.notes().iter().any(|note| note.contains("downloaded again on every run")));
    machine.set("HF_HUB_OFFLINE", "1");
    server.clear_log();
    let offline = machine.fetch(&url, &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&offline.files[0].path).unwrap(), LINES);
    assert!(server.log().is_empty());
    let error = machine.fetch(&format!("{url}?other"), &with("single_turn")).unwrap_err().to_string();
    assert!(error.contains("not in the cache and offline mode is on"), "{error}");
}

#[test]
fn what_is_compressed_for_the_transfer_is_decoded_and_a_gz_file_is_not() {
    let packed: Arc<[u8]> = gzipped(&LINES.repeat(10_000)).into();
    let body = Arc::clone(&packed);
    let server = serve(move |_| {
        Answer::status(200).with("Content-Encoding", "gzip").with("ETag", "\"a\"").body(Arc::clone(&body))
    });
    let machine = Machine::new(&[]);
    let local = machine.fetch(&format!("{}/x.jsonl", server.url()), &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), LINES.repeat(10_000));
    let local = machine.fetch(&format!("{}/x.jsonl.gz", server.url()), &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), *packed);
    let server = serve(|_| Answer::status(200).with("Content-Encoding", "br").body(*b"x"));
    let error = machine.access(&format!("{}/x.jsonl", server.url()), &with("single_turn")).unwrap_err();
    assert!(error.to_string().contains("content encoding \"br\""), "{error}");
}

#[test]
fn a_body_that_is_compressed_behind_a_head_that_is_not_is_decoded() {
    let lines = LINES.repeat(10_000);
    let (whole, packed) = (Arc::<[u8]>::from(lines.clone()), Arc::<[u8]>::from(gzipped(&lines)));
    let packed_sidecar = gzipped(b"{\"format\": \"single_turn\"}");
    // HEAD tells the length of the file, or that of what is sent; ranges are of what is sent, or not served.
    for (announced, ranges) in [(whole.len(), true), (packed.len(), true), (whole.len(), false)] {
        let (body, sidecar) = (Arc::clone(&packed), packed_sidecar.clone());
        let server = Server::start(move |request| match request.path() {
            "/x.jsonl" if request.method == "HEAD" => {
                Answer::status(200).with("ETag", "\"a\"").with("Content-Length", announced.to_string())
            }
            "/x.jsonl" if ranges => {
                Answer::file(request, &body).with("ETag", "W/\"a\"").with("Content-Encoding", "gzip")
            }
            "/x.jsonl" => Answer::status(200)
                .body(Arc::clone(&body))
                .with("ETag", "W/\"a\"")
                .with("Content-Encoding", "gzip"),
            "/x.jsonl.aiperf.json" => {
                Answer::status(200).body(sidecar.clone()).with("Content-Encoding", "gzip")
            }
            _ => Answer::status(404),
        });
        let machine = Machine::new(&[]);
        let url = format!("{}/x.jsonl", server.url());
        let sources = machine.sources();
        let plan = sources.access(&Reference::parse(&url).unwrap(), &ask()).unwrap();
        assert_eq!(plan.format_source, Some(FormatSource::Sidecar));
        let leading = sources.leading(&plan, 100).unwrap();
        assert_eq!((leading.bytes.as_slice(), leading.whole), (&lines[..100], false));
        let local = sources.fetch(&plan).unwrap();
        assert_eq!(std::fs::read(&local.files[0].path).unwrap(), lines);
        assert_eq!(local.files[0].size, lines.len() as u64);
        server.clear_log();
        assert_eq!(machine.fetch(&url, &ask()).unwrap().files, local.files);
        assert_eq!(asked(&server), ["HEAD /x.jsonl", "GET /x.jsonl.aiperf.json"]);
    }
    // A cut stream starts again: it has no place to go on from.
    let body = Arc::clone(&packed);
    let cuts = Mutex::new(0);
    let server = serve(move |request| {
        if request.method == "HEAD" {
            return Answer::status(200).with("ETag", "\"a\"").body(Arc::clone(&body));
        }
        let mut cuts = cuts.lock().unwrap();
        *cuts += 1;
        let answer = Answer::status(200)
            .body(Arc::clone(&body))
            .with("ETag", "\"a\"")
            .with("Content-Encoding", "gzip");
        Answer { cut_after: (*cuts < 3).then_some(body.len() / 2), ..answer }
    });
    let machine = Machine::new(&[]);
    let local = machine.fetch(&format!("{}/x.jsonl", server.url()), &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), lines);
    // Another tag is another version, compressed or not.
    let server = serve(move |request| {
        let tag = if request.method == "HEAD" { "\"a\"" } else { "W/\"b\"" };
        Answer::status(200).body(Arc::clone(&packed)).with("ETag", tag).with("Content-Encoding", "gzip")
    });
    let error = machine.fetch(&format!("{}/x.jsonl", server.url()), &with("single_turn")).unwrap_err();
    assert!(error.to_string().contains("changed after AIPerf pinned its version"), "{error}");
}

#[test]
fn an_empty_file_and_an_open_connection_are_told() {
    let server = serve(|request| match request.range() {
        Some(_) => Answer::status(416).with("Content-Range", "bytes */0"),
        None => Answer::status(405),
    });
    let machine = Machine::new(&[]);
    let error = machine.access(&format!("{}/x.jsonl", server.url()), &with("single_turn")).unwrap_err();
    assert!(error.to_string().contains("is empty"), "{error}");
    // Refused before a byte of it is asked for a second time.
    assert_eq!(asked(&server), ["HEAD /x.jsonl", "GET /x.jsonl", "GET /x.jsonl.aiperf.json"]);
    let server = serve(|_| Answer::status(200));
    let bare = Answer { without_length: true, ..Answer::status(200).body(LINES) };
    let unknown = serve(move |_| bare.clone());
    for (server, methods) in [(server, &["HEAD", "GET"][..1]), (unknown, &["HEAD", "GET"])] {
        let _ = machine.access(&format!("{}/x.jsonl", server.url()), &with("single_turn"));
        let log: Vec<_> = server.log().into_iter().filter(|request| request.path() == "/x.jsonl").collect();
        let used: Vec<&str> = log.iter().map(|request| request.method.as_str()).collect();
        assert_eq!(used, methods, "what HEAD does not tell is asked for");
    }
    // Not to this machine: said once, whatever comes of it.
    let machine = Machine::new(&[("AIPERF_DATASET_REMOTE_OFFLINE", "1")]);
    machine.access("http://192.0.2.1/x.jsonl", &with("single_turn")).unwrap_err();
    machine.access("http://127.0.0.1:9/x.jsonl", &with("single_turn")).unwrap_err();
    let warned = machine.notes();
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("neither private nor authenticated"), "{warned:?}");
}

#[test]
fn a_cut_body_goes_on_with_the_same_version_and_three_cuts_are_the_end() {
    let bytes: Vec<u8> = (0..2_000_000u32).map(|i| (i >> 7) as u8).collect();
    let file: Arc<[u8]> = bytes.clone().into();
    let cuts = Mutex::new(0);
    let server = serve(move |request| {
        let mut answer = Answer::file(request, &file).with("ETag", "\"a\"");
        let mut cuts = cuts.lock().unwrap();
        if request.method == "GET" && *cuts < 2 {
            *cuts += 1;
            answer.cut_after = Some(500_000);
        }
        answer
    });
    let machine = Machine::new(&[]);
    let local = machine.fetch(&format!("{}/x.jsonl", server.url()), &with("single_turn")).unwrap();
    assert_eq!(std::fs::read(&local.files[0].path).unwrap(), bytes);
    let gets: Vec<_> = server
        .log()
        .into_iter()
        .filter(|request| request.method == "GET" && request.path() == "/x.jsonl")
        .collect();
    assert_eq!(gets.len(), 3);
    assert!(gets.iter().all(|request| request.header("if-match") == Some("\"a\"")));
    assert!(gets[2].range().is_some());

    let server = serve(|request| {
        let mut answer = tagged(LINES, "\"a\"")(request);
        answer.cut_after = (request.method == "GET").then_some(5);
        answer
    });
    let machine = Machine::new(&[]);
    let error = machine.fetch(&format!("{}/x.jsonl", server.url()), &with("single_turn")).unwrap_err();
    assert!(error.to_string().contains("the transfer was cut short"), "{error}");
    assert_eq!(error.problem.blame(), Blame::World);
    let tmp = machine.home.path().join(".cache/aiperf/remote/v1/tmp");
    assert_eq!(std::fs::read_dir(tmp).unwrap().count(), 0);
}

#[test]
fn a_file_that_changes_between_check_and_download_is_refused_once() {
    let current = Arc::new(Mutex::new("\"one\""));
    let answers = Arc::clone(&current);
    let server = serve(move |request| tagged(LINES, *answers.lock().unwrap())(request));
    let machine = Machine::new(&[]);
    let sources = machine.sources();
    let reference = Reference::parse(&format!("{}/x.jsonl", server.url())).unwrap();
    let plan = sources.access(&reference, &with("single_turn")).unwrap();
    *current.lock().unwrap() = "\"two\"";
    server.clear_log();
    let error = sources.fetch(&plan).unwrap_err().to_string();
    assert!(error.contains("changed after AIPerf pinned its version"), "{error}");
    assert_eq!(server.log().len(), 1);
}

#[test]
fn redirects_are_followed_ten_times_to_http_and_https_only() {
    let hops = |request: &Request| -> u32 {
        request.target.split_once("hop=").and_then(|(_, hop)| hop.parse().ok()).unwrap_or(0)
    };
    let server = Server::start(move |request| match (request.path(), hops(request)) {
        ("/x.jsonl", 10) => tagged(LINES, "\"a\"")(request),
        ("/x.jsonl", hop) => Answer::status(302).with("Location", format!("/x.jsonl?hop={}", hop + 1)),
        ("/loop.jsonl", _) => Answer::status(307).with("Location", "/loop.jsonl"),
        ("/file.jsonl", _) => Answer::status(302).with("Location", "file:///etc/passwd"),
        ("/none.jsonl", _) => Answer::status(302),
        _ => Answer::status(404),
    });
    let machine = Machine::new(&[]);
    let url = |path: &str| format!("{}{path}", server.url());
    machine.fetch(&url("/x.jsonl"), &with("single_turn")).unwrap();
    assert!(server.log().iter().all(|request| request.header("referer").is_none()));
    for (path, text) in [
        ("/loop.jsonl", "one of more than 10"),
        ("/file.jsonl", "another scheme"),
        ("/none.jsonl", "says nowhere"),
    ] {
        let error = machine.access(&url(path), &with("single_turn")).unwrap_err().to_string();
        assert!(error.contains("the redirect of 127.0.0.1") && error.contains(text), "{error}");
    }
}

#[test]
fn odd_sizes_are_errors_and_no_panics() {
    for (headers, text) in [
        (vec![("Content-Length", "0")], "is empty"),
        (vec![("Content-Length", "9223372036854775808"), ("ETag", "\"a\"")], "not enough disk space"),
    ] {
        let server = serve(move |_| {
            headers.iter().fold(Answer::status(200), |answer, (name, value)| answer.with(name, *value))
        });
        let machine = Machine::new(&[]);
        let error = machine
            .fetch(&format!("{}/x.jsonl", server.url()), &with("single_turn"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_read_only_cache_serves_hits_and_names_its_variable_on_a_miss() {
    let server = serve(tagged(LINES, "\"a\""));
    let mut machine = Machine::new(&[]);
    let url = format!("{}/x.jsonl", server.url());
    // Root writes everywhere: a file in the place of the directory refuses it as well.
    let blocked = machine.home.path().join("blocked");
    std::fs::write(&blocked, "x").unwrap();
    machine.set("AIPERF_DATASET_REMOTE_CACHE_DIR", blocked.to_str().unwrap());
    let error = machine.fetch(&url, &with("single_turn")).unwrap_err().to_string();
    assert!(error.contains("cannot write") && error.contains("AIPERF_DATASET_REMOTE_CACHE_DIR"), "{error}");
}

#[test]
fn two_processes_at_once_make_one_transfer() {
    let bytes: Arc<[u8]> = vec![b'x'; 3_000_000].into();
    let server = serve(move |request| Answer::file(request, &bytes).with("ETag", "\"a\""));
    let machine = Machine::new(&[]);
    let url = format!("{}/x.jsonl", server.url());
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..4).map(|_| scope.spawn(|| machine.fetch(&url, &with("single_turn")).unwrap())).collect();
        for run in runs {
            assert_eq!(run.join().unwrap().files[0].size, 3_000_000);
        }
    });
    let transfers =
        server.log().iter().filter(|request| request.method == "GET" && request.path() == "/x.jsonl").count();
    assert_eq!(transfers, 1);
}

#[test]
fn the_server_of_the_documentation_example_is_versioned_by_date_and_length() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.jsonl");
    std::fs::write(&path, LINES).unwrap();
    let mut python = Command::new("python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"])
        .arg(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(python.stdout.as_mut().unwrap()), &mut line)
        .unwrap();
    let port = line.split("port ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let machine = Machine::new(&[]);
    let url = format!("http://127.0.0.1:{port}/trace.jsonl");
    let first = machine.fetch(&url, &with("mooncake_trace")).unwrap();
    let version = first.provenance.version.clone().unwrap();
    assert!(
        version.starts_with("modified:") && version.ends_with(&format!(";length:{}", LINES.len())),
        "{version}"
    );
    let second = machine.fetch(&url, &with("mooncake_trace")).unwrap();
    assert_eq!(second.files, first.files);
    std::fs::write(&path, LINES.repeat(2)).unwrap();
    let third = machine.fetch(&url, &with("mooncake_trace")).unwrap();
    assert_eq!(third.files[0].size, 2 * LINES.len() as u64);
    python.kill().unwrap();
    python.wait().unwrap();
}

#[test]
fn a_stopped_transfer_leaves_nothing_and_the_next_one_is_clean() {
    let bytes: Arc<[u8]> = vec![b'x'; 50_000_000].into();
    let server = serve(move |request| Answer::file(request, &bytes).with("ETag", "\"a\""));
    let machine = Machine::new(&[]);
    let url = format!("{}/x.jsonl", server.url());
    machine.stop.now();
    let error = machine.fetch(&url, &with("single_turn")).unwrap_err();
    assert!(error.to_string().contains("it was interrupted"), "{error}");
    assert_eq!(error.problem.blame(), Blame::World);
}

#[test]
fn a_transfer_that_is_stopped_in_the_middle_says_its_end() {
    let bytes: Arc<[u8]> = vec![b'x'; 1_000_000].into();
    let server = serve(move |request| {
        let stall_after = (request.method == "GET").then_some(500_000);
        Answer { stall_after, ..Answer::file(request, &bytes).with("ETag", "\"a\"") }
    });
    let machine = Machine::new(&[]);
    let url = format!("{}/x.jsonl", server.url());
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| machine.fetch(&url, &with("single_turn")).unwrap_err());
        let goes_on =
            || machine.events.lock().unwrap().iter().any(|event| matches!(event, Event::Progress { .. }));
        while !goes_on() {
            std::thread::yield_now();
        }
        machine.stop.now();
        run.join().unwrap()
    });
    assert!(error.to_string().contains("it was interrupted"), "{error}");
    // A bar that is being shown is taken away before the error is.
    assert_eq!(machine.events.lock().unwrap().last(), Some(&Event::End));
    let tmp = machine.home.path().join(".cache/aiperf/remote/v1/tmp");
    assert_eq!(std::fs::read_dir(tmp).unwrap().count(), 0);
}
