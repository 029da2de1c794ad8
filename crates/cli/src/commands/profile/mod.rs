//! `aiperf profile`

use aiperf_config::{RunConfig, redact_text};
use aiperf_run::{RunEnd, RunError};
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
    let settled =
        Typed::read(matches, arguments).and_then(|typed| settle(&typed, &Environment::of_process(), &Files));
    match settled {
        Ok(settled) => execute(settled.config, &settled.notes),
        Err(error) => {
            print::err(&error.report());
            ExitStatus::Usage
        }
    }
}

/// Performs the run.
fn execute(config: RunConfig, notes: &[Note]) -> ExitStatus {
    for note in notes {
        print::err(&format!("{}: {}\n", if note.warning { "warning" } else { "info" }, note.text));
    }
    let strict = config.strict_load;
    match aiperf_run::execute(config, env!("CARGO_PKG_VERSION")) {
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
