//! One metric's values over all records, sorted; and the same for a few figures that are not metrics.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use aiperf_clock::Mono;

use super::{looks_at, statistics};
use crate::block::Block;
use crate::context::Context;
use crate::facts::{Field, Source};
use crate::formula;
use crate::registry::{self, Flag, Kind, Metric, ValueType};
use crate::store::block::Row;
use crate::store::{PhaseStore, Tally};

/// Records from which on a second thread pays.
const WORTH_A_THREAD: u64 = 20_000;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// A metric, in its own unit.
    Metric(Metric),
    /// Issue to send, ns.
    Lag,
    /// Due, or let go by a cap, to send, ns.
    Lateness,
    /// Due to let go, ns.
    CapWait,
    /// Scheduled to due, ns.
    Slip,
    /// Scheduled to send, of valid records, ns.
    Replay,
    /// Due to first content event, ns.
    IntendedFirstToken,
    /// Due to last content event, ns.
    IntendedLatency,
}

/// The figures of all columns of a phase.
pub(crate) struct Columns {
    /// Blocks of metrics, in shown units, in the order of exports.
    pub(crate) blocks: Vec<(Metric, Block)>,
    /// Blocks of metrics that are only summed up, and of no use otherwise.
    summed: Vec<(Metric, Block)>,
    sides: Vec<(Column, Block)>,
    nearest: Vec<(Metric, Block)>,
    /// First send and last content event of valid records.
    pub(crate) span: Option<(Mono, Mono)>,
    /// Percentiles 50, 90 and 99 of the replay offset above the smallest, ns.
    pub(crate) replay_lag: Option<[f64; 3]>,
}

/// What one column gives.
struct Made {
    column: Column,
    block: Block,
    nearest: Option<(Metric, Block)>,
    replay_lag: Option<[f64; 3]>,
}

impl Columns {
    /// Makes all columns, one after the other on each thread.
    pub(crate) fn of(store: &PhaseStore, context: &Context) -> Columns {
        let wanted = wanted(context);
        let next = AtomicUsize::new(0);
        let made = Mutex::new(Vec::new());
        let records = store.tally.valid + store.tally.failed;
        let work = || {
            let mut values = Vec::new();
            while let Some(column) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                let one = make(*column, store, context, &mut values);
                // A poisoned lock means the other thread panicked, and so will the scope.
                if let (Some(one), Ok(mut made)) = (one, made.lock()) {
                    made.push(one);
                }
            }
        };
        if records < WORTH_A_THREAD {
            work();
        } else {
            std::thread::scope(|scope| {
                scope.spawn(work);
                work();
            });
        }
        let made = made.into_inner().unwrap_or_default();
        let mut columns = Columns {
            blocks: Vec::new(),
            summed: Vec::new(),
            sides: Vec::new(),
            nearest: Vec::new(),
            span: span(store),
            replay_lag: None,
        };
        for one in made {
            columns.nearest.extend(one.nearest);
            columns.replay_lag = columns.replay_lag.or(one.replay_lag);
            match one.column {
                Column::Metric(metric) if matches!(metric.def().kind, Kind::Aggregate(_)) => {
                    columns.summed.push((metric, one.block));
                }
                Column::Metric(metric) => columns.blocks.push((metric, one.block)),
                side => columns.sides.push((side, one.block)),
            }
        }
        columns.blocks.sort_by_key(|(metric, _)| *metric);
        columns
    }

    /// The figures of a metric, in its shown unit.
    pub(crate) fn block(&self, metric: Metric) -> Option<&Block> {
        self.blocks.iter().chain(&self.summed).find(|(each, _)| *each == metric).map(|(_, block)| block)
    }

    /// The sum of a metric, in its shown unit.
    pub(crate) fn sum(&self, metric: Metric) -> Option<f64> {
        self.block(metric)?.sum
    }

    /// How many records have a metric.
    pub(crate) fn count(&self, metric: Metric) -> Option<u64> {
        self.block(metric)?.count
    }

    /// The figures of a column that is no metric; times in ns, those from the due instant in ms.
    pub(crate) fn side(&self, column: Column) -> Option<&Block> {
        self.sides.iter().find(|(each, _)| *each == column).map(|(_, block)| block)
    }
}

/// The columns of a run.
fn wanted(context: &Context) -> Vec<Column> {
    let metrics = registry::all()
        .filter(|def| context.applies(def.metric))
        .filter(|def| match def.kind {
            Kind::Record => def.value_type != ValueType::IntList,
            Kind::Derived => def.has(Flag::NetworkCalibrated) && !def.has(Flag::RunOnly),
            Kind::Aggregate(_) => {
                matches!(def.metric, Metric::OslMismatchCount | Metric::UsageDiscrepancyCount)
            }
            Kind::Injected => matches!(def.metric, Metric::EffectiveLatency | Metric::CreditToStartLatency),
        })
        .map(|def| Column::Metric(def.metric));
    let mut all: Vec<Column> = metrics.collect();
    all.extend([Column::Lag, Column::Lateness, Column::CapWait, Column::Slip, Column::IntendedLatency]);
    if context.applies(Metric::TimeToFirstToken) {
        all.push(Column::IntendedFirstToken);
    }
    if context.fixed_schedule {
        all.push(Column::Replay);
    }
    all
}

/// Unpacks, sorts and sums up one column. `values` is working memory: eight bytes per record.
fn make(column: Column, store: &PhaseStore, context: &Context, values: &mut Vec<f64>) -> Option<Made> {
    values.clear();
    let streaming_only = matches!(column, Column::IntendedFirstToken)
        || matches!(column, Column::Metric(metric) if metric.def().has(Flag::Streaming));
    for view in store.views() {
        for row in view.rows() {
            if streaming_only && row.is(Field::NotStreamed) {
                continue;
            }
            if let Some(value) = value(column, &row, context) {
                if values.len() == values.capacity() {
                    // Exactly what is needed, once: doubling would cost up to twice the column.
                    values.reserve_exact((store.tally.valid + store.tally.failed) as usize);
                }
                values.push(value);
            }
        }
    }
    values.sort_unstable_by(f64::total_cmp);
    let (divisor, unit) = match column {
        Column::Metric(metric) => (metric.def().shown_divisor(), metric.def().display_unit),
        Column::IntendedFirstToken | Column::IntendedLatency => (1e6, registry::units::MS),
        _ => (1.0, registry::units::NS),
    };
    let mut made =
        Made { column, block: statistics::block(values, divisor, unit)?, nearest: None, replay_lag: None };
    if let Column::Metric(metric) = column {
        if metric.def().has(Flag::NetworkCalibrated) {
            made.block.count = None;
        }
        made.nearest = adjusted_copy(metric)
            .filter(|_| store.tally.failed > 0)
            .map(|copy| (copy, error_adjusted(values, store.tally.failed as usize, divisor)));
    }
    if column == Column::Replay {
        let least = values[0];
        for offset in values.iter_mut() {
            *offset -= least;
        }
        made.replay_lag =
            Some([50.0, 90.0, 99.0].map(|q| statistics::percentile(values, q).unwrap_or_default()));
    }
    Some(made)
}

fn value(column: Column, row: &Row<'_>, context: &Context) -> Option<f64> {
    let raw = |field| row.get(field).map(|value| value as f64);
    let valid = || !row.is(Field::Failed);
    match column {
        Column::Metric(metric) => {
            if !looks_at(metric, row.is(Field::Failed)) {
                return None;
            }
            formula::value(metric, row, context)
        }
        Column::Lag => raw(Field::SinceIssue),
        Column::Lateness if row.is(Field::InitialFill) => None,
        Column::Lateness => Some(raw(Field::SinceDue)? - raw(Field::CapWait)?),
        Column::CapWait => raw(Field::CapWait),
        Column::Slip => raw(Field::Slip),
        Column::Replay if valid() => Some(raw(Field::SinceDue)? + raw(Field::Slip)?),
        Column::IntendedFirstToken if valid() => Some(raw(Field::SinceDue)? + raw(Field::FirstContent)?),
        Column::IntendedLatency if valid() => Some(raw(Field::SinceDue)? + formula::latency(row)?),
        Column::Replay | Column::IntendedFirstToken | Column::IntendedLatency => None,
    }
}

/// First send and last content event of valid records.
fn span(store: &PhaseStore) -> Option<(Mono, Mono)> {
    let mut span: Option<(i64, i64)> = None;
    for view in store.views() {
        for row in view.rows() {
            let ends = row.get(Field::Start).zip(formula::latency(&row));
            if let (Some((start, latency)), false) = (ends, row.is(Field::Failed)) {
                let (first, last) = span.unwrap_or((i64::MAX, i64::MIN));
                span = Some((first.min(start), last.max(start + latency as i64)));
            }
        }
    }
    span.map(|(first, last)| (Mono(first as u64), Mono(last as u64)))
}

/// The error-adjusted copy of a metric.
fn adjusted_copy(metric: Metric) -> Option<Metric> {
    match metric {
        Metric::RequestLatency => Some(Metric::AdjRequestLatency),
        Metric::TimeToFirstToken => Some(Metric::AdjTimeToFirstToken),
        Metric::InterTokenLatency => Some(Metric::AdjInterTokenLatency),
        Metric::DecodeDuration => Some(Metric::AdjDecodeDuration),
        _ => None,
    }
}

/// The error-adjusted copies of the metrics that have one; none without failures. When every request failed,
/// every percentile is infinite.
pub(crate) fn adjusted(columns: &Columns, tally: &Tally, context: &Context) -> Vec<(Metric, Block)> {
    if tally.valid > 0 {
        return columns.nearest.clone();
    }
    registry::all()
        .filter(|def| tally.failed > 0 && context.applies(def.metric))
        .filter_map(|def| adjusted_copy(def.metric))
        .map(|copy| (copy, error_adjusted(&[], tally.failed as usize, 1.0)))
        .collect()
}

/// Percentiles where each failed record counts as infinitely slow: the nearest sample of the valid values with
/// one infinity behind them per failure.
fn error_adjusted(sorted: &[f64], failed: usize, divisor: f64) -> Block {
    let n = sorted.len() + failed;
    let mut block = Block {
        unit: registry::units::MS,
        min: sorted.first().map(|value| value / divisor),
        count: Some(n as u64),
        ..Block::default()
    };
    statistics::set_percentiles(&mut block, |q| {
        let index = (q / 100.0 * (n - 1) as f64).round_ties_even() as usize;
        Some(sorted.get(index).map_or(f64::INFINITY, |value| value / divisor))
    });
    block
}
