//! Places for live sessions, where there is a cap on them.

use std::collections::VecDeque;

use aiperf_clock::Mono;

use super::CapRamp;

/// The session slots of a cap: each free one with the instant it became free, oldest first.
pub(super) struct Slots {
    cap: CapRamp,
    t0: Mono,
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
        while self.opened < self.cap.target() {
            let at = self.t0.plus(self.cap.opens(self.opened));
            if at > by {
                break;
            }
            self.opened += 1;
            // A slot released before this one opened goes first.
            let place = self.free.partition_point(|&free| free <= at);
            self.free.insert(place, at);
        }
        self.free.front().copied().filter(|&free| free <= by)
    }

    /// When the next slot of the ramp opens.
    pub(super) fn next_opening(&self) -> Option<Mono> {
        (self.opened < self.cap.target()).then(|| self.t0.plus(self.cap.opens(self.opened)))
    }
}
