//! From what a run recorded to a trace that replays it: one `mooncake_trace` row per request, in the order of
//! sending, with the body as it was sent.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use crate::json::{self, Fault};
use crate::source::{Lines, SourceFile};
use crate::{DatasetError, Place};

/// Requests of which phases are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseChoice {
    /// Those that were measured.
    Profiling,
    /// Those before them.
    Warmup,
    /// Every request of the run.
    All,
}

impl PhaseChoice {
    /// All choices.
    pub const ALL: [PhaseChoice; 3] = [PhaseChoice::Profiling, PhaseChoice::Warmup, PhaseChoice::All];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            PhaseChoice::Profiling => "profiling",
            PhaseChoice::Warmup => "warmup",
            PhaseChoice::All => "all",
        }
    }

    fn wants(self, phase: &str) -> bool {
        self == PhaseChoice::All || self.name() == phase
    }
}

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Rows that were written.
    pub requests: u64,
    /// Different sessions among them.
    pub sessions: u64,
    /// Requests that were left out because no body is recorded: they failed before they had one.
    pub without_body: u64,
    /// `model` of the first body, as far as it has one.
    pub model: Option<String>,
}

/// One request: 32 bytes.
struct Sent {
    /// Wall clock, ns.
    at: u64,
    /// Where its body is in the file.
    offset: u64,
    length: u32,
    session: u32,
}

/// Reads the raw records of a run, `profile_export_raw.jsonl`, and writes the trace that sends the same requests.
/// The text of a body is not changed. Memory follows the number of requests, not their size.
///
/// Errors of reading name the file and the line; errors of `out` are returned as [`DatasetError::Unreadable`] of
/// `out_path`.
pub fn from_run(
    raw: &Path,
    phase: PhaseChoice,
    out: &mut dyn Write,
    out_path: &Path,
) -> Result<Converted, DatasetError> {
    let file = SourceFile::open(raw, true)?;
    let mut converted = Converted::default();
    let mut sessions: Vec<Box<str>> = Vec::new();
    let mut known: HashMap<Box<str>, u32> = HashMap::new();
    let mut sent: Vec<Sent> = Vec::new();
    let mut records = 0u64;

    let mut lines = Lines::new(&file)?;
    while let Some(line) = lines.next(&file)? {
        records += 1;
        let fault =
            |fault: Fault| DatasetError::invalid(raw, Place::Line(line.number), fault.field, fault.rule);
        let text = std::str::from_utf8(line.bytes).map_err(|_| fault(Fault::new("", "not valid UTF-8")))?;
        let record = Record::parse(text).map_err(fault)?;
        if !phase.wants(record.phase) {
            continue;
        }
        let Some(payload) = record.payload else {
            converted.without_body += 1;
            continue;
        };
        if converted.model.is_none() {
            converted.model = model(payload);
        }
        let session = *known.entry(record.session.into()).or_insert_with(|| {
            sessions.push(record.session.into());
            sessions.len() as u32 - 1
        });
        let inside = payload.as_ptr() as usize - text.as_ptr() as usize;
        sent.push(Sent {
            at: record.start,
            offset: line.offset + inside as u64,
            length: payload.len() as u32,
            session,
        });
    }
    drop(known);
    if sent.is_empty() {
        return Err(DatasetError::Empty(format!(
            "{}: no request of the {} phase with a body among {records} record(s); nothing can be replayed{}",
            raw.display(),
            phase.name(),
            if phase == PhaseChoice::All { "" } else { ", choose other phases with --phase" }
        )));
    }

    sent.sort_by_key(|request| request.at);
    let first = sent[0].at;
    let broken = |error: std::io::Error| DatasetError::io(out_path, &error);
    let mut body = Vec::new();
    for request in &sent {
        body.resize(request.length as usize, 0);
        file.read_at(request.offset, &mut body)?;
        let since = request.at - first;
        let session = &sessions[request.session as usize];
        write!(
            out,
            "{{\"timestamp\":{}.{:06},\"session_id\":{session},\"payload\":",
            since / 1_000_000,
            since % 1_000_000
        )
        .and_then(|()| out.write_all(&body))
        .and_then(|()| out.write_all(b"}\n"))
        .map_err(broken)?;
    }
    converted.requests = sent.len() as u64;
    converted.sessions = sessions.len() as u64;
    Ok(converted)
}

/// What a line says.
struct Record<'a> {
    phase: &'a str,
    /// JSON text of the correlation id.
    session: &'a str,
    start: u64,
    payload: Option<&'a str>,
}

impl<'a> Record<'a> {
    fn parse(text: &'a str) -> Result<Record<'a>, Fault> {
        let missing = |name: &'static str| {
            move || Fault::new(name, "is missing; is this the raw export of a run (--export-level raw)?")
        };
        let [metadata, payload] = json::object(text, &["metadata", "payload"])?;
        let metadata = metadata.ok_or_else(missing("metadata"))?;
        let [phase, session, start] =
            json::object(metadata, &["benchmark_phase", "x_correlation_id", "request_start_ns"])?;
        let start = json::integer("request_start_ns", start.ok_or_else(missing("request_start_ns"))?)?;
        let session = session.ok_or_else(missing("x_correlation_id"))?;
        json::check_string("x_correlation_id", session)?;
        let phase = phase.ok_or_else(missing("benchmark_phase"))?;
        json::check_string("benchmark_phase", phase)?;
        if let Some(payload) = payload
            && (!payload.starts_with('{') || json::is_hollow(payload))
        {
            return Err(Fault::new(
                "payload",
                "is no JSON object: bodies of several parts (multipart) cannot be replayed",
            ));
        }
        Ok(Record { phase: phase.trim_matches('"'), session, start: start.max(0) as u64, payload })
    }
}

fn model(payload: &str) -> Option<String> {
    let [model] = json::object(payload, &["model"]).ok()?;
    Some(json::string("model", model?).ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(phase: &str, session: &str, start: u64, payload: &str) -> String {
        format!(
            "{{\"metadata\":{{\"x_correlation_id\":\"{session}\",\"benchmark_phase\":\"{phase}\",\
             \"request_start_ns\":{start}}},\"status\":200,\"payload\":{payload}}}\n"
        )
    }

    fn convert(text: &str, phase: PhaseChoice) -> (Result<Converted, DatasetError>, String) {
        let folder = tempfile::tempdir().unwrap();
        let raw = folder.path().join("profile_export_raw.jsonl");
        std::fs::write(&raw, text).unwrap();
        let mut out = Vec::new();
        let result = from_run(&raw, phase, &mut out, Path::new("out"));
        (result, String::from_utf8(out).unwrap())
    }

    #[test]
    fn rows_come_in_the_order_of_sending_with_the_bodies_unchanged() {
        let text = record("profiling", "b", 1_795_976_938_000_000_500, r#"{"n": 1e3,  "x":"\u00e9"}"#)
            + &record("warmup", "w", 1, r#"{"n":0}"#)
            + &record("profiling", "a", 1_795_976_937_999_000_000, r#"{"model":"m","n":0.10}"#);
        let (converted, out) = convert(&text, PhaseChoice::Profiling);
        let expected = Converted { requests: 2, sessions: 2, without_body: 0, model: Some("m".into()) };
        assert_eq!(converted.unwrap(), expected);
        assert_eq!(
            out,
            "{\"timestamp\":0.000000,\"session_id\":\"a\",\"payload\":{\"model\":\"m\",\"n\":0.10}}\n\
             {\"timestamp\":1.000500,\"session_id\":\"b\",\"payload\":{\"n\": 1e3,  \"x\":\"\\u00e9\"}}\n"
        );
        assert_eq!(convert(&text, PhaseChoice::Warmup).0.unwrap().requests, 1);
        assert_eq!(convert(&text, PhaseChoice::All).0.unwrap().requests, 3);
    }

    #[test]
    fn requests_without_a_body_are_counted_and_multipart_bodies_refused() {
        let text = record("profiling", "a", 1, "null") + &record("profiling", "a", 2, "{\"n\":1}");
        assert_eq!(convert(&text, PhaseChoice::Profiling).0.unwrap().without_body, 1);
        let text = text + &record("profiling", "a", 3, "\"--boundary\"");
        let error = convert(&text, PhaseChoice::Profiling).0.unwrap_err().to_string();
        assert!(error.contains("raw.jsonl:3: field `payload`") && error.contains("multipart"), "{error}");
    }

    #[test]
    fn a_file_that_was_cut_off_is_named_with_its_line() {
        let text = record("profiling", "a", 1, "{\"n\":1}") + "{\"metadata\":{\"x_corr";
        let error = convert(&text, PhaseChoice::Profiling).0.unwrap_err().to_string();
        assert!(error.contains("raw.jsonl:2: not valid JSON"), "{error}");
        let error = convert("{\"text\":\"no record\"}", PhaseChoice::All).0.unwrap_err().to_string();
        assert!(error.contains("--export-level raw"), "{error}");
        let only_warmup = record("warmup", "a", 1, "{\"n\":1}");
        let error = convert(&only_warmup, PhaseChoice::Profiling).0.unwrap_err().to_string();
        assert!(error.contains("--phase"), "{error}");
    }
}
