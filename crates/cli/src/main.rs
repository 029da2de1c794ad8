//! `aiperf`.

use std::process::ExitCode;

mod allocator;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

fn main() -> ExitCode {
    aiperf_cli::run(std::env::args_os().skip(1)).into()
}
