//! What is printed after a run: tables on standard output, and the same as plain text in a file.

mod delivery;
mod errors;
mod metrics;
mod notices;
mod overview;
mod table;
mod tail;

use std::io::{self, Write};

use crate::results::RunResults;
use crate::style::Palette;

pub use tail::tail;

/// Columns of the text file, and of a console that is no terminal.
pub const FILE_WIDTH: usize = 140;
/// Name before the titles of tables.
const PRODUCT: &str = "AIPerf";

/// Everything from the overview line to the load delivery, each section after a blank line.
pub fn tables(results: &RunResults<'_>, width: usize, palette: Palette) -> String {
    type Section = fn(&RunResults<'_>, usize, Palette, &mut String);
    const SECTIONS: [Section; 9] = [
        overview::incomplete,
        overview::line,
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

/// Prints `text`. Standard output that nobody reads any more is no failure.
pub fn print(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
