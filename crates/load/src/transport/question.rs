//! One question to the server beside the load: a `GET` that nobody measures.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use aiperf_clock::Mono;
use aiperf_types::{Body, HttpTrace};

use super::connection::Connection;
use super::exchange::{self, Inbound};
use super::proxy::tunnel;
use super::response::Head;
use super::{Origin, SocketOptions};
use crate::settings::{Proxy, Tls};

/// Most bytes of an answer that are read.
const MOST: usize = 4 << 20;

/// A question, and the way to who answers it.
#[derive(Clone)]
pub struct Question {
    /// Who is asked.
    pub origin: Origin,
    /// Addresses of the server, or of the proxy on the way.
    pub addresses: Vec<SocketAddr>,
    /// The proxy on the way.
    pub proxy: Option<Proxy>,
    /// TLS, for `https` origins.
    pub tls: Option<Tls>,
    /// Request line and headers, with the empty line behind them.
    pub head: Vec<u8>,
}

impl Question {
    /// The body of an answer with status 200 that is whole within `patience`; `None` for any other outcome. Blocks.
    pub fn ask(&self, patience: Duration) -> Option<Vec<u8>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(async { tokio::time::timeout(patience, self.answer()).await.ok()? })
    }

    async fn answer(&self) -> Option<Vec<u8>> {
        let mut stream = SocketOptions::default().connect(&self.addresses).await.ok()?;
        let mut connection = match &self.tls {
            None => Connection::plain(stream),
            Some(tls) => {
                if let Some(proxy) = &self.proxy {
                    tunnel(&mut stream, &self.origin.authority(), proxy.credential.as_ref()).await.ok()?;
                }
                Connection::tls(stream, &tls.connector, tls.name.clone()).await.ok()?
            }
        };
        let mut trace = HttpTrace::default();
        exchange::send(&mut connection, &self.head, &Body::default(), &mut trace).await.ok()?;
        let mut told = Told::default();
        let scratch = RefCell::new(vec![0; 1 << 14].into_boxed_slice());
        exchange::receive(&mut connection, &scratch, false, &mut trace, &mut told).await.ok()?;
        (told.status == 200 && told.body.len() < MOST).then_some(told.body)
    }
}

#[derive(Default)]
struct Told {
    status: u16,
    body: Vec<u8>,
}

impl Inbound for Told {
    fn head(&mut self, head: Head, _: Mono) {
        self.status = head.status;
    }

    fn body(&mut self, bytes: &[u8], _: Mono) -> bool {
        self.body.extend_from_slice(bytes);
        self.body.len() < MOST
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use url::Url;

    use super::*;

    fn question(address: SocketAddr) -> Question {
        let url = Url::parse(&format!("http://{address}/")).unwrap();
        Question {
            origin: Origin::new(&url, "/v1/x").unwrap(),
            addresses: vec![address],
            proxy: None,
            tls: None,
            head: b"GET /v1/models HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        }
    }

    /// What is made of an answer, after which the server closes; and what it was asked.
    fn asked(answer: &'static [u8]) -> (Option<Vec<u8>>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let question = question(listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            stream.write_all(answer).unwrap();
            request
        });
        let told = question.ask(Duration::from_mins(1));
        (told, server.join().unwrap())
    }

    #[test]
    fn the_body_of_a_whole_answer_is_told_and_nothing_else() {
        let (told, request) =
            asked(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
        assert_eq!(told.as_deref(), Some(&b"abc"[..]));
        assert_eq!(request, b"GET /v1/models HTTP/1.1\r\nHost: h\r\n\r\n");
        for answer in [
            &b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            b"220 mail ready\r\n",
            b"",
        ] {
            assert_eq!(asked(answer).0, None, "{}", String::from_utf8_lossy(answer));
        }
    }

    #[test]
    fn a_server_that_is_not_there_or_says_nothing_is_no_failure() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Connections wait in its queue, and nobody takes them.
        assert_eq!(question(address).ask(Duration::from_millis(50)), None);
        drop(listener);
        assert_eq!(question(address).ask(Duration::from_mins(1)), None);
    }
}
