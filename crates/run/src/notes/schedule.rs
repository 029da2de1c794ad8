//! What is said of a schedule: how long it lasts, and how far it moved.

use std::time::Duration;

use aiperf_dataset::{Dataset, Outline};
use aiperf_report::Log;

/// A schedule that goes on for longer than this, ms, is taken for a slip in its times.
const LONG_SCHEDULE_MS: f64 = 7.0 * 86_400e3;

/// Says how long a recorded schedule lasts, and when that can hardly be meant.
pub(super) fn length(log: &Log, dataset: &dyn Dataset, zero_ms: f64, bound: Option<Duration>) {
    let last = (0..dataset.len().known())
        .map(|index| last_send_ms(&dataset.outline(index)))
        .fold(f64::NEG_INFINITY, f64::max);
    if !last.is_finite() {
        return;
    }
    let ms = (last - zero_ms).max(0.0);
    let turns: usize = (0..dataset.len().known()).map(|index| waiting_turns(&dataset.outline(index))).sum();
    let waiting = match turns {
        0 => String::new(),
        1 => ", and longer by the answer that 1 turn waits for".to_owned(),
        turns => format!(", and longer by the answers that {turns} turns wait for"),
    };
    let text = format!("the recorded schedule lasts {}{waiting}", span(ms));
    if ms > LONG_SCHEDULE_MS && bound.is_none() {
        log.warning(
            "schedule",
            &format!(
                "{text}: are its times in the unit of the format? --fixed-schedule-end-offset or --benchmark-duration end \
                 it sooner, --synthesis-speedup-ratio or --replay-speedup play it faster"
            ),
        );
    } else {
        log.info("schedule", &text);
    }
}

/// When the last turn of a conversation is sent at the earliest, in recorded time.
fn last_send_ms(outline: &Outline) -> f64 {
    (0..outline.turns()).filter_map(|turn| outline.turn(turn)).fold(0.0, |at, turn| {
        turn.timestamp_ms.map_or_else(|| at + turn.delay_ms.unwrap_or(0.0), |time| time.max(at))
    })
}

/// Turns of a conversation that have no time of their own: they wait for the answer before, and then think.
fn waiting_turns(outline: &Outline) -> usize {
    let turns = (1..outline.turns()).filter_map(|turn| outline.turn(turn));
    turns.filter(|turn| turn.timestamp_ms.is_none()).count()
}

/// A length of time in the two largest units that it has.
fn span(ms: f64) -> String {
    let seconds = ms / 1e3;
    let (days, hours, minutes) = (86_400.0, 3_600.0, 60.0);
    let pair = |large: f64, small: f64, names: [&str; 2]| {
        let whole = (seconds / large).floor();
        format!("{whole} {} {} {}", names[0], ((seconds - whole * large) / small).floor(), names[1])
    };
    if seconds >= 36_525.0 * days {
        format!("{:.1e} years", seconds / (365.25 * days))
    } else if seconds >= days {
        pair(days, hours, ["d", "h"])
    } else if seconds >= hours {
        pair(hours, minutes, ["h", "min"])
    } else if seconds >= minutes {
        pair(minutes, 1.0, ["min", "s"])
    } else {
        format!("{seconds:.3} s")
    }
}

/// Says how far the schedule moved where nothing was in flight for longer than wanted.
pub(crate) fn moved_up(log: &Log, ns: u64) {
    if ns > 0 {
        log.info(
            "schedule",
            &format!(
                "the schedule moved up by {:.3} s in all where nothing was in flight for longer than \
                 --max-idle-gap-cap-seconds; lateness counts from the moved schedule",
                ns as f64 / 1e9
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_said_in_its_two_largest_units() {
        for (ms, text) in [
            (0.0, "0.000 s"),
            (1_500.25, "1.500 s"),
            (61_999.0, "1 min 1 s"),
            (3_540_000.0, "59 min 0 s"),
            (5_400_000.0, "1 h 30 min"),
            (86_400e3 * 9.5, "9 d 12 h"),
            (1e15, "3.2e4 years"),
        ] {
            assert_eq!(span(ms), text);
        }
    }
}
