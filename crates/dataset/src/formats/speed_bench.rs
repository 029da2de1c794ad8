//! `speed_bench_…`: questions by category, and prompts of given lengths.

use aiperf_config::FileFormat;
use serde_json::{Map, Value};

use super::{Files, Format};

/// Files that hold a split, by their name without `.jsonl`.
const SPLITS: [&str; 6] =
    ["qualitative", "throughput_1k", "throughput_2k", "throughput_8k", "throughput_16k", "throughput_32k"];

/// What is said of one of the types.
pub(crate) const fn format_of(format: FileFormat) -> Format {
    Format {
        fits: |format, look| {
            let split = look.path.file_name().and_then(|name| name.to_str()?.strip_suffix(".jsonl"));
            let Some(split) = split.filter(|split| SPLITS.contains(split)) else { return false };
            let name = format.name();
            let whole = name.strip_prefix("speed_bench_") == Some(split);
            look.record().is_some_and(|(_, record)| is_row(record)) && (whole || look.claims(name))
        },
        ..Format::new(format, Files::Jsonl, "one question")
    }
}

/// Whether a record is a question of SPEED-Bench.
pub(crate) fn is_row(record: &Map<String, Value>) -> bool {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    text("question_id").is_some_and(|id| id.chars().count() == 32)
        && text("category").is_some_and(|category| !category.is_empty())
        && record.get("messages").and_then(Value::as_array).is_some_and(|messages| !messages.is_empty())
}
