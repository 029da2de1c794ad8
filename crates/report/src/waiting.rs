//! What is said while something takes longer than a second and cannot tell how far it is.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use aiperf_clock::now;

use crate::screen::Screen;
use crate::text::escaped;

/// Nothing is said before.
const FIRST: Duration = Duration::from_secs(1);
/// A terminal counts the seconds; a log is to stay short.
const ON_TERMINAL: Duration = Duration::from_secs(1);
const IN_LOG: Duration = Duration::from_secs(10);

/// Says what is waited for, and since when, once that has taken a second. Dropped, it clears its line.
#[derive(Debug)]
pub struct Waiting {
    /// Dropped, it ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Waiting begins now; `what` stands before the seconds, as in `reading trace.jsonl: 3 s`; control characters in
    /// it are escaped. Without a thread to say it, nothing is said.
    pub fn new(screen: Arc<Screen>, what: &str) -> Waiting {
        Waiting::after(FIRST, screen, what)
    }

    fn after(first: Duration, screen: Arc<Screen>, what: &str) -> Waiting {
        let (end, ended) = channel();
        let what = escaped(what, false).into_owned();
        let tell = move || tell(first, &screen, &what, &ended);
        let thread = std::thread::Builder::new().name("waiting".into()).spawn(tell).ok();
        Waiting { end: Some(end), thread }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn tell(first: Duration, screen: &Screen, what: &str, ended: &Receiver<()>) {
    let (begun, mut next, mut is_shown) = (now(), first, false);
    while ended.recv_timeout(next) == Err(RecvTimeoutError::Timeout) {
        let seconds = now().saturating_since(begun) / 1_000_000_000;
        screen.bar(format!("{what}: {seconds} s"));
        is_shown = true;
        next = if screen.is_terminal() { ON_TERMINAL } else { IN_LOG };
    }
    if is_shown {
        screen.bar(String::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::tests::Memory;

    #[test]
    fn what_takes_long_is_named_and_what_does_not_is_not() {
        let memory = Memory::default();
        let waiting = |first| {
            let screen = Arc::new(memory.screen(true));
            Waiting::after(first, screen, "reading d\u{1b}[2J.jsonl")
        };
        drop(waiting(Duration::from_hours(1)));
        assert_eq!(memory.take(), "");
        let long = waiting(Duration::ZERO);
        let mut said = String::new();
        while said.is_empty() {
            said = memory.take();
            std::thread::yield_now();
        }
        drop(long);
        said += &memory.take();
        assert!(
            said.starts_with("\r\x1b[Kreading d\\u{1b}[2J.jsonl: ") && said.ends_with(" s\r\x1b[K"),
            "{said:?}"
        );
    }
}
