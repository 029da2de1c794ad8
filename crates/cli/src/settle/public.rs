//! `--public-dataset`: which set, which rows of it, and what goes with it.

use std::path::PathBuf;

use aiperf_config::{DatasetSource, FixedSchedule, PublicDataset, Sampling};
use aiperf_dataset::public::{PublicSet, Setting, find};

use super::dataset::{self, MEDIA_BATCHES, OFFSETS, SYNTHETIC_ONLY};
use super::phases::DEFAULT_REQUESTS;
use super::{Note, media, refuse_all, replay, synthesis};
use crate::typed::Typed;
use crate::usage::UsageError;

const SET: &str = "--public-dataset";
const SUBSET: &str = "--hf-subset";

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
    sampling: Sampling,
    notes: &mut Vec<Note>,
) -> Result<Option<Asked>, UsageError> {
    let Some(set) = typed.text(SET).and_then(find) else {
        refuse_all(
            typed,
            &[SUBSET],
            "chooses a subset of a public data set",
            "add --public-dataset NAME, or drop it",
        )?;
        return Ok(None);
    };
    for other in ["--input-file", "--custom-dataset-type"] {
        if typed.has(other) {
            return Err(UsageError::combination(
                format!("{} and {SET} exclude each other: both say what is sent", typed.name(other)),
                "keep one of them",
            ));
        }
    }
    refuse_others(typed, set)?;
    for flag in BOUNDS {
        if typed.count(flag) == Some(0) {
            return Err(UsageError::combination(
                format!("{} 0 leaves nothing to send", typed.name(flag)),
                "give 1 or more",
            ));
        }
    }
    let public = PublicDataset {
        name: set.name,
        repo: None,
        subset: subset(typed, set)?,
        filters: Vec::new(),
        entries: typed.count("--num-dataset-entries"),
        bound: bound(typed, set, notes),
    };
    let schedule = if dataset::asks_for_schedule(typed)? {
        dataset::refuse_sampling(typed, sampling)?;
        Some(dataset::planned(typed, None)?)
    } else {
        refuse_all(typed, &OFFSETS, "needs a fixed schedule", "add --fixed-schedule, or drop it")?;
        None
    };
    Ok(Some(Asked { source: DatasetSource::Stored(PathBuf::new()), public, schedule }))
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

/// Rows that are read until so many became something.
fn bound(typed: &Typed, set: &PublicSet, notes: &mut Vec<Note>) -> Option<u64> {
    if let Some(bound) = BOUNDS.iter().find_map(|flag| typed.count(flag)) {
        return Some(bound);
    }
    if !typed.has("--benchmark-duration") {
        return Some(DEFAULT_REQUESTS);
    }
    if !set.streamed {
        return None;
    }
    notes.push(Note::info(format!(
        "{} is read up to {STREAMED_ENTRIES} entries, which are sent again and again; --num-dataset-entries asks for more",
        set.name
    )));
    Some(STREAMED_ENTRIES)
}

/// Refuses what shapes other data.
fn refuse_others(typed: &Typed, set: &PublicSet) -> Result<(), UsageError> {
    let brings = format!("shapes generated data, and {SET} brings its own");
    let fix = format!("drop it, or drop {SET}");
    for flags in [&SYNTHETIC_ONLY[..], &["--batch-size"], &MEDIA_BATCHES, &MORE_SYNTHETIC] {
        refuse_all(typed, flags, &brings, &fix)?;
    }
    media::refuse(typed, SET)?;
    let no_trace = format!("acts on traces, and the set {} is none", set.name);
    refuse_all(typed, &["--isl-block-size", "--ignore-trace-delays"], &no_trace, "drop it")?;
    refuse_all(typed, &["--uuid-and-strip"], "needs rows of single_turn", "drop it")?;
    synthesis::refuse(typed)?;
    refuse_all(typed, &replay::FLAGS, &no_trace, "drop it")?;
    if !set.follows(Setting::Schedule) {
        let untimed = format!("needs recorded times, and the set {} has none", set.name);
        refuse_all(typed, &["--fixed-schedule"], &untimed, "drop it")?;
        refuse_all(typed, &OFFSETS, &untimed, "drop it")?;
    }
    Ok(())
}

/// Further flags that shape generated data.
const MORE_SYNTHETIC: [&str; 4] =
    ["--seq-dist", "--random-range-ratio", "--image-source", "--image-source-sampling"];
