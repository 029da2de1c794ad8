//! The server by itself, as a command runs it.

use std::io::{self, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::server::{Server, StartError};
use crate::settings::Settings;

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The host has no address.
    #[error("--host '{host}' has no address: {cause}; give a name or an address of this host")]
    Host {
        /// What was given.
        host: String,
        /// Why not.
        cause: io::Error,
    },
    /// The server did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The system gave no signal handler.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    /// The timing log could not be written to its end.
    #[error("the timing log is not complete: {0}")]
    Log(io::Error),
}

/// Serves on `host` and `port` until the first SIGINT or SIGTERM. The first line on stdout says where it listens.
pub fn run_command(settings: &Settings, host: &str, port: u16) -> Result<(), CommandError> {
    let address = resolve(host, port).map_err(|cause| CommandError::Host { host: host.to_owned(), cause })?;
    // Before the line below, so that whoever reads it may signal at once.
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(CommandError::Signals)?;
    let server = Server::start(settings, address)?;
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let mut stdout = io::stdout().lock();
    // Nobody has to read the line.
    let _ = writeln!(stdout, "listening on {scheme}://{shown}:{}", server.addr().port())
        .and_then(|()| stdout.flush());
    drop(stdout);
    signals.forever().next();
    server.stop();
    server.join();
    server.log_fault().map_or(Ok(()), |fault| Err(CommandError::Log(fault)))
}

fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    (host, port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name resolves to nothing"))
}
