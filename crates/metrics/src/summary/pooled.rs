//! The gaps between content events of all records, pooled.

use super::{selection, statistics};
use crate::block::Block;
use crate::context::Context;
use crate::facts::{Field, Source};
use crate::registry::Metric;
use crate::store::PhaseStore;

/// The figures of all gaps between neighbouring content events of valid records.
pub(crate) fn gaps(store: &PhaseStore, context: &Context) -> Option<Block> {
    let metric = Metric::InterChunkLatency;
    if !context.applies(metric) {
        return None;
    }
    let (mut n, mut sum) = (0u64, 0i128);
    let (mut min, mut max) = (u64::MAX, 0);
    each(store, &mut |gap| {
        n += 1;
        sum += i128::from(gap);
        min = min.min(gap);
        max = max.max(gap);
    });
    if n == 0 {
        return None;
    }
    // Deviations from a whole number add up exactly, in any order.
    let centre = sum / i128::from(n);
    let (mut off, mut squares) = (0i128, 0i128);
    each(store, &mut |gap| {
        let deviation = i128::from(gap) - centre;
        off += deviation;
        squares += deviation * deviation;
    });
    let shift = off as f64 / n as f64;
    let variance = (squares as f64 / n as f64 - shift * shift).max(0.0);

    let mut places: Vec<u64> = Vec::new();
    for q in statistics::PERCENTILES {
        let (low, high, _) = statistics::place(q, n as usize);
        places.extend([low as u64, high as u64]);
    }
    places.sort_unstable();
    places.dedup();
    let found = selection::select(&places, |visit| each(store, visit));
    let at =
        |place: usize| places.binary_search(&(place as u64)).map_or(f64::NAN, |index| found[index] as f64);

    let divisor = metric.def().shown_divisor();
    let mut block = Block {
        unit: metric.def().display_unit,
        avg: Some(sum as f64 / n as f64 / divisor),
        min: Some(min as f64 / divisor),
        max: Some(max as f64 / divisor),
        std: Some(variance.sqrt() / divisor),
        count: Some(n),
        sum: Some(sum as f64 / divisor),
        ..Block::default()
    };
    statistics::set_percentiles(&mut block, |q| {
        let (low, high, share) = statistics::place(q, n as usize);
        Some(statistics::between(at(low), at(high), share) / divisor)
    });
    Some(block)
}

fn each(store: &PhaseStore, visit: &mut dyn FnMut(u64)) {
    let (mut scratch, mut gaps) = (Vec::new(), Vec::new());
    for view in store.views() {
        view.each_with_gaps(&mut scratch, &mut gaps, |row, gaps| {
            if !row.is(Field::NotStreamed) {
                for gap in gaps {
                    visit(*gap as u64);
                }
            }
        });
    }
}
