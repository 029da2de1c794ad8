//! Going through an HTTP proxy: absolute request targets for `http`, a tunnel for `https`.

use std::io;

use aiperf_config::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Most bytes of a proxy's answer to CONNECT.
const MAX_HEAD: usize = 16 * 1024;

/// Asks the proxy at the other end of `stream` for a tunnel to `authority`.
pub(crate) async fn tunnel(
    stream: &mut TcpStream,
    authority: &str,
    credential: Option<&Secret>,
) -> io::Result<()> {
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    if let Some(credential) = credential {
        request.push_str("Proxy-Authorization: ");
        request.push_str(credential.expose());
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    // Byte by byte: what follows the head belongs to the tunnel, and this happens once per connection.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > MAX_HEAD {
            return Err(io::Error::other("the proxy's answer to CONNECT is too long"));
        }
        head.push(stream.read_u8().await.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other("the proxy closed the connection"),
            _ => error,
        })?);
    }
    let status = head.get(9..12).and_then(|code| std::str::from_utf8(code).ok());
    match status {
        Some(code) if head.starts_with(b"HTTP/1.") && code.starts_with('2') => Ok(()),
        _ => {
            let line = String::from_utf8_lossy(&head);
            let line = line.lines().next().unwrap_or_default();
            Err(io::Error::other(format!("the proxy refused the tunnel: {line}")))
        }
    }
}
