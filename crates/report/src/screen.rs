//! Standard error as a place for lines, with one bar that stays below them.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::style::{Palette, is_capable_terminal};

/// Standard error of this process: whoever writes to it knows of the bar that another has drawn.
static STDERR: LazyLock<Arc<Mutex<Inner>>> = LazyLock::new(|| Inner::shared(Box::new(io::stderr())));

/// Where talk goes: log lines, live figures, a progress bar. Thread-safe; nobody listening is no failure.
pub struct Screen {
    inner: Arc<Mutex<Inner>>,
    is_terminal: bool,
    palette: Palette,
}

struct Inner {
    out: Box<dyn Write + Send>,
    bar: String,
    /// The process ends: no bar is drawn any more.
    is_closed: bool,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").field("is_terminal", &self.is_terminal).finish_non_exhaustive()
    }
}

impl Screen {
    /// Standard error, one for the whole process; colour only on a terminal and where it is allowed.
    pub fn stderr(colour_allowed: bool) -> Screen {
        let is_terminal = is_capable_terminal(&io::stderr());
        let palette = Palette::for_stream(is_terminal, colour_allowed);
        Screen { inner: Arc::clone(&STDERR), is_terminal, palette }
    }

    /// Any stream.
    pub fn new(out: Box<dyn Write + Send>, is_terminal: bool, palette: Palette) -> Screen {
        Screen { inner: Inner::shared(out), is_terminal, palette }
    }

    /// Whether a bar can be redrawn in place.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// How styles are shown here.
    pub fn palette(&self) -> Palette {
        self.palette
    }

    /// Writes whole lines (without their last line end) above the bar.
    pub fn lines(&self, text: &str) {
        self.lock().lines(text);
    }

    /// Writes the last lines of the process: the bar goes, and none is drawn any more.
    pub fn last_lines(&self, text: &str) {
        let mut inner = self.lock();
        inner.draw(String::new());
        inner.is_closed = true;
        inner.lines(text);
    }

    /// Draws the bar anew; an empty one removes it. Without a terminal each bar is a line.
    pub fn bar(&self, bar: String) {
        if !self.is_terminal {
            if !bar.is_empty() {
                self.lines(&bar);
            }
            return;
        }
        self.lock().draw(bar);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn shared(out: Box<dyn Write + Send>) -> Arc<Mutex<Inner>> {
        Arc::new(Mutex::new(Inner { out, bar: String::new(), is_closed: false }))
    }

    fn lines(&mut self, text: &str) {
        let mut bytes = Vec::with_capacity(text.len() + self.bar.len() + 8);
        if !self.bar.is_empty() {
            bytes.extend_from_slice(b"\r\x1b[K");
        }
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(b'\n');
        bytes.extend_from_slice(self.bar.as_bytes());
        self.write(&bytes);
    }

    fn draw(&mut self, bar: String) {
        if self.is_closed || (bar.is_empty() && self.bar.is_empty()) {
            return;
        }
        let bytes = format!("\r\x1b[K{bar}");
        self.bar = bar;
        self.write(bytes.as_bytes());
    }

    fn write(&mut self, bytes: &[u8]) {
        // One write per change, so that other writers to the same terminal do not come between.
        let _ = self.out.write_all(bytes).and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;

    /// A stream that can be read back.
    #[derive(Clone, Default)]
    pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Memory {
        pub(crate) fn take(&self) -> String {
            String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
        }

        pub(crate) fn screen(&self, is_terminal: bool) -> Screen {
            Screen::new(Box::new(self.clone()), is_terminal, Palette::plain())
        }
    }

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_go_above_the_bar() {
        let memory = Memory::default();
        let screen = memory.screen(true);
        screen.bar("10%".into());
        screen.lines("a line");
        screen.bar(String::new());
        screen.lines("end");
        assert_eq!(memory.take(), "\r\x1b[K10%\r\x1b[Ka line\n10%\r\x1b[Kend\n");
    }

    #[test]
    fn the_last_lines_leave_no_bar_behind() {
        let memory = Memory::default();
        let screen = memory.screen(true);
        screen.bar("10%".into());
        screen.last_lines("end");
        // Whoever waits does not know yet that the process ends.
        screen.bar("11%".into());
        screen.bar(String::new());
        assert_eq!(memory.take(), "\r\x1b[K10%\r\x1b[Kend\n");
    }

    #[test]
    fn all_who_write_to_standard_error_know_of_one_bar() {
        let [one, other] = [true, false].map(Screen::stderr);
        assert!(Arc::ptr_eq(&one.inner, &other.inner));
    }

    #[test]
    fn without_a_terminal_there_are_no_control_sequences() {
        let memory = Memory::default();
        let screen = memory.screen(false);
        screen.bar("10%".into());
        screen.lines("a line");
        screen.bar(String::new());
        assert_eq!(memory.take(), "10%\na line\n");
    }

    #[test]
    fn nobody_listening_is_no_failure() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        Screen::new(Box::new(Closed), false, Palette::plain()).lines("x");
    }
}
