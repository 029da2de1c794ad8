//! Public data sets: from a name to conversations in a file, before a run.

mod found;

use std::cell::RefCell;

use aiperf_config::{DatasetSource, PublicDataset, RemoteDataset, RunConfig};
use aiperf_dataset::public::{self, Fault, Job, PublicSet, Reading, Setting, Summary};
use aiperf_source::{Problem, SourceError};
use serde_json::{Map, Value, json};

use super::view::{Directory, directory};
use crate::environment::Environment;
use crate::exit::ExitStatus;
use found::Found;

/// Why a set cannot be had, and how the program ends.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) status: ExitStatus,
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Failure {
        Failure { status: (&error).into(), text: error.to_string() }
    }
}

/// The conversations of a set, for as long as this is held.
#[derive(Debug)]
pub(crate) struct Rows {
    _directory: Directory,
}

/// Brings the set of a run, where it has one, and puts what was made of it in its place.
pub(crate) fn bring(environment: &Environment, config: &mut RunConfig) -> Result<Option<Rows>, Failure> {
    let Some(public) = config.dataset.public.clone() else { return Ok(None) };
    let Some(set) = public::find(public.name) else { return Ok(None) };
    let Reading::Rows(make) = set.reading else { return Ok(None) };
    let nameless = |problem: Problem| Failure::from(problem.about(about(set, "")));
    let (sources, _signals) = super::sources(environment).map_err(nameless)?;
    let found = Found::of(&sources, set, &public).map_err(|error| renamed(error, set))?;
    let origin = found.origin();
    let failed = |problem: Problem| Failure::from(problem.about(about(set, &origin)));
    let tokenizer = if set.follows(Setting::Tokens) {
        let opened = aiperf_run::open_tokenizer(config);
        opened.map_err(|error| Failure { text: error.to_string(), status: ExitStatus::Usage })?
    } else {
        None
    };
    let job = Job {
        set,
        origin: &origin,
        filters: &public.filters,
        bound: public.bound,
        tokenizer: tokenizer.as_ref(),
        fixed_schedule: matches!(config.profiling().mode, aiperf_config::LoadMode::FixedSchedule(_)),
    };
    let directory = directory().map_err(|error| {
        let directory = std::env::temp_dir();
        failed(Problem::CannotWrite { directory, cause: error.to_string(), variable: "TMPDIR" })
    })?;
    let store = directory.path().join("conversations");
    // What a shard could not be had for; a reader only hears that it could not.
    let lost: RefCell<Option<SourceError>> = RefCell::default();
    let mut shards = found.shards(&sources).map(|shard| {
        shard.map_err(|error| {
            let fault = Fault::new(error.problem.to_string(), error.problem.fix());
            *lost.borrow_mut() = Some(error);
            fault
        })
    });
    let read = make(job).and_then(|mut converter| {
        public::read(&job, &mut *converter, &mut shards, &store, &|| sources.is_stopped())
    });
    drop(shards);
    let summary = read.map_err(|fault| match lost.take() {
        Some(error) => renamed(error, set),
        None if sources.is_stopped() => failed(Problem::Interrupted),
        None => failed(Problem::Unreadable { what: fault.what, fix: fault.fix }),
    })?;
    let provenance = provenance(set, &public, &found, &summary);
    let mut lines = vec![format!(
        "Public data set {} ({origin}): {} row(s) read, {} conversation(s), {} request(s)",
        set.name, summary.rows, summary.conversations, summary.turns
    )];
    lines.extend(summary.notes);
    config.remote = Some(RemoteDataset { lines, provenance });
    config.dataset.source = DatasetSource::Stored(store);
    Ok(Some(Rows { _directory: directory }))
}

/// The set in messages.
fn about(set: &PublicSet, origin: &str) -> String {
    let origin = if origin.is_empty() { String::new() } else { format!(" ({origin})") };
    format!("public dataset {}{origin}", set.name)
}

/// An error of its repository as one of the set.
fn renamed(error: SourceError, set: &PublicSet) -> Failure {
    let page = match (&error.problem, set.repo()) {
        (Problem::Gated { .. }, Some(repo)) => {
            format!(" Its page is https://huggingface.co/datasets/{repo}.")
        }
        _ => String::new(),
    };
    let status = (&error).into();
    Failure { text: format!("{}{page}", error.problem.about(about(set, &error.reference))), status }
}

/// `metadata.dataset` of the JSON export.
fn provenance(set: &PublicSet, public: &PublicDataset, found: &Found, summary: &Summary) -> Value {
    let mut keys = Map::new();
    keys.insert("source_type".into(), "public_dataset".into());
    keys.insert("loader".into(), set.name.into());
    keys.extend(found.identity());
    if let Some(entries) = public.entries {
        keys.insert("num_dataset_entries".into(), entries.into());
    }
    let filters: Map<String, Value> =
        public.filters.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    keys.insert("filters".into(), filters.into());
    keys.insert("rows_read".into(), summary.rows.into());
    keys.insert("bytes_fetched".into(), json!(found.fetched()));
    keys.insert("conversations".into(), summary.conversations.into());
    keys.insert("requests".into(), summary.turns.into());
    Value::Object(keys)
}
