//! Recorded agent sessions, streamed from a stub of the Hub and replayed.

use std::ops::Range;
use std::path::Path;

use aiperf_test_servers::http::{Answer, Request};
use aiperf_test_servers::{StubHub, StubRepo, rows};
use serde_json::{Value, json};

use crate::machine::{Machine, files_below, stderr};

const V1: (&str, &str) = ("Exgentic/agent-llm-traces", "70036b93a04e61b0ea2706a68b962f4f26774587");
pub(crate) const V2: (&str, &str) =
    ("Exgentic/agent-llm-traces-v2", "4b8ad4ab198438e5a170f9171c19c6a2cf7c1814");

/// A file of the examples.
pub(crate) fn example(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/tests/data/public");
    std::fs::read(folder.join(name)).unwrap()
}

/// A Hub that has these large files at the commit that is always read, and another commit on `main`.
pub(crate) fn hub_of((name, revision): (&str, &str), shards: &[(&str, &[u8])]) -> StubHub {
    let files: Vec<(String, &[u8])> =
        shards.iter().map(|(name, bytes)| (format!("lfs:data/{name}"), *bytes)).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    let mut repo = StubRepo::new(&files);
    let tree = repo.commits.remove(&repo.refs["main"]).unwrap();
    repo.commits.insert(revision.to_owned(), tree);
    repo.commit("main", &[("data/train-0.parquet", b"another version")]);
    StubHub::start(&[(name, repo)])
}

pub(crate) fn both() -> [(&'static str, StubHub); 2] {
    let of = |version, file| hub_of(version, &[("train-00000-of-00001.parquet", &example(file))]);
    [
        ("exgentic", of(V1, "exgentic_v1_sample.parquet")),
        ("exgentic_v2", of(V2, "exgentic_v2_sample.parquet")),
    ]
}

/// A session of the second version with one call, or several a second apart.
pub(crate) fn session(id: &str, harness: &str, calls: usize) -> Value {
    let spans: Vec<Value> = (0..calls)
        .map(|call| {
            let messages =
                json!([{"role": "user", "parts": [{"type": "text", "content": format!("{id} {call}")}]}]);
            json!({
                "type": "llm_call",
                "start_time": format!("2026-03-01T10:00:{call:02}.000+00:00"),
                "end_time": format!("2026-03-01T10:00:{call:02}.500+00:00"),
                "status": {"code": 1},
                "attributes": {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.usage.input_tokens": 10,
                    "gen_ai.usage.output_tokens": 3,
                    "gen_ai.input.messages": messages.to_string(),
                    // So that a row group is longer than what is fetched to find it.
                    "gen_ai.output.messages": noise(id, 9_000),
                },
            })
        })
        .collect();
    json!({
        "session_id": id, "harness": harness, "benchmark": "swebench", "models": ["azure/Kimi-K2.5"], "spans": spans,
    })
}

/// Text that cannot be compressed well.
fn noise(seed: &str, length: usize) -> String {
    let mut state = seed.bytes().fold(0x9e37_79b9_7f4a_7c15_u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + (state >> 33) as u8 % 90)
        })
        .map(|letter| if letter == '"' || letter == '\\' { '.' } else { letter })
        .collect()
}

pub(crate) fn profile(machine: &Machine, set: &str, more: &[&str]) -> std::process::Output {
    machine.profile(&[&["--public-dataset", set, "--tokenizer", "builtin"][..], more].concat())
}

pub(crate) fn run(machine: &Machine, set: &str, more: &[&str]) -> String {
    let output = profile(machine, set, &[more, &["--export-level", "raw"]].concat());
    assert_eq!(output.status.code(), Some(0), "{set}: {}", stderr(&output));
    stderr(&output)
}

/// The ranges that the storage was asked for, and of which file.
fn asked(hub: &StubHub) -> Vec<(String, Range<u64>)> {
    let range = |request: &Request| {
        let (start, end) = request.range().unwrap_or((0, None));
        (request.path().to_owned(), start..end.map_or(u64::MAX, |end| end + 1))
    };
    hub.storage_log().iter().map(range).collect()
}

fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[test]
fn one_conversation_of_ten_shards_takes_the_footer_and_the_first_row_group_of_the_first() {
    let shards: Vec<(String, Vec<u8>)> = (0..10)
        .map(|shard| {
            let rows: Vec<Value> =
                (0..6).map(|row| session(&format!("s{shard}{row}"), "tool_calling", 2)).collect();
            (format!("train-{shard:05}-of-00010.parquet"), rows::parquet(&rows, 2))
        })
        .collect();
    let files: Vec<(&str, &[u8])> =
        shards.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let hub = hub_of(V2, &files);
    let mut machine = Machine::new(&hub);
    let more = ["--num-conversations", "1"];
    let said = run(&machine, "exgentic_v2", &more);
    assert!(said.contains("1 recorded session(s), 2 request(s); left out: 0 failed"), "{said}");
    let first = &shards[0].1;
    let spans = rows::column_bytes(first, "spans");
    let asked = asked(&hub);
    assert!(asked.iter().all(|(path, _)| *path == asked[0].0), "one file: {asked:?}");
    // The end of the file, the rest of the footer, the columns of the row group.
    assert!(asked.len() <= 4, "{asked:?}");
    assert!(asked.iter().all(|(_, range)| !meet(range, &spans[1]) && !meet(range, &spans[2])), "{asked:?}");
    let bytes: u64 = asked.iter().map(|(_, range)| range.end - range.start).sum();
    let dataset = machine.summary()["metadata"]["dataset"].clone();
    assert_eq!(dataset["bytes_fetched"], bytes);
    assert_eq!(dataset["revision"], V2.1);
    assert_eq!(
        (&dataset["rows_read"], &dataset["conversations"], &dataset["requests"]),
        (&json!(1), &json!(1), &json!(2))
    );
    assert_eq!(dataset["filters"], json!({}));
    assert!((bytes as usize) < first.len() / 2, "{bytes} of {}", first.len());

    // The same again, from what was kept.
    let online = machine.summary()["metadata"]["dataset"].clone();
    hub.clear_logs();
    machine.set("HF_HUB_OFFLINE", "1");
    run(&machine, "exgentic_v2", &more);
    assert!(hub.log().is_empty() && hub.storage_log().is_empty());
    let offline = machine.summary()["metadata"]["dataset"].clone();
    assert_eq!(offline["bytes_fetched"], 0);
    assert_eq!(offline["requests"], online["requests"]);
    // More than was kept is not there.
    let output = profile(&machine, "exgentic_v2", &["--num-conversations", "3"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in [
        "Cannot use public dataset exgentic_v2 (hf://datasets/Exgentic/agent-llm-traces-v2@4b8ad4ab198438e5a170f9171c19c6a2cf7c1814): \
         data/train-00000-of-00010.parquet: row group 2: bytes ",
        "was not found: it is not in the cache and offline mode is on",
        "aiperf dataset fetch --public-dataset",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(hub.log().is_empty() && hub.storage_log().is_empty());
}

#[test]
fn of_lines_no_more_is_fetched_than_is_read_ahead() {
    let lines: Vec<String> =
        (0..300).map(|row| session(&format!("s{row}"), "tool_calling", 2).to_string()).collect();
    let hub = hub_of(V2, &[("train-0.jsonl", lines.join("\n").as_bytes()), ("train-1.jsonl", b"no JSON")]);
    let machine = Machine::new(&hub);
    run(&machine, "exgentic_v2", &["--num-conversations", "1"]);
    let asked: Vec<Range<u64>> = asked(&hub).into_iter().map(|(_, range)| range).collect();
    assert_eq!((asked.len(), &asked[0]), (1, &(0..4 << 20)));
    run(
        &machine,
        "exgentic_v2",
        &["--num-conversations", "1", "--dataset-filter", "source_model=aws/kimi-k2.5"],
    );
    assert_eq!(self::asked(&hub).len(), 1, "the same bytes");
}

#[test]
fn a_session_of_the_last_of_six_row_groups_takes_the_spans_of_that_one_alone() {
    let rows: Vec<Value> = (0..12)
        .map(|row| session(&format!("s{row}"), if row == 11 { "openai_solo" } else { "tool_calling" }, 2))
        .collect();
    let file = rows::parquet(&rows, 2);
    let hub = hub_of(V2, &[("train-0.parquet", &file)]);
    let machine = Machine::new(&hub);
    run(&machine, "exgentic_v2", &["--num-conversations", "1", "--dataset-filter", "harness=openai_solo"]);
    let spans = rows::column_bytes(&file, "spans");
    assert_eq!(spans.len(), 6);
    let asked = asked(&hub);
    let read: Vec<bool> =
        spans.iter().map(|spans| asked.iter().any(|(_, range)| meet(range, spans))).collect();
    assert_eq!(read, [false, false, false, false, false, true], "{asked:?}");
    let dataset = machine.summary()["metadata"]["dataset"].clone();
    assert_eq!(dataset["filters"], json!({"harness": "openai_solo"}));
    assert_eq!((&dataset["rows_read"], &dataset["requests"]), (&json!(12), &json!(2)));
}

#[test]
fn what_is_wrong_with_the_command_is_said_before_the_network() {
    for (set, hub) in both() {
        let machine = Machine::new(&hub);
        let wrong: &[(&[&str], &[&str])] = &[
            (
                &["--dataset-filter", "harness=codex"],
                &["--dataset-filter harness=codex", "claude_code/Kimi-K2.5"],
            ),
            (&["--dataset-filter", "source_model=x"], &["smolagents_code/DeepSeek-V3.2"]),
            (&["--dataset-filter", "model=Kimi-K2.5"], &["the key is not known", "tool_calling/Kimi-K2.5"]),
            (&["--dataset-filter", "benchmark=gsm8k"], &["benchmark"]),
            (
                &[
                    "--dataset-filter",
                    "harness=tool_calling_with_shortlisting",
                    "--dataset-filter",
                    "source_model=gpt-5.2-2025-12-11",
                ],
                &[
                    "no session has harness=tool_calling_with_shortlisting with source_model=gpt-5.2-2025-12-11",
                ],
            ),
            (&["--dataset-filter", "harness"], &["--dataset-filter harness is no key=value"]),
            (&["--dataset-filter", "harness= "], &["is no key=value"]),
            (
                &["--dataset-filter", "harness=tool_calling", "--dataset-filter", " harness = claude_code"],
                &["--dataset-filter is given twice for harness"],
            ),
            (&["--fixed-schedule"], &["--num-dataset-entries, --num-conversations, --request-count"]),
            (
                &["--benchmark-duration", "5"],
                &["--num-dataset-entries, --num-conversations, --request-count"],
            ),
            (&["--hf-subset", "x"], &["--hf-subset"]),
            (&["--endpoint-type", "completions"], &["--endpoint-type completions"]),
            (&["--num-conversations", "0"], &["--num-conversations"]),
        ];
        for (arguments, says) in wrong {
            let output = profile(&machine, set, arguments);
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{set} {arguments:?}: {text}");
            assert!(says.iter().all(|part| text.contains(part)), "{set} {arguments:?}: {text}");
        }
        let output =
            profile(&machine, set, &["--dataset-filter", "benchmark=swebench", "--benchmark-duration", "1"]);
        let says = if set == "exgentic" { "only exgentic_v2 can" } else { "none of --num-dataset-entries" };
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
        let output = profile(&machine, "spec_al_gsm8k", &["--dataset-filter", "harness=tool_calling"]);
        assert!(stderr(&output).contains("--dataset-filter"), "{}", stderr(&output));
        let output = profile(&machine, "spec_al_gsm8k", &["--max-context-length", "8"]);
        assert!(stderr(&output).contains("--max-context-length"), "{}", stderr(&output));
        assert!(hub.log().is_empty() && hub.storage_log().is_empty());
    }
}

#[test]
fn faults_of_the_hub_name_the_shard_and_leave_nothing() {
    type Fault = Box<dyn FnMut(&Request) -> Option<Answer> + Send>;
    let rows: Vec<Value> = (0..6).map(|row| session(&format!("s{row}"), "tool_calling", 1)).collect();
    let file = rows::parquet(&rows, 2);
    let second = rows::column_bytes(&file, "spans")[1].clone();
    let in_second = move |request: &Request| {
        request.target.contains("Signature=")
            && request
                .range()
                .is_some_and(|(start, end)| meet(&(start..end.map_or(u64::MAX, |end| end + 1)), &second))
    };
    let (of_500, of_cut) = (in_second.clone(), in_second);
    let cut_of = file.clone();
    let shard = "data/train-0.parquet: row group 2: ";
    let cases: Vec<(&str, Fault, i32, [&str; 2])> = vec![
        (
            "500",
            Box::new(move |request| of_500(request).then(|| Answer::status(500))),
            1,
            [shard, "the server answered 500"],
        ),
        (
            "short",
            Box::new(move |request| {
                of_cut(request)
                    .then(|| Answer { cut_after: Some(100), ..Answer::file(request, &cut_of.clone().into()) })
            }),
            1,
            [shard, "the transfer was cut short"],
        ),
        (
            "404",
            Box::new(|request| {
                request.path().contains("/resolve/").then(|| {
                    Answer::status(404).with("X-Error-Code", "EntryNotFound").with("X-Repo-Commit", V2.1)
                })
            }),
            2,
            ["data/train-0.parquet: ", "was not found"],
        ),
        (
            "401",
            Box::new(|request| request.path().contains("/resolve/").then(|| Answer::status(401))),
            2,
            ["data/train-0.parquet: ", "was not found"],
        ),
        (
            "gated",
            Box::new(|request| {
                request
                    .path()
                    .contains("/resolve/")
                    .then(|| Answer::status(403).with("X-Error-Code", "GatedRepo"))
            }),
            2,
            ["is gated", "https://huggingface.co/datasets/Exgentic/agent-llm-traces-v2"],
        ),
    ];
    for (name, fault, code, says) in cases {
        let hub = hub_of(V2, &[("train-0.parquet", &file)]);
        hub.fault(fault);
        let mut machine = Machine::new(&hub);
        machine.set("AIPERF_TEST", name);
        let output = profile(&machine, "exgentic_v2", &["--num-conversations", "6"]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{name}: {text}");
        let line =
            text.lines().find(|line| line.contains("Cannot use public dataset exgentic_v2 (hf://")).unwrap();
        assert!(says.iter().all(|part| line.contains(part)), "{name}: {line}");
        assert!(!machine.home.path().join("out").exists(), "{name}: nothing was sent");
        // What came whole stays, and nothing else.
        let ranges = files_below(&machine.cache().join("ranges"));
        let kept = ranges.iter().filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let (first, last) = name.split_once('-').unwrap();
            let length = last.parse::<u64>().unwrap() + 1 - first.parse::<u64>().unwrap();
            std::fs::metadata(path).unwrap().len() == length
        });
        assert_eq!(kept.count(), ranges.len(), "{name}: {ranges:?}");
    }
}

#[test]
fn bad_data_are_errors_that_say_where() {
    let hub = hub_of(
        V2,
        &[(
            "train-0.parquet",
            &rows::parquet(&[session("a", "tool_calling", 1), session("a", "tool_calling", 1)], 1),
        )],
    );
    let machine = Machine::new(&hub);
    let output = profile(&machine, "exgentic_v2", &["--num-conversations", "2"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("data/train-0.parquet: row 2: session a occurs twice"), "{text}");
    let output = profile(
        &machine,
        "exgentic_v2",
        &[
            "--num-conversations",
            "2",
            "--dataset-filter",
            "harness=openai_solo",
            "--dataset-filter",
            "source_model=Kimi-K2.5",
        ],
    );
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains(
            "no session has harness=openai_solo, source_model=Kimi-K2.5; available combinations: tool_calling/Kimi-K2.5"
        ),
        "{text}"
    );
    // One of them alone is fine, and longer than the target takes.
    let said = run(&machine, "exgentic_v2", &["--num-conversations", "1", "--max-context-length", "12"]);
    assert!(
        said.contains("warning: 1 of 1 recorded call(s) have more input and output tokens than the 12"),
        "{said}"
    );
}

#[test]
fn a_shard_that_the_cache_holds_whole_is_read_there() {
    let rows = [session("a", "tool_calling", 1), session("b", "tool_calling", 1)];
    let hub = hub_of(V2, &[("train-0.parquet", &rows::parquet(&rows, 1))]);
    let machine = Machine::new(&hub);
    machine.fetched(&format!("hf://datasets/{}@{}/data/train-0.parquet", V2.0, V2.1));
    hub.clear_logs();
    run(&machine, "exgentic_v2", &["--num-conversations", "2"]);
    assert!(hub.storage_log().is_empty());
    assert_eq!(machine.summary()["metadata"]["dataset"]["bytes_fetched"], 0);
    assert!(files_below(&machine.cache().join("ranges")).is_empty());
}

#[test]
fn what_was_fetched_with_the_same_bound_and_filter_runs_offline() {
    let rows =
        [session("a", "claude_code", 1), session("b", "tool_calling", 1), session("c", "tool_calling", 1)];
    let hub = hub_of(V2, &[("train-0.parquet", &rows::parquet(&rows, 1))]);
    let mut machine = Machine::new(&hub);
    let of = [
        "--public-dataset",
        "exgentic_v2",
        "--dataset-filter",
        "harness=tool_calling",
        "--num-dataset-entries",
        "1",
    ];
    let output = machine.aiperf(&[&["dataset", "fetch"], &of[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let spans =
        rows::column_bytes(&hub.storage_log().first().map(|_| rows::parquet(&rows, 1)).unwrap(), "spans");
    assert!(asked(&hub).iter().all(|(_, range)| !meet(range, &spans[0]) && !meet(range, &spans[2])));
    machine.set("HF_HUB_OFFLINE", "1");
    hub.clear_logs();
    run(&machine, "exgentic_v2", &of[2..]);
    assert!(hub.log().is_empty() && hub.storage_log().is_empty());
    let output = machine.aiperf(&[
        "dataset",
        "fetch",
        "--public-dataset",
        "exgentic_v2",
        "--dataset-filter",
        "harness=x",
    ]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("available harness/model pairs"), "{}", stderr(&output));
}
