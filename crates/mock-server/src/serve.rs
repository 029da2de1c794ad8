//! What a network thread does with the bytes of a connection: requests in, answers out.

use std::cmp::Reverse;
use std::time::Duration;

use aiperf_clock::{Mono, now};
use rustix::net::{Shutdown, shutdown, sockopt};

use crate::answer::{Answer, Ending, MOST_TOKENS, Next, Order, Prompt};
use crate::connection::{Connection, Current, Gone, Phase};
use crate::dechunk::Dechunker;
use crate::dialect::{self, Kind};
use crate::head::{self, Framing, Head, LONGEST_BODY, LONGEST_HEAD, Route};
use crate::log::Entry;
use crate::scan::{self, Facts, Limit};
use crate::settings::UsageMode;
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

/// A refusal of a request whose head was fine.
struct Refusal {
    status: u16,
    body: Vec<u8>,
}

fn refusal(status: u16, message: &str, parameter: Option<&str>, code: Option<&str>) -> Refusal {
    let body = dialect::error(message, "invalid_request_error", parameter, &code.into());
    Refusal { status, body }
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
                self.refuse_head(connection, slot, status, message)?;
                return Ok(rest.len());
            }
        };
        let load = head.route.is_load();
        connection.current = Current { counted: load, in_flight: load, head_at: at, ..Current::default() };
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
        self.respond(connection, status, "application/json", false, &body)?;
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

    fn respond(
        &mut self,
        connection: &mut Connection,
        status: u16,
        content_type: &str,
        keep_alive: bool,
        body: &[u8],
    ) -> Result<(), Gone> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.leave(connection);
        dialect::response(&mut out, status, content_type, keep_alive, body);
        let result = connection.write(&out, false);
        self.out = out;
        result
    }

    /// Answers a request whose body is complete. The connection is ready for the next head unless it answers still.
    fn request(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        head: Head,
        body: &[u8],
        at: Mono,
    ) -> Result<(), Fate> {
        connection.current.received = Some(at);
        let keep_alive = head.keep_alive;
        let refused = match head.route {
            Route::Chat => self.load(connection, slot, Kind::Chat, head, body, at),
            Route::Completions => self.load(connection, slot, Kind::Completions, head, body, at),
            Route::Embeddings => self.load(connection, slot, Kind::Embeddings, head, body, at),
            Route::Unknown => {
                self.shared.counters.body(body.len() as u64);
                Err(refusal(404, "there is nothing at this path", None, None))
            }
            route => {
                let (content_type, text) = self.look(route);
                self.respond(connection, 200, content_type, keep_alive, text.as_bytes())?;
                connection.idle_since = at;
                return if keep_alive { Ok(()) } else { Err(Fate::Close) };
            }
        };
        match refused {
            Ok(()) => self.pump(connection, slot),
            Err(refusal) => {
                self.respond(connection, refusal.status, "application/json", keep_alive, &refusal.body)?;
                self.ended(connection, Some(refusal.status), None, false);
                if keep_alive { Ok(()) } else { Err(Fate::Close) }
            }
        }
    }

    /// The answer to a look at the mock itself.
    fn look(&self, route: Route) -> (&'static str, String) {
        let counters = &self.shared.counters;
        match route {
            Route::Metrics => ("text/plain; version=0.0.4; charset=utf-8", counters.prometheus()),
            Route::Models => ("application/json", models(&self.shared.settings.models)),
            Route::Reset => {
                counters.reset();
                ("application/json", counters.stats().json())
            }
            _ => ("application/json", counters.stats().json()),
        }
    }

    /// Begins the answer to a load request.
    fn load(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        kind: Kind,
        head: Head,
        body: &[u8],
        at: Mono,
    ) -> Result<(), Refusal> {
        let shared = std::sync::Arc::clone(&self.shared);
        let index = shared.counters.arrive();
        shared.counters.body(body.len() as u64);
        let fault = head.asked.or(shared.settings.plan.of(index)).map_err(|name| {
            refusal(400, &format!("`{name}` is no fault of the mock server"), Some("fault"), None)
        })?;
        let mut facts = std::mem::take(&mut self.facts);
        let order = self.order(kind, &mut facts, body).map(|order| Order {
            index,
            fault,
            received: at,
            http11: head.http11,
            keep_alive: head.keep_alive,
            ..order
        });
        let started = order.map(|order| {
            let mut answer = self.spare.pop().unwrap_or_else(|| Box::new(Answer::new(&self.shared.settings)));
            answer.start(&order, &shared.settings, &shared.vectors[usize::from(facts.base64)]);
            connection.serial = self.serial();
            match (order.prompt, &self.counting) {
                (Prompt::Pending, Some(counting)) => {
                    counting.count(slot, connection.serial, body, &facts);
                }
                (Prompt::Known(tokens), _) => self.shared.counters.prompt(tokens),
                _ => {}
            }
            connection.answer = Some(answer);
            connection.phase = Phase::Answering;
        });
        self.facts = facts;
        started
    }

    /// Reads the body; what the head says is filled in by the caller.
    fn order<'b>(&self, kind: Kind, facts: &mut Facts, body: &'b [u8]) -> Result<Order<'b>, Refusal> {
        if scan::scan(body, facts).is_err() {
            return Err(refusal(400, "the request body is not a JSON object", None, None));
        }
        let (present, field) = match kind {
            Kind::Chat => (facts.messages, "messages"),
            Kind::Completions => (facts.prompt, "prompt"),
            Kind::Embeddings => (facts.input || facts.messages, "input"),
        };
        if !present {
            return Err(refusal(400, &format!("`{field}` is missing"), Some(field), None));
        }
        let limit = match limit("max_completion_tokens", facts.max_completion_tokens)? {
            Some(limit) => Some(limit),
            None => limit("max_tokens", facts.max_tokens)?,
        };
        let min_tokens = limit_or_zero("min_tokens", facts.min_tokens)?;
        let settings = &self.shared.settings;
        let model = match facts.model {
            // The whole body was checked to be UTF-8, and a string begins and ends at a character.
            Some(text) => std::str::from_utf8(&body[text.start..text.end]).unwrap_or(dialect::MODEL),
            None => dialect::MODEL,
        };
        if let (Some(text), false) = (facts.model, settings.models.is_empty()) {
            let name = scan::unescape(body, text);
            if !settings.models.contains(&name) {
                let message = format!("the model `{name}` does not exist");
                return Err(refusal(404, &message, Some("model"), Some("model_not_found")));
            }
        }
        let prompt = match settings.usage {
            UsageMode::Off => Prompt::Off,
            UsageMode::Exact if !facts.texts.is_empty() => Prompt::Pending,
            _ => Prompt::Known(facts.joined_bytes() / 4 + facts.token_ids),
        };
        Ok(Order {
            kind,
            index: 0,
            fault: crate::Fault::Ok,
            stream: facts.stream,
            include_usage: facts.include_usage,
            continuous_usage: facts.continuous_usage,
            limit,
            min_tokens,
            model,
            prompt,
            inputs: if facts.input { facts.inputs } else { 1 },
            received: Mono(0),
            http11: true,
            keep_alive: true,
        })
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
        match &mut connection.answer {
            Some(answer) if answer.prompt == Prompt::Pending => answer.prompt = Prompt::Known(tokens),
            _ => return Fate::Keep,
        }
        self.go_on(connection, slot)
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
    fn pump(&mut self, connection: &mut Connection, slot: usize) -> Result<(), Fate> {
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
    fn ended(
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

fn limit(name: &str, limit: Limit) -> Result<Option<u64>, Refusal> {
    match limit {
        Limit::Absent => Ok(None),
        Limit::Count(tokens) if (1..=MOST_TOKENS).contains(&tokens) => Ok(Some(tokens)),
        _ => {
            let message = format!("`{name}` must be a whole number from 1 to {MOST_TOKENS}");
            Err(refusal(400, &message, Some(name), None))
        }
    }
}

fn limit_or_zero(name: &str, value: Limit) -> Result<u64, Refusal> {
    if value == Limit::Count(0) { Ok(0) } else { limit(name, value).map(Option::unwrap_or_default) }
}

/// The list of `/v1/models`.
fn models(names: &[String]) -> String {
    let default = [dialect::MODEL.to_owned()];
    let names = if names.is_empty() { &default[..] } else { names };
    let data: Vec<serde_json::Value> = names
        .iter()
        .map(|name| serde_json::json!({"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "mock"}))
        .collect();
    serde_json::json!({"object": "list", "data": data}).to_string()
}
