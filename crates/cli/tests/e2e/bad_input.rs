//! Input that cannot be used: one clear error with flag, file and line, exit code 2, nothing sent, nothing written.

use std::fmt::Write as _;
use std::time::Duration;

use crate::support::{Live, Mock, Place, shell};

const MOCK: &str = "mock://?ttft=1ms&itl=0&tokens=2&usage=estimate";

/// Runs with `flags` in `place` and checks that the input is refused with all of `parts` in one error.
#[track_caller]
fn refused(place: &Place, flags: &str, parts: &[&str]) {
    let mock = Mock::start(&[("usage", "estimate")]);
    let ran = place.run(&mock.url(), &format!("--request-count 3 {flags}"));
    assert_eq!(ran.code, Some(2), "{flags}: {}{}", ran.out, ran.err);
    assert_eq!(ran.err.matches("error: ").count(), 1, "{flags}: {}", ran.err);
    let error = &ran.err[ran.err.find("error: ").unwrap()..];
    for part in parts {
        assert!(error.contains(part), "{flags}: no {part:?} in {error}");
    }
    let mut given = flags.split_whitespace().filter(|word| word.starts_with("--"));
    assert!(given.any(|flag| error.contains(flag)), "{flags}: no flag in {error}");
    assert!(error.len() < 1500, "{flags}: {} bytes of error", error.len());
    assert!(ran.out.is_empty(), "{flags}: {}", ran.out);
    assert_eq!(mock.stats().requests, 0, "{flags}: something was sent");
    assert!(place.is_untouched(), "{flags}");
    assert!(ran.took < Duration::from_secs(20), "{flags}: {:?}", ran.took);
}

#[test]
fn a_missing_file_is_named_with_its_flag() {
    refused(&Place::new(), "--input-file gone.jsonl", &["--input-file", "gone.jsonl"]);
    refused(
        &Place::new(),
        "--input-file gone.jsonl --custom-dataset-type mooncake_trace",
        &["--input-file", "gone.jsonl", "mooncake_trace"],
    );
}

/// Reading it fails for root, too.
#[test]
fn an_unreadable_file_is_named() {
    refused(&Place::new(), "--input-file /proc/self/mem", &["/proc/self/mem"]);
    refused(
        &Place::new(),
        "--input-file /proc/self/mem --custom-dataset-type single_turn",
        &["cannot read /proc/self/mem"],
    );
    let place = Place::new();
    place.write("d.jsonl", "{\"text\": \"a\"}\n");
    refused(&place, "--input-file d.jsonl/inner.jsonl", &["d.jsonl/inner.jsonl"]);
}

/// Opening a pipe without a writer waits for ever, and a device may have no end.
#[test]
fn pipes_and_devices_are_refused_at_once() {
    let place = Place::new();
    Live::start(shell("mkfifo pipe.jsonl").current_dir(place.root())).end().with_code(0);
    for path in ["pipe.jsonl", "/dev/zero"] {
        for format in ["", "--custom-dataset-type single_turn"] {
            refused(&place, &format!("--input-file {path} {format}"), &[path, "save it to a file"]);
        }
    }
}

#[test]
fn line_7_that_is_not_json_is_named() {
    for (format, good) in [
        ("single_turn", r#"{"text": "fine"}"#),
        ("multi_turn", r#"{"turns": [{"text": "fine"}]}"#),
        ("random_pool", r#"{"text": "fine"}"#),
        ("mooncake_trace", r#"{"timestamp": 0, "input_length": 5}"#),
        ("raw_payload", r#"{"messages": [{"role": "user", "content": "fine"}]}"#),
    ] {
        let place = Place::new();
        place.write("d.jsonl", format!("{}{{\"text\": oops\n{good}\n", format!("{good}\n").repeat(6)));
        refused(
            &place,
            &format!("--input-file d.jsonl --custom-dataset-type {format}"),
            &["d.jsonl:7: ", "not valid JSON"],
        );
    }
    let place = Place::new();
    place.write("d.json", "{\"data\": [\n{\"session_id\": \"a\", \"payloads\": [{}]},\n oops]}");
    refused(&place, "--input-file d.json --custom-dataset-type inputs_json", &["d.json", "not valid JSON"]);
    // Detection does not hide it.
    let place = Place::new();
    place.write("d.jsonl", format!("{}oops\n", "{\"text\": \"fine\"}\n".repeat(6)));
    refused(&place, "--input-file d.jsonl", &["d.jsonl:7: ", "not valid JSON"]);
}

#[test]
fn a_field_of_the_wrong_type_is_named_with_what_was_found() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "single_turn",
            r#"{"text": 5}"#,
            &["d.jsonl:2: ", "field `text`", "expected a string, found a number"],
        ),
        (
            "single_turn",
            r#"{"text": "a", "output_length": true}"#,
            &["field `output_length`", "found a boolean"],
        ),
        ("single_turn", "{}", &["nothing to send"]),
        ("single_turn", r#"{"text": "a", "texts": ["b"]}"#, &["`text` and `texts` exclude each other"]),
        ("single_turn", r#"{"text": "a", "timestamp": 1, "delay": 1}"#, &["`timestamp` and `delay`"]),
        ("single_turn", r#"{"text": "a", "output_length": 0}"#, &["`output_length`"]),
        ("single_turn", r#"{"text": "a", "type": "multi_turn"}"#, &["--custom-dataset-type", "multi_turn"]),
        ("multi_turn", r#"{"turns": []}"#, &["d.jsonl:2: ", "`turns`"]),
        ("random_pool", "{}", &["d.jsonl:2: ", "nothing to send"]),
        (
            "mooncake_trace",
            r#"{"timestamp": 0, "input_length": "many"}"#,
            &["d.jsonl:2: ", "field `input_length`"],
        ),
        ("mooncake_trace", r#"{"timestamp": 0}"#, &["`input_length`, `text_input`, `messages`, `payload`"]),
        (
            "mooncake_trace",
            r#"{"timestamp": 0, "input_length": 5, "text_input": "a"}"#,
            &["exclude each other"],
        ),
        ("mooncake_trace", r#"{"timestamp": 0, "text_input": "a", "hash_ids": [1]}"#, &["`hash_ids`"]),
        (
            "mooncake_trace",
            r#"{"timestamp": 0, "messages": [{"role": "user"}, {"content": "x"}]}"#,
            &["messages[1]"],
        ),
        ("mooncake_trace", r#"{"timestamp": 0, "payload": {}}"#, &["`payload`", "not empty"]),
        (
            "mooncake_trace",
            r#"{"timestamp": 0, "input_length": 512, "hash_ids": [1, 2]}"#,
            &["512", "2 blocks", "--isl-block-size"],
        ),
        ("raw_payload", "[1]", &["d.jsonl:2", "must be a JSON object"]),
        ("raw_payload", r#"{"prompt": "a"}"#, &["d.jsonl:2", "`messages`"]),
    ];
    for (format, bad, parts) in cases {
        let good = match *format {
            "multi_turn" => r#"{"turns": [{"text": "fine"}]}"#,
            "mooncake_trace" => r#"{"timestamp": 0, "input_length": 5}"#,
            "raw_payload" => r#"{"messages": [{"role": "user", "content": "fine"}]}"#,
            _ => r#"{"text": "fine"}"#,
        };
        let place = Place::new();
        place.write("d.jsonl", format!("{good}\n{bad}\n"));
        refused(&place, &format!("--input-file d.jsonl --custom-dataset-type {format}"), parts);
    }
    for (document, parts) in [
        (r#"{"data": [5]}"#, &["d.json", "data[0]"][..]),
        (
            r#"{"data": [{"session_id": "a", "payloads": [{}]}, {"session_id": "a", "payloads": [{}]}]}"#,
            &["data[1]", "session `a`"],
        ),
    ] {
        let place = Place::new();
        place.write("d.json", document);
        refused(&place, "--input-file d.json --custom-dataset-type inputs_json", parts);
    }
}

#[test]
fn an_empty_file_is_named() {
    for text in ["", "\n \n", "\u{feff}"] {
        for format in
            ["", "single_turn", "multi_turn", "random_pool", "mooncake_trace", "raw_payload", "inputs_json"]
        {
            let place = Place::new();
            place.write("d.jsonl", text);
            let declared =
                if format.is_empty() { String::new() } else { format!("--custom-dataset-type {format}") };
            refused(&place, &format!("--input-file d.jsonl {declared}"), &["d.jsonl"]);
        }
    }
}

#[test]
fn a_huge_line_is_refused_in_few_words() {
    let place = Place::new();
    let mut text = b"{\"text\": \"fine\"}\n".to_vec();
    text.resize(text.len() + (16 << 20), b'x');
    place.write("d.jsonl", text);
    refused(
        &place,
        "--input-file d.jsonl --custom-dataset-type single_turn",
        &["d.jsonl:2: ", "not valid JSON"],
    );
}

#[test]
fn a_huge_line_that_is_well_formed_is_sent_whole() {
    let place = Place::new();
    let text = "word ".repeat(240_000);
    place.write("d.jsonl", format!("{{\"text\": \"{text}\"}}\n"));
    let mock = Mock::start(&[("ttft", "1ms"), ("tokens", "2"), ("usage", "estimate")]);
    place
        .run(&mock.url(), "--input-file d.jsonl --custom-dataset-type single_turn --request-count 1 --use-server-token-count")
        .with_code(0);
    assert!(mock.stats().body_bytes > 1_200_000);
}

#[test]
fn formats_that_do_not_exist_are_refused_by_name() {
    let place = Place::new();
    place.write("d.jsonl", "{\"text\": \"a\"}\n");
    refused(
        &place,
        "--input-file d.jsonl --custom-dataset-type nonsense",
        &["--custom-dataset-type", "nonsense"],
    );
    // Columns of another format are named with the file and the row.
    let parquet = include_bytes!("../../../dataset/tests/data/baseten_minimal.parquet");
    place.write("d.parquet", parquet);
    for format in ["single_turn", "mooncake_trace"] {
        refused(
            &place,
            &format!("--input-file d.parquet --custom-dataset-type {format}"),
            &["d.parquet", "row 1"],
        );
    }
    refused(
        &place,
        "--input-file d.parquet --custom-dataset-type random_pool",
        &["d.parquet", "random_pool", "does not read parquet files"],
    );
}

#[test]
fn a_file_that_fits_nothing_names_the_flag_and_the_formats() {
    let place = Place::new();
    place.write("d.jsonl", "{\"colour\": \"blue\"}\n");
    refused(&place, "--input-file d.jsonl", &["d.jsonl", "--custom-dataset-type"]);
}

#[test]
fn damaged_gzip_is_named() {
    let place = Place::new();
    place.write("d.jsonl.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03garbage");
    refused(&place, "--input-file d.jsonl.gz --custom-dataset-type single_turn", &["d.jsonl.gz", "gzip"]);
}

/// What was fetched under the name of a Parquet file is a page, or cut at its start.
#[test]
fn a_file_that_is_not_what_its_name_says_is_named() {
    let place = Place::new();
    for bytes in [&b"\x00\xff\x12\x80 no columns"[..], b"<html>not found</html>", b"{\"text\": \"a\"}\n"] {
        place.write("d.parquet", bytes);
        for format in ["", "--custom-dataset-type single_turn"] {
            refused(&place, &format!("--input-file d.parquet {format}"), &["d.parquet", "PAR1"]);
        }
    }
}

#[test]
fn a_schedule_without_times_names_the_way_out() {
    let place = Place::new();
    place.write("d.jsonl", "{\"input_length\": 5}\n");
    refused(
        &place,
        "--input-file d.jsonl --custom-dataset-type mooncake_trace --fixed-schedule",
        &["--fixed-schedule", "mooncake_trace", "d.jsonl", "timestamp"],
    );
    // The first record has a time, a later one has none.
    place.write("d.jsonl", "{\"timestamp\": 0, \"input_length\": 5}\n{\"input_length\": 5}\n");
    refused(
        &place,
        "--input-file d.jsonl --custom-dataset-type mooncake_trace --fixed-schedule",
        &["timestamp", "--no-fixed-schedule"],
    );
}

#[test]
fn nothing_left_after_the_window_says_what_was_left_out() {
    let place = Place::new();
    place.write(
        "d.jsonl",
        "{\"timestamp\": 10, \"input_length\": 5}\n{\"timestamp\": 20, \"input_length\": 5}\n",
    );
    refused(
        &place,
        "--input-file d.jsonl --custom-dataset-type mooncake_trace --fixed-schedule --fixed-schedule-start-offset 5000",
        &["d.jsonl", "2"],
    );
}

/// A record later than the first thousand is met after the first send: what was measured is kept.
#[test]
fn a_bad_record_found_later_ends_the_run_with_1_and_keeps_what_was_measured() {
    for (format, bad) in [("mooncake_trace", 59_000), ("single_turn", 15_000)] {
        let place = Place::new();
        let mut text = String::new();
        for line in 1..=bad + 1_000 {
            let _ = match (line, format) {
                (line, _) if line == bad => writeln!(text, "{{\"text\": oops"),
                (_, "mooncake_trace") => writeln!(text, "{{\"input_length\": 8, \"output_length\": 2}}"),
                _ => writeln!(text, "{{\"text\": \"Say {line}\", \"output_length\": 2}}"),
            };
        }
        place.write("d.jsonl", text);
        let ran = place
            .run(MOCK, &format!("--input-file d.jsonl --custom-dataset-type {format} --concurrency 2 --request-count 1000000"))
            .with_code(1);
        assert!(ran.err.contains(&format!("d.jsonl:{bad}: ")), "{format}: {}", ran.err);
        assert!(ran.out.contains("(ended early)") && !ran.out.contains("cancelled"), "{}", ran.out);
        let results = place.results();
        // Nobody cancelled it, and it is not the whole of it all the same.
        results.assert_complete(false);
        assert_eq!(results.summary()["is_complete"], false);
        results.assert_all_accounted_for();
        let reason = results.summary()["incomplete_reason"].as_str().unwrap().to_owned();
        assert!(reason.contains(&format!("d.jsonl:{bad}: ")), "{format}: {reason}");
        assert!(!results.records().is_empty(), "{format}: nothing was kept");
    }
}

/// A run may be over before its file is read: where the whole of it is written, what is written and said does not depend
/// on how far reading was.
#[test]
fn a_run_that_ends_before_its_file_is_read_tells_of_the_whole_file() {
    const LINES: usize = 30_000;
    for bad in [None, Some(LINES)] {
        let place = Place::new();
        let mut text = String::new();
        for line in 1..=LINES {
            let record = if bad == Some(line) { "{\"text\": oops" } else { "{\"text\": \"a\"}" };
            let _ = writeln!(text, "{record}");
        }
        place.write("d.jsonl", text);
        let flags = "--input-file d.jsonl --custom-dataset-type single_turn --request-count 2";
        let ran = place.run(MOCK, flags).with_code(i32::from(bad.is_some()));
        let results = place.results();
        results.assert_complete(false);
        assert_eq!(results.records().len(), 2);
        let held = LINES - usize::from(bad.is_some());
        assert_eq!(results.json("inputs.json")["data"].as_array().unwrap().len(), held);
        assert_eq!(results.json(".aiperf_results_ready.json")["partial"], bad.is_some());
        assert_eq!(results.summary()["is_complete"], bad.is_none());
        if let Some(bad) = bad {
            assert!(ran.err.contains(&format!("d.jsonl:{bad}: ")), "{}", ran.err);
            let cut =
                format!("inputs.json holds the first {held} conversations: a bad record comes after them");
            assert!(ran.err.contains(&cut), "{}", ran.err);
            assert!(
                ran.out.contains(&format!("(incomplete: it ends after {held} conversations)")),
                "{}",
                ran.out
            );
        }
    }
}
