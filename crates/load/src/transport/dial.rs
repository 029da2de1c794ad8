//! From a URL to a connected socket.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aiperf_clock::{Mono, now};
use aiperf_config::IpVersion;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use tokio::net::{TcpSocket, TcpStream};
use url::Url;

/// One server: where to connect and what to put in the request line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Speak TLS.
    pub tls: bool,
    /// Host, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Value of the `Host` header.
    pub host_header: String,
    /// Path and query of the request line.
    pub path: String,
}

impl Origin {
    /// The origin and request path for `url`: `endpoint_path` is joined to the base path (a base that already
    /// ends with it is kept, a doubled `v1` collapses), the query of the base is kept. Absent when the URL has
    /// no host.
    pub fn new(url: &Url, endpoint_path: &str) -> Option<Origin> {
        let host = url.host_str()?;
        let port = url.port_or_known_default()?;
        let host_header = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let base = url.path().trim_end_matches('/');
        let sub = endpoint_path.trim_start_matches('/');
        let path = if sub.is_empty() {
            if base.is_empty() { "/".to_owned() } else { base.to_owned() }
        } else if base == format!("/{sub}") || base.ends_with(&format!("/{sub}")) {
            base.to_owned()
        } else if let (Some(stem), true) = (base.strip_suffix("/v1"), sub.starts_with("v1/")) {
            format!("{stem}/{sub}")
        } else {
            format!("{base}/{sub}")
        };
        let path = match url.query() {
            Some(query) => format!("{path}?{query}"),
            None => path,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some(Origin { tls: url.scheme() == "https", host, port, host_header, path })
    }

    /// `host:port`, for messages.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// How long a looked-up address is used.
const DNS_CACHE: Duration = Duration::from_mins(5);

/// Looks a host up before the run and again when the answer is old.
#[derive(Debug)]
pub struct Resolver {
    host: String,
    port: u16,
    version: IpVersion,
    cached: Mutex<(Mono, Vec<SocketAddr>)>,
}

impl Resolver {
    /// Looks `origin` up at once, so that the first requests do not pay for it.
    pub fn new(origin: &Origin, version: IpVersion) -> io::Result<Resolver> {
        let addresses = lookup(&origin.host, origin.port, version)?;
        Ok(Resolver {
            host: origin.host.clone(),
            port: origin.port,
            version,
            cached: Mutex::new((now(), addresses)),
        })
    }

    /// The addresses, with the time of the lookup if one was needed now.
    pub(crate) async fn addresses(&self) -> io::Result<(Vec<SocketAddr>, Option<(Mono, Mono)>)> {
        self.addresses_at(now()).await
    }

    async fn addresses_at(&self, start: Mono) -> io::Result<(Vec<SocketAddr>, Option<(Mono, Mono)>)> {
        if let Ok(cached) = self.cached.lock()
            && start.saturating_since(cached.0) < aiperf_clock::nanos(DNS_CACHE)
        {
            return Ok((cached.1.clone(), None));
        }
        let (host, port, version) = (self.host.clone(), self.port, self.version);
        let found = tokio::task::spawn_blocking(move || lookup(&host, port, version)).await;
        let addresses = found.map_err(io::Error::other)??;
        let end = now();
        if let Ok(mut cached) = self.cached.lock() {
            *cached = (end, addresses.clone());
        }
        Ok((addresses, Some((start, end))))
    }

    /// The addresses as last looked up.
    pub fn last(&self) -> Vec<SocketAddr> {
        self.cached.lock().map(|cached| cached.1.clone()).unwrap_or_default()
    }
}

fn lookup(host: &str, port: u16, version: IpVersion) -> io::Result<Vec<SocketAddr>> {
    // Versions are chosen among the addresses of a name: an address is what was asked for.
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let mut addresses: Vec<_> = (host, port)
        .to_socket_addrs()?
        .filter(|address| match version {
            IpVersion::V4 => address.is_ipv4(),
            IpVersion::V6 => address.is_ipv6(),
            IpVersion::Auto => true,
        })
        .collect();
    addresses.dedup();
    if addresses.is_empty() {
        let wanted = if version == IpVersion::V6 { "IPv6" } else { "IPv4" };
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("it has no {wanted} address (AIPERF_HTTP_IP_VERSION is 4, 6 or auto)"),
        ));
    }
    Ok(addresses)
}

/// Options of every socket.
#[derive(Debug, Default)]
pub struct SocketOptions {
    /// Receive buffer, bytes; the kernel's own tuning when absent.
    pub receive_buffer: Option<usize>,
    /// Send buffer, bytes; the kernel's own tuning when absent.
    pub send_buffer: Option<usize>,
    /// Source addresses, used round robin.
    pub bind: Vec<IpAddr>,
    /// Which source address is next.
    next_bind: AtomicUsize,
}

impl SocketOptions {
    /// Options with these source addresses.
    pub fn new(
        bind: Vec<IpAddr>,
        receive_buffer: Option<usize>,
        send_buffer: Option<usize>,
    ) -> SocketOptions {
        SocketOptions { receive_buffer, send_buffer, bind, next_bind: AtomicUsize::new(0) }
    }

    /// Connects to the first of `addresses` that answers.
    pub(crate) async fn connect(&self, addresses: &[SocketAddr]) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no address to connect to");
        for &address in addresses {
            match self.connect_one(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn connect_one(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let keepalive = TcpKeepalive::new()
            .with_time(Duration::from_mins(1))
            .with_interval(Duration::from_secs(30))
            .with_retries(1);
        socket.set_tcp_keepalive(&keepalive)?;
        #[cfg(target_os = "linux")]
        {
            socket.set_tcp_user_timeout(Some(Duration::from_secs(30)))?;
            socket.set_tcp_quickack(true)?;
        }
        if let Some(bytes) = self.receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(bytes) = self.send_buffer {
            socket.set_send_buffer_size(bytes)?;
        }
        let usable: Vec<_> = self.bind.iter().filter(|ip| ip.is_ipv4() == address.is_ipv4()).collect();
        if !usable.is_empty() {
            let index = self.next_bind.fetch_add(1, Ordering::Relaxed) % usable.len();
            socket.bind(&SocketAddr::new(*usable[index], 0).into())?;
        }
        TcpSocket::from_std_stream(socket.into()).connect(address).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(url: &str, endpoint: &str) -> String {
        Origin::new(&Url::parse(url).unwrap(), endpoint).unwrap().path
    }

    #[test]
    fn paths_join_without_doubling() {
        let chat = "/v1/chat/completions";
        assert_eq!(path("http://h:8000", chat), "/v1/chat/completions");
        assert_eq!(path("http://h:8000/", chat), "/v1/chat/completions");
        assert_eq!(path("http://h/v1", chat), "/v1/chat/completions");
        assert_eq!(path("http://h/v1/", chat), "/v1/chat/completions");
        assert_eq!(path("http://h/api/v1", chat), "/api/v1/chat/completions");
        assert_eq!(path("http://h/v1/chat/completions", chat), "/v1/chat/completions");
        assert_eq!(path("http://h/x/v1/chat/completions/", chat), "/x/v1/chat/completions");
        assert_eq!(path("http://h/gateway", chat), "/gateway/v1/chat/completions");
        assert_eq!(path("http://h/base", "custom/path"), "/base/custom/path");
        assert_eq!(path("http://h/?fault=empty", chat), "/v1/chat/completions?fault=empty");
    }

    #[test]
    fn origins_keep_host_and_port_as_the_wire_wants_them() {
        let origin = Origin::new(&Url::parse("https://u:p@example.org").unwrap(), "/x").unwrap();
        assert_eq!((origin.tls, origin.port, origin.host_header.as_str()), (true, 443, "example.org"));
        let origin = Origin::new(&Url::parse("http://[::1]:9").unwrap(), "/x").unwrap();
        assert_eq!((origin.host.as_str(), origin.host_header.as_str()), ("::1", "[::1]:9"));
        assert_eq!(origin.authority(), "[::1]:9");
    }

    #[test]
    fn an_address_is_itself_whatever_version_names_resolve_to() {
        for version in [IpVersion::V4, IpVersion::V6, IpVersion::Auto] {
            for address in ["127.0.0.1:8000", "[::1]:8000"] {
                let url = Url::parse(&format!("http://{address}")).unwrap();
                let resolver = Resolver::new(&Origin::new(&url, "/x").unwrap(), version).unwrap();
                assert_eq!(resolver.last(), [address.parse().unwrap()]);
            }
        }
    }

    fn on_a_runtime<T>(test: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap().block_on(test)
    }

    fn resolver(host: &str) -> Resolver {
        let cached = Mutex::new((Mono(0), vec!["127.0.0.9:1".parse().unwrap()]));
        Resolver { host: host.to_owned(), port: 80, version: IpVersion::V4, cached }
    }

    #[test]
    fn addresses_are_looked_up_again_after_five_minutes() {
        let five_minutes = aiperf_clock::nanos(Duration::from_mins(5));
        on_a_runtime(async {
            let resolver = resolver("127.0.0.1");
            let old: Vec<SocketAddr> = vec!["127.0.0.9:1".parse().unwrap()];
            assert_eq!(resolver.addresses_at(Mono(five_minutes - 1)).await.unwrap(), (old, None));
            let (found, looked_up) = resolver.addresses_at(Mono(five_minutes)).await.unwrap();
            assert_eq!(found, ["127.0.0.1:80".parse().unwrap()]);
            let (from, until) = looked_up.unwrap();
            assert!(from == Mono(five_minutes) && until <= now());
            assert_eq!(resolver.last(), found);
            // The new answer is as good as the old one was.
            assert_eq!(resolver.addresses_at(until).await.unwrap(), (found, None));
        });
    }

    #[test]
    fn a_name_that_stops_resolving_is_an_error_of_its_request() {
        on_a_runtime(async {
            // Longer than a label may be: no server needs to be asked.
            let resolver = resolver(&"x".repeat(64));
            let error = resolver.addresses_at(Mono(u64::MAX)).await.unwrap_err();
            let error = super::super::errors::dns(&resolver.host, &error);
            assert_eq!((error.code, error.kind.as_str()), (None, "ClientConnectorDNSError"));
            assert!(error.message.contains("xxxx"));
        });
    }

    #[test]
    fn every_address_is_tried_until_one_answers() {
        on_a_runtime(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let open = listener.local_addr().unwrap();
            // The same port on another loopback address: nobody listens there.
            let closed = SocketAddr::from(([127, 0, 0, 2], open.port()));
            let options = SocketOptions::default();
            let stream = options.connect(&[closed, open]).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), open);
            let error = options.connect(&[closed, closed]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
            assert_eq!(options.connect(&[]).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        });
    }

    #[test]
    fn sockets_have_the_options_that_long_streams_need() {
        on_a_runtime(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = [listener.local_addr().unwrap()];
            let options = SocketOptions::new(Vec::new(), Some(50_000), Some(60_000));
            let stream = options.connect(&address).await.unwrap();
            let socket = socket2::SockRef::from(&stream);
            assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
            assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_mins(1));
            assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(30));
            assert_eq!(socket.tcp_keepalive_retries().unwrap(), 1);
            assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(30)));
            // The kernel doubles what it is asked for.
            assert_eq!(socket.recv_buffer_size().unwrap(), 100_000);
            assert_eq!(socket.send_buffer_size().unwrap(), 120_000);
        });
    }

    #[test]
    fn buffers_that_nobody_set_stay_with_the_kernel() {
        on_a_runtime(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let ours = SocketOptions::default().connect(&[address]).await.unwrap();
            let plain = TcpStream::connect(address).await.unwrap();
            let size = |stream| socket2::SockRef::from(stream).recv_buffer_size().unwrap();
            assert_eq!(size(&ours), size(&plain));
        });
    }

    #[test]
    fn a_name_without_an_address_of_the_asked_kind_says_so() {
        // A name that is an IPv4 address to the resolver alone.
        let error = lookup("127.1", 1, IpVersion::V6).unwrap_err();
        assert!(error.to_string().contains("AIPERF_HTTP_IP_VERSION"), "{error}");
        // An address is taken as it is.
        assert_eq!(lookup("127.0.0.1", 1, IpVersion::V6).unwrap(), ["127.0.0.1:1".parse().unwrap()]);
    }
}
