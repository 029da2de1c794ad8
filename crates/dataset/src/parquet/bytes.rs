//! The bytes of a parquet file for the decoder, read at any place by any thread.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// An open file. The decoder's own reader for files moves the one position that all handles share, so that two
/// threads would read each other's bytes; this one has no position.
#[derive(Clone, Debug)]
pub(super) struct FileBytes {
    file: Arc<File>,
    len: u64,
}

impl FileBytes {
    pub(super) fn open(path: &Path) -> std::io::Result<FileBytes> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(FileBytes { file: Arc::new(file), len })
    }

    pub(super) fn size(&self) -> u64 {
        self.len
    }
}

impl Length for FileBytes {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for FileBytes {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<BufReader<From>> {
        Ok(BufReader::new(From { file: Arc::clone(&self.file), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Asked before anything is allocated: the length may be a lie.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF(format!(
                "bytes {start} to {} are asked for and the file ends at {}",
                start.saturating_add(length as u64),
                self.len
            )));
        }
        let mut buffer = vec![0; length];
        self.file.read_exact_at(&mut buffer, start)?;
        Ok(buffer.into())
    }
}

/// The file from one place on.
#[derive(Debug)]
pub(super) struct From {
    file: Arc<File>,
    at: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.file.read_at(buffer, self.at) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => {
                    self.at += count as u64;
                    return Ok(count);
                }
            }
        }
    }
}
