//! The bytes of a dataset: one file or the files of a folder, plain or gzip, read once from start to end and
//! afterwards at any place.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::DatasetError;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const PARQUET: [u8; 4] = *b"PAR1";
const ARROW: [u8; 6] = *b"ARROW1";
const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Decompressed bytes up to this size stay in memory; more go to an unlinked temporary file, so that memory
/// does not follow the file.
const IN_MEMORY: usize = 32 << 20;

/// A longer line is an error rather than a reason to run out of memory.
const LONGEST_LINE: usize = 512 << 20;

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
    let head = &head[..filled];
    Ok(if head.starts_with(&GZIP) {
        Coding::Gzip
    } else if head.starts_with(&ZSTD) {
        Coding::Zstd
    } else if head.starts_with(&PARQUET) {
        Coding::Parquet
    } else if head.starts_with(&ARROW) {
        Coding::Arrow
    } else {
        Coding::Plain
    })
}

fn open(path: &Path) -> Result<File, DatasetError> {
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

/// A readable file as text bytes, decompressed where it is gzip.
pub(crate) fn reader(path: &Path) -> Result<Box<dyn Read + Send>, DatasetError> {
    match coding(path)? {
        Coding::Plain => Ok(Box::new(open(path)?)),
        Coding::Gzip => {
            Ok(Box::new(MultiGzDecoder::new(std::io::BufReader::with_capacity(1 << 16, open(path)?))))
        }
        Coding::Zstd => Err(DatasetError::NotBuilt {
            what: format!("{}: Zstandard compression", path.display()),
            help: "decompress it, or use gzip".into(),
        }),
        Coding::Parquet | Coding::Arrow => Err(DatasetError::NotBuilt {
            what: format!("{}: reading parquet or Arrow files", path.display()),
            help: "convert it to JSONL".into(),
        }),
    }
}

/// What reading `path` failed with, in words.
pub(crate) fn read_error(path: &Path, error: &std::io::Error) -> DatasetError {
    // The decompressor's errors are of these kinds; the file system's are not.
    let gzip =
        matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::UnexpectedEof);
    let reason = if gzip {
        format!("damaged or truncated gzip data ({error}); fetch or compress the file again")
    } else {
        error.to_string()
    };
    DatasetError::Unreadable { path: path.to_owned(), reason }
}

/// Where the bytes of a file can be had again.
enum Store {
    /// An open file.
    Handle(File),
    /// Opened when asked for: one of many files of a folder.
    Path,
    /// Decompressed, in memory.
    Memory(Box<[u8]>),
}

/// One file of a dataset.
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    store: Store,
}

impl SourceFile {
    /// Opens a file for reading at any place; gzip is decompressed here. Files of a folder are not kept open.
    pub(crate) fn open(path: &Path, keep_open: bool) -> Result<SourceFile, DatasetError> {
        let store = match coding(path)? {
            Coding::Plain if keep_open => Store::Handle(open(path)?),
            Coding::Plain => Store::Path,
            _ => decompress(path)?,
        };
        Ok(SourceFile { path: path.to_owned(), store })
    }

    /// Fills `buffer` with the bytes from `offset` on.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DatasetError> {
        let result = match &self.store {
            Store::Handle(file) => file.read_exact_at(buffer, offset),
            Store::Path => open(&self.path)?.read_exact_at(buffer, offset),
            Store::Memory(bytes) => {
                let start = offset as usize;
                match bytes.get(start..start + buffer.len()) {
                    Some(part) => {
                        buffer.copy_from_slice(part);
                        Ok(())
                    }
                    None => Err(ErrorKind::UnexpectedEof.into()),
                }
            }
        };
        result.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => DatasetError::Unreadable {
                path: self.path.clone(),
                reason: "the file became shorter while it was in use; leave it alone during a run".into(),
            },
            _ => DatasetError::io(&self.path, &error),
        })
    }

    /// Reads up to `buffer.len()` bytes from `offset` on; 0 at the end.
    fn read_some(&self, handle: Option<&File>, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let result = match (&self.store, handle) {
                (Store::Memory(bytes), _) => {
                    let rest = bytes.get(offset as usize..).unwrap_or_default();
                    let count = rest.len().min(buffer.len());
                    buffer[..count].copy_from_slice(&rest[..count]);
                    Ok(count)
                }
                (Store::Handle(file), _) | (Store::Path, Some(file)) => file.read_at(buffer, offset),
                (Store::Path, None) => File::open(&self.path)?.read_at(buffer, offset),
            };
            match result {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Whether `needle` occurs anywhere.
    pub(crate) fn contains(&self, needle: &[u8]) -> Result<bool, DatasetError> {
        let finder = memchr::memmem::Finder::new(needle);
        if let Store::Memory(bytes) = &self.store {
            return Ok(finder.find(bytes).is_some());
        }
        let mut buffer = vec![0u8; 1 << 20];
        let (mut offset, mut kept) = (0u64, 0usize);
        loop {
            let count = self
                .read_some(None, offset, &mut buffer[kept..])
                .map_err(|error| DatasetError::io(&self.path, &error))?;
            if count == 0 {
                return Ok(false);
            }
            let filled = kept + count;
            if finder.find(&buffer[..filled]).is_some() {
                return Ok(true);
            }
            offset += count as u64;
            // An occurrence may straddle two reads.
            kept = filled.min(needle.len() - 1);
            buffer.copy_within(filled - kept..filled, 0);
        }
    }

    /// All bytes, without a BOM, and how long that was.
    pub(crate) fn read_all(&self) -> Result<(Vec<u8>, u64), DatasetError> {
        let mut all = Vec::new();
        let mut buffer = vec![0u8; 1 << 20];
        loop {
            let count = self
                .read_some(None, all.len() as u64, &mut buffer)
                .map_err(|error| DatasetError::io(&self.path, &error))?;
            if count == 0 {
                break;
            }
            all.extend_from_slice(&buffer[..count]);
        }
        let skipped = if all.starts_with(&BOM) { BOM.len() } else { 0 };
        all.drain(..skipped);
        Ok((all, skipped as u64))
    }

    /// 1-based line of the byte at `offset`; for messages.
    pub(crate) fn line_of(&self, offset: u64) -> u64 {
        let mut line = 1;
        let mut at = 0;
        let mut buffer = vec![0u8; 1 << 16];
        while at < offset {
            let want = (offset - at).min(buffer.len() as u64) as usize;
            let Ok(count @ 1..) = self.read_some(None, at, &mut buffer[..want]) else { break };
            line += memchr::memchr_iter(b'\n', &buffer[..count]).count() as u64;
            at += count as u64;
        }
        line
    }
}

fn decompress(path: &Path) -> Result<Store, DatasetError> {
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

/// One line of a file, trimmed and not blank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where it starts in the (decompressed) file.
    pub(crate) offset: u64,
    /// 1-based.
    pub(crate) number: u64,
}

/// Reads the lines of a file from start to end in large pieces.
pub(crate) struct Lines {
    /// The file again, when its source does not keep it open.
    handle: Option<File>,
    buffer: Vec<u8>,
    /// Filled part of the buffer.
    filled: usize,
    /// Start of what has not been handed out.
    start: usize,
    /// File offset of the start of the buffer.
    base: u64,
    number: u64,
    ended: bool,
}

impl Lines {
    pub(crate) fn new(file: &SourceFile) -> Result<Lines, DatasetError> {
        let handle = match file.store {
            Store::Path => Some(open(&file.path)?),
            _ => None,
        };
        Ok(Lines { handle, buffer: vec![0; 1 << 18], filled: 0, start: 0, base: 0, number: 0, ended: false })
    }

    /// The next line that is not blank.
    pub(crate) fn next<'s>(&'s mut self, file: &SourceFile) -> Result<Option<Line<'s>>, DatasetError> {
        loop {
            let end = loop {
                if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.start..self.filled]) {
                    break self.start + end;
                }
                if self.ended {
                    break self.filled;
                }
                self.fill(file)?;
            };
            if self.ended && self.start >= self.filled {
                return Ok(None);
            }
            self.number += 1;
            let mut from = self.start;
            self.start = (end + 1).min(self.filled);
            if self.number == 1 && self.buffer[from..end].starts_with(&BOM) {
                from += BOM.len();
            }
            let line = &self.buffer[from..end];
            let lead = line.len() - line.trim_ascii_start().len();
            let length = line.trim_ascii().len();
            if length > 0 {
                let first = from + lead;
                return Ok(Some(Line {
                    bytes: &self.buffer[first..first + length],
                    offset: self.base + first as u64,
                    number: self.number,
                }));
            }
        }
    }

    fn fill(&mut self, file: &SourceFile) -> Result<(), DatasetError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.base += self.start as u64;
            self.filled -= self.start;
            self.start = 0;
        }
        if self.filled == self.buffer.len() {
            if self.filled >= LONGEST_LINE {
                return Err(DatasetError::invalid(
                    &file.path,
                    crate::Place::Line(self.number + 1),
                    "",
                    format!("the line is longer than {} MiB; is this a JSONL file?", LONGEST_LINE >> 20),
                ));
            }
            self.buffer.resize(self.filled * 2, 0);
        }
        let offset = self.base + self.filled as u64;
        let count = file
            .read_some(self.handle.as_ref(), offset, &mut self.buffer[self.filled..])
            .map_err(|error| DatasetError::io(&file.path, &error))?;
        self.filled += count;
        self.ended = count == 0;
        Ok(())
    }
}

/// The names in a folder that satisfy `keep`, sorted.
pub(crate) fn files_of(folder: &Path, keep: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, DatasetError> {
    let entries = std::fs::read_dir(folder).map_err(|error| DatasetError::io(folder, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| DatasetError::io(folder, &error))?.path();
        if keep(&path) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
