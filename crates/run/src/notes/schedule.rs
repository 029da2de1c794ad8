//! What is said of a schedule: how long it lasts, and how far it moved.

use aiperf_config::{PhaseConfig, StopRule};
use aiperf_dataset::{Dataset, Outline};
use aiperf_report::Log;
use aiperf_types::PhaseKind;

/// A schedule that goes on for longer than this, ms, is taken for a slip in its times.
const LONG_SCHEDULE_MS: f64 = 7.0 * 86_400e3;

/// Says how long a recorded schedule lasts, and when that can hardly be meant.
pub(super) fn length(log: &Log, dataset: &dyn Dataset, zero_ms: f64, stop: &StopRule) {
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
    let sooner = ends_sooner(stop, ms, dataset.len().known(), dataset.total_turns());
    let sooner = sooner.map_or_else(String::new, |flag| format!("; {flag} ends it sooner"));
    let text = format!("the recorded schedule lasts {}{waiting}{sooner}", span(ms));
    if ms > LONG_SCHEDULE_MS && stop.duration.is_none() {
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

/// The flag that ends a schedule of `ms` before its end, where one does.
fn ends_sooner(stop: &StopRule, ms: f64, conversations: u64, turns: Option<u64>) -> Option<String> {
    let duration = stop.duration.map(|time| time.as_secs_f64()).filter(|seconds| seconds * 1e3 < ms);
    let requests = stop.requests.filter(|most| turns.is_some_and(|turns| *most < turns));
    let sessions = stop.sessions.filter(|most| *most < conversations);
    let requests = requests.map(|most| format!("--request-count {most}"));
    let sessions = sessions.map(|most| format!("--num-conversations {most}"));
    requests.or(sessions).or(duration.map(|seconds| format!("--benchmark-duration {seconds}")))
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

/// A share of arrivals that were skipped from which on the rate is not what was asked for.
const MANY_SKIPPED: f64 = 0.05;

/// Warns of arrivals that found no free slot, where they are many.
pub(crate) fn skipped(log: &Log, phase: &PhaseConfig, skipped: u64, sent: u64) {
    if let Some(text) = many_skipped(phase, skipped, sent) {
        log.warning("schedule", &text);
    }
}

fn many_skipped(phase: &PhaseConfig, skipped: u64, sent: u64) -> Option<String> {
    let arrivals = skipped + sent;
    let flag = match phase.kind {
        PhaseKind::Profiling => "--concurrency",
        PhaseKind::Warmup => "the concurrency of the warmup",
    };
    let cap = phase.concurrency.filter(|_| skipped as f64 > MANY_SKIPPED * arrivals as f64)?;
    Some(format!(
        "{skipped} of {arrivals} arrivals found all slots of {flag} {cap} taken and were skipped, not queued: less than the \
         rate asked for was sent; raise the concurrency, or lower the rate"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::notes::tests::phase;

    #[test]
    fn arrivals_that_a_cap_skips_are_told_where_they_are_many() {
        let text = many_skipped(&phase(), 436, 200).unwrap();
        assert!(text.starts_with("436 of 636 arrivals") && text.contains("--concurrency 5 taken"), "{text}");
        for (skipped, sent) in [(0, 0), (0, 100), (5, 95)] {
            assert_eq!(many_skipped(&phase(), skipped, sent), None);
        }
        assert_eq!(many_skipped(&PhaseConfig { concurrency: None, ..phase() }, 6, 1), None);
    }

    #[test]
    fn a_schedule_that_is_cut_short_says_by_what() {
        let rule = |requests, sessions, seconds: Option<u64>| {
            let duration = seconds.map(Duration::from_secs);
            ends_sooner(&StopRule { requests, sessions, duration }, 2_115.0, 10, Some(24))
        };
        assert_eq!(rule(Some(5), None, Some(1)).as_deref(), Some("--request-count 5"));
        assert_eq!(rule(None, Some(5), None).as_deref(), Some("--num-conversations 5"));
        assert_eq!(rule(None, None, Some(1)).as_deref(), Some("--benchmark-duration 1"));
        assert_eq!(rule(Some(24), Some(10), Some(3)), None);
    }

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
