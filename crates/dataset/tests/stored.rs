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
