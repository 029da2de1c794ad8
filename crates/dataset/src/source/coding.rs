//! How a file is coded, by its first bytes, and its text whatever that is.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::Store;
use crate::DatasetError;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const PARQUET: [u8; 4] = *b"PAR1";
const ARROW: [u8; 6] = *b"ARROW1";
pub(super) const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Decompressed bytes up to this size stay in memory; more go to an unlinked temporary file, so that memory
/// does not follow the file.
const IN_MEMORY: usize = 32 << 20;

/// What the first bytes of a file say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Plain,
    Gzip,
    Zstd,
    Parquet,
    Arrow,
}

/// How a file is coded, by its first bytes.
pub(crate) fn coding(path: &Path) -> Result<Coding, DatasetError> {
    let mut head = [0u8; 6];
    let mut file = open(path)?;
    let mut filled = 0;
    while filled < head.len() {
        match file.read(&mut head[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(DatasetError::io(path, &error)),
        }
    }
    Ok(coding_of(&head[..filled]))
}

/// How a file is coded that starts with these bytes.
pub(crate) fn coding_of(head: &[u8]) -> Coding {
    if head.starts_with(&GZIP) {
        Coding::Gzip
    } else if head.starts_with(&ZSTD) || matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
        // The second: a frame of no data, which some compressors begin with.
        Coding::Zstd
    } else if head.starts_with(&PARQUET) {
        Coding::Parquet
    } else if head.starts_with(&ARROW) {
        Coding::Arrow
    } else {
        Coding::Plain
    }
}

pub(super) fn open(path: &Path) -> Result<File, DatasetError> {
    // Asked before it is opened: opening a pipe may wait for ever.
    let kind = std::fs::metadata(path).map_err(|error| DatasetError::io(path, &error))?.file_type();
    let reason = if kind.is_dir() {
        "it is a directory and this format reads one file; name the file"
    } else if !kind.is_file() {
        "it is a pipe or a device, and data is read more than once; save it to a file first"
    } else {
        return File::open(path).map_err(|error| DatasetError::io(path, &error));
    };
    Err(DatasetError::Unreadable { path: path.to_owned(), reason: reason.into() })
}

/// A readable file as text bytes, decompressed where it is compressed.
pub(crate) fn reader(path: &Path) -> Result<Box<dyn Read + Send>, DatasetError> {
    match coding(path)? {
        Coding::Plain => Ok(Box::new(open(path)?)),
        Coding::Gzip => Ok(Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 16, open(path)?)))),
        Coding::Zstd => zstd::stream::read::Decoder::new(open(path)?)
            .map(|decoder| Box::new(decoder) as Box<dyn Read + Send>)
            .map_err(|error| DatasetError::io(path, &error)),
        Coding::Parquet | Coding::Arrow => Err(DatasetError::Unreadable {
            path: path.to_owned(),
            reason: "it is a parquet or Arrow file where text is expected; convert it to JSONL".into(),
        }),
    }
}

/// What reading `path` failed with, in words.
pub(crate) fn read_error(path: &Path, error: &std::io::Error) -> DatasetError {
    // The errors of the system have a number, those of a decompressor have none.
    let compression = match coding(path) {
        Ok(Coding::Gzip) if error.raw_os_error().is_none() => "gzip",
        Ok(Coding::Zstd) if error.raw_os_error().is_none() => "zstd",
        _ => return DatasetError::io(path, error),
    };
    let reason =
        format!("damaged or truncated {compression} data ({error}); fetch or compress the file again");
    DatasetError::Unreadable { path: path.to_owned(), reason }
}

/// The text of a compressed file, to be had at any place.
pub(super) fn decompress(path: &Path) -> Result<Store, DatasetError> {
    let mut from = reader(path)?;
    let mut memory = Vec::new();
    from.by_ref()
        .take(IN_MEMORY as u64)
        .read_to_end(&mut memory)
        .map_err(|error| read_error(path, &error))?;
    if memory.len() < IN_MEMORY {
        return Ok(Store::Memory(memory.into()));
    }
    let spill = |error: &std::io::Error| DatasetError::Unreadable {
        path: path.to_owned(),
        reason: format!(
            "cannot keep the decompressed data in {} ({error}); set TMPDIR to a folder with room, or decompress the file",
            std::env::temp_dir().display()
        ),
    };
    let mut file = tempfile::tempfile().map_err(|error| spill(&error))?;
    file.write_all(&memory).map_err(|error| spill(&error))?;
    drop(memory);
    let mut buffer = vec![0u8; 1 << 18];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => file.write_all(&buffer[..count]).map_err(|error| spill(&error))?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(read_error(path, &error)),
        }
    }
    Ok(Store::Handle(file))
}
