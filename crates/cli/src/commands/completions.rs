//! `aiperf completions SHELL`

use clap::ArgMatches;
use clap_complete::Shell;

use crate::exit::ExitStatus;
use crate::{arguments, print};

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let Some(shell) = matches.get_one::<Shell>("shell") else { return ExitStatus::Usage };
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut arguments::offered(), "aiperf", &mut script);
    print::out(&String::from_utf8_lossy(&script));
    ExitStatus::Success
}
