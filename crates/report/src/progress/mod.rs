//! What the user sees while a run goes on. It has no thread and no clock: whoever has a timer hands it snapshots.

mod bar;
mod live;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use aiperf_config::Ui as Mode;
use aiperf_types::PhaseKind;

use crate::screen::Screen;

pub use live::{LiveFigures, LiveRow};
pub use waiting::Waiting;

/// Seconds between live blocks unless chosen otherwise.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(30);
/// Without a terminal every redraw is a line of its own, so steps are larger.
const PIPE_STEP_PCT: f64 = 10.0;

/// After so long without a request that came back it is said what is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a phase is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Requests are sent.
    Sending,
    /// No more are sent; those in flight may finish.
    Grace,
    /// All are back; records are being evaluated.
    Processing,
}

/// A run at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'s> {
    /// The phase.
    pub phase: PhaseKind,
    /// What it is doing.
    pub stage: Stage,
    /// Since its start.
    pub elapsed: Duration,
    /// Requests (or, while processing, records) done.
    pub done: u64,
    /// Of those whose records are finished, failed.
    pub failed: u64,
    /// How many there will be, where a count ends the stage.
    pub total: Option<u64>,
    /// Share of the stage that is over, 0 to 1, where time ends it.
    pub fraction: Option<f64>,
    /// Running figures, when the caller has them at hand.
    pub live: Option<&'s LiveFigures>,
    /// What is waited for, as long as no request of the phase is back.
    pub waiting: Option<Waiting>,
}

/// Shows progress.
#[derive(Debug)]
pub struct Ui {
    mode: Mode,
    screen: Arc<Screen>,
    interval: Duration,
    step_pct: f64,
    /// What the bar shows: phase, stage, percent.
    drawn: Option<(PhaseKind, Stage, f64)>,
    /// When in its phase the last live block was shown.
    last_live: Option<(PhaseKind, Duration)>,
    /// When in its phase it was last said what is waited for.
    last_waiting: Option<(PhaseKind, Duration)>,
}

impl Ui {
    /// `interval` is that of live blocks: `None` the default, zero never. `step_pct` is the smallest step of a bar.
    pub fn new(mode: Mode, interval: Option<Duration>, step_pct: f64, screen: Arc<Screen>) -> Ui {
        let step_pct = if screen.is_terminal() { step_pct } else { step_pct.max(PIPE_STEP_PCT) };
        let interval = interval.unwrap_or(DEFAULT_INTERVAL);
        Ui { mode, screen, interval, step_pct, drawn: None, last_live: None, last_waiting: None }
    }

    /// Whether a snapshot should carry live figures now: making them costs something.
    pub fn wants_live(&self, phase: PhaseKind, elapsed: Duration) -> bool {
        if self.mode == Mode::None || self.interval.is_zero() {
            return false;
        }
        match self.last_live {
            Some((last, at)) if last == phase => elapsed >= at + self.interval,
            _ => elapsed >= self.interval,
        }
    }

    /// Shows a snapshot, as far as anything has changed enough.
    pub fn update(&mut self, snapshot: &Snapshot<'_>) {
        if self.mode == Mode::None {
            return;
        }
        if let Some(figures) = snapshot.live
            && self.wants_live(snapshot.phase, snapshot.elapsed)
        {
            // Blocks stay on the grid of the interval, however late this call is.
            let grid = self.interval.as_nanos().max(1);
            let at = snapshot.elapsed.as_nanos() / grid * grid;
            self.last_live =
                Some((snapshot.phase, Duration::from_nanos(u64::try_from(at).unwrap_or(u64::MAX))));
            self.screen.lines(&figures.block(snapshot.phase, snapshot.elapsed));
        }
        if let Some(waiting) = &snapshot.waiting
            && self.wants_waiting(snapshot.phase, snapshot.elapsed)
        {
            self.last_waiting = Some((snapshot.phase, snapshot.elapsed));
            self.screen.lines(&waiting.line(snapshot.phase, snapshot.elapsed));
        }
        if self.mode == Mode::Simple {
            self.draw(snapshot);
        }
    }

    /// Whether it is time to say what is waited for: sooner than the first live block, then as often as those.
    fn wants_waiting(&self, phase: PhaseKind, elapsed: Duration) -> bool {
        if self.interval.is_zero() {
            return false;
        }
        match self.last_waiting {
            Some((last, at)) if last == phase => elapsed >= at + self.interval,
            _ => elapsed >= self.interval.min(PATIENCE),
        }
    }

    /// Removes the bar; lines may follow.
    pub fn finish(&mut self) {
        if self.drawn.take().is_some() {
            self.screen.bar(String::new());
        }
    }

    fn draw(&mut self, snapshot: &Snapshot<'_>) {
        let Some(percent) = bar::percent(snapshot) else { return };
        let is_due = match self.drawn {
            Some((phase, stage, last)) if (phase, stage) == (snapshot.phase, snapshot.stage) => {
                (percent / self.step_pct).floor() > (last / self.step_pct).floor()
                    || (percent >= 100.0 && last < 100.0)
            }
            _ => true,
        };
        if is_due {
            self.drawn = Some((snapshot.phase, snapshot.stage, percent));
            self.screen.bar(bar::line(snapshot, percent, self.screen.palette()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::tests::Memory;

    fn at(done: u64, elapsed_sec: u64) -> Snapshot<'static> {
        Snapshot {
            phase: PhaseKind::Profiling,
            stage: Stage::Sending,
            elapsed: Duration::from_secs(elapsed_sec),
            done,
            failed: 0,
            total: Some(1_000),
            fraction: None,
            live: None,
            waiting: None,
        }
    }

    fn ui(mode: Mode, is_terminal: bool, interval: Option<u64>) -> (Ui, Memory) {
        let memory = Memory::default();
        let screen = Arc::new(memory.screen(is_terminal));
        (Ui::new(mode, interval.map(Duration::from_secs), 1.0, screen), memory)
    }

    #[test]
    fn the_bar_is_redrawn_in_steps_of_a_percent() {
        let (mut ui, memory) = ui(Mode::Simple, true, Some(0));
        for done in 0..=1_000 {
            ui.update(&at(done, done / 10));
        }
        assert_eq!(memory.take().matches("\r\x1b[K").count(), 101);
        ui.finish();
        assert_eq!(memory.take(), "\r\x1b[K");
    }

    #[test]
    fn a_pipe_gets_few_lines() {
        let (mut ui, memory) = ui(Mode::Simple, false, Some(0));
        for done in 0..=1_000 {
            ui.update(&at(done, done / 10));
        }
        ui.finish();
        let text = memory.take();
        assert_eq!(text.lines().count(), 11);
        assert!(!text.contains('\x1b') && !text.contains('\r'));
    }

    #[test]
    fn live_blocks_keep_to_their_grid() {
        let (mut ui, memory) = ui(Mode::Lines, false, Some(5));
        let figures = LiveFigures::default();
        let mut shown = Vec::new();
        for second in [1, 4, 5, 6, 9, 12, 14, 15] {
            ui.update(&Snapshot { live: Some(&figures), ..at(0, second) });
            if !memory.take().is_empty() {
                shown.push(second);
            }
        }
        assert_eq!(shown, [5, 12, 15]);
    }

    #[test]
    fn none_is_silent_and_zero_turns_live_blocks_off() {
        let figures = LiveFigures::default();
        for (mode, interval) in [(Mode::None, Some(1)), (Mode::Lines, Some(0))] {
            let (mut ui, memory) = ui(mode, false, interval);
            ui.update(&Snapshot { live: Some(&figures), ..at(10, 100) });
            assert_eq!(memory.take(), "");
            assert!(!ui.wants_live(PhaseKind::Profiling, Duration::from_secs(100)));
        }
    }
    #[test]
    fn who_waits_is_told_for_what_after_ten_seconds_and_then_with_every_block() {
        let waiting = Waiting { in_flight: 4, sent: 4, securing: 4, ..Waiting::default() };
        let told = |mode, interval: Option<u64>| {
            let (mut ui, memory) = ui(mode, false, interval);
            let mut told = Vec::new();
            for second in 0..100 {
                ui.update(&Snapshot { total: None, waiting: Some(waiting), ..at(0, second) });
                let text = memory.take();
                assert!(text.is_empty() || text.starts_with("[waiting "), "{text}");
                told.extend((!text.is_empty()).then_some(second));
            }
            told
        };
        assert_eq!(told(Mode::Lines, None), [10, 40, 70]);
        assert_eq!(told(Mode::Simple, Some(60)), [10, 70]);
        assert_eq!(told(Mode::Lines, Some(4))[..3], [4, 8, 12]);
        for (mode, interval) in [(Mode::None, None), (Mode::Lines, Some(0)), (Mode::Simple, Some(0))] {
            assert!(told(mode, interval).is_empty(), "{mode:?} {interval:?}");
        }
        // Once something is back, nobody asks any more; each phase waits for itself.
        let (mut ui, memory) = ui(Mode::Lines, false, None);
        ui.update(&Snapshot { waiting: Some(waiting), ..at(0, 15) });
        memory.take();
        ui.update(&at(0, 60));
        assert_eq!(memory.take(), "");
        ui.update(&Snapshot { waiting: Some(waiting), phase: PhaseKind::Warmup, ..at(0, 12) });
        assert!(memory.take().starts_with("[waiting 00:12 warmup]"));
    }
}
