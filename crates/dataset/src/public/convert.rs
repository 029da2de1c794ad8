//! From rows to conversations, as many rows at once as there are cores.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use aiperf_tokenize::Tokenizer;
use aiperf_types::{ContextMode, Turn};

use super::store::Writer;
use super::{Choice, Fault, PublicSet, Row, Rows};

/// Rows that are converted together, at most.
const BATCH_ROWS: u64 = 256;
/// Bytes of rows that are converted together, roughly at most.
const BATCH_BYTES: usize = 32 << 20;
/// Below this, threads cost more than they save.
const FEW_ROWS: usize = 4;

/// What a converter must know of the run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The set.
    pub set: &'a PublicSet,
    /// Where its rows come from, as it is named in messages.
    pub origin: &'a str,
    /// `--dataset-filter`, trimmed, each key once.
    pub filters: &'a [(String, String)],
    /// Rows that yield something, at most; `None` for all.
    pub bound: Option<u64>,
    /// The run's tokenizer, where the set counts tokens.
    pub tokenizer: Option<&'a Tokenizer>,
    /// The profiling phase plays a fixed schedule.
    pub fixed_schedule: bool,
}

/// Makes conversations of rows. One kind of rows is one file beside this one; a set is a row of the registry.
pub trait Converter: Sync {
    /// The columns that are read, of rows that are stored by columns; `None` for all.
    fn columns(&self) -> Option<Vec<&str>> {
        None
    }

    /// The columns by which [`Converter::chooses`] tells whether a row is wanted; `None` where all are. They are read
    /// first, and the others only where a row is wanted.
    fn chooses_by(&self) -> Option<Vec<&str>> {
        None
    }

    /// Whether a row is wanted. Called once for each row, in their order.
    fn chooses(&self, row: &Row) -> Result<bool, Fault> {
        let _ = row;
        Ok(true)
    }

    /// The columns without which the set is none that this can convert.
    fn required(&self) -> Vec<&str> {
        Vec::new()
    }

    /// What a row is. Called by several threads, in any order.
    fn convert(&self, row: &Row) -> Result<Made, Fault>;

    /// Hears what was made of the rows, in their order and up to the bound.
    fn took(&mut self, row: &Row, made: &Made) -> Result<(), Fault> {
        let _ = (row, made);
        Ok(())
    }

    /// What is worth saying when all were read, a line each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Recorded tokens of each request that was made, input and output limit together, where rows record them.
    fn request_tokens(&self) -> Vec<u64> {
        Vec::new()
    }

    /// The fault of a set of which nothing is left.
    fn nothing(&self) -> Option<Fault> {
        None
    }
}

/// What was made of a row.
#[derive(Clone, Debug)]
pub enum Made {
    /// Nothing, for this reason: `blank prompt`.
    Skipped(&'static str),
    /// Conversations; the row counts once.
    Conversations(Vec<Draft>),
}

impl Made {
    /// One conversation of one turn.
    pub fn one(turn: Turn) -> Made {
        Made::Conversations(vec![Draft { turns: vec![turn], ..Draft::default() }])
    }
}

/// A conversation before it has a number.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Its id; made by the run where there is none.
    pub id: Option<Arc<str>>,
    /// The session that it was recorded in, sent as `X-Dynamo-Session-ID`; a header value.
    pub source_session: Option<Arc<str>>,
    /// How its turns build on each other.
    pub mode: ContextMode,
    /// Its turns, at least one.
    pub turns: Vec<Turn>,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows that were read, wanted or not.
    pub rows: u64,
    /// Conversations that were kept.
    pub conversations: u64,
    /// Turns of them.
    pub turns: u64,
    /// What the user should know, a line each.
    pub notes: Vec<String>,
    /// Recorded tokens of each request, input and output limit together, where rows record them; in no order.
    pub request_tokens: Vec<u64>,
}

/// Reads rows until the bound is met, and keeps what is made of them in a file at `store`. `stopped` is asked now and then
/// whether to give up.
pub fn read(
    job: &Job<'_>,
    converter: &mut dyn Converter,
    shards: &mut dyn Iterator<Item = Result<super::Shard, Fault>>,
    store: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<Summary, Fault> {
    let mut writer = Writer::create(store)?;
    let mut summary = Summary::default();
    let mut skipped: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut left = job.bound.unwrap_or(u64::MAX);
    let columns = converter.columns().map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
    let names = columns.as_ref().map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut rows = Rows::new(shards, names.as_deref());
    let by: Option<Vec<String>> =
        converter.chooses_by().map(|names| names.into_iter().map(str::to_owned).collect());
    let mut batch: Vec<Row> = Vec::new();
    let mut first = true;
    while left > 0 {
        if stopped() {
            return Err(Fault::new("it was interrupted", "Run again; nothing was left behind"));
        }
        batch.clear();
        let mut bytes = 0;
        while (batch.len() as u64) < left.min(BATCH_ROWS) && bytes < BATCH_BYTES {
            let wants = |row: &Row| converter.chooses(row);
            let choice = by.as_deref().map(|columns| Choice { columns, wants: &wants });
            let Some(row) = rows.next_of(choice.as_ref()) else { break };
            let row = row?;
            bytes += row.value.size();
            batch.push(row);
        }
        let Some(row) = batch.first() else { break };
        if first {
            has_columns(row, &converter.required())?;
            first = false;
        }
        let made = convert_all(converter, &batch);
        for (row, made) in batch.iter().zip(made) {
            let made = made?;
            converter.took(row, &made)?;
            match made {
                Made::Skipped(reason) => *skipped.entry(reason).or_default() += 1,
                Made::Conversations(drafts) => {
                    for draft in &drafts {
                        summary.conversations += 1;
                        summary.turns += draft.turns.len() as u64;
                        writer.add(draft)?;
                    }
                    left -= 1;
                }
            }
        }
    }
    summary.rows = rows.read();
    summary.notes = converter.notes();
    summary.request_tokens = converter.request_tokens();
    summary.notes.extend(skipped.iter().map(|(reason, rows)| format!("{rows} row(s) left out: {reason}")));
    if summary.conversations == 0 {
        return Err(converter.nothing().unwrap_or_else(|| nothing(summary.rows, &skipped)));
    }
    writer.finish()?;
    Ok(summary)
}

/// What to warn of when the context of the target holds `limit` tokens, of which some requests have more.
pub fn beyond_context(request_tokens: &[u64], limit: u64) -> Option<String> {
    let longer = request_tokens.iter().filter(|tokens| **tokens > limit).count();
    (longer > 0).then(|| {
        format!(
            "{longer} of {} recorded call(s) have more input and output tokens than the {limit} that the target takes; its \
             chat template adds to them",
            request_tokens.len()
        )
    })
}

/// Whether a set has these columns, by its first row.
fn has_columns(first: &Row, required: &[&str]) -> Result<(), Fault> {
    let there = first.columns();
    let Some(missing) = required.iter().find(|column| !there.contains(column)) else { return Ok(()) };
    Err(Fault::new(
        format!("it has no column `{missing}`: the columns of {} are {}", first.shard, there.join(", ")),
        "Choose the subset that has it with --hf-subset, or another set with `aiperf datasets`",
    ))
}

fn nothing(rows: u64, skipped: &BTreeMap<&'static str, u64>) -> Fault {
    let why: Vec<String> = skipped.iter().map(|(reason, rows)| format!("{rows} {reason}")).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join(", ")) };
    Fault::new(
        format!("no conversations: none of {rows} row(s) is a request{why}"),
        "Choose another set with `aiperf datasets`, or another subset with --hf-subset",
    )
}

/// What each row is, in their order.
fn convert_all(converter: &dyn Converter, rows: &[Row]) -> Vec<Result<Made, Fault>> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(rows.len());
    if threads < 2 || rows.len() < FEW_ROWS {
        return rows.iter().map(|row| converter.convert(row)).collect();
    }
    let part = rows.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = rows
            .chunks(part)
            .map(|rows| scope.spawn(|| rows.iter().map(|row| converter.convert(row)).collect::<Vec<_>>()))
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
