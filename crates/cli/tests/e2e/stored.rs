//! The same records, however they are stored, are the same bytes on the wire.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::support::Place;

/// Conversation, turn and body of every request, byte for byte.
fn bodies(name: &str, line: &str) -> Vec<(String, u64, String)> {
    let place = Place::new();
    let path = format!("{}/tests/data/files/{name}", env!("CARGO_MANIFEST_DIR"));
    let line = format!("--input-file {path} --export-level raw --random-seed 7 {line}");
    place.run("mock://?ttft=1ms&itl=0", &line).with_code(0);
    let mut found = Vec::new();
    for line in place.results().text("profile_export_raw.jsonl").lines() {
        let record: HashMap<String, Box<RawValue>> = serde_json::from_str(line).unwrap();
        let metadata: Value = serde_json::from_str(record["metadata"].get()).unwrap();
        let id = metadata["conversation_id"].as_str().unwrap().to_owned();
        found.push((id, metadata["turn_index"].as_u64().unwrap(), record["payload"].get().to_owned()));
    }
    found.sort();
    found
}

#[test]
fn requests_are_the_same_bytes_from_lines_compressed_lines_and_columns() {
    // Prompts of hash ids, of lengths in sessions, and texts with keys of their own.
    for line in [
        "--custom-dataset-type mooncake_trace --streaming",
        "--custom-dataset-type mooncake_trace --synthesis-prompt-len-multiplier 1.5 --isl-block-size 512",
        "--no-fixed-schedule --concurrency 4 --request-count 24",
    ] {
        let expected = bodies("stored.jsonl", line);
        assert_eq!(expected.len(), 24, "{line}");
        assert!(expected.iter().any(|(.., body)| body.contains("9223372036854775810")));
        for name in ["stored.jsonl.gz", "stored.jsonl.zst", "stored.parquet"] {
            let found = bodies(name, line);
            let differs = found.iter().zip(&expected).find(|(found, expected)| found != expected);
            assert!(found == expected, "{name} {line}: {differs:?}");
        }
    }
}
