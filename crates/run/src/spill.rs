//! When records are finished more slowly than requests come back, what waits goes to disk: memory stays bounded,
//! no network thread waits, nothing is lost.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aiperf_clock::Mono;
use aiperf_endpoint::Reading;
use aiperf_load::{Exchange, Received, ReceivedBytes};
use aiperf_types::{Answer, HttpTrace, Identity, PlanInstants, RequestError, RequestFacts};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use serde::{Deserialize, Serialize};

use crate::queue::Entrance;

/// How often the spill looks whether there is room again.
const LOOK: Duration = Duration::from_millis(20);

/// An exchange in a form that can leave memory.
#[derive(Serialize, Deserialize)]
struct Stored {
    identity: Identity,
    plan: PlanInstants,
    start: Mono,
    headers: Option<Mono>,
    end: Mono,
    trace: HttpTrace,
    status: Option<u16>,
    request: RequestFacts,
    template_input: Option<(String, Option<String>)>,
    received: StoredAnswer,
    failure: Option<RequestError>,
    cancelled_at: Option<Mono>,
    client_delayed: bool,
}

#[derive(Serialize, Deserialize)]
enum StoredAnswer {
    Nothing,
    Bytes { content_type: String, content_encoding: String, data: Vec<u8>, reads: Vec<(u32, Mono)> },
    Read { answer: Box<Answer>, error: Option<RequestError> },
}

impl Stored {
    fn of(exchange: Exchange) -> Stored {
        let read =
            |reading: Reading| StoredAnswer::Read { answer: Box::new(reading.answer), error: reading.error };
        let received = match exchange.received {
            Received::Nothing => StoredAnswer::Nothing,
            Received::Read(reading) => read(*reading),
            Received::Bytes(mut bytes) => match bytes.reader.take() {
                // A reader at work cannot be written down: it finishes here.
                Some(mut reader) => {
                    bytes.each_read(|bytes, at| reader.push(bytes, at));
                    read(reader.finish(exchange.end))
                }
                None => StoredAnswer::Bytes {
                    content_type: bytes.content_type,
                    content_encoding: bytes.content_encoding,
                    data: bytes.data,
                    reads: bytes.reads,
                },
            },
        };
        Stored {
            identity: exchange.identity,
            plan: exchange.plan,
            start: exchange.start,
            headers: exchange.headers,
            end: exchange.end,
            trace: exchange.trace,
            status: exchange.status,
            request: exchange.request,
            template_input: exchange.template_input,
            received,
            failure: exchange.failure,
            cancelled_at: exchange.cancelled_at,
            client_delayed: exchange.client_delayed,
        }
    }

    fn into_exchange(self) -> Exchange {
        let received = match self.received {
            StoredAnswer::Nothing => Received::Nothing,
            StoredAnswer::Bytes { content_type, content_encoding, data, reads } => {
                Received::Bytes(Box::new(ReceivedBytes {
                    content_type,
                    content_encoding,
                    reader: None,
                    data,
                    reads,
                }))
            }
            StoredAnswer::Read { answer, error } => {
                Received::Read(Box::new(Reading { answer: *answer, error, ..Reading::default() }))
            }
        };
        Exchange {
            identity: self.identity,
            plan: self.plan,
            start: self.start,
            headers: self.headers,
            end: self.end,
            trace: self.trace,
            status: self.status,
            request: self.request,
            template_input: self.template_input,
            received,
            failure: self.failure,
            cancelled_at: self.cancelled_at,
            client_delayed: self.client_delayed,
        }
    }
}

/// A first-in, first-out file without a name: it is gone with the process, however that ends.
struct Disk {
    writer: BufWriter<File>,
    reader: File,
    lengths: VecDeque<u32>,
}

impl Disk {
    fn create(dir: &Path) -> io::Result<Disk> {
        let path = dir.join(format!(".spill-{}", std::process::id()));
        let writer = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let reader = File::open(&path);
        std::fs::remove_file(&path)?;
        Ok(Disk {
            writer: BufWriter::with_capacity(1 << 20, writer),
            reader: reader?,
            lengths: VecDeque::new(),
        })
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.lengths.push_back(bytes.len() as u32);
        Ok(())
    }

    fn pop(&mut self) -> io::Result<Option<Exchange>> {
        let Some(length) = self.lengths.pop_front() else { return Ok(None) };
        self.writer.flush()?;
        let mut bytes = vec![0; length as usize];
        self.reader.read_exact(&mut bytes)?;
        if self.lengths.is_empty() {
            // All is back: the file starts anew.
            self.writer.get_mut().set_len(0)?;
            self.writer.seek(SeekFrom::Start(0))?;
            self.reader.seek(SeekFrom::Start(0))?;
        }
        postcard::from_bytes::<Stored>(&bytes)
            .map(|stored| Some(stored.into_exchange()))
            .map_err(io::Error::other)
    }
}

/// The thread that keeps what does not fit.
pub(crate) struct Spill {
    /// What does not fit.
    pub(crate) overflow: Receiver<Exchange>,
    /// The queue that it belongs to.
    pub(crate) queue: Entrance,
    /// Exchanges written to disk so far.
    pub(crate) count: Arc<AtomicU64>,
}

impl Spill {
    /// Works until nothing can overflow any more and everything is back in the queue. A disk that cannot be
    /// written costs memory, never a record.
    pub(crate) fn run(self, dir: &Path) {
        let mut disk: Option<Disk> = None;
        let mut open = true;
        while open || disk.as_ref().is_some_and(|disk| !disk.lengths.is_empty()) {
            let waiting = disk.as_ref().is_some_and(|disk| !disk.lengths.is_empty());
            let next = if waiting {
                self.overflow.recv_timeout(LOOK)
            } else {
                self.overflow.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            match next {
                Ok(exchange) => self.keep(exchange, dir, &mut disk),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    if open {
                        open = false;
                    } else {
                        std::thread::sleep(LOOK);
                    }
                }
            }
            let Some(stored) = &mut disk else { continue };
            while self.queue.is_half_empty() {
                match stored.pop() {
                    Ok(Some(exchange)) => self.queue.send(exchange),
                    _ => break,
                }
            }
        }
    }

    fn keep(&self, exchange: Exchange, dir: &Path, disk: &mut Option<Disk>) {
        if disk.is_none() {
            *disk = Disk::create(dir).ok();
        }
        let stored = Stored::of(exchange);
        if let Some(disk) = disk
            && let Ok(bytes) = postcard::to_stdvec(&stored)
            && disk.push(&bytes).is_ok()
        {
            self.count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.queue.send(stored.into_exchange());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use aiperf_types::{Body, CountedText, PhaseKind};

    use super::*;
    use crate::queue::{Limits, queue};

    pub(crate) fn exchange(number: u64) -> Exchange {
        Exchange {
            identity: Identity {
                number,
                request_id: *b"5a11937d-0394-4a84-a8b6-e13c1ee4c4fd",
                correlation_id: "c".into(),
                conversation_id: "s".into(),
                turn_index: 2,
                phase: PhaseKind::Warmup,
                phase_index: 1,
                worker: 3,
                lineage: None,
                source: None,
            },
            plan: PlanInstants { scheduled: Some(Mono(4)), initial_fill: true, ..PlanInstants::default() },
            start: Mono(5),
            headers: Some(Mono(6)),
            end: Mono(number + 7),
            trace: HttpTrace { chunks_sent: 8, dns: Some((Mono(1), Mono(2))), ..HttpTrace::default() },
            status: Some(200),
            request: RequestFacts {
                body: Body::single(vec![b'x'; 9]),
                texts: vec![Arc::new(CountedText::known(10)), Arc::new(CountedText::new("ten"))],
                ..RequestFacts::default()
            },
            template_input: Some(("[]".into(), None)),
            received: Received::Bytes(Box::new(ReceivedBytes {
                content_type: "text/event-stream".into(),
                content_encoding: String::new(),
                reader: None,
                data: b"data: {}\n\n".to_vec(),
                reads: vec![(4, Mono(11)), (10, Mono(12))],
            })),
            failure: Some(RequestError::new(7, "K", "M")),
            cancelled_at: Some(Mono(13)),
            client_delayed: true,
        }
    }

    #[test]
    fn an_exchange_comes_back_from_disk_as_it_went() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = Disk::create(dir.path()).unwrap();
        for round in 0..3 {
            for number in 0..5 {
                disk.push(&postcard::to_stdvec(&Stored::of(exchange(number + round))).unwrap()).unwrap();
            }
            for number in 0..5 {
                let back = disk.pop().unwrap().unwrap();
                assert_eq!(format!("{back:?}"), format!("{:?}", exchange(number + round)));
            }
            assert!(disk.pop().unwrap().is_none());
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn what_overflows_goes_to_disk_and_all_of_it_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let (entrance, out) = queue(Limits { exchanges: 10, bytes: u64::MAX });
        let (to_overflow, overflow) = crossbeam_channel::unbounded();
        let count = Arc::new(AtomicU64::new(0));
        for number in 0..500 {
            to_overflow.send(exchange(number)).unwrap();
        }
        drop(to_overflow);
        // The queue is full: nothing may go back before somebody reads.
        for number in 500..510 {
            entrance.send(exchange(number));
        }
        let spill = Spill { overflow, queue: entrance, count: Arc::clone(&count) };
        let path = dir.path().to_owned();
        let thread = std::thread::spawn(move || spill.run(&path));
        let mut seen: Vec<u64> =
            out.receiver().iter().map(|weighed| out.take(weighed).identity.number).collect();
        thread.join().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, (0..510).collect::<Vec<_>>());
        assert_eq!(count.load(Ordering::Relaxed), 500);
    }

    #[test]
    fn a_disk_that_cannot_be_written_loses_no_record() {
        let (entrance, out) = queue(Limits { exchanges: 10, bytes: u64::MAX });
        let (to_overflow, overflow) = crossbeam_channel::unbounded();
        to_overflow.send(exchange(1)).unwrap();
        drop(to_overflow);
        let spill = Spill { overflow, queue: entrance, count: Arc::default() };
        spill.run(Path::new("/nonexistent/folder"));
        assert_eq!(out.receiver().iter().count(), 1);
    }
}
