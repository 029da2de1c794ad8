//! `aiperf mock-server`

use aiperf_mock_server::{CommandError, StartError, run_command};
use aiperf_run::ready_process;
use clap::ArgMatches;

use crate::exit::ExitStatus;
use crate::{mock_flags, print};

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let refuse = |error: &dyn std::fmt::Display, status: ExitStatus| {
        print::err(&format!("error: {error}\n"));
        status
    };
    let settings = match mock_flags::settings(matches) {
        Ok(settings) => settings,
        Err(error) => return refuse(&mock_flags::under_flag(&error), ExitStatus::Usage),
    };
    // Invariant: both have defaults.
    let host = matches.get_one::<String>(mock_flags::HOST).map_or("127.0.0.1", String::as_str);
    let port = matches.get_one::<u16>(mock_flags::PORT).copied().unwrap_or(8000);
    ready_process();
    match run_command(&settings, host, port) {
        Ok(()) => ExitStatus::Success,
        Err(error @ CommandError::Start(StartError::Tls(_))) => refuse(&error, ExitStatus::Usage),
        Err(error) => refuse(&error, ExitStatus::Failure),
    }
}
