//! Step curves over time: how many requests ran, and how fast tokens were read and made, at every instant.
//!
//! A record is *in prefill* from its send to its first content event and *in decode* from there to its end.
//! Each adds to the curves while it is in them and takes the same amount away afterwards; amounts are whole
//! numbers (rates in fixed point), so a curve returns to exactly 0 when nothing runs. The sweep goes through
//! time in stretches and holds the events of one stretch only.

mod sweep;

use aiperf_clock::Mono;

use crate::block::Block as Figures;
use crate::context::Context;
use crate::facts::{Field, Source, gap_count};
use crate::formula;
use crate::registry::Metric;
use crate::store::PhaseStore;
use crate::store::block::{Block, Row, View, elapsed};
use sweep::{Amount, CURVE_BITS, Curve, Sweep, fixed};

/// Least number of events in a stretch, about: some eight megabytes.
const STRETCH: usize = 1 << 19;

/// The events of a stretch may take this share of the memory that the packed records take: with more of them,
/// larger stretches keep the number of times that a block is read from growing.
const SHARE_OF_STORE: usize = 6;

/// Cells of the count that decides where stretches end.
const CELLS: usize = 1 << 14;

/// One step of a curve.
#[derive(Clone, Copy, Debug)]
struct Event {
    /// Nanoseconds since the first send, and in the lowest bits the curve.
    key: u64,
    amount: Amount,
}

impl Event {
    fn new(at: i64, curve: Curve, amount: Amount) -> Event {
        Event { key: (at as u64) << CURVE_BITS | curve as u64, amount }
    }

    fn at(self) -> i64 {
        (self.key >> CURVE_BITS) as i64
    }

    /// The curve, as a place in a list of all curves.
    fn curve(self) -> usize {
        (self.key & ((1 << CURVE_BITS) - 1)) as usize
    }
}

/// The curves that have an input, over the window from `start` to `end`.
pub(crate) fn blocks(
    store: &PhaseStore,
    context: &Context,
    start: Mono,
    end: Mono,
) -> Vec<(Metric, Figures)> {
    let bytes: usize = store.blocks.iter().map(Block::bytes).sum();
    let most = STRETCH.max(bytes / SHARE_OF_STORE / size_of::<Event>());
    in_stretches(store, context, (start, end), most)
}

/// The same, with about `most` events in a stretch.
fn in_stretches(
    store: &PhaseStore,
    context: &Context,
    (start, end): (Mono, Mono),
    most: usize,
) -> Vec<(Metric, Figures)> {
    let streamed = context.applies(Metric::TimeToFirstToken);
    let Some(origin) = store.blocks.iter().map(|block| block.from).min() else { return Vec::new() };
    let mut sweep = Sweep::new(start.0 as i64 - origin, end.0 as i64 - origin);
    let mut events = Vec::new();
    let (mut scratch, mut gaps) = (Vec::new(), Vec::new());
    for bound in stretches(store, origin, most).windows(2) {
        let (from, until) = (bound[0], bound[1]);
        events.clear();
        for block in &store.blocks {
            if block.from - origin >= until || block.until - origin < from {
                continue;
            }
            View::new(block).each_with_gaps(&mut scratch, &mut gaps, |row, gaps| {
                steps(row, gaps, origin, streamed, &mut |at, curve, amount| {
                    if (from..until).contains(&at) {
                        events.push(Event::new(at, curve, amount));
                    }
                });
            });
        }
        events.sort_unstable_by_key(|event| event.key);
        sweep.run(&events);
    }
    sweep.finish(streamed)
}

/// Instants (ns since `origin`) that cut the time of all records into stretches of about as many events each;
/// the last lies after every event.
fn stretches(store: &PhaseStore, origin: i64, most: usize) -> Vec<i64> {
    let until = store.blocks.iter().map(|block| block.until - origin).max().unwrap_or(0) + 1;
    let width = until / CELLS as i64 + 1;
    // A record's events are taken to lie evenly between its ends: where its share begins, and where it stops.
    let mut changes = vec![0.0; CELLS + 1];
    for view in store.views() {
        for row in view.rows() {
            let start = row.get(Field::Start).unwrap_or(origin) - origin;
            let first = (start / width) as usize;
            let last = ((start + elapsed(&row)) / width) as usize;
            let events = (11 + 2 * gap_count(&row)) as f64 / (last - first + 1) as f64;
            changes[first] += events;
            changes[last + 1] -= events;
        }
    }
    let mut bounds = vec![0];
    let (mut density, mut sum) = (0.0, 0.0);
    for (cell, change) in (1..).zip(&changes[..CELLS]) {
        density += change;
        sum += density;
        if sum >= most as f64 {
            bounds.push(cell * width);
            sum = 0.0;
        }
    }
    if bounds.last().is_some_and(|last| *last < until) {
        bounds.push(until);
    }
    bounds
}

/// The steps of one record.
fn steps(
    row: &Row<'_>,
    gaps: &[i64],
    origin: i64,
    streamed: bool,
    step: &mut impl FnMut(i64, Curve, Amount),
) {
    let Some(start) = row.get(Field::Start).map(|start| start - origin) else { return };
    let end = start + elapsed(row);
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
            in_flight += decode(first, end, output - 1.0, gaps, step);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use aiperf_types::{
        Answer, Channel, ContentEvent, HttpTrace, Identity, PhaseKind, PlanInstants, RequestFacts,
        RequestRecord, TokenCounts,
    };

    use super::*;

    fn record(number: u64) -> RequestRecord {
        let start = Mono(1_000_000_000 + number * 700_001);
        let event = |index: u64| ContentEvent {
            at: start.plus(3_000_000 + index * (900_000 + number * 13)),
            channel: Channel::Text,
        };
        let content: Vec<ContentEvent> = (0..=number % 30).map(event).collect();
        RequestRecord {
            identity: Identity {
                number,
                request_id: [b'0'; 36],
                correlation_id: Arc::from(""),
                conversation_id: Arc::from(""),
                turn_index: 0,
                phase: PhaseKind::Profiling,
                phase_index: 0,
                worker: 0,
                lineage: None,
                source: None,
            },
            plan: PlanInstants::default(),
            start,
            headers: None,
            end: content[content.len() - 1].at.plus(50_000),
            trace: HttpTrace::default(),
            status: Some(200),
            request: RequestFacts::default(),
            tokens: TokenCounts { input: Some(20), output: Some(content.len() as u64), reasoning: None },
            answer: Answer { content, ..Answer::default() },
            error: None,
            cancelled_at: None,
            context_overflow: false,
            client_delayed: false,
        }
    }

    #[test]
    fn where_stretches_end_changes_nothing() {
        let mut store = PhaseStore::default();
        for number in 0..1_200 {
            store.push(&record(number));
        }
        store.seal();
        let window = (Mono(1_000_000_000), Mono(2_000_000_000));
        let whole = in_stretches(&store, &Context::default(), window, usize::MAX);
        assert_eq!(whole.len(), 14);
        assert!(stretches(&store, 1_000_000_000, 700).len() > 50);
        for most in [700, 20_000] {
            assert_eq!(in_stretches(&store, &Context::default(), window, most), whole, "{most}");
        }
    }
}
