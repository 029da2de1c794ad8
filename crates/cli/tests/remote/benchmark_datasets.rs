//! Every kind of data that is documented, once, through the program: generated, of a file, of a published set, of a
//! synthesized trace.

use aiperf_test_servers::{StubHub, StubRepo};
use serde_json::Value;

use crate::machine::{Machine, stderr};

/// A file among the test data, by its path from this package.
fn data(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The published sets, tiny.
fn hub() -> StubHub {
    let sharegpt = data("../../../dataset/tests/data/public/sharegpt_sample.json");
    let file = "lfs:ShareGPT_V3_unfiltered_cleaned_split.json";
    StubHub::start(&[
        ("anon8231489123/ShareGPT_Vicuna_unfiltered", StubRepo::new(&[(file, &sharegpt)])),
        ("Exgentic/agent-llm-traces", sessions("v1", "70036b93a04e61b0ea2706a68b962f4f26774587")),
        ("Exgentic/agent-llm-traces-v2", sessions("v2", "4b8ad4ab198438e5a170f9171c19c6a2cf7c1814")),
    ])
}

/// Recorded agent sessions, at this commit alone.
fn sessions(version: &str, commit: &str) -> StubRepo {
    let rows = data(&format!("../../../dataset/tests/data/public/exgentic_{version}_sample.parquet"));
    let mut repo = StubRepo::new(&[("lfs:data/train-00000-of-00001.parquet", &rows)]);
    let files = repo.commits.remove(&repo.refs["main"]).unwrap();
    repo.commits.insert(commit.to_owned(), files);
    repo.refs.clear();
    repo
}

/// The documented name, the arguments that ask for it, and the requests that are sent.
const ROWS: [(&str, &str, f64); 9] = [
    ("Synthetic Text", "--isl 20 --request-count 2", 2.0),
    ("Synthetic Audio", "--isl 5 --audio-length-mean 0.1 --request-count 2", 2.0),
    ("Synthetic Images", "--isl 5 --image-width-mean 8 --image-height-mean 8 --request-count 2", 2.0),
    ("Custom Data", "--input-file your_file.jsonl --custom-dataset-type single_turn --request-count 2", 2.0),
    ("Mooncake", "--input-file your_trace_file.jsonl --custom-dataset-type mooncake_trace", 3.0),
    (
        "Baseten Trace",
        "--input-file your_trace.parquet --custom-dataset-type baseten_trace --endpoint-type completions",
        3.0,
    ),
    ("ShareGPT", "--public-dataset sharegpt --request-count 2", 2.0),
    ("Exgentic", "--public-dataset exgentic --request-count 2", 2.0),
    ("Exgentic v2", "--public-dataset exgentic_v2 --request-count 2", 2.0),
];

/// A machine with the files that the rows name.
fn machine(hub: &StubHub) -> Machine {
    let machine = Machine::new(hub);
    for (name, bytes) in [
        ("your_file.jsonl", data("files/single_turn.jsonl")),
        ("your_trace_file.jsonl", crate::machine::TRACE.to_vec()),
        ("your_trace.parquet", data("files/baseten_minimal.parquet")),
    ] {
        std::fs::write(machine.home.path().join(name), bytes).unwrap();
    }
    machine
}

fn profile(machine: &Machine, line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    let output = machine.profile(&[&words[..], &["--tokenizer", "builtin", "--random-seed", "1"]].concat());
    assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    machine.summary()
}

#[test]
fn every_documented_kind_of_data_runs() {
    let hub = hub();
    let machine = machine(&hub);
    for (name, line, requests) in ROWS {
        let summary = profile(&machine, line);
        assert_eq!(summary["request_count"]["avg"], requests, "{name}");
        assert_eq!(summary["error_summary"], Value::Array(Vec::new()), "{name}");
    }
}

#[test]
fn a_synthesized_trace_of_coding_agents_is_replayed_as_a_mooncake_trace() {
    let hub = hub();
    let machine = machine(&hub);
    let arguments = ["synthesize", "agentic-code", "--num-sessions", "2", "--seed", "3", "--output", "made"];
    let output = machine.aiperf(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let made = std::fs::read_dir(machine.home.path().join("made")).unwrap().next().unwrap().unwrap().path();
    let trace = made.join("dataset.jsonl");
    let line = format!(
        "--input-file {} --custom-dataset-type mooncake_trace --no-fixed-schedule --inter-turn-delay-cap-seconds 0.01 \
         --request-count 4 --concurrency 2",
        trace.display()
    );
    let summary = profile(&machine, &line);
    assert_eq!(summary["request_count"]["avg"], 4.0);
}
