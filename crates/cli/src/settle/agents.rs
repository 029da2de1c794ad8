//! How recorded agents are replayed.

use aiperf_config::{AgentReplay, FileFormat, Tuning};

use super::endpoint::duration;
use super::{Note, refuse_all};
use crate::typed::Typed;
use crate::usage::UsageError;

const THINK: &str = "--use-think-time-only";
const IDLE_GAP: &str = "--trace-idle-gap-cap-seconds";
const WRAP: &str = "--allow-dataset-wrap";
pub(super) const CONTEXT: &str = "--max-context-length";

/// What is asked of the replay of a file of `format`.
pub(super) fn settle(
    typed: &Typed,
    format: FileFormat,
    declared: bool,
    tuning: &Tuning,
    notes: &mut Vec<Note>,
) -> Result<AgentReplay, UsageError> {
    let entry = aiperf_dataset::format(format);
    if declared && !entry.takes(CONTEXT) {
        refuse_all(
            typed,
            &[CONTEXT],
            &format!("chooses traces by the context they need, and {} says nothing of it", format.name()),
            "drop it, or use --custom-dataset-type weka_trace",
        )?;
    }
    for flag in [THINK, IDLE_GAP, CONTEXT] {
        if typed.has(flag) && !entry.takes(flag) {
            notes.push(Note::warning(format!(
                "{} changes nothing: {} is no trace of agents that it acts on",
                typed.name(flag),
                format.name()
            )));
        }
    }
    if typed.is_on(THINK) {
        for other in ["--ignore-trace-delays", "--fixed-schedule"] {
            if typed.is_on(other) && entry.takes(THINK) {
                return Err(UsageError::combination(
                    format!(
                        "{THINK} and {other} exclude each other: one waits for recorded think times, the other does not"
                    ),
                    "keep one of them",
                ));
            }
        }
    }
    if format == FileFormat::WekaTrace {
        refuse_all(
            typed,
            &["--isl-block-size"],
            "does not go with weka_trace: each trace says its own block size",
            "drop it",
        )?;
    }
    if typed.switch(WRAP) == Some(false) && !entry.takes(WRAP) {
        notes.push(Note::warning(format!(
            "--no-allow-dataset-wrap changes nothing: {} is no trace of agents that it acts on",
            format.name()
        )));
    }
    let takes = |flag| entry.takes(flag) && typed.has(flag);
    Ok(AgentReplay {
        think_time_only: takes(THINK) && typed.is_on(THINK),
        idle_gap_cap: match typed.number(IDLE_GAP).filter(|_| takes(IDLE_GAP)) {
            Some(seconds) => duration(typed, IDLE_GAP, seconds)?,
            None => None,
        },
        max_context_length: typed.count(CONTEXT).filter(|_| takes(CONTEXT)),
        wrap: !(entry.takes(WRAP) && typed.switch(WRAP) == Some(false)),
        ..tuning.agents
    })
}
