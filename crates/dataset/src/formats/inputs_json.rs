//! `inputs_json`: one JSON document of sessions and their bodies, the layout of the `inputs.json` that runs write.

use std::collections::HashSet;
use std::sync::Arc;

use aiperf_config::FileFormat;
use serde_json::{Map, Value};

use super::raw_payload::Verbatim;
use super::{Files, Format, Near};
use crate::file::FileDataset;
use crate::index::{Index, Range};
use crate::json::{self, Fault};
use crate::open::{Opening, Sources};
use crate::record::{Render, Row, Tally};
use crate::source::SourceFile;
use crate::{Dataset, DatasetError, Place};

pub(crate) const FORMAT: Format = Format {
    ranks: true,
    options: &["--num-dataset-entries"],
    fits: |_, look| {
        look.record().is_some_and(|(_, record)| is_inputs(record)) || look.document().is_some_and(is_inputs)
    },
    near: Some(Near {
        keys: &["data"],
        fault: |text| {
            let (place, fault) = sessions(text, false, &mut Tally::default()).err()?;
            Some(if place.is_empty() { fault } else { fault.within(place) })
        },
    }),
    ..Format::new(FileFormat::InputsJson, Files::Json, "the whole file", open)
};

fn is_inputs(record: &Map<String, Value>) -> bool {
    let first = record.get("data").and_then(Value::as_array).and_then(|data| data.first());
    first.and_then(|item| item.get("payloads")).is_some_and(Value::is_array)
}

fn open(opening: Opening<'_>) -> Result<Arc<dyn Dataset>, DatasetError> {
    let Sources { files, .. } = opening.sources()?;
    let index = index(&files[0], opening.context.streaming, opening.limit())?;
    let render: Arc<dyn Render> = Arc::new(Verbatim);
    Ok(Arc::new(FileDataset { files, index, render, finish: opening.finish, notes: Vec::new() }))
}

/// A session id and where its bodies are in the document.
type Session<'a> = (Arc<str>, Vec<&'a str>);

/// Reads the document once and keeps where each body is.
fn index(file: &SourceFile, streaming: bool, limit: u64) -> Result<Arc<Index>, DatasetError> {
    let (bytes, skipped) = file.read_all()?;
    let invalid = |place: String, fault: Fault| {
        DatasetError::invalid(&file.path, Place::Json(place), fault.field, fault.rule)
    };
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let rule = format!("not valid UTF-8 at byte {}; save the file as UTF-8", error.valid_up_to() + 1);
        invalid(String::new(), Fault::new("", rule))
    })?;
    if text.trim().is_empty() {
        return Err(DatasetError::Empty(format!(
            "{}: the file is empty; nothing can be sent",
            file.path.display()
        )));
    }
    let mut tally = Tally::default();
    let sessions =
        sessions(text, streaming, &mut tally).map_err(|(place, fault)| {
            match json::document_fault(text).filter(|_| place.is_empty()) {
                Some((line, fault)) => DatasetError::invalid(&file.path, Place::Line(line), "", fault.rule),
                None => invalid(place, fault),
            }
        })?;
    if sessions.is_empty() {
        return Err(DatasetError::Empty(format!(
            "{}: `data` has no sessions; nothing can be sent",
            file.path.display()
        )));
    }
    let (mut rows, mut ranges, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for (id, bodies) in sessions.into_iter().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        ranges.push(Range::new(rows.len() as u32, bodies.len() as u32, false));
        rows.extend(bodies.into_iter().map(|body| {
            let offset = (body.as_ptr() as usize - text.as_ptr() as usize) as u64 + skipped;
            Row::new(0, offset, body.len() as u32, None, None, 0)
        }));
        ids.push(id);
    }
    Ok(Index::complete(&rows, &ranges, ids, &tally))
}

/// Checks the document; its sessions in order.
fn sessions<'a>(
    text: &'a str,
    streaming: bool,
    tally: &mut Tally,
) -> Result<Vec<Session<'a>>, (String, Fault)> {
    let top = |fault| (String::new(), fault);
    let [data] = json::fields(text, &["data"]).map_err(top)?.ok_or_else(|| {
        top(Fault::new("", format!("expected an object with a list `data`, found {}", json::kind(text))))
    })?;
    let data = data.ok_or_else(|| top(Fault::new("data", "is missing; it must be a list of sessions")))?;
    let mut sessions = Vec::new();
    let mut seen = HashSet::new();
    for (index, item) in json::list("data", data).map_err(top)?.into_iter().enumerate() {
        let at = |fault| (format!("data[{index}]"), fault);
        if !item.starts_with('{') {
            return Err(at(Fault::new("", format!("expected an object, found {}", json::kind(item)))));
        }
        let [id, bodies] = json::object(item, &["session_id", "payloads"]).map_err(at)?;
        let id = id.ok_or_else(|| at(Fault::new("session_id", "is missing; every session needs one")))?;
        let id: Arc<str> = json::string("session_id", id).map_err(at)?.into();
        if !seen.insert(Arc::clone(&id)) {
            return Err(at(Fault::new(
                "session_id",
                format!("session `{id}` occurs twice; ids must differ"),
            )));
        }
        let bodies =
            bodies.ok_or_else(|| at(Fault::new("payloads", "is missing; it must be a list of bodies")))?;
        let bodies = json::list("payloads", bodies).map_err(at)?;
        if bodies.is_empty() {
            return Err(at(Fault::new("payloads", "must not be empty")));
        }
        for (number, body) in bodies.iter().enumerate() {
            if !body.starts_with('{') {
                let rule = format!("expected an object, found {}", json::kind(body));
                return Err(at(Fault::new(format!("payloads[{number}]"), rule)));
            }
            let [stream] = json::object(body, &["stream"]).map_err(at)?;
            tally.body(streaming, stream);
        }
        sessions.push((id, bodies));
    }
    Ok(sessions)
}
