//! Data that are somewhere else: what a download costs, what the cache costs at the start, what a long listing takes.
//! The servers of small data are threads of the harness.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aiperf_test_servers::{Answer, Server, StubHub, StubRepo};
use anyhow::{Context as _, Result, ensure};

use crate::bench::Bench;
use crate::bench::client::{self, LIMIT};
use crate::bench::figure::{Figure, Judged, Limit, Rival};
use crate::bench::mock::Mock;
use crate::bench::process::{Running, Used, tail};
use crate::bench::progress::say;

pub(super) const MIB: f64 = 1_048_576.0;

/// `aiperf dataset fetch` of 1 GiB, beside `curl | tee | sha256sum` and `sync`.
pub(crate) fn download(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "download";
    let size = bench.size(1 << 30, 1 << 26);
    let data = bench.home.join("data/download");
    std::fs::create_dir_all(&data)?;
    let file = data.join("requests.jsonl");
    if file.metadata().map_or(0, |file| file.len()) < size {
        write_requests(&file, size)?;
    }
    std::fs::write(data.join("requests.jsonl.aiperf.json"), br#"{"format": "single_turn"}"#)?;
    // A process of its own: the peak of a child is at least the memory of whoever made it.
    let server = Web::start(bench, &data)?;
    let url = format!("http://127.0.0.1:{}/requests.jsonl", server.port);
    let (mut ours, mut theirs, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for run in 1..=bench.runs {
        let folder = bench.fresh_folder(row)?;
        let mut command = aiperf(bench, &folder);
        command.args(["dataset", "fetch", &url]);
        let used = well(Running::start(command, &folder)?, &folder)?;
        ours.push(size as f64 / MIB / used.wall_sec);
        memory.push(used.peak_bytes as f64 / MIB);
        let folder = bench.fresh_folder(row)?;
        let mut command = Command::new("bash");
        command
            .args(["-c", "set -o pipefail; curl --silent --fail \"$0\" | tee file | sha256sum && sync file"]);
        command.arg(&url).current_dir(&folder);
        let rival = well(Running::start(command, &folder)?, &folder)?;
        theirs.push(size as f64 / MIB / rival.wall_sec);
        say(format_args!(
            "  run {run} ours {:.2} s ({:.2} s CPU, {:.1} MiB), curl {:.2} s ({:.2} s CPU)",
            used.wall_sec,
            used.cpu_sec,
            used.peak_bytes as f64 / MIB,
            rival.wall_sec,
            rival.cpu_sec
        ));
    }
    bench.fresh_folder(row)?;
    let rival = Rival { name: "curl", samples: theirs };
    Ok(vec![
        Figure::new(row, format!("download of {} MiB, hashed and synced", size >> 20), "MiB/s", ours)
            .against(rival, Judged::OursOverRival)
            .must(Limit::AtLeast(0.7)),
        Figure::new(row, "its peak memory", "MiB", memory).must(Limit::AtMost(64.0)),
    ])
}

/// The start of a run whose data are in the cache, beside one from the same file.
pub(crate) fn warm(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "start-cached";
    let size = bench.size(256 << 20, 16 << 20);
    let home = bench.fresh_folder(row)?;
    let file = home.join("requests.jsonl");
    write_requests(&file, size)?;
    let bytes = std::fs::read(&file)?;
    let manifest = br#"{"path": "requests.jsonl", "format": "single_turn"}"#;
    let repo = StubRepo::new(&[("aiperf.json", &manifest[..]), ("lfs:requests.jsonl", &bytes)]);
    drop(bytes);
    let hub = StubHub::start(&[("org/requests", repo)]);
    let file = file.to_str().context("the folder has no plain name")?;
    let fetched = home.join("fetch");
    std::fs::create_dir(&fetched)?;
    let mut command = aiperf(bench, &home);
    command.args(["dataset", "fetch", "hf://org/requests"]).env("HF_ENDPOINT", hub.endpoint());
    well(Running::start(command, &fetched)?, &fetched)?;
    let endpoint = hub.endpoint();
    drop(hub);
    let start = |name: &str, input: &str| -> Result<f64> {
        let folder = home.join(name);
        std::fs::create_dir_all(&folder)?;
        let mock = Mock::start_logging(bench, &folder, &[("ttft", "0"), ("itl", "0")])?;
        let mut command = aiperf(bench, &home);
        client::common(&mut command, &mock.url(), &folder.join("artifacts"));
        command.args(["--custom-dataset-type", "single_turn", "--input-file", input, "--streaming"]);
        command.args(["--request-count", "1", "--concurrency", "1"]);
        command.env("HF_ENDPOINT", &endpoint).env("HF_HUB_OFFLINE", "1");
        let client = Running::start(command, &folder)?;
        let used = client.wait_and(LIMIT, Duration::from_millis(100), || mock.answered())?;
        Ok(mock.stop_and_find_first()?.since(used.started) as f64 / 1e6)
    };
    let (mut local, mut cached, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for run in 1..=bench.runs {
        let (from_file, from_cache) = (start("local", file)?, start("cached", "hf://org/requests")?);
        say(format_args!("  run {run} local {from_file:.1} ms, cached {from_cache:.1} ms"));
        local.push(from_file);
        cached.push(from_cache);
        added.push(from_cache - from_file);
    }
    bench.fresh_folder(row)?;
    Ok(vec![
        Figure::new(
            row,
            format!("start to first request, {} MiB in the cache, offline", size >> 20),
            "ms",
            cached,
        )
        .beside(Rival { name: "local", samples: local }),
        Figure::new(row, "what the cache adds", "ms", added).must(Limit::AtMost(50.0)),
    ])
}

/// The check of a prefix of S3 with 100,000 entries, of which 9,000 are data.
pub(crate) fn listing(bench: &Bench) -> Result<Vec<Figure>> {
    let row = "s3-listing";
    let (entries, files) = (bench.size(100_000, 2_000), bench.size(9_000, 180));
    let server = Server::start(move |request| store(&request.target, request.path(), entries, files));
    let (mut memory, mut wall) = (Vec::new(), Vec::new());
    for run in 1..=bench.runs {
        let folder = bench.fresh_folder(row)?;
        let mut command = aiperf(bench, &folder);
        command.args(["dataset", "resolve", "--json", "s3://traces/p/"]);
        for (name, value) in [
            ("AWS_ENDPOINT_URL_S3", server.url().as_str()),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ] {
            command.env(name, value);
        }
        let used = well(Running::start(command, &folder)?, &folder)?;
        let said: serde_json::Value = serde_json::from_reader(File::open(folder.join("stdout.txt"))?)?;
        let found = said["files"].as_array().or_else(|| said[0]["files"].as_array()).map_or(0, Vec::len);
        ensure!(found as u64 == files, "{found} of {files} files were found");
        say(format_args!("  run {run} {:.2} s, {:.1} MiB", used.wall_sec, used.peak_bytes as f64 / MIB));
        memory.push(used.peak_bytes as f64 / MIB);
        wall.push(used.wall_sec);
    }
    Ok(vec![
        Figure::new(
            row,
            format!("peak memory, a prefix of {entries} entries, {files} of them data"),
            "MiB",
            memory,
        )
        .must(Limit::AtMost(100.0)),
        Figure::new(row, "process start to end", "s", wall),
    ])
}

/// Python's web server, of a folder.
struct Web {
    _process: Running,
    port: u16,
}

impl Web {
    fn start(bench: &Bench, folder: &Path) -> Result<Web> {
        let own = bench.fresh_folder("web-server")?;
        let mut command = Command::new("python3");
        command.args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"]).arg(folder);
        let process = Running::start(command, &own)?;
        for _ in 0..1_000 {
            let said = std::fs::read_to_string(own.join("stdout.txt")).unwrap_or_default();
            let port = said.split_once(" port ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
            if let Some(port) = port {
                return Ok(Web { _process: process, port });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        anyhow::bail!("the web server does not listen\n{}", tail(&own.join("stderr.txt")))
    }
}

/// The program, with a home of its own.
pub(super) fn aiperf(bench: &Bench, home: &Path) -> Command {
    let mut command = Command::new(&bench.binary);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if ["HF_", "AWS_", "AIPERF_"].iter().any(|start| name.starts_with(start)) {
            command.env_remove(&*name);
        }
    }
    command.env("HOME", home).current_dir(home);
    command
}

pub(super) fn well(process: Running, folder: &Path) -> Result<Used> {
    let used = process.wait(LIMIT)?;
    ensure!(used.code == Some(0), "ended with {:?}\n{}", used.code, tail(&folder.join("stderr.txt")));
    Ok(used)
}

/// Writes records of `single_turn`, about a kilobyte each.
fn write_requests(file: &Path, size: u64) -> Result<()> {
    let unfinished = file.with_extension("tmp");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
    let words = "the quick brown fox jumps over the lazy dog ".repeat(22);
    let mut written = 0;
    for number in 0.. {
        if written >= size {
            break;
        }
        let line = format!("{{\"text\": \"{number} {words}\", \"output_length\": 12}}\n");
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
    }
    out.flush()?;
    std::fs::rename(&unfinished, file)?;
    Ok(())
}

/// A bucket: a manifest, data files, and others that are none.
fn store(target: &str, path: &str, entries: u64, files: u64) -> Answer {
    const MANIFEST: &[u8] = br#"{"path": ".", "format": "single_turn"}"#;
    const PAGE: u64 = 1000;
    if path == "/traces/p/aiperf.json" {
        return Answer::status(200).with("ETag", "\"m\"").body(MANIFEST);
    }
    if path.trim_end_matches('/') != "/traces" {
        let number = path.split(['-', '.']).nth(1).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
        let etag = format!("\"{:032x}\"", number + entries - files);
        return Answer::status(200).with("ETag", etag).body(&b"PAR1"[..]);
    }
    if !target.contains("list-type=2") {
        return Answer::status(200).with("x-amz-bucket-region", "us-east-1");
    }
    let first: u64 = target
        .split(['?', '&'])
        .find_map(|pair| pair.strip_prefix("continuation-token=")?.parse().ok())
        .unwrap_or(0);
    let last = (first + PAGE).min(entries);
    let mut text =
        String::from("<?xml version=\"1.0\"?>\n<ListBucketResult><EncodingType>url</EncodingType>");
    for number in first..last {
        let _ = match number {
            0 => write!(
                text,
                "<Contents><Key>p/aiperf.json</Key><ETag>\"m\"</ETag><Size>{}</Size></Contents>",
                MANIFEST.len()
            ),
            _ if number > entries - 1 - files => write!(
                text,
                "<Contents><Key>p/train-{:05}-of-{files:05}.parquet</Key><ETag>\"{number:032x}\"</ETag><Size>4</Size></Contents>",
                number + files - entries
            ),
            _ => write!(
                text,
                "<Contents><Key>p/.pictures/{number:08}.png</Key><ETag>\"{number:032x}\"</ETag><Size>9</Size></Contents>"
            ),
        };
    }
    if last < entries {
        let _ = write!(
            text,
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>"
        );
    } else {
        text.push_str("<IsTruncated>false</IsTruncated>");
    }
    text.push_str("</ListBucketResult>");
    Answer::status(200).with("Content-Type", "application/xml").body(text.into_bytes())
}
