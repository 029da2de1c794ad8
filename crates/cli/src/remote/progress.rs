//! What a person sees of a transfer: a bar on a terminal, a line now and then elsewhere.

use std::sync::{Mutex, PoisonError};

use aiperf_clock::Mono;
use aiperf_report::{Screen, escaped};
use aiperf_source::{Event, Events};

/// Nanoseconds between two redraws of a bar, and between two lines.
const REDRAW: u64 = 100_000_000;
const LINE: u64 = 10_000_000_000;
/// Characters of the bar.
const WIDTH: usize = 30;

/// A transfer that is going on.
#[derive(Debug, Default)]
pub(super) struct Progress {
    terminal: bool,
    total: Option<u64>,
    started: Mono,
    shown: Mono,
}

/// What an event puts on the screen.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    /// A line of its own.
    Line(String),
    /// The bar, or none.
    Bar(String),
}

impl Progress {
    /// Shows events on stderr.
    pub(super) fn events(terminal: bool) -> Events {
        let progress = Mutex::new(Progress { terminal, ..Progress::default() });
        let screen = Screen::stderr(false);
        Events::to(move |event| {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            match progress.take(&event, aiperf_clock::now()) {
                Shown::Nothing => {}
                Shown::Line(text) => screen.lines(&escaped(&text, true)),
                Shown::Bar(text) => screen.bar(text),
            }
        })
    }

    fn take(&mut self, event: &Event, now: Mono) -> Shown {
        match event {
            Event::Note { warning, text } => {
                let kind = if *warning { "warning" } else { "info" };
                Shown::Line(format!("{kind}: {text}"))
            }
            Event::Start { files, bytes } => {
                (self.total, self.started, self.shown) = (*bytes, now, now);
                let size = bytes.map_or_else(|| "size unknown".to_owned(), size);
                Shown::Line(format!("info: downloading {files} file(s), {size}"))
            }
            Event::Progress { done } => {
                let pause = if self.terminal { REDRAW } else { LINE };
                if now.saturating_since(self.shown) < pause {
                    return Shown::Nothing;
                }
                self.shown = now;
                self.line(*done, now)
            }
            Event::End => Shown::Bar(String::new()),
        }
    }

    fn line(&self, done: u64, now: Mono) -> Shown {
        let seconds = now.saturating_since(self.started) as f64 / 1e9;
        let rate = if seconds > 0.0 { done as f64 / seconds } else { 0.0 };
        let rate = format!("{}/s", size(rate as u64));
        let Some(total) = self.total.filter(|total| *total > 0) else {
            return self.show(format!("downloading: {} ({rate})", size(done)));
        };
        let share = (done as f64 / total as f64).min(1.0);
        let percent = (share * 100.0) as u64;
        let full = (share * WIDTH as f64) as usize;
        let bar = format!("|{}{}|", "█".repeat(full), " ".repeat(WIDTH - full));
        let bar = if self.terminal { format!(" {bar}") } else { String::new() };
        self.show(format!("downloading:{bar} {percent}% of {} ({rate})", size(total)))
    }

    fn show(&self, text: String) -> Shown {
        if self.terminal { Shown::Bar(text) } else { Shown::Line(format!("info: {text}")) }
    }
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_every_ten_seconds_where_there_is_no_terminal() {
        let mut progress = Progress::default();
        let at = |seconds: u64| Mono(seconds * 1_000_000_000);
        let start = progress.take(&Event::Start { files: 2, bytes: Some(4 << 20) }, at(0));
        assert_eq!(start, Shown::Line("info: downloading 2 file(s), 4.0 MiB".into()));
        assert_eq!(progress.take(&Event::Progress { done: 1 << 20 }, at(9)), Shown::Nothing);
        assert_eq!(
            progress.take(&Event::Progress { done: 1 << 20 }, at(10)),
            Shown::Line("info: downloading: 25% of 4.0 MiB (102.4 KiB/s)".into())
        );
        assert_eq!(progress.take(&Event::End, at(11)), Shown::Bar(String::new()));
    }

    #[test]
    fn a_terminal_has_one_bar() {
        let mut progress = Progress { terminal: true, ..Progress::default() };
        progress.take(&Event::Start { files: 1, bytes: None }, Mono(0));
        let bar = progress.take(&Event::Progress { done: 2048 }, Mono(REDRAW));
        assert_eq!(bar, Shown::Bar("downloading: 2.0 KiB (20.0 KiB/s)".into()));
        let note = progress.take(&Event::Note { warning: true, text: "x".into() }, Mono(REDRAW));
        assert_eq!(note, Shown::Line("warning: x".into()));
        assert_eq!(progress.take(&Event::End, Mono(REDRAW)), Shown::Bar(String::new()));
    }
}
