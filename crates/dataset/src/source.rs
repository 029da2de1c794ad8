//! The bytes of a dataset: one file or the files of a folder, plain, compressed or columnar, read once from start
//! to end and afterwards at any place.

mod coding;
mod columns;
mod csv;
mod fields;
mod head;
mod lines;
mod records;
mod shards;

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_config::InputColumns;
use coding::{BOM, decompress, open};

pub(crate) use coding::{Coding, coding, coding_of, read_error, reader};
pub(crate) use columns::Columns;
pub(crate) use csv::Header;
pub use fields::WRONG_COLUMN;
pub(crate) use fields::{check_columns, check_keys};
pub use head::{Beginning, beginning, decoded_head, whole_lines};
pub(crate) use lines::Lines;
pub(crate) use records::{Records, utf8};
pub(crate) use shards::{notes as shard_notes, shards_of};

use crate::json::Fault;
use crate::{DatasetError, Note, Place};

/// Where the bytes of a file can be had again.
enum Store {
    /// An open file.
    Handle(File),
    /// Opened when asked for: one of many files of a folder.
    Path,
    /// Decompressed, in memory.
    Memory(Box<[u8]>),
    /// Nowhere: a columnar file is not read as text.
    None,
}

/// What the records of a file are.
enum Layout {
    /// One on each line.
    Lines,
    /// Rows below the names of columns.
    Csv(Header),
    /// Rows of a shard, by its number.
    Columns(Arc<Columns>, usize),
}

/// One file of a dataset.
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    store: Store,
    layout: Layout,
    /// Where fields are, if not under their own names.
    names: InputColumns,
}

impl SourceFile {
    /// Opens a file for reading at any place; gzip is decompressed here. Files of a folder are not kept open.
    pub(crate) fn open(path: &Path, keep_open: bool) -> Result<SourceFile, DatasetError> {
        let store = match coding(path)? {
            Coding::Plain if keep_open => Store::Handle(open(path)?),
            Coding::Plain => Store::Path,
            _ => decompress(path)?,
        };
        Ok(SourceFile { path: path.to_owned(), store, layout: Layout::Lines, names: InputColumns::default() })
    }

    /// Opens a file of rows below a row of column names, some of which may stand for others.
    pub(crate) fn open_table(path: &Path, names: &InputColumns) -> Result<SourceFile, DatasetError> {
        let mut file = SourceFile::open(path, true)?.with_names(names);
        file.layout = Layout::Csv(Header::read(&file)?);
        Ok(file)
    }

    /// Shard `number` of a dataset.
    pub(crate) fn shard(path: &Path, columns: &Arc<Columns>, number: usize) -> SourceFile {
        SourceFile {
            path: path.to_owned(),
            store: Store::None,
            layout: Layout::Columns(Arc::clone(columns), number),
            // The columns have the names of fields already.
            names: InputColumns::default(),
        }
    }

    /// The columns of a file of rows below their names.
    pub(crate) fn header(&self) -> Option<&Header> {
        match &self.layout {
            Layout::Csv(header) => Some(header),
            _ => None,
        }
    }

    /// The record at `position`, once more, as JSON text.
    pub(crate) fn record(&self, position: u64, length: u32) -> Result<Result<String, Fault>, DatasetError> {
        if let Layout::Columns(columns, number) = &self.layout {
            return columns.record(*number, position);
        }
        let mut bytes = vec![0; length as usize];
        self.read_at(position, &mut bytes)?;
        let Ok(text) = String::from_utf8(bytes) else {
            return Ok(Err(Fault::new("", "not valid UTF-8")));
        };
        Ok(Ok(match &self.layout {
            Layout::Csv(header) => {
                let mut record = String::new();
                header.record(&text, &mut record);
                record
            }
            _ if !self.names.is_empty() => self.with_fields(&text, &mut String::new()).to_owned(),
            _ => text,
        }))
    }

    /// What went wrong while records were read, without keeping any from being read.
    pub(crate) fn late_note(&self) -> Option<Note> {
        match &self.layout {
            Layout::Columns(columns, _) => columns.late_note(),
            _ => None,
        }
    }

    /// Line or row `number` as a place.
    pub(crate) fn place(&self, number: u64) -> Place {
        match &self.layout {
            Layout::Columns(..) => Place::Row(number),
            _ => Place::Line(number),
        }
    }

    /// Where the record at `position` is, in words.
    pub(crate) fn place_of(&self, position: u64) -> Place {
        match &self.layout {
            Layout::Columns(..) => Place::Row(position + 1),
            _ => Place::Line(self.line_of(position)),
        }
    }

    /// Whether some record may have `key`.
    pub(crate) fn may_have(&self, key: &str) -> Result<bool, DatasetError> {
        match &self.layout {
            Layout::Lines => {
                let key = self.names.column_of(key);
                // Other names can be written in several ways.
                Ok(!key.is_ascii() || self.contains(format!("\"{key}\"").as_bytes())?)
            }
            Layout::Csv(header) => Ok(header.names().iter().any(|name| name == key)),
            Layout::Columns(columns, number) => Ok(columns.may_have(*number, key)),
        }
    }

    /// Fills `buffer` with the bytes from `offset` on.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DatasetError> {
        let result = match &self.store {
            Store::Handle(file) => file.read_exact_at(buffer, offset),
            Store::Path => open(&self.path)?.read_exact_at(buffer, offset),
            Store::None => Err(ErrorKind::Unsupported.into()),
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
                (Store::None, _) => Err(ErrorKind::Unsupported.into()),
            };
            match result {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// How many bytes there are, where that is known.
    fn size(&self, handle: Option<&File>) -> Option<u64> {
        match (&self.store, handle) {
            (Store::Memory(bytes), _) => Some(bytes.len() as u64),
            (Store::Handle(file), _) | (Store::Path, Some(file)) => Some(file.metadata().ok()?.len()),
            _ => None,
        }
    }

    /// Whether `needle` occurs anywhere.
    fn contains(&self, needle: &[u8]) -> Result<bool, DatasetError> {
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

/// The files of a folder and of the folders in it that satisfy `keep`, sorted by their paths.
pub(crate) fn files_below(
    folder: &Path,
    keep: impl Fn(&Path) -> bool + Copy,
) -> Result<Vec<PathBuf>, DatasetError> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        files.extend(files_of(&folder, keep)?);
        let entries = std::fs::read_dir(&folder).map_err(|error| DatasetError::io(&folder, &error))?;
        // Links are not followed: they may lead in circles.
        let below = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(below.map(|entry| entry.path()));
    }
    files.sort();
    Ok(files)
}
