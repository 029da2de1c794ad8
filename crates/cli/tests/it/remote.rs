//! Data that are somewhere else, through the program.

use std::process::{Command, Output, Stdio};

use aiperf_test_servers::{StubHub, StubRepo};
use serde_json::Value;
use tempfile::TempDir;

const TRACE: &[u8] =
    b"{\"timestamp\": 0, \"input_length\": 1200, \"output_length\": 52, \"hash_ids\": [0, 1, 2]}\n\
{\"timestamp\": 105, \"input_length\": 1800, \"output_length\": 26, \"hash_ids\": [0, 3, 4, 5]}\n\
{\"timestamp\": 274, \"input_length\": 1300, \"output_length\": 52, \"hash_ids\": [1, 4, 6]}\n";
const MANIFEST: &[u8] = b"{\"path\": \"trace.jsonl\", \"format\": \"mooncake_trace\", \"block_size\": 512}";

/// A machine with an empty home.
struct Machine {
    home: TempDir,
    variables: Vec<(String, String)>,
}

impl Machine {
    fn new(hub: &StubHub) -> Machine {
        Machine {
            home: tempfile::tempdir().unwrap(),
            variables: vec![("HF_ENDPOINT".into(), hub.endpoint()), ("HF_TOKEN".into(), "hf_good".into())],
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.into(), value.into()));
    }

    fn aiperf(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_aiperf"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .args(arguments)
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn profile(&self, arguments: &[&str]) -> Output {
        let common =
            ["profile", "--model", "m", "--url", "mock://?ttft=1ms&itl=0ms", "--output-artifact-dir", "out"];
        self.aiperf(&[&common[..], arguments].concat())
    }

    fn summary(&self) -> Value {
        let text = std::fs::read(self.home.path().join("out/profile_export_aiperf.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

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
    let remote = inputs(&["--input-file", "hf://org/trace/trace.jsonl"]);
    assert_eq!(local, remote);
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
