//! One file of a data set: its bytes, at any place, wherever they lie.

use std::fmt::Debug;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

/// The bytes of a shard. Those that lie elsewhere are asked for when they are read.
pub trait ShardBytes: Send + Sync + Debug {
    /// Bytes in all.
    fn size(&self) -> u64;

    /// Fills `buffer` with the bytes from `start` on.
    fn read_at(&self, start: u64, buffer: &mut [u8]) -> std::io::Result<()>;

    /// These ranges are read next, and nothing else until this is called again: one row group of some columns.
    fn expect(&self, ranges: &[Range<u64>]) -> std::io::Result<()> {
        let _ = ranges;
        Ok(())
    }

    /// How many bytes from `start` on are here already: so many are read ahead, and no more.
    fn here(&self, start: u64) -> u64 {
        self.size().saturating_sub(start)
    }
}

/// A shard of a set: Parquet, JSON lines or a JSON array, told by its bytes.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Its path in the repository; for messages.
    pub name: Arc<str>,
    /// Its bytes.
    pub bytes: Arc<dyn ShardBytes>,
}

impl Shard {
    /// A file that is here.
    pub fn local(name: &str, path: &Path) -> std::io::Result<Shard> {
        Ok(Shard { name: name.into(), bytes: Arc::new(LocalShard::open(path)?) })
    }
}

/// A file that is here.
#[derive(Debug)]
pub struct LocalShard {
    file: File,
    size: u64,
}

impl LocalShard {
    /// Opens it.
    pub fn open(path: &Path) -> std::io::Result<LocalShard> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(LocalShard { file, size })
    }
}

impl ShardBytes for LocalShard {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, start: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact_at(buffer, start)
    }
}

/// A shard read from a place on.
#[derive(Debug)]
pub(super) struct From {
    bytes: Arc<dyn ShardBytes>,
    at: u64,
}

impl From {
    pub(super) fn new(bytes: &Arc<dyn ShardBytes>, at: u64) -> From {
        From { bytes: Arc::clone(bytes), at }
    }
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.bytes.size().saturating_sub(self.at);
        let here = self.bytes.here(self.at);
        // Where nothing is here the reader knows best how much it wants.
        let most = if here == 0 { left } else { here.min(left) };
        let count = usize::try_from(most).unwrap_or(usize::MAX).min(buffer.len());
        loop {
            match self.bytes.read_at(self.at, &mut buffer[..count]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    self.at += count as u64;
                    return Ok(count);
                }
            }
        }
    }
}
