//! Every format: what is sent does not depend on where the data come from.

use std::path::{Path, PathBuf};

use aiperf_test_servers::{Answer, Moto, Server, StubHub, StubRepo};
use serde_json::{Value, json};

use crate::machine::{Machine, stderr, stdout};

/// A format, its data, and what a run of it needs.
struct Case {
    format: &'static str,
    /// Below the test data of the loaders: a file or a folder. A file whose name ends in `/` is a folder of its own.
    data: &'static str,
    more: &'static [&'static str],
}

const fn case(format: &'static str, data: &'static str, more: &'static [&'static str]) -> Case {
    Case { format, data, more }
}

/// Of each format that can be run by itself, the plainest data.
const CASES: &[Case] = &[
    case("single_turn", "single_turn.jsonl", &[]),
    case("multi_turn", "multi_turn.jsonl", &[]),
    case("multi_turn", "parquet/multi_turn.parquet", &[]),
    case("random_pool", "random_pool.jsonl", &["--request-count", "5"]),
    case("random_pool", "random_pool_dir", &["--request-count", "5"]),
    case("mooncake_trace", "mooncake_hash.jsonl", &["--isl-block-size", "16"]),
    case("mooncake_trace", "mooncake_sessions.jsonl", &[]),
    case("mooncake_trace", "parquet/mooncake_shards", &["--isl-block-size", "16"]),
    case("raw_payload", "raw_payload.jsonl", &[]),
    case("raw_payload", "raw_payload_dir", &[]),
    case("inputs_json", "inputs.json", &[]),
    case("bailian_trace", "bailian.jsonl", &[]),
    case("burst_gpt_trace", "burst_gpt.csv", &[]),
    case("azure_llm_trace", "azure_llm.csv", &[]),
    case("baseten_trace", "baseten_minimal.parquet", &["--endpoint-type", "completions"]),
    case("sagemaker_data_capture", "sagemaker_capture.jsonl", &[]),
    case("sagemaker_data_capture", "sagemaker_capture.jsonl/", &[]),
    case("weka_trace", "weka_trace.json/", &["--inter-turn-delay-cap-seconds", "0.01"]),
    case("tracelab", "tracelab.jsonl", &["--inter-turn-delay-cap-seconds", "0.01"]),
    case("weka_trace", "weka_trace.json", &["--inter-turn-delay-cap-seconds", "0.01"]),
    case("dag_jsonl", "dag.jsonl", &["--num-conversations", "1"]),
    case("speed_bench_qualitative", "speed_bench/qualitative.jsonl", &["--request-count", "2"]),
];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/tests/data").join(name)
}

/// The files of a case, by their names below the folder that holds them.
fn files(path: &Path) -> Vec<(String, Vec<u8>)> {
    if path.is_file() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        return vec![(name, std::fs::read(path).unwrap())];
    }
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| files(&path)).collect()
}

/// What a run sends and what it wrote down of its data: the bodies, sorted, and `inputs.json` where there is one.
fn run(machine: &Machine, case: &Case, input: &str) -> (Vec<String>, Option<String>) {
    let _ = std::fs::remove_dir_all(machine.home.path().join("out"));
    let common = [
        "--input-file",
        input,
        "--custom-dataset-type",
        case.format,
        "--no-fixed-schedule",
        "--random-seed",
        "7",
        "--export-level",
        "raw",
        "--concurrency",
        "1",
    ];
    let output = machine.profile(&[&common[..], case.more].concat());
    assert_eq!(output.status.code(), Some(0), "{} {input}: {}", case.format, stderr(&output));
    let read = |name: &str| std::fs::read_to_string(machine.home.path().join("out").join(name));
    let mut bodies: Vec<String> = read("profile_export_raw.jsonl")
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].to_string())
        .collect();
    bodies.sort();
    assert!(!bodies.is_empty(), "{}", case.format);
    (bodies, read("inputs.json").ok())
}

#[test]
fn every_format_is_among_the_cases() {
    let covered: Vec<&str> = CASES.iter().map(|case| case.format).collect();
    for format in aiperf_config::FileFormat::ALL {
        // One loader reads all of SPEED-Bench.
        assert!(
            covered.contains(&format.name()) || format.name().starts_with("speed_bench_"),
            "{}",
            format.name()
        );
    }
}

#[test]
fn a_run_sends_the_same_from_the_disk_and_from_a_server() {
    compare(0);
}

#[test]
fn a_run_sends_the_same_from_the_disk_and_from_s3() {
    compare(1);
}

#[test]
fn a_run_sends_the_same_from_the_disk_and_from_the_hub() {
    compare(2);
}

/// Every third case, from the first on: each source meets every kind of data in a few formats.
fn compare(first: usize) {
    let moto = (first == 1).then(|| {
        let moto = Moto::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
        moto.run("s3.create_bucket(Bucket='formats')");
        moto
    });
    for (index, case) in CASES.iter().enumerate().skip(first).step_by(3) {
        let (name, alone) = case.data.strip_suffix('/').map_or((case.data, false), |name| (name, true));
        let mut local = data(name);
        let files = files(&local);
        let own = tempfile::tempdir().unwrap();
        if alone {
            std::fs::write(own.path().join(&files[0].0), &files[0].1).unwrap();
            own.path().clone_into(&mut local);
        }
        let path = if local.is_dir() { "data".to_owned() } else { format!("data/{}", files[0].0) };
        let mut manifest = json!({ "path": path, "format": case.format });
        if let ["--isl-block-size", size] = case.more {
            manifest["block_size"] = size.parse::<u64>().unwrap().into();
        }
        let manifest = manifest.to_string();
        let published: Vec<(String, &[u8])> = files
            .iter()
            .map(|(name, bytes)| (format!("data/{name}"), bytes.as_slice()))
            .chain([("aiperf.json".to_owned(), manifest.as_bytes())])
            .collect();
        let entries: Vec<(&str, &[u8])> =
            published.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
        let machine = Machine::bare();
        // What passes the check of publishers runs for others.
        for (name, bytes) in &entries {
            let path = machine.home.path().join("set").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let output = machine.aiperf(&["dataset", "publish-check", "set"]);
        assert_eq!(output.status.code(), Some(0), "{} {}: {}", case.format, case.data, stdout(&output));
        let expected = run(&machine, case, local.to_str().unwrap());
        let remote = match &moto {
            None if first == 0 && local.is_file() => {
                let bytes = files[0].1.clone();
                let name = format!("/{}", files[0].0);
                let url = name.clone();
                let server = Server::start(move |request| match request.path() {
                    path if path == name => {
                        Answer::file(request, &bytes.clone().into()).with("ETag", "\"a\"")
                    }
                    _ => Answer::status(404),
                });
                run(&machine, case, &format!("{}{url}", server.url()))
            }
            Some(moto) => {
                let keys: Vec<String> = entries.iter().map(|(name, _)| format!("{index}/{name}")).collect();
                let objects = keys.iter().zip(&entries).map(|(key, (_, bytes))| (key.as_str(), *bytes));
                moto.put("formats", &objects.collect::<Vec<_>>());
                let mut machine = Machine::bare();
                machine.set("AWS_ENDPOINT_URL_S3", moto.endpoint());
                machine.set("AWS_ACCESS_KEY_ID", "a");
                machine.set("AWS_SECRET_ACCESS_KEY", "b");
                run(&machine, case, &format!("s3://formats/{index}/"))
            }
            None => {
                let hub = StubHub::start(&[("org/set", StubRepo::new(&entries))]);
                run(&Machine::new(&hub), case, "hf://org/set")
            }
        };
        assert_eq!(remote.0, expected.0, "{} {}", case.format, case.data);
        assert_eq!(remote.1, expected.1, "{} {}", case.format, case.data);
    }
}

/// What a run does that has nothing but a reference: the publisher's word decides, and the first record.
#[test]
fn columns_make_a_schedule_only_where_somebody_says_that_they_are_a_trace() {
    let shards = files(&data("parquet/mooncake_shards"));
    let shards: Vec<(String, &[u8])> =
        shards.iter().map(|(name, bytes)| (format!("lfs:cfg/{name}"), bytes.as_slice())).collect();
    let entries: Vec<(&str, &[u8])> = shards.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    let hub = StubHub::start(&[("org/set", StubRepo::new(&entries))]);
    let machine = Machine::new(&hub);
    let rows = ["--input-file", "hf://org/set", "--isl-block-size", "16"];
    let output = machine
        .profile(&[&rows[..], &["--custom-dataset-type", "mooncake_trace", "--request-rate", "9"]].concat());
    // The first shard alone was read, whole, to see its first row.
    assert!(
        stderr(&output).contains("--request-rate conflicts with the recorded times"),
        "{}",
        stderr(&output)
    );
    let shown: Vec<String> = hub.storage_log().iter().map(|request| request.path().to_owned()).collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    hub.clear_logs();
    let output = machine.profile(&[&rows[..], &["--custom-dataset-type", "mooncake_trace"]].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("recorded times") && said.contains("the split train is read; not read: test"),
        "{said}"
    );
    // The other shard; the first is not fetched again.
    assert_eq!(hub.storage_log().len(), 1);
    let output = machine.profile(&rows);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("has recorded times, and they are not used: --fixed-schedule"), "{said}");
    // One file, under a name that says nothing.
    let one = std::fs::read(data("parquet/mooncake_shards/test-00000-of-00001.parquet")).unwrap();
    let server = Server::start(move |request| match request.path() {
        "/rows" => Answer::file(request, &one.clone().into()).with("ETag", "\"a\""),
        _ => Answer::status(404),
    });
    let url = format!("{}/rows", server.url());
    let rows = ["--input-file", &url, "--isl-block-size", "16"];
    let output = machine.profile(&rows);
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("recorded times, and they are not used"), "{said}");
    let output = machine.profile(&[&rows[..], &["--custom-dataset-type", "mooncake_trace"]].concat());
    assert!(output.status.success() && stderr(&output).contains("recorded times"), "{}", stderr(&output));
    let output = machine.profile(&["--input-file", &url, "--custom-dataset-type", "inputs_json"]);
    let said = stderr(&output);
    assert!(said.contains("does not read parquet files") && output.status.code() == Some(2), "{said}");
}
