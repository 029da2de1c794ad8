//! Dead air. Where a longest gap is asked for, the plan moves up whenever nothing is in flight and nothing is due
//! soon: every timer that is still to come moves by the same time, so the spacing of the rest stays as planned.
//!
//! Instants of the plan are kept as planned; only when they are compared with the clock the moves are taken off.

use aiperf_clock::Mono;

/// How far the plan has moved, and when it may move again.
#[derive(Debug)]
pub(super) struct IdleGap {
    cap_ns: Option<u64>,
    /// Since when nothing is in flight, when nothing is.
    since: Mono,
    moved_ns: u64,
}

impl IdleGap {
    /// A phase that starts at `t0` and never idles longer than `cap_ns`.
    pub(super) fn new(cap_ns: Option<u64>, t0: Mono) -> IdleGap {
        IdleGap { cap_ns, since: t0, moved_ns: 0 }
    }

    /// Whether the plan moves at all.
    pub(super) fn is_capped(&self) -> bool {
        self.cap_ns.is_some()
    }

    /// By how much the plan has moved up so far, ns.
    pub(super) fn moved_ns(&self) -> u64 {
        self.moved_ns
    }

    /// What the clock says at an instant of the plan.
    pub(super) fn clock(&self, planned: Mono) -> Mono {
        planned.minus(self.moved_ns)
    }

    /// The instant of the plan at which the clock says `at`.
    pub(super) fn planned(&self, at: Mono) -> Mono {
        at.plus(self.moved_ns)
    }

    /// A turn came back at `at`.
    pub(super) fn returned(&mut self, at: Mono) {
        self.since = self.since.max(at);
    }

    /// Nothing is in flight and the next timer is `next`, on the clock: moves the plan up when that is too far off.
    pub(super) fn close(&mut self, next: Mono) {
        let Some(cap) = self.cap_ns else { return };
        self.moved_ns += next.saturating_since(self.since.plus(cap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_closed_to_the_cap_and_a_short_one_stays() {
        let mut gap = IdleGap::new(Some(100), Mono(1000));
        gap.close(Mono(1100));
        assert_eq!(gap.moved_ns(), 0);
        gap.close(Mono(1450));
        assert_eq!(
            (gap.moved_ns(), gap.clock(Mono(1450)), gap.planned(Mono(1100))),
            (350, Mono(1100), Mono(1450))
        );
        gap.returned(Mono(1200));
        gap.close(gap.clock(Mono(1650)));
        assert_eq!(gap.moved_ns(), 350);
        gap.close(gap.clock(Mono(1700)));
        assert_eq!(gap.clock(Mono(1700)), Mono(1300));
    }

    #[test]
    fn without_a_cap_nothing_moves() {
        let mut gap = IdleGap::new(None, Mono(0));
        gap.close(Mono(u64::MAX));
        assert_eq!(gap.moved_ns(), 0);
    }
}
