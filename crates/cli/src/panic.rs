//! A fault of this program: the terminal is put in order, and the exit code says so.

use std::io::{IsTerminal, Write};

use crate::exit::ExitStatus;

/// Installs the hook. A panic on any thread ends the process: a run that lost a thread measures nothing that can be
/// trusted, and must not hang.
pub fn install() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // A decoder gave up on a damaged file, which is told as an error.
        if aiperf_dataset::panic_is_caught() {
            return;
        }
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            // Attributes off, cursor shown, a line of its own.
            _ = stderr.write_all(b"\x1b[0m\x1b[?25h\r\n");
        }
        default(info);
        _ = stderr.write_all(
            b"internal error: this is a fault of aiperf, not of the server; please report it with the lines above\n",
        );
        std::process::exit(i32::from(ExitStatus::Internal.code()));
    }));
}
