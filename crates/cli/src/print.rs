//! Where text goes: stdout is data, stderr is talk. A closed pipe is no failure.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiperf_report::{Patience, Screen, Waiting, escaped};

use crate::exit::ExitStatus;

/// Text was lost: stdout could not take it, as on a full disk.
static LOST: AtomicBool = AtomicBool::new(false);

/// Writes to stdout. Control characters of what was typed or read are escaped, here and on stderr.
pub(crate) fn out(text: &str) {
    let text = escaped(text, true);
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        // Whoever closed the other end has read enough.
        && error.kind() != ErrorKind::BrokenPipe
        && !LOST.swap(true, Ordering::Relaxed)
    {
        err(&format!("error: cannot write to standard output: {error}; make room, or send it elsewhere\n"));
    }
}

/// How a command ends whose text on stdout is its result.
pub(crate) fn ended(status: ExitStatus) -> ExitStatus {
    if LOST.load(Ordering::Relaxed) { status.or(ExitStatus::Failure) } else { status }
}

/// Tells on stderr how far a command is, once it has taken a second.
pub(crate) fn patience() -> Patience {
    Patience::new(Arc::new(Screen::stderr(true)))
}

/// The same for work that cannot tell how far it is: `what` and the seconds so far.
pub(crate) fn waiting(what: &str) -> Waiting {
    Waiting::new(Arc::new(Screen::stderr(true)), what.to_owned())
}

/// Writes to stderr.
pub(crate) fn err(text: &str) {
    _ = std::io::stderr().lock().write_all(escaped(text, true).as_bytes());
}
