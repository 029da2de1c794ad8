//! The raw records of a run, `profile_export_raw.jsonl`, as requests: when each was sent, its body, and how many
//! tokens the server says it answered with.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::json::{self, Fault};
use crate::source::{Lines, SourceFile, files_of};
use crate::{DatasetError, Place};

/// One request of a run: a few dozen bytes; its body stays in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRequest {
    /// When it was sent, wall clock, ns.
    pub sent_ns: u64,
    /// The line of its record, counted from 1.
    pub line: u64,
    /// Tokens of the answer, as the server counted them.
    pub output_tokens: Option<u64>,
    offset: u64,
    length: u32,
}

/// The requests of the measured phase of a run, in the order of sending.
pub struct RawRecords {
    file: SourceFile,
    requests: Vec<RawRequest>,
}

impl RawRecords {
    /// Whether the file looks like raw records: its first line has `metadata` and `request_start_ns` in it.
    pub fn fits(path: &Path) -> bool {
        let first = || -> Result<bool, DatasetError> {
            let file = SourceFile::open(path, true)?;
            let mut lines = Lines::new(&file)?;
            let Some(line) = lines.next(&file)? else { return Ok(false) };
            Ok(std::str::from_utf8(line.bytes).is_ok_and(|text| start(text).is_some()))
        };
        path.is_file() && first().unwrap_or(false)
    }

    /// The file of raw records in the folder of a run, whatever prefix its name has.
    pub fn in_folder(folder: &Path) -> Option<PathBuf> {
        let named = |file: &Path| {
            file.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(b"_raw.jsonl"))
        };
        files_of(folder, named).ok()?.into_iter().find(|file| RawRecords::fits(file))
    }

    /// Reads the records once. Requests that failed before they had a body are left out.
    pub fn open(path: &Path) -> Result<RawRecords, DatasetError> {
        let file = SourceFile::open(path, true)?;
        let mut requests = Vec::new();
        let mut lines = Lines::new(&file)?;
        while let Some(line) = lines.next(&file)? {
            let fault =
                |fault: Fault| DatasetError::invalid(path, Place::Line(line.number), fault.field, fault.rule);
            let text =
                std::str::from_utf8(line.bytes).map_err(|_| fault(Fault::new("", "not valid UTF-8")))?;
            let (sent_ns, phase) = start(text).ok_or_else(|| {
                fault(Fault::new(
                    "metadata",
                    "is missing; is this the raw export of a run (--export-level raw)?",
                ))
            })?;
            let [payload, responses] = json::object(text, &["payload", "responses"]).map_err(fault)?;
            let (Some(payload), "profiling") = (payload, phase) else { continue };
            let inside = payload.as_ptr() as usize - text.as_ptr() as usize;
            requests.push(RawRequest {
                sent_ns,
                line: line.number,
                output_tokens: responses.and_then(output_tokens),
                offset: line.offset + inside as u64,
                length: payload.len() as u32,
            });
        }
        requests.sort_by_key(|request| (request.sent_ns, request.line));
        Ok(RawRecords { file, requests })
    }

    /// The requests, in the order of sending.
    pub fn requests(&self) -> &[RawRequest] {
        &self.requests
    }

    /// The body of a request, as it was sent.
    pub fn body(&self, request: &RawRequest) -> Result<String, DatasetError> {
        let mut body = vec![0; request.length as usize];
        self.file.read_at(request.offset, &mut body)?;
        // It was valid when it was read for the first time.
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

/// Whether a record is one of a run, with what was sent. Lines of `profile_export.jsonl` have metrics in its place.
pub(crate) fn is_raw(text: &str) -> bool {
    start(text).is_some() && !has_metrics(text)
}

/// Whether a record is one of `profile_export.jsonl`: figures, without what was sent.
pub(crate) fn is_record(text: &str) -> bool {
    start(text).is_some() && has_metrics(text)
}

fn has_metrics(text: &str) -> bool {
    !matches!(json::object(text, &["metrics"]), Ok([None]))
}

/// When a request was sent, ns, and the phase it belongs to.
fn start(text: &str) -> Option<(u64, &str)> {
    let [metadata] = json::object(text, &["metadata"]).ok()?;
    let [start, phase] = json::object(metadata?, &["request_start_ns", "benchmark_phase"]).ok()?;
    let start = json::integer("request_start_ns", start?).ok()?;
    Some((start.max(0) as u64, phase?.trim_matches('"')))
}

/// The last count of output tokens in the answers.
fn output_tokens(responses: &str) -> Option<u64> {
    if !responses.contains("usage") {
        return None;
    }
    last_usage(&serde_json::from_str(responses).ok()?)
}

fn last_usage(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) if text.contains("usage") => {
            let text = text.trim_start().strip_prefix("data:").unwrap_or(text);
            let answer: Value = serde_json::from_str(text).ok()?;
            let usage = answer.get("usage").or_else(|| answer.get("response")?.get("usage"))?;
            usage.get("completion_tokens").or_else(|| usage.get("output_tokens"))?.as_u64()
        }
        Value::Array(items) => items.iter().rev().find_map(last_usage),
        Value::Object(map) => map.values().rev().find_map(last_usage),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_in_the_order_of_sending_with_the_tokens_that_the_server_counted() {
        let record = |start: u64, phase: &str, rest: &str| {
            format!(
                "{{\"metadata\":{{\"request_start_ns\":{start},\"benchmark_phase\":\"{phase}\"}}{rest}}}\n"
            )
        };
        let whole = r#","payload":{"n":1},"responses":[{"text":"{\"usage\":{\"completion_tokens\":7}}"}]"#;
        let stream = r#","payload":{"n":2},"responses":[{"packets":[{"name":"data","value":"{\"usage\":null}"}]},
            {"packets":[{"name":"data","value":"{\"usage\":{\"completion_tokens\":9}}"},{"name":"data","value":"[DONE]"}]}]"#
            .replace('\n', "");
        let text = record(50, "profiling", &stream)
            + &record(20, "profiling", whole)
            + &record(1, "warmup", whole)
            + &record(30, "profiling", "")
            + &record(60, "profiling", r#","payload":{"n":3},"responses":[]"#);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("raw.jsonl");
        std::fs::write(&path, text).unwrap();
        assert!(RawRecords::fits(&path));
        let records = RawRecords::open(&path).unwrap();
        let found: Vec<_> = records
            .requests()
            .iter()
            .map(|request| (request.line, request.output_tokens, records.body(request).unwrap()))
            .collect();
        let expected = [(2, Some(7), 1), (1, Some(9), 2), (5, None, 3)];
        assert_eq!(found, expected.map(|(line, tokens, n)| (line, tokens, format!("{{\"n\":{n}}}"))));
    }

    #[test]
    fn other_files_are_no_raw_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.jsonl");
        for text in ["", "{}", "{\"metadata\":{}}", "x"] {
            std::fs::write(&path, text).unwrap();
            assert!(!RawRecords::fits(&path), "{text}");
        }
        assert!(!RawRecords::fits(folder.path()));
    }

    #[test]
    fn the_raw_records_of_a_run_are_found_in_its_folder_under_any_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let record = r#"{"metadata":{"request_start_ns":1,"benchmark_phase":"profiling"},"payload":{}}"#;
        std::fs::write(folder.path().join("profile_export.jsonl"), record).unwrap();
        std::fs::write(folder.path().join("a_raw.jsonl"), "{}").unwrap();
        assert_eq!(RawRecords::in_folder(folder.path()), None);
        let raw = folder.path().join("mine_raw.jsonl");
        std::fs::write(&raw, record).unwrap();
        assert_eq!(RawRecords::in_folder(folder.path()), Some(raw.clone()));
        assert_eq!(RawRecords::in_folder(&raw), None);
    }
}
