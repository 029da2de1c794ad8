//! One module per command; each says how the program ends.

pub mod analyze_trace;
pub mod anonymize;
pub mod completions;
pub mod dataset;
pub mod datasets;
mod input;
mod interrupt;
pub mod mock_server;
mod output;
pub mod plugins;
pub mod profile;
pub mod synthesize;
pub mod validate;
mod whole;

pub(crate) use input::{common_names, faults, first_record};

use std::ffi::OsString;
use std::sync::Arc;

use signal_hook::consts::SIGXFSZ;

use crate::exit::ExitStatus;
use crate::{arguments, panic, print, quote};

/// A file that has grown to its limit (`ulimit -f`) is an error of the write, as a full disk is, and not the end of the
/// program.
fn full_files_are_errors() {
    // What nobody reads: that the signal is heard at all is what keeps it from killing. Where it cannot be heard, all is
    // as it was.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Runs the program with the arguments that follow its name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitStatus {
    panic::install();
    full_files_are_errors();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let matches = match arguments::parse(&arguments) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => {
            let arguments = texts(&arguments);
            let error = arguments::with_tip(error, &arguments);
            // What was mistyped may be a credential, or a URL with one in it.
            print::err(&quote::hidden(&error.to_string(), &arguments));
            return ExitStatus::Usage;
        }
        Err(help_or_version) => {
            print::out(&help_or_version.to_string());
            return print::ended(ExitStatus::Success);
        }
    };
    print::ended(match matches.subcommand() {
        Some(("profile", matches)) => profile::run(matches, &texts(&arguments)),
        Some(("mock-server", matches)) => mock_server::run(matches),
        Some(("dataset", matches)) => dataset::run(matches),
        Some(("datasets", matches)) => datasets::run(matches),
        Some(("plugins", matches)) => plugins::run(matches),
        Some(("synthesize", matches)) => synthesize::run(matches),
        Some(("analyze-trace", matches)) => analyze_trace::run(matches),
        Some(("validate", matches)) => validate::run(matches),
        Some(("anonymize", matches)) => anonymize::run(matches),
        Some(("completions", matches)) => completions::run(matches),
        // Invariant: clap requires one of the commands it was given.
        _ => ExitStatus::Usage,
    })
}

/// Arguments as text; what is none is shown as far as it goes.
fn texts(arguments: &[OsString]) -> Vec<String> {
    arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect()
}
