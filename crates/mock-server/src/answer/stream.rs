//! Streamed answers: events, their framing, and the faults that happen between them.

use std::io::Write as _;

use aiperf_clock::Mono;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Answer, Ending, Field, RESET_DELAY_NS, Step};
use crate::dialect::{self, Kind};
use crate::fault::Fault;

pub(super) type Encoder = GzEncoder<Vec<u8>>;

/// The truncated JSON of fault `malformed`.
pub(super) const BROKEN: &str = "{\"id\": \"broken\", \"choices\": [";
/// The error object of fault `midstream_error`.
pub(super) const ENGINE_DIED: &str =
    "{\"error\":{\"message\":\"mock engine died\",\"type\":\"internal\",\"code\":503}}";
const GARBAGE: &[u8] = b"\x16\x03\x01 this is not HTTP\r\n\r\n\x00\xff\xfe";

/// `body` compressed.
pub(super) fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to a Vec cannot fail.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default()
}

impl Answer {
    pub(super) fn head(&mut self, out: &mut Vec<u8>) {
        match self.fault {
            Fault::Close => return self.step = Step::End(Ending::Close),
            Fault::Garbage => {
                out.extend_from_slice(GARBAGE);
                return self.step = Step::End(Ending::Close);
            }
            _ => {}
        }
        self.status = Some(200);
        out.extend_from_slice(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n",
        );
        if self.fault == Fault::Truncated {
            // More than the stream can have: an event is never this much longer than its model name.
            let length = (self.total + 8) * (self.model.len() as u64 + 1024);
            let _ = write!(out, "Content-Length: {length}\r\n");
        } else if self.http11 {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        if self.fault == Fault::Gzip {
            out.extend_from_slice(b"Content-Encoding: gzip\r\n");
            self.encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
        }
        if !self.http11 || !self.keep_alive {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        let mut opening = std::mem::take(&mut self.opening);
        opening.extend_from_slice(b"data: ");
        dialect::opening(&mut opening, self.kind, true, self.index, &self.model);
        self.opening = opening;
        if self.kind == Kind::Chat {
            self.begin();
            self.event.extend_from_slice(
                b"{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}",
            );
            self.end(out);
        }
        self.step = if self.total == 0 { Step::Finish } else { Step::Token };
        self.due = self.first_due;
    }

    /// One content chunk, or what the fault puts in its place.
    pub(super) fn token(&mut self, now: Mono, out: &mut Vec<u8>) {
        if self.chunks == 2 && self.strike(out) {
            return;
        }
        self.stamp(now, self.due);
        let tokens = if self.fault == Fault::Bundle { 4.min(self.total - self.done) } else { 1 };
        let first = self.done == 0 || self.done == self.reasoning;
        self.done += tokens;
        if self.fault == Fault::Comments && self.chunks > 0 {
            self.noise(out);
        }
        if self.fault == Fault::Malformed
            && (self.chunks == 2 || (self.chunks < 2 && self.done == self.total))
        {
            self.plain(out, BROKEN);
        } else if self.fault == Fault::Tools {
            self.tool_call(out);
        } else if first || self.frame.is_empty() || self.continuous_usage || tokens != self.usual_tokens() {
            self.content(out, first, tokens);
        } else {
            out.extend_from_slice(&self.frame);
        }
        self.chunks += 1;
        if self.done == self.total {
            self.step = Step::Finish;
        } else {
            let gap = self.fixed_itl.unwrap_or_else(|| self.itl.draw_ns(&mut self.draws));
            self.due = self.due.plus(gap);
        }
    }

    fn usual_tokens(&self) -> u64 {
        if self.fault == Fault::Bundle { 4 } else { 1 }
    }

    /// What a fault does after two content chunks, or before the end of a shorter answer; true when it did
    /// something, so that the step is not carried out.
    fn strike(&mut self, out: &mut Vec<u8>) -> bool {
        if self.struck {
            return false;
        }
        self.struck = true;
        match self.fault {
            Fault::MidstreamError => {
                self.plain(out, ENGINE_DIED);
                self.plain(out, "[DONE]");
                self.terminate(out);
            }
            Fault::SseErrorEvent => {
                self.event.clear();
                self.event.extend_from_slice(b"event: error");
                self.line();
                self.event.extend_from_slice(b": mock engine died");
                self.end(out);
                self.terminate(out);
            }
            Fault::EarlyClose => self.step = Step::End(Ending::Close),
            Fault::Reset => {
                self.step = Step::End(Ending::Reset);
                self.delay_reset(self.last_token.unwrap_or(self.due));
            }
            Fault::Stall => self.due = self.due.plus(self.stall_ns),
            Fault::Hang => self.step = Step::Hung,
            _ => return false,
        }
        true
    }

    /// Holds the end of the answer back for a moment after `written`.
    pub(super) fn delay_reset(&mut self, written: Mono) {
        self.due = self.due.max(written.plus(RESET_DELAY_NS));
    }

    /// The finish chunk, usage, `[DONE]` and the end of the body.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if self.strike(out) {
            return;
        }
        if self.fault != Fault::NoDone {
            self.begin();
            self.event.extend_from_slice(if self.kind == Kind::Chat {
                b"{\"index\":0,\"delta\":{},\"finish_reason\":"
            } else {
                b"{\"index\":0,\"text\":\"\",\"finish_reason\":"
            });
            let reason = self.finish_reason();
            self.event.extend_from_slice(reason);
            self.event.extend_from_slice(b"}]");
            if self.spec_decode {
                dialect::speculative(&mut self.event, self.index);
            }
            self.event.push(b'}');
            self.end(out);
        }
        if self.include_usage
            && let Some(usage) = self.usage()
        {
            self.begin();
            self.event.extend_from_slice(b"],");
            dialect::usage(&mut self.event, usage);
            self.event.push(b'}');
            self.end(out);
        }
        if self.fault != Fault::NoDone {
            self.plain(out, "[DONE]");
        }
        self.terminate(out);
    }

    fn content(&mut self, out: &mut Vec<u8>, first: bool, tokens: u64) {
        let field = match self.fault {
            Fault::Refusal => Field::Refusal,
            Fault::Reasoning if self.done <= self.reasoning => Field::Reasoning,
            _ => Field::Content,
        };
        self.begin();
        let event = &mut self.event;
        event.extend_from_slice(match (self.kind, field) {
            (Kind::Chat, Field::Content) => b"{\"index\":0,\"delta\":{\"content\":\"",
            (Kind::Chat, Field::Reasoning) => b"{\"index\":0,\"delta\":{\"reasoning_content\":\"",
            (Kind::Chat, Field::Refusal) => b"{\"index\":0,\"delta\":{\"refusal\":\"",
            _ => b"{\"index\":0,\"text\":\"",
        });
        dialect::words(event, first, tokens);
        event.extend_from_slice(if self.kind == Kind::Chat {
            b"\"},\"finish_reason\":null}]"
        } else {
            b"\",\"finish_reason\":null}]"
        });
        self.close_chunk();
        let start = out.len();
        self.end(out);
        // Chunks after the first of a text are equal until the text changes, unless each carries its own usage
        // or the compressor's state.
        self.frame.clear();
        if !first && self.encoder.is_none() && tokens == self.usual_tokens() {
            self.frame.extend_from_slice(&out[start..]);
        }
    }

    fn tool_call(&mut self, out: &mut Vec<u8>) {
        self.begin();
        let [first, second] = dialect::TOOL_ARGUMENTS;
        let call = match self.chunks {
            0 => "\"id\":\"call_0\",\"type\":\"function\",\"function\":{\"name\":\"lookup\",\"arguments\":\"",
            _ => "\"function\":{\"arguments\":\"",
        };
        let arguments = ["", first, second][self.chunks.min(2) as usize];
        // Writing to a Vec cannot fail.
        let _ = write!(
            self.event,
            "{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,{call}{arguments}\"}}}}]}},\"finish_reason\":null}}]"
        );
        self.close_chunk();
        self.end(out);
    }

    /// Ends the JSON of a content chunk, with usage so far when each chunk carries it.
    fn close_chunk(&mut self) {
        if self.continuous_usage
            && let Some(usage) = self.usage()
        {
            self.event.push(b',');
            dialect::usage(&mut self.event, usage);
        }
        self.event.push(b'}');
    }

    fn noise(&mut self, out: &mut Vec<u8>) {
        self.event.clear();
        self.event.extend_from_slice(b": ping");
        self.end(out);
        self.event.clear();
        self.event.extend_from_slice(b"event: heartbeat");
        self.line();
        self.event.extend_from_slice(b"data: {\"object\":\"heartbeat\"}");
        self.end(out);
    }

    fn plain(&mut self, out: &mut Vec<u8>, data: &str) {
        self.event.clear();
        self.event.extend_from_slice(b"data: ");
        self.event.extend_from_slice(data.as_bytes());
        self.end(out);
    }

    fn begin(&mut self) {
        self.event.clear();
        self.event.extend_from_slice(&self.opening);
    }

    fn line(&mut self) {
        self.event.extend_from_slice(if self.fault == Fault::Crlf { b"\r\n" } else { b"\n" });
    }

    /// Ends the event and appends it in the framing of the body.
    fn end(&mut self, out: &mut Vec<u8>) {
        self.line();
        self.line();
        if let Some(encoder) = &mut self.encoder {
            // Writing to a Vec cannot fail.
            let _ = encoder.write_all(&self.event).and_then(|()| encoder.flush());
            self.event.clear();
            self.event.append(encoder.get_mut());
        }
        self.append(out);
    }

    fn append(&self, out: &mut Vec<u8>) {
        if self.event.is_empty() {
            return;
        }
        let chunked = self.http11 && self.fault != Fault::Truncated;
        if chunked {
            hexadecimal(out, self.event.len());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(&self.event);
        if chunked {
            out.extend_from_slice(b"\r\n");
        }
    }

    fn terminate(&mut self, out: &mut Vec<u8>) {
        if let Some(encoder) = self.encoder.take() {
            self.event = encoder.finish().unwrap_or_default();
            self.append(out);
        }
        let chunked = self.http11 && self.fault != Fault::Truncated;
        if chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        self.step = Step::End(if chunked { self.ending() } else { Ending::Close });
    }
}

fn hexadecimal(out: &mut Vec<u8>, value: usize) {
    let digits = (usize::BITS - value.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(value >> (digit * 4)) & 15]);
    }
}
