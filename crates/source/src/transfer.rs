//! From a socket to a file that is whole: written and hashed while it comes, verified, on the disk before it has
//! a name. Memory is a few buffers, whatever the size.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::digest::{Digester, Digests, ITS_SOURCE, Promise, Wanted};
use crate::error::Problem;
use crate::events::{Event, Events, Stop};
use crate::http::{Body, Failure, pause};
use crate::settings::Patience;
use crate::temp::TempFile;

/// Buffers between the socket and the disk.
const BUFFERS: usize = 4;
/// A stream of unknown length ends when less than this is free.
const KEEP_FREE: u64 = 1 << 30;
/// Progress is told after so many bytes: often enough for a line every ten seconds on a slow line, too.
const STEP: u64 = 1 << 16;
/// Free space is looked at after so many bytes of a stream of unknown length.
const LOOK: u64 = 64 << 20;

/// What is fetched, and what is known of it.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    /// For messages.
    pub(crate) name: &'a str,
    /// Bytes.
    pub(crate) size: Option<u64>,
    /// What must be true of its bytes, with the name of who says so.
    pub(crate) promises: &'a [(Promise, String)],
    /// A cut transfer goes on where it ended: the version is pinned by something that a range is answered for.
    pub(crate) resumes: bool,
    /// Variable that moves the cache, for messages.
    pub(crate) variable: &'static str,
}

/// Counts bytes over the files of one transfer.
#[derive(Debug)]
pub(crate) struct Meter {
    events: Events,
    done: u64,
    told: u64,
}

impl Meter {
    pub(crate) fn new(events: Events) -> Meter {
        Meter { events, done: 0, told: 0 }
    }

    pub(crate) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        if self.done - self.told >= STEP {
            self.told = self.done;
            self.events.send(Event::Progress { done: self.done });
        }
    }

    /// A file has come to its end: small ones are told, too.
    fn file_ended(&mut self) {
        if self.done > self.told {
            self.told = self.done;
            self.events.send(Event::Progress { done: self.done });
        }
    }

    fn back_to(&mut self, done: u64) {
        self.done = done;
        self.told = self.told.min(done);
    }
}

/// Fetches a file into `directory` under a name that nobody reads. `open` starts a body at a byte; it may start it
/// at 0 instead.
pub(crate) async fn fetch(
    order: &Order<'_>,
    temp: TempFile,
    patience: &Patience,
    meter: &mut Meter,
    mut open: impl AsyncFnMut(u64) -> Result<Body, Failure>,
) -> Result<(TempFile, Digests), Problem> {
    let directory = temp.path().parent().map(Path::to_owned).unwrap_or_default();
    let disk = |error: io::Error| disk_problem(&directory, &error, order.variable);
    if let Some(size) = order.size {
        check_space(&directory, size, order.variable)?;
    }
    let git = order.promises.iter().any(|(promise, _)| matches!(promise, Promise::GitBlob(_)));
    let mut wanted = Wanted {
        git_length: if git { order.size } else { None },
        checksum: order.promises.iter().find_map(|(promise, _)| promise.checksum()),
    };
    // What an answer promises of its own bytes.
    let mut told: Option<Promise> = None;
    let mut writer: Option<Writer> = None;
    let before = meter.done;
    let mut given = Given::default();
    let mut made = 0;
    let writer = loop {
        let from = if order.resumes && !given.doubtful && !given.coded { given.bytes } else { 0 };
        let opened = match open(from).await {
            Err(Failure::NoSuchRange(_)) if from > 0 => open(0).await,
            opened => opened,
        };
        let failure = match opened {
            Ok(body) => {
                let writing = match writer.take() {
                    Some(writer) if body.start == given.bytes && body.start > 0 && !given.doubtful => writer,
                    _ if body.start != 0 => {
                        return Err(Problem::Unexpected {
                            what: format!(
                                "byte {} of {} when byte {from} was asked for",
                                body.start, order.name
                            ),
                            fix: "Run again; if it stays so, ask the publisher".into(),
                        });
                    }
                    // The first time, or the server does not continue: from the start, then.
                    old => {
                        if let Some(old) = old {
                            // What is still on its way is written first, so that it cannot come after the cut.
                            old.finish().await.map_err(disk)?;
                        }
                        given = Given::default();
                        meter.back_to(before);
                        told.clone_from(&body.promise);
                        wanted.checksum = told.iter().find_map(Promise::checksum).or(wanted.checksum);
                        Writer::start(temp.file(), wanted).map_err(disk)?
                    }
                };
                match receive(order, body, &writing, &mut given, meter, &directory).await {
                    Ok(()) => break writing,
                    Err(failure) => {
                        writer = Some(writing);
                        failure
                    }
                }
            }
            Err(failure) => failure,
        };
        if let Some(ended) = writer.take_if(|writer| writer.has_ended()) {
            // The disk did: its error is the one to tell.
            return Err(ended.finish().await.map_or_else(disk, |_| Problem::Interrupted));
        }
        made = pause(patience, failure, made).await?;
    };
    let digests = writer.finish().await.map_err(disk)?;
    meter.file_ended();
    let told = told.map(|promise| (promise, ITS_SOURCE.to_owned()));
    // Where the check told of one checksum and the transfer of another, the latter is of these bytes.
    let is_known = |promise: &Promise| promise.checksum().is_none_or(|kind| wanted.checksum == Some(kind));
    for (promise, by) in order.promises.iter().chain(&told).filter(|(promise, _)| is_known(promise)) {
        if let Err((found, promised)) = digests.check(promise) {
            let (file, kind, by) = (order.name.to_owned(), promise.kind(), by.clone());
            return Err(Problem::Digest { kind, file, found, promised, by });
        }
    }
    Ok((temp, digests))
}

/// What the writer was given.
#[derive(Debug, Default)]
struct Given {
    bytes: u64,
    /// It cannot be the beginning of the file.
    doubtful: bool,
    /// It was decoded on its way: there is no place to go on from.
    coded: bool,
}

/// Takes one body to its end.
async fn receive(
    order: &Order<'_>,
    mut body: Body,
    writer: &Writer,
    given: &mut Given,
    meter: &mut Meter,
    directory: &Path,
) -> Result<(), Failure> {
    given.coded = body.coded;
    let size = if body.coded { None } else { order.size.or(body.total) };
    let cut = |what: String| Failure::transient(Problem::CutShort { file: order.name.to_owned(), what });
    if let (Some(size), Some(total)) = (order.size, body.total)
        && size != total
    {
        return Err(Problem::Changed(order.name.to_owned()).into());
    }
    let mut looked = given.bytes;
    loop {
        let chunk = match body.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(Failure::Transient { problem: Problem::CutShort { what, .. }, .. }) => {
                return Err(cut(format!("{} came, then: {what}", bytes_of(given.bytes, size))));
            }
            Err(other) => return Err(other),
        };
        let length = chunk.len() as u64;
        if size.is_some_and(|size| given.bytes + length > size) {
            given.doubtful = true;
            return Err(cut(format!("more than its {} bytes came", size.unwrap_or_default())));
        }
        given.bytes += length;
        meter.add(length);
        if size.is_none() && given.bytes - looked >= LOOK {
            looked = given.bytes;
            if free_bytes(directory).is_some_and(|free| free < KEEP_FREE) {
                return Err(Problem::DiskFull {
                    directory: directory.to_owned(),
                    what: "a stream of unknown length left less than 1 GiB free".into(),
                    variable: order.variable,
                }
                .into());
            }
        }
        writer.write(chunk).await.map_err(|()| cut("the disk".into()))?;
    }
    match size {
        Some(size) if given.bytes < size => Err(cut(format!("{} came", bytes_of(given.bytes, Some(size))))),
        _ => Ok(()),
    }
}

fn bytes_of(received: u64, size: Option<u64>) -> String {
    size.map_or_else(|| format!("{received} bytes"), |size| format!("{received} of {size} bytes"))
}

/// A thread that writes and hashes what it is given.
#[derive(Debug)]
struct Writer {
    to: mpsc::Sender<Bytes>,
    result: oneshot::Receiver<io::Result<Digests>>,
}

impl Writer {
    /// Into an empty file.
    fn start(file: &File, wanted: Wanted) -> io::Result<Writer> {
        let mut file = file.try_clone()?;
        file.set_len(0)?;
        file.rewind()?;
        Ok(Writer::spawn(file, wanted))
    }

    fn spawn(file: File, wanted: Wanted) -> Writer {
        let (to, mut from) = mpsc::channel::<Bytes>(BUFFERS);
        let (done, result) = oneshot::channel();
        let work = move || {
            let mut digester = Digester::new(wanted);
            let outcome = (|| {
                let mut file = file;
                while let Some(bytes) = from.blocking_recv() {
                    file.write_all(&bytes)?;
                    digester.update(&bytes);
                }
                Ok(file)
            })();
            drop(from);
            let _ = done.send(outcome.and_then(|file| file.sync_all()).map(|()| digester.finish()));
        };
        // Where no thread can be had, the channel is closed and the first write says so.
        let _ = std::thread::Builder::new().name("source-disk".into()).spawn(work);
        Writer { to, result }
    }

    /// Waits until there is room, so that memory stays what the buffers are.
    async fn write(&self, bytes: Bytes) -> Result<(), ()> {
        self.to.send(bytes).await.map_err(|_| ())
    }

    fn has_ended(&self) -> bool {
        self.to.is_closed()
    }

    async fn finish(self) -> io::Result<Digests> {
        drop(self.to);
        self.result.await.unwrap_or_else(|_| Err(io::Error::other("the writing thread ended")))
    }
}

/// The digests of a file that is there; `None` when `stop` was set meanwhile.
pub(crate) fn digest_file(path: &Path, wanted: Wanted, stop: &Stop) -> io::Result<Option<Digests>> {
    let file = File::open(path)?;
    let mut digester = Digester::new(wanted);
    let mut buffer = vec![0; 1 << 18];
    let mut at = 0;
    loop {
        if stop.is_set() {
            return Ok(None);
        }
        match file.read_at(&mut buffer, at)? {
            0 => return Ok(Some(digester.finish())),
            count => {
                digester.update(&buffer[..count]);
                at += count as u64;
            }
        }
    }
}

/// The sha256 of a file, in hexadecimal.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    let digests = digest_file(path, Wanted::default(), &Stop::default())?;
    // Invariant: nobody can set what nobody else has.
    Ok(digests.unwrap_or_default().sha256)
}

/// Says so when `size` bytes more do not fit.
pub(crate) fn check_space(directory: &Path, size: u64, variable: &'static str) -> Result<(), Problem> {
    match free_bytes(directory) {
        Some(free) if free < size => Err(Problem::DiskFull {
            directory: directory.to_owned(),
            what: format!("{size} bytes are needed and {free} are free"),
            variable,
        }),
        _ => Ok(()),
    }
}

/// Bytes that can still be written below `directory`.
fn free_bytes(directory: &Path) -> Option<u64> {
    rustix::fs::statvfs(directory).ok().map(|found| found.f_bavail.saturating_mul(found.f_frsize))
}

/// An error of the disk, for people.
pub(crate) fn disk_problem(directory: &Path, error: &io::Error, variable: &'static str) -> Problem {
    let directory = PathBuf::from(directory);
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Problem::DiskFull { directory, what: error.to_string(), variable }
        }
        _ => Problem::CannotWrite { directory, cause: error.to_string(), variable },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_hashed_until_it_is_stopped() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hello\n").unwrap();
        let stop = Stop::default();
        let digests = digest_file(file.path(), Wanted::default(), &stop).unwrap().unwrap();
        assert_eq!((digests.size, &digests.sha256[..12]), (6, "5891b5b522d5"));
        stop.now();
        assert_eq!(digest_file(file.path(), Wanted::default(), &stop).unwrap(), None);
    }

    #[test]
    fn a_disk_that_fills_up_while_it_is_written_is_named_with_the_way_out() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime.block_on(async {
            // Whatever is written to it finds no space.
            let writer =
                Writer::spawn(File::options().write(true).open("/dev/full").unwrap(), Wanted::default());
            while writer.write(Bytes::from_static(b"x")).await.is_ok() {}
            writer.finish().await.unwrap_err()
        });
        let problem = disk_problem(Path::new("/cache"), &error, "VARIABLE");
        assert!(problem.to_string().starts_with("not enough disk space in /cache: "), "{problem}");
        assert_eq!(problem.fix(), "Free some space, or set VARIABLE to a directory with more");
    }
}
