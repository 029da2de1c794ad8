//! What is printed after a run: tables on standard output, and the same as plain text in a file.

mod delivery;
mod errors;
mod known_errors;
mod metrics;
mod notices;
mod overview;
mod table;
mod tail;

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use crate::results::RunResults;
use crate::style::Palette;

pub use tail::tail;

/// Columns of a stream that is no terminal.
const PIPE_WIDTH: usize = 140;
/// Name before the titles of tables.
const PRODUCT: &str = "AIPerf";

/// Everything from the overview line to the load delivery, each section after a blank line.
pub fn tables(results: &RunResults<'_>, width: usize, palette: Palette) -> String {
    type Section = fn(&RunResults<'_>, usize, Palette, &mut String);
    const SECTIONS: [Section; 10] = [
        overview::incomplete,
        overview::line,
        known_errors::explained,
        errors::table,
        metrics::on_request,
        metrics::groups,
        metrics::speculative,
        notices::usage_discrepancy,
        notices::osl_mismatch,
        delivery::section,
    ];
    let mut out = String::new();
    for section in SECTIONS {
        let before = out.len();
        out.push('\n');
        section(results, width, palette, &mut out);
        if out.len() == before + 1 {
            out.truncate(before);
        }
    }
    out
}

/// Columns of a stream: those of its terminal, 140 where it is none.
pub fn width_of(stream: &(impl AsFd + IsTerminal)) -> usize {
    if !stream.is_terminal() {
        return PIPE_WIDTH;
    }
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => PIPE_WIDTH,
    }
}

/// Prints `text`. Standard output that nobody reads any more is no failure.
pub fn print(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
