//! Whether requests leave at recorded times, and at which of them.

use std::path::Path;

use aiperf_config::{FileFormat, FixedSchedule, InputColumns, Sampling, redact_reference};

use super::dataset::of_file;
use super::{DatasetProbe, Note, refuse_all};
use crate::typed::Typed;
use crate::usage::UsageError;

pub(super) const OFFSETS: [&str; 3] =
    ["--fixed-schedule-auto-offset", "--fixed-schedule-start-offset", "--fixed-schedule-end-offset"];

/// A data file of a known format.
#[derive(Clone, Copy)]
pub(super) struct Looked<'a> {
    pub(super) path: &'a Path,
    pub(super) format: FileFormat,
    pub(super) columns: &'a InputColumns,
    /// Whether its first record makes a fixed schedule, where the format was found by looking at it.
    pub(super) detected: Option<bool>,
    pub(super) probe: &'a dyn DatasetProbe,
}

/// The fixed schedule, if there is one, and whether the file made it so.
pub(super) fn settle(
    typed: &Typed,
    Looked { path, format, columns, detected, probe }: Looked<'_>,
    think_time_only: bool,
    notes: &mut Vec<Note>,
) -> Result<Option<(FixedSchedule, bool)>, UsageError> {
    let asked = asks_for_schedule(typed)?;
    let opted_out = typed.is_on("--no-fixed-schedule");
    let ignored = typed.is_on("--ignore-trace-delays");
    let unreadable = |what: String| of_file(typed, &what);
    let mut promoted = false;
    if asked {
        let timing = probe.recorded_times(path, format, columns).map_err(unreadable)?;
        if !timing.timestamp {
            return Err(UsageError::combination(
                format!(
                    "--fixed-schedule needs recorded times: the first record of {} ({}) has no timestamp{}",
                    path.display(),
                    format.name(),
                    if timing.delay { ", only a delay" } else { "" }
                ),
                "drop --fixed-schedule, or use a file whose records have a timestamp",
            ));
        }
    } else if !opted_out && !ignored && !think_time_only {
        promoted = if let Some(timed) = detected {
            timed
        } else {
            let timing = probe.first_record_timing(path, format, columns).map_err(unreadable)?;
            timing.promotes && timing.timestamp
        };
        let entry = aiperf_dataset::format(format);
        // Of formats that are played when asked for, and of columns from elsewhere that nobody called a trace.
        let held_back = !entry.promotes || detected == Some(false);
        if entry.timed
            && held_back
            && probe.first_record_timing(path, format, columns).map_err(unreadable)?.timestamp
        {
            notes.push(Note::warning(format!(
                "{} ({}) has recorded times, and they are not used: --fixed-schedule sends on them, --no-fixed-schedule \
                 says that this is meant",
                redact_reference(&path.display().to_string()),
                format.name()
            )));
        }
    }
    if !asked && !promoted {
        refuse_all(
            typed,
            &OFFSETS,
            "needs a fixed schedule",
            "add --fixed-schedule, with a file whose records have a timestamp, or drop it",
        )?;
        return Ok(None);
    }
    let origin = format!("{} ({})", path.display(), format.name());
    Ok(Some((planned(typed, promoted.then_some(&*origin))?, promoted)))
}

/// Whether a fixed schedule is asked for.
pub(super) fn asks_for_schedule(typed: &Typed) -> Result<bool, UsageError> {
    let asked = typed.is_on("--fixed-schedule");
    for other in ["--no-fixed-schedule", "--ignore-trace-delays"] {
        if asked && typed.is_on(other) {
            return Err(UsageError::combination(
                format!("--fixed-schedule and {other} exclude each other"),
                "keep one of them",
            ));
        }
    }
    Ok(asked)
}

/// The schedule of recorded times; `promoted` names the data that made it so without being asked.
pub(super) fn planned(typed: &Typed, promoted: Option<&str>) -> Result<FixedSchedule, UsageError> {
    let paced =
        ["--request-rate", "--arrival-pattern", "--arrival-smoothness", "--request-rate-ramp-duration"];
    if let Some(flag) = paced.into_iter().find(|flag| typed.has(flag)) {
        let flag = typed.name(flag);
        return Err(if let Some(origin) = promoted {
            UsageError::combination(
                format!("{flag} conflicts with the recorded times of {origin}, which make a fixed schedule"),
                format!("add --no-fixed-schedule to ignore the times, or drop {flag}"),
            )
        } else {
            UsageError::combination(
                format!("{flag} and --fixed-schedule exclude each other: recorded times pace the requests"),
                format!("drop {flag}, or replace --fixed-schedule by --no-fixed-schedule"),
            )
        });
    }
    let start = typed.count("--fixed-schedule-start-offset");
    let end = typed.count("--fixed-schedule-end-offset");
    let auto = typed.switch("--fixed-schedule-auto-offset");
    if auto == Some(true) && start.is_some() {
        return Err(UsageError::combination(
            "--fixed-schedule-auto-offset and --fixed-schedule-start-offset exclude each other: both say where the \
             schedule starts",
            "keep one of them",
        ));
    }
    if let (Some(start), Some(end)) = (start, end)
        && start > end
    {
        return Err(UsageError::combination(
            format!("--fixed-schedule-start-offset {start} lies after --fixed-schedule-end-offset {end}"),
            "swap them",
        ));
    }
    let zero_ms = match (start, auto) {
        (Some(start), _) => Some(start as f64),
        (None, Some(false)) => Some(0.0),
        (None, _) => None,
    };
    Ok(FixedSchedule { zero_ms })
}

/// A fixed schedule has an order of its own.
pub(super) fn refuse_sampling(typed: &Typed, sampling: Sampling) -> Result<(), UsageError> {
    if sampling == Sampling::Sequential {
        return Ok(());
    }
    Err(UsageError::combination(
        format!(
            "{} does not go with a fixed schedule, which plays every conversation once in its order",
            typed.name("--dataset-sampling-strategy")
        ),
        "drop it, or add --no-fixed-schedule",
    ))
}

/// The part of the recorded times that is played, ms.
pub(super) fn window(typed: &Typed) -> (Option<f64>, Option<f64>) {
    let offset = |flag| typed.count(flag).map(|ms| ms as f64);
    (offset("--fixed-schedule-start-offset"), offset("--fixed-schedule-end-offset"))
}
