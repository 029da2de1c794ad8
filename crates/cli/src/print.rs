//! Where text goes: stdout is data, stderr is talk. A closed pipe is no failure.

use std::io::Write;

/// Writes to stdout.
pub(crate) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // Whoever closed the other end has read enough.
    _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Writes to stderr.
pub(crate) fn err(text: &str) {
    _ = std::io::stderr().lock().write_all(text.as_bytes());
}
