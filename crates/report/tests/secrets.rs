//! Planted secrets appear in no produced byte.
#![allow(clippy::unwrap_used, reason = "test code")]

mod support;

use std::sync::Arc;

use aiperf_config::{Header, Secret, SecretUrl, Target};
use aiperf_metrics::{Context, ErrorGroup};
use aiperf_report::jsonl::{RawWriter, RecordWriter};
use aiperf_report::{Level, Log, Palette, RecordSink, Redactor, Screen, console, export_all};
use aiperf_types::{PhaseKind, RequestError};
use serde_json::Value;
use support::{config, files_below, golden, golden_json, phase, record_of, results, summary_of};
use url::Url;

const KEY: &str = "sk-canary-0123456789";
const TOKEN: &str = "canary-token-77";
const PASSWORD: &str = "canary-password";
const SIGNATURE: &str = "canary-signature";

#[test]
fn no_planted_secret_reaches_a_file_a_line_or_the_console() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("https://user:{PASSWORD}@host/v1?X-Amz-Signature={SIGNATURE}");
    let mut config = config(dir.path());
    config.endpoint.api_key = Some(Secret::new(KEY));
    config.endpoint.headers =
        vec![Header { name: "X-Auth-Token".into(), value: Secret::new(format!("Bearer {TOKEN}")) }];
    config.endpoint.target = Target::Server(SecretUrl::new(Url::parse(&url).unwrap(), url.clone()));
    config.cli_command = format!("aiperf profile --url '{url}' --api-key {KEY}");
    config.output.http_trace = true;
    let redactor = Redactor::new(&config);

    // A server that echoes everything it was sent.
    let echo = format!("bad key {KEY} or token {TOKEN} or password {PASSWORD} at {url}");
    let mut error = RequestError::new(401, "Unauthorized", echo.clone());
    error.cause = Some(echo.clone());

    let line: Value =
        serde_json::from_str(golden("chat_streaming/profile_export.jsonl").lines().next().unwrap()).unwrap();
    let raw: Value =
        serde_json::from_str(golden("chat_streaming/profile_export_raw.jsonl").lines().next().unwrap())
            .unwrap();
    let (mut record, values, _) = record_of(&line, Some(&raw));
    record.error = Some(error.clone());
    record.request.headers = Some(vec![
        ("Authorization".into(), format!("Bearer {KEY}")),
        ("X-Auth-Token".into(), format!("Bearer {TOKEN}")),
        ("Host".into(), "host".into()),
    ]);
    let facts = record.trace.facts.as_mut().unwrap();
    facts.response_headers.push(("Set-Cookie".into(), KEY.into()));
    facts.response_headers.push(("X-Echo".into(), echo.clone()));
    if let Some(aiperf_types::RawResponse::Events(events)) = &mut record.answer.raw {
        events[0].packets[0].value = echo.clone();
    }
    let mut lines = Vec::new();
    RecordWriter::new(&Context::of(&config), true, redactor.clone(), 0).write(&record, &values, &mut lines);
    let sink = RecordSink::create(dir.path().join("profile_export.jsonl"), record.start).unwrap();
    sink.append(&lines, 1, record.start);
    let mut raw_lines = Vec::new();
    RawWriter::new(redactor.clone(), 0).write(&record, &mut raw_lines);
    sink.append(&raw_lines, 1, record.start);
    sink.finish(record.start).unwrap();
    assert!(lines.len() > 1_000 && raw_lines.len() > 1_000);

    let screen = Arc::new(Screen::new(Box::new(std::io::sink()), false, Palette::plain()));
    let log = Log::open(dir.path(), Level::Info, screen, redactor).unwrap();
    log.error("load", &echo);

    let mut summary = summary_of(&golden_json("chat_streaming/profile_export_aiperf.json"));
    summary.error_groups = vec![ErrorGroup { error, count: 1 }];
    let warmup = phase(PhaseKind::Warmup, 0, summary.clone());
    let mut run = results(&config, vec![warmup, phase(PhaseKind::Profiling, 1, summary)]);
    run.incomplete_reason = Some(echo);
    assert!(export_all(&mut run).is_empty());
    let mut texts = vec![
        ("tables".to_owned(), console::tables(&run, 140, Palette::coloured())),
        ("tail".to_owned(), console::tail(&run, 140, Palette::coloured())),
        ("debug".to_owned(), format!("{config:?}").replace(&config.cli_command, "")),
    ];
    let files = files_below(dir.path());
    assert!(files.len() >= 10, "{files:?}");
    for file in files {
        texts.push((file.display().to_string(), String::from_utf8(std::fs::read(&file).unwrap()).unwrap()));
    }
    for (name, text) in &texts {
        for secret in [KEY, TOKEN, PASSWORD, SIGNATURE] {
            assert!(!text.contains(secret), "{secret} in {name}");
        }
    }
    assert!(texts.iter().filter(|(_, text)| text.contains("<redacted>")).count() >= 6);
}
