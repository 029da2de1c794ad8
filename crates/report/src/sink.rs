//! JSONL files that grow while the run goes on.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use aiperf_clock::Mono;

use crate::files::remedy;

/// Bytes that are kept before a write.
const BUFFER: usize = 256 * 1024;
/// Lines on their way to the file are at most this old when [`RecordSink::tick`] is called often enough.
pub const FLUSH_INTERVAL_NS: u64 = 1_000_000_000;

/// A file of whole lines that several threads append to. A full disk does not stop the run: the first failure is
/// remembered, what was whole stays on disk, and [`RecordSink::finish`] reports it once.
#[derive(Debug)]
pub struct RecordSink {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    buffer: Vec<u8>,
    /// Bytes of whole lines that the file holds.
    written: u64,
    lines: u64,
    last_flush: Mono,
    failure: Option<io::Error>,
    sealed: bool,
}

/// What a finished file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkSummary {
    /// The file.
    pub path: PathBuf,
    /// Lines in it.
    pub lines: u64,
    /// Its size.
    pub bytes: u64,
}

/// A JSONL file could not be written to its end.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write {path}: {source}; it ends after {lines} records; {remedy}",
    path = path.display(),
    remedy = remedy(source, "--artifact-dir")
)]
pub struct SinkError {
    /// The file.
    pub path: PathBuf,
    /// Whole lines that reached the file, at least.
    pub lines: u64,
    /// The first failure.
    pub source: io::Error,
}

impl RecordSink {
    /// Creates the file, replacing one of an earlier run.
    pub fn create(path: impl Into<PathBuf>, now: Mono) -> io::Result<RecordSink> {
        let path = path.into();
        let file = File::create(&path)?;
        let state = State {
            file,
            buffer: Vec::with_capacity(BUFFER),
            written: 0,
            lines: 0,
            last_flush: now,
            failure: None,
            sealed: false,
        };
        Ok(RecordSink { path, state: Mutex::new(state) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends `lines` whole lines. Nothing is written before a quarter of a mebibyte is together or a second is
    /// over, so the lock is held for a copy.
    pub fn append(&self, bytes: &[u8], lines: u64, now: Mono) {
        debug_assert!(bytes.is_empty() || bytes.ends_with(b"\n"), "only whole lines are appended");
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failure.is_some() || state.sealed {
            return;
        }
        if state.buffer.len() + bytes.len() > BUFFER {
            state.write_out(now);
            if state.failure.is_some() {
                return;
            }
        }
        state.buffer.extend_from_slice(bytes);
        state.lines += lines;
        if state.is_due(now) {
            state.write_out(now);
        }
    }

    /// Writes out what is a second old; to be called several times a second by whoever has a timer.
    pub fn tick(&self, now: Mono) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_due(now) {
            state.write_out(now);
        }
    }

    /// Writes out everything now: the file then ends with a whole line.
    pub fn flush(&self, now: Mono) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).write_out(now);
    }

    /// Writes out everything and takes no more lines: for a process that is about to exit while other threads still
    /// append. The file then stays at a whole line.
    pub fn seal(&self, now: Mono) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.write_out(now);
        state.sealed = true;
    }

    /// Whether a write has failed; the run may want to say so at once.
    pub fn has_failed(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failure.is_some()
    }

    /// Whether the file was deleted while it was open: what was written to it is lost.
    pub fn is_gone(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.file.metadata().is_ok_and(|file| file.nlink() == 0)
    }

    /// Writes the rest and reports the first failure, if there was one.
    pub fn finish(self, now: Mono) -> Result<SinkSummary, SinkError> {
        self.close(now)
    }

    /// As [`RecordSink::finish`], for a file that others still hold; nothing should be appended afterwards.
    pub fn close(&self, now: Mono) -> Result<SinkSummary, SinkError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.write_out(now);
        let path = self.path.clone();
        match state.failure.take() {
            None => Ok(SinkSummary { path, lines: state.lines, bytes: state.written }),
            Some(source) => Err(SinkError { path, lines: state.lines, source }),
        }
    }
}

impl State {
    fn is_due(&self, now: Mono) -> bool {
        !self.buffer.is_empty() && now.saturating_since(self.last_flush) >= FLUSH_INTERVAL_NS
    }

    fn write_out(&mut self, now: Mono) {
        self.last_flush = now;
        if self.buffer.is_empty() || self.failure.is_some() {
            return;
        }
        let (taken, failure) = write_most(&mut self.file, &self.buffer);
        let whole = memchr::memrchr(b'\n', &self.buffer[..taken]).map_or(0, |end| end + 1);
        self.written += whole as u64;
        if let Some(error) = failure {
            self.lines -= memchr::memchr_iter(b'\n', &self.buffer[whole..]).count() as u64;
            // Part of a line may be on disk: cut it off, so that the file ends with a whole one. Where that cannot be
            // done (a pipe, a device) there is nothing to repair either.
            let _ = self.file.set_len(self.written);
            self.failure = Some(error);
        }
        self.buffer.clear();
    }
}

/// How many of the bytes were taken, and why not all of them.
fn write_most(file: &mut impl Write, bytes: &[u8]) -> (usize, Option<io::Error>) {
    let mut taken = 0;
    while taken < bytes.len() {
        match file.write(&bytes[taken..]) {
            Ok(0) => return (taken, Some(io::ErrorKind::WriteZero.into())),
            Ok(more) => taken += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (taken, Some(error)),
        }
    }
    (taken, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_was_taken_before_a_failure_is_known() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let fits = self.0.min(bytes.len()).min(3);
                self.0 -= fits;
                if fits == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(fits) }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (taken, failure) = write_most(&mut Full(7), b"one\ntwo\nthree\n");
        assert_eq!((taken, failure.unwrap().kind()), (7, io::ErrorKind::StorageFull));
        let (taken, failure) = write_most(&mut Full(9), b"one\n");
        assert_eq!((taken, failure.is_none()), (4, true));
    }

    #[test]
    fn lines_reach_the_file_within_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        let sink = RecordSink::create(&path, Mono(0)).unwrap();
        sink.append(b"{\"a\":1}\n", 1, Mono(10));
        sink.tick(Mono(SECOND / 2));
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        sink.tick(Mono(SECOND));
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"a\":1}\n");
        sink.append(b"{\"a\":2}\n", 1, Mono(SECOND + 1));
        let summary = sink.finish(Mono(SECOND + 2)).unwrap();
        assert_eq!((summary.lines, summary.bytes), (2, 16));
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"a\":1}\n{\"a\":2}\n");
    }

    #[test]
    fn a_file_that_is_deleted_while_it_grows_is_known_to_be_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        let sink = RecordSink::create(&path, Mono(0)).unwrap();
        assert!(!sink.is_gone());
        std::fs::remove_file(&path).unwrap();
        sink.append(b"{\"a\":1}\n", 1, Mono(10));
        assert!(sink.close(Mono(20)).is_ok() && sink.is_gone());
    }

    #[test]
    fn a_large_burst_is_written_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        let sink = RecordSink::create(&path, Mono(0)).unwrap();
        let line = [vec![b'x'; 1023], b"\n".to_vec()].concat();
        for _ in 0..300 {
            sink.append(&line, 1, Mono(1));
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 256 * 1024);
        assert_eq!(sink.finish(Mono(2)).unwrap().bytes, 300 * 1024);
    }

    #[test]
    fn a_full_disk_is_remembered_once_and_later_lines_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let sink = RecordSink::create(&path, Mono(0)).unwrap();
        sink.append(b"{}\n", 1, Mono(1));
        sink.flush(Mono(2));
        assert!(sink.has_failed());
        sink.append(b"{}\n", 1, Mono(3));
        let error = sink.finish(Mono(4)).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
        assert_eq!(error.lines, 0);
        let text = error.to_string();
        assert!(
            text.contains("r.jsonl") && text.contains("No space left") && text.contains("--artifact-dir"),
            "{text}"
        );
    }

    #[test]
    fn lines_that_came_while_the_disk_was_full_are_not_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let sink = RecordSink::create(&path, Mono(0)).unwrap();
        let line = [vec![b'x'; 1023], b"\n".to_vec()].concat();
        // The last one finds the buffer full, and the disk.
        for _ in 0..=256 {
            sink.append(&line, 1, Mono(1));
        }
        assert!(sink.has_failed());
        assert_eq!(sink.finish(Mono(2)).unwrap_err().lines, 0);
    }

    #[test]
    fn a_sealed_file_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        let sink = RecordSink::create(&path, Mono(0)).unwrap();
        sink.append(b"{}\n", 1, Mono(1));
        sink.seal(Mono(2));
        sink.append(b"{\"late\":1}\n", 1, Mono(3));
        sink.flush(Mono(4));
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n");
    }

    #[test]
    fn threads_append_whole_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.jsonl");
        let sink = RecordSink::create(&path, Mono(0)).unwrap();
        std::thread::scope(|scope| {
            for letter in *b"abcd" {
                let sink = &sink;
                scope.spawn(move || {
                    let line = [vec![letter; 99], b"\n".to_vec()].concat();
                    for _ in 0..2_000 {
                        sink.append(&line, 1, Mono(1));
                    }
                });
            }
        });
        assert_eq!(sink.finish(Mono(2)).unwrap().lines, 8_000);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 8_000);
        assert!(
            text.lines().all(|line| line.len() == 99 && line.bytes().all(|byte| byte == line.as_bytes()[0]))
        );
    }
}
