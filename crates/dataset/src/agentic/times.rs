//! Recorded instants of one trace, without what an idle gap has too much.

/// Maps recorded seconds to replayed ones.
pub(crate) struct Times {
    /// Start of a request, and how much earlier it is replayed; in order.
    shifts: Vec<(f64, f64)>,
}

impl Times {
    /// No gap between two consecutive `starts` is longer than `cap`.
    pub(crate) fn new(mut starts: Vec<f64>, cap: Option<f64>) -> Times {
        let Some(cap) = cap else { return Times { shifts: Vec::new() } };
        starts.sort_by(f64::total_cmp);
        let mut shift = 0.0;
        let mut before = None;
        let shifts = starts
            .into_iter()
            .map(|start| {
                let gap = before.map_or(0.0, |before| start - before);
                shift += (gap - cap).max(0.0);
                before = Some(start);
                (start, shift)
            })
            .collect();
        Times { shifts }
    }

    /// When what was recorded at `at` is replayed.
    pub(crate) fn replayed(&self, at: f64) -> f64 {
        let later = self.shifts.partition_point(|(start, _)| *start <= at);
        match later.checked_sub(1) {
            Some(last) => at - self.shifts[last].1,
            None => at,
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums of halves are exact")]
mod tests {
    use super::*;

    #[test]
    fn no_gap_is_longer_than_the_cap_and_shorter_ones_stay() {
        let starts = vec![10.0, 0.0, 11.0, 11.5, 100.0];
        let times = Times::new(starts.clone(), Some(2.0));
        assert_eq!([0.0, 10.0, 11.0, 11.5, 100.0].map(|at| times.replayed(at)), [0.0, 2.0, 3.0, 3.5, 5.5]);
        let times = Times::new(starts, None);
        assert_eq!(times.replayed(100.0), 100.0);
    }
}
