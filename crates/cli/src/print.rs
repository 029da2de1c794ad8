//! Where text goes: stdout is data, stderr is talk. A closed pipe is no failure.
//!
//! Control characters of what was typed or read are escaped, as fits where they stand.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiperf_report::{Patience, Screen, Waiting, escaped};
use serde_json::Value;

use crate::exit::ExitStatus;

/// Text was lost: stdout could not take it, as on a full disk.
static LOST: AtomicBool = AtomicBool::new(false);

/// Writes to stdout.
pub(crate) fn out(text: &str) {
    raw(&escaped(text, true));
}

/// Writes a value to stdout as JSON, on one line or indented, and ends the line.
pub(crate) fn json(value: &Value, is_indented: bool) {
    raw(&(json_text(value, is_indented) + "\n"));
}

/// JSON in which no control character stands as it is: those above ASCII need no escape, and would act on a terminal.
pub(crate) fn json_text(value: &Value, is_indented: bool) -> String {
    let text = if is_indented { format!("{value:#}") } else { value.to_string() };
    let acts = |c: char| c.is_control() && c != '\n';
    if !text.contains(acts) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if acts(c) {
            // Invariant: all of them are in strings, and below U+00A0.
            _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

fn raw(text: &str) {
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
    Waiting::new(Arc::new(Screen::stderr(true)), what)
}

/// Writes whole lines to stderr.
pub(crate) fn err(text: &str) {
    if !text.is_empty() {
        Screen::stderr(false).lines(&line(text));
    }
}

/// The same as the last thing that this process says.
pub(crate) fn last_err(text: &str) {
    Screen::stderr(false).last_lines(&line(text));
}

/// Lines without the end of the last one.
fn line(text: &str) -> Cow<'_, str> {
    escaped(text.strip_suffix('\n').unwrap_or(text), true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_read_back_and_does_not_act_on_a_terminal() {
        let value = json!({"a\u{7f}": ["b\u{9b}31m\u{85}\u{1b}\r\n", "é 😀 \\"]});
        for is_indented in [false, true] {
            let text = json_text(&value, is_indented);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value, "{text}");
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
            assert_eq!(text.contains('\n'), is_indented);
        }
    }
}
