//! `aiperf`.

use std::process::ExitCode;

// The allocator is the system's: another one is a `#[global_allocator]` line here, once it measures better.

fn main() -> ExitCode {
    aiperf_cli::run(std::env::args_os().skip(1)).into()
}
