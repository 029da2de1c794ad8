//! `aiperf dataset …`: what can be done with data without sending it. One line per subcommand.

mod fetch;
mod from_run;
mod publish_check;
mod reference;
mod resolve;

use clap::{ArgMatches, Command};

use super::datasets;

use crate::exit::ExitStatus;
use crate::flags;

/// Whether a run may name this endpoint type, in any spelling.
fn endpoint_type(name: &str) -> Result<(), String> {
    let plain = |name: &str| name.to_ascii_lowercase().replace('_', "-");
    let known = flags::find("--endpoint-type").map_or(&[] as &[&str], |flag| flag.choices);
    if known.iter().any(|known| plain(known) == plain(name)) {
        return Ok(());
    }
    Err(datasets::unknown("endpoint type", name, &plain(name), known.iter().copied()))
}

/// One subcommand: its arguments, and what it does.
struct Subcommand {
    command: fn() -> Command,
    run: fn(&ArgMatches) -> ExitStatus,
}

/// All of them, in the order of the help.
const ALL: [Subcommand; 5] = [
    Subcommand { command: || datasets::command("list"), run: datasets::run },
    Subcommand { command: resolve::command, run: resolve::run },
    Subcommand { command: fetch::command, run: fetch::run },
    Subcommand { command: publish_check::command, run: publish_check::run },
    Subcommand { command: from_run::command, run: from_run::run },
];

/// The group, as clap sees it.
pub(crate) fn command() -> Command {
    Command::new("dataset")
        .about("Make, look up and check data sets")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands(ALL.iter().map(|subcommand| (subcommand.command)()))
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let Some((name, matches)) = matches.subcommand() else { return ExitStatus::Usage };
    // Invariant: clap requires one of the subcommands it was given.
    let found = ALL.iter().find(|subcommand| (subcommand.command)().get_name() == name);
    found.map_or(ExitStatus::Usage, |subcommand| (subcommand.run)(matches))
}
