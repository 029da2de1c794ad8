//! Formats that a later version reads: known by name and recognised, so that a file of one is refused by that name
//! instead of being taken for something else.

use aiperf_config::FileFormat;
use serde_json::{Map, Value};

use super::{Files, Format};
use crate::look::{has_extension, is_hidden};

pub(crate) const TRACELAB: Format = Format {
    fits: |_, look| {
        look.record_with(&[
            "session_id",
            "round_index",
            "input_tokens_total",
            "prefix_tokens",
            "newly_append_tokens",
            "timing_events",
        ])
        .is_some()
    },
    ..Format::new(FileFormat::Tracelab, Files::Jsonl, "one round of a model")
};

pub(crate) const WEKA_TRACE: Format = Format {
    fits: |_, look| {
        look.document().is_some_and(is_weka)
            || look
                .files(|file| has_extension(file, "json") && !is_hidden(file))
                .next()
                .is_some_and(|file| file.document().is_some_and(is_weka))
    },
    ..Format::new(FileFormat::WekaTrace, Files::Json, "one session")
};

fn is_weka(record: &Map<String, Value>) -> bool {
    record.get("requests").is_some_and(Value::is_array)
        && ["id", "models", "block_size", "hash_id_scope"].iter().all(|key| record.contains_key(*key))
}
