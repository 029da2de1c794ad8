//! How a file is coded, by its first bytes, and its text whatever that is.

use std::fs::File;
use std::io::{BufReader, Cursor, ErrorKind, Read, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::Store;
use crate::DatasetError;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const PARQUET: [u8; 4] = *b"PAR1";
const ARROW: [u8; 6] = *b"ARROW1";
pub(super) const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Bytes at the beginning of a file that tell what it is.
const HEAD: usize = 48;

/// What files begin with that are not read, in words, with the next step.
const FOREIGN: [(&[u8], &str, &str); 6] = [
    (b"\xfd7zXZ\0", "it is xz-compressed", COMPRESS_ANEW),
    (b"BZh", "it is bzip2-compressed", COMPRESS_ANEW),
    (b"\x04\x22\x4d\x18", "it is LZ4-compressed", COMPRESS_ANEW),
    (b"PK\x03\x04", "it is a zip archive", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "it is a 7z archive", UNPACK),
    (b"version https://git-lfs.github.com/spec/", "it is a Git LFS pointer and not the data", PULL),
];
const COMPRESS_ANEW: &str = "decompress it, or compress it with gzip or Zstandard instead";
const UNPACK: &str = "unpack it, and name the file with the data";
const PULL: &str = "run `git lfs pull` where it was cloned, and use the file that comes in its place";

/// Why a file that begins with these bytes is not read, where that can be told.
fn foreign(head: &[u8]) -> Option<String> {
    let (start, what, step) = FOREIGN.iter().find(|(start, ..)| head.starts_with(start))?;
    // Text may begin with these letters: what follows the level is a mark, too.
    let is_text = *start == b"BZh" && head.get(4..10) != Some(b"1AY&SY");
    let read = if *step == COMPRESS_ANEW { ", and gzip, Zstandard or plain files are read" } else { "" };
    (!is_text).then(|| format!("{what}{read}; {step}"))
}

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

/// How a file is coded, by its first bytes; an error where they are of a kind that is not read.
pub(crate) fn coding(path: &Path) -> Result<Coding, DatasetError> {
    let head = head_of(&mut open(path)?).map_err(|error| DatasetError::io(path, &error))?;
    match foreign(&head) {
        Some(reason) => Err(DatasetError::Unreadable { path: path.to_owned(), reason }),
        None => Ok(coding_of(&head)),
    }
}

fn head_of(from: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    from.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
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
        Coding::Gzip => decoded(path, MultiGzDecoder::new(BufReader::with_capacity(1 << 16, open(path)?))),
        Coding::Zstd => zstd::stream::read::Decoder::new(open(path)?)
            .map_err(|error| DatasetError::io(path, &error))
            .and_then(|decoder| decoded(path, decoder)),
        Coding::Parquet | Coding::Arrow => Err(DatasetError::Unreadable {
            path: path.to_owned(),
            reason: "it is a parquet or Arrow file where text is expected; convert it to JSONL".into(),
        }),
    }
}

/// What a decompressor gives, unless that is compressed in turn. What it fails with is told by who reads on.
fn decoded(path: &Path, mut from: impl Read + Send + 'static) -> Result<Box<dyn Read + Send>, DatasetError> {
    let mut head = Vec::with_capacity(HEAD);
    let failed = from.by_ref().take(HEAD as u64).read_to_end(&mut head).err();
    let reason = match coding_of(&head) {
        Coding::Gzip | Coding::Zstd => {
            Some("it is compressed twice; decompress it once, and use what comes".to_owned())
        }
        _ => foreign(&head).map(|reason| format!("of what is compressed in it: {reason}")),
    };
    match (reason, failed) {
        (Some(reason), _) => Err(DatasetError::Unreadable { path: path.to_owned(), reason }),
        (None, Some(error)) => Err(read_error(path, &error)),
        (None, None) => Ok(Box::new(Cursor::new(head).chain(from))),
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
