//! Formats told by looking.

mod common;

use std::io::Write as _;

use aiperf_config::FileFormat;
use aiperf_dataset::{DatasetError, Timing};
use common::*;

#[test]
fn built_formats_are_recognised() {
    for (name, format, timed) in [
        ("single_turn.jsonl", FileFormat::SingleTurn, false),
        ("single_turn_schedule.jsonl", FileFormat::SingleTurn, false),
        ("single_turn_media.jsonl", FileFormat::SingleTurn, false),
        ("multi_turn.jsonl", FileFormat::MultiTurn, false),
        ("random_pool.jsonl", FileFormat::SingleTurn, false),
        ("random_pool_dir", FileFormat::RandomPool, false),
        ("mooncake_hash.jsonl", FileFormat::MooncakeTrace, true),
        ("mooncake_sessions.jsonl", FileFormat::MooncakeTrace, true),
        ("mooncake_payload.jsonl", FileFormat::MooncakeTrace, true),
        ("baseten.parquet", FileFormat::BasetenTrace, true),
        ("baseten_minimal.parquet", FileFormat::BasetenTrace, true),
        ("raw_payload_dir", FileFormat::RawPayload, false),
        ("inputs.json", FileFormat::InputsJson, false),
        ("bailian.jsonl", FileFormat::BailianTrace, true),
        ("burst_gpt.csv", FileFormat::BurstGptTrace, true),
        ("azure_llm.csv", FileFormat::AzureLlmTrace, true),
        ("sagemaker_capture.jsonl", FileFormat::SagemakerDataCapture, true),
        ("speed_bench/qualitative.jsonl", FileFormat::SpeedBenchQualitative, false),
    ] {
        assert_eq!(detect(&data(name)).unwrap(), detected(format, timed), "{name}");
    }
}

#[test]
fn a_trace_without_times_is_not_timed() {
    let (_folder, path) = written("d.jsonl", r#"{"input_length": 5, "timestamp": null}"#);
    assert_eq!(detect(&path).unwrap(), detected(FileFormat::MooncakeTrace, false));
}

#[test]
fn recorded_agents_are_recognised_in_files_and_folders() {
    for (name, format, timed) in [
        ("dag.jsonl", FileFormat::DagJsonl, false),
        ("tracelab.jsonl", FileFormat::Tracelab, true),
        ("weka_trace.json", FileFormat::WekaTrace, true),
    ] {
        assert_eq!(detect(&data(name)).unwrap(), detected(format, timed), "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(data("weka_trace.json"), folder.path().join("a.json")).unwrap();
    assert_eq!(detect(folder.path()).unwrap().format, FileFormat::WekaTrace);
}

fn undetected(line: &str) -> String {
    let (_folder, path) = written("d.jsonl", line);
    match detect(&path) {
        Err(DatasetError::Undetected(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ambiguity_names_two_candidates_and_the_flag() {
    let message = undetected(r#"{"messages": [{"role": "user", "content": "hi"}]}"#);
    for part in ["mooncake_trace", "raw_payload", "--custom-dataset-type"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn nothing_that_fits_asks_for_the_type() {
    assert!(undetected(r#"{"some": "thing"}"#).contains("--custom-dataset-type"));
    assert!(undetected("a,b,c").contains("--custom-dataset-type"));
}

/// Their bodies would be sent without the times at which they were.
#[test]
fn raw_records_of_a_run_are_no_dataset_and_what_makes_one_of_them_is_told() {
    let metadata = r#""metadata": {"request_start_ns": 5, "benchmark_phase": "profiling"}"#;
    let raw = format!(
        r#"{{{metadata}, "responses": [], "payload": {{"messages": [{{"role": "user", "content": "a"}}]}}}}"#
    );
    let message = undetected(&raw);
    assert!(message.contains("raw records of a run; aiperf dataset from-run DIR makes a trace"), "{message}");
    let (folder, _) = written("profile_export_raw.jsonl", &raw);
    let message = detect(folder.path()).unwrap_err().to_string();
    assert!(message.contains("folder of a run; aiperf dataset from-run DIR makes a trace"), "{message}");
    // Of records without bodies nothing can be made.
    let message = undetected(&format!(r#"{{{metadata}, "metrics": {{}}}}"#));
    assert!(
        message.contains("its figures and not its requests; run again with --export-level raw"),
        "{message}"
    );
}

#[test]
fn what_keeps_a_first_record_from_being_looked_at_is_told() {
    let utf16: Vec<u8> = "\u{feff}{\"text\": \"a\"}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let deep = format!("{{\"text\": \"a\", \"extra\": {}1{}}}", "[".repeat(200), "]".repeat(200));
    let wide = r#"{"text": "a", "extra": 1e999}"#;
    let list = "\n[\n{\"text\": \"a\"}\n]\n";
    for name in ["d.jsonl", "d.json"] {
        for (bytes, parts) in [
            (utf16.as_slice(), ["line 1: not valid UTF-8 at byte 1", "save the file as UTF-8"]),
            (deep.as_bytes(), ["line 1: nested more than 127 levels deep (column ", "--custom-dataset-type"]),
            (wide.as_bytes(), ["line 1: number out of range (column ", "--custom-dataset-type"]),
            (
                list.as_bytes(),
                [":2: a record must be a JSON object, found a list", "one object on each line"],
            ),
        ] {
            let (_folder, path) = written(name, bytes);
            let message = detect(&path).unwrap_err().to_string();
            assert!(parts.iter().all(|part| message.contains(part)), "{message} lacks one of {parts:?}");
        }
    }
}

#[test]
fn a_folder_without_data_is_told_from_a_file_that_fits_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let told = || detect(folder.path()).unwrap_err().to_string();
    let expected =
        "the folder holds no file of a type that reads folders, which are random_pool, raw_payload, ";
    assert!(told().contains(expected), "{}", told());
    std::fs::write(folder.path().join("a.jsonl"), "{\"input_length\": 5}\n").unwrap();
    assert!(told().contains(expected), "{}", told());
    let message = load(folder.path(), FileFormat::MooncakeTrace).err().unwrap().to_string();
    assert!(
        message.contains("mooncake_trace reads a file or a folder of Parquet shards; name the file"),
        "{message}"
    );
}

#[test]
fn an_explicit_type_decides_or_is_contradicted() {
    let (_folder, path) = written("d.jsonl", r#"{"type": "random_pool", "text": "a"}"#);
    assert_eq!(detect(&path).unwrap().format, FileFormat::RandomPool);
    let message = undetected(r#"{"type": "mooncake_trace", "text": "a"}"#);
    assert!(message.contains("mooncake_trace") && message.contains("cannot handle"), "{message}");
    let (_folder, path) = written("d.jsonl", r#"{"type": "weka_trace", "text": "a"}"#);
    assert!(matches!(detect(&path), Err(DatasetError::Undetected(_))));
}

#[test]
fn other_values_of_type_are_ignored() {
    let (_folder, path) = written(
        "d.jsonl",
        r#"{"type": "search", "chat_id": 1, "timestamp": 0.5, "input_length": 5, "output_length": 3}"#,
    );
    assert_eq!(detect(&path).unwrap(), detected(FileFormat::BailianTrace, true));
}

/// A file of a split fits the type of the split and those of all its categories.
#[test]
fn a_split_of_speed_bench_is_taken_as_a_whole_unless_a_row_names_a_category() {
    let row = |kind: &str| {
        format!(
            r#"{{"question_id": "{}", "category": "mixed", {kind} "messages": [{{"role": "user", "content": "a"}}]}}"#,
            "0".repeat(32)
        )
    };
    let (_folder, path) = written("throughput_8k.jsonl", row(""));
    assert_eq!(detect(&path).unwrap().format, FileFormat::SpeedBenchThroughput8k);
    let (_folder, path) =
        written("throughput_8k.jsonl", row(r#""type": "speed_bench_throughput_8k_mixed","#));
    assert_eq!(detect(&path).unwrap().format, FileFormat::SpeedBenchThroughput8kMixed);
    let (_folder, path) = written("other.jsonl", row(""));
    assert!(matches!(detect(&path), Err(DatasetError::Undetected(_))));
}

#[test]
fn captured_calls_are_found_in_folders_of_folders() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("2026/02")).unwrap();
    std::fs::copy(data("sagemaker_capture.jsonl"), folder.path().join("2026/02/a.jsonl")).unwrap();
    assert_eq!(detect(folder.path()).unwrap().format, FileFormat::SagemakerDataCapture);
}

#[test]
fn gzip_and_byte_order_marks_are_looked_through() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all("\u{feff}\n\n{\"text\": \"a\"}\n".as_bytes()).unwrap();
    let (_folder, path) = written("d.txt", encoder.finish().unwrap());
    assert_eq!(detect(&path).unwrap().format, FileFormat::SingleTurn);
    assert_eq!(text(&load(&path, FileFormat::SingleTurn).unwrap().build(0).unwrap().turns[0]), "a");
}

#[test]
fn foreign_bytes_empty_files_and_odd_records_are_plain_errors() {
    let (_folder, path) = written("d.jsonl", b"\x00\xff\x00\xfe\x01");
    assert!(matches!(detect(&path), Err(DatasetError::Undetected(_))));
    let (_folder, path) = written("d.jsonl", "");
    assert!(matches!(detect(&path), Err(DatasetError::Empty(_))));
    let (_folder, path) = written("d.jsonl", "[1]");
    assert!(detect(&path).unwrap_err().to_string().contains("must be a JSON object"));
    let (_folder, path) = written("d.jsonl", "{\"text\": \"a\",}\n");
    assert!(detect(&path).unwrap_err().to_string().contains("d.jsonl:1: not valid JSON"));
    assert!(matches!(detect("no/such".as_ref()), Err(DatasetError::Missing { .. })));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.bin"), [0, 255, 128]).unwrap();
    std::fs::write(folder.path().join("b.jsonl"), "{\"text\": \"a\"}").unwrap();
    assert!(matches!(detect(folder.path()), Err(DatasetError::Undetected(_))));
}

#[test]
fn the_first_record_says_what_times_it_has() {
    let timing = |text: &str, format| {
        let (_folder, path) = written("d.jsonl", text);
        let Timing { timestamp, delay, promotes } = first_record_timing(&path, format).unwrap();
        (timestamp, delay, promotes)
    };
    let single = FileFormat::SingleTurn;
    assert_eq!(timing(r#"{"text": "a", "timestamp": 0}"#, single), (true, false, false));
    assert_eq!(timing(r#"{"text": "a", "delay": 5}"#, single), (false, true, false));
    assert_eq!(timing(r#"{"text": "a"}"#, single), (false, false, false));
    let trace = FileFormat::MooncakeTrace;
    assert_eq!(timing(r#"{"input_length": 5, "timestamp": 0}"#, trace), (true, false, true));
    assert_eq!(timing(r#"{"input_length": 5, "timestamp": null}"#, trace), (false, false, true));
    let turns = r#"{"turns": [{"role": "system", "text": "s"}, {"text": "a", "timestamp": 3}]}"#;
    assert_eq!(timing(turns, FileFormat::MultiTurn), (true, false, false));
    assert_eq!(timing("{}", FileFormat::RawPayload), (false, false, false));
}
