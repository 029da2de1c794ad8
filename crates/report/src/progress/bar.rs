//! One bar: what is going on, how far it is, how long it takes.

use std::time::Duration;

use aiperf_types::PhaseKind;

use super::{Snapshot, Stage};
use crate::number::count;
use crate::style::{Palette, Style};

/// Columns of the bar itself.
const WIDTH: usize = 30;

/// Share of the stage that is over, percent; unknown when neither a count nor a time ends it.
pub(super) fn percent(snapshot: &Snapshot<'_>) -> Option<f64> {
    let share = match (snapshot.total, snapshot.fraction) {
        (Some(0), _) => 1.0,
        (Some(total), _) => snapshot.done as f64 / total as f64,
        (None, Some(fraction)) => fraction,
        (None, None) => return None,
    };
    Some(100.0 * share.clamp(0.0, 1.0))
}

/// The bar as one line.
pub(super) fn line(snapshot: &Snapshot<'_>, percent: f64, palette: Palette) -> String {
    let (name, style) = match (snapshot.phase, snapshot.stage) {
        (_, Stage::Processing) => ("Processing Records", Style::Blue),
        (PhaseKind::Warmup, Stage::Sending) => ("Warmup", Style::Yellow),
        (PhaseKind::Warmup, Stage::Grace) => ("Warmup Grace Period", Style::Magenta),
        (PhaseKind::Profiling, Stage::Sending) => ("Profiling", Style::Green),
        (PhaseKind::Profiling, Stage::Grace) => ("Profiling Grace Period", Style::Cyan),
    };
    let full = (percent / 100.0 * WIDTH as f64) as usize;
    let bar = format!("{}{}", "█".repeat(full), " ".repeat(WIDTH - full));
    let bar = palette.paint(style, &bar);
    if let Some(total) = snapshot.total {
        let left = if percent > 0.0 {
            clock(snapshot.elapsed.mul_f64((100.0 - percent) / percent))
        } else {
            "?".to_owned()
        };
        let elapsed = clock(snapshot.elapsed);
        return format!("{name}: {}/{total} |{bar}| {percent:.0}% [{elapsed}<{left}]", snapshot.done);
    }
    let failed = match snapshot.failed {
        0 => String::new(),
        failed => format!(", {} failed", count(failed)),
    };
    format!("{name}: {percent:.0}% |{bar}| {} done{failed}", count(snapshot.done))
}

/// `MM:SS`, with hours in front when there are any.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_with_and_without_a_total() {
        let mut snapshot = Snapshot {
            phase: PhaseKind::Profiling,
            stage: Stage::Sending,
            elapsed: Duration::from_secs(65),
            done: 250,
            failed: 0,
            total: Some(1_000),
            fraction: None,
            live: None,
            waiting: None,
        };
        let text = |snapshot: &Snapshot<'_>| line(snapshot, percent(snapshot).unwrap(), Palette::plain());
        assert_eq!(text(&snapshot), "Profiling: 250/1000 |███████                       | 25% [01:05<03:15]");
        snapshot.total = None;
        assert_eq!(percent(&snapshot), None);
        snapshot.fraction = Some(0.5);
        snapshot.stage = Stage::Grace;
        assert_eq!(text(&snapshot), "Profiling Grace Period: 50% |███████████████               | 250 done");
        (snapshot.done, snapshot.failed) = (1_250, 3);
        assert!(text(&snapshot).ends_with("| 1,250 done, 3 failed"));
        snapshot.fraction = Some(7.0);
        assert_eq!(percent(&snapshot), Some(100.0));
        assert_eq!(clock(Duration::from_secs(3_725)), "1:02:05");
    }
}
