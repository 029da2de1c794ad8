//! `dag_jsonl`: conversations that start each other. Each line is one conversation; those that no other line names
//! are drawn.

mod record;
mod rules;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use aiperf_config::{EndpointKind, FileFormat};
use aiperf_types::{ContextMode, Conversation};
use serde_json::{Map, Value};

use self::record::Record;
use super::{Files, Format, Near};
use crate::graph::{Graph, MakeNode};
use crate::json::Fault;
use crate::open::{Opening, Sources};
use crate::source::{Lines, SourceFile};
use crate::{Dataset, DatasetError, Note, Place};

/// Delays beyond this are worth a word, ms.
const LONG_DELAY_MS: f64 = 60_000.0;

pub(crate) const FORMAT: Format = Format {
    writes_inputs: true,
    sessions_by_default: true,
    options: &["--num-dataset-entries", "--inter-turn-delay-cap-seconds"],
    fits: |_, look| look.record().is_some_and(|(_, record)| is_dag(record)),
    near: Some(Near {
        keys: &[
            "session_id",
            "turns",
            "context_mode",
            "pre_session_spawns",
            "orchestrator",
            "spawns",
            "rounds",
        ],
        fault: |line| record::parse(line, f64::INFINITY).err(),
    }),
    ..Format::new(FileFormat::DagJsonl, Files::Jsonl, "one conversation", open)
};

fn is_dag(record: &Map<String, Value>) -> bool {
    let marks = |turn: &Value| ["messages", "forks", "spawns"].iter().any(|key| turn[*key].is_array());
    record.get("session_id").is_some_and(Value::is_string)
        && record.get("turns").and_then(Value::as_array).is_some_and(|turns| {
            !turns.is_empty() && turns.iter().all(Value::is_object) && turns.iter().any(marks)
        })
}

/// Where a line is.
#[derive(Clone, Copy)]
struct Span {
    offset: u64,
    length: usize,
    number: u64,
}

/// Makes conversations of lines.
struct Maker {
    files: Arc<[SourceFile]>,
    /// By index in the dataset.
    entries: Vec<(Arc<str>, ContextMode, Span)>,
}

impl MakeNode for Maker {
    fn make(&self, index: usize) -> Result<Conversation, DatasetError> {
        let file = &self.files[0];
        let (id, context_mode, span) = &self.entries[index];
        let mut bytes = vec![0; span.length];
        file.read_at(span.offset, &mut bytes)?;
        let turns = String::from_utf8(bytes)
            .map_err(|_| Fault::new("", "not valid UTF-8"))
            .and_then(|text| record::turns(&text))
            .map_err(|mut fault| {
                fault.rule.push_str(
                    " (the file changed since it was read at the start; leave it alone during a run)",
                );
                invalid(file, span.number, fault)
            })?;
        Ok(Conversation { id: Arc::clone(id), turns, context_mode: *context_mode, ..Conversation::default() })
    }

    fn place(&self, index: usize, _: usize) -> Option<(PathBuf, Place)> {
        let (.., span) = self.entries.get(index)?;
        Some((self.files[0].path.clone(), Place::Line(span.number)))
    }
}

fn invalid(file: &SourceFile, line: u64, fault: Fault) -> DatasetError {
    DatasetError::invalid(&file.path, Place::Line(line), fault.field, fault.rule)
}

fn open(opening: Opening<'_>) -> Result<Arc<dyn Dataset>, DatasetError> {
    if opening.context.endpoint != EndpointKind::Chat {
        return Err(DatasetError::Unsuitable(format!(
            "dag_jsonl conversations are chat messages, which the {} endpoint cannot carry; use --endpoint-type chat",
            opening.context.endpoint.name()
        )));
    }
    let Sources { files, .. } = opening.sources()?;
    let file = &files[0];
    let cap = opening.config.inter_turn_delay_cap;
    let cap_ms = cap.map_or(f64::INFINITY, |cap| cap.as_secs_f64() * 1000.0);
    let survey = opening.context.survey;
    let give = |fault: DatasetError| match survey {
        Some(survey) => {
            survey.take(fault);
            Ok(())
        }
        None => Err(fault),
    };
    let (mut records, mut spans): (Vec<Record>, Vec<Span>) = (Vec::new(), Vec::new());
    let mut lines = Lines::new(file)?;
    let mut first_line: HashMap<String, u64> = HashMap::new();
    let mut count = 0;
    while let Some(line) = lines.next(file)? {
        count += 1;
        let span = Span { offset: line.offset, length: line.bytes.len(), number: line.number };
        let parsed = std::str::from_utf8(line.bytes)
            .map_err(|_| Fault::new("", "not valid UTF-8; save the file as UTF-8"))
            .and_then(|text| record::parse(text, cap_ms))
            .and_then(|record| match first_line.get(&record.id) {
                None => Ok(record),
                Some(line) => Err(Fault::new(
                    "session_id",
                    format!("session `{}` is on line {line} already; ids must differ", record.id),
                )),
            });
        match parsed {
            Ok(record) => {
                first_line.insert(record.id.clone(), line.number);
                records.push(record);
                spans.push(span);
            }
            Err(fault) => give(invalid(file, span.number, fault))?,
        }
    }
    if let Some(survey) = survey {
        survey.count(count);
    }
    if records.is_empty() {
        return Err(DatasetError::Empty(format!(
            "{}: the file has no conversations; nothing can be sent",
            file.path.display()
        )));
    }
    let taken: Vec<usize> = (0..records.len()).collect();
    let drawn = match rules::check(&records, &taken) {
        Ok(drawn) => drawn,
        Err((at, fault)) => return Err(invalid(file, spans[at].number, fault)),
    };
    Ok(Arc::new(graph(&records, &spans, &drawn, Arc::clone(&files), opening, cap.is_some())))
}

/// The drawn conversations first, then the others, each in the order of the file.
fn graph(
    records: &[Record],
    spans: &[Span],
    drawn: &[usize],
    files: Arc<[SourceFile]>,
    opening: Opening<'_>,
    capped: bool,
) -> Graph<Maker> {
    let limit = usize::try_from(opening.limit()).unwrap_or(usize::MAX);
    let roots = drawn.len().min(limit);
    let is_drawn: std::collections::HashSet<usize> = drawn.iter().copied().collect();
    let order: Vec<usize> = drawn[..roots]
        .iter()
        .copied()
        .chain((0..records.len()).filter(|at| !is_drawn.contains(at)))
        .collect();
    let place = order.iter().zip(0..).map(|(at, index)| (records[*at].id.as_str(), index)).collect();
    let nodes = order.iter().map(|at| rules::node(&records[*at], is_drawn.contains(at), &place)).collect();
    let entries =
        order.iter().map(|at| (records[*at].id.as_str().into(), records[*at].mode, spans[*at])).collect();
    let longest_ms =
        records.iter().flat_map(|record| &record.turns).map(|turn| turn.delay_ms).fold(0.0, f64::max);
    let warnings =
        if longest_ms > LONG_DELAY_MS && !capped { vec![Note::LongDelay { longest_ms }] } else { Vec::new() };
    Graph {
        nodes,
        roots,
        maker: Maker { files, entries },
        finish: opening.finish,
        notes: warnings,
        rows: None,
    }
}
