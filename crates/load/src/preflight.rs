//! Limits of the host, checked against the plan before anything is sent.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

/// Descriptors a run needs besides its connections: files, timers, listeners.
const OWN_DESCRIPTORS: u64 = 200;

/// Connections that a plan may hold at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How many.
    pub connections: u64,
    /// The flag or variable that asks for so many.
    pub lower: &'static str,
}

/// The way out of a limit on descriptors that leaves the limit alone, where there is one.
fn or_lower(wanted: Wanted, limit: u64) -> String {
    if limit > OWN_DESCRIPTORS { format!(", or lower {}", wanted.lower) } else { String::new() }
}

/// Why the host cannot carry the plan.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Too few descriptors.
    #[error(
        "this run needs {need} open files ({} for connections and {OWN_DESCRIPTORS} of its own) and the limit is \
         {limit}; raise it with `ulimit -n {need}` (or LimitNOFILE=){}", wanted.connections, or_lower(*wanted, *limit)
    )]
    Descriptors {
        /// Needed.
        need: u64,
        /// Of them connections.
        wanted: Wanted,
        /// The hard limit.
        limit: u64,
    },
    /// Too few descriptors for the run itself, with connections that nobody can count beforehand.
    #[error(
        "this run needs {OWN_DESCRIPTORS} open files of its own and one for each connection, and the limit is {limit}; \
         raise it far above that, as with `ulimit -n 4096` (or LimitNOFILE=)"
    )]
    OwnDescriptors {
        /// The hard limit.
        limit: u64,
    },
    /// Too few ports.
    #[error(
        "this run needs {} connections to one address and there are {ports} local ports for them \
         (net.ipv4.ip_local_port_range); widen the range, give several source addresses with --bind-address, or lower \
         {}", wanted.connections, wanted.lower
    )]
    Ports {
        /// Needed.
        wanted: Wanted,
        /// Available over all source addresses.
        ports: u64,
    },
}

/// Why requests cannot be sent from an address.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The host does not have it.
    #[error(
        "--bind-address {address}: nothing can be sent from it ({cause}); give an address of this host, `ip address` \
         lists them"
    )]
    Foreign {
        /// The address.
        address: IpAddr,
        /// What the system says.
        cause: io::Error,
    },
    /// The server has no address of its kind.
    #[error(
        "--bind-address {address}: the server is reached at {target}, and not from an address of another kind; give one \
         of the same kind, or set AIPERF_HTTP_IP_VERSION"
    )]
    OtherKind {
        /// The address.
        address: IpAddr,
        /// An address of the server.
        target: SocketAddr,
    },
}

/// Whether connections to `targets` can be made from each of `sources`.
pub fn check_sources(sources: &[IpAddr], targets: &[SocketAddr]) -> Result<(), SourceError> {
    for &address in sources {
        if let Some(&target) = targets.first()
            && !targets.iter().any(|target| target.is_ipv4() == address.is_ipv4())
        {
            return Err(SourceError::OtherKind { address, target });
        }
        let source = SocketAddr::new(address, 0);
        Socket::new(Domain::for_address(source), Type::STREAM, None)
            .and_then(|socket| socket.bind(&source.into()))
            .map_err(|cause| SourceError::Foreign { address, cause })?;
    }
    Ok(())
}

/// Raises the soft limit on open files to the hard one; the limit then in force.
pub fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let Some(hard) = limit.maximum else { return limit.current.unwrap_or(u64::MAX) };
    if limit.current.is_none_or(|soft| soft < hard)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(hard), maximum: Some(hard) }).is_err()
    {
        return limit.current.unwrap_or(hard);
    }
    hard
}

/// Descriptors that a table has room for from the start: half a megabyte of the kernel's memory.
const ROOM: u64 = 65_536;

/// Does away with two ways of the kernel to hold up a thread for milliseconds, which would make it late to its sockets
/// and sends. To be called while the process has one thread, before a server or a client of many connections starts.
///
/// * The kernel grows the table of descriptors by doubling it, and where threads share it, whoever opens the descriptor
///   that is one too many sleeps until every core has gone through a quiet state: 5 to 20 ms (`synchronize_rcu`). The
///   limit on open files is raised and the table made large now.
/// * The allocator asks for huge pages, and the thread that touches one first waits until 2 MiB are zeroed: 0.2 ms, and
///   5 ms on a virtual machine whose host has to find that memory. Small pages cost a microsecond at a time, and memory
///   is what is in use: 2,857 streams in 86 MiB and not 109.
pub fn ready_process() {
    make_room(raise_descriptor_limit().min(ROOM));
    // A kernel without them has nothing to turn off.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Lets the table of descriptors hold `count` of them.
fn make_room(count: u64) {
    let Ok(top) = i32::try_from(count.saturating_sub(1)) else { return };
    // A table that stays small costs time, not the run.
    let _ = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), top);
}

/// Whether the connections `wanted` at once, to `targets` addresses from `sources` addresses, fit the host; `None` where
/// nobody can tell how many there will be.
pub fn check(
    wanted: Option<Wanted>,
    targets: &[SocketAddr],
    sources: &[IpAddr],
    descriptors: u64,
) -> Result<(), LimitError> {
    let Some(wanted) = wanted else {
        let enough = descriptors >= OWN_DESCRIPTORS;
        return if enough { Ok(()) } else { Err(LimitError::OwnDescriptors { limit: descriptors }) };
    };
    let need = wanted.connections.saturating_add(OWN_DESCRIPTORS);
    if need > descriptors {
        return Err(LimitError::Descriptors { need, wanted, limit: descriptors });
    }
    let ports = ports(targets, sources);
    if wanted.connections > ports {
        return Err(LimitError::Ports { wanted, ports });
    }
    Ok(())
}

/// Connections at once that fit the host, from `sources` to `targets`.
pub fn room(targets: &[SocketAddr], sources: &[IpAddr], descriptors: u64) -> u64 {
    descriptors.saturating_sub(OWN_DESCRIPTORS).min(ports(targets, sources))
}

fn ports(targets: &[SocketAddr], sources: &[IpAddr]) -> u64 {
    let pairs = targets.len().max(1) as u64 * sources.len().max(1) as u64;
    port_range().saturating_mul(pairs)
}

/// Number of local ports that the kernel gives out.
fn port_range() -> u64 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| {
            let mut bounds = text.split_ascii_whitespace().filter_map(|n| n.parse::<u64>().ok());
            Some((bounds.next()?, bounds.next()?))
        })
        .map_or(28_232, |(low, high)| (high + 1).saturating_sub(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_descriptors_are_refused_with_the_figure_to_set() {
        let of = |connections| Some(Wanted { connections, lower: "--concurrency" });
        let error = check(of(1000), &[], &[], 1024).unwrap_err();
        assert!(matches!(error, LimitError::Descriptors { need: 1200, limit: 1024, .. }));
        let text = error.to_string();
        assert!(text.contains("ulimit -n 1200") && text.ends_with(", or lower --concurrency"), "{text}");
        assert_eq!(check(of(800), &[], &[], 1024), Ok(()));
        // Where the run has too few for itself, fewer connections are no help.
        let text = check(of(1), &[], &[], 200).unwrap_err().to_string();
        assert!(text.contains("ulimit -n 201") && !text.contains("lower"), "{text}");
        // An open loop has no concurrency that could be lowered.
        let error = check(None, &[], &[], 64).unwrap_err();
        assert_eq!(error, LimitError::OwnDescriptors { limit: 64 });
        let text = error.to_string();
        assert!(text.contains("200 open files of its own and one for each connection"), "{text}");
        assert!(text.contains("the limit is 64") && !text.contains("--concurrency"), "{text}");
        assert_eq!(room(&[], &[], 1024), 824.min(port_range()));
        assert_eq!(room(&[], &[], u64::MAX), port_range());
    }

    #[test]
    fn sources_are_addresses_of_this_host_and_of_the_kind_of_the_server() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let target = "127.0.0.1:8000".parse().unwrap();
        let refused = |sources: &[IpAddr]| check_sources(sources, &[target]).unwrap_err().to_string();
        check_sources(&[], &[target]).unwrap();
        check_sources(&[address("127.0.0.1"), address("127.0.0.2")], &[target]).unwrap();
        // Kept for documents: nobody has it.
        let foreign = refused(&[address("127.0.0.1"), address("192.0.2.7")]);
        assert!(foreign.starts_with("--bind-address 192.0.2.7: nothing can be sent from it"), "{foreign}");
        let other = refused(&[address("::1")]);
        assert!(other.starts_with("--bind-address ::1: the server is reached at 127.0.0.1:8000"), "{other}");
    }

    #[test]
    fn no_thread_waits_for_a_larger_table_of_descriptors_or_for_huge_pages() {
        ready_process();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap().trim();
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        assert!(size.parse::<u64>().unwrap() >= limit.min(ROOM), "{size} of {limit}");
        assert_eq!(rustix::thread::transparent_huge_pages_are_disabled(), Ok(true));
    }

    #[test]
    fn kubernetes_sigs_inference_perf_50_ports_are_counted_before_the_run() {
        let target = "127.0.0.1:8000".parse().unwrap();
        let range = port_range();
        let many = Some(Wanted { connections: range + 1, lower: "AIPERF_HTTP_CONNECTION_LIMIT" });
        let error = check(many, &[target], &[], u64::MAX).unwrap_err();
        assert!(error.to_string().contains("--bind-address"), "{error}");
        assert!(error.to_string().ends_with("or lower AIPERF_HTTP_CONNECTION_LIMIT"), "{error}");
        let sources = ["127.0.0.2".parse().unwrap(), "127.0.0.3".parse().unwrap()];
        assert_eq!(check(many, &[target], &sources, u64::MAX), Ok(()));
    }
}
