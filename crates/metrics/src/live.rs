//! Running figures while the run goes on: counts and coarse distributions that a record costs a few additions.
//!
//! Each thread that finishes records has its own [`Recorder`]; whoever shows figures reads all of them at any
//! time, without a lock. A percentile is within 1 % of the exact one, and never outside of what was seen.

use std::borrow::Borrow;
use std::sync::atomic::{AtomicU64, Ordering};

use aiperf_types::PhaseKind;

use crate::registry::Metric;
use crate::value::RecordValues;

/// Cells per power of two.
const CELLS_LOG2: u32 = 6;
/// Powers of two above the cells that are exact.
const POWERS: usize = 40;
const CELLS: usize = (POWERS + 1) << CELLS_LOG2;

/// A distribution that is shown.
struct Shown {
    name: &'static str,
    metric: Metric,
    unit: &'static str,
    /// Whole numbers are counted: this many to a shown unit.
    scale: f64,
    percentiles: [(&'static str, f64); 4],
}

const TIMES: [(&str, f64); 4] = [("p50", 0.5), ("p75", 0.75), ("p95", 0.95), ("p99", 0.99)];
const LENGTHS: [(&str, f64); 4] = [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p99", 0.99)];

const SHOWN: [Shown; 6] = [
    Shown { name: "ttft", metric: Metric::TimeToFirstToken, unit: "ms", scale: 1e6, percentiles: TIMES },
    Shown { name: "itl", metric: Metric::InterTokenLatency, unit: "ms", scale: 1e6, percentiles: TIMES },
    Shown { name: "e2e", metric: Metric::RequestLatency, unit: "ms", scale: 1e6, percentiles: TIMES },
    Shown {
        name: "intvty",
        metric: Metric::OutputTokenThroughputPerUser,
        unit: "tokens/sec/user",
        scale: 1e3,
        percentiles: TIMES,
    },
    Shown { name: "isl", metric: Metric::InputSequenceLength, unit: "", scale: 1.0, percentiles: LENGTHS },
    Shown { name: "osl", metric: Metric::OutputSequenceLength, unit: "", scale: 1.0, percentiles: LENGTHS },
];

/// The running figures of one thread.
#[derive(Debug, Default)]
pub struct Recorder {
    warmup: Counters,
    profiling: Counters,
}

#[derive(Debug)]
struct Counters {
    valid: AtomicU64,
    failed: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
    /// The cells of all distributions, one after the other.
    cells: Box<[AtomicU64]>,
    /// The least and the greatest number of each distribution.
    ends: [(AtomicU64, AtomicU64); SHOWN.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            valid: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            input_tokens: AtomicU64::new(0),
            output_tokens: AtomicU64::new(0),
            cells: (0..SHOWN.len() * CELLS).map(|_| AtomicU64::new(0)).collect(),
            ends: std::array::from_fn(|_| (AtomicU64::new(u64::MAX), AtomicU64::new(0))),
        }
    }
}

impl Recorder {
    /// No figures.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Counts a record by its values.
    pub fn record(&self, phase: PhaseKind, valid: bool, values: &RecordValues) {
        let counters = self.phase(phase);
        let add = |counter: &AtomicU64, amount: u64| counter.fetch_add(amount, Ordering::Relaxed);
        if !valid {
            add(&counters.failed, 1);
            return;
        }
        add(&counters.valid, 1);
        let distributions = counters.cells.chunks_exact(CELLS).zip(&counters.ends);
        for (shown, (cells, (least, most))) in SHOWN.iter().zip(distributions) {
            if let Some(value) = values.number(shown.metric) {
                let number = (value * shown.scale) as u64;
                // One thread writes: what was read is still there.
                if number < least.load(Ordering::Relaxed) {
                    least.store(number, Ordering::Relaxed);
                }
                if number > most.load(Ordering::Relaxed) {
                    most.store(number, Ordering::Relaxed);
                }
                add(&cells[cell(number)], 1);
                match shown.metric {
                    Metric::InputSequenceLength => add(&counters.input_tokens, value as u64),
                    Metric::OutputSequenceLength => add(&counters.output_tokens, value as u64),
                    _ => 0,
                };
            }
        }
    }

    fn phase(&self, phase: PhaseKind) -> &Counters {
        match phase {
            PhaseKind::Warmup => &self.warmup,
            PhaseKind::Profiling => &self.profiling,
        }
    }
}

/// Figures of a phase so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Valid records.
    pub valid: u64,
    /// Failed records.
    pub failed: u64,
    /// Input tokens of valid records.
    pub input_tokens: u64,
    /// Output tokens of valid records.
    pub output_tokens: u64,
    /// Distributions that have values: `ttft`, `itl`, `e2e`, `intvty`, `isl`, `osl`.
    pub distributions: Vec<Distribution>,
}

/// One distribution so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Short name.
    pub name: &'static str,
    /// Unit; `""` for counts of tokens.
    pub unit: &'static str,
    /// Percentiles by name.
    pub percentiles: Vec<(&'static str, f64)>,
}

/// Failed records of a phase so far, of all threads together: a part of [`read`] that costs next to nothing.
pub fn failed<R: Borrow<Recorder>>(recorders: &[R], phase: PhaseKind) -> u64 {
    recorders.iter().map(|recorder| recorder.borrow().phase(phase).failed.load(Ordering::Relaxed)).sum()
}

/// The figures of all threads together.
pub fn read<R: Borrow<Recorder>>(recorders: &[R], phase: PhaseKind) -> Reading {
    let counters = || recorders.iter().map(|recorder| recorder.borrow().phase(phase));
    let sum = |of: fn(&Counters) -> &AtomicU64| -> u64 {
        counters().map(|counters| of(counters).load(Ordering::Relaxed)).sum()
    };
    let distributions = SHOWN.iter().enumerate().filter_map(|(index, shown)| {
        let mut counts = vec![0u64; CELLS];
        let (mut least, mut most) = (u64::MAX, 0);
        for counters in counters() {
            let ends = &counters.ends[index];
            least = least.min(ends.0.load(Ordering::Relaxed));
            most = most.max(ends.1.load(Ordering::Relaxed));
            for (count, cell) in counts.iter_mut().zip(&counters.cells[index * CELLS..]) {
                *count += cell.load(Ordering::Relaxed);
            }
        }
        let total: u64 = counts.iter().sum();
        (total > 0).then(|| Distribution {
            name: shown.name,
            unit: shown.unit,
            percentiles: shown
                .percentiles
                .iter()
                .map(|(name, share)| {
                    let number = percentile(&counts, total, *share).min(most as f64).max(least as f64);
                    (*name, number / shown.scale)
                })
                .collect(),
        })
    });
    Reading {
        valid: sum(|counters| &counters.valid),
        failed: sum(|counters| &counters.failed),
        input_tokens: sum(|counters| &counters.input_tokens),
        output_tokens: sum(|counters| &counters.output_tokens),
        distributions: distributions.collect(),
    }
}

/// Middle of the cell that holds the smallest number with at least this share at or below it.
fn percentile(counts: &[u64], total: u64, share: f64) -> f64 {
    let wanted = (share * total as f64).ceil().max(1.0) as u64;
    let mut below = 0;
    for (cell, count) in counts.iter().enumerate() {
        below += count;
        if below >= wanted {
            return middle(cell);
        }
    }
    middle(counts.len() - 1)
}

fn cell(number: u64) -> usize {
    if number >> CELLS_LOG2 == 0 {
        return number as usize;
    }
    let power = number.ilog2() - CELLS_LOG2;
    let within = (number >> power) as usize & ((1 << CELLS_LOG2) - 1);
    ((((power + 1) as usize) << CELLS_LOG2) + within).min(CELLS - 1)
}

fn middle(cell: usize) -> f64 {
    let within = (cell & ((1 << CELLS_LOG2) - 1)) as u64;
    match (cell >> CELLS_LOG2) as u32 {
        0 => within as f64,
        power => {
            let width = 1u64 << (power - 1);
            let low = (within + (1 << CELLS_LOG2)) * width;
            low as f64 + (width - 1) as f64 / 2.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn a_cell_is_within_one_percent_of_its_numbers() {
        for number in (0..1u64 << 20).step_by(37).chain([1 << 30, (1 << 44) + 12_345]) {
            let off = (middle(cell(number)) - number as f64).abs();
            assert!(off <= 0.008 * number as f64, "{number}: {}", middle(cell(number)));
        }
    }

    #[test]
    fn a_percentile_is_never_outside_of_what_was_seen() {
        let recorder = Recorder::new();
        let mut values = RecordValues::new();
        values.insert(Metric::InputSequenceLength, Value::Int(550));
        recorder.record(PhaseKind::Profiling, true, &values);
        let reading = read(&[&recorder], PhaseKind::Profiling);
        assert!(
            reading.distributions[0].percentiles.iter().all(|(_, value)| (*value - 550.0).abs() < 1e-9),
            "{reading:?}"
        );
    }

    #[test]
    fn threads_are_read_together_and_phases_apart() {
        let (one, two) = (Recorder::new(), Recorder::new());
        let mut values = RecordValues::new();
        for (recorder, milliseconds) in [(&one, 10.0), (&two, 20.0), (&two, 30.0)] {
            values.clear();
            values.insert(Metric::RequestLatency, Value::Float(milliseconds));
            values.insert(Metric::InputSequenceLength, Value::Int(7));
            recorder.record(PhaseKind::Profiling, true, &values);
        }
        one.record(PhaseKind::Profiling, false, &values);
        one.record(PhaseKind::Warmup, true, &values);
        let reading = read(&[&one, &two], PhaseKind::Profiling);
        assert_eq!(
            (reading.valid, reading.failed, reading.input_tokens, reading.output_tokens),
            (3, 1, 21, 0)
        );
        let names: Vec<&str> = reading.distributions.iter().map(|each| each.name).collect();
        assert_eq!(names, ["e2e", "isl"]);
        let median = reading.distributions[0].percentiles[0];
        assert_eq!(median.0, "p50");
        assert!((median.1 - 20.0).abs() < 0.2, "{median:?}");
        assert_eq!(reading.distributions[1].percentiles[3], ("p99", 7.0));
        assert_eq!(read(&[&one, &two], PhaseKind::Warmup).valid, 1);
    }
}
