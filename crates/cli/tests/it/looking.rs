//! Commands that look at data: `validate` and `analyze-trace`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn run(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aiperf"));
    command.env_clear().args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_valid_trace_is_one_line_and_an_invalid_one_lists_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.jsonl"), "{\"input_length\":4,\"timestamp\":0}\n").unwrap();
    std::fs::write(folder.path().join("bad.jsonl"), "{\"input_length\":4}\n{\"output_length\":4}\n").unwrap();
    let good = run(&["validate", "mooncake-trace", "good.jsonl"], folder.path());
    assert_eq!(good.status.code(), Some(0));
    assert_eq!(text(&good.stdout), "Validation passed: 1 rows are Mooncake-compatible.\n");
    let good = run(&["validate", "auto", "--input", "good.jsonl", "--format", "json"], folder.path());
    let json: Value = serde_json::from_slice(&good.stdout).unwrap();
    assert_eq!((&json["valid"], &json["rows"]), (&true.into(), &1.into()));

    let bad = run(&["validate", "Mooncake_Trace", "bad.jsonl"], folder.path());
    assert_eq!(bad.status.code(), Some(1));
    assert!(text(&bad.stdout).starts_with("Validation failed with 1 error(s):\n  Line 2: "));
    // The same words as those of a run.
    let reason = text(&bad.stdout).split("Line 2: ").nth(1).unwrap().trim().to_owned();
    let arguments =
        "profile --model m --url mock:// --input-file bad.jsonl --custom-dataset-type mooncake_trace";
    let refused = run(&arguments.split(' ').collect::<Vec<_>>(), folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains(&reason), "{reason}: {}", text(&refused.stderr));
}

#[test]
fn what_cannot_be_looked_at_is_a_failure_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.jsonl"), "{\"input_length\":4}\n{\"input_length\"\n").unwrap();
    std::fs::write(folder.path().join("odd.jsonl"), "{\"odd\":4}\n").unwrap();
    for (arguments, code, words) in [
        (&["validate", "mooncake-trace", "none.jsonl"][..], 1, "none.jsonl is not a file"),
        (
            &["validate", "auto", "odd.jsonl"],
            1,
            "no dataset type fits its first record; name the type with TYPE",
        ),
        (&["validate", "mooncake_trac", "bad.jsonl"], 2, "did you mean mooncake_trace?"),
        (&["validate", "auto"], 2, "no input"),
        (&["analyze-trace", "none.jsonl"], 1, "none.jsonl is not a file"),
        (&["analyze-trace", "bad.jsonl"], 1, "bad.jsonl:2: not valid JSON"),
        (&["analyze-trace"], 2, "no input"),
    ] {
        let output = run(arguments, folder.path());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let message = text(&output.stderr);
        assert!(message.contains(words) && message.lines().count() == 1, "{arguments:?}: {message}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_analysis_is_text_on_stdout_and_json_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "{\"input_length\":1024,\"hash_ids\":[1,2],\"output_length\":7,\"timestamp\":0}\n".repeat(3);
    std::fs::write(folder.path().join("trace.jsonl"), rows).unwrap();
    let output =
        run(&["analyze-trace", "trace.jsonl", "--output-file", "new/folder/report.json"], folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Total requests:"));
    let report: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("new/folder/report.json")).unwrap())
            .unwrap();
    assert_eq!((&report["total_requests"], &report["unique_prefixes"]), (&3.into(), &2.into()));
    assert_eq!((&report["format"], &report["working_set_tokens"]), (&"mooncake_trace".into(), &1024.into()));
    let output = run(&["analyze-trace", "--input-file", "trace.jsonl", "--format", "json"], folder.path());
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), report);
}
