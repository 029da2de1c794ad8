//! Every text format reads its files compressed, with a byte order mark and with the line ends of other systems.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::io::Write as _;
use std::path::Path;

use aiperf_config::{EndpointKind, FileFormat};
use aiperf_dataset::{Files, formats};
use common::*;

const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,374,44\n\
                     2023-11-16 18:17:04.0319600,396,109\n";

/// A sample of every format that is text, and what its name must be.
fn samples() -> Vec<(FileFormat, Vec<u8>, String)> {
    let files = [
        (FileFormat::SingleTurn, "single_turn.jsonl"),
        (FileFormat::MultiTurn, "multi_turn.jsonl"),
        (FileFormat::RandomPool, "random_pool.jsonl"),
        (FileFormat::MooncakeTrace, "mooncake_hash.jsonl"),
        (FileFormat::RawPayload, "raw_payload.jsonl"),
        (FileFormat::InputsJson, "inputs.json"),
        (FileFormat::BailianTrace, "bailian.jsonl"),
        (FileFormat::BurstGptTrace, "burst_gpt.csv"),
        (FileFormat::SagemakerDataCapture, "sagemaker_capture.jsonl"),
        (FileFormat::Tracelab, "tracelab.jsonl"),
        (FileFormat::WekaTrace, "weka_trace.json"),
        (FileFormat::DagJsonl, "dag.jsonl"),
    ];
    let read =
        |(format, name): (FileFormat, &str)| (format, std::fs::read(data(name)).unwrap(), name.to_owned());
    let mut all: Vec<_> = files.into_iter().map(read).collect();
    all.push((FileFormat::AzureLlmTrace, AZURE.into(), "azure.csv".into()));
    all
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn conversations(path: &Path, format: FileFormat) -> Vec<String> {
    let dataset = load_for(path, format, EndpointKind::Chat).unwrap_or_else(|error| panic!("{error}"));
    dataset.wait_for(u64::MAX);
    build_all(&*dataset).iter().map(|conversation| format!("{conversation:?}")).collect()
}

#[test]
fn gzip_zstandard_byte_order_marks_and_carriage_returns_are_read_by_every_text_format() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, text, name) in samples() {
        let with_mark = [b"\xef\xbb\xbf", text.as_slice()].concat();
        let other_ends = String::from_utf8(text.clone()).unwrap().replace('\n', "\r\n").into_bytes();
        let path = folder.path().join(&name);
        std::fs::write(&path, &text).unwrap();
        let (expected, found) =
            (conversations(&path, kind), detect(&path).map_err(|error| error.to_string()));
        for bytes in [
            gzip(&text),
            zstd::encode_all(text.as_slice(), 3).unwrap(),
            with_mark.clone(),
            gzip(&with_mark),
            zstd::encode_all(with_mark.as_slice(), 3).unwrap(),
            other_ends,
        ] {
            // The name says nothing of it.
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(conversations(&path, kind), expected, "{name}");
            assert_eq!(detect(&path).map_err(|error| error.to_string()), found, "{name}");
        }
    }
}

#[test]
fn there_is_a_sample_of_every_text_format() {
    let samples: Vec<FileFormat> = samples().into_iter().map(|(format, ..)| format).collect();
    for format in formats() {
        let is_text = format.files != Files::Parquet && !format.name().starts_with("speed_bench");
        assert_eq!(is_text, samples.contains(&format.format), "{}", format.name());
    }
}

#[test]
fn cut_off_compression_is_named_by_every_text_format() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, text, name) in samples() {
        for (bytes, what) in [(gzip(&text), "gzip"), (zstd::encode_all(text.as_slice(), 3).unwrap(), "zstd")]
        {
            let path = folder.path().join(&name);
            std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
            let message = load(&path, kind).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(&name) && message.contains(what), "{name}: {message}");
        }
    }
}

/// Samples of every format that reads folders: how their names end, and what three files of it hold.
fn folders() -> Vec<(FileFormat, &'static str, [String; 3])> {
    let read = |name: &str| std::fs::read_to_string(data(name)).unwrap();
    let weka = |id: &str| read("weka_trace.json").replace("weka-demo", id);
    let calls = read("sagemaker_capture.jsonl");
    let calls: Vec<String> = calls.lines().map(str::to_owned).collect();
    vec![
        (
            FileFormat::RandomPool,
            "jsonl",
            [
                read("random_pool_dir/passages.jsonl"),
                read("random_pool.jsonl"),
                read("random_pool_dir/queries.jsonl"),
            ],
        ),
        (
            FileFormat::RawPayload,
            "jsonl",
            ["raw_payload_dir/a_first.jsonl", "raw_payload.jsonl", "raw_payload_dir/b_second.jsonl"]
                .map(read),
        ),
        (FileFormat::SagemakerDataCapture, "jsonl", calls.try_into().unwrap()),
        (FileFormat::WekaTrace, "json", ["one", "two", "three"].map(weka)),
    ]
}

#[test]
fn compressed_files_of_a_folder_are_read_like_the_others_by_every_format_that_reads_folders() {
    let tested: Vec<FileFormat> = folders().iter().map(|(format, ..)| *format).collect();
    for format in formats() {
        assert_eq!(format.reads_folders(), tested.contains(&format.format), "{}", format.name());
    }
    for (format, ending, texts) in folders() {
        let read = |codings: [&str; 3]| {
            let folder = tempfile::tempdir().unwrap();
            for (number, (text, coding)) in texts.iter().zip(codings).enumerate() {
                let bytes = match coding {
                    ".gz" => gzip(text.as_bytes()),
                    ".zst" => zstd::encode_all(text.as_bytes(), 3).unwrap(),
                    _ => text.clone().into_bytes(),
                };
                std::fs::write(folder.path().join(format!("part{number}.{ending}{coding}")), bytes).unwrap();
            }
            assert_eq!(detect(folder.path()).unwrap().format, format, "{codings:?}");
            conversations(folder.path(), format)
        };
        let expected = read(["", "", ""]);
        for codings in [[".gz", "", ".zst"], ["", ".zst", ".gz"], [".zst", ".gz", ".gz"]] {
            assert_eq!(read(codings), expected, "{format:?} {codings:?}");
        }
    }
}

#[test]
fn a_file_and_its_compressed_copy_in_a_folder_are_refused() {
    for (format, ending, texts) in folders() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(format!("a.{ending}")), &texts[0]).unwrap();
        std::fs::write(folder.path().join(format!("a.{ending}.gz")), gzip(texts[0].as_bytes())).unwrap();
        let message = load(folder.path(), format).err().unwrap().to_string();
        assert!(message.contains(&format!("a.{ending} and ")), "{message}");
        assert!(message.contains(&format!("a.{ending}.gz differ in their compression alone")), "{message}");
    }
}

#[test]
fn a_compressed_file_is_recognised_by_its_name_without_the_ending_of_the_compression() {
    let bench = std::fs::read(data("speed_bench/qualitative.jsonl")).unwrap();
    let bench = (FileFormat::SpeedBenchQualitative, bench, "qualitative.jsonl".to_owned());
    // As a run writes it: a line is no record.
    let sessions =
        b"{\n\"data\": [\n{\"session_id\": \"a\", \"payloads\": [{\"messages\": []}]}\n]}\n".to_vec();
    let sessions = (FileFormat::InputsJson, sessions, "inputs.json".to_owned());
    let folder = tempfile::tempdir().unwrap();
    for (kind, text, name) in samples().into_iter().chain([bench, sessions]) {
        let said = |name: &str| {
            let found = detect(&folder.path().join(name)).map(|found| found.format);
            found.map_err(|error| error.to_string().replace(".gz: ", ": ").replace(".zst: ", ": "))
        };
        std::fs::write(folder.path().join(&name), &text).unwrap();
        let found = said(&name);
        if matches!(kind, FileFormat::InputsJson | FileFormat::WekaTrace) {
            assert_eq!(found, Ok(kind));
        }
        for (ending, bytes) in [("gz", gzip(&text)), ("zst", zstd::encode_all(text.as_slice(), 3).unwrap())] {
            let name = format!("{name}.{ending}");
            std::fs::write(folder.path().join(&name), bytes).unwrap();
            assert_eq!(said(&name), found, "{name}");
        }
    }
}
