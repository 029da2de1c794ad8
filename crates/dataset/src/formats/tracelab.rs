//! `tracelab`: rounds of coding agents, one per line; sessions that ran inside a call of another are its subagents.

mod assemble;
mod round;

use std::collections::HashMap;
use std::sync::Arc;

use aiperf_config::{Corpus, FileFormat};
use serde_json::Value;

use self::assemble::Session;
use super::{Files, FirstTimes, Format, Near};
use crate::agentic;
use crate::identity::Identity;
use crate::index::IDENTITY_RECORDS;
use crate::json::{self, Fault};
use crate::look::Look;
use crate::open::{Opening, Sources};
use crate::source::{Records, SourceFile};
use crate::{Dataset, DatasetError, Note};

pub(crate) const FORMAT: Format = Format {
    trace: true,
    timed: true,
    promotes: true,
    makes_text: true,
    block_size: Some(64),
    corpus: Some(Corpus::Coding),
    options: &[
        "--isl-block-size",
        "--num-dataset-entries",
        "--inter-turn-delay-cap-seconds",
        "--ignore-trace-delays",
        "--prompt-corpus",
        "--synthesis-max-isl",
        "--synthesis-max-osl",
        "--use-think-time-only",
        "--allow-dataset-wrap",
        "--trace-idle-gap-cap-seconds",
    ],
    fits: |_, look| look.record_with(&KEYS).is_some(),
    near: Some(Near {
        keys: &KEYS,
        fault: |line| match json::object(line, &KEYS) {
            Ok(found) => match KEYS.iter().zip(found).find(|(_, field)| field.is_none()) {
                Some((key, _)) => Some(Fault::new(*key, "is missing")),
                None => round::parse(line).err(),
            },
            Err(fault) => Some(fault),
        },
    }),
    times: |look| FirstTimes {
        timestamp: look.record().is_some_and(|(_, record)| {
            record
                .get("timing_events")
                .and_then(|events| events.get(0))
                .is_some_and(|event| event.get("timestamp").is_some_and(|time| !matches!(time, Value::Null)))
        }),
        delay: false,
    },
    ..Format::new(FileFormat::Tracelab, Files::Jsonl, "one round of a model", open)
};

/// What every round says.
const KEYS: [&str; 6] = [
    "session_id",
    "round_index",
    "input_tokens_total",
    "prefix_tokens",
    "newly_append_tokens",
    "timing_events",
];

fn open(opening: Opening<'_>) -> Result<Arc<dyn Dataset>, DatasetError> {
    agentic::check(&opening)?;
    let Sources { files, .. } = opening.sources()?;
    let file = &files[0];
    let survey = opening.context.survey;
    let mut sessions: Vec<Session> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut identity = Identity::default();
    let mut records = Records::new(file)?;
    let (mut undated, mut untimed) = (Passed::default(), Passed::default());
    let mut count = 0;
    while let Some(record) = records.next(file)? {
        count += 1;
        let place = file.place(record.number);
        let parsed = record.text.and_then(|text| {
            if count <= IDENTITY_RECORDS {
                identity.add(text);
            }
            round::parse(text)
        });
        let row = match (parsed, survey) {
            (Ok(row), _) => row,
            (Err(fault), survey) => {
                let fault = DatasetError::invalid(&file.path, place, fault.field, fault.rule);
                match survey {
                    Some(survey) => survey.take(fault),
                    None => return Err(fault),
                }
                continue;
            }
        };
        let Some(row) = row else { continue };
        let Some(round) = row.round else {
            undated.add(1, record.number);
            continue;
        };
        untimed.add(row.untimed, record.number);
        let number = *by_id.entry(row.session.clone()).or_insert_with(|| {
            sessions.push(Session::new(row.session.clone(), row.owner.clone(), row.is_codex, place));
            sessions.len() - 1
        });
        sessions[number].push(round, row.calls);
    }
    if let Some(survey) = survey {
        survey.count(count);
    }
    if sessions.is_empty() {
        return Err(DatasetError::Empty(format!(
            "{}: no record has a `session_id` and a time; nothing can be sent",
            file.path.display()
        )));
    }
    let agents = &opening.file.agents;
    let traces = assemble::traces(sessions, agents, opening.block_size(), &identity.finish(), &file.path)?;
    let mut notes = Vec::new();
    if let Some((rounds, first)) = undated.told(file) {
        notes.push(Note::Undated { rounds, first });
    }
    if let Some((events, first)) = untimed.told(file) {
        notes.push(Note::EventsWithoutTime { events, first });
    }
    notes.extend(first_without_time(&opening, file)?);
    agentic::open(opening, traces.into_iter().map(Ok), notes)
}

/// What was passed over.
#[derive(Default)]
struct Passed {
    count: u64,
    /// Line of the first.
    first: u64,
}

impl Passed {
    fn add(&mut self, count: u64, line: u64) {
        if self.count == 0 {
            self.first = line;
        }
        self.count += count;
    }

    /// How many, and where the first is; nothing where there is none.
    fn told(&self, file: &SourceFile) -> Option<(u64, String)> {
        (self.count > 0).then(|| (self.count, file.place(self.first).of(&file.path)))
    }
}

/// What is to be said where the first event of the first round has no time: rounds have.
fn first_without_time(opening: &Opening<'_>, file: &SourceFile) -> Result<Option<Note>, DatasetError> {
    if !opening.goes_by_first_time() {
        return Ok(None);
    }
    let look = Look::named(&file.path, &opening.file.columns)?;
    let is_timed = look.record().is_none() || (opening.format.times)(&look).timestamp;
    Ok((!is_timed)
        .then(|| Note::first_without_time(&file.path, &file.place(look.line), "timing_events[0].timestamp")))
}
