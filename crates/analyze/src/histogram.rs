//! Histograms of at most 20 rows.

use serde_json::{Value, json};

const ROWS: usize = 20;
/// Beyond this ratio of the largest to the smallest, bins grow in equal ratios instead of equal steps.
const LINEAR_UP_TO: f64 = 100.0;

/// Numbers from `low` on, below `high` (the last bin has its own end in it), and how many there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Numbers inside.
    pub count: u64,
}

/// The bins of sorted numbers; none where there is nothing to tell apart.
pub(crate) fn bins(sorted: &[f64]) -> Vec<Bin> {
    let (Some(min), Some(max)) = (sorted.first().copied(), sorted.last().copied()) else { return Vec::new() };
    if max <= min {
        return Vec::new();
    }
    let whole = sorted.iter().all(|value| value.fract() == 0.0);
    let mut edges = vec![min];
    // Zeros have no place on a logarithmic scale: they are a bin of their own.
    let least = sorted[sorted.partition_point(|value| *value <= 0.0)..].first().copied().unwrap_or(max);
    if min >= 0.0 && max / least > LINEAR_UP_TO {
        let rows = if min == 0.0 { ROWS - 1 } else { ROWS };
        let ratio = (max / least).ln() / rows as f64;
        edges.extend((0..rows).map(|row| least * (ratio * row as f64).exp()));
    } else {
        let rows = if whole { ROWS.min((max - min) as usize + 1) } else { ROWS };
        let step = if whole && max - min < ROWS as f64 { 1.0 } else { (max - min) / rows as f64 };
        edges.extend((1..rows).map(|row| min + step * row as f64));
    }
    if whole {
        for edge in &mut edges {
            *edge = edge.ceil();
        }
    }
    edges.dedup();
    edges.retain(|edge| *edge < max || (whole && *edge <= max));
    let ends = edges[1..].iter().copied().chain([max]);
    let mut from = 0;
    let mut bins: Vec<Bin> = edges
        .iter()
        .zip(ends)
        .map(|(low, high)| {
            let to = sorted.partition_point(|value| *value < high);
            let count = to.saturating_sub(from) as u64;
            from = to.max(from);
            Bin { low: *low, high, count }
        })
        .collect();
    if let Some(last) = bins.last_mut() {
        // The end of the last bin belongs to it.
        last.count += (sorted.len() - from) as u64;
    }
    bins
}

/// The bins for programs.
pub(crate) fn json(bins: &[Bin]) -> Value {
    bins.iter().map(|bin| json!({"lo": bin.low, "hi": bin.high, "count": bin.count})).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_number_is_in_one_bin_and_bins_follow_each_other(
            mut values in prop::collection::vec(prop_oneof![0.0..1e6f64, Just(0.0), 0.001..2.0f64], 0..60),
        ) {
            values.sort_unstable_by(f64::total_cmp);
            let bins = bins(&values);
            prop_assert!(bins.len() <= 20);
            if !bins.is_empty() {
                prop_assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), values.len() as u64);
            }
            for pair in bins.windows(2) {
                prop_assert_eq!(pair[0].high, pair[1].low);
                prop_assert!(pair[0].low < pair[0].high && pair[1].low <= pair[1].high);
            }
        }
    }

    #[test]
    fn wide_spans_are_logarithmic_and_small_whole_ones_have_a_bin_each() {
        let wide = bins(&[1.0, 10.0, 1000.0]);
        assert!((16..=20).contains(&wide.len()));
        assert!(wide.iter().all(|bin| bin.low.fract() == 0.0));
        let fine = bins(&[0.5, 10.0, 1000.25]);
        assert!((fine[1].high / fine[1].low - fine[0].high / fine[0].low).abs() < 1e-9);
        let small = bins(&[1.0, 1.0, 2.0, 4.0]);
        assert_eq!(small.iter().map(|bin| bin.count).collect::<Vec<_>>(), [2, 1, 0, 1]);
        assert!(bins(&[3.0, 3.0]).is_empty());
        assert_eq!(bins(&[0.0, 1.0, 1000.0])[0], Bin { low: 0.0, high: 1.0, count: 1 });
    }
}
