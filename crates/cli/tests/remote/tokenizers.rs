//! Tokenizers of the Hub, through the program.

use std::fs;

use aiperf_test_servers::{StubHub, StubRepo};

use crate::machine::{Machine, stderr};

/// The bytes of a file among the test data of the tokenizers.
fn data(name: &str) -> Vec<u8> {
    fs::read(format!("{}/../tokenize/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Repositories with a tokenizer each, and one without.
fn hub() -> StubHub {
    let json = data("byte-bpe/tokenizer.json");
    let config = data("byte-bpe/tokenizer_config.json");
    let model = data("sentencepiece-keeps-spaces/tokenizer.model");
    let bytes: &[u8] = b"weights";
    let small: &[(&str, &[u8])] = &[
        ("lfs:tokenizer.json", &json),
        ("tokenizer_config.json", &config),
        ("vocab.json", b"{}"),
        ("lfs:model.safetensors", bytes),
        ("original/tokenizer.model", bytes),
    ];
    StubHub::start(&[
        ("org/tiny", StubRepo::new(small)),
        ("other/tiny", StubRepo::new(small)),
        ("org/pieces", StubRepo::new(&[("lfs:tokenizer.model", &model)])),
        (
            "org/code",
            StubRepo::new(&[("tokenization_odd.py", b"raise SystemExit\n"), ("config.json", b"{}")]),
        ),
    ])
}

fn run(machine: &Machine, tokenizer: &str, more: &[&str]) -> std::process::Output {
    let common = ["--tokenizer", tokenizer, "--request-count", "2", "--isl", "20", "--osl", "4"];
    machine.profile(&[&common[..], more].concat())
}

#[test]
fn only_the_files_of_a_tokenizer_are_downloaded_once_and_the_commit_is_recorded() {
    let hub = hub();
    let machine = Machine::new(&hub);
    let output = run(&machine, "org/tiny", &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = machine.summary();
    let commit = summary["input_config"]["tokenizer"]["resolved_revision"].as_str().unwrap();
    assert!(stderr(&output).contains(&format!("tokenizer org/tiny is used at commit {commit}")));
    let repository = machine.home.path().join(".cache/huggingface/hub/models--org--tiny");
    let mut names: Vec<String> = fs::read_dir(repository.join("snapshots").join(commit))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["tokenizer.json", "tokenizer_config.json"]);
    assert_eq!(fs::read_to_string(repository.join("refs/main")).unwrap(), commit);
    // From the cache from now on: the Hub is not asked at all.
    hub.clear_logs();
    assert!(run(&machine, "org/tiny", &[]).status.success());
    assert!(run(&machine, "org/tiny", &["--tokenizer-revision", commit]).status.success());
    assert!(hub.log().is_empty());
}

#[test]
fn a_cached_tokenizer_of_other_bytes_is_fetched_again_and_offline_refused() {
    let hub = hub();
    let mut machine = Machine::new(&hub);
    assert!(run(&machine, "org/tiny", &[]).status.success());
    let blobs = machine.home.path().join(".cache/huggingface/hub/models--org--tiny/blobs");
    let whole = |path: &std::path::Path| fs::read(path).unwrap();
    let blobs: Vec<_> = fs::read_dir(blobs).unwrap().map(|entry| entry.unwrap().path()).collect();
    let bytes: Vec<Vec<u8>> = blobs.iter().map(|path| whole(path)).collect();
    assert_eq!(blobs.len(), 2, "{blobs:?}");
    for (blob, bytes) in blobs.iter().zip(&bytes) {
        // One byte, or the end, or all of it.
        let mut other = bytes.clone();
        other[0] ^= 1;
        for damaged in [Some(&other[..]), Some(&bytes[..bytes.len() / 2]), None] {
            match damaged {
                Some(damaged) => fs::write(blob, damaged).unwrap(),
                None => fs::remove_file(blob).unwrap(),
            }
            hub.clear_logs();
            let output = run(&machine, "org/tiny", &[]);
            let said = stderr(&output);
            assert!(output.status.success() && said.contains("is not what it should be"), "{said}");
            assert_eq!(&whole(blob), bytes);
            assert_eq!(
                hub.log()
                    .iter()
                    .filter(|request| request.method == "GET" && request.path().contains("/resolve/"))
                    .count(),
                1
            );
        }
    }
    fs::write(&blobs[0], b"{}").unwrap();
    machine.set("HF_HUB_OFFLINE", "1");
    hub.clear_logs();
    let output = run(&machine, "org/tiny", &[]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("is damaged: its bytes are not those that were downloaded. Run once online"),
        "{said}"
    );
    assert!(hub.log().is_empty());
}

#[test]
fn a_sentencepiece_model_of_the_hub_counts_tokens() {
    let hub = hub();
    let machine = Machine::new(&hub);
    let output = run(&machine, "org/pieces", &[]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn offline_nothing_is_asked_and_the_error_says_where_it_was_sought() {
    let hub = hub();
    for variable in ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"] {
        let mut machine = Machine::new(&hub);
        machine.set(variable, "1");
        for name in ["org/tiny", "tiny"] {
            let output = run(&machine, name, &[]);
            assert_eq!(output.status.code(), Some(2));
            let text = stderr(&output);
            assert!(text.contains(name) && text.contains("models--") && text.contains("builtin"), "{text}");
        }
    }
    assert!(hub.log().is_empty());
}

#[test]
fn a_short_name_is_searched_once_and_the_most_downloaded_of_that_name_is_taken() {
    let hub = hub();
    let machine = Machine::new(&hub);
    let output = run(&machine, "tiny", &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("tokenizer other/tiny is used at commit"), "{}", stderr(&output));
    let searches = hub.log().iter().filter(|request| request.path() == "/api/models").count();
    assert_eq!(searches, 1);
    let output = run(&machine, "org", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("org/tiny, org/pieces, org/code."), "{}", stderr(&output));
}

#[test]
fn inference_perf_127_a_bare_model_name_is_no_reason_to_ask_the_hub() {
    let hub = hub();
    let machine = Machine::new(&hub);
    let output = machine.aiperf(&[
        "profile",
        "--url",
        "http://127.0.0.1:9",
        "--model",
        "tiny",
        "--request-count",
        "1",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--tokenizer") && stderr(&output).contains("builtin"),
        "{}",
        stderr(&output)
    );
    assert!(hub.log().is_empty());
}

#[test]
fn a_repository_without_a_tokenizer_is_an_error_that_lists_its_files() {
    let hub = hub();
    let machine = Machine::new(&hub);
    let output = run(&machine, "org/code", &[]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    for part in ["org/code", "tokenization_odd.py", "never run", "builtin"] {
        assert!(text.contains(part), "{text}");
    }
    // Generated text needs a tokenizer, whoever counts.
    assert!(!text.contains("--use-server-token-count"), "{text}");
    let rows = machine.home.path().join("rows.jsonl");
    fs::write(&rows, "{\"text\": \"one two\"}\n").unwrap();
    let rows = rows.display().to_string();
    let output = machine.profile(&["--tokenizer", "org/code", "--input-file", &rows]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("or use --use-server-token-count"), "{}", stderr(&output));
    let output = run(&machine, "org/none", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("org/none was not found"), "{}", stderr(&output));
}

#[test]
fn tensorrt_llm_12998_a_cached_tokenizer_of_a_gated_model_needs_no_token() {
    let hub = hub();
    let machine = Machine::new(&hub);
    assert!(run(&machine, "org/tiny", &[]).status.success());
    hub.change("org/tiny", |repo| repo.gated = true);
    let mut machine = machine;
    machine.set("HF_TOKEN", "");
    assert!(run(&machine, "org/tiny", &[]).status.success());
    // Without a cache the error says what to do.
    let mut other = Machine::new(&hub);
    other.set("HF_TOKEN", "");
    let output = run(&other, "org/tiny", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("gated"), "{}", stderr(&output));
}
