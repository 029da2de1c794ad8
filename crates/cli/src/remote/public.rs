//! Public data sets: from a name to conversations in a file, before a run.

mod found;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aiperf_config::{DatasetSource, LoadMode, PublicDataset, RemoteDataset, RunConfig};
use aiperf_dataset::public::{
    self, Fault, Job, Make, PublicSet, Reading, Setting, Shard, Summary, beyond_context,
};
use aiperf_source::{Problem, SourceError, Sources};
use aiperf_tokenize::Tokenizer;
use serde_json::{Map, Value, json};

use super::signals::Signals;
use super::view::{Directory, cannot_write, scratch};
use crate::environment::{Environment, TIMEOUT_VARIABLE};
use crate::exit::Failure;
use crate::settle::Note;
use found::Found;

/// The conversations of a set, for as long as this is held.
#[derive(Debug)]
pub(crate) struct Rows {
    _directory: Directory,
}

/// Brings the set of a run, where it has one, and puts what was made of it in its place.
pub(crate) fn bring(
    environment: &Environment,
    config: &mut RunConfig,
    notes: &mut Vec<Note>,
) -> Result<Option<Rows>, Failure> {
    let Some(public) = config.dataset.public.clone() else { return Ok(None) };
    let Some(set) = public::find(public.name) else { return Ok(None) };
    let nameless = |problem: Problem| Failure::from(problem.about(about(set, "")));
    let (sources, _signals) = sources(environment, false).map_err(nameless)?;
    let found = Found::of(environment, &sources, set, &public).map_err(|error| renamed(error, set))?;
    let origin = found.origin();
    let failed = |problem: Problem| Failure::from(problem.about(about(set, &origin)));
    let directory = scratch().map_err(failed)?;
    let mut provenance = identity(set, &public, &found);
    let lines = match set.reading {
        Reading::Rows(make) => {
            let store = directory.path().join("conversations");
            let tokenizer = if set.follows(Setting::Tokens) {
                let opened = aiperf_run::open_tokenizer(config);
                opened.map_err(|error| Failure::usage(error.to_string()))?
            } else {
                None
            };
            let place = Place {
                sources: &sources,
                found: &found,
                set,
                public: &public,
                tokenizer: tokenizer.as_ref(),
                fixed_schedule: matches!(config.profiling().mode, LoadMode::FixedSchedule(_)),
            };
            let summary = rows(&place, make, &store)?;
            for (key, count) in [
                ("rows_read", summary.rows),
                ("conversations", summary.conversations),
                ("requests", summary.turns),
            ] {
                provenance.insert(key.into(), count.into());
            }
            let line = format!(
                "Public data set {} ({origin}): {} row(s) read, {} conversation(s), {} request(s)",
                set.name, summary.rows, summary.conversations, summary.turns
            );
            let told = public.context_limit.and_then(|limit| beyond_context(&summary.request_tokens, limit));
            notes.extend(told.map(Note::warning));
            if let Some(public) = &mut config.dataset.public {
                public.request_tokens = summary.request_tokens.into();
            }
            config.dataset.source = DatasetSource::Stored(store);
            std::iter::once(line).chain(summary.notes).collect()
        }
        Reading::Traces => {
            let files = linked(&found, &sources, &directory).map_err(|error| renamed(error, set))?;
            if let DatasetSource::File(file) = &mut config.dataset.source {
                directory.path().clone_into(&mut file.path);
            }
            vec![format!("Public data set {} ({origin}): {files} file(s)", set.name)]
        }
    };
    provenance.insert("bytes_fetched".into(), found.fetched().into());
    config.remote = Some(RemoteDataset { name: None, lines, provenance: Value::Object(provenance) });
    if let Some(public) = &mut config.dataset.public {
        public.origin = origin;
    }
    Ok(Some(Rows { _directory: directory }))
}

/// What was brought into the cache.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// Which rows they are, for programs.
    pub(crate) facts: Map<String, Value>,
    /// The same for people.
    pub(crate) line: String,
}

/// Brings what a run with these options reads into the cache; without a bound the whole set.
pub(crate) fn fetch(environment: &Environment, public: &PublicDataset) -> Result<Fetched, Failure> {
    let unknown = || Failure::usage(format!("there is no public data set {}", public.name));
    let set = public::find(public.name).ok_or_else(unknown)?;
    let nameless = |problem: Problem| Failure::from(problem.about(about(set, "")));
    let (sources, _signals) = sources(environment, true).map_err(nameless)?;
    let found = Found::of(environment, &sources, set, public).map_err(|error| renamed(error, set))?;
    let mut facts = identity(set, public, &found);
    match set.reading {
        // How far these are read depends on what is found in them. Where tokens decide, there is one file anyway.
        Reading::Rows(make) if public.bound.is_some() && !set.follows(Setting::Tokens) => {
            let directory = scratch().map_err(nameless)?;
            let place = Place {
                sources: &sources,
                found: &found,
                set,
                public,
                tokenizer: None,
                fixed_schedule: false,
            };
            let summary = rows(&place, make, &directory.path().join("conversations"))?;
            facts.insert("rows_read".into(), summary.rows.into());
        }
        _ => {
            let files =
                found.files(&sources).collect::<Result<Vec<_>, _>>().map_err(|error| renamed(error, set))?;
            let listed =
                files.iter().map(|file| json!({"path": file.name, "size": file.size, "sha256": file.sha256}));
            facts.insert("files".into(), listed.collect());
        }
    }
    facts.insert("bytes_fetched".into(), found.fetched().into());
    let line =
        format!("Public data set {} ({}): {} bytes fetched", set.name, found.origin(), found.fetched());
    Ok(Fetched { facts, line })
}

/// Sources that are as patient as is asked for public data sets; those that `compare` read what is here already.
fn sources(environment: &Environment, compare: bool) -> Result<(Arc<Sources>, Signals), Problem> {
    let patient = super::sources_with(environment, |settings| {
        settings.compares = compare;
        let Some(text) = environment.variables.get(TIMEOUT_VARIABLE).filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        let seconds = text.trim().parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
        let idle = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let idle = idle.ok_or_else(|| Problem::Setting {
            name: TIMEOUT_VARIABLE,
            value: text.clone(),
            rule: "it must be a number of seconds above 0",
        })?;
        (settings.patience.idle, settings.patience.hub_idle) = (idle, idle);
        Ok(())
    });
    patient.map(|(sources, signals)| (Arc::new(sources), signals))
}

/// A set at a version, and who reads it.
struct Place<'a> {
    sources: &'a Arc<Sources>,
    found: &'a Found,
    set: &'static PublicSet,
    public: &'a PublicDataset,
    tokenizer: Option<&'a Tokenizer>,
    fixed_schedule: bool,
}

/// Makes conversations of the rows of a set, into a file at `store`.
fn rows(place: &Place<'_>, make: Make, store: &Path) -> Result<Summary, Failure> {
    let Place { sources, found, set, public, tokenizer, fixed_schedule } = *place;
    let origin = found.origin();
    let failed = |problem: Problem| Failure::from(problem.about(about(set, &origin)));
    let job = Job {
        set,
        origin: &origin,
        filters: &public.filters,
        bound: public.bound,
        tokenizer,
        fixed_schedule,
    };
    // What a shard could not be had for; a reader only hears that it could not.
    let lost: RefCell<Option<SourceError>> = RefCell::default();
    let note = |error: SourceError| {
        let fault = Fault::new(error.problem.to_string(), error.problem.fix());
        *lost.borrow_mut() = Some(error);
        fault
    };
    let mut shards: Box<dyn Iterator<Item = Result<Shard, Fault>>> = match found.ranged(sources) {
        Some(shards) => Box::new(shards.map(|shard| shard.map_err(note))),
        None => Box::new(found.files(sources).map(|file| {
            let local = file.map_err(note)?;
            Shard::local(&local.name, &local.path).map_err(|error| {
                note(
                    Problem::CannotRead { path: local.path, cause: error.to_string() }.about(origin.as_str()),
                )
            })
        })),
    };
    let read = make(job).and_then(|mut converter| {
        public::read(&job, &mut *converter, &mut shards, store, &|| sources.is_stopped())
    });
    drop(shards);
    read.map_err(|fault| {
        if sources.is_stopped() {
            return failed(Problem::Interrupted);
        }
        found.discard();
        // The reader knows the place, the source what it means.
        let told = failed(Problem::Unreadable { what: fault.what, fix: fault.fix });
        match lost.take().or_else(|| found.lost()) {
            Some(error) => Failure { status: (&error).into(), text: told.text + &hint(&error, set) },
            None => told,
        }
    })
}

/// Brings every file of a set, and links them in a folder under the names they have; how many they are.
fn linked(found: &Found, sources: &Sources, directory: &Directory) -> Result<usize, SourceError> {
    let mut count = 0;
    for file in found.files(sources) {
        let local = file?;
        let link = directory.path().join(&local.name);
        let made = link
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::os::unix::fs::symlink(std::path::absolute(&local.path)?, &link));
        made.map_err(|error| cannot_write(directory.path(), &error).about(found.origin()))?;
        count += 1;
    }
    Ok(count)
}

/// The set in messages.
fn about(set: &PublicSet, origin: &str) -> String {
    let origin = if origin.is_empty() { String::new() } else { format!(" ({origin})") };
    format!("public dataset {}{origin}", set.name)
}

/// An error of its repository as one of the set.
fn renamed(error: SourceError, set: &PublicSet) -> Failure {
    let (status, hint) = ((&error).into(), hint(&error, set));
    Failure { text: format!("{}{hint}", error.problem.about(about(set, &error.reference))), status }
}

/// What else helps with an error.
fn hint(error: &SourceError, set: &PublicSet) -> String {
    match (&error.problem, set.repo()) {
        (Problem::Gated { .. }, Some(repo)) => {
            format!(" Its page is https://huggingface.co/datasets/{repo}.")
        }
        (Problem::Offline(_), _) => {
            format!(" `aiperf dataset fetch --public-dataset {}` downloads it.", set.name)
        }
        _ => String::new(),
    }
}

/// Which rows they are: the first keys of `metadata.dataset` of the JSON export.
fn identity(set: &PublicSet, public: &PublicDataset, found: &Found) -> Map<String, Value> {
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
    keys
}
