//! `aiperf profile`

use aiperf_config::{RunConfig, redact_text};
use aiperf_run::{RunEnd, RunError, Signals};
use clap::ArgMatches;

use crate::environment::Environment;
use crate::exit::ExitStatus;
use crate::settle::{Files, Note, settle};
use crate::typed::Typed;
use crate::{help, print};

pub(super) fn run(matches: &ArgMatches, arguments: Vec<String>) -> ExitStatus {
    if matches.get_flag(help::ALL) {
        print::out(&help::profile(help::Detail::All));
        return ExitStatus::Success;
    }
    // Before anything is read: a file may take its time.
    let signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => {
            print::err(&format!("error: cannot listen to signals: {error}\n"));
            return ExitStatus::Failure;
        }
    };
    let settled =
        Typed::read(matches, arguments).and_then(|typed| settle(&typed, &Environment::of_process(), &Files));
    match settled {
        Ok(settled) => execute(settled.config, &settled.notes, &signals),
        Err(error) => {
            print::err(&error.report());
            ExitStatus::Usage
        }
    }
}

/// Performs the run.
fn execute(config: RunConfig, notes: &[Note], signals: &Signals) -> ExitStatus {
    for note in notes {
        print::err(&format!("{}: {}\n", if note.warning { "warning" } else { "info" }, note.text));
    }
    let strict = config.strict_load;
    match aiperf_run::execute(config, env!("CARGO_PKG_VERSION"), signals) {
        Ok(RunEnd::Suspect) if strict => ExitStatus::SuspectLoad,
        Ok(RunEnd::Good | RunEnd::Suspect) => ExitStatus::Success,
        Ok(RunEnd::Failed) => ExitStatus::Failure,
        Err(error) => {
            print::err(&format!("error: {}\n", redact_text(&error.to_string())));
            match error {
                RunError::Input(_) => ExitStatus::Usage,
                RunError::Start(_) => ExitStatus::Failure,
            }
        }
    }
}
