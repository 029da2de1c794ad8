//! The log: lines on standard error, and all of them in a file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aiperf_clock::{format_log, now, wall};

use crate::names::LOG_FILE;
use crate::redact::Redactor;
use crate::screen::Screen;
use crate::style::Style;
use crate::text::printable;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Each step.
    Trace,
    /// For developers.
    Debug,
    /// What happens.
    Info,
    /// Worth knowing.
    Notice,
    /// Figures may suffer.
    Warning,
    /// Done as asked.
    Success,
    /// Something failed.
    Error,
    /// The run cannot go on.
    Critical,
}

impl Level {
    /// By number, 0 trace … 7 critical; larger numbers are critical.
    pub fn from_number(number: u8) -> Level {
        const ALL: [Level; 8] = [
            Level::Trace,
            Level::Debug,
            Level::Info,
            Level::Notice,
            Level::Warning,
            Level::Success,
            Level::Error,
            Level::Critical,
        ];
        ALL[usize::from(number).min(ALL.len() - 1)]
    }

    /// As lines spell it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Trace => "TRACE",
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Notice => "NOTICE",
            Level::Warning => "WARNING",
            Level::Success => "SUCCESS",
            Level::Error => "ERROR",
            Level::Critical => "CRITICAL",
        }
    }

    fn style(self) -> Style {
        match self {
            Level::Trace | Level::Debug => Style::Dim,
            Level::Info => Style::Plain,
            Level::Notice => Style::Cyan,
            Level::Warning => Style::Yellow,
            Level::Success => Style::Green,
            Level::Error | Level::Critical => Style::Red,
        }
    }
}

/// Writes lines; cheap to clone. Every text loses its secrets on the way.
#[derive(Clone, Debug)]
pub struct Log {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    threshold: Level,
    screen: Arc<Screen>,
    redactor: Redactor,
    file: Option<Mutex<File>>,
    path: Option<PathBuf>,
    has_gaps: AtomicBool,
}

impl Log {
    /// Lines from `threshold` on, on the screen only.
    pub fn on_screen(threshold: Level, screen: Arc<Screen>, redactor: Redactor) -> Log {
        Log {
            inner: Arc::new(Inner {
                threshold,
                screen,
                redactor,
                file: None,
                path: None,
                has_gaps: AtomicBool::new(false),
            }),
        }
    }

    /// Lines from `threshold` on, on the screen and in `logs/aiperf.log` below `dir`, which starts empty.
    pub fn open(dir: &Path, threshold: Level, screen: Arc<Screen>, redactor: Redactor) -> io::Result<Log> {
        let path = dir.join(LOG_FILE);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = Some(Mutex::new(File::create(&path)?));
        Ok(Log {
            inner: Arc::new(Inner {
                threshold,
                screen,
                redactor,
                file,
                path: Some(path),
                has_gaps: AtomicBool::new(false),
            }),
        })
    }

    /// The file, when there is one.
    pub fn path(&self) -> Option<&Path> {
        self.inner.path.as_deref()
    }

    /// Whether a line could not be written to the file.
    pub fn has_gaps(&self) -> bool {
        self.inner.has_gaps.load(Ordering::Relaxed)
    }

    /// Whether lines of this level are written; ask before making an expensive text.
    pub fn is_enabled(&self, level: Level) -> bool {
        level >= self.inner.threshold
    }

    /// Writes an [`Level::Info`] line to the file alone: part of the story of the run, which the report tells on the
    /// screen.
    pub fn tell(&self, name: &str, text: &str) {
        if self.is_enabled(Level::Info) {
            let text = self.inner.redactor.text(text);
            self.write_file(&format_log(wall(now())), Level::Info, name, &printable(&text));
        }
    }

    fn write_file(&self, at: &str, level: Level, name: &str, text: &str) {
        if let Some(file) = &self.inner.file {
            let line = format!("{at} - {name} - {} - {text}\n", level.name());
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            if file.write_all(line.as_bytes()).is_err() {
                self.inner.has_gaps.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Writes a line. `name` is the part of the program that speaks. A line that cannot be written is lost: the
    /// run matters more than its log.
    pub fn write(&self, level: Level, name: &str, text: &str) {
        if !self.is_enabled(level) {
            return;
        }
        let text = self.inner.redactor.text(text);
        let text = printable(&text);
        let at = format_log(wall(now()));
        let screen = &self.inner.screen;
        let shown = screen.palette().paint(level.style(), &format!("{:<8}", level.name())).into_owned();
        // The date is the same all day: the screen shows the time alone.
        screen.lines(&format!("{} {shown} {text}", at.get(11..).unwrap_or(&at)));
        self.write_file(&at, level, name, &text);
    }

    /// An [`Level::Info`] line.
    pub fn info(&self, name: &str, text: &str) {
        self.write(Level::Info, name, text);
    }

    /// A [`Level::Warning`] line.
    pub fn warning(&self, name: &str, text: &str) {
        self.write(Level::Warning, name, text);
    }

    /// An [`Level::Error`] line.
    pub fn error(&self, name: &str, text: &str) {
        self.write(Level::Error, name, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::tests::Memory;

    #[test]
    fn lines_have_the_published_forms_and_hide_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let memory = Memory::default();
        let redactor = Redactor::of(["sk-canary".to_owned()]);
        let log = Log::open(dir.path(), Level::Info, Arc::new(memory.screen(false)), redactor).unwrap();
        log.info("load", "key sk-canary at https://u:p@h/x\nsecond");
        log.write(Level::Debug, "load", "not shown");
        let screen = memory.take();
        log.tell("load", "a phase began with sk-canary");
        assert_eq!(memory.take(), "");
        let (time, rest) = screen.split_at(12);
        assert!(time.bytes().enumerate().all(|(at, byte)| match at {
            2 | 5 => byte == b':',
            8 => byte == b'.',
            _ => byte.is_ascii_digit(),
        }));
        assert_eq!(rest, " INFO     key <redacted> at https://<redacted>@h/x second\n");
        let file = fs::read_to_string(dir.path().join("logs/aiperf.log")).unwrap();
        let (file, told) = file.split_once('\n').unwrap();
        assert_eq!(&told[23..], " - load - INFO - a phase began with <redacted>\n");
        assert_eq!(&file[23..], " - load - INFO - key <redacted> at https://<redacted>@h/x second");
        assert_eq!(&file[10..11], " ");
        assert_eq!(log.path(), Some(dir.path().join("logs/aiperf.log").as_path()));
    }

    #[test]
    fn lines_that_a_full_disk_does_not_take_are_known_to_be_missing() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("logs")).unwrap();
        std::os::unix::fs::symlink("/dev/full", dir.path().join(LOG_FILE)).unwrap();
        let screen = Arc::new(Memory::default().screen(false));
        let log = Log::open(dir.path(), Level::Info, screen, Redactor::of([])).unwrap();
        assert!(!log.has_gaps());
        log.info("load", "a line");
        assert!(log.has_gaps());
    }

    #[test]
    fn levels_are_ordered_as_documented() {
        let names: Vec<&str> = (0..9).map(|number| Level::from_number(number).name()).collect();
        assert_eq!(
            names,
            ["TRACE", "DEBUG", "INFO", "NOTICE", "WARNING", "SUCCESS", "ERROR", "CRITICAL", "CRITICAL"]
        );
    }
}
