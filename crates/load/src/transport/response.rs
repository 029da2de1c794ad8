//! Reading an HTTP/1.1 response as it comes: an incremental parser that hands body bytes on without keeping them.

use std::mem::MaybeUninit;

/// Most bytes of a response head.
const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;

/// What the client needs of a response head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Reason phrase; kept for failures and on request.
    pub(crate) reason: String,
    pub(crate) content_type: String,
    pub(crate) content_encoding: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) location: Option<String>,
    /// All headers, when asked for.
    pub(crate) all: Vec<(String, String)>,
    keep_alive: bool,
}

/// Takes what the parser finds.
pub(crate) trait Sink {
    /// The head of the final response.
    fn head(&mut self, head: Head);
    /// Some bytes of the body, transfer coding removed.
    fn body(&mut self, bytes: &[u8]);
}

/// Why bytes are not a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    #[error("the answer is not HTTP/1.1 (if the server speaks TLS, the URL begins with https://)")]
    NotHttp,
    #[error("the head of the answer is longer than 64 KiB")]
    HeadTooLong,
    #[error("the head of the answer has more than 100 headers")]
    TooManyHeaders,
    #[error("the answer has a bad Content-Length")]
    BadLength,
    #[error("the answer has a bad chunk size")]
    BadChunk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    UntilClose,
    /// Hex digits of a chunk size so far; whether one was seen.
    ChunkSize(u64, bool),
    /// The rest of the size line.
    ChunkLine(u64),
    ChunkData(u64),
    ChunkEnd,
    /// Length of the trailer line so far, CR not counted.
    Trailer(usize),
    Done,
}

/// The parser of one response.
#[derive(Debug)]
pub(crate) struct ResponseParser {
    state: State,
    partial_head: Vec<u8>,
    keep_alive: bool,
    want_all: bool,
    head_seen: bool,
    leftover: bool,
}

impl ResponseParser {
    /// A parser; `want_all` keeps every header and the reason phrase.
    pub(crate) fn new(want_all: bool) -> ResponseParser {
        ResponseParser {
            state: State::Head,
            partial_head: Vec::new(),
            keep_alive: true,
            want_all,
            head_seen: false,
            leftover: false,
        }
    }

    /// Whether the response is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether any byte was seen.
    pub(crate) fn started(&self) -> bool {
        self.head_seen || !self.partial_head.is_empty()
    }

    /// Whether the connection can serve another request.
    pub(crate) fn reusable(&self) -> bool {
        self.is_done() && self.keep_alive && !self.leftover
    }

    /// The peer closed: whether that completes the response.
    pub(crate) fn eof(&mut self) -> bool {
        if self.state == State::UntilClose {
            self.state = State::Done;
            self.keep_alive = false;
        }
        self.is_done()
    }

    /// Feeds `bytes`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Result<(), ParseError> {
        while !bytes.is_empty() {
            bytes = match self.state {
                State::Head => self.head(bytes, sink)?,
                State::Length(left) => {
                    let (now, rest) = split(bytes, left);
                    sink.body(now);
                    let left = left - now.len() as u64;
                    self.state = if left == 0 { State::Done } else { State::Length(left) };
                    rest
                }
                State::UntilClose => {
                    sink.body(bytes);
                    &[]
                }
                State::ChunkSize(size, any) => self.chunk_size(bytes, size, any)?,
                State::ChunkLine(size) => match memchr::memchr(b'\n', bytes) {
                    Some(end) => {
                        self.state = if size == 0 { State::Trailer(0) } else { State::ChunkData(size) };
                        &bytes[end + 1..]
                    }
                    None => &[],
                },
                State::ChunkData(left) => {
                    let (now, rest) = split(bytes, left);
                    sink.body(now);
                    let left = left - now.len() as u64;
                    self.state = if left == 0 { State::ChunkEnd } else { State::ChunkData(left) };
                    rest
                }
                State::ChunkEnd => match bytes[0] {
                    b'\r' => &bytes[1..],
                    b'\n' => {
                        self.state = State::ChunkSize(0, false);
                        &bytes[1..]
                    }
                    _ => return Err(ParseError::BadChunk),
                },
                State::Trailer(length) => {
                    match bytes[0] {
                        b'\r' => {}
                        b'\n' if length == 0 => self.state = State::Done,
                        b'\n' => self.state = State::Trailer(0),
                        _ if length > MAX_HEAD => return Err(ParseError::HeadTooLong),
                        _ => self.state = State::Trailer(length + 1),
                    }
                    &bytes[1..]
                }
                State::Done => {
                    // Bytes nobody asked for: the connection cannot be trusted with another request.
                    self.leftover = true;
                    &[]
                }
            };
        }
        Ok(())
    }

    fn chunk_size<'a>(
        &mut self,
        bytes: &'a [u8],
        mut size: u64,
        mut any: bool,
    ) -> Result<&'a [u8], ParseError> {
        for (at, &byte) in bytes.iter().enumerate() {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' => byte - b'A' + 10,
                _ if any => {
                    self.state = State::ChunkLine(size);
                    return Ok(&bytes[at..]);
                }
                _ => return Err(ParseError::BadChunk),
            };
            if size >> 59 != 0 {
                return Err(ParseError::BadChunk);
            }
            size = size * 16 + u64::from(digit);
            any = true;
        }
        self.state = State::ChunkSize(size, any);
        Ok(&[])
    }

    fn head<'a>(&mut self, bytes: &'a [u8], sink: &mut impl Sink) -> Result<&'a [u8], ParseError> {
        if self.partial_head.is_empty() {
            let Some((length, head, framing)) = parse_head(bytes, self.want_all)? else {
                self.partial_head.extend_from_slice(bytes);
                return Ok(&[]);
            };
            self.begin(head, framing, sink);
            return Ok(&bytes[length..]);
        }
        let before = self.partial_head.len();
        self.partial_head.extend_from_slice(bytes);
        match parse_head(&self.partial_head, self.want_all)? {
            Some((length, head, framing)) => {
                self.partial_head = Vec::new();
                self.begin(head, framing, sink);
                Ok(&bytes[length - before..])
            }
            None if self.partial_head.len() > MAX_HEAD => Err(ParseError::HeadTooLong),
            None => Ok(&[]),
        }
    }

    fn begin(&mut self, head: Head, framing: Framing, sink: &mut impl Sink) {
        if (100..200).contains(&head.status) {
            return self.interim(head, sink);
        }
        self.keep_alive = head.keep_alive;
        self.state = match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(n) => State::Length(n),
            Framing::Chunked => State::ChunkSize(0, false),
            Framing::UntilClose => State::UntilClose,
        };
        self.head_seen = true;
        sink.head(head);
    }

    /// Interim responses (100, 103) are passed over. 101 is the last: what follows it is not HTTP.
    #[cold]
    fn interim(&mut self, head: Head, sink: &mut impl Sink) {
        if head.status == 101 {
            self.keep_alive = false;
            self.state = State::Done;
            self.head_seen = true;
            sink.head(head);
        }
    }
}

fn split(bytes: &[u8], left: u64) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX)))
}

#[derive(Clone, Copy)]
enum Framing {
    None,
    Length(u64),
    Chunked,
    UntilClose,
}

fn parse_head(bytes: &[u8], want_all: bool) -> Result<Option<(usize, Head, Framing)>, ParseError> {
    let mut storage = [MaybeUninit::<httparse::Header<'_>>::uninit(); MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut response, bytes, &mut storage) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(ParseError::TooManyHeaders),
        Err(_) => return Err(ParseError::NotHttp),
    };
    let status = response.code.unwrap_or_default();
    let mut head = Head { status, keep_alive: response.version == Some(1), ..Head::default() };
    if want_all || !(200..300).contains(&status) {
        response.reason.unwrap_or_default().clone_into(&mut head.reason);
    }
    let mut framing = None;
    let mut chunked = false;
    for header in response.headers.iter() {
        let text = || String::from_utf8_lossy(header.value).into_owned();
        // Dispatch on length first: the common case touches each name once.
        match header.name.len() {
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let n = std::str::from_utf8(header.value).ok().and_then(|n| n.trim().parse().ok());
                let n = n.ok_or(ParseError::BadLength)?;
                if framing.is_some_and(|other| other != n) {
                    return Err(ParseError::BadLength);
                }
                framing = Some(n);
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                chunked = header.value.to_ascii_lowercase().ends_with(b"chunked");
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                let value = header.value.to_ascii_lowercase();
                if value.windows(5).any(|w| w == b"close") {
                    head.keep_alive = false;
                } else if value.windows(10).any(|w| w == b"keep-alive") {
                    head.keep_alive = true;
                }
            }
            12 if header.name.eq_ignore_ascii_case("content-type") => head.content_type = text(),
            16 if header.name.eq_ignore_ascii_case("content-encoding") => head.content_encoding = text(),
            11 if header.name.eq_ignore_ascii_case("retry-after") => head.retry_after = Some(text()),
            8 if header.name.eq_ignore_ascii_case("location") => head.location = Some(text()),
            _ => {}
        }
        if want_all {
            head.all.push((header.name.to_owned(), text()));
        }
    }
    let framing = match (chunked, framing) {
        _ if status == 204 || status == 304 => Framing::None,
        (true, _) => Framing::Chunked,
        (false, Some(n)) => Framing::Length(n),
        (false, None) => Framing::UntilClose,
    };
    Ok(Some((length, head, framing)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Seen {
        heads: Vec<Head>,
        body: Vec<u8>,
    }

    impl Sink for Seen {
        fn head(&mut self, head: Head) {
            self.heads.push(head);
        }
        fn body(&mut self, bytes: &[u8]) {
            self.body.extend_from_slice(bytes);
        }
    }

    const CHUNKED: &[u8] =
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
        Transfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n0B\r\n, the world\r\n0\r\nTrailer: a\r\n\r\n";

    fn feed(pieces: &[&[u8]]) -> (Seen, ResponseParser) {
        let mut parser = ResponseParser::new(false);
        let mut seen = Seen::default();
        for piece in pieces {
            parser.push(piece, &mut seen).unwrap();
        }
        (seen, parser)
    }

    #[test]
    fn a_chunked_answer_behind_an_interim_one() {
        let (seen, parser) = feed(&[CHUNKED]);
        assert!(parser.is_done() && parser.reusable());
        assert_eq!(seen.heads.len(), 1);
        assert_eq!(seen.heads[0].content_type, "text/event-stream");
        assert_eq!(seen.body, b"hello, the world");
    }

    #[test]
    fn a_switch_to_another_protocol_ends_the_answer() {
        let head =
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n\r\n";
        let (seen, parser) = feed(&[head, b"\0\0\x12"]);
        assert!(parser.is_done() && !parser.reusable());
        assert_eq!((seen.heads[0].status, seen.body.len()), (101, 0));
    }

    #[test]
    fn every_split_gives_the_same_answer() {
        for at in 0..CHUNKED.len() {
            let (seen, parser) = feed(&[&CHUNKED[..at], &CHUNKED[at..]]);
            assert!(parser.is_done(), "split at {at}");
            assert_eq!(seen.body, b"hello, the world");
        }
        let bytes: Vec<&[u8]> = CHUNKED.chunks(1).collect();
        assert_eq!(feed(&bytes).0.body, b"hello, the world");
    }

    #[test]
    fn content_length_and_connection_close() {
        let (seen, parser) = feed(&[
            b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\nRetry-After: 7\r\nConnection: Close\r\n\r\nno",
        ]);
        assert!(parser.is_done() && !parser.reusable());
        assert_eq!((seen.heads[0].status, seen.heads[0].reason.as_str()), (503, "Busy"));
        assert_eq!(seen.heads[0].retry_after.as_deref(), Some("7"));
    }

    #[test]
    fn a_body_without_a_length_ends_with_the_connection() {
        let (seen, mut parser) = feed(&[b"HTTP/1.0 200 OK\r\n\r\nabc"]);
        assert!(!parser.is_done());
        assert!(parser.eof());
        assert!(!parser.reusable());
        assert_eq!(seen.body, b"abc");
    }

    #[test]
    fn an_early_end_is_not_complete() {
        let (_, mut parser) = feed(&[b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"]);
        assert!(!parser.eof());
        let (_, mut parser) = feed(&[&CHUNKED[..CHUNKED.len() - 20]]);
        assert!(!parser.eof());
    }

    #[test]
    fn bytes_after_the_answer_spoil_the_connection() {
        let (_, parser) = feed(&[b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc"]);
        assert!(parser.is_done() && !parser.reusable());
    }

    #[test]
    fn nonsense_is_refused() {
        let error = |bytes: &[u8]| ResponseParser::new(false).push(bytes, &mut Seen::default()).unwrap_err();
        assert_eq!(error(b"SSH-2.0-OpenSSH_9.2\r\n"), ParseError::NotHttp);
        assert_eq!(error(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), ParseError::BadLength);
        assert_eq!(
            error(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
            ParseError::BadLength
        );
        assert_eq!(
            error(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            ParseError::BadChunk
        );
        assert_eq!(
            error(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
            ParseError::BadChunk
        );
        assert_eq!(
            error(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab"),
            ParseError::BadChunk
        );
    }

    #[test]
    fn a_head_without_an_end_is_called_that() {
        let error = |headers: &str| {
            let mut parser = ResponseParser::new(false);
            let mut pushed = parser.push(b"HTTP/1.1 200 OK\r\n", &mut Seen::default());
            for _ in 0..MAX_HEAD {
                if pushed.is_err() {
                    break;
                }
                pushed = parser.push(headers.as_bytes(), &mut Seen::default());
            }
            pushed.unwrap_err().to_string()
        };
        let long = format!("X-Long: {}", "y".repeat(8_000));
        assert_eq!(error(&(long + "\r\n")), "the head of the answer is longer than 64 KiB");
        assert_eq!(error("X-Short: y\r\n"), "the head of the answer has more than 100 headers");
        assert_eq!(error("x"), "the head of the answer is longer than 64 KiB");
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
            let mut parser = ResponseParser::new(true);
            for piece in pieces {
                if parser.push(&piece, &mut Seen::default()).is_err() {
                    break;
                }
            }
            parser.eof();
        }

        #[test]
        fn chunked_bodies_survive_any_chunking_and_splitting(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..12),
            cut in 1_usize..200,
        ) {
            let mut wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for chunk in &chunks {
                wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let mut parser = ResponseParser::new(false);
            let mut seen = Seen::default();
            for piece in wire.chunks(cut) {
                parser.push(piece, &mut seen).unwrap();
            }
            prop_assert!(parser.reusable());
            prop_assert_eq!(seen.body, chunks.concat());
        }
    }
}
