//! The file that a command writes: `--output FILE`, and `--force` where it is there already.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock};
use std::path::{Path, PathBuf};

use aiperf_report::{file_id, remedy};
use clap::{Arg, ArgAction, ArgMatches};

use crate::exit::ExitStatus;
use crate::exit::Failure;

/// What `--output` is for rows on stdout, in commands that write them there.
pub(super) const STDOUT: &str = "-";

/// Stdout for many rows.
pub(super) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// What the output is called when it was written.
pub(super) fn shown(output: &str) -> &str {
    if output == STDOUT { "stdout" } else { output }
}

/// The two arguments; `help` is that of the first. Whoever has no default for it requires it.
pub(super) fn arguments(help: &'static str, is_required: bool) -> [Arg; 2] {
    [
        Arg::new("output").long("output").value_name("FILE").required(is_required).help(help),
        Arg::new("force")
            .long("force")
            .action(ArgAction::SetTrue)
            .help("Replace FILE when it is there already"),
    ]
}

/// Refuses a file that is read, under any of its names: it would be gone. `flag` is the one that names `output`.
pub(super) fn is_not_read(flag: &str, output: &Path, read: &[PathBuf]) -> Result<(), Failure> {
    let Some(id) = file_id(output) else { return Ok(()) };
    if !read.iter().any(|file| file_id(file) == Some(id)) {
        return Ok(());
    }
    let part = if read.len() == 1 { "the input itself" } else { "one of the input files" };
    Err(Failure::usage(format!("{} is {part}; name another file with {flag}", output.display())))
}

/// Refuses a file that is there already, unless it may be replaced.
pub(super) fn may_write(matches: &ArgMatches, output: &Path) -> Result<(), Failure> {
    if matches.get_flag("force") || output.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} exists already; give --force to replace it, or name another file with --output",
        output.display()
    )))
}

/// The failure of a command that cannot write its file.
pub(super) fn broken(output: impl Display, error: &io::Error) -> Failure {
    let text = format!("cannot write {output}: {error}; {}", remedy(error, "--output"));
    Failure::new(text, ExitStatus::Failure)
}
