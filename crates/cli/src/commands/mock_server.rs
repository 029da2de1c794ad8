//! `aiperf mock-server`

use std::net::{SocketAddr, ToSocketAddrs};

use aiperf_mock_server::Server;
use clap::ArgMatches;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::ExitStatus;
use crate::{mock_flags, print};

pub(super) fn run(matches: &ArgMatches) -> ExitStatus {
    let settings = match mock_flags::settings(matches) {
        Ok(settings) => settings,
        Err(error) => {
            print::err(&format!("error: {error}\n"));
            return ExitStatus::Usage;
        }
    };
    let host = matches.get_one::<String>(mock_flags::HOST).map_or("127.0.0.1", String::as_str);
    let port = matches.get_one::<u16>(mock_flags::PORT).copied().unwrap_or(8000);
    let address: SocketAddr = match (host, port).to_socket_addrs().map(|mut found| found.next()) {
        Ok(Some(address)) => address,
        Ok(None) => {
            print::err(&format!("error: --host {host}: no address has this name\n"));
            return ExitStatus::Failure;
        }
        Err(error) => {
            print::err(&format!("error: --host {host}: {error}\n"));
            return ExitStatus::Failure;
        }
    };
    let https = settings.tls.is_some();
    match serve(&settings, address, https) {
        Ok(()) => ExitStatus::Success,
        Err(error) => {
            print::err(&format!("error: {error}\n"));
            ExitStatus::Failure
        }
    }
}

/// Serves until the first SIGINT or SIGTERM.
fn serve(
    settings: &aiperf_mock_server::Settings,
    address: SocketAddr,
    https: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        // Listened for before the line that says the server is there: whoever reads it may signal at once.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let server = Server::start(settings, address)?;
        print::out(&format!("listening on {}://{}\n", if https { "https" } else { "http" }, server.addr()));
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        server.stop();
        server.join();
        Ok(())
    })
}
