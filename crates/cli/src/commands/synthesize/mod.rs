//! `aiperf synthesize …`: workloads from a seed and a few figures. One line per workload.

mod agentic_code;
mod folder;
mod trace;

use clap::{ArgMatches, Command};

use crate::exit::ExitStatus;

/// One workload: its arguments, and what makes it.
struct Workload {
    command: fn() -> Command,
    run: fn(&ArgMatches) -> ExitStatus,
}

/// All of them, in the order of the help.
const ALL: [Workload; 2] = [
    Workload { command: agentic_code::command, run: agentic_code::run },
    Workload { command: trace::command, run: trace::run },
];

/// The group, as clap sees it.
pub(crate) fn command() -> Command {
    Command::new("synthesize")
        .about("Make a workload from a seed and a few figures")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands(ALL.iter().map(|workload| (workload.command)()))
}

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let Some((name, matches)) = matches.subcommand() else { return ExitStatus::Usage };
    // Invariant: clap requires one of the workloads it was given.
    let found = ALL.iter().find(|workload| (workload.command)().get_name() == name);
    found.map_or(ExitStatus::Usage, |workload| (workload.run)(matches))
}
