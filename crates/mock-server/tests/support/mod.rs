//! A small blocking HTTP client that shows what is on the wire.
#![allow(dead_code, reason = "each test program uses its own part of it")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use aiperf_mock_server::{Server, Settings};

pub(crate) const CHAT: &str = "/v1/chat/completions";
pub(crate) const BODY: &str = r#"{"messages":[{"role":"user","content":"one two three four"}],"model":"mock-model","stream":true,"max_tokens":6,"stream_options":{"include_usage":true}}"#;
pub(crate) const FULL: &str =
    r#"{"messages":[{"role":"user","content":"one two three four"}],"model":"mock-model","max_tokens":6}"#;

/// A server with these settings on a free port.
pub(crate) fn start(query: &str) -> Server {
    let settings = Settings::from_url(&format!("mock://?{query}")).unwrap();
    start_with(&settings)
}

pub(crate) fn start_with(settings: &Settings) -> Server {
    Server::start(settings, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

/// How the bytes of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The answer was complete and the connection stayed open.
    Complete,
    /// The server closed.
    Closed,
    /// The server reset.
    Reset,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The body, chunk framing removed.
    pub(crate) body: Vec<u8>,
    pub(crate) end: End,
    /// Chunks of the transfer encoding.
    pub(crate) chunks: usize,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The `data:` payloads of its events.
    pub(crate) fn data(&self) -> Vec<String> {
        let text = self.text();
        text.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(server: &Server) -> Client {
        let stream = TcpStream::connect(server.addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, buffer: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Everything until the server closes or resets.
    pub(crate) fn read_to_end(mut self) -> (Vec<u8>, End) {
        let end = match self.stream.read_to_end(&mut self.buffer) {
            Ok(_) => End::Closed,
            Err(error) => reset(&error),
        };
        (self.buffer, end)
    }

    fn fill(&mut self) -> Result<(), End> {
        let mut bytes = [0; 8_192];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(End::Closed),
            Ok(length) => {
                self.buffer.extend_from_slice(&bytes[..length]);
                Ok(())
            }
            Err(error) => Err(reset(&error)),
        }
    }

    fn line(&mut self) -> Result<String, End> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.fill()?;
        }
    }

    fn exactly(&mut self, length: usize, body: &mut Vec<u8>) -> Result<(), End> {
        while self.buffer.len() < length {
            if let Err(end) = self.fill() {
                body.append(&mut self.buffer);
                return Err(end);
            }
        }
        body.extend(self.buffer.drain(..length));
        Ok(())
    }

    /// Reads one response; the error is how the connection ended before its head was complete.
    pub(crate) fn receive(&mut self) -> Result<Response, End> {
        let mut head = self.line()?;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            head.push('\n');
            head.push_str(&line);
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut response = Response { status, head, body: Vec::new(), end: End::Complete, chunks: 0 };
        let mut body = Vec::new();
        if let Err(end) = self.body(&mut response, &mut body) {
            response.end = end;
        }
        response.body = body;
        Ok(response)
    }

    fn body(&mut self, response: &mut Response, body: &mut Vec<u8>) -> Result<(), End> {
        if response.header("Transfer-Encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.line()?, 16).unwrap();
                self.exactly(size, body)?;
                assert_eq!(self.line()?, "");
                if size == 0 {
                    return Ok(());
                }
                response.chunks += 1;
            }
        }
        if response.status == 304 {
            return Ok(());
        }
        match response.header("Content-Length") {
            Some(length) => {
                let length = length.parse().unwrap();
                self.exactly(length, body)
            }
            None if response.status < 200 => Ok(()),
            None => loop {
                let length = self.buffer.len();
                self.exactly(length + 1, body)?;
            },
        }
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: mock\r\n\r\n").as_bytes());
        self.receive().unwrap()
    }

    pub(crate) fn post(&mut self, path: &str, headers: &str, body: &str) -> Result<Response, End> {
        self.send(request(path, headers, body).as_bytes());
        self.receive()
    }
}

fn reset(error: &io::Error) -> End {
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
    End::Reset
}

pub(crate) fn request(path: &str, headers: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: mock\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// One request on a connection of its own.
pub(crate) fn post(server: &Server, path: &str, headers: &str, body: &str) -> Result<Response, End> {
    Client::connect(server).post(path, headers, body)
}

/// A streamed chat answer with this fault.
pub(crate) fn faulty(server: &Server, fault: &str) -> Result<Response, End> {
    post(server, CHAT, &format!("X-Mock-Fault: {fault}\r\n"), BODY)
}

/// Waits until the server's counters satisfy `until`.
pub(crate) fn await_stats(server: &Server, until: impl Fn(&aiperf_mock_server::Stats) -> bool) {
    let deadline = aiperf_clock::now().plus(20_000_000_000);
    while !until(&server.stats()) {
        assert!(aiperf_clock::now() < deadline, "{:?}", server.stats());
        std::thread::yield_now();
    }
}
