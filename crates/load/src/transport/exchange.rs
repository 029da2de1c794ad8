//! One request and its answer on one connection.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::Poll;

use aiperf_clock::{Mono, now};
use aiperf_types::{Body, HttpTrace};

use super::connection::Connection;
use super::response::{Head, ParseError, ResponseParser, Sink};

/// Reads of one stream before the others get their turn.
const READS_PER_TURN: usize = 16;
/// Slices given to one write call.
const MAX_SLICES: usize = 64;

/// Takes an answer as it comes in.
pub(crate) trait Inbound {
    /// Status and headers are in, read at `at`.
    fn head(&mut self, head: Head, at: Mono);
    /// Body bytes, read at `at`. `false`: the rest is not wanted.
    fn body(&mut self, bytes: &[u8], at: Mono) -> bool;
}

/// Why an exchange did not complete.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// Writing failed, this many bytes of the request in.
    Write(io::Error, usize),
    /// Reading failed.
    Read(io::Error),
    /// The peer closed; whether any byte of an answer had come.
    Closed { started: bool },
    /// Not an answer.
    Parse(ParseError),
}

/// Writes head and body; stamps `trace`.
pub(crate) async fn send(
    connection: &mut Connection,
    head: &[u8],
    body: &Body,
    trace: &mut HttpTrace,
) -> Result<(), ExchangeError> {
    trace.send_start = Some(now());
    let total = head.len() + body.len();
    let mut written = 0;
    while written < total {
        let result = poll_fn(|cx| {
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let count = fill(&mut slices, head, body, written);
            connection.poll_write(cx, &slices[..count])
        })
        .await;
        match result {
            Ok(0) => return Err(ExchangeError::Write(io::ErrorKind::WriteZero.into(), written)),
            Ok(n) => {
                let body_bytes = (written + n).saturating_sub(head.len().max(written));
                written += n;
                let at = if written < total || !connection.is_tls() {
                    now()
                } else {
                    poll_fn(|cx| connection.poll_flush(cx))
                        .await
                        .map_err(|error| ExchangeError::Write(error, written))?;
                    now()
                };
                if trace.headers_sent.is_none() && written >= head.len() {
                    trace.headers_sent = Some(at);
                }
                if body_bytes > 0 {
                    trace.chunks_sent += 1;
                    trace.bytes_sent += body_bytes as u64;
                    if let Some(facts) = &mut trace.facts {
                        facts.writes.push((at, body_bytes as u32));
                    }
                }
                if written == total {
                    trace.send_end = Some(at);
                }
            }
            Err(error) => return Err(ExchangeError::Write(error, written)),
        }
    }
    Ok(())
}

/// The slices of head and body from byte `written` on.
fn fill<'a>(slices: &mut [IoSlice<'a>; MAX_SLICES], head: &'a [u8], body: &'a Body, written: usize) -> usize {
    let mut skip = written;
    let mut count = 0;
    for piece in std::iter::once(head).chain(body.segments().iter().map(AsRef::as_ref)) {
        if skip >= piece.len() {
            skip -= piece.len();
            continue;
        }
        if count == MAX_SLICES {
            break;
        }
        slices[count] = IoSlice::new(&piece[skip..]);
        skip = 0;
        count += 1;
    }
    count
}

struct Feed<'a, I> {
    inbound: &'a mut I,
    at: Mono,
    body_bytes: usize,
    wanted: bool,
}

impl<I: Inbound> Sink for Feed<'_, I> {
    fn head(&mut self, head: Head) {
        self.inbound.head(head, self.at);
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body_bytes += bytes.len();
        self.wanted &= self.inbound.body(bytes, self.at);
    }
}

/// Reads the answer to its end; whether the connection can be used again.
pub(crate) async fn receive(
    connection: &mut Connection,
    scratch: &RefCell<Box<[u8]>>,
    want_headers: bool,
    trace: &mut HttpTrace,
    inbound: &mut impl Inbound,
) -> Result<bool, ExchangeError> {
    let mut parser = ResponseParser::new(want_headers);
    // The scratch buffer is shared by all streams of the worker: it is borrowed only while one read is turned
    // into what is kept of it, and no await happens in between.
    let complete = poll_fn(|cx| {
        let mut scratch = scratch.borrow_mut();
        for _ in 0..READS_PER_TURN {
            let (n, at) = match connection.poll_read(cx, &mut scratch) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(read)) => read,
                // TLS without its closing message: never a complete answer, whatever its framing.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Poll::Ready(Err(ExchangeError::Closed { started: parser.started() }));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(ExchangeError::Read(error))),
            };
            if n == 0 {
                let started = parser.started();
                return Poll::Ready(if parser.eof() {
                    Ok(true)
                } else {
                    Err(ExchangeError::Closed { started })
                });
            }
            let mut feed = Feed { inbound: &mut *inbound, at, body_bytes: 0, wanted: true };
            let parsed = parser.push(&scratch[..n], &mut feed);
            let (body_bytes, wanted) = (feed.body_bytes, feed.wanted);
            if body_bytes > 0 {
                trace.receive_start.get_or_insert(at);
                trace.receive_end = Some(at);
                trace.chunks_received += 1;
                trace.bytes_received += body_bytes as u64;
                if let Some(facts) = &mut trace.facts {
                    facts.reads.push((at, body_bytes as u32));
                }
            }
            match parsed {
                Err(error) => return Poll::Ready(Err(ExchangeError::Parse(error))),
                Ok(()) if !wanted => return Poll::Ready(Ok(false)),
                Ok(()) if parser.is_done() => return Poll::Ready(Ok(true)),
                Ok(()) => {}
            }
        }
        // A peer that fills the socket as fast as it is read must not keep the other streams waiting.
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await?;
    Ok(complete && parser.reusable())
}
