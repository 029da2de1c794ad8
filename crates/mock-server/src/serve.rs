//! What a network thread does with the bytes of a connection: requests in, answers out.

use std::cmp::Reverse;
use std::time::Duration;

use aiperf_clock::{Mono, now};
use rustix::net::{Shutdown, shutdown, sockopt};

use crate::answer::{Answer, Ending, Next};
use crate::connection::{Connection, Current, Gone, Phase};
use crate::dechunk::Dechunker;
use crate::dialect;
use crate::head::{self, Framing, LONGEST_BODY, LONGEST_HEAD};
use crate::log::Entry;
use crate::stats::Finished;
use crate::worker::Worker;

/// How long a connection whose request was refused is read on.
const DRAIN_NS: u64 = 1_000_000_000;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Keep,
    Close,
    /// By RST.
    Reset,
    /// The client closed.
    Gone,
    /// The server stops.
    Stop,
}

impl From<Gone> for Fate {
    fn from(_: Gone) -> Fate {
        Fate::Gone
    }
}

impl Worker {
    /// Reads what has come.
    pub(crate) fn readable(&mut self, connection: &mut Connection, slot: usize, scratch: &mut [u8]) -> Fate {
        let length = match connection.read(scratch) {
            Ok(Some(length)) => length,
            Ok(None) => return Fate::Keep,
            Err(Gone) => return Fate::Gone,
        };
        let at = now();
        let result = if connection.tls.is_some() {
            self.sealed_input(connection, slot, &scratch[..length], at)
        } else if connection.input.is_empty() {
            self.consume(connection, slot, &scratch[..length], at).map(|used| {
                connection.input.extend_from_slice(&scratch[used..length]);
            })
        } else {
            connection.input.extend_from_slice(&scratch[..length]);
            self.consume_input(connection, slot, at)
        };
        result.err().unwrap_or(Fate::Keep)
    }

    fn sealed_input(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        wire: &[u8],
        at: Mono,
    ) -> Result<(), Fate> {
        let Some(mut tls) = connection.tls.take() else { return Ok(()) };
        let mut reply = Vec::new();
        let opened = tls.open(wire, &mut connection.input, &mut reply);
        connection.tls = Some(tls);
        connection.write_wire(&reply)?;
        opened.map_err(|_| Fate::Close)?;
        self.consume_input(connection, slot, at)
    }

    fn consume_input(&mut self, connection: &mut Connection, slot: usize, at: Mono) -> Result<(), Fate> {
        let input = std::mem::take(&mut connection.input);
        let used = self.consume(connection, slot, &input, at);
        connection.input = input;
        connection.consume(used?);
        Ok(())
    }

    /// Uses bytes as far as whole requests, or parts of a body, can be made of them; gives how many were used.
    fn consume(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        bytes: &[u8],
        at: Mono,
    ) -> Result<usize, Fate> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match std::mem::replace(&mut connection.phase, Phase::Head) {
                Phase::Head => match self.take_head(connection, slot, rest, at)? {
                    0 => return Ok(used),
                    length => used += length,
                },
                Phase::Body { head, length } => {
                    if rest.len() < length {
                        connection.phase = Phase::Body { head, length };
                        return Ok(used);
                    }
                    used += length;
                    self.request(connection, slot, *head, &rest[..length], at)?;
                }
                Phase::Chunks { head, mut decoder } => {
                    let mut body = std::mem::take(&mut connection.body);
                    let pushed = decoder.push(rest, &mut body);
                    let Ok((taken, complete)) = pushed else {
                        return self
                            .refuse_head(
                                connection,
                                slot,
                                400,
                                "the request body is not chunked as it claims",
                            )
                            .map(|()| bytes.len());
                    };
                    used += taken;
                    if complete {
                        let result = self.request(connection, slot, *head, &body, at);
                        body.clear();
                        crate::connection::give_back(&mut body);
                        connection.body = body;
                        result?;
                    } else if body.len() as u64 > LONGEST_BODY {
                        return self
                            .refuse_head(connection, slot, 413, "the request body is too large")
                            .map(|()| bytes.len());
                    } else {
                        connection.body = body;
                        connection.phase = Phase::Chunks { head, decoder };
                        return Ok(used);
                    }
                }
                Phase::Answering => {
                    connection.phase = Phase::Answering;
                    return Ok(used);
                }
                Phase::Draining => {
                    connection.phase = Phase::Draining;
                    return Ok(bytes.len());
                }
            }
        }
    }

    /// Reads a head from the front of `rest`; gives its length, or 0 when it is not complete.
    fn take_head(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        rest: &[u8],
        at: Mono,
    ) -> Result<usize, Fate> {
        let from = connection.searched.saturating_sub(3).min(rest.len());
        let Some(found) = self.head_end.find(&rest[from..]) else {
            connection.searched = rest.len();
            // What begins a TLS handshake, say, would be waited for without end.
            if rest.first().is_some_and(|byte| !byte.is_ascii_graphic() && !matches!(byte, b'\r' | b'\n')) {
                self.refuse_head(connection, slot, 400, "the request head is not HTTP/1.1")?;
                return Ok(rest.len());
            }
            if rest.len() > LONGEST_HEAD {
                self.refuse_head(connection, slot, 431, "the request head is longer than 64 KiB")?;
                return Ok(rest.len());
            }
            return Ok(0);
        };
        connection.searched = 0;
        let length = from + found + 4;
        let parsed = if length > LONGEST_HEAD {
            Err(head::BadHead(431, "the request head is longer than 64 KiB"))
        } else {
            head::parse(&rest[..length], self.keeps_ids())
        };
        let mut head = match parsed {
            Ok(head) => Box::new(head),
            Err(head::BadHead(status, message)) => {
                connection.current.bodiless = false;
                self.refuse_head(connection, slot, status, message)?;
                return Ok(rest.len());
            }
        };
        let load = head.route.is_load();
        let bodiless = head.bodiless;
        connection.current =
            Current { counted: load, in_flight: load, head_at: at, bodiless, ..Current::default() };
        connection.take_ids(&mut head);
        if load {
            self.shared.counters.begin();
        }
        if head.expects_continue && rest.len() == length {
            connection.write(b"HTTP/1.1 100 Continue\r\n\r\n", false)?;
        }
        connection.phase = match head.framing {
            Framing::Length(body) => Phase::Body { head, length: body as usize },
            Framing::Chunked => Phase::Chunks { head, decoder: Dechunker::new() },
        };
        Ok(length)
    }

    /// Answers what cannot be understood and stops listening to it.
    fn refuse_head(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        status: u16,
        message: &str,
    ) -> Result<(), Fate> {
        let body = dialect::error(message, "invalid_request_error", None, &serde_json::Value::Null);
        self.respond(connection, status, "application/json", false, &body, "")?;
        if connection.current.counted {
            self.ended(connection, Some(status), None, false);
        }
        self.drain(connection, slot);
        Ok(())
    }

    fn drain(&mut self, connection: &mut Connection, slot: usize) {
        connection.phase = Phase::Draining;
        connection.serial = self.serial();
        self.deadlines.push(Reverse((now().plus(DRAIN_NS), slot as u32, connection.serial)));
        if !connection.is_blocked() {
            let _ = shutdown(&connection.socket, Shutdown::Write);
        }
    }

    /// Writes a whole response; `more` are lines of its head.
    pub(crate) fn respond(
        &mut self,
        connection: &mut Connection,
        status: u16,
        content_type: &str,
        keep_alive: bool,
        body: &[u8],
        more: &str,
    ) -> Result<(), Gone> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.leave(connection);
        dialect::head(&mut out, status, content_type, keep_alive, body.len(), more);
        if !connection.current.bodiless {
            out.extend_from_slice(body);
        }
        let result = connection.write(&out, false);
        self.out = out;
        result
    }

    /// A deadline of the connection has come.
    pub(crate) fn due(&mut self, connection: &mut Connection, slot: usize) -> Fate {
        if matches!(connection.phase, Phase::Draining) {
            return Fate::Close;
        }
        self.go_on(connection, slot)
    }

    /// The prompt tokens of the current request are known.
    pub(crate) fn counted(&mut self, connection: &mut Connection, slot: usize, tokens: u64) -> Fate {
        let waited = connection.answer.as_mut().is_some_and(|answer| answer.counted(tokens));
        // One that has not stopped has a deadline of its own, and a second one would follow it to its end.
        if waited { self.go_on(connection, slot) } else { Fate::Keep }
    }

    pub(crate) fn writable(&mut self, connection: &mut Connection, slot: usize) -> Fate {
        let ended = connection.answer.as_ref().is_some_and(|answer| answer.has_ended());
        if ended {
            self.leave(connection);
        }
        if connection.flush().is_err() {
            return Fate::Gone;
        }
        if connection.is_blocked() {
            if ended {
                self.rejoin(connection);
            }
            return Fate::Keep;
        }
        if matches!(connection.phase, Phase::Draining) {
            let _ = shutdown(&connection.socket, Shutdown::Write);
            return Fate::Keep;
        }
        self.go_on(connection, slot)
    }

    /// Goes on with the answer and, once it ends, with requests that came meanwhile.
    fn go_on(&mut self, connection: &mut Connection, slot: usize) -> Fate {
        let result = self.pump(connection, slot).and_then(|()| {
            if connection.input.is_empty() || connection.answer.is_some() {
                return Ok(());
            }
            self.consume_input(connection, slot, now())
        });
        result.err().unwrap_or(Fate::Keep)
    }

    /// Writes what is due of the answer and notes when more will be.
    pub(crate) fn pump(&mut self, connection: &mut Connection, slot: usize) -> Result<(), Fate> {
        loop {
            if connection.is_blocked() {
                return Ok(());
            }
            let Some(answer) = &mut connection.answer else { return Ok(()) };
            let mut out = std::mem::take(&mut self.out);
            out.clear();
            let next = answer.advance(now(), &mut out);
            let (split, ended) = (answer.is_split(), answer.has_ended());
            if ended {
                self.leave(connection);
            }
            let written = if out.is_empty() { Ok(()) } else { connection.write(&out, split) };
            self.out = out;
            written?;
            if ended && connection.is_blocked() {
                self.rejoin(connection);
            }
            match next {
                // The rest is asked for again once the socket has taken this part.
                _ if connection.is_blocked() => return Ok(()),
                Next::More => {}
                Next::At(due) => {
                    self.deadlines.push(Reverse((due, slot as u32, connection.serial)));
                    return Ok(());
                }
                Next::Count | Next::Never => return Ok(()),
                Next::End(ending) => {
                    self.finish(connection, false);
                    return match ending {
                        Ending::KeepAlive => Ok(()),
                        Ending::Close => Err(Fate::Close),
                        Ending::Reset => Err(Fate::Reset),
                    };
                }
            }
        }
    }

    fn leave(&self, connection: &mut Connection) {
        if std::mem::take(&mut connection.current.in_flight) {
            self.shared.counters.leave();
        }
    }

    fn rejoin(&self, connection: &mut Connection) {
        connection.current.in_flight = true;
        self.shared.counters.rejoin();
    }

    fn finish(&mut self, connection: &mut Connection, aborted: bool) {
        if let Some(mut answer) = connection.answer.take() {
            self.ended(connection, answer.status, Some(&answer), aborted);
            answer.rest();
            self.spare.push(answer);
        }
        connection.phase = Phase::Head;
    }

    /// Accounts for a request that is over, answered or not.
    pub(crate) fn ended(
        &mut self,
        connection: &mut Connection,
        status: Option<u16>,
        answer: Option<&Answer>,
        aborted: bool,
    ) {
        let end = now();
        self.leave(connection);
        connection.serial = self.serial();
        connection.idle_since = end;
        let current = std::mem::take(&mut connection.current);
        let first_token = answer.and_then(|answer| answer.first_token);
        let tokens = answer.map_or(0, Answer::completion_tokens);
        self.shared.counters.finish(&Finished {
            status,
            received: current.received,
            first_token,
            end,
            generation_tokens: tokens,
            aborted,
        });
        if let Some(log) = &self.log {
            let lateness = first_token.and(answer).map(|answer| answer.worst_lateness_ns);
            // The log's thread ends only after this one, or when its file took no more.
            let _ = log.send(Entry {
                request_id: current.request_id,
                correlation_id: current.correlation_id,
                accepted: connection.accepted,
                head: current.head_at,
                received: current.received,
                first_token,
                last_token: answer.and_then(|answer| answer.last_token),
                end,
                worst_lateness_ns: lateness,
                tokens,
                status,
                fault: answer.map(|answer| answer.fault),
                aborted,
            });
        }
    }

    /// Ends a connection.
    pub(crate) fn shut(&mut self, connection: &mut Connection, fate: Fate) {
        let aborted = fate == Fate::Gone;
        if connection.answer.is_some() {
            self.finish(connection, aborted);
        } else if connection.current.counted {
            self.ended(connection, None, None, aborted);
        }
        if fate == Fate::Reset {
            let _ = sockopt::set_socket_linger(&connection.socket, Some(Duration::ZERO));
        } else if let Some(mut tls) = connection.tls.take() {
            let mut wire = Vec::new();
            tls.close(&mut wire);
            let _ = connection.write_wire(&wire);
        }
    }

    fn keeps_ids(&self) -> bool {
        self.log.is_some()
    }
}

impl Connection {
    /// Whether nothing is asked or answered.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Head) && self.input.is_empty() && !self.is_blocked()
    }
}
