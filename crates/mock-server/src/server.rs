//! Starting, watching and stopping a server.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::net::sockopt;
use rustix::time::{ClockId, clock_gettime};

use crate::settings::{Settings, UsageMode};
use crate::shared::{Message, Shared};
use crate::stats::Stats;
use crate::tls::{self, TlsError};
use crate::worker::{Equipment, Worker};
use crate::{count, log};

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another socket has the port.
    #[error("{0} is taken: stop what listens there, or give another --port (0 finds a free one)")]
    PortTaken(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        cause: io::Error,
    },
    /// Certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The timing log cannot be created.
    #[error("cannot create the timing log {}: {cause}; name another file with --log", path.display())]
    Log {
        /// Where.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// The system gave no thread, poll or timer.
    #[error("the mock server cannot start: {0}")]
    System(#[from] io::Error),
}

/// One thread of a server and the CPU time it used.
#[derive(Debug)]
struct Thread {
    handle: Mutex<Option<JoinHandle<()>>>,
    usage: Arc<ThreadUsage>,
}

#[derive(Debug, Default)]
struct ThreadUsage {
    id: AtomicU64,
    /// CPU time at the end of the thread.
    last_ns: AtomicU64,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<Thread>,
    log_fault: Arc<Mutex<Option<io::Error>>>,
}

impl Server {
    /// Starts a server on `address`; port 0 finds a free one.
    pub fn start(settings: &Settings, address: SocketAddr) -> Result<Server, StartError> {
        let tls = settings.tls.as_ref().map(tls::configure).transpose()?;
        let opened = settings
            .log
            .as_ref()
            .map(|path| log::open(path).map_err(|cause| StartError::Log { path: path.clone(), cause }));
        let (log, writer) = opened.transpose()?.unzip();
        if settings.usage == UsageMode::Exact {
            // The ranks take a tenth of a second to load; the first request should not wait for them.
            aiperf_tokenize::Tokenizer::builtin();
        }
        raise_descriptor_limit();
        let listener = TcpListener::bind(address).map_err(|cause| match cause.kind() {
            io::ErrorKind::AddrInUse => StartError::PortTaken(address),
            _ => StartError::Listen { address, cause },
        })?;
        listener.set_nonblocking(true)?;
        // A longer queue than the standard library's 128: a benchmark opens its connections all at once.
        rustix::net::listen(&listener, 65_535).map_err(io::Error::from)?;
        // Accepted sockets inherit it.
        sockopt::set_tcp_nodelay(&listener, true).map_err(io::Error::from)?;
        let found = listener.local_addr()?;

        let shared = Arc::new(Shared::new(settings.clone())?);
        let mut server = Server {
            address: found,
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            log_fault: Arc::default(),
        };
        let mut listener = Some(listener);
        for number in 0..settings.threads {
            let counting = if settings.usage == UsageMode::Exact {
                let (counting, counter) = count::counting(&shared, number);
                server.spawn(format!("mock-count-{number}"), move || counter.run())?;
                Some(counting)
            } else {
                None
            };
            let equipment =
                Equipment { listener: listener.take(), tls: tls.clone(), counting, log: log.clone() };
            let worker = Worker::new(Arc::clone(&shared), number, equipment)?;
            server.spawn(format!("mock-{number}"), move || worker.run())?;
        }
        if let Some(writer) = writer {
            let fault = Arc::clone(&server.log_fault);
            server.spawn("mock-log".to_owned(), move || {
                if let Err(error) = writer.run() {
                    // Whoever has it running for hours wants to know now; nobody has to read it.
                    let _ = writeln!(
                        io::stderr(),
                        "warning: the timing log ends here: {error}; the server goes on"
                    );
                    *fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            })?;
        }
        Ok(server)
    }

    fn spawn(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let usage = Arc::new(ThreadUsage::default());
        let own = Arc::clone(&usage);
        let handle = std::thread::Builder::new().name(name).spawn(move || {
            own.id.store(rustix::thread::gettid().as_raw_nonzero().get() as u64, Relaxed);
            run();
            let time = clock_gettime(ClockId::ThreadCPUTime);
            own.last_ns.store(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, Relaxed);
        })?;
        self.threads.push(Thread { handle: Mutex::new(Some(handle)), usage });
        Ok(())
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The counters of `/mock/stats`.
    pub fn stats(&self) -> Stats {
        self.shared.counters.stats()
    }

    /// Zeroes the counters as `/mock/reset` does; requests are numbered from 0 again.
    pub fn reset(&self) {
        self.shared.counters.reset();
    }

    /// CPU time of its threads so far, in nanoseconds. Absent where the system does not tell.
    pub fn cpu_ns(&self) -> Option<u64> {
        self.threads.iter().map(|thread| thread.usage.cpu_ns()).sum()
    }

    /// Why the timing log is not complete, once; nothing when it is. Final after [`Server::join`].
    pub fn log_fault(&self) -> Option<io::Error> {
        self.log_fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Closes all connections and lets the threads end, without waiting for them.
    pub fn stop(&self) {
        for inbox in &self.shared.inboxes {
            inbox.send(Message::Stop);
        }
    }

    /// Waits until all threads have ended.
    pub fn join(&self) {
        for thread in &self.threads {
            let handle = thread.handle.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(handle) = handle {
                // A thread that panicked has nothing left to tell.
                let _ = handle.join();
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        self.join();
    }
}

impl ThreadUsage {
    fn cpu_ns(&self) -> Option<u64> {
        let last = self.last_ns.load(Relaxed);
        if last > 0 {
            return Some(last);
        }
        let id = self.id.load(Relaxed);
        if id == 0 {
            return Some(0);
        }
        // The first number is the time on a CPU, in nanoseconds.
        let text = std::fs::read_to_string(format!("/proc/self/task/{id}/schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    }
}

/// Raises the soft limit of open files to the hard one: a connection takes a descriptor.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // A refusal leaves the limit as it was, and accepting then rests when descriptors run out.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}
