//! One accepted socket: its input, its unwritten output and what it is in the middle of.

use std::os::fd::OwnedFd;

use aiperf_clock::Mono;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::answer::Answer;
use crate::dechunk::Dechunker;
use crate::head::{Asked, Head};
use crate::tls::Session;

/// Pipelined bytes beyond this wait in the kernel.
const MOST_INPUT_WHILE_ANSWERING: usize = 1 << 20;
/// A buffer that grew beyond this is given back once it is empty.
const KEPT_CAPACITY: usize = 64 * 1024;

/// What a connection is in the middle of.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Between requests or inside a head.
    Head,
    /// Inside a body of known length.
    Body { head: Box<Head>, length: usize },
    /// Inside a chunked body.
    Chunks { head: Box<Head>, decoder: Dechunker },
    /// Answering.
    Answering,
    /// The answer was written and refuses what follows; reading on until the client closes keeps the kernel from
    /// answering unread bytes with a reset, which would take the answer away from the client.
    Draining,
}

/// The client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// The request a connection serves at the moment.
#[derive(Debug, Default)]
pub(crate) struct Current {
    /// It counts as load.
    pub(crate) counted: bool,
    /// It counts as in flight.
    pub(crate) in_flight: bool,
    pub(crate) head_at: Mono,
    /// It was asked for the head of the answer alone.
    pub(crate) bodiless: bool,
    /// When the body was complete.
    pub(crate) received: Option<Mono>,
    pub(crate) request_id: Option<String>,
    pub(crate) correlation_id: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) accepted: Mono,
    /// Changes with every request, so that timers and counts of an earlier one are recognised.
    pub(crate) serial: u32,
    pub(crate) phase: Phase,
    /// Bytes read and not used yet.
    pub(crate) input: Vec<u8>,
    /// Bytes of `input` in which the end of the head was already sought.
    pub(crate) searched: usize,
    /// A chunked body so far.
    pub(crate) body: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    pub(crate) answer: Option<Box<Answer>>,
    pub(crate) current: Current,
    /// When the connection last had nothing to do.
    pub(crate) idle_since: Mono,
    pub(crate) tls: Option<Box<Session>>,
    interest: EventFlags,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, accepted: Mono, tls: Option<Box<Session>>) -> Connection {
        Connection {
            socket,
            accepted,
            serial: 0,
            phase: Phase::Head,
            input: Vec::new(),
            searched: 0,
            body: Vec::new(),
            output: Vec::new(),
            written: 0,
            answer: None,
            current: Current::default(),
            idle_since: accepted,
            tls,
            interest: EventFlags::IN,
        }
    }

    /// Registers with the poll of the thread that serves it.
    pub(crate) fn register(&self, poll: &OwnedFd, slot: usize) -> rustix::io::Result<()> {
        epoll::add(poll, &self.socket, epoll::EventData::new_u64(slot as u64), self.interest)
    }

    /// Reads once; `None` when there is nothing to read.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>, Gone> {
        match recv(&self.socket, buffer, RecvFlags::empty()) {
            Ok((0, _)) => Err(Gone),
            Ok((length, _)) => Ok(Some(length)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(_) => Err(Gone),
        }
    }

    /// Writes `bytes`, keeping what the socket does not take.
    pub(crate) fn write(&mut self, bytes: &[u8], split: bool) -> Result<(), Gone> {
        if split {
            return bytes.iter().try_for_each(|byte| self.write_once(std::slice::from_ref(byte)));
        }
        self.write_once(bytes)
    }

    fn write_once(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        if let Some(mut tls) = self.tls.take() {
            let mut sealed = Vec::new();
            let result = tls.seal(bytes, &mut sealed).map_err(|_| Gone);
            self.tls = Some(tls);
            return result.and_then(|()| self.write_wire(&sealed));
        }
        self.write_wire(bytes)
    }

    /// Writes bytes that are already as the wire has them.
    pub(crate) fn write_wire(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        let mut sent = 0;
        if self.output.is_empty() {
            sent = self.send(bytes)?;
        }
        self.output.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    fn send(&self, bytes: &[u8]) -> Result<usize, Gone> {
        let mut sent = 0;
        while sent < bytes.len() {
            match send(&self.socket, &bytes[sent..], SendFlags::NOSIGNAL) {
                Ok(taken) => sent += taken,
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => break,
                Err(_) => return Err(Gone),
            }
        }
        Ok(sent)
    }

    /// Writes what an earlier write left.
    pub(crate) fn flush(&mut self) -> Result<(), Gone> {
        self.written += self.send(&self.output[self.written..])?;
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
            give_back(&mut self.output);
        }
        Ok(())
    }

    /// Whether output waits for the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.output.is_empty()
    }

    /// Asks the poll for what the connection now needs.
    pub(crate) fn adjust_interest(&mut self, poll: &OwnedFd, slot: usize) {
        let mut wanted = EventFlags::empty();
        let answering = matches!(self.phase, Phase::Answering);
        if !answering || self.input.len() < MOST_INPUT_WHILE_ANSWERING {
            wanted |= EventFlags::IN;
        }
        if self.is_blocked() {
            wanted |= EventFlags::OUT;
        }
        if wanted != self.interest {
            self.interest = wanted;
            // It can fail only for a socket that is not registered, and this one is until it is dropped.
            let _ = epoll::modify(poll, &self.socket, epoll::EventData::new_u64(slot as u64), wanted);
        }
    }

    /// Drops the first `used` bytes of the input.
    pub(crate) fn consume(&mut self, used: usize) {
        if used == self.input.len() {
            self.input.clear();
            give_back(&mut self.input);
        } else {
            self.input.drain(..used);
        }
    }

    /// Keeps the ids of the request that begins.
    pub(crate) fn take_ids(&mut self, head: &mut Head) {
        self.current.request_id = head.request_id.take();
        self.current.correlation_id = head.correlation_id.take();
    }
}

/// Gives a large, empty buffer back.
pub(crate) fn give_back(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_CAPACITY {
        *buffer = Vec::new();
    }
}

impl Asked {
    /// The fault of a request whose plan says `planned`; the error is a name that is no fault.
    pub(crate) fn or(self, planned: crate::fault::Fault) -> Result<crate::fault::Fault, String> {
        match self {
            Asked::Nothing => Ok(planned),
            Asked::For(fault) => Ok(fault),
            Asked::Unknown(name) => Err(name),
        }
    }
}
