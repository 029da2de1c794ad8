//! Chores that are no part of the program: `cargo xtask bench`, the benchmark harness, and `cargo xtask oracle`, which
//! compares request bodies with those of the reference.

use std::io::Write as _;
use std::process::ExitCode;

mod bench;
mod oracle;
mod prepare;

/// What is measured within this process is measured with the program's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = bench::command()
        .subcommand(prepare::command())
        .subcommand(oracle::command())
        .try_get_matches()
        .map_or_else(
            |error| {
                // Help and usage errors print themselves, to the stream that fits.
                let _ = error.print();
                Ok(if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS })
            },
            |matches| match matches.subcommand() {
                Some(("bench", matches)) => bench::run(matches),
                Some(("prepare", matches)) => prepare::run(matches),
                Some(("oracle", matches)) => oracle::run(matches),
                _ => Ok(ExitCode::from(2)),
            },
        );
    outcome.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "error: {error:#}");
        ExitCode::FAILURE
    })
}
