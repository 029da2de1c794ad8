//! Caps that grow in unit steps: limit(t) = 1 + ⌊(C − 1)·t/D⌋ for t < D, then C.

/// A cap with an optional linear ramp.
#[derive(Clone, Copy, Debug)]
pub struct CapRamp {
    target: u32,
    ramp_ns: u64,
}

impl CapRamp {
    /// `target` slots, reached after `ramp_ns` nanoseconds (0: at once).
    pub fn new(target: u32, ramp_ns: u64) -> CapRamp {
        CapRamp { target, ramp_ns: if target <= 1 { 0 } else { ramp_ns } }
    }

    /// The cap in the end.
    pub fn target(&self) -> u32 {
        self.target
    }

    /// Slots at `offset` nanoseconds from the start.
    pub fn limit(&self, offset: u64) -> u32 {
        if offset >= self.ramp_ns {
            return self.target;
        }
        let steps = u128::from(self.target - 1) * u128::from(offset) / u128::from(self.ramp_ns);
        1 + steps as u32
    }

    /// Offset at which slot `slot` (counting from 0) opens.
    pub fn opens(&self, slot: u32) -> u64 {
        if slot == 0 || self.ramp_ns == 0 {
            return 0;
        }
        // The smallest offset with limit(offset) > slot: D·slot/(C − 1), rounded up.
        (u128::from(self.ramp_ns) * u128::from(slot)).div_ceil(u128::from(self.target - 1)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_grows_by_one_slot_at_a_time() {
        let ramp = CapRamp::new(5, 8_000);
        assert_eq!((0..5).map(|slot| ramp.opens(slot)).collect::<Vec<_>>(), [0, 2_000, 4_000, 6_000, 8_000]);
        assert_eq!(ramp.limit(0), 1);
        assert_eq!(ramp.limit(1_999), 1);
        assert_eq!(ramp.limit(2_000), 2);
        assert_eq!(ramp.limit(7_999), 4);
        assert_eq!(ramp.limit(8_000), 5);
    }

    #[test]
    fn opening_times_agree_with_the_limit_for_odd_sizes() {
        for target in 1..40 {
            let ramp = CapRamp::new(target, 1_000_003);
            for slot in 0..target {
                let at = ramp.opens(slot);
                assert!(ramp.limit(at) > slot);
                assert!(at == 0 || ramp.limit(at - 1) <= slot);
            }
        }
    }

    #[test]
    fn without_a_ramp_all_slots_open_at_once() {
        let cap = CapRamp::new(64, 0);
        assert_eq!(cap.limit(0), 64);
        assert_eq!(cap.opens(63), 0);
    }
}
