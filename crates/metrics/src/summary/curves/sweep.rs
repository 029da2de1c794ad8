//! The state of all curves at an instant, and how long each value lasted.

use super::Event;
use crate::block::Block;
use crate::registry::Metric;
use crate::summary::weighted::Weighted;

/// A step: requests, or tokens (per second) in fixed point.
pub(super) type Amount = i64;

/// Fractional bits of a fixed-point amount: 6·10⁻⁸ tokens per second.
const FRACTION: u32 = 24;

/// An amount in fixed point; out of range, the largest there is.
pub(super) fn fixed(amount: f64) -> Amount {
    (amount * f64::from(1u32 << FRACTION)).round() as Amount
}

/// What an event steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Curve {
    /// Requests between send and end.
    Running,
    /// Requests before their first content event.
    Prefilling,
    /// Requests after it.
    Decoding,
    /// Tokens read per second.
    PrefillRate,
    /// Tokens made per second, by the gaps between events.
    DecodeRate,
    /// Tokens made per second, evenly from first content event to end.
    FlatDecodeRate,
    /// Tokens read and made by the requests that run.
    TokensInFlight,
}

const CURVES: usize = Curve::TokensInFlight as usize + 1;

/// Bits that tell the curves apart.
pub(super) const CURVE_BITS: u32 = 3;

/// Goes through time and notes how long each value lasted inside the window.
pub(super) struct Sweep {
    from: i64,
    until: i64,
    now: i64,
    state: [i128; CURVES],
    seen: [bool; CURVES],
    concurrency: Weighted,
    prefilling: Weighted,
    decoding: Weighted,
    prefill: Weighted,
    decode: Weighted,
    total: Weighted,
    prefill_per_user: Weighted,
    decode_per_user: Weighted,
    in_flight: Weighted,
    /// Time without a request, without one in prefill, without one in decode.
    idle: [u64; 3],
}

impl Sweep {
    pub(super) fn new(from: i64, until: i64) -> Sweep {
        Sweep {
            from,
            until,
            now: from,
            state: [0; CURVES],
            seen: [false; CURVES],
            concurrency: Weighted::default(),
            prefilling: Weighted::default(),
            decoding: Weighted::default(),
            prefill: Weighted::default(),
            decode: Weighted::default(),
            total: Weighted::default(),
            prefill_per_user: Weighted::default(),
            decode_per_user: Weighted::default(),
            in_flight: Weighted::default(),
            idle: [0; 3],
        }
    }

    /// Takes the next events, sorted by time.
    pub(super) fn run(&mut self, events: &[Event]) {
        for event in events {
            // The curve between two instants is the same whatever the order of events at one of them.
            if event.at() > self.now {
                self.last_until(event.at());
            }
            self.state[event.curve()] += i128::from(event.amount);
            self.seen[event.curve()] |= event.amount != 0;
        }
    }

    /// Notes that the present values lasted until `at`.
    fn last_until(&mut self, at: i64) {
        let at = at.min(self.until);
        if at <= self.now {
            return;
        }
        let time = (at - self.now) as u64;
        self.now = at;
        let real = |curve: Curve| self.state[curve as usize] as f64 / f64::from(1u32 << FRACTION);
        let whole = |curve: Curve| self.state[curve as usize] as f64;
        let per = |rate: f64, users: f64| if users > 0.0 { rate / users } else { 0.0 };
        let (running, prefilling, decoding) =
            (whole(Curve::Running), whole(Curve::Prefilling), whole(Curve::Decoding));
        let (prefill, decode) = (real(Curve::PrefillRate), real(Curve::DecodeRate));
        let total = prefill + real(Curve::FlatDecodeRate);
        let in_flight = real(Curve::TokensInFlight);
        self.concurrency.add(running, time);
        self.prefilling.add(prefilling, time);
        self.decoding.add(decoding, time);
        self.prefill.add(prefill, time);
        self.decode.add(decode, time);
        self.total.add(total, time);
        self.prefill_per_user.add(per(prefill, prefilling), time);
        self.decode_per_user.add(per(decode, decoding), time);
        self.in_flight.add(in_flight, time);
        for (idle, busy) in self.idle.iter_mut().zip([running, prefilling, decoding]) {
            if busy == 0.0 {
                *idle += time;
            }
        }
    }

    /// The figures of the curves that had an input.
    pub(super) fn finish(mut self, streamed: bool) -> Vec<(Metric, Block)> {
        use Metric as M;
        self.last_until(self.until);
        debug_assert!(self.from <= self.until, "a window does not end before it starts");
        let seen = |curve: Curve| self.seen[curve as usize];
        let [idle, idle_prefill, idle_decode] = self.idle;
        let rates = streamed && (seen(Curve::PrefillRate) || seen(Curve::FlatDecodeRate));
        // Metric, its curve, whether anything fed it, and the idle time to leave out.
        let rows = [
            (M::EffectiveConcurrency, &self.concurrency, seen(Curve::Running), 0),
            (M::EffectiveDecodeThroughput, &self.decode, seen(Curve::DecodeRate), 0),
            (M::EffectivePrefillThroughput, &self.prefill, seen(Curve::PrefillRate), 0),
            (M::EffectiveDecodeConcurrency, &self.decoding, seen(Curve::Decoding), 0),
            (M::EffectivePrefillConcurrency, &self.prefilling, seen(Curve::Prefilling), 0),
            (M::EffectiveTotalThroughput, &self.total, rates, 0),
            (M::EffectiveDecodeThroughputPerUser, &self.decode_per_user, seen(Curve::DecodeRate), 0),
            (M::EffectivePrefillThroughputPerUser, &self.prefill_per_user, seen(Curve::PrefillRate), 0),
            (M::TokensInFlight, &self.in_flight, seen(Curve::TokensInFlight), 0),
            (M::ActiveDecodeThroughput, &self.decode, seen(Curve::DecodeRate), idle_decode),
            (M::ActivePrefillThroughput, &self.prefill, seen(Curve::PrefillRate), idle_prefill),
            (M::ActiveDecodeThroughputPerUser, &self.decode_per_user, seen(Curve::DecodeRate), idle_decode),
            (
                M::ActivePrefillThroughputPerUser,
                &self.prefill_per_user,
                seen(Curve::PrefillRate),
                idle_prefill,
            ),
            (M::ActiveTotalThroughput, &self.total, rates, idle),
        ];
        rows.into_iter()
            .filter(|(_, _, fed, _)| *fed)
            .filter_map(|(metric, curve, _, idle)| {
                let unit = metric.def().display_unit;
                let block = if idle > 0 { curve.block_without_idle(unit, idle) } else { curve.block(unit) };
                Some((metric, block?))
            })
            .collect()
    }
}
