//! Which format is this? Told by the first record, by the names of columns, or by what lies in a folder.

use std::path::Path;

use aiperf_config::{FileFormat, InputColumns};
use serde_json::{Map, Value};

use crate::formats::{self, Files, Format, Near};
use crate::json::{self, Fault};
use crate::look::{Look, Seen};
use crate::{DatasetError, Place, RawRecords, raw_records};

/// A format found by looking at a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The format.
    pub format: FileFormat,
    /// Whether its first record carries the time that makes a fixed schedule of a run.
    pub timed: bool,
    /// Where its fields are: as it was said, or under common names.
    pub columns: InputColumns,
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

/// Finds the format of `path`, some of whose columns may hold fields of other names, by its first record. None, or
/// several that fit, is [`DatasetError::Undetected`]; what fits none is looked at once more for fields under common
/// names.
pub fn detect(path: &Path, columns: &InputColumns) -> Result<Detected, DatasetError> {
    let look = Look::named(path, columns)?;
    if let Some(format) = one_that_fits(&look, columns)? {
        return Ok(Detected::new(format, &look, columns.clone()));
    }
    let is_field = |field: &str| formats::formats().iter().any(|format| format.fields.contains(&field));
    if let Some((field, column)) = columns.pairs().find(|(field, _)| !is_field(field)) {
        return Err(DatasetError::Unsuitable(format!(
            "--input-columns {field}={column}: no dataset type has a field `{field}`; FIELD comes first, then the column that \
             holds it; see aiperf datasets for the types and their fields"
        )));
    }
    let common = if columns.is_empty() { under_common_names(&look)? } else { None };
    common.ok_or_else(|| nothing_fits(&look))
}

impl Detected {
    fn new(format: &Format, look: &Look, columns: InputColumns) -> Detected {
        let timed = format.promotes && (format.times)(look).timestamp;
        Detected { format: format.format, timed, columns }
    }
}

/// The first format whose fields a record has under names that they are often given. Times have no unit there, and
/// whole bodies are no rows of fields: neither is guessed at.
fn under_common_names(look: &Look) -> Result<Option<Detected>, DatasetError> {
    let Some((_, record)) = look.record() else { return Ok(None) };
    if record.keys().any(|key| key.contains("timestamp") || ["model", "messages"].contains(&key.as_str())) {
        return Ok(None);
    }
    for format in formats::formats() {
        let Ok(columns) = InputColumns::new(commonly_named(format, record)) else { continue };
        if columns.is_empty() {
            continue;
        }
        let named = Look::named(&look.path, &columns)?;
        if (format.fits)(format, &named) {
            return Ok(Some(Detected::new(format, &named, columns)));
        }
    }
    Ok(None)
}

/// The fields that a record has under common names alone, each with its name.
fn commonly_named(
    format: &Format,
    record: &Map<String, Value>,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    format.common_names.iter().filter_map(move |(field, names)| {
        let name = names.iter().find(|name| record.contains_key(**name))?;
        (!record.contains_key(*field)).then_some((*field, *name))
    })
}

/// Keys of the first record of `path` that are not read and would be fields under common names: each with its field.
pub(crate) fn unread_keys(format: &Format, path: &Path) -> Vec<(&'static str, &'static str)> {
    let Some(look) = (!format.common_names.is_empty()).then(|| Look::at(path).ok()).flatten() else {
        return Vec::new();
    };
    let Some((_, record)) = look.record() else { return Vec::new() };
    let would_fit = |(field, name): &(&'static str, &'static str)| {
        let columns = InputColumns::new([(*field, *name)]).ok();
        let named = columns.and_then(|columns| Look::named(path, &columns).ok());
        named.is_some_and(|named| (format.fits)(format, &named))
    };
    commonly_named(format, record).filter(would_fit).map(|(field, name)| (name, field)).collect()
}

/// Keys of the first record of `path` that are not read, and say in a request body what a record says in its `extra`.
pub(crate) fn body_keys(format: &Format, path: &Path) -> Vec<&'static str> {
    const OF_BODIES: [&str; 16] = [
        "model",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "stop",
        "ignore_eos",
        "min_tokens",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
        "logprobs",
        "response_format",
        "tools",
        "tool_choice",
    ];
    let Some(look) = format.fields.contains(&"extra").then(|| Look::at(path).ok()).flatten() else {
        return Vec::new();
    };
    let Some((_, record)) = look.record() else { return Vec::new() };
    let is_unread = |key: &&'static str| record.contains_key(*key) && !format.fields.contains(key);
    OF_BODIES.into_iter().filter(is_unread).collect()
}

/// The format that a first record fits; `None` where it fits none.
fn one_that_fits(look: &Look, columns: &InputColumns) -> Result<Option<&'static Format>, DatasetError> {
    let path = look.path.display();
    match &look.seen {
        Seen::Blank => {
            return Err(DatasetError::Empty(format!("{path}: the file is empty; nothing can be sent")));
        }
        Seen::Value => {
            return Err(DatasetError::invalid(
                &look.path,
                Place::Line(look.line),
                "",
                "a record must be a JSON object; put one object on each line",
            ));
        }
        Seen::Record(line, record) => {
            if raw_records::is_raw(line) {
                return Err(DatasetError::Undetected(format!(
                    "{path}: these are raw records of a run; aiperf dataset from-run DIR makes a trace of them, where DIR is \
                     the folder of the run"
                )));
            }
            if raw_records::is_record(line) {
                return Err(DatasetError::Undetected(format!(
                    "{path}: these are the records of a run, which hold its figures and not its requests; run again with \
                     --export-level raw, and aiperf dataset from-run DIR makes a trace of what was sent, where DIR is the \
                     folder of the run"
                )));
            }
            if let Some(format) = record.get("type").and_then(Value::as_str).and_then(formats::named) {
                return if (format.fits)(format, look) {
                    Ok(Some(format))
                } else {
                    Err(DatasetError::Undetected(format!(
                        "{path}: the first record says \"type\": \"{name}\", but {name} cannot handle it; correct the \
                         record, or name the type with --custom-dataset-type",
                        name = format.name()
                    )))
                };
            }
        }
        Seen::Folder | Seen::Line(_) | Seen::Foreign(_) | Seen::Columns(_) => {}
    }
    let mut fits = formats::formats()
        .iter()
        .filter(|format| format.check_columns(columns).is_ok() && (format.fits)(format, look));
    match (fits.next(), fits.next()) {
        (Some(format), None) => Ok(Some(format)),
        (Some(one), Some(other)) => Err(DatasetError::Undetected(format!(
            "{path}: its first record fits {} as well as {}; name the type with --custom-dataset-type",
            one.name(),
            other.name()
        ))),
        (None, _) => Ok(None),
    }
}

fn nothing_fits(look: &Look) -> DatasetError {
    if let Seen::Columns(error) = &look.seen {
        return error.clone();
    }
    let path = look.path.display();
    let cannot_tell = |line: u64, rule: &str| {
        DatasetError::Undetected(format!(
            "{path}: no dataset type fits its first record: line {line}: {rule}"
        ))
    };
    let text = look.document_text();
    match &look.seen {
        Seen::Foreign(fault) => return cannot_tell(look.line, &fault.rule),
        Seen::Line(line) if is_html(line) => {
            return DatasetError::Undetected(format!(
                "{path}: it is an HTML page and no data; name the file itself, not a page that shows it or asks for a \
                 sign-in"
            ));
        }
        Seen::Line(line) if line.starts_with('[') => {
            let rule = "a record must be a JSON object, found a list; put one object on each line";
            return DatasetError::invalid(&look.path, Place::Line(look.line), "", rule);
        }
        Seen::Line(line) if line.starts_with('{') => {
            let whole = text.as_deref().unwrap_or(line);
            let place = |line: u64| if text.is_some() { line } else { look.line };
            if let Some((number, fault)) = json::document_fault(whole) {
                // Most likely a JSONL file with a slip in its first line, or a document with one somewhere.
                return DatasetError::invalid(&look.path, Place::Line(place(number)), "", fault.rule);
            }
            if let Some((number, fault)) = json::value_fault(whole) {
                let rule = format!("{}; name the type with --custom-dataset-type", fault.rule);
                return cannot_tell(place(number), &rule);
            }
        }
        _ => {}
    }
    if look.is_folder() && look.path.join("aiperf.json").is_file() {
        return DatasetError::Undetected(format!(
            "{path}: no dataset type fits the files of this folder, and its aiperf.json counts only where it is published \
             (hf://, s3://); name the data file itself, and its type with --custom-dataset-type"
        ));
    }
    if look.is_folder() && RawRecords::in_folder(&look.path).is_some() {
        return DatasetError::Undetected(format!(
            "{path}: this is the folder of a run; aiperf dataset from-run DIR makes a trace of its raw records, where DIR is \
             that folder"
        ));
    }
    if look.is_folder() {
        let kinds: Vec<&str> =
            formats::formats().iter().filter(|format| format.reads_folders()).map(Format::name).collect();
        return DatasetError::Undetected(format!(
            "{path}: the folder holds no file of a type that reads folders, which are {} and, of Parquet shards, others; \
             name the data file itself, or the type with --custom-dataset-type",
            kinds.join(", ")
        ));
    }
    let name = "name the type with --custom-dataset-type";
    DatasetError::Undetected(match nearest(look, text.as_deref()) {
        Some((format, place, fault)) => {
            let field =
                if fault.field.is_empty() { String::new() } else { format!("field `{}`: ", fault.field) };
            let columns = if format.fields.is_empty() {
                ""
            } else {
                ", and columns of other names with --input-columns FIELD=COLUMN"
            };
            format!(
                "{path}: no dataset type fits its first record; the nearest is {}, and {place}{field}{}; correct that, or \
                 {name}{columns}",
                format.name(),
                fault.rule
            )
        }
        None if matches!(&look.seen, Seen::Line(line) if !line.starts_with('{')) => format!(
            "{path}: no dataset type fits its first record: line {} is neither a JSON object nor the header of a table that \
             one reads; correct that, or {name}",
            look.line
        ),
        None => format!("{path}: no dataset type fits its first record; {name}"),
    })
}

/// Whether a page of HTML begins so: what a server shows to people, or in the place of data that need a sign-in.
pub fn is_html(line: &str) -> bool {
    let line = line.trim_start_matches(['\u{feff}', ' ', '\t']);
    ["<!doctype html", "<html"]
        .iter()
        .any(|start| line.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)))
}

/// The format that has most in common with what is seen, where that is, and what keeps it from being one.
fn nearest(look: &Look, document: Option<&str>) -> Option<(&'static Format, String, Fault)> {
    let record = match document {
        Some(_) => look.document(),
        None => look.record().map(|(_, record)| record),
    };
    let line = match &look.seen {
        Seen::Record(line, _) | Seen::Line(line) => line.as_str(),
        _ => return None,
    };
    let has = |key: &str| match record {
        Some(record) => record.contains_key(key),
        None => look.has_columns(&[key]),
    };
    let can_be = |format: &Format| match format.files {
        Files::Json => document.is_some(),
        Files::Csv => record.is_none(),
        Files::Parquet => look.table.is_some(),
        Files::Jsonl => document.is_none() && record.is_some(),
    };
    let mut best: Option<(usize, &Format, &Near)> = None;
    for format in formats::formats().iter().filter(|format| can_be(format)) {
        let Some(near) = &format.near else { continue };
        // Every format may have this one.
        let common = near.keys.iter().filter(|key| **key != "type" && has(key)).count();
        if common > best.map_or(0, |(most, ..)| most) {
            best = Some((common, format, near));
        }
    }
    let (_, format, near) = best?;
    let place = match (document, &look.table) {
        (Some(_), _) => String::new(),
        (None, Some(_)) => "row 1: ".to_owned(),
        (None, None) => format!("line {}: ", look.line),
    };
    Some((format, place, (near.fault)(document.unwrap_or(line))?))
}

/// What times the first record of `path`, a file of `format`, carries, whose fields are in these columns. Nothing for
/// formats without times, and for files whose first record is no object: opening such a file says what is wrong with it.
pub fn first_record_timing(
    path: &Path,
    format: FileFormat,
    columns: &InputColumns,
) -> Result<Timing, DatasetError> {
    let format = formats::format(format);
    formats::check_one_file(format, path)?;
    let times = (format.times)(&Look::named(path, columns)?);
    Ok(Timing { timestamp: times.timestamp, delay: times.delay, promotes: format.promotes })
}
