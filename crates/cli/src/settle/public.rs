//! `--public-dataset`: which set, which rows of it, and what goes with it.

use std::path::PathBuf;
use std::sync::Arc;

use aiperf_config::{
    DatasetSource, EndpointKind, FileDataset, FileFormat, FixedSchedule, PublicDataset, Sampling, Tuning,
};
use aiperf_dataset::public::{Place, PublicSet, Reading, Setting, find, sets};
use aiperf_source::{HubReference, Reference};

use super::dataset::{self, MEDIA_BATCHES, SYNTHETIC_ONLY};
use super::phases::DEFAULT_REQUESTS;
use super::schedule::{self, OFFSETS};
use super::{Note, agents, media, rankings, refuse_all, replay, synthesis};
use crate::typed::Typed;
use crate::usage::UsageError;

const SET: &str = "--public-dataset";
const WEKA: &str = "--hf-weka-dataset";
const SUBSET: &str = "--hf-subset";
const FILTER: &str = "--dataset-filter";
const CONTEXT: &str = "--max-context-length";

/// Entries of a streamed set when nothing bounds it.
const STREAMED_ENTRIES: u64 = 100;

/// Flags that bound what is read.
const BOUNDS: [&str; 3] = ["--num-dataset-entries", "--num-conversations", "--request-count"];

/// The set that was asked for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) source: DatasetSource,
    pub(super) public: PublicDataset,
    /// Its recorded times are played.
    pub(super) schedule: Option<FixedSchedule>,
}

/// Finds the set, and refuses what does not go with it.
pub(super) fn settle(
    typed: &Typed,
    endpoint: EndpointKind,
    sampling: Sampling,
    tuning: &Tuning,
    notes: &mut Vec<Note>,
) -> Result<Option<Asked>, UsageError> {
    let Some(set) = named(typed)? else {
        refuse_all(
            typed,
            &[SUBSET],
            "chooses a subset of a public data set",
            "add --public-dataset NAME, or drop it",
        )?;
        refuse_all(
            typed,
            &[FILTER],
            "chooses sessions of a public data set",
            "add --public-dataset NAME, or drop it",
        )?;
        return Ok(None);
    };
    for other in ["--input-file", "--custom-dataset-type"] {
        if typed.has(other) {
            let flag = if typed.has(SET) { SET } else { WEKA };
            return Err(UsageError::combination(
                format!("{} and {flag} exclude each other: both say what is sent", typed.name(other)),
                "keep one of them",
            ));
        }
    }
    refuse_others(typed, set)?;
    refuse_endpoint(set, endpoint)?;
    for flag in BOUNDS {
        if typed.count(flag) == Some(0) {
            return Err(UsageError::combination(
                format!("{} 0 leaves nothing to send", typed.name(flag)),
                "give 1 or more",
            ));
        }
    }
    let mut schedule = if schedule::asks_for_schedule(typed)? {
        schedule::refuse_sampling(typed, sampling)?;
        Some(schedule::planned(typed, None)?)
    } else {
        refuse_all(typed, &OFFSETS, "needs a fixed schedule", "add --fixed-schedule, or drop it")?;
        None
    };
    let traces = matches!(set.reading, Reading::Traces);
    let public = PublicDataset {
        name: set.name,
        repo: typed.text(WEKA).map(repository).transpose()?,
        subset: subset(typed, set)?,
        filters: filters(set, typed.texts(FILTER))?,
        entries: typed.count("--num-dataset-entries"),
        bound: if traces { None } else { bound(typed, set, notes)? },
        context_limit: typed.count(CONTEXT).filter(|_| set.follows(Setting::ContextLimit)),
        request_tokens: Arc::default(),
        origin: String::new(),
    };
    let source = if traces {
        let file = trace_file(typed, set, schedule.is_some(), tuning, notes)?;
        if let Some(schedule) = &mut schedule {
            // The offset is recorded time, the schedule is that of the replay.
            schedule.zero_ms = schedule.zero_ms.map(|zero| file.synthesis.scaled(zero));
        }
        DatasetSource::File(file)
    } else {
        DatasetSource::Stored(PathBuf::new())
    };
    Ok(Some(Asked { source, public, schedule }))
}

/// The set that two flags name, each of them alone or both alike.
fn named(typed: &Typed) -> Result<Option<&'static PublicSet>, UsageError> {
    let set = typed.text(SET).and_then(find);
    let is_named = |set: &PublicSet| matches!(set.place, Place::Named);
    match (set, typed.text(WEKA)) {
        (None, None) => Ok(None),
        (None, Some(_)) => Ok(sets().iter().find(|set| is_named(set))),
        (Some(set), None) if is_named(set) => Err(UsageError::combination(
            format!("{SET} {} needs {WEKA}: which repository is read", set.name),
            format!("add {WEKA} OWNER/NAME"),
        )),
        (Some(set), Some(_)) if !is_named(set) => Err(UsageError::combination(
            format!("{WEKA} and {SET} {} exclude each other: the set has a repository of its own", set.name),
            "keep one of them",
        )),
        (Some(set), _) => Ok(Some(set)),
    }
}

/// The repository that is the value of `--hf-weka-dataset`.
pub(crate) fn repository(text: &str) -> Result<String, UsageError> {
    match Reference::parse(&format!("hf://datasets/{text}")) {
        Ok(Reference::Hub(HubReference { org, repo, revision: None, path: None, .. })) => {
            Ok(format!("{org}/{repo}"))
        }
        _ => Err(UsageError::Value {
            flag: WEKA.into(),
            value: text.into(),
            rule: "the name of a repository, OWNER/NAME".into(),
            similar: None,
        }),
    }
}

/// Its traces, as a file of such traces is read; where they are is found later.
fn trace_file(
    typed: &Typed,
    set: &PublicSet,
    scheduled: bool,
    tuning: &Tuning,
    notes: &mut Vec<Note>,
) -> Result<FileDataset, UsageError> {
    let format = FileFormat::WekaTrace;
    let entry = aiperf_dataset::format(format);
    dataset::check_options(typed, entry, true, notes)?;
    Ok(FileDataset {
        detected: false,
        entries: typed.count("--num-dataset-entries"),
        ignore_trace_delays: typed.is_on("--ignore-trace-delays"),
        window: if scheduled { schedule::window(typed) } else { (None, None) },
        replay: replay::settle(typed, format, true, tuning, notes)?,
        synthesis: synthesis::settle(typed, entry)?,
        agents: agents::settle(typed, format, true, tuning, notes)?,
        ..FileDataset::new(set.name, format)
    })
}

fn subset(typed: &Typed, set: &PublicSet) -> Result<Option<String>, UsageError> {
    let Some(subset) = typed.text(SUBSET) else { return Ok(None) };
    if set.follows(Setting::Subset) {
        return Ok(Some(subset.to_owned()));
    }
    Err(UsageError::combination(
        format!("{SUBSET} has no meaning for {}: it has no subsets", set.name),
        "drop it",
    ))
}

/// The keys and values that sessions are chosen by, each key once.
pub(crate) fn filters<'t>(
    set: &PublicSet,
    given: impl Iterator<Item = &'t str>,
) -> Result<Vec<(String, String)>, UsageError> {
    let mut filters: Vec<(String, String)> = Vec::new();
    for text in given {
        if set.filters.is_none() {
            return Err(UsageError::combination(
                format!("{FILTER} chooses recorded sessions, and the set {} has none", set.name),
                "drop it, or choose exgentic or exgentic_v2",
            ));
        }
        let pair = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = pair.filter(|(key, value)| !key.is_empty() && !value.is_empty()) else {
            return Err(UsageError::combination(
                format!("{FILTER} {text} is no key=value"),
                "write it as harness=tool_calling",
            ));
        };
        if filters.iter().any(|(other, _)| other == key) {
            return Err(UsageError::combination(
                format!("{FILTER} is given twice for {key}"),
                "give each key one value",
            ));
        }
        filters.push((key.to_owned(), value.to_owned()));
    }
    if let Some(check) = set.filters {
        check(&filters).map_err(|what| UsageError::combination(what, "choose one of these"))?;
    }
    Ok(filters)
}

/// Rows that are read until so many became something.
fn bound(typed: &Typed, set: &PublicSet, notes: &mut Vec<Note>) -> Result<Option<u64>, UsageError> {
    if let Some(bound) = BOUNDS.iter().find_map(|flag| typed.count(flag)) {
        return Ok(Some(bound));
    }
    let endless = typed.has("--benchmark-duration") || typed.is_on("--fixed-schedule");
    if endless && set.follows(Setting::NeedsBound) {
        return Err(UsageError::combination(
            format!(
                "{} is read only up to a bound: none of {} is given, and how long requests are sent says nothing of how \
                 many sessions are read",
                set.name,
                BOUNDS.join(", ")
            ),
            "add --num-conversations N",
        ));
    }
    if !typed.has("--benchmark-duration") {
        return Ok(Some(DEFAULT_REQUESTS));
    }
    if !set.streamed {
        return Ok(None);
    }
    notes.push(Note::info(format!(
        "{} is read up to {STREAMED_ENTRIES} entries, which are sent again and again; --num-dataset-entries asks for more",
        set.name
    )));
    Ok(Some(STREAMED_ENTRIES))
}

/// Refuses an endpoint that does not take what the set sends: before anything is fetched.
fn refuse_endpoint(set: &PublicSet, endpoint: EndpointKind) -> Result<(), UsageError> {
    let (sends, takes) = if endpoint.ranks() {
        ("has no query and passages", "takes nothing else")
    } else if (set.follows(Setting::Messages) || matches!(set.reading, Reading::Traces))
        && endpoint.single_turn_only()
    {
        ("sends lists of messages", "takes one text")
    } else if set.follows(Setting::Media) && endpoint.single_turn_only() {
        ("sends images, audio or video", "takes one text")
    } else {
        return Ok(());
    };
    Err(UsageError::combination(
        format!("{} {sends}, and --endpoint-type {} {takes}", set.name, endpoint.name()),
        "use --endpoint-type chat",
    ))
}

/// Refuses what shapes other data.
fn refuse_others(typed: &Typed, set: &PublicSet) -> Result<(), UsageError> {
    let brings = format!("shapes generated data, and {SET} brings its own");
    let fix = format!("drop it, or drop {SET}");
    for flags in [&SYNTHETIC_ONLY[..], &["--batch-size"], &MEDIA_BATCHES, &MORE_SYNTHETIC] {
        refuse_all(typed, flags, &brings, &fix)?;
    }
    media::refuse(typed, SET)?;
    rankings::refuse(typed, SET)?;
    refuse_all(typed, &[dataset::COLUMNS], "names columns of --input-file", &fix)?;
    if !set.follows(Setting::Schedule) {
        let untimed = format!("needs recorded times, and the set {} has none", set.name);
        refuse_all(typed, &["--fixed-schedule"], &untimed, "drop it")?;
        refuse_all(typed, &OFFSETS, &untimed, "drop it")?;
    }
    if matches!(set.reading, Reading::Traces) {
        return Ok(());
    }
    let no_trace = format!("acts on traces, and the set {} is none", set.name);
    refuse_all(typed, &["--isl-block-size", "--ignore-trace-delays"], &no_trace, "drop it")?;
    refuse_all(typed, &["--uuid-and-strip"], "needs rows of single_turn", "drop it")?;
    synthesis::refuse(typed)?;
    refuse_all(typed, &replay::FLAGS, &no_trace, "drop it")?;
    refuse_all(typed, &AGENTS, &no_trace, "drop it")?;
    if !set.follows(Setting::ContextLimit) {
        refuse_all(typed, &[CONTEXT], &no_trace, "drop it")?;
    }
    Ok(())
}

/// Flags of the replay of agents.
const AGENTS: [&str; 3] = ["--use-think-time-only", "--trace-idle-gap-cap-seconds", "--allow-dataset-wrap"];

/// Further flags that shape generated data.
const MORE_SYNTHETIC: [&str; 2] = ["--image-source", "--image-source-sampling"];
