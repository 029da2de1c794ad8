//! `baseten_trace`: completions as a server recorded them, one row each, replayed with their own prompts on their
//! recorded times, or one after the other with the recorded think times.

mod columns;
mod group;
mod limits;
mod plan;
mod read;
mod row;
mod sample;
mod session;
mod timing;
mod trace;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aiperf_config::{EndpointKind, FileFormat, InputColumns, TraceReplay};
use aiperf_tokenize::seed::stream;

use self::limits::contradiction;
use self::plan::{LeftOut, Options, Plan, plan};
use self::read::{Read, Wanted, read};
use self::row::Row;
use self::trace::{Extras, Trace};
use super::{Files, FirstTimes, Format, Near, check_one_file};
use crate::json::{self, Fault};
use crate::open::Opening;
use crate::parquet::Table;
use crate::synthesis::{LONGEST_OUTPUT, Outputs};
use crate::{Dataset, DatasetError, Note};

pub(crate) const FORMAT: Format = Format {
    parquet: true,
    trace: true,
    timed: true,
    promotes: true,
    block_size: Some(64),
    options: &[
        "--isl-block-size",
        "--inter-turn-delay-cap-seconds",
        "--ignore-trace-delays",
        "--num-dataset-entries",
        "--synthesis-output-len-multiplier",
        "--synthesis-max-isl",
        "--synthesis-max-osl",
        "--trace-session-sample-ratio",
        "--replay-speedup",
        "--max-idle-gap-cap-seconds",
        "--open-loop-replay",
        "--open-loop-strict",
        "--omit-kv-hints",
        "--force-min-tokens",
        "--input-columns",
    ],
    fields: &columns::ALL,
    fits: |_, look| look.has_table_columns(&columns::CORE),
    times: |look| FirstTimes { timestamp: look.has_table_columns(&[columns::START]), delay: false },
    near: Some(Near {
        keys: &columns::CORE,
        fault: |row| {
            let found = json::object(row, &columns::CORE).ok()?;
            let (name, _) = columns::CORE.iter().zip(found).find(|(_, cell)| cell.is_none())?;
            Some(Fault::new(*name, "the file has no such column"))
        },
    }),
    ..Format::new(FileFormat::BasetenTrace, Files::Parquet, "one request", open)
};

fn open(opening: Opening<'_>) -> Result<Arc<dyn Dataset>, DatasetError> {
    let path = &opening.file.path;
    let replay = &opening.file.replay;
    let table = open_table(path, &opening.file.columns)?;
    let wanted = Wanted { hints: !replay.omit_kv_hints, durations: !replay.open_loop };
    let Read { recorded, canceled } = read(&table, wanted, opening.context.survey)?;
    let rows = recorded.rows.len();
    if let Some(column) = replay.session_column
        && table.column_type(column.name()).is_none()
    {
        return Err(DatasetError::Unsuitable(format!(
            "{}: AIPERF_DATASET_BASETEN_SESSION_COLUMN names `{}`, and the file has no such column; unset it",
            path.display(),
            column.name()
        )));
    }
    let options = options(&opening, replay);
    let mut draws = stream(opening.context.seed, "dataset.session_sample");
    let plan = plan(recorded, &options, opening.finish.names(), &mut draws);
    if plan.conversations.len() == 0 {
        return Err(nothing_left(path, rows, plan.left_out));
    }
    let extras = Extras {
        hints: !replay.omit_kv_hints,
        min_tokens: replay.force_min_tokens,
        endpoint: opening.context.endpoint,
    };
    check_lengths(&opening, &plan.conversations.rows)?;
    if extras.min_tokens {
        check_limits(&opening, &plan.conversations.rows)?;
    }
    let mut notes = notes(&plan, canceled, options.delay_cap.is_none());
    notes.extend(overwritten(&opening, extras, &table));
    let Plan { conversations, ids, .. } = plan;
    let planned = (conversations, ids);
    Ok(Arc::new(Trace::new(table, planned, replay.strict, extras, opening.finish, notes)))
}

fn open_table(path: &Path, names: &InputColumns) -> Result<Arc<Table>, DatasetError> {
    if !path.exists() {
        return Err(DatasetError::Missing { dataset: Some(FORMAT.name().into()), path: path.to_owned() });
    }
    check_one_file(&FORMAT, path)?;
    Table::named(path, names).map(Arc::new)
}

fn options(opening: &Opening<'_>, replay: &TraceReplay) -> Options {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    Options {
        session_column: replay.session_column,
        sample_ratio: replay.session_sample_ratio,
        window: if opening.context.fixed_schedule { opening.file.window } else { (None, None) },
        most_input: opening.file.synthesis.max_isl,
        outputs: Outputs::new(&opening.file.synthesis),
        speedup: replay.speedup,
        open_loop: replay.open_loop,
        strict: replay.strict,
        idle_gap_cap: replay.idle_gap_cap.map(ms),
        delay_cap: opening.config.inter_turn_delay_cap.map(ms),
        drop_times: opening.file.ignore_trace_delays,
        most_conversations: opening.limit(),
    }
}

fn nothing_left(path: &Path, rows: usize, left_out: LeftOut) -> DatasetError {
    let LeftOut { sampled, window, input } = left_out;
    DatasetError::Empty(format!(
        "{}: nothing is left to send: of {rows} row(s) {sampled} are of sessions that were not sampled \
         (--trace-session-sample-ratio), {window} are outside the window of the schedule \
         (--fixed-schedule-start-offset, --fixed-schedule-end-offset) and {input} have a longer prompt than is wanted \
         (--synthesis-max-isl)",
        path.display()
    ))
}

/// Refuses lengths that a multiplier made and no answer has.
fn check_lengths(opening: &Opening<'_>, rows: &[Row]) -> Result<(), DatasetError> {
    let multiplier = opening.file.synthesis.output_len;
    let Some(row) = rows.iter().find(|row| u64::from(row.output_tokens) > LONGEST_OUTPUT && multiplier > 1.0)
    else {
        return Ok(());
    };
    Err(DatasetError::Unsuitable(format!(
        "{}: --synthesis-output-len-multiplier {multiplier:?} makes more than {LONGEST_OUTPUT} tokens of the output of row \
         {}, which are the most; lower it, or set --synthesis-max-osl",
        opening.file.path.display(),
        u64::from(row.number) + 1
    )))
}

/// Servers refuse a request whose limit is below the length that is demanded.
fn check_limits(opening: &Opening<'_>, rows: &[Row]) -> Result<(), DatasetError> {
    let keys: &[&str] = match opening.context.endpoint {
        EndpointKind::Chat => &["max_completion_tokens", "max_tokens"],
        _ => &["max_tokens"],
    };
    let Some(extra) = opening.context.extra_inputs else { return Ok(()) };
    let Some((key, most, row)) = contradiction(rows, extra, keys) else {
        return Ok(());
    };
    Err(DatasetError::Unsuitable(format!(
        "{}: --extra-inputs sets `{key}` to {most}, below the `min_tokens` of {} that row {} demands; shorten recorded \
         lengths with --synthesis-max-osl {most}, or let answers end by themselves with --no-force-min-tokens",
        opening.file.path.display(),
        row.output_tokens,
        u64::from(row.number) + 1
    )))
}

fn notes(plan: &Plan, canceled: u64, uncapped: bool) -> Vec<Note> {
    const LONG_DELAY_MS: f64 = 60_000.0;
    let mut notes = Vec::new();
    if canceled > 0 {
        notes.push(Note::CanceledRows { rows: canceled });
    }
    if plan.raised > 0 {
        notes.push(Note::OutputLengthRaised { turns: plan.raised });
    }
    if plan.left_out.sampled > 0 {
        notes.push(Note::NotSampled { rows: plan.left_out.sampled });
    }
    if plan.left_out.input > 0 {
        notes.push(Note::LongerThanAsked { rows: plan.left_out.input });
    }
    if plan.left_out.window > 0 {
        notes.push(Note::OutsideWindow { rows: plan.left_out.window });
    }
    let longest = plan.conversations.rows.iter().filter_map(Row::delay).fold(0.0, f64::max);
    if uncapped && longest > LONG_DELAY_MS {
        notes.push(Note::LongDelay { longest_ms: longest });
    }
    notes
}

/// Keys of the user that rows of the trace overwrite.
fn overwritten(opening: &Opening<'_>, extras: Extras, table: &Table) -> Vec<Note> {
    let has = |column: &str| extras.hints && table.column_type(column).is_some();
    [
        ("min_tokens", extras.min_tokens, "--no-force-min-tokens"),
        ("hash_ids", has(columns::HASHES), "--omit-kv-hints"),
        ("block_size", has(columns::BLOCK_SIZE), "--omit-kv-hints"),
    ]
    .into_iter()
    .filter(|(key, sent, _)| {
        *sent && opening.context.extra_inputs.is_some_and(|extra| extra.contains_key(*key))
    })
    .map(|(key, _, flag)| Note::ExtraInputOverwritten { key, flag })
    .collect()
}
