//! Figures of sorted numbers.

use crate::block::Block;
use crate::delivery::Spread;

use super::types::SendLag;

/// The percentiles of a block.
pub(crate) const PERCENTILES: [f64; 9] = [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0];

/// The percentile `q` of `n` sorted numbers lies between two of them: their places and the share of the second.
pub(crate) fn place(q: f64, n: usize) -> (usize, usize, f64) {
    let at = q / 100.0 * (n - 1) as f64;
    let low = at.floor() as usize;
    (low, (low + 1).min(n - 1), at - low as f64)
}

/// The percentile `q` of sorted numbers, by linear interpolation between the two beside it.
pub(crate) fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    if sorted.is_empty() {
        return None;
    }
    let (low, high, share) = place(q, sorted.len());
    Some(between(sorted[low], sorted[high], share))
}

pub(crate) fn between(low: f64, high: f64, share: f64) -> f64 {
    low + share * (high - low)
}

/// The figures of sorted numbers; all but `count` divided by `divisor` at the end. Summing in sorted order
/// makes them independent of the order the records came in.
pub(crate) fn block(sorted: &[f64], divisor: f64, unit: &'static str) -> Option<Block> {
    let n = sorted.len();
    if n == 0 {
        return None;
    }
    let sum = exact_sum(sorted.iter().copied());
    let mean = sum / n as f64;
    let variance = exact_sum(sorted.iter().map(|value| (value - mean) * (value - mean))) / n as f64;
    let mut block = Block {
        unit,
        avg: Some(mean / divisor),
        min: Some(sorted[0] / divisor),
        max: Some(sorted[n - 1] / divisor),
        std: Some(variance.sqrt() / divisor),
        count: Some(n as u64),
        sum: Some(sum / divisor),
        ..Block::default()
    };
    set_percentiles(&mut block, |q| percentile(sorted, q).map(|value| value / divisor));
    Some(block)
}

/// Fills the percentiles of a block.
pub(crate) fn set_percentiles(block: &mut Block, mut of: impl FnMut(f64) -> Option<f64>) {
    let [p1, p5, p10, p25, p50, p75, p90, p95, p99] = PERCENTILES.map(&mut of);
    *block = Block { p1, p5, p10, p25, p50, p75, p90, p95, p99, ..*block };
}

/// A sum that keeps what rounding would lose (Neumaier, 1974).
fn exact_sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + lost
}

/// The part of a block that load delivery shows.
pub(crate) fn spread(block: &Block) -> Option<Spread> {
    Some(Spread {
        avg: block.avg?,
        p50: block.p50?,
        p90: block.p90?,
        p99: block.p99?,
        max: block.max?,
        count: block.count?,
    })
}

/// The part of a block in nanoseconds that describes the lag of sends, in ms.
pub(crate) fn send_lag(block: &Block) -> Option<SendLag> {
    Some(SendLag {
        p50: block.p50? / 1e6,
        p90: block.p90? / 1e6,
        p99: block.p99? / 1e6,
        max: block.max? / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_interpolate_between_neighbours() {
        let sorted = [1.0, 2.0, 4.0];
        assert_eq!(percentile(&sorted, 50.0), Some(2.0));
        assert_eq!(percentile(&sorted, 75.0), Some(3.0));
        assert_eq!(percentile(&sorted, 99.0), Some(1.98f64.mul_add(1.0, 1.98)));
    }

    #[test]
    fn one_number_is_every_percentile_and_has_no_spread() {
        let block = block(&[5.0], 1.0, "x").unwrap();
        assert_eq!((block.p1, block.p99, block.std), (Some(5.0), Some(5.0), Some(0.0)));
    }

    #[test]
    fn no_numbers_are_no_block() {
        assert_eq!(block(&[], 1.0, "x"), None);
    }

    #[test]
    fn the_deviation_is_that_of_the_population() {
        assert_eq!(block(&[1.0, 3.0], 1.0, "x").unwrap().std, Some(1.0));
    }

    proptest! {
        #[test]
        fn evalscope_1694_percentiles_never_fall(mut values in prop::collection::vec(0.0f64..1e9, 1..300)) {
            values.sort_by(f64::total_cmp);
            let block = block(&values, 1e6, "ms").unwrap();
            let mut last = block.min.unwrap();
            for (name, figure) in &block.figures()[1..10] {
                let figure = figure.unwrap();
                prop_assert!(figure >= last, "{name}");
                last = figure;
            }
            prop_assert!(block.max.unwrap() >= last);
            let sum = block.avg.unwrap() * block.count.unwrap() as f64;
            prop_assert!((sum - block.sum.unwrap()).abs() <= 1e-9 * sum.abs());
        }
    }
}
