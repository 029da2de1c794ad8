//! When rows leave: recorded instants become a plan on the clock of the replay.

use super::row::Row;

/// Milliseconds since the first event of the file.
pub(super) fn since_first(rows: &mut [Row], first: f64) {
    for row in rows {
        row.time -= first;
    }
}

/// Plays `speedup` times as fast.
pub(super) fn speed_up(rows: &mut [Row], speedup: f64) {
    for row in rows {
        row.time /= speedup;
        row.wait /= speedup;
    }
}

/// Turns after the first wait for the answer before them: the gap between the two starts less what the earlier
/// request took when it was recorded, at most `cap` ms. `session` is one conversation in order.
pub(super) fn think(session: &mut [Row], cap: Option<f64>) {
    let mut before: Option<(f64, f64)> = None;
    for row in session {
        let (start, took) = (row.time, row.wait);
        row.wait = f64::NAN;
        if let Some((earlier, took)) = before {
            let took = if took.is_nan() { 0.0 } else { took };
            row.wait = (start - earlier - took).max(0.0).min(cap.unwrap_or(f64::INFINITY));
            row.time = f64::NAN;
        }
        before = Some((start, took));
    }
}

/// Shortens every gap between two starts that follow each other to `cap` ms. Rows that wait for an answer have no
/// start of their own and stay as they are.
pub(super) fn collapse(rows: &mut [Row], cap: f64) {
    let mut order: Vec<u32> = (0..rows.len() as u32).filter(|&at| !rows[at as usize].time.is_nan()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&rows[a as usize], &rows[b as usize]);
        a.time.total_cmp(&b.time).then(a.number.cmp(&b.number))
    });
    let mut before: Option<(f64, f64)> = None;
    for at in order {
        let row = &mut rows[at as usize];
        let start = row.time;
        if let Some((earlier, moved)) = before {
            row.time = moved + (start - earlier).min(cap);
        }
        before = Some((start, row.time));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::row::testing::row;
    use super::*;

    fn rows(times: &[f64]) -> Vec<Row> {
        times.iter().zip(0..).map(|(time, number)| row(number, *time, 0)).collect()
    }

    fn times(rows: &[Row]) -> Vec<f64> {
        rows.iter().map(|row| row.time).collect()
    }

    #[test]
    fn gaps_beyond_the_cap_are_shortened_on_the_clock_of_the_replay() {
        // Recorded at 0 100 260 300 420 700 3900, in file order; ten times as fast; 20 ms at the most.
        let mut rows = rows(&[100.0, 0.0, 300.0, 260.0, 700.0, 420.0, 3900.0]);
        speed_up(&mut rows, 10.0);
        collapse(&mut rows, 20.0);
        assert_eq!(times(&rows), [10.0, 0.0, 30.0, 26.0, 62.0, 42.0, 82.0]);
    }

    #[test]
    fn a_think_time_is_the_gap_less_what_the_request_before_took() {
        let mut session = rows(&[100.0, 300.0, 700.0]);
        for (row, took) in session.iter_mut().zip([50.0, 60.0, 40.0]) {
            row.wait = took;
        }
        think(&mut session, None);
        assert_eq!(session[0].timestamp(), Some(100.0));
        assert_eq!(session[0].delay(), None);
        let waits: Vec<_> = session[1..].iter().map(|row| (row.timestamp(), row.delay())).collect();
        assert_eq!(waits, [(None, Some(150.0)), (None, Some(340.0))]);
    }

    #[test]
    fn a_think_time_is_never_negative_never_above_the_cap_and_a_missing_duration_is_none() {
        let mut session = rows(&[0.0, 10.0, 500.0]);
        session[0].wait = 25.0;
        think(&mut session, Some(200.0));
        assert_eq!(session[1].delay(), Some(0.0));
        assert_eq!(session[2].delay(), Some(200.0));
    }

    #[test]
    fn a_think_time_shrinks_with_the_speed_and_the_cap_does_not() {
        let mut session = rows(&[0.0, 1000.0, 5000.0]);
        session[0].wait = 200.0;
        speed_up(&mut session, 4.0);
        think(&mut session, Some(500.0));
        assert_eq!(session[1].delay(), Some(200.0));
        assert_eq!(session[2].delay(), Some(500.0));
    }

    fn some_times() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((0u32..2_000_000).prop_map(|ms| f64::from(ms) / 8.0), 1..60)
    }

    fn sorted(mut times: Vec<f64>) -> Vec<f64> {
        times.sort_by(f64::total_cmp);
        times
    }

    proptest! {
        #[test]
        fn speeding_up_keeps_order_and_ratios(recorded in some_times(), speedup in 0.01f64..1000.0) {
            let mut rows = rows(&recorded);
            speed_up(&mut rows, speedup);
            for (row, recorded) in rows.iter().zip(&recorded) {
                prop_assert!((row.time * speedup - recorded).abs() <= recorded * 1e-12);
            }
            for (a, one) in rows.iter().zip(&recorded) {
                for (b, other) in rows.iter().zip(&recorded) {
                    prop_assert!(one > other || a.time <= b.time);
                }
            }
        }

        #[test]
        fn collapsing_bounds_every_gap_keeps_short_ones_and_the_order(
            recorded in some_times(),
            cap in 0.125f64..50_000.0,
        ) {
            let mut rows = rows(&recorded);
            collapse(&mut rows, cap);
            let (before, after) = (sorted(recorded.clone()), sorted(times(&rows)));
            prop_assert!((before[0] - after[0]).abs() < 1e-9);
            for (recorded, moved) in before.windows(2).zip(after.windows(2)) {
                let gap = moved[1] - moved[0];
                prop_assert!((gap - (recorded[1] - recorded[0]).min(cap)).abs() < 1e-6);
            }
            for (a, one) in rows.iter().zip(&recorded) {
                for (b, other) in rows.iter().zip(&recorded) {
                    prop_assert!(one > other || a.time <= b.time);
                }
            }
        }

        #[test]
        fn think_times_and_recorded_durations_add_up_to_the_recorded_session(
            gaps in prop::collection::vec(0u32..10_000, 1..30),
            took in prop::collection::vec(0u32..10_000, 31),
        ) {
            let mut recorded = vec![0.0];
            for gap in &gaps {
                recorded.push(recorded[recorded.len() - 1] + f64::from(*gap));
            }
            let mut session = rows(&recorded);
            for (row, took) in session.iter_mut().zip(&took) {
                row.wait = f64::from(*took);
            }
            think(&mut session, None);
            for ((row, gap), took) in session[1..].iter().zip(&gaps).zip(&took) {
                prop_assert_eq!(row.delay(), Some(f64::from(gap.saturating_sub(*took))));
                prop_assert_eq!(row.timestamp(), None);
            }
        }
    }
}
