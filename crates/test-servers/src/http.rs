//! A tiny HTTP/1.1 server: one thread per connection, a function from requests to answers, a log.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `GET`, …
    pub method: String,
    /// Path and query, as sent.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The `Range` header: first and last byte.
    pub fn range(&self) -> Option<(u64, Option<u64>)> {
        let (start, end) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((start.parse().ok()?, end.parse().ok()))
    }
}

/// One answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The status; 0 is silence.
    pub status: u16,
    /// Headers; `Content-Length` is added unless it is there or `chunked` is set.
    pub headers: Vec<(String, String)>,
    /// The body; not sent to `HEAD`.
    pub body: Arc<[u8]>,
    /// Bytes of the body after which the connection is cut.
    pub cut_after: Option<usize>,
    /// Bytes of the body after which nothing more comes, until the client goes away.
    pub stall_after: Option<usize>,
    /// Sent without a length, ended by the close of the connection.
    pub without_length: bool,
}

impl Answer {
    /// An answer without a body.
    pub fn status(status: u16) -> Answer {
        Answer { status, ..Answer::default() }
    }

    /// With a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Answer {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With a body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Arc<[u8]>>) -> Answer {
        self.body = body.into();
        self
    }

    /// Nothing at all, until the client goes away.
    pub fn silence() -> Answer {
        Answer { status: 0, ..Answer::default() }
    }

    /// JSON.
    pub fn json(value: &serde_json::Value) -> Answer {
        Answer::status(200)
            .with("Content-Type", "application/json; charset=utf-8")
            .body(value.to_string().into_bytes())
    }

    /// A file, or the range of it that was asked for.
    pub fn file(request: &Request, bytes: &Arc<[u8]>) -> Answer {
        let length = bytes.len() as u64;
        match request.range() {
            None => Answer::status(200).with("Accept-Ranges", "bytes").body(Arc::clone(bytes)),
            Some((start, _)) if start >= length => {
                Answer::status(416).with("Content-Range", format!("bytes */{length}"))
            }
            Some((start, end)) => {
                let end = end.map_or(length, |end| (end + 1).min(length));
                Answer::status(206)
                    .with("Accept-Ranges", "bytes")
                    .with("Content-Range", format!("bytes {start}-{}/{length}", end - 1))
                    .body(bytes[start as usize..end as usize].to_vec())
            }
        }
    }
}

type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

/// A server, gone with this value.
pub struct Server {
    address: SocketAddr,
    log: Arc<Mutex<Vec<Request>>>,
    ended: Arc<AtomicBool>,
}

impl Server {
    /// Starts one on a free port of 127.0.0.1.
    pub fn start(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("an address");
        let log = Arc::new(Mutex::new(Vec::new()));
        let ended = Arc::new(AtomicBool::new(false));
        let handler: Arc<Handler> = Arc::new(handler);
        let (its_log, its_end) = (Arc::clone(&log), Arc::clone(&ended));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if its_end.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (handler, log) = (Arc::clone(&handler), Arc::clone(&its_log));
                std::thread::spawn(move || {
                    let _ = serve(&stream, &*handler, &log);
                });
            }
        });
        Server { address, log, ended }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// `http://127.0.0.1:<port>`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    pub fn log(&self) -> Vec<Request> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets what it was asked.
    pub fn clear_log(&self) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({})", self.address)
    }
}

fn serve(stream: &TcpStream, handler: &Handler, log: &Mutex<Vec<Request>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = read_request(&mut reader)? {
        let answer = handler(&request);
        let head = request.method == "HEAD";
        log.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let open = write_answer(stream, &answer, head)?;
        if !open {
            let _ = stream.shutdown(Shutdown::Both);
            return Ok(());
        }
    }
    Ok(())
}

fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let mut request = Request {
        method: words.next().unwrap_or_default().to_owned(),
        target: words.next().unwrap_or_default().to_owned(),
        ..Request::default()
    };
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            request.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0usize);
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    Ok(Some(request))
}

/// Whether the connection stays open.
fn write_answer(mut stream: &TcpStream, answer: &Answer, head: bool) -> std::io::Result<bool> {
    if answer.status == 0 {
        return wait_for_end(stream);
    }
    let mut text = format!("HTTP/1.1 {} Status\r\n", answer.status);
    let mut has_length = answer.without_length;
    for (name, value) in &answer.headers {
        has_length |= name.eq_ignore_ascii_case("content-length");
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    }
    if !has_length {
        text.push_str("Content-Length: ");
        text.push_str(&answer.body.len().to_string());
        text.push_str("\r\n");
    }
    if answer.without_length {
        text.push_str("Connection: close\r\n");
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes())?;
    if head {
        return Ok(true);
    }
    let end = answer.cut_after.or(answer.stall_after).unwrap_or(answer.body.len()).min(answer.body.len());
    stream.write_all(&answer.body[..end])?;
    if answer.stall_after.is_some() {
        return wait_for_end(stream);
    }
    Ok(answer.cut_after.is_none() && !answer.without_length)
}

/// Until the client goes away.
fn wait_for_end(mut stream: &TcpStream) -> std::io::Result<bool> {
    let mut byte = [0];
    while stream.read(&mut byte)? > 0 {}
    Ok(false)
}
