//! How a compute thread shares its time while prompts wait.

/// Time that prompts can save up for records, ns: what one burst of records may delay the prompts behind it.
const MOST_SAVED: i64 = 20_000_000;

/// Keeps records from taking more time than prompts while prompts wait: counting a long prompt takes many times as long
/// as making it, and one record for each would slow the load down to the pace of the counting.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Time of prompts less time of records, ns.
    saved: i64,
}

impl Share {
    /// No prompt waits: what was is forgotten.
    pub(crate) fn idle(&mut self) {
        self.saved = 0;
    }

    /// A prompt took so long, ns.
    pub(crate) fn prompt(&mut self, ns: u64) {
        self.saved = self.saved.saturating_add(ns as i64).min(MOST_SAVED);
    }

    /// Whether a record may be finished before the next prompt.
    pub(crate) fn allows_record(&self) -> bool {
        self.saved > 0
    }

    /// A record took so long, ns.
    pub(crate) fn record(&mut self, ns: u64) {
        self.saved = self.saved.saturating_sub(ns as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records finished, and time taken in all, while so many prompts wait.
    fn work(prompts: u64, prompt_ns: u64, record_ns: u64) -> (u64, u64) {
        let (mut share, mut records, mut total) = (Share::default(), 0, 0);
        for _ in 0..prompts {
            share.prompt(prompt_ns);
            total += prompt_ns;
            if share.allows_record() {
                share.record(record_ns);
                (records, total) = (records + 1, total + record_ns);
            }
        }
        (records, total)
    }

    #[test]
    fn prompts_that_wait_are_slowed_down_by_half_at_the_most_however_long_records_take() {
        for record_ns in [10_000, 300_000, 6_600_000, 100_000_000] {
            let (records, total) = work(10_000, 300_000, record_ns);
            assert!(total <= 2 * 10_000 * 300_000 + record_ns, "{total} ns with records of {record_ns} ns");
            assert!(records * record_ns * 10 >= (10_000 * record_ns.min(300_000)) * 9, "{records} records");
        }
    }

    #[test]
    fn records_that_are_quick_keep_up_with_prompts() {
        assert_eq!(work(1_000, 20_000, 20_000).0, 1_000);
    }

    #[test]
    fn a_debt_ends_with_the_prompts() {
        let mut share = Share::default();
        share.prompt(1);
        share.record(u64::MAX / 4);
        assert!(!share.allows_record());
        share.idle();
        share.prompt(1);
        assert!(share.allows_record());
    }
}
