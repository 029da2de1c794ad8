//! Ctrl-C while a command writes what it makes, or reads what it is named.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiperf_source::Stop;
use signal_hook::iterator::{Handle, Signals as Hook};

use crate::exit::{ExitStatus, Failure};
use crate::print;
use crate::remote::Signals;

/// What is said of a command that did not come to its end.
const INTERRUPTED: &str = "interrupted; nothing was left behind";

/// Hears Ctrl-C and its kin as long as it is held; a second one ends the program.
pub(super) struct Interrupt {
    heard: Arc<AtomicBool>,
    _signals: Signals,
}

impl Interrupt {
    pub(super) fn new() -> Interrupt {
        let stop = Stop::default();
        Interrupt { heard: stop.flag(), _signals: Signals::set(&stop) }
    }

    /// Fails once one was heard. Whoever asks removes what is half made.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.heard.load(Ordering::Relaxed) {
            return Err(Failure::new(INTERRUPTED, ExitStatus::Failure));
        }
        Ok(())
    }

    /// `inner`, which takes nothing more once one was heard.
    pub(super) fn writer<W: Write>(&self, inner: W) -> impl Write + use<W> {
        Interruptible { inner, heard: Arc::clone(&self.heard) }
    }
}

/// While it is held, Ctrl-C and its kin end a command that only reads: at once, whatever it does.
pub(super) struct EndsAtOnce(Option<Handle>);

impl EndsAtOnce {
    /// `folder` is removed before the end. Where signals cannot be listened to, they end the program themselves.
    pub(super) fn new(folder: Option<PathBuf>) -> EndsAtOnce {
        let Ok(mut signals) = Hook::new(aiperf_run::interrupts()) else { return EndsAtOnce(None) };
        let handle = signals.handle();
        let wait = move || {
            if signals.forever().next().is_some() {
                if let Some(folder) = folder {
                    _ = std::fs::remove_dir_all(folder);
                }
                print::err(&format!("error: {INTERRUPTED}\n"));
                std::process::exit(ExitStatus::Failure.code().into());
            }
        };
        _ = std::thread::Builder::new().name("signals".into()).spawn(wait);
        EndsAtOnce(Some(handle))
    }
}

impl Drop for EndsAtOnce {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.close();
        }
    }
}

struct Interruptible<W> {
    inner: W,
    heard: Arc<AtomicBool>,
}

impl<W: Write> Write for Interruptible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.heard.load(Ordering::Relaxed) {
            // Not `Interrupted`, after which a writer tries again.
            return Err(io::Error::other("interrupted"));
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const FOLDER: &str = "AIPERF_TEST_ENDS_AT_ONCE";

    #[test]
    fn a_command_that_only_reads_ends_at_the_first_signal() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("links");
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "commands::interrupt::tests::child_that_reads_for_ever", "--nocapture"])
            .env(FOLDER, &made)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("error: interrupted; nothing was left behind\n"), "{said}");
        assert!(!made.exists());
    }

    /// Not a test by itself: the child of the one above.
    #[test]
    fn child_that_reads_for_ever() {
        let Some(folder) = std::env::var_os(FOLDER) else { return };
        std::fs::create_dir(&folder).unwrap();
        // Sources were asked before: nothing listens any more.
        drop(Signals::set(&Stop::default()));
        let _ends = EndsAtOnce::new(Some(folder.into()));
        signal_hook::low_level::raise(signal_hook::consts::SIGINT).unwrap();
        loop {
            std::thread::park();
        }
    }
}
