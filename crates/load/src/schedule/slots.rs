//! Places for live sessions, where there is a cap on them.

use std::collections::VecDeque;

use aiperf_clock::Mono;

use super::CapRamp;

/// The session slots of a cap. A slot is opened when it is wanted, so that a cap that is never reached costs nothing.
pub(super) struct Slots {
    cap: CapRamp,
    t0: Mono,
    /// Free ones that were opened, each with the instant it became free, oldest first.
    free: VecDeque<Mono>,
    opened: u32,
}

impl Slots {
    /// The slots of `cap` in a phase that starts at `t0`.
    pub(super) fn new(cap: CapRamp, t0: Mono) -> Slots {
        Slots { cap, t0, free: VecDeque::new(), opened: 0 }
    }

    /// Most live sessions there may be.
    pub(super) fn most(&self) -> u32 {
        self.cap.target()
    }

    /// Takes the slot that has been free longest.
    pub(super) fn take(&mut self) {
        self.free.pop_front();
    }

    /// A slot became free at `at`.
    pub(super) fn release(&mut self, at: Mono) {
        self.free.push_back(at);
    }

    /// The slot that has been free longest, if one was free by `by`.
    pub(super) fn free_by(&mut self, by: Mono) -> Option<Mono> {
        // A slot released before the next one opens goes first.
        if let Some(at) = self.next_opening()
            && at <= by
            && self.free.front().is_none_or(|&free| at < free)
        {
            self.opened += 1;
            self.free.push_front(at);
        }
        self.free.front().copied().filter(|&free| free <= by)
    }

    /// When the next slot opens that nobody has wanted yet; in the past where there is one to be had.
    pub(super) fn next_opening(&self) -> Option<Mono> {
        (self.opened < self.cap.target()).then(|| self.t0.plus(self.cap.opens(self.opened)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_that_is_never_reached_costs_nothing() {
        let mut slots = Slots::new(CapRamp::new(u32::MAX, 0), Mono(100));
        for _ in 0..3 {
            assert_eq!(slots.free_by(Mono(100)), Some(Mono(100)));
            assert_eq!((slots.free.len(), slots.opened), (1, 1));
        }
        for taken in 1..=5 {
            slots.take();
            assert_eq!(slots.free_by(Mono(200)), Some(Mono(100)));
            assert_eq!((slots.free.len(), slots.opened), (1, taken + 1));
        }
    }

    #[test]
    fn the_slot_that_has_been_free_longest_goes_first() {
        let mut slots = Slots::new(CapRamp::new(3, 20), Mono(100));
        assert_eq!(slots.free_by(Mono(99)), None);
        assert_eq!(slots.free_by(Mono(100)), Some(Mono(100)));
        slots.take();
        assert_eq!(slots.free_by(Mono(109)), None);
        assert_eq!(slots.next_opening(), Some(Mono(110)));
        // Released before the second opens, and taken before it.
        slots.release(Mono(105));
        assert_eq!(slots.free_by(Mono(115)), Some(Mono(105)));
        slots.take();
        assert_eq!(slots.free_by(Mono(115)), Some(Mono(110)));
        slots.take();
        // Released after the third has opened.
        slots.release(Mono(130));
        assert_eq!(slots.free_by(Mono(140)), Some(Mono(120)));
        slots.take();
        assert_eq!(slots.free_by(Mono(140)), Some(Mono(130)));
        slots.take();
        assert_eq!(slots.free_by(Mono(1000)), None);
        assert_eq!(slots.next_opening(), None);
    }
}
