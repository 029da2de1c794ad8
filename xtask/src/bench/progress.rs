//! Talk on stderr while the harness works; stdout is for the table.

use std::fmt::Arguments;
use std::io::Write as _;

/// One line of progress.
pub(crate) fn say(message: Arguments<'_>) {
    // Nobody has to read it.
    let _ = writeln!(std::io::stderr(), "{message}");
}
