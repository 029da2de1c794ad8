//! Which format is this? Told by the first record, by the names of columns, or by what lies in a folder.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use aiperf_config::{EndpointKind, FileFormat};
use serde_json::{Map, Value};

use crate::formats::{mooncake, multi_turn, random_pool, single_turn};
use crate::kinds::{self, Kind, SPEED_BENCH};
use crate::open::{is_hidden, is_trace};
use crate::record::{Check, Found};
use crate::source::{Coding, coding, files_of, read_error, reader};
use crate::{DatasetError, Place};

/// A first record is looked for in so many bytes.
const HEAD: u64 = 64 << 20;

/// A format found by looking at a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The format.
    pub format: FileFormat,
    /// Whether its first record carries the time that makes a fixed schedule of a run.
    pub timed: bool,
}

/// What times the first record of a file carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// A timestamp that is not null.
    pub timestamp: bool,
    /// A delay that is not null.
    pub delay: bool,
    /// The format plays a fixed schedule by itself when there is a timestamp.
    pub promotes: bool,
}

/// Finds the format of `path` by its first record. A type that exists and is not built yet is
/// [`DatasetError::NotBuilt`]; none, or several that fit, is [`DatasetError::Undetected`].
pub fn detect(path: &Path) -> Result<Detected, DatasetError> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            DatasetError::Missing { dataset: "file".into(), path: path.to_owned() }
        }
        _ => DatasetError::io(path, &error),
    })?;
    let fits = if metadata.is_dir() { folder(path)? } else { file(path)? };
    let format = match fits.as_slice() {
        [Kind::Built(format)] => *format,
        [Kind::Later(name)] => {
            return Err(DatasetError::NotBuilt {
                what: format!("{}: the dataset type {name}", path.display()),
                help: "convert it to mooncake_trace, single_turn or multi_turn".into(),
            });
        }
        [] => {
            return Err(DatasetError::Undetected(format!(
                "{}: no dataset type fits its first record; name the type with --custom-dataset-type",
                path.display()
            )));
        }
        [one, other, ..] => {
            return Err(DatasetError::Undetected(format!(
                "{}: its first record fits {} as well as {}; name the type with --custom-dataset-type",
                path.display(),
                one.name(),
                other.name()
            )));
        }
    };
    let timing = first_record_timing(path, format)?;
    Ok(Detected { format, timed: timing.promotes && timing.timestamp })
}

/// What times the first record of `path`, a file of `format`, carries. Nothing for formats without times, and
/// for files whose first record is no object: opening such a file says what is wrong with it.
pub fn first_record_timing(path: &Path, format: FileFormat) -> Result<Timing, DatasetError> {
    let promotes = is_trace(format);
    let none = Timing { promotes, ..Timing::default() };
    if !matches!(format, FileFormat::SingleTurn | FileFormat::MultiTurn | FileFormat::MooncakeTrace) {
        return Ok(none);
    }
    let Some(Value::Object(record)) = first_line(path)?.and_then(|line| serde_json::from_str(&line).ok())
    else {
        return Ok(none);
    };
    let given =
        |record: &Map<String, Value>, key: &str| record.get(key).is_some_and(|value| !value.is_null());
    let carrier = match format {
        FileFormat::MultiTurn => {
            // The first turn that is a request: a leading system message has no times.
            let turns = record.get("turns").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let objects = || turns.iter().filter_map(Value::as_object);
            objects().find(|turn| given(turn, "timestamp") || given(turn, "delay")).cloned()
        }
        _ => Some(record),
    };
    Ok(carrier.map_or(none, |record| Timing {
        timestamp: given(&record, "timestamp"),
        delay: given(&record, "delay"),
        promotes,
    }))
}

/// The first line that is not blank, as far as it is text.
fn first_line(path: &Path) -> Result<Option<String>, DatasetError> {
    let mut from = reader(path)?.take(HEAD);
    let mut bytes = Vec::new();
    let mut buffer = vec![0u8; 1 << 14];
    loop {
        let count = from.read(&mut buffer).map_err(|error| read_error(path, &error))?;
        let looked = bytes.len();
        bytes.extend_from_slice(&buffer[..count]);
        if looked == 0 && bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        if looked == 0 || bytes[..looked].trim_ascii().is_empty() {
            let blank = bytes.len() - bytes.trim_ascii_start().len();
            bytes.drain(..blank);
        }
        if let Some(end) = memchr::memchr(b'\n', &bytes) {
            bytes.truncate(end);
            break;
        }
        if count == 0 {
            break;
        }
    }
    let line = bytes.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    Ok(String::from_utf8(line.to_vec()).ok())
}

/// The types that fit a file.
fn file(path: &Path) -> Result<Vec<Kind>, DatasetError> {
    match coding(path)? {
        Coding::Parquet | Coding::Arrow => {
            return Err(DatasetError::NotBuilt {
                what: format!("{}: reading parquet or Arrow files", path.display()),
                help: "convert the file to JSONL, or name its type with --custom-dataset-type".into(),
            });
        }
        _ => {}
    }
    let Some(line) = first_line(path)? else {
        let empty = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0);
        return if empty || blank(path)? {
            Err(DatasetError::Empty(format!("{}: the file is empty; nothing can be sent", path.display())))
        } else {
            Ok(Vec::new())
        };
    };
    let Ok(record) = serde_json::from_str::<Value>(&line) else {
        let mut fits = columns(&line);
        fits.extend(document(path));
        if fits.is_empty() && line.starts_with('{') && !is_json(path) {
            // Most likely a JSONL file with a slip in its first line.
            let reason = serde_json::from_str::<Value>(&line).err().map(|error| error.to_string());
            return Err(DatasetError::invalid(
                path,
                Place::Line(1),
                "",
                format!("not valid JSON: {}", reason.unwrap_or_default()),
            ));
        }
        return Ok(fits);
    };
    let Value::Object(record) = record else {
        return Err(DatasetError::invalid(
            path,
            Place::Line(1),
            "",
            "a record must be a JSON object; put one object on each line",
        ));
    };
    if let Some(kind) = record.get("type").and_then(Value::as_str).and_then(kinds::named) {
        return if record_fits(kind, &line, &record, path) {
            Ok(vec![kind])
        } else {
            Err(DatasetError::Undetected(format!(
                "{}: the first record says \"type\": \"{name}\", but {name} cannot handle it; correct the record, or \
                 name the type with --custom-dataset-type",
                path.display(),
                name = kind.name()
            )))
        };
    }
    Ok(record_kinds(&line, &record, path))
}

fn blank(path: &Path) -> Result<bool, DatasetError> {
    let mut head = Vec::new();
    reader(path)?.take(1 << 16).read_to_end(&mut head).map_err(|error| read_error(path, &error))?;
    Ok(head.trim_ascii().is_empty())
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

/// The types that a first record fits.
fn record_kinds(line: &str, record: &Map<String, Value>, path: &Path) -> Vec<Kind> {
    let all = [
        Kind::Built(FileFormat::SingleTurn),
        Kind::Built(FileFormat::MultiTurn),
        Kind::Built(FileFormat::MooncakeTrace),
        Kind::Built(FileFormat::RawPayload),
        Kind::Built(FileFormat::InputsJson),
        Kind::Later("bailian_trace"),
        Kind::Later("sagemaker_data_capture"),
        Kind::Later("tracelab"),
        Kind::Later("weka_trace"),
        Kind::Later("dag_jsonl"),
    ];
    let mut fits: Vec<Kind> = all.into_iter().filter(|kind| record_fits(*kind, line, record, path)).collect();
    fits.extend(speed_bench(record, path));
    // A Bailian row without `type` reads as a Mooncake row too; its chat ids decide.
    if fits.contains(&Kind::Later("bailian_trace")) {
        fits.retain(|kind| *kind != Kind::Built(FileFormat::MooncakeTrace));
    }
    fits
}

fn record_fits(kind: Kind, line: &str, record: &Map<String, Value>, path: &Path) -> bool {
    let has = |keys: &[&str]| keys.iter().all(|key| record.contains_key(*key));
    let passes = |check: &mut dyn Check| check.record(line, &mut Found::default()).is_ok();
    match kind {
        Kind::Built(FileFormat::SingleTurn) => passes(single_turn::format(EndpointKind::Chat).check.as_mut()),
        Kind::Built(FileFormat::MultiTurn) => passes(multi_turn::format(EndpointKind::Chat).check.as_mut()),
        Kind::Built(FileFormat::MooncakeTrace) => mooncake::fits(line) && !is_speed_bench(record),
        Kind::Built(FileFormat::RawPayload) => is_payload(record),
        Kind::Built(FileFormat::RandomPool) => {
            record.get("type").and_then(Value::as_str) == Some("random_pool") && random_pool::fits(line)
        }
        Kind::Built(FileFormat::InputsJson) => is_inputs(record),
        Kind::Later("bailian_trace") => {
            has(&["chat_id", "timestamp", "input_length", "output_length"]) && record["chat_id"].is_number()
        }
        Kind::Later("sagemaker_data_capture") => has(&["captureData", "eventMetadata"]),
        Kind::Later("tracelab") => has(&[
            "session_id",
            "round_index",
            "input_tokens_total",
            "prefix_tokens",
            "newly_append_tokens",
            "timing_events",
        ]),
        Kind::Later("weka_trace") => is_json(path) && is_weka(record),
        Kind::Later("dag_jsonl") => is_dag(record),
        Kind::Later(name) => speed_bench(record, path).is_some_and(|kind| kind.name() == name),
    }
}

fn is_payload(record: &Map<String, Value>) -> bool {
    record.get("messages").is_some_and(Value::is_array)
        && !record.contains_key("conversation_id")
        && !record.get("data").is_some_and(Value::is_array)
        && !is_speed_bench(record)
}

fn is_inputs(record: &Map<String, Value>) -> bool {
    let first = record.get("data").and_then(Value::as_array).and_then(|data| data.first());
    first.and_then(|item| item.get("payloads")).is_some_and(Value::is_array)
}

fn is_weka(record: &Map<String, Value>) -> bool {
    record.get("requests").is_some_and(Value::is_array)
        && ["id", "models", "block_size", "hash_id_scope"].iter().all(|key| record.contains_key(*key))
}

fn is_dag(record: &Map<String, Value>) -> bool {
    let marks = |turn: &Value| ["messages", "forks", "spawns"].iter().any(|key| turn[*key].is_array());
    record.get("session_id").is_some_and(Value::is_string)
        && record.get("turns").and_then(Value::as_array).is_some_and(|turns| {
            !turns.is_empty() && turns.iter().all(Value::is_object) && turns.iter().any(marks)
        })
}

fn is_speed_bench(record: &Map<String, Value>) -> bool {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    text("question_id").is_some_and(|id| id.chars().count() == 32)
        && text("category").is_some_and(|category| !category.is_empty())
        && record.get("messages").and_then(Value::as_array).is_some_and(|messages| !messages.is_empty())
}

/// The SPEED-Bench split that a file is by its name.
fn speed_bench(record: &Map<String, Value>, path: &Path) -> Option<Kind> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".jsonl")?;
    let (_, kind) = SPEED_BENCH.into_iter().find(|(split, _)| *split == stem)?;
    is_speed_bench(record).then_some(Kind::Later(kind))
}

/// The types that a header line of CSV fits.
fn columns(line: &str) -> Vec<Kind> {
    let found: Vec<&str> = line.split(',').map(|column| column.trim().trim_matches('"')).collect();
    let has = |columns: [&str; 3]| columns.iter().all(|column| found.contains(column));
    let mut fits = Vec::new();
    if has(["Timestamp", "Request tokens", "Response tokens"]) {
        fits.push(Kind::Later("burst_gpt_trace"));
    }
    if has(["TIMESTAMP", "ContextTokens", "GeneratedTokens"]) {
        fits.push(Kind::Later("azure_llm_trace"));
    }
    fits
}

/// The type that a whole JSON document fits.
fn document(path: &Path) -> Option<Kind> {
    if !is_json(path) {
        return None;
    }
    let mut bytes = Vec::new();
    reader(path).ok()?.read_to_end(&mut bytes).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?.trim_start_matches('\u{feff}');
    let record: Map<String, Value> = serde_json::from_str(text).ok()?;
    if is_inputs(&record) {
        Some(Kind::Built(FileFormat::InputsJson))
    } else if is_weka(&record) {
        Some(Kind::Later("weka_trace"))
    } else {
        None
    }
}

/// The first record of a file, when it can be read as one.
fn record_of(path: &Path) -> Option<Map<String, Value>> {
    serde_json::from_str(&first_line(path).ok()??).ok()
}

/// The types that a folder fits.
fn folder(path: &Path) -> Result<Vec<Kind>, DatasetError> {
    let by_extension =
        |wanted: &str| files_of(path, |file| file.extension().is_some_and(|found| found == wanted));
    if !by_extension("parquet")?.is_empty() {
        return Err(DatasetError::NotBuilt {
            what: format!("{}: reading parquet files", path.display()),
            help: "convert them to one JSONL file".into(),
        });
    }
    let mut fits = Vec::new();
    if by_extension("jsonl")?
        .iter()
        .find_map(|file| record_of(file))
        .is_some_and(|record| is_payload(&record))
    {
        fits.push(Kind::Built(FileFormat::RawPayload));
    }
    let pools = files_of(path, |file| !is_hidden(file))?;
    let is_pool =
        |file: &PathBuf| first_line(file).ok().flatten().is_some_and(|line| random_pool::fits(&line));
    if !pools.is_empty() && pools.iter().all(is_pool) {
        fits.push(Kind::Built(FileFormat::RandomPool));
    }
    if first_below(path, 0)
        .and_then(|file| record_of(&file))
        .is_some_and(|record| record.contains_key("captureData") && record.contains_key("eventMetadata"))
    {
        fits.push(Kind::Later("sagemaker_data_capture"));
    }
    if by_extension("json")?.first().and_then(|file| document(file)) == Some(Kind::Later("weka_trace")) {
        fits.push(Kind::Later("weka_trace"));
    }
    Ok(fits)
}

/// The first `*.jsonl` of a folder and the folders in it, by name.
fn first_below(folder: &Path, depth: u32) -> Option<PathBuf> {
    const DEEPEST: u32 = 8;
    let is_jsonl = |file: &Path| file.extension().is_some_and(|found| found == "jsonl");
    if let Some(file) = files_of(folder, is_jsonl).ok()?.into_iter().next() {
        return Some(file);
    }
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders.iter().filter(|_| depth < DEEPEST).find_map(|folder| first_below(folder, depth + 1))
}
