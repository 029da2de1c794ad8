//! A connection: reads that are stamped where they return, writes of many slices at once.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use aiperf_clock::{Mono, now};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A socket that stamps the clock after each read that returned bytes. It sits under TLS.
#[derive(Debug)]
pub(crate) struct Stamped {
    stream: TcpStream,
    last_read: Mono,
}

impl AsyncRead for Stamped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.last_read = now();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[derive(Debug)]
enum Stream {
    Plain(Stamped),
    Tls(Box<TlsStream<Stamped>>),
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: Option<SocketAddr>,
    /// When it was last given back to the pool.
    pub(crate) idle_since: Mono,
    /// Whether it served a request before.
    pub(crate) used: bool,
}

impl Connection {
    /// A plain connection.
    pub(crate) fn plain(stream: TcpStream) -> Connection {
        let (local, remote) = (stream.local_addr().ok(), stream.peer_addr().ok());
        let stream = Stream::Plain(Stamped { stream, last_read: Mono::default() });
        Connection { stream, local, remote, idle_since: Mono::default(), used: false }
    }

    /// A connection with TLS over `stream`.
    pub(crate) async fn tls(
        stream: TcpStream,
        connector: &tokio_rustls::TlsConnector,
        name: rustls_pki_types::ServerName<'static>,
    ) -> io::Result<Connection> {
        let (local, remote) = (stream.local_addr().ok(), stream.peer_addr().ok());
        let stamped = Stamped { stream, last_read: Mono::default() };
        let stream = Stream::Tls(Box::new(connector.connect(name, stamped).await?));
        Ok(Connection { stream, local, remote, idle_since: Mono::default(), used: false })
    }

    /// Whether TLS is spoken.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// Reads into `scratch`; the number of bytes (0 at the end) and the instant the read returned. With TLS that
    /// is the read that completed the record.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
    ) -> Poll<io::Result<(usize, Mono)>> {
        let mut buf = ReadBuf::new(scratch);
        let at = match &mut self.stream {
            Stream::Plain(stream) => {
                ready!(Pin::new(&mut stream.stream).poll_read(cx, &mut buf))?;
                now()
            }
            Stream::Tls(stream) => {
                ready!(Pin::new(stream.as_mut()).poll_read(cx, &mut buf))?;
                stream.get_ref().0.last_read
            }
        };
        Poll::Ready(Ok((buf.filled().len(), at)))
    }

    /// Writes some of `slices`; the number of bytes accepted.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(&mut stream.stream).poll_write_vectored(cx, slices),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(cx, slices),
        }
    }

    /// Hands everything accepted so far to the socket.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(_) => Poll::Ready(Ok(())),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    /// Whether the idle peer has neither closed nor said anything.
    pub(crate) fn is_quiet(&self) -> bool {
        let socket = match &self.stream {
            Stream::Plain(stream) => &stream.stream,
            Stream::Tls(stream) => &stream.get_ref().0.stream,
        };
        let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
        let mut byte = [0_u8; 1];
        rustix::net::recv(socket.as_fd(), &mut byte[..], flags) == Err(rustix::io::Errno::AGAIN)
    }
}
