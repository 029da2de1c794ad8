//! The timing log: one JSON line per request, written by a thread of its own.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use aiperf_clock::Mono;

use crate::fault::Fault;

/// What the log says of a request. Absent times are those of events that did not happen.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) request_id: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) accepted: Mono,
    pub(crate) head: Mono,
    pub(crate) received: Option<Mono>,
    pub(crate) first_token: Option<Mono>,
    pub(crate) last_token: Option<Mono>,
    pub(crate) end: Mono,
    /// The largest distance of a token from its deadline; absent without tokens.
    pub(crate) worst_lateness_ns: Option<u64>,
    pub(crate) tokens: u64,
    pub(crate) status: Option<u16>,
    pub(crate) fault: Option<Fault>,
    pub(crate) aborted: bool,
}

pub(crate) type LogSender = Sender<Entry>;

/// Creates the log and gives both ends.
pub(crate) fn open(path: &Path) -> io::Result<(LogSender, LogWriter)> {
    let file = File::create(path)?;
    let (sender, entries) = channel();
    Ok((sender, LogWriter { entries, out: BufWriter::with_capacity(256 * 1024, file) }))
}

/// The writing thread's end.
#[derive(Debug)]
pub(crate) struct LogWriter {
    entries: Receiver<Entry>,
    out: BufWriter<File>,
}

impl LogWriter {
    /// Writes until the last network thread has ended. What is written is on disk whenever nothing waits.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut line = Vec::with_capacity(512);
        loop {
            let entry = match self.entries.try_recv() {
                Ok(entry) => entry,
                Err(TryRecvError::Disconnected) => return self.out.flush(),
                Err(TryRecvError::Empty) => {
                    self.out.flush()?;
                    match self.entries.recv() {
                        Ok(entry) => entry,
                        Err(_) => return Ok(()),
                    }
                }
            };
            line.clear();
            entry.write(&mut line)?;
            self.out.write_all(&line)?;
        }
    }
}

impl Entry {
    fn write(&self, line: &mut Vec<u8>) -> io::Result<()> {
        let time = |at: Option<Mono>| at.map(|at| at.0);
        line.extend_from_slice(b"{\"request_id\":");
        serde_json::to_writer(&mut *line, &self.request_id)?;
        line.extend_from_slice(b",\"correlation_id\":");
        serde_json::to_writer(&mut *line, &self.correlation_id)?;
        for (name, value) in [
            ("accepted_ns", Some(self.accepted.0)),
            ("head_ns", Some(self.head.0)),
            ("received_ns", time(self.received)),
            ("first_token_ns", time(self.first_token)),
            ("last_token_ns", time(self.last_token)),
            ("end_ns", Some(self.end.0)),
        ] {
            write!(line, ",\"{name}\":")?;
            integer(line, value);
        }
        line.extend_from_slice(b",\"max_itl_error_us\":");
        match self.worst_lateness_ns {
            Some(ns) => write!(line, "{}.{:03}", ns / 1_000, ns % 1_000)?,
            None => line.extend_from_slice(b"null"),
        }
        line.extend_from_slice(b",\"tokens\":");
        integer(line, Some(self.tokens));
        line.extend_from_slice(b",\"status\":");
        integer(line, self.status.map(u64::from));
        line.extend_from_slice(b",\"fault\":");
        match self.fault {
            Some(Fault::Http(status)) => write!(line, "\"http{status}\"")?,
            Some(fault) => write!(line, "\"{}\"", fault.name())?,
            None => line.extend_from_slice(b"null"),
        }
        writeln!(line, ",\"aborted\":{}}}", self.aborted)
    }
}

fn integer(line: &mut Vec<u8>, value: Option<u64>) {
    match value {
        Some(value) => crate::dialect::number(line, value),
        None => line.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_every_field_and_null_for_what_did_not_happen() {
        let entry = Entry {
            request_id: Some("a\"b".to_owned()),
            correlation_id: None,
            accepted: Mono(1),
            head: Mono(2),
            received: Some(Mono(3)),
            first_token: None,
            last_token: None,
            end: Mono(9),
            worst_lateness_ns: Some(12_034),
            tokens: 5,
            status: Some(503),
            fault: Some(Fault::Http(503)),
            aborted: false,
        };
        let mut line = Vec::new();
        entry.write(&mut line).unwrap();
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "{\"request_id\":\"a\\\"b\",\"correlation_id\":null,\"accepted_ns\":1,\"head_ns\":2,\
             \"received_ns\":3,\"first_token_ns\":null,\"last_token_ns\":null,\"end_ns\":9,\
             \"max_itl_error_us\":12.034,\"tokens\":5,\"status\":503,\"fault\":\"http503\",\"aborted\":false}\n"
        );
    }
}
