//! A server of one thread per connection, whose every byte a test decides.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aiperf_clock::{Mono, now};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use socket2::{Domain, Socket, Type};

use super::DEADLINE;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Everything up to the empty line, which is included.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The last byte was read.
    pub(crate) at: Mono,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

enum Wire {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

/// One accepted connection.
pub(crate) struct Conn {
    wire: Wire,
    buffer: Vec<u8>,
    /// Number of the connection, from 0.
    pub(crate) index: usize,
    /// Address of the client.
    pub(crate) peer: SocketAddr,
}

impl Conn {
    pub(crate) fn socket(&self) -> &TcpStream {
        match &self.wire {
            Wire::Plain(socket) => socket,
            Wire::Tls(stream) => &stream.sock,
        }
    }

    /// The state of TLS, on a server that speaks it.
    pub(crate) fn tls(&self) -> Option<&ServerConnection> {
        match &self.wire {
            Wire::Plain(_) => None,
            Wire::Tls(stream) => Some(&stream.conn),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.wire {
            Wire::Plain(socket) => socket.read(into),
            Wire::Tls(stream) => stream.read(into),
        }
    }

    fn fill(&mut self) -> Option<()> {
        let mut piece = [0; 16 * 1024];
        let n = self.read(&mut piece).ok().filter(|&n| n > 0)?;
        self.buffer.extend_from_slice(&piece[..n]);
        Some(())
    }

    /// The next request; absent when the client closed or said nothing for too long.
    pub(crate) fn request(&mut self) -> Option<Request> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            self.fill()?;
        };
        let head = String::from_utf8(self.buffer.drain(..end).collect()).unwrap();
        let mut request = Request { head, body: Vec::new(), at: Mono::default() };
        let length: usize = request.header("content-length").map_or(0, |n| n.parse().unwrap());
        while self.buffer.len() < length {
            self.fill()?;
        }
        request.body = self.buffer.drain(..length).collect();
        request.at = now();
        Some(request)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Option<()> {
        match &mut self.wire {
            Wire::Plain(socket) => socket.write_all(bytes).ok(),
            Wire::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()).ok(),
        }
    }

    /// Answers 200 with a small JSON body.
    pub(crate) fn ok(&mut self) -> Option<()> {
        self.answer("200 OK", "Content-Type: application/json\r\n", &chat("hello"))
    }

    /// Answers with `status`, `headers` (each with its line end) and a body of known length.
    pub(crate) fn answer(&mut self, status: &str, headers: &str, body: &str) -> Option<()> {
        let length = body.len();
        self.send(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}").as_bytes())
    }

    /// Begins a chunked event stream.
    pub(crate) fn stream_head(&mut self) -> Option<()> {
        self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    }

    /// One chunk; an empty one ends the body.
    pub(crate) fn chunk(&mut self, text: &str) -> Option<()> {
        self.send(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    /// Waits for the client to close; when it did. Absent when it says something or stays.
    pub(crate) fn closed(&mut self) -> Option<Mono> {
        let mut byte = [0; 1];
        match self.read(&mut byte) {
            Ok(0) => Some(now()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Some(now()),
            _ => None,
        }
    }

    /// Whether the client says nothing for `time`.
    pub(crate) fn idle_for(&mut self, time: Duration) -> bool {
        self.socket().set_read_timeout(Some(time)).unwrap();
        let mut byte = [0; 1];
        let result = self.socket().peek(&mut byte);
        self.socket().set_read_timeout(Some(DEADLINE)).unwrap();
        result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Says goodbye as TLS wants it.
    pub(crate) fn close_notify(&mut self) -> Option<()> {
        match &mut self.wire {
            Wire::Plain(_) => None,
            Wire::Tls(stream) => {
                stream.conn.send_close_notify();
                stream.flush().ok()
            }
        }
    }

    /// Makes the close of this connection a reset.
    pub(crate) fn reset_on_close(&self) {
        socket2::SockRef::from(self.socket()).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

/// The body of a whole chat answer that says `text`.
pub(crate) fn chat(text: &str) -> String {
    let message = serde_json::json!({"role": "assistant", "content": text});
    serde_json::json!({
        "id": "1", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    })
    .to_string()
}

struct Shared {
    stopping: AtomicBool,
    failed: AtomicBool,
    accepted: AtomicUsize,
    sockets: Mutex<Vec<TcpStream>>,
}

/// A running server. Dropping it closes everything, and fails the test if a script panicked.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// A server that runs `script` for each connection, on a thread of its own.
    pub(crate) fn start(script: impl Fn(&mut Conn) -> Option<()> + Send + Sync + 'static) -> Server {
        Server::open((Ipv4Addr::LOCALHOST, 0).into(), None, script)
    }

    /// The same at `addr`, with TLS if `tls` is given.
    pub(crate) fn open(
        addr: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        script: impl Fn(&mut Conn) -> Option<()> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind(addr).unwrap();
        // Many clients connect at once, more than the default backlog holds.
        let _ = rustix::net::listen(&listener, 4096);
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            stopping: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            accepted: AtomicUsize::new(0),
            sockets: Mutex::new(Vec::new()),
        });
        let (inner, script) = (Arc::clone(&shared), Arc::new(script));
        let thread = std::thread::spawn(move || {
            while let Ok((socket, peer)) = listener.accept() {
                if inner.stopping.load(Ordering::Acquire) {
                    return;
                }
                let index = inner.accepted.fetch_add(1, Ordering::AcqRel);
                socket.set_nodelay(true).unwrap();
                socket.set_read_timeout(Some(DEADLINE)).unwrap();
                socket.set_write_timeout(Some(DEADLINE)).unwrap();
                inner.sockets.lock().unwrap().push(socket.try_clone().unwrap());
                let wire = match &tls {
                    None => Wire::Plain(socket),
                    Some(config) => {
                        let session = ServerConnection::new(Arc::clone(config)).unwrap();
                        Wire::Tls(Box::new(StreamOwned::new(session, socket)))
                    }
                };
                let (inner, script) = (Arc::clone(&inner), Arc::clone(&script));
                std::thread::Builder::new()
                    .stack_size(1024 * 1024)
                    .spawn(move || {
                        let mut conn = Conn { wire, buffer: Vec::new(), index, peer };
                        if catch_unwind(AssertUnwindSafe(|| script(&mut conn))).is_err() {
                            inner.failed.store(true, Ordering::Release);
                        }
                        inner.finish(&conn);
                    })
                    .unwrap();
            }
        });
        Server { addr, shared, thread: Some(thread) }
    }

    /// A server that answers every request with [`Conn::ok`].
    pub(crate) fn friendly() -> Server {
        Server::start(|conn| {
            loop {
                conn.request()?;
                conn.ok()?;
            }
        })
    }

    /// Connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::Acquire)
    }
}

impl Shared {
    /// The script is over: the connection closes when the last handle to its socket is gone.
    fn finish(&self, conn: &Conn) {
        let mut sockets = self.sockets.lock().unwrap();
        sockets.retain(|socket| socket.peer_addr().is_ok_and(|peer| peer != conn.peer));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.addr);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for socket in self.shared.sockets.lock().unwrap().iter() {
            let _ = socket.shutdown(Shutdown::Both);
        }
        assert!(
            std::thread::panicking() || !self.shared.failed.load(Ordering::Acquire),
            "the script of the server failed"
        );
    }
}

/// An address of this host at which nobody listens, taken so that nobody else will.
pub(crate) struct ClosedPort {
    pub(crate) addr: SocketAddr,
    _socket: Socket,
}

pub(crate) fn closed_port() -> ClosedPort {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    ClosedPort { addr: socket.local_addr().unwrap().as_socket().unwrap(), _socket: socket }
}
