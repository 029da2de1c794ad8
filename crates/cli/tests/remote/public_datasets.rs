//! `--public-dataset`, through the program and a stub of the Hub.

use std::collections::BTreeMap;

use aiperf_test_servers::{Answer, StubHub, StubRepo, rows};
use serde_json::{Value, json};

use crate::machine::{Machine, stderr};

const GSM8K: &str = "openai/gsm8k";

fn questions(from: usize, count: usize) -> Vec<Value> {
    (from..from + count)
        .map(|n| json!({"question": format!("How many legs do {n} cats have?"), "answer": (4 * n).to_string()}))
        .collect()
}

/// A repository with these files and a card.
fn repo(card: &str, files: &[(&str, Vec<u8>)]) -> StubRepo {
    let mut all: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    if !card.is_empty() {
        all.push(("README.md", card.as_bytes()));
    }
    StubRepo::new(&all)
}

fn gsm8k() -> StubRepo {
    repo(
        "",
        &[
            ("lfs:main/test-00000-of-00002.parquet", rows::parquet(&questions(0, 5), 2)),
            ("lfs:main/test-00001-of-00002.parquet", rows::parquet(&questions(5, 5), 2)),
            ("lfs:main/train-00000-of-00001.parquet", rows::parquet(&questions(100, 2), 2)),
        ],
    )
}

/// What the run sent, by the last message of each request: its text, or its parts as JSON.
pub(crate) fn sent(machine: &Machine) -> Vec<String> {
    let raw = std::fs::read_to_string(machine.home.path().join("out/profile_export_raw.jsonl")).unwrap();
    let mut texts: Vec<String> = raw
        .lines()
        .map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            let content = &record["payload"]["messages"].as_array().unwrap().last().unwrap()["content"];
            content.as_str().map_or_else(|| shortened(content.clone()).to_string(), str::to_owned)
        })
        .collect();
    texts.sort();
    texts
}

/// The beginning of an image, and nothing of a clip.
fn shortened(mut content: Value) -> Value {
    for part in content.as_array_mut().unwrap() {
        if let Some(Value::String(url)) = part.pointer_mut("/image_url/url") {
            url.truncate(27);
        }
        if let Some(Value::String(data)) = part.pointer_mut("/input_audio/data") {
            data.clear();
        }
    }
    content
}

fn profile(machine: &Machine, set: &str, more: &[&str]) -> std::process::Output {
    machine.profile(&[&["--public-dataset", set, "--tokenizer", "builtin"][..], more].concat())
}

fn run(machine: &Machine, set: &str, more: &[&str]) {
    let output = profile(machine, set, &[more, &["--export-level", "raw"]].concat());
    assert_eq!(output.status.code(), Some(0), "{set}: {}", stderr(&output));
}

#[test]
fn a_set_runs_from_the_hub_and_which_bytes_it_was_is_on_record() {
    let hub = StubHub::start(&[(GSM8K, gsm8k())]);
    let machine = Machine::new(&hub);
    run(&machine, "SPEC-AL-gsm8k", &["--num-dataset-entries", "3", "--request-count", "4"]);
    let questions: Vec<String> = [0, 0, 1, 2].map(|n| format!("How many legs do {n} cats have?")).into();
    assert_eq!(sent(&machine), questions);
    let summary = machine.summary();
    let dataset = &summary["metadata"]["dataset"];
    let commit = hub.change(GSM8K, |repo| repo.refs["main"].clone());
    let shard =
        hub.change(GSM8K, |repo| repo.commits[&commit]["main/test-00000-of-00002.parquet"].bytes.len());
    assert_eq!(
        *dataset,
        json!({
            "source_type": "public_dataset",
            "loader": "spec_al_gsm8k",
            "hf_dataset_name": GSM8K,
            "hf_split": "test",
            "hf_subset": "main",
            "revision": commit,
            "num_dataset_entries": 3,
            "filters": {},
            "rows_read": 3,
            // The bound is met before the second shard is asked for.
            "bytes_fetched": shard,
            "conversations": 3,
            "requests": 3,
        })
    );
    assert_eq!(summary["input_config"]["datasets"][0]["dataset"], "spec_al_gsm8k");
    // The version is fixed once, and the repository is listed once.
    let log = hub.log();
    let asked = |part: &str| log.iter().filter(|request| request.path().contains(part)).count();
    assert_eq!((asked("/revision/"), asked("/paths-info/")), (1, 0), "{log:?}");
    let first_pages =
        log.iter().filter(|request| request.path().contains("/tree/") && !request.target.contains("cursor="));
    assert_eq!(first_pages.count(), 1, "{log:?}");
}

#[test]
fn a_set_that_was_fetched_runs_offline_and_one_that_was_not_connects_to_nobody() {
    let hub = StubHub::start(&[(GSM8K, gsm8k())]);
    let mut machine = Machine::new(&hub);
    machine.set("HF_HUB_OFFLINE", "1");
    let output = profile(&machine, "spec_al_gsm8k", &[]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(
        text.contains("Cannot use public dataset spec_al_gsm8k (hf://datasets/openai/gsm8k@main): "),
        "{text}"
    );
    assert!(text.contains("was not found") && text.contains("offline mode is on"), "{text}");
    assert!(hub.log().is_empty());
    machine.set("HF_HUB_OFFLINE", "0");
    run(&machine, "spec_al_gsm8k", &["--request-count", "10"]);
    let online = sent(&machine);
    assert_eq!(online.len(), 10);
    hub.clear_logs();
    machine.set("HF_HUB_OFFLINE", "1");
    run(&machine, "spec_al_gsm8k", &["--request-count", "10"]);
    assert_eq!(sent(&machine), online);
    assert_eq!(machine.summary()["metadata"]["dataset"]["bytes_fetched"], 0);
    assert!(hub.log().is_empty() && hub.storage_log().is_empty());
}

#[test]
fn the_files_of_a_split_are_found_in_every_layout() {
    let parquet = |from| rows::parquet(&questions(from, 2), 1);
    let lines = questions(0, 2).iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let array = json!(questions(0, 2)).to_string();
    let card = "---\nlicense: mit\nconfigs:\n- config_name: main\n  data_files:\n  - split: test\n    path: odd/*.parquet\n---\n";
    let layouts: BTreeMap<&str, StubRepo> = [
        ("the card", repo(card, &[("odd/x.parquet", parquet(0)), ("main/test-0.parquet", parquet(50))])),
        ("the folder of the subset", repo("", &[("main/test-0.parquet", parquet(0))])),
        ("the folder data", repo("# no front matter\n", &[("data/test-0.parquet", parquet(0))])),
        ("a file called like the split", repo("", &[("main/my.test.jsonl", lines.clone().into_bytes())])),
        ("lines", repo("", &[("data/test-0.jsonl", lines.into_bytes())])),
        ("an array", repo("", &[("data/test-0.json", array.into_bytes())])),
        ("converted", {
            let mut repo = repo("", &[("x.csv", b"a\n".to_vec())]);
            repo.commit(
                "refs/convert/parquet",
                &[("main/test/0000.parquet", &parquet(0)), ("other/test/0000.parquet", &parquet(70))],
            );
            repo
        }),
    ]
    .into();
    for (layout, repo) in layouts {
        let hub = StubHub::start(&[(GSM8K, repo)]);
        let machine = Machine::new(&hub);
        run(&machine, "spec_al_gsm8k", &["--request-count", "2"]);
        assert_eq!(
            sent(&machine),
            ["How many legs do 0 cats have?", "How many legs do 1 cats have?"],
            "{layout}"
        );
        // Lists are read, names are not tried: nothing that is asked for is missing.
        let tries = hub.log().iter().filter(|request| request.path().contains("/resolve/")).count();
        assert!(tries <= 3, "{layout}: {:?}", hub.log());
    }
}

/// A name, the repository, further arguments, the exit code, and parts of the message.
type Wrong = (&'static str, StubRepo, &'static [&'static str], i32, &'static [&'static str]);

#[test]
fn what_is_wrong_with_a_set_is_said_in_one_line() {
    let mut gated = gsm8k();
    gated.gated = true;
    let odd = rows::parquet(&[json!({"prompt": "x", "answer": "y"})], 1);
    let named: [Wrong; 5] = [
        (
            "gated",
            gated,
            &[],
            2,
            &["is gated", "Accept its terms", "HF_TOKEN", "https://huggingface.co/datasets/openai/gsm8k"],
        ),
        (
            "column",
            repo("", &[("main/test-0.parquet", odd)]),
            &[],
            2,
            &["has no column `question`", "main/test-0.parquet", "prompt, answer", "openai/gsm8k"],
        ),
        (
            "subset",
            repo("---\nconfigs:\n- config_name: main\n- config_name: socratic\n---\n", &[("x.csv", vec![])]),
            &["--hf-subset", "none"],
            2,
            &["the split test of the subset none was not found", "main, socratic"],
        ),
        (
            "damaged",
            repo("", &[("main/test-0.parquet", b"PAR1 and no footer PAR1".to_vec())]),
            &[],
            2,
            &["main/test-0.parquet cannot be read"],
        ),
        (
            "blank",
            repo("", &[("main/test-0.jsonl", b"{\"question\": \" \"}\n".to_vec())]),
            &[],
            2,
            &["no conversations", "1 blank prompt"],
        ),
    ];
    for (name, repo, arguments, code, parts) in named {
        let hub = StubHub::start(&[(GSM8K, repo)]);
        let mut machine = Machine::new(&hub);
        if name == "gated" {
            machine.set("HF_TOKEN", "");
        }
        let output = profile(&machine, "spec_al_gsm8k", arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{name}: {text}");
        let head = "Cannot use public dataset spec_al_gsm8k (hf://datasets/openai/gsm8k@";
        let line = text.lines().find(|line| line.contains(head)).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(parts.iter().all(|part| line.contains(part)), "{name}: {line}");
        assert!(!machine.home.path().join("out").exists(), "{name}: nothing was sent");
    }
}

#[test]
fn flags_that_do_not_go_with_a_set_are_refused_before_the_network() {
    let hub = StubHub::start(&[(GSM8K, gsm8k())]);
    let machine = Machine::new(&hub);
    std::fs::write(machine.home.path().join("x.jsonl"), "{\"text\": \"a\"}\n").unwrap();
    for arguments in [
        &["--input-file", "x.jsonl"][..],
        &["--custom-dataset-type", "single_turn"],
        &["--isl", "5"],
        &["--isl-stddev", "5"],
        &["--seq-dist", "8,4:100"],
        &["--random-range-ratio", "0.5"],
        &["--num-prefix-prompts", "2"],
        &["--prefix-prompt-length", "2"],
        &["--shared-system-prompt-length", "2"],
        &["--user-context-prompt-length", "2"],
        &["--batch-size", "2"],
        &["--image-batch-size", "2"],
        &["--audio-batch-size", "2"],
        &["--video-batch-size", "2"],
        &["--image-source", "assets"],
        &["--image-source-sampling", "shuffle-cycle"],
        &["--conversation-turn-mean", "2"],
        &["--conversation-turn-stddev", "2"],
        &["--conversation-turn-delay-mean", "2"],
        &["--conversation-turn-delay-stddev", "2"],
        &["--conversation-turn-delay-ratio", "2"],
        &["--fixed-schedule"],
        &["--isl-block-size", "16"],
        &["--request-count", "0"],
    ] {
        let output = profile(&machine, "spec_al_gsm8k", arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(arguments[0]), "{arguments:?}: {text}");
    }
    let output = profile(&machine, "gsm8k", &[]);
    assert!(stderr(&output).contains("spec_al_gsm8k"), "{}", stderr(&output));
    assert!(hub.log().is_empty());
}

/// A run that only its duration ends reads a set whole; of one that is streamed, 100 entries, and says so.
#[test]
fn how_much_is_read_follows_entries_then_conversations_then_requests() {
    let chats: Vec<Value> = (0..130)
        .map(|number| json!({"conversations": [{"from": "human", "value": format!("question {number}")}], "image": null}))
        .collect();
    let hub = StubHub::start(&[
        (GSM8K, gsm8k()),
        (
            "lmms-lab/LLaVA-OneVision-Data",
            repo("", &[("lfs:sharegpt4o/train-0.parquet", rows::parquet(&chats, 10))]),
        ),
    ]);
    let machine = Machine::new(&hub);
    let read = |set: &str, more: &[&str]| {
        let output = profile(&machine, set, more);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{set} {more:?}: {text}");
        (machine.summary()["metadata"]["dataset"]["rows_read"].clone(), text)
    };
    let sends = ["--request-count", "2"];
    for (more, rows) in [
        (&["--num-dataset-entries", "4", "--num-conversations", "3"][..], 4),
        (&["--num-conversations", "3"], 3),
        (&[], 2),
    ] {
        assert_eq!(read("spec_al_gsm8k", &[&sends[..], more].concat()).0, rows, "{more:?}");
    }
    // Without any of the three ten requests are sent.
    assert_eq!(read("llava_onevision", &[]).0, 10);
    let lasts = ["--benchmark-duration", "0.2", "--concurrency", "1"];
    assert_eq!(read("spec_al_gsm8k", &lasts).0, 10);
    let (rows, text) = read("llava_onevision", &lasts);
    assert_eq!(rows, 100);
    assert!(text.contains("llava_onevision is read up to 100 entries"), "{text}");
}

#[test]
fn an_output_length_and_a_system_prompt_go_with_a_set() {
    let hub = StubHub::start(&[(GSM8K, gsm8k())]);
    let machine = Machine::new(&hub);
    run(&machine, "spec_al_gsm8k", &["--request-count", "1", "--osl", "7", "--system-prompt", "Be brief."]);
    let raw = std::fs::read_to_string(machine.home.path().join("out/profile_export_raw.jsonl")).unwrap();
    let record: Value = serde_json::from_str(raw.lines().next().unwrap()).unwrap();
    let payload = &record["payload"];
    assert_eq!(payload["max_completion_tokens"], 7);
    assert_eq!(payload["messages"][0], json!({"role": "system", "content": "Be brief."}));
    assert_eq!(payload["messages"][1]["content"], "How many legs do 0 cats have?");
}

#[test]
fn a_set_that_was_fetched_before_runs_offline() {
    let hub = StubHub::start(&[(GSM8K, gsm8k())]);
    let mut machine = Machine::new(&hub);
    let fetch = ["dataset", "fetch", "--public-dataset", "spec-al-gsm8k"];
    let output = machine.aiperf(&[&fetch[..], &["--num-dataset-entries", "5", "--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&facts[0]["loader"], &facts[0]["rows_read"]), (&json!("spec_al_gsm8k"), &json!(5)));
    let bounded = facts[0]["bytes_fetched"].as_u64().unwrap();
    // The rest of the set, and nothing twice.
    let output = machine.aiperf(&[&fetch[..], &["--json"]].concat());
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = facts[0]["files"].as_array().unwrap();
    assert_eq!(files[1]["path"], "main/test-00001-of-00002.parquet");
    assert_eq!(facts[0]["bytes_fetched"], files[1]["size"]);
    assert_eq!(bounded, files[0]["size"].as_u64().unwrap());
    machine.set("HF_HUB_OFFLINE", "1");
    run(&machine, "spec_al_gsm8k", &["--request-count", "10"]);
    assert_eq!(sent(&machine).len(), 10);
    // What was not fetched says how to fetch it.
    let output = profile(&machine, "aimo", &[]);
    assert!(stderr(&output).contains("`aiperf dataset fetch --public-dataset aimo`"), "{}", stderr(&output));
    for arguments in [&["dataset", "fetch"][..], &["dataset", "fetch", "--public-dataset", "gsm8k"]] {
        assert_eq!(machine.aiperf(arguments).status.code(), Some(2));
    }
}

#[test]
fn a_set_whose_hub_fails_midway_is_one_error_and_leaves_no_file_behind() {
    let hub = StubHub::start(&[(GSM8K, gsm8k())]);
    let machine = Machine::new(&hub);
    let mut asked = 0;
    hub.fault(move |request| {
        // The first shard comes, the second does not.
        asked += usize::from(request.path().contains("00001-of-00002"));
        (asked > 0).then(|| Answer::status(404))
    });
    let output = profile(&machine, "spec_al_gsm8k", &["--request-count", "10"]);
    let text = stderr(&output);
    assert_ne!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("Cannot use public dataset spec_al_gsm8k (hf://datasets/openai/gsm8k@"), "{text}");
    assert!(!machine.home.path().join("out").exists());
    let blobs = machine.home.path().join(".cache/huggingface/hub/datasets--openai--gsm8k/blobs");
    assert_eq!(std::fs::read_dir(blobs).unwrap().count(), 1);
}

/// <https://github.com/ai-dynamo/aiperf/issues/1387>: dozens of requests for files that are not there, to build one set.
#[test]
fn aiperf_1387_a_set_is_fetched_by_the_names_of_its_files_and_not_by_guesses() {
    let hub = StubHub::start(&[(GSM8K, gsm8k())]);
    let machine = Machine::new(&hub);
    run(&machine, "spec_al_gsm8k", &["--request-count", "10"]);
    let commit = hub.change(GSM8K, |repo| repo.refs["main"].clone());
    let log = hub.log();
    let asked: Vec<&str> = log.iter().map(aiperf_test_servers::Request::path).collect();
    for path in asked.iter().filter(|path| path.contains("/resolve/")) {
        // At the commit that was chosen first, and only what lies there and is read.
        assert!(path.contains(&commit), "{path}");
        assert!(
            path.ends_with("main/test-00000-of-00002.parquet")
                || path.ends_with("main/test-00001-of-00002.parquet"),
            "{asked:#?}"
        );
    }
    assert!(asked.len() <= 12, "{asked:#?}");
}

#[test]
fn how_long_a_transfer_may_be_silent_is_a_number_of_seconds() {
    let hub = StubHub::start(&[(GSM8K, gsm8k())]);
    let mut machine = Machine::new(&hub);
    machine.set("AIPERF_DATASET_PUBLIC_DATASET_TIMEOUT", "soon");
    let output = profile(&machine, "spec_al_gsm8k", &[]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("AIPERF_DATASET_PUBLIC_DATASET_TIMEOUT is \"soon\""), "{text}");
    assert!(hub.log().is_empty());
    machine.set("AIPERF_DATASET_PUBLIC_DATASET_TIMEOUT", "30");
    run(&machine, "spec_al_gsm8k", &["--request-count", "1"]);
}
