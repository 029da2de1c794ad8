//! `aiperf anonymize`, as the shell sees it. Every text, name, key, id and model of the inputs begins with a planted
//! word; no six characters of any may come out anywhere.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::interrupted;

fn aiperf(arguments: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aiperf"))
        .env_clear()
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

const PLANTED: [&str; 6] = ["qzxwvkjh", "yyhgtrew", "mnbvcxlk", "plokijuh", "wsxedcrf", "tgbyhnuj"];

fn assert_clean(text: &str) {
    for word in PLANTED {
        for start in 0..=word.len() - 6 {
            assert!(!text.contains(&word[start..start + 6]), "{word} came out: {text}");
        }
    }
}

/// Anonymizes lines of a type; rows come back, and nothing planted came out anywhere.
fn rows(kind: &str, lines: &str, more: &[&str]) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("in.jsonl"), lines).unwrap();
    let mut arguments = vec!["anonymize", "in.jsonl", "--output", "out.jsonl", "--block-size", "4"];
    if !kind.is_empty() {
        arguments.extend(["--custom-dataset-type", kind]);
    }
    let output = aiperf(&[&arguments, more].concat(), directory.path());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{kind}: {said}");
    assert!(output.stdout.is_empty() && said.contains("builtin tokenizer"), "{said}");
    let text = std::fs::read_to_string(directory.path().join("out.jsonl")).unwrap();
    assert_clean(&said);
    assert_clean(&text);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lines(values: &[Value]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn body(text: &str) -> Value {
    json!({"model": "wsxedcrf", "user": "tgbyhnuj", "max_tokens": 11, "messages": [
        {"role": "system", "content": "qzxwvkjh ".repeat(8)}, {"role": "user", "name": "plokijuh", "content": text}]})
}

const KEYS: [&str; 5] = ["timestamp", "delay", "input_length", "output_length", "hash_ids"];

#[test]
fn every_type_with_texts_gives_rows_with_numbers_alone() {
    let one = json!({"timestamp": 1_700_000_000_500.5, "session_id": "plokijuh", "payload": body("yyhgtrew mnbvcxlk")});
    let two = json!({"timestamp": 1_700_000_000_000.25, "session_id": "plokijuh", "payload": body("yyhgtrew plokijuh")});
    let raw = |start: u64, text: &str| {
        json!({"metadata": {"request_start_ns": start, "benchmark_phase": "profiling", "x_correlation_id": "tgbyhnuj"},
            "payload": body(text), "responses": [{"text": "{\"usage\":{\"completion_tokens\":5},\"id\":\"plokijuh\"}"}]})
    };
    for (kind, input, times, outputs) in [
        ("mooncake_trace", lines(&[one, two]), [Some(500.25), Some(0.0)], Some(11)),
        ("raw_payload", lines(&[body("yyhgtrew mnbvcxlk"), body("yyhgtrew plokijuh")]), [None, None], Some(11)),
        (
            "",
            lines(&[raw(2_000_500_000, "yyhgtrew mnbvcxlk"), raw(2_000_000_000, "yyhgtrew plokijuh")]),
            [Some(0.0), Some(0.5)],
            Some(5),
        ),
        (
            "inputs_json",
            json!({"data": [{"session_id": "plokijuh", "payloads": [body("yyhgtrew mnbvcxlk"), body("yyhgtrew plokijuh")]}]})
                .to_string(),
            [None, None],
            Some(11),
        ),
        (
            "single_turn",
            lines(&[
                json!({"text": "qzxwvkjh yyhgtrew ".repeat(5) + "mnbvcxlk", "timestamp": 100, "output_length": 3}),
                json!({"text": "qzxwvkjh yyhgtrew ".repeat(5) + "plokijuh", "timestamp": 90, "output_length": 3}),
            ]),
            [Some(10.0), Some(0.0)],
            Some(3),
        ),
    ] {
        let rows = rows(kind, &input, &[]);
        assert_eq!(rows.len(), 2, "{kind}");
        for (row, time) in rows.iter().zip(times) {
            assert!(row.as_object().unwrap().keys().all(|key| KEYS.contains(&key.as_str())), "{kind}: {row}");
            assert_eq!(row.get("timestamp").and_then(Value::as_f64), time, "{kind}");
            assert_eq!(row.get("output_length").and_then(Value::as_u64), outputs, "{kind}");
            let (length, ids) = (row["input_length"].as_u64().unwrap(), row["hash_ids"].as_array().unwrap());
            assert_eq!(ids.len() as u64, length.div_ceil(4), "{kind}");
        }
        let (one, two) = (rows[0]["hash_ids"].as_array().unwrap(), rows[1]["hash_ids"].as_array().unwrap());
        assert!(one[0] == two[0] && one[1] == two[1] && one.last() != two.last(), "{kind}: {one:?} {two:?}");
    }
}

#[test]
fn requests_that_are_whole_in_themselves_are_rows_of_their_own_though_they_share_a_session() {
    let rows = rows(
        "single_turn",
        &lines(&[
            json!({"session_id": "plokijuh", "text": "qzxwvkjh yyhgtrew"}),
            json!({"session_id": "plokijuh", "text": "mnbvcxlk", "delay": 150}),
        ]),
        &[],
    );
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert!(row.get("session_id").is_none() && row.get("delay").is_none(), "{row}");
    }
}

#[test]
fn conversations_that_start_others_are_refused_and_none_of_them_is_lost_unsaid() {
    let directory = tempfile::tempdir().unwrap();
    let dag = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/tests/data/dag.jsonl");
    let output = aiperf(&["anonymize", dag.to_str().unwrap(), "--output", "out.jsonl"], directory.path());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("start others"), "{said}");
    assert!(!directory.path().join("out.jsonl").exists());
}

/// Captured requests, recorded completions in columns, and a folder: what the rows of each lack is left out.
#[test]
fn columns_captures_and_folders_give_rows_with_numbers_alone() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dataset/tests/data");
    for (kind, name) in [
        ("sagemaker_data_capture", "sagemaker_capture.jsonl"),
        ("baseten_trace", "baseten.parquet"),
        ("raw_payload", "raw_payload_dir"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let input = data.join(name);
        let arguments = ["anonymize", input.to_str().unwrap(), "--custom-dataset-type", kind];
        let output = aiperf(&[&arguments[..], &["--output", "out.jsonl"]].concat(), directory.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{kind}: {said}");
        let text = std::fs::read_to_string(directory.path().join("out.jsonl")).unwrap();
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(rows.len() > 1, "{kind}: {said}");
        for row in &rows {
            let row = row.as_object().unwrap();
            assert!(row.keys().all(|key| KEYS.contains(&key.as_str())), "{kind}: {row:?}");
            assert!(row["input_length"].as_u64() > Some(0), "{kind}: {row:?}");
            assert_eq!(row.contains_key("timestamp"), kind != "raw_payload", "{kind}: {row:?}");
        }
        assert!(!text.contains(|letter: char| !letter.is_ascii()), "{kind}: {text}");
    }
}

#[test]
fn conversations_of_increments_keep_together() {
    let record = |id: &str| {
        json!({"session_id": id, "turns": [
            {"role": "system", "text": "qzxwvkjh"}, {"text": "yyhgtrew mnbvcxlk", "timestamp": 50},
            {"text": "plokijuh", "delay": 250.5, "output_length": 9}]})
    };
    let rows = rows("multi_turn", &lines(&[record("wsxedcrf"), record("tgbyhnuj")]), &[]);
    let names: Vec<&str> = rows.iter().map(|row| row["session_id"].as_str().unwrap()).collect();
    assert_eq!(names, ["s-1", "s-1", "s-2", "s-2"]);
    assert_eq!(rows[1]["delay"].as_f64(), Some(250.5));
    assert_eq!(rows[0]["hash_ids"], rows[2]["hash_ids"]);
    assert_eq!(rows[1]["hash_ids"], rows[3]["hash_ids"]);
    assert!(rows[0]["input_length"].as_u64() > rows[1]["input_length"].as_u64());
}

#[test]
fn faults_name_the_place_and_never_the_content() {
    let media = |url: &str| json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]});
    let good = body("yyhgtrew");
    for (kind, input, parts) in [
        (
            "raw_payload",
            lines(&[good.clone(), media("https://qzxwvkjh/a.png")]),
            &["in.jsonl:2:", "--skip-media"][..],
        ),
        ("raw_payload", lines(&[json!({"qzxwvkjh": 1})]), &["in.jsonl:1:"]),
        ("raw_payload", format!("{good}\n{{\"messages\": qzxwvkjh\n"), &["in.jsonl:2:"]),
        (
            "mooncake_trace",
            lines(&[json!({"timestamp": "qzxwvkjh", "payload": good})]),
            &["in.jsonl:1:", "`timestamp`"],
        ),
        (
            "mooncake_trace",
            lines(&[json!({"timestamp": 1, "input_length": 5})]),
            &["in.jsonl:1:", "only lengths"],
        ),
        ("single_turn", lines(&[json!({"text": "a", "type": "qzxwvkjh"})]), &["in.jsonl:1:"]),
        (
            "multi_turn",
            lines(&[json!({"session_id": "qzxwvkjh", "turns": [{"txet": "yyhgtrew"}]})]),
            &["in.jsonl:1:"],
        ),
        ("", lines(&[json!({"qzxwvkjh": "yyhgtrew"})]), &["--custom-dataset-type"]),
        ("", String::new(), &["in.jsonl"]),
        ("qzxwvkjx", String::new(), &["qzxwvkjx is no dataset type"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("in.jsonl"), &input).unwrap();
        let mut arguments = vec!["anonymize", "in.jsonl", "--output", "out.jsonl"];
        if !kind.is_empty() {
            arguments.extend(["--custom-dataset-type", kind]);
        }
        let output = aiperf(&arguments, directory.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{kind} {input}: {said}");
        for part in parts {
            assert!(said.contains(part), "{kind} {input}: {said}");
        }
        if kind != "qzxwvkjx" {
            assert_clean(&said);
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "{kind} {input}");
    }
}

#[test]
fn media_are_left_out_and_counted_on_request() {
    let media = json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]});
    let input = lines(&[body("yyhgtrew"), media.clone(), body("yyhgtrew")]);
    assert_eq!(rows("raw_payload", &input, &["--skip-media"]).len(), 2);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("in.jsonl"), lines(&[media])).unwrap();
    let arguments =
        ["anonymize", "in.jsonl", "--custom-dataset-type", "raw_payload", "--output", "out.jsonl"];
    let arguments = [&arguments[..], &["--skip-media"]].concat();
    let output = aiperf(&arguments, directory.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("1 with media were left out"));
}

#[test]
fn a_file_that_is_there_is_replaced_only_with_force() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("in.jsonl"), lines(&[body("yyhgtrew")])).unwrap();
    std::fs::write(directory.path().join("out.jsonl"), "mine").unwrap();
    let arguments =
        ["anonymize", "in.jsonl", "--custom-dataset-type", "raw-payload", "--output", "out.jsonl"];
    assert_eq!(aiperf(&arguments, directory.path()).status.code(), Some(2));
    assert_eq!(std::fs::read(directory.path().join("out.jsonl")).unwrap(), b"mine");
    assert_eq!(aiperf(&[&arguments[..], &["--force"]].concat(), directory.path()).status.code(), Some(0));
}

#[test]
fn a_dash_is_stdout() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("in.jsonl"), lines(&[body("yyhgtrew"), body("plokijuh")])).unwrap();
    let to = |output: &str| {
        let arguments = ["anonymize", "in.jsonl", "--custom-dataset-type", "raw_payload", "--output", output];
        aiperf(&arguments, directory.path())
    };
    let shown = to("-");
    let said = String::from_utf8(shown.stderr).unwrap();
    assert_eq!(shown.status.code(), Some(0), "{said}");
    assert!(said.contains("stdout: 2 requests"), "{said}");
    assert!(!directory.path().join("-").exists());
    assert_eq!(to("out.jsonl").status.code(), Some(0));
    assert_eq!(shown.stdout, std::fs::read(directory.path().join("out.jsonl")).unwrap());
    assert_eq!(String::from_utf8(shown.stdout).unwrap().lines().count(), 2);

    // More than a pipe holds: whoever closes it has read enough.
    std::fs::write(directory.path().join("in.jsonl"), lines(&vec![body("yyhgtrew"); 4000])).unwrap();
    let script = format!(
        "'{}' anonymize in.jsonl --custom-dataset-type raw_payload --output - | true; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_aiperf")
    );
    let closed = Command::new("bash").arg("-c").arg(&script).current_dir(directory.path()).output().unwrap();
    let said = String::from_utf8(closed.stderr).unwrap();
    assert_eq!(closed.status.code(), Some(0), "{said}");
    assert!(!said.contains("error") && !said.contains("stdout: "), "{said}");
}

#[test]
fn what_is_read_is_not_replaced_even_with_force() {
    let directory = tempfile::tempdir().unwrap();
    let text = lines(&[body("yyhgtrew")]);
    for name in ["a.jsonl", "b.jsonl"] {
        std::fs::write(directory.path().join(name), &text).unwrap();
    }
    for (input, output, what) in
        [("a.jsonl", "./a.jsonl", "the input itself"), (".", "b.jsonl", "one of the input files")]
    {
        let arguments = ["anonymize", input, "--custom-dataset-type", "raw_payload", "--output", output];
        let refused = aiperf(&[&arguments[..], &["--force"]].concat(), directory.path());
        assert_eq!(refused.status.code(), Some(2));
        assert_eq!(
            String::from_utf8(refused.stderr).unwrap(),
            format!("error: {output} is {what}; name another file with --output\n")
        );
        for name in ["a.jsonl", "b.jsonl"] {
            assert_eq!(std::fs::read_to_string(directory.path().join(name)).unwrap(), text);
        }
    }
}

/// 500 requests of 20 users with growing histories: the trace replays, and the analysis finds the reuse of the source.
#[test]
fn the_trace_replays_and_its_reuse_is_that_of_the_source() {
    let mut input = String::new();
    let (mut seen, mut hits, mut blocks) = (HashSet::new(), 0usize, 0usize);
    for number in 0..500 {
        let (user, turn) = (number % 20, number / 20);
        let mut text = format!("qzxwvkjh user {user}: ");
        for past in 0..=turn {
            let _ = write!(text, "yyhgtrew question {past} of {user}, and its answer. ");
        }
        let mut tokens = Vec::new();
        aiperf_tokenize::Tokenizer::builtin().encode(&text, &mut tokens);
        let chunks: Vec<&[u32]> = tokens.chunks(16).collect();
        let prefixes: Vec<Vec<u32>> = (1..=chunks.len()).map(|many| chunks[..many].concat()).collect();
        hits += prefixes.iter().take_while(|prefix| seen.contains(*prefix)).count();
        blocks += chunks.len();
        seen.extend(prefixes);
        let row = json!({"timestamp": number * 2, "payload": {"prompt": text, "max_tokens": 4, "model": "wsxedcrf"}});
        let _ = writeln!(input, "{row}");
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("in.jsonl"), input).unwrap();
    let arguments = ["anonymize", "in.jsonl", "--output", "out.jsonl", "--block-size", "16"];
    let output = aiperf(&arguments, directory.path());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(&format!("500 requests, {} tokens", tokens_of(directory.path()))), "{said}");

    let analyzed =
        aiperf(&["analyze-trace", "out.jsonl", "--block-size", "16", "--format", "json"], directory.path());
    let analyzed: Value = serde_json::from_slice(&analyzed.stdout).unwrap();
    let expected = hits as f64 / blocks as f64;
    assert!(found(&analyzed, expected), "{expected} is not in {analyzed}");

    let run = aiperf(
        &[
            &["profile", "--model", "m", "--url", "mock://?ttft=0ms&itl=0ms", "--tokenizer", "builtin"][..],
            &[
                "--input-file",
                "out.jsonl",
                "--custom-dataset-type",
                "mooncake_trace",
                "--isl-block-size",
                "16",
            ],
            &["--artifact-dir", "run", "--ui", "none"],
        ]
        .concat(),
        directory.path(),
    );
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let summary = std::fs::read(directory.path().join("run/profile_export_aiperf.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["request_count"]["avg"].as_f64(), Some(500.0));
}

fn tokens_of(directory: &Path) -> u64 {
    let text = std::fs::read_to_string(directory.join("out.jsonl")).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| row["input_length"].as_u64().unwrap()).sum()
}

/// Whether a number of the analysis is that ratio, as a share or in percent.
fn found(value: &Value, expected: f64) -> bool {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            (number - expected).abs() < 1e-4 || (number - expected * 100.0).abs() < 1e-2
        }
        Value::Array(items) => items.iter().any(|item| found(item, expected)),
        Value::Object(map) => map.values().any(|item| found(item, expected)),
        _ => false,
    }
}

#[test]
fn each_entry_of_a_pool_is_taken_once() {
    let pool = [
        json!({"text": "qzxwvkjh a b c d"}),
        json!({"text": "qzxwvkjh a"}),
        json!({"texts": ["yyhgtrew", "b"]}),
    ];
    let rows = rows("random_pool", &lines(&pool), &[]);
    assert_eq!(rows.len(), 3, "{rows:?}");
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let row = format!("{}\n", json!({"text": "qzxwvkjh ".repeat(20)}));
    std::fs::write(directory.path().join("in.jsonl"), row.repeat(200_000)).unwrap();
    let said = interrupted(
        &["anonymize", "in.jsonl", "--custom-dataset-type", "single_turn", "--output", "out.jsonl"],
        directory.path(),
    );
    assert_clean(&said);
}
