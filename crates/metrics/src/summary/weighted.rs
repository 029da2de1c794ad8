//! A distribution of values weighted by the time they lasted, in bounded memory.

use crate::block::Block;

/// Cells per power of two: the value at a percentile is off by less than 1 / CELLS of itself.
const CELLS_LOG2: u32 = 11;

/// Values with their time, in nanoseconds.
///
/// Values fall into cells by their sign, exponent and first mantissa bits, so the cells of a curve are few and
/// lie close together. Each keeps its largest value: a cell in which only one value occurs is exact, and whole
/// numbers up to 4,096 have cells of their own.
#[derive(Debug, Default)]
pub(crate) struct Weighted {
    /// Cells of one exponent, made when it first occurs.
    exponents: Vec<(u32, Box<[Cell]>)>,
    /// Time in which the value was 0, and in which it was not.
    zero: u64,
    busy: u64,
    /// Mean of the values other than 0, and sum of squared deviations from it (West, 1979).
    mean: f64,
    deviations: f64,
    /// Smallest value other than 0.
    least: f64,
    max: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    time: u64,
    largest: f64,
}

impl Weighted {
    /// Adds a value (not negative) that lasted `time` ns.
    pub(crate) fn add(&mut self, value: f64, time: u64) {
        if time == 0 {
            return;
        }
        if value == 0.0 {
            self.zero += time;
            return;
        }
        if self.busy == 0 {
            self.least = value;
        }
        self.busy += time;
        let weight = time as f64;
        let from_mean = value - self.mean;
        self.mean += from_mean * weight / self.busy as f64;
        self.deviations += weight * from_mean * (value - self.mean);
        self.least = self.least.min(value);
        self.max = self.max.max(value);
        let bits = value.to_bits();
        let exponent = (bits >> 52) as u32;
        let within = (bits >> (52 - CELLS_LOG2)) as usize & ((1 << CELLS_LOG2) - 1);
        // A curve moves within a few powers of two.
        let place = self.exponents.iter().position(|(each, _)| *each == exponent).unwrap_or_else(|| {
            self.exponents.push((exponent, vec![Cell::default(); 1 << CELLS_LOG2].into()));
            self.exponents.len() - 1
        });
        let cell = &mut self.exponents[place].1[within];
        cell.time += time;
        cell.largest = cell.largest.max(value);
    }

    /// The figures over all time.
    pub(crate) fn block(&self, unit: &'static str) -> Option<Block> {
        self.figures(unit, 0)
    }

    /// The figures without `idle` ns of the time in which the value was 0.
    pub(crate) fn block_without_idle(&self, unit: &'static str, idle: u64) -> Option<Block> {
        self.figures(unit, idle.min(self.zero))
    }

    fn figures(&self, unit: &'static str, idle: u64) -> Option<Block> {
        let zero = self.zero - idle;
        let total = zero + self.busy;
        if total == 0 {
            return None;
        }
        let mut cells: Vec<Cell> = self
            .exponents
            .iter()
            .flat_map(|(_, cells)| cells.iter())
            .filter(|cell| cell.time > 0)
            .copied()
            .collect();
        cells.sort_unstable_by(|a, b| a.largest.total_cmp(&b.largest));
        if zero > 0 {
            cells.insert(0, Cell { time: zero, largest: 0.0 });
        }
        // Two parts, one of them all zeros: the variance between them comes on top of that within the other.
        let share = self.busy as f64 / total as f64;
        // Rounding can leave the deviations of equal values just below 0.
        let within = (self.deviations / total as f64).max(0.0);
        let variance = within + share * (1.0 - share) * self.mean * self.mean;
        let reach = |share: f64| {
            let mut time = 0;
            let wanted = share * total as f64;
            cells
                .iter()
                .find(|cell| {
                    time += cell.time;
                    time as f64 >= wanted
                })
                .map(|cell| cell.largest)
        };
        Some(Block {
            unit,
            avg: Some(self.mean * share),
            p50: reach(0.5),
            p90: reach(0.9),
            p95: reach(0.95),
            p99: reach(0.99),
            min: Some(if zero > 0 { 0.0 } else { self.least }),
            max: Some(self.max),
            std: Some(variance.sqrt()),
            ..Block::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_weighs_values() {
        let mut curve = Weighted::default();
        curve.add(0.0, 50);
        curve.add(2.0, 40);
        curve.add(3.0, 10);
        let block = curve.block("x").unwrap();
        assert_eq!(
            (block.avg, block.p50, block.p90, block.p99),
            (Some(1.1), Some(0.0), Some(2.0), Some(3.0))
        );
        assert_eq!((block.min, block.max), (Some(0.0), Some(3.0)));
        let variance = (50.0 * 1.1f64.powi(2) + 40.0 * 0.9f64.powi(2) + 10.0 * 1.9f64.powi(2)) / 100.0;
        assert!((block.std.unwrap() - variance.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn idle_time_can_be_taken_away() {
        let mut curve = Weighted::default();
        curve.add(0.0, 70);
        curve.add(4.0, 30);
        let block = curve.block_without_idle("x", 60).unwrap();
        assert_eq!((block.avg, block.min, block.p50), (Some(3.0), Some(0.0), Some(4.0)));
        assert!((block.std.unwrap() - 3f64.sqrt()).abs() < 1e-12);
        let block = curve.block_without_idle("x", 70).unwrap();
        assert_eq!((block.avg, block.min, block.std), (Some(4.0), Some(4.0), Some(0.0)));
        assert_eq!(Weighted::default().block("x"), None);
    }

    #[test]
    fn a_constant_has_no_deviation_however_it_is_rounded() {
        for step in 1..2_000u32 {
            let mut curve = Weighted::default();
            for time in [1, 977, 1 << 33, u64::from(step)] {
                curve.add(f64::from(step) * 0.1, time);
            }
            let std = curve.block("x").unwrap().std.unwrap();
            assert!((0.0..1e-4).contains(&std), "{step}: {std}");
        }
    }

    #[test]
    fn many_values_stay_within_a_cell_of_the_truth() {
        let mut curve = Weighted::default();
        for step in 1..=100_000u32 {
            curve.add(f64::from(step) * 0.37, 1);
        }
        let p90 = curve.block("x").unwrap().p90.unwrap();
        assert!((p90 / (90_000.0 * 0.37) - 1.0).abs() < 1.0 / 2048.0, "{p90}");
    }
}
