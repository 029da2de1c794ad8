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
fn findings_that_are_only_counted_say_how_they_are_shown() {
    let folder = written(&[
        ("bad.jsonl", "{\"input_length\":4}\n{\"output_length\":4}\n{\"output_length\":5}\n"),
        ("warned.jsonl", "{\"input_length\":4,\"output_length\":0}\n"),
    ]);
    let shown = |file: &str, most: &str| {
        text(&run(&["validate", "mooncake_trace", file, "--max-errors", most], folder.path()).stdout)
    };
    assert_eq!(
        shown("bad.jsonl", "0"),
        "Validation failed with 2 error(s); --max-errors above 0 shows them\n"
    );
    assert!(shown("bad.jsonl", "1").ends_with("\n  and 1 more; --max-errors shows them\n"));
    let warned = shown("warned.jsonl", "10");
    assert!(warned.contains("warning: "), "{warned}");
    assert_eq!(
        shown("warned.jsonl", "0"),
        "Validation passed: 1 rows are Mooncake-compatible.\n  1 warning(s); --max-errors above 0 shows them\n"
    );
}

/// What every command says of a file that is not there; `profile` says it in two lines, with the flag in front.
const MISSING: &str =
    "none.jsonl does not exist; check the path: a relative one starts at the working directory";

#[test]
fn a_missing_file_is_told_with_the_same_advice_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let anonymize = ["anonymize", "none.jsonl", "--output", "o"];
    let said = text(&run(&anonymize, folder.path()).stderr);
    assert!(said.contains(MISSING), "{said}");
    let played = run(&[PLAYED, &["--input-file", "none.jsonl"]].concat(), folder.path());
    assert_eq!(played.status.code(), Some(2));
    let said = text(&played.stderr);
    let (what, advice) = MISSING.split_once("; ").unwrap();
    let what = what.replace("none.jsonl", "--input-file none.jsonl: it");
    assert!(said.contains(&what) && said.contains(&format!("tip: {advice}")), "{said}");
}

#[test]
fn what_cannot_be_looked_at_is_a_failure_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.jsonl"), "{\"input_length\":4}\n{\"input_length\"\n").unwrap();
    std::fs::write(folder.path().join("odd.jsonl"), "{\"odd\":4}\n").unwrap();
    std::fs::write(folder.path().join("text.jsonl"), "not json {\n").unwrap();
    for (arguments, code, words) in [
        (&["validate", "mooncake-trace", "none.jsonl"][..], 1, MISSING),
        (
            &["validate", "auto", "odd.jsonl"],
            1,
            "no dataset type fits its first record; put the type in the place of `auto`",
        ),
        (&["validate", "auto", "text.jsonl"], 1, "line 1 is neither a JSON object nor the header of a table"),
        (&["validate", "mooncake_trac", "bad.jsonl"], 2, "did you mean mooncake_trace?"),
        (&["validate", "auto"], 2, "no input"),
        (&["analyze-trace", "none.jsonl"], 1, MISSING),
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
fn keys_that_look_like_fields_and_are_not_read_are_told_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("d.jsonl"), "{\"text\":\"hi\",\"max_tokens\":5}\n").unwrap();
    for arguments in [
        &["validate", "auto", "d.jsonl"][..],
        &["analyze-trace", "d.jsonl"],
        &[PLAYED, &["--input-file", "d.jsonl", "--request-count", "1"]].concat()[..],
    ] {
        let output = run(arguments, folder.path());
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        assert_eq!(said.matches("not used: max_tokens (did you mean output_length?)").count(), 1, "{said}");
    }
}

#[test]
fn raw_records_of_a_run_are_refused_with_what_makes_a_trace_of_them_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("run")).unwrap();
    let raw = r#"{"metadata":{"request_start_ns":5,"benchmark_phase":"profiling"},"responses":[],"payload":{"messages":[{"role":"user","content":"a"}]}}"#;
    std::fs::write(folder.path().join("run/profile_export_raw.jsonl"), format!("{raw}\n")).unwrap();
    for input in ["run", "run/profile_export_raw.jsonl"] {
        for (arguments, code) in [
            ([PLAYED, &["--input-file", input]].concat(), 2),
            (vec!["validate", "auto", input], 1),
            (vec!["analyze-trace", input], 1),
            (vec!["anonymize", input, "--output", "trace.jsonl"], if input == "run" { 2 } else { 0 }),
        ] {
            let output = run(&arguments, folder.path());
            assert_eq!(output.status.code(), Some(code), "{arguments:?}");
            let said = text(&output.stderr);
            assert_eq!(said.contains("aiperf dataset from-run DIR"), code != 0, "{arguments:?}: {said}");
        }
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

#[test]
fn columns_of_other_names_are_looked_at_and_common_ones_are_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("named.jsonl"), "{\"in\":40,\"at\":5}\n{\"in\":20,\"at\":7}\n")
        .unwrap();
    std::fs::write(folder.path().join("common.jsonl"), "{\"prompt\":\"hi\"}\n").unwrap();
    let named = ["--input-columns", "input_length=in,timestamp=at"];
    let output =
        run(&[&["analyze-trace", "named.jsonl", "--format", "json"][..], &named].concat(), folder.path());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["format"], &report["max_isl"], &report["span_ms"]),
        (&"mooncake_trace".into(), &40.into(), &2.0.into())
    );
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    let output = run(&[&["validate", "mooncake-trace", "named.jsonl"][..], &named].concat(), folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    for command in [&["analyze-trace"][..], &["validate", "auto"]] {
        let output = run(&[command, &["common.jsonl"]].concat(), folder.path());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("--input-columns text=prompt"), "{}", text(&output.stderr));
    }
    for (columns, words) in [("in", "expected FIELD=COLUMN"), ("input_length=i", "no record has such a key")]
    {
        let output = run(
            &[
                "analyze-trace",
                "named.jsonl",
                "--custom-dataset-type",
                "mooncake_trace",
                "--input-columns",
                columns,
            ],
            folder.path(),
        );
        assert_ne!(output.status.code(), Some(0));
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

/// Writes the files into a folder of their own.
fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn a_report_does_not_take_the_place_of_its_input() {
    let body = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n";
    let folder = written(&[("a.jsonl", body), ("b.jsonl", body), ("report.json", "old")]);
    std::os::unix::fs::symlink("a.jsonl", folder.path().join("link")).unwrap();
    let analyzed = |input: &str, output: &str| {
        let arguments =
            ["analyze-trace", input, "--custom-dataset-type", "raw_payload", "--output-file", output];
        run(&arguments, folder.path())
    };
    for (input, output, what) in [
        ("a.jsonl", "a.jsonl", "a.jsonl is the input itself"),
        ("a.jsonl", "./link", "./link is the input itself"),
        (".", "b.jsonl", "b.jsonl is one of the input files"),
    ] {
        let refused = analyzed(input, output);
        assert_eq!(refused.status.code(), Some(2));
        assert_eq!(text(&refused.stderr), format!("error: {what}; name another file with --output-file\n"));
        assert!(refused.stdout.is_empty(), "{}", text(&refused.stdout));
        for name in ["a.jsonl", "b.jsonl"] {
            assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), body, "{output}");
        }
    }
    // A report is written anew each time.
    assert_eq!(analyzed(".", "report.json").status.code(), Some(0));
    assert_ne!(std::fs::read(folder.path().join("report.json")).unwrap(), b"old");
}

const PLAYED: &[&str] = &["profile", "--model", "m", "--url", "mock://?ttft=0ms&itl=0ms", "--ui", "none"];

/// What `validate`, `analyze-trace` and `profile` say of a file, with their exit codes.
fn judged(folder: &Path, file: &str, kind: &str) -> [(Option<i32>, String); 3] {
    let said =
        |output: &Output| (output.status.code(), format!("{}{}", text(&output.stdout), text(&output.stderr)));
    let profile = [PLAYED, &["--input-file", file, "--custom-dataset-type", kind]].concat();
    [
        said(&run(&["validate", kind, file], folder)),
        said(&run(&["analyze-trace", file, "--custom-dataset-type", kind], folder)),
        said(&run(&profile, folder)),
    ]
}

#[test]
fn what_a_run_refuses_is_not_valid_and_no_analysis_of_it_is_a_success() {
    let folder = written(&[
        // One block at two sizes, and more blocks than the length has.
        (
            "sizes.jsonl",
            "{\"input_length\":600,\"hash_ids\":[1,2]}\n{\"input_length\":700,\"hash_ids\":[1,2]}\n",
        ),
        ("many.jsonl", "{\"input_length\":5}\n\n{\"input_length\":600,\"hash_ids\":[1,2,3]}\n"),
        ("early.jsonl", "{\"timestamp\":-1,\"input_length\":5}\n"),
        ("negative.jsonl", "{\"delay\":-1,\"input_length\":5}\n"),
    ]);
    for (file, line, rule) in [
        ("sizes.jsonl", 2, "block 2 has 188 tokens here and 88 in an earlier row"),
        ("many.jsonl", 3, "3 blocks of 512 tokens do not fit an input of 600 tokens"),
        ("early.jsonl", 1, "field `timestamp`: must be 0 or more milliseconds, is -1"),
        ("negative.jsonl", 1, "field `delay`: must be 0 or more milliseconds, is -1"),
    ] {
        let [valid, analyzed, played] = judged(folder.path(), file, "mooncake_trace");
        assert_eq!((valid.0, analyzed.0, played.0), (Some(1), Some(1), Some(2)), "{file}");
        assert!(valid.1.contains(&format!("Line {line}: ")) && valid.1.contains(rule), "{}", valid.1);
        for said in [&analyzed.1, &played.1] {
            assert!(said.contains(&format!("{file}:{line}: ")) && said.contains(rule), "{said}");
        }
        // Blocks of any size have figures.
        assert_eq!(analyzed.1.contains("Total requests:"), rule.starts_with(['b', '3']), "{}", analyzed.1);
        // Each names its own flag.
        for said in [&valid.1, &analyzed.1] {
            assert!(!said.contains("--isl-block-size"), "{said}");
        }
        assert_eq!(
            valid.1.contains("--block-size"),
            file.ends_with("s.jsonl") || file == "many.jsonl",
            "{}",
            valid.1
        );
        assert!(!folder.path().join("artifacts").exists());
    }
    let right = run(&["validate", "mooncake_trace", "many.jsonl", "--block-size", "200"], folder.path());
    assert_eq!(right.status.code(), Some(0));
}

#[test]
fn rows_of_a_table_that_are_skipped_are_told() {
    let folder = written(&[("t.csv", "Timestamp,Request tokens,Response tokens\n0,5,5\n1,none,5\n2,5,5\n")]);
    let output = run(&["analyze-trace", "t.csv", "--format", "json"], folder.path());
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("3 row(s) read, 2 kept, 1 skipped"), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["rows"]["skipped"], &report["total_requests"]), (&1.into(), &2.into()));
    let output = run(&["validate", "auto", "t.csv"], folder.path());
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("1 skipped"), "{}", text(&output.stdout));
}

#[test]
fn a_first_event_without_a_time_is_told_by_every_command_with_what_follows_from_it() {
    let round = |index: u32, time: &str| {
        format!(
            "{{\"session_id\":\"a\",\"round_index\":{index},\"input_tokens_total\":64,\"prefix_tokens\":0,\
             \"newly_append_tokens\":64,\"output_tokens\":4,\"timing_events\":[{{\"event_type\":\"user_message\"{time}}},\
             {{\"event_type\":\"text\",\"timestamp\":\"2026-03-01T09:00:0{index}Z\"}}]}}\n"
        )
    };
    let timed = ",\"timestamp\":\"2026-03-01T09:00:00Z\"";
    let folder = written(&[("t.jsonl", &(round(1, "") + &round(2, timed)))]);
    for (code, said) in judged(folder.path(), "t.jsonl", "tracelab") {
        assert_eq!(code, Some(0), "{said}");
        let told = "t.jsonl:1: field `timing_events[0].timestamp`: the first record has no time";
        assert_eq!(said.matches(told).count(), 1, "{said}");
        assert!(
            said.contains("without their recorded schedule") && said.contains("--no-fixed-schedule"),
            "{said}"
        );
    }
    let meant =
        [PLAYED, &["--input-file", "t.jsonl", "--no-fixed-schedule", "--artifact-dir", "out"]].concat();
    let said = text(&run(&meant, folder.path()).stderr);
    assert!(!said.contains("the first record has no time"), "{said}");
}

#[test]
fn standard_input_is_refused_by_every_command_with_the_reason_and_what_to_do() {
    const WHY: &str =
        "standard input is not read, for data is read more than once: save it to a file and name that";
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code) in [
        (&["validate", "auto", "-"][..], 1),
        (&["validate", "single_turn", "-"], 1),
        (&["analyze-trace", "-"], 1),
        (&["anonymize", "-", "--output", "o.jsonl"], 2),
        (&[PLAYED, &["--input-file", "-"]].concat()[..], 2),
        (&[PLAYED, &["--input-file", "-", "--custom-dataset-type", "single_turn"]].concat()[..], 2),
    ] {
        let output = run(arguments, folder.path());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(WHY), "{arguments:?}: {said}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?}");
    }
    // A file may have this name.
    std::fs::write(folder.path().join("-"), "{\"text\":\"hi\"}\n").unwrap();
    assert_eq!(run(&["validate", "auto", "-"], folder.path()).status.code(), Some(0));
}

#[test]
fn two_columns_of_one_name_are_refused() {
    let folder = written(&[("t.csv", "Timestamp,Request tokens,Response tokens,Request tokens\n0,5,5,6\n")]);
    for (_, said) in judged(folder.path(), "t.csv", "burst_gpt_trace") {
        assert!(said.contains("`Request tokens`: names two columns"), "{said}");
    }
}

#[test]
fn a_file_of_no_type_is_told_the_nearest_one_and_what_it_lacks() {
    let folder = written(&[
        ("a.jsonl", "\n{\"input_length\":\"many\",\"output_length\":3}\n"),
        ("b.jsonl", "{\"session_id\":\"s\",\"turns\":[]}\n"),
        ("c.csv", "Timestamp,Request tokens,Tokens\n"),
        ("d.json", "{\"id\":\"x\",\"models\":[],\"requests\":[]}"),
        ("e.jsonl", "{\"timestamp\":0,\"extra\":{},\"output_length\":3}\n"),
    ]);
    for (file, kind, place, rule) in [
        ("a.jsonl", "mooncake_trace", "line 2: field `input_length`", "expected an integer, found"),
        ("b.jsonl", "multi_turn", "line 1: field `turns`", "must not be empty"),
        ("c.csv", "burst_gpt_trace", "line 1: field `Response tokens`", "the file has no such column"),
        ("d.json", "weka_trace", "field `block_size`", "is missing"),
        (
            "e.jsonl",
            "single_turn",
            "line 1: ",
            "; correct that, or put the type in the place of `auto`, and name columns of",
        ),
    ] {
        let output = run(&["validate", "auto", file], folder.path());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            said.contains(&format!("the nearest is {kind}, and {place}")) && said.contains(rule),
            "{file}: {said}"
        );
        assert!(said.contains("put the type in the place of `auto`"), "{said}");
    }
}

#[test]
fn a_document_that_is_not_json_is_told_by_its_line() {
    let folder = written(&[
        ("weka.json", "{\"id\": \"x\",\n \"models\": [],\n \"block_size\" 64}\n"),
        ("inputs.json", "{\"data\": [\n{\"session_id\": \"a\",\n\"payloads\": [}]}\n"),
    ]);
    for (file, kind) in [("weka.json", "weka_trace"), ("inputs.json", "inputs_json")] {
        for kind in [kind, "auto"] {
            let output = run(&["validate", kind, file], folder.path());
            let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("not valid JSON") && said.contains("(column "), "{said}");
            assert!(said.contains("Line 3: ") || said.contains(&format!("{file}:3: ")), "{said}");
            assert!(!said.contains("per line"), "{said}");
        }
    }
}

#[test]
fn json_is_printed_for_what_cannot_be_read_too() {
    let folder = written(&[("odd.jsonl", "{\"odd\":4}\n"), ("broken.json", "{\n\"a\"\n")]);
    for (file, line) in [("odd.jsonl", Value::Null), ("none.jsonl", Value::Null), ("broken.json", 3.into())] {
        let output = run(&["validate", "auto", file, "--format", "json"], folder.path());
        assert_eq!(output.status.code(), Some(1), "{file}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["format"], &report["valid"]), (&Value::Null, &false.into()));
        assert_eq!((&report["rows"], &report["error_count"]), (&0.into(), &1.into()));
        assert!(
            report["errors"][0]["message"].as_str().is_some_and(|message| !message.is_empty()),
            "{report}"
        );
        assert_eq!(report["errors"][0].get("line").cloned().unwrap_or_default(), line, "{report}");
    }
}

#[test]
fn a_folder_with_a_manifest_that_is_not_published_is_told_to_name_its_data() {
    let folder = written(&[
        ("aiperf.json", "{\"path\":\"data.jsonl\",\"format\":\"mooncake_trace\",\"block_size\":16}"),
        ("data.jsonl", "{\"timestamp\":0,\"input_length\":5}\n"),
    ]);
    let played = run(&[PLAYED, &["--input-file", "."]].concat(), folder.path());
    assert_eq!(played.status.code(), Some(2));
    let said = text(&played.stderr);
    assert!(
        said.contains("aiperf.json counts only where it is published") && said.contains("name the data file"),
        "{said}"
    );
    let resolved = text(&run(&["dataset", "resolve", "."], folder.path()).stdout);
    let command = resolved.lines().find_map(|line| line.strip_prefix("from here")).unwrap().trim();
    let command: Vec<&str> = command.split(' ').collect();
    assert_eq!(command[..3], ["aiperf", "profile", "--input-file"]);
    let again = [PLAYED, &command[2..], &["--tokenizer", "builtin"]].concat();
    let output = run(&again, folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn times_that_are_not_played_are_told_once_with_the_flag_that_plays_them() {
    let folder = written(&[
        ("one.jsonl", "{\"text\":\"a\",\"timestamp\":0}\n{\"text\":\"b\",\"timestamp\":10}\n"),
        ("more.jsonl", "{\"turns\":[{\"text\":\"a\",\"timestamp\":0},{\"text\":\"b\"}]}\n"),
    ]);
    for file in ["one.jsonl", "more.jsonl"] {
        for (flag, times) in [("", 1), ("--fixed-schedule", 0), ("--no-fixed-schedule", 0)] {
            let flags = ["--input-file", file, "--tokenizer", "builtin", "--artifact-dir", "out", flag];
            let flags = &flags[..flags.len() - usize::from(flag.is_empty())];
            let output = run(&[PLAYED, flags].concat(), folder.path());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{said}");
            assert_eq!(said.matches("they are not used: --fixed-schedule").count(), times, "{flag}: {said}");
        }
    }
}
