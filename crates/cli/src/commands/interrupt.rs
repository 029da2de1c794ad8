//! Ctrl-C while a command writes what it makes.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiperf_source::Stop;

use crate::exit::{ExitStatus, Failure};
use crate::remote::Signals;

/// Hears Ctrl-C and SIGTERM as long as it is held; a second one ends the program.
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
            return Err(Failure::new("interrupted; nothing was left behind", ExitStatus::Failure));
        }
        Ok(())
    }

    /// `inner`, which takes nothing more once one was heard.
    pub(super) fn writer<W: Write>(&self, inner: W) -> impl Write + use<W> {
        Interruptible { inner, heard: Arc::clone(&self.heard) }
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
