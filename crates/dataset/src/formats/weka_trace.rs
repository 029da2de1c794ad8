//! `weka_trace`: recorded sessions of coding agents with their subagents, one JSON document each.

mod document;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use aiperf_config::{Corpus, FileFormat};
use serde_json::{Map, Value};

use super::{Files, FirstTimes, Folder, Format, Near};
use crate::agentic;
use crate::look::{has_extension, is_hidden};
use crate::open::{Opening, Sources};
use crate::public::{Fault, Rows, Shard};
use crate::source::files_below;
use crate::{Dataset, DatasetError, Place};

pub(crate) const FORMAT: Format = Format {
    trace: true,
    timed: true,
    promotes: true,
    makes_text: true,
    corpus: Some(Corpus::Coding),
    options: &[
        "--num-dataset-entries",
        "--inter-turn-delay-cap-seconds",
        "--ignore-trace-delays",
        "--prompt-corpus",
        "--synthesis-max-isl",
        "--synthesis-max-osl",
        "--use-think-time-only",
        "--allow-dataset-wrap",
        "--trace-idle-gap-cap-seconds",
        "--max-context-length",
    ],
    fits: |_, look| {
        look.document().is_some_and(is_weka)
            || look.files(is_trace_file).next().is_some_and(|file| file.document().is_some_and(is_weka))
    },
    // Every request has a time.
    times: |_| FirstTimes { timestamp: true, delay: false },
    folder: Folder::Files(is_trace_file),
    near: Some(Near {
        keys: &["id", "models", "block_size", "hash_id_scope", "requests", "totals"],
        fault: document::fault,
    }),
    ..Format::new(FileFormat::WekaTrace, Files::Json, "one session", open)
};

/// Opens the rows of a public data set, each of which is a trace.
fn open_rows(opening: Opening<'_>) -> Result<Arc<dyn Dataset>, DatasetError> {
    let folder = opening.file.path.clone();
    let paths = files_below(&folder, |_| true)?;
    let mut shards = paths.iter().map(|path| {
        let name = path.strip_prefix(&folder).unwrap_or(path).display().to_string();
        Shard::local(&name, path)
            .map_err(|error| Fault::new(format!("{name} cannot be read: {error}"), "Run again"))
    });
    let mut rows: HashMap<Arc<str>, String> = HashMap::new();
    let traces = Rows::new(&mut shards, None).map(|row| {
        let row = row.map_err(|fault| DatasetError::Unsuitable(fault.to_string()))?;
        let place = PathBuf::from(row.place());
        let trace = document::parse(&row.value.json(), &place)?;
        match rows.insert(Arc::clone(&trace.id), row.place()) {
            None => Ok(trace),
            Some(other) => {
                let rule = format!("trace `{}` is in {other} already; ids must differ", trace.id);
                Err(DatasetError::invalid(&place, Place::Json(String::new()), "id", rule))
            }
        }
    });
    agentic::open(opening, traces, Vec::new())
}

fn is_trace_file(file: &std::path::Path) -> bool {
    has_extension(file, "json") && !is_hidden(file)
}

fn is_weka(record: &Map<String, Value>) -> bool {
    record.get("requests").is_some_and(Value::is_array)
        && ["id", "models", "block_size", "hash_id_scope"].iter().all(|key| record.contains_key(*key))
}

fn open(opening: Opening<'_>) -> Result<Arc<dyn Dataset>, DatasetError> {
    agentic::check(&opening)?;
    if opening.config.public.is_some() {
        return open_rows(opening);
    }
    let Sources { files, .. } = opening.sources()?;
    let survey = opening.context.survey;
    let mut traces = Vec::new();
    let mut places: HashMap<Arc<str>, String> = HashMap::new();
    for file in files.iter() {
        let (bytes, _) = file.read_all()?;
        let read = std::str::from_utf8(&bytes)
            .map_err(|error| {
                let rule =
                    format!("not valid UTF-8 at byte {}; save the file as UTF-8", error.valid_up_to() + 1);
                DatasetError::invalid(&file.path, Place::Json(String::new()), "", rule)
            })
            .and_then(|text| document::parse(text, &file.path))
            .and_then(|trace| match places.get(&trace.id) {
                None => Ok(trace),
                Some(other) => {
                    let rule = format!("trace `{}` is in {other} already; ids must differ", trace.id);
                    Err(DatasetError::invalid(&file.path, Place::Json(String::new()), "id", rule))
                }
            });
        match (read, survey) {
            (Ok(trace), _) => {
                places.insert(Arc::clone(&trace.id), file.path.display().to_string());
                traces.push(trace);
            }
            (Err(fault), Some(survey)) => survey.take(fault),
            (Err(fault), None) => return Err(fault),
        }
    }
    if let Some(survey) = survey {
        survey.count(files.len() as u64);
    }
    agentic::open(opening, traces.into_iter().map(Ok), Vec::new())
}
