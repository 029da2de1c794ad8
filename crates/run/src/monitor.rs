//! Watches a run: progress, files that are to be flushed, bad records found later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use aiperf_clock::{Mono, now};
use aiperf_config::{PhaseConfig, Ui as UiMode};
use aiperf_load::{Control, StopCause, UnderwayCounts};
use aiperf_metrics::live::{self, Reading};
use aiperf_report::Screen;
use aiperf_report::progress::{LiveFigures, Snapshot, Stage, Ui, Waiting};

use crate::compute::Shared;

/// How often progress is looked at.
const TICK: Duration = Duration::from_millis(100);

/// What the main thread is doing, for progress.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// 0 before the first phase, 1 + index during phases, 255 when records are being finished.
    stage: AtomicU8,
    over: AtomicBool,
}

impl Position {
    pub(crate) fn phase(&self, index: usize) {
        self.stage.store(1 + index as u8, Ordering::Release);
    }

    pub(crate) fn processing(&self) {
        self.stage.store(u8::MAX, Ordering::Release);
    }
}

/// The thread that watches.
pub(crate) struct Monitor {
    position: Arc<Position>,
    ticker: Option<JoinHandle<()>>,
}

/// What the monitor looks at.
pub(crate) struct Watched {
    pub(crate) shared: Arc<Shared>,
    pub(crate) accepted: Arc<AtomicU64>,
    pub(crate) phases: Vec<PhaseConfig>,
    pub(crate) ui: UiMode,
    pub(crate) interval: Option<Duration>,
    pub(crate) step_pct: f64,
    pub(crate) screen: Arc<Screen>,
}

impl Monitor {
    /// Starts watching.
    pub(crate) fn start(watched: Watched) -> std::io::Result<Monitor> {
        let position = Arc::new(Position::default());
        let at = Arc::clone(&position);
        let ticker =
            std::thread::Builder::new().name("progress".into()).spawn(move || tick(&watched, &at))?;
        Ok(Monitor { position, ticker: Some(ticker) })
    }

    /// Where the main thread says what it is doing.
    pub(crate) fn position(&self) -> &Position {
        &self.position
    }

    /// Stops progress.
    pub(crate) fn stop_progress(&mut self) {
        self.position.over.store(true, Ordering::Release);
        if let Some(ticker) = self.ticker.take() {
            ticker.thread().unpark();
            // A panic was reported by the hook.
            let _ = ticker.join();
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop_progress();
    }
}

fn tick(watched: &Watched, position: &Position) {
    let mut ui = Ui::new(watched.ui, watched.interval, watched.step_pct, Arc::clone(&watched.screen));
    let mut last = None;
    let mut broken = [false; 2];
    let shared = &watched.shared;
    while !position.over.load(Ordering::Acquire) {
        std::thread::park_timeout(TICK);
        let at = now();
        for (sink, broken) in [&shared.records, &shared.raw].into_iter().zip(&mut broken) {
            let Some(sink) = sink else { continue };
            sink.tick(at);
            if sink.has_failed() && !std::mem::replace(broken, true) {
                let path = sink.path().display();
                shared.log.warning(
                    "export",
                    &format!("{path} cannot be written any more: further records are counted, not kept"),
                );
            }
        }
        if shared.fault.get().is_none()
            && let Some(fault) = shared.dataset.fault()
            && shared.fault.set(fault.to_string().into()).is_ok()
        {
            shared.stop(StopCause::BadRecord);
        }
        match position.stage.load(Ordering::Acquire) {
            0 => {}
            u8::MAX => {
                let phase =
                    watched.phases.last().map_or(aiperf_types::PhaseKind::Profiling, |phase| phase.kind);
                ui.update(&Snapshot {
                    phase,
                    stage: Stage::Processing,
                    elapsed: Duration::ZERO,
                    done: shared.finished.load(Ordering::Relaxed),
                    failed: 0,
                    total: Some(watched.accepted.load(Ordering::Relaxed)),
                    fraction: None,
                    live: None,
                    waiting: None,
                });
            }
            stage => {
                if let Some(phase) = watched.phases.get(usize::from(stage) - 1) {
                    show_phase(&mut ui, &mut last, watched, (usize::from(stage) - 1, phase), at);
                }
            }
        }
    }
    ui.finish();
}

/// A reading of the running figures, and when in which phase it was taken.
type LastReading = Option<(usize, Reading, Duration)>;

fn show_phase(
    ui: &mut Ui,
    last: &mut LastReading,
    watched: &Watched,
    phase: (usize, &PhaseConfig),
    at: Mono,
) {
    let (index, phase) = phase;
    let control = &watched.shared.control;
    let start = control.phase_start.load(Ordering::Acquire);
    if start == 0 || control.phase.load(Ordering::Relaxed) != index as u64 {
        return;
    }
    let elapsed_ns = at.saturating_since(Mono(start));
    let returned = control.returned.load(Ordering::Relaxed);
    let in_grace = control.in_grace.load(Ordering::Relaxed);
    let (done, total) = if in_grace {
        (returned, Some(control.issued.load(Ordering::Relaxed)))
    } else if let (None, Some(sessions)) = (phase.stop.requests, phase.stop.sessions) {
        (control.sessions.load(Ordering::Relaxed), Some(sessions))
    } else {
        (returned, phase.stop.requests)
    };
    let fraction = phase
        .stop
        .duration
        .filter(|_| !in_grace)
        .map(|duration| (elapsed_ns as f64 / 1e9 / duration.as_secs_f64().max(1e-9)).min(1.0));
    let elapsed = Duration::from_nanos(elapsed_ns);
    let live = ui.wants_live(phase.kind, elapsed).then(|| {
        let reading = live::read(&watched.shared.live, phase.kind);
        let earlier = last.as_ref().filter(|(of, _, _)| *of == index).map(|(_, reading, at)| (reading, *at));
        let figures = LiveFigures::since(earlier, &reading, elapsed);
        *last = Some((index, reading, elapsed));
        figures
    });
    ui.update(&Snapshot {
        phase: phase.kind,
        stage: if in_grace { Stage::Grace } else { Stage::Sending },
        elapsed,
        done,
        failed: live::failed(&watched.shared.live, phase.kind),
        total,
        fraction,
        live: live.as_ref(),
        waiting: waiting(control, phase, returned),
    });
}

/// Where the requests of a phase are of which none is back.
fn waiting(control: &Control, phase: &PhaseConfig, returned: u64) -> Option<Waiting> {
    let UnderwayCounts { sent, connecting, securing, begun } = control.underway.counts()?;
    let in_flight = control.issued.load(Ordering::Relaxed).saturating_sub(returned);
    Some(Waiting { total: phase.stop.requests, in_flight, sent, connecting, securing, begun })
}
