//! Step curves over time: how many requests ran, and how fast tokens were read and made, at every instant.
//!
//! A record is *in prefill* from its send to its first content event and *in decode* from there to its end.
//! Each adds to the curves while it is in them and takes the same amount away afterwards; amounts are whole
//! numbers (rates in fixed point), so a curve returns to exactly 0 when nothing runs. The sweep goes through
//! time in stretches and holds the events of one stretch only.

mod sweep;

use aiperf_clock::Mono;

use crate::block::Block;
use crate::context::Context;
use crate::facts::{Field, Source};
use crate::formula;
use crate::registry::Metric;
use crate::store::PhaseStore;
use crate::store::block::{Row, elapsed};
use sweep::{Amount, Curve, Sweep, fixed};

/// Events of a stretch, about: some ten megabytes.
const STRETCH: u64 = 1 << 19;

/// Cells of the count that decides where stretches end.
const CELLS: usize = 1 << 14;

/// One step of a curve.
#[derive(Clone, Copy, Debug)]
struct Event {
    at: i64,
    amount: Amount,
    curve: Curve,
}

/// The curves that have an input, over the window from `start` to `end`.
pub(crate) fn blocks(store: &PhaseStore, context: &Context, start: Mono, end: Mono) -> Vec<(Metric, Block)> {
    let streamed = context.applies(Metric::TimeToFirstToken);
    let mut sweep = Sweep::new(start.0 as i64, end.0 as i64);
    let bounds = stretches(store);
    let mut events = Vec::new();
    let (mut scratch, mut gaps) = (Vec::new(), Vec::new());
    for bound in bounds.windows(2) {
        let (from, until) = (bound[0], bound[1]);
        events.clear();
        for block in &store.blocks {
            if block.from >= until || block.until < from {
                continue;
            }
            let view = crate::store::block::View::new(block);
            view.each_with_gaps(&mut scratch, &mut gaps, |row, gaps| {
                steps(row, gaps, streamed, &mut |event| {
                    if (from..until).contains(&event.at) {
                        events.push(event);
                    }
                });
            });
        }
        events.sort_unstable_by_key(|event| event.at);
        sweep.run(&events);
    }
    sweep.finish(streamed)
}

/// Instants that cut the time of all records into stretches of about as many events each; the last lies
/// after every event.
fn stretches(store: &PhaseStore) -> Vec<i64> {
    let from = store.blocks.iter().map(|block| block.from).min().unwrap_or(0);
    let until = store.blocks.iter().map(|block| block.until).max().unwrap_or(0) + 1;
    let width = ((until - from) / CELLS as i64 + 1).max(1);
    let mut counts = vec![0u64; CELLS];
    for view in store.views() {
        for row in view.rows() {
            let start = row.get(Field::Start).unwrap_or(from);
            let events = 11 + 2 * crate::facts::gap_count(&row) as u64;
            // The events of a record lie between its ends: half there, half here is close enough.
            let last = start + elapsed(&row);
            counts[((start - from) / width) as usize] += events / 2;
            counts[((last - from) / width) as usize] += events - events / 2;
        }
    }
    let mut bounds = vec![from];
    let mut sum = 0;
    for (cell, count) in (1..).zip(&counts) {
        sum += count;
        if sum >= STRETCH {
            bounds.push(from + cell * width);
            sum = 0;
        }
    }
    if bounds.last().is_some_and(|last| *last < until) {
        bounds.push(until);
    }
    bounds
}

/// The steps of one record.
fn steps(row: &Row<'_>, gaps: &[i64], streamed: bool, step: &mut impl FnMut(Event)) {
    let Some(start) = row.get(Field::Start) else { return };
    let end = start + elapsed(row);
    let mut step = |at: i64, curve: Curve, amount: Amount| step(Event { at, amount, curve });
    step(start, Curve::Running, 1);
    step(end, Curve::Running, -1);
    if row.is(Field::Failed) {
        return;
    }
    // Without a first token there is no telling prefill from decode.
    let Some(first) = row.get(Field::FirstContent).filter(|_| streamed && !row.is(Field::NotStreamed)) else {
        return;
    };
    let first = start + first;
    step(start, Curve::Prefilling, 1);
    step(first, Curve::Prefilling, -1);
    step(first, Curve::Decoding, 1);
    step(end, Curve::Decoding, -1);
    let mut in_flight = 0;
    if let Some(input) = row.get(Field::InputTokens) {
        in_flight = fixed(input as f64);
        step(start, Curve::TokensInFlight, in_flight);
        if first > start {
            let rate = rate(input as f64, first - start);
            step(start, Curve::PrefillRate, rate);
            step(first, Curve::PrefillRate, -rate);
        }
    }
    if let Some(output) = formula::output_length(row).filter(|output| *output > 0.0) {
        step(first, Curve::TokensInFlight, fixed(1.0));
        in_flight += fixed(1.0);
        if output > 1.0 && end > first {
            in_flight += decode(first, end, output - 1.0, gaps, &mut step);
        }
    }
    step(end, Curve::TokensInFlight, -in_flight);
}

/// The steps of the `tokens` after the first; gives what they add to the tokens in flight.
fn decode(
    first: i64,
    end: i64,
    tokens: f64,
    gaps: &[i64],
    step: &mut impl FnMut(i64, Curve, Amount),
) -> Amount {
    let flat = rate(tokens, end - first);
    step(first, Curve::FlatDecodeRate, flat);
    step(end, Curve::FlatDecodeRate, -flat);

    let carrying = gaps.iter().filter(|gap| **gap > 0).count();
    // One event without gaps spreads its tokens over the rest of the answer. Events that all arrived in one
    // read took no time that could carry a rate.
    if gaps.is_empty() {
        step(first, Curve::DecodeRate, flat);
        step(end, Curve::DecodeRate, -flat);
    }
    let mut at = first;
    let mut before = 0;
    let mut in_flight = 0;
    for gap in gaps {
        if *gap > 0 {
            let now = rate(tokens / carrying as f64, *gap);
            step(at, Curve::DecodeRate, now - before);
            before = now;
            at += gap;
        }
        if at < end {
            let part = fixed(tokens / gaps.len() as f64);
            step(at, Curve::TokensInFlight, part);
            in_flight += part;
        }
    }
    if before != 0 {
        step(at, Curve::DecodeRate, -before);
    }
    in_flight
}

/// `tokens` in `ns`, as tokens per second in fixed point.
fn rate(tokens: f64, ns: i64) -> Amount {
    fixed(tokens * 1e9 / ns as f64)
}
