//! `aiperf`.

use std::process::ExitCode;

/// Requests are built on one thread and freed on another, which the system's allocator does under locks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    aiperf_cli::run(std::env::args_os().skip(1)).into()
}
