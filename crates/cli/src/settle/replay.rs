//! How a trace of completions is replayed.

use aiperf_config::{FileFormat, TraceReplay, Tuning};

use super::endpoint::duration;
use super::{Note, refuse_all};
use crate::typed::Typed;
use crate::usage::UsageError;

/// Flags of the replay.
pub(super) const FLAGS: [&str; 7] = [
    "--replay-speedup",
    "--max-idle-gap-cap-seconds",
    "--trace-session-sample-ratio",
    "--open-loop-replay",
    "--open-loop-strict",
    "--omit-kv-hints",
    "--force-min-tokens",
];

/// What is asked of the replay of a file of `format`. A format that is declared and has no replay refuses the
/// flags; one that was found by looking leaves them without effect.
pub(super) fn settle(
    typed: &Typed,
    format: FileFormat,
    declared: bool,
    tuning: &Tuning,
    notes: &mut Vec<Note>,
) -> Result<TraceReplay, UsageError> {
    if !aiperf_dataset::format(format).takes("--replay-speedup") {
        if declared {
            refuse_all(
                typed,
                &FLAGS,
                &format!("shapes the replay of baseten_trace, and the file is {}", format.name()),
                "drop it, or use --custom-dataset-type baseten_trace",
            )?;
        }
        for flag in FLAGS.into_iter().filter(|flag| typed.has(flag)) {
            notes.push(Note::warning(format!(
                "{} changes nothing: the file is {}, and only baseten_trace is replayed that way",
                typed.name(flag),
                format.name()
            )));
        }
        return Ok(TraceReplay::default());
    }
    let standard = TraceReplay::default();
    let open_loop = typed.switch("--open-loop-replay").unwrap_or(standard.open_loop);
    let strict = typed.is_on("--open-loop-strict");
    if strict && !open_loop {
        return Err(UsageError::combination(
            "--open-loop-strict and --no-open-loop-replay exclude each other: one sends every row on its recorded time, \
             the other waits for answers",
            "keep one of them",
        ));
    }
    Ok(TraceReplay {
        speedup: typed.number("--replay-speedup").unwrap_or(standard.speedup),
        idle_gap_cap: match typed.number("--max-idle-gap-cap-seconds") {
            Some(seconds) => duration(typed, "--max-idle-gap-cap-seconds", seconds)?,
            None => None,
        },
        session_sample_ratio: typed.number("--trace-session-sample-ratio"),
        open_loop,
        strict,
        omit_kv_hints: typed.is_on("--omit-kv-hints"),
        force_min_tokens: typed.switch("--force-min-tokens").unwrap_or(standard.force_min_tokens),
        session_column: tuning.session_column,
    })
}

/// Says what has no effect on a replay whose recorded times are not played.
pub(super) fn without_schedule(typed: &Typed, replay: &TraceReplay, notes: &mut Vec<Note>) {
    if !replay.open_loop {
        return;
    }
    for flag in ["--replay-speedup", "--max-idle-gap-cap-seconds"] {
        if typed.has(flag) {
            notes.push(Note::warning(format!(
                "{} changes nothing: recorded times are not played; drop --no-fixed-schedule or --ignore-trace-delays",
                typed.name(flag)
            )));
        }
    }
}
