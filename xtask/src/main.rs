//! Chores that are no part of the program: `cargo xtask bench`, the benchmark harness.

use std::io::Write as _;
use std::process::ExitCode;

mod bench;
mod prepare;

fn main() -> ExitCode {
    let outcome = bench::command().subcommand(prepare::command()).try_get_matches().map_or_else(
        |error| {
            // Help and usage errors print themselves, to the stream that fits.
            let _ = error.print();
            Ok(if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS })
        },
        |matches| match matches.subcommand() {
            Some(("bench", matches)) => bench::run(matches),
            Some(("prepare", matches)) => prepare::run(matches),
            _ => Ok(ExitCode::from(2)),
        },
    );
    outcome.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "error: {error:#}");
        ExitCode::FAILURE
    })
}
