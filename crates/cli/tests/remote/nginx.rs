//! A real server: TLS, tags, ranges, compression, redirects.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use aiperf_test_servers::Nginx;
use tempfile::TempDir;

use crate::machine::{Machine, TRACE, stderr};

fn certificates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mock-server/tests/data")
}

/// A server with a trace on it, and the folder that it lives in.
fn start() -> (Nginx, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let keys = certificates();
    let server =
        Nginx::start(tools, directory.path(), &keys.join("certificate.pem"), &keys.join("test-only-key.pem"));
    server.put("trace.jsonl", TRACE);
    (server, directory)
}

/// A machine that trusts the server's authority.
fn trusting() -> Machine {
    let mut machine = Machine::bare();
    machine.set("SSL_CERT_FILE", &certificates().join("authority.pem").display().to_string());
    machine
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn refused(output: &Output) -> String {
    assert!(!output.status.success());
    stderr(output)
}

#[test]
fn a_file_behind_tls_runs_on_its_schedule_and_is_transferred_once() {
    let (server, _home) = start();
    let machine = trusting();
    let url = format!("{}/trace.jsonl", server.tls_url());
    let arguments = ["--streaming", "--input-file", &url, "--custom-dataset-type", "mooncake_trace"];
    let output = machine.profile(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("recorded times"), "{}", stderr(&output));
    let dataset = machine.summary()["metadata"]["dataset"].clone();
    assert!(dataset["resolved_version"].as_str().unwrap().starts_with("etag:\""), "{dataset}");
    // The first record was looked at by a range, the file fetched by a request of its own.
    let log = server.log();
    assert!(log.contains(&format!("GET /trace.jsonl 206 bytes=0-{}", TRACE.len() - 1)), "{log:?}");
    let before = log.len();
    assert_eq!(machine.profile(&arguments).status.code(), Some(0));
    let later = &server.log()[before..];
    assert!(
        later.iter().all(|line| line.starts_with("HEAD ") || line.contains(".aiperf.json 404")),
        "{later:?}"
    );
}

#[test]
fn a_certificate_that_nobody_vouches_for_ends_the_run_at_once() {
    let (server, _home) = start();
    let machine = Machine::bare();
    let output = machine.aiperf(&["dataset", "fetch", &format!("{}/trace.jsonl", server.tls_url())]);
    let said = refused(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("could not connect to localhost:") && said.contains("certificate"), "{said}");
    assert!(said.contains("(package ca-certificates)") && said.contains("SSL_CERT_FILE"), "{said}");
    assert!(server.log().is_empty(), "{:?}", server.log());
    assert_eq!(server.broken_handshakes(), 1, "another attempt would come to the same");
}

#[test]
fn what_a_proxy_compresses_on_the_way_is_decoded_whatever_head_said() {
    let (server, _home) = start();
    let lines = TRACE.repeat(5_000);
    server.put("long.jsonl", &lines);
    let machine = Machine::bare();
    let url = format!("{}/forced/long.jsonl", server.url());
    let shown = machine.fetched(&url);
    assert_eq!(shown["bytes"], lines.len());
    assert_eq!(machine.cached(), lines);
    let before = server.log().len();
    assert_eq!(machine.fetched(&url)["files"][0]["sha256"], shown["files"][0]["sha256"]);
    let later = server.log()[before..].to_vec();
    assert!(!later.iter().any(|line| line.starts_with("GET /forced/long.jsonl 200")), "{later:?}");
    // The first record comes out of the same stream.
    let output = machine.aiperf(&[
        "dataset",
        "resolve",
        &url,
        "--first-record",
        "--custom-dataset-type",
        "mooncake_trace",
    ]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("fixed schedule   yes"), "{}", stderr(&output));
    let output = Machine::bare().profile(&[
        "--input-file",
        &url,
        "--custom-dataset-type",
        "mooncake_trace",
        "--request-rate",
        "5",
    ]);
    assert!(refused(&output).contains("recorded times"), "{}", stderr(&output));
}

#[test]
fn a_content_encoding_is_decoded_and_a_gz_file_is_kept_as_it_is() {
    let (server, _home) = start();
    server.put("trace.jsonl.gz", &gzipped(TRACE));
    server
        .put("trace.jsonl.aiperf.json.gz", &gzipped(b"{\"format\": \"mooncake_trace\", \"block_size\": 16}"));
    let machine = Machine::bare();
    let shown = machine.fetched(&format!("{}/stored/trace.jsonl", server.url()));
    assert_eq!(shown["bytes"], TRACE.len());
    assert_eq!((&shown["format"], &shown["defaults"]["block_size"]), (&"mooncake_trace".into(), &16.into()));
    assert_eq!(machine.cached(), TRACE);
    let machine = Machine::bare();
    machine.fetched(&format!("{}/trace.jsonl.gz", server.url()));
    assert_eq!(machine.cached(), gzipped(TRACE));
}

#[test]
fn without_tags_a_file_is_versioned_by_its_date_and_length() {
    let (server, _home) = start();
    let machine = Machine::bare();
    let url = format!("{}/untagged/trace.jsonl", server.url());
    let version = machine.fetched(&url)["resolved_version"].as_str().unwrap().to_owned();
    assert!(
        version.starts_with("modified:") && version.ends_with(&format!(";length:{}", TRACE.len())),
        "{version}"
    );
    server.put("trace.jsonl", &TRACE.repeat(2));
    assert_ne!(machine.fetched(&url)["resolved_version"], version.as_str());
}

#[test]
fn redirects_lead_to_https_and_never_back() {
    let (server, _home) = start();
    let machine = trusting();
    for url in [format!("{}/moved/trace.jsonl", server.url()), format!("{}/secure/trace.jsonl", server.url())]
    {
        assert_eq!(machine.fetched(&url)["bytes"], TRACE.len(), "{url}");
    }
    let before = server.log().len();
    let output = machine.aiperf(&["dataset", "fetch", &format!("{}/open/trace.jsonl", server.tls_url())]);
    let said = refused(&output);
    assert!(said.contains("leads from https to http") && output.status.code() == Some(1), "{said}");
    assert_eq!(server.log().len(), before + 1, "{:?}", server.log());
}

#[test]
fn refusals_are_told_apart_and_trouble_is_tried_three_times() {
    let (server, _home) = start();
    let machine = Machine::bare();
    let ask = |path: &str| machine.aiperf(&["dataset", "resolve", &format!("{}{path}", server.url())]);
    let output = ask("/denied/x.jsonl");
    assert!(refused(&output).contains("access was denied"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
    let output = ask("/none.jsonl");
    assert!(refused(&output).contains("was not found"), "{}", stderr(&output));
    let output = ask("/busy/x.jsonl");
    assert!(refused(&output).contains("the server answered 503") && output.status.code() == Some(1));
    assert_eq!(server.log().iter().filter(|line| line.starts_with("HEAD /busy/")).count(), 3);
}
