//! What is seen of a path without reading all of it: its first record, or what lies in a folder.

use std::cell::OnceCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_config::InputColumns;
use serde_json::{Map, Value};

use crate::DatasetError;
use crate::json::{self, Fault};
use crate::open::refuse_false_name;
use crate::parquet::Table;
use crate::record::{Found, LineFormat};
use crate::source::{Coding, Columns, SourceFile, coding, files_of, read_error, reader, shards_of, utf8};

/// A first record is looked for in so many bytes.
const HEAD: u64 = 64 << 20;

/// What is seen of a path.
pub(crate) struct Look {
    pub(crate) path: PathBuf,
    pub(crate) seen: Seen,
    /// 1-based line, or row, of what is seen.
    pub(crate) line: u64,
    /// The file, when it is a columnar one.
    pub(crate) table: Option<Arc<Table>>,
    /// A file of several lines as one JSON object, once asked for.
    document: OnceCell<Option<Map<String, Value>>>,
}

pub(crate) enum Seen {
    /// A folder.
    Folder,
    /// The first line that is not blank is a JSON object: as text, and taken apart.
    Record(String, Map<String, Value>),
    /// It is another JSON value.
    Value,
    /// It is something else.
    Line(String),
    /// It is no text, and why.
    Foreign(Fault),
    /// A columnar file whose rows have no form as JSON, and why.
    Columns(DatasetError),
    /// There is no such line: blank within the bytes looked at, or empty altogether.
    Blank,
}

impl Look {
    /// Looks at `path`: at the first record of a file, or of the first shard of a folder of parquet shards.
    pub(crate) fn at(path: &Path) -> Result<Look, DatasetError> {
        Look::named(path, &InputColumns::default())
    }

    /// The same for data some of whose columns hold fields of other names.
    pub(crate) fn named(path: &Path, names: &InputColumns) -> Result<Look, DatasetError> {
        let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => DatasetError::Missing { dataset: None, path: path.to_owned() },
            _ => DatasetError::io(path, &error),
        })?;
        let look =
            |seen, table| Look { path: path.to_owned(), seen, line: 1, table, document: OnceCell::new() };
        if metadata.is_dir() {
            return Ok(match shards_of(path)? {
                Some(shards) => {
                    let first = Table::named(&path.join(&shards.read[0]), names)?;
                    look(first_row(&Arc::new(first))?, None)
                }
                None => look(Seen::Folder, None),
            });
        }
        if matches!(coding(path)?, Coding::Parquet | Coding::Arrow) {
            let table = Arc::new(Table::named(path, names)?);
            return Ok(look(first_row(&table)?, Some(table)));
        }
        refuse_false_name(path)?;
        let (seen, line) = first_line(path)?;
        Ok(Look { line, ..look(seen.with_fields(names), None) })
    }

    /// The first record and its text.
    pub(crate) fn record(&self) -> Option<(&str, &Map<String, Value>)> {
        match &self.seen {
            Seen::Record(line, record) => Some((line, record)),
            _ => None,
        }
    }

    /// The first record, when it has all of `keys`.
    pub(crate) fn record_with(&self, keys: &[&str]) -> Option<&Map<String, Value>> {
        let (_, record) = self.record()?;
        keys.iter().all(|key| record.contains_key(*key)).then_some(record)
    }

    /// Whether the first record passes the check of a format.
    pub(crate) fn record_passes(&self, mut format: LineFormat) -> bool {
        self.record().is_some_and(|(line, _)| format.check.record(line, &mut Found::default()).is_ok())
    }

    /// Whether the first record says that it is of `name`.
    pub(crate) fn claims(&self, name: &str) -> bool {
        self.record().is_some_and(|(_, record)| record.get("type").and_then(Value::as_str) == Some(name))
    }

    /// Whether the first line, which is no JSON, names all of `columns`.
    pub(crate) fn has_columns(&self, columns: &[&str]) -> bool {
        let Seen::Line(line) = &self.seen else { return false };
        let found: Vec<&str> = columns_of(line).collect();
        columns.iter().all(|column| found.contains(column))
    }

    /// Whether this is a file of columns that has all of `columns`.
    pub(crate) fn has_table_columns(&self, columns: &[&str]) -> bool {
        self.table.as_ref().is_some_and(|table| table.columns(columns).is_ok())
    }

    /// The whole of a `.json` file as one object; read once.
    pub(crate) fn document(&self) -> Option<&Map<String, Value>> {
        match &self.seen {
            _ if !self.is_json() => None,
            Seen::Record(_, record) => Some(record),
            Seen::Line(_) => self.document.get_or_init(|| document(&self.path)).as_ref(),
            _ => None,
        }
    }

    /// The text of the whole of a `.json` file.
    pub(crate) fn document_text(&self) -> Option<String> {
        if self.is_json() { text(&self.path) } else { None }
    }

    pub(crate) fn is_json(&self) -> bool {
        has_extension(&self.path, "json")
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self.seen, Seen::Folder)
    }

    /// What is seen of the files of a folder that `keep` keeps, in the order of their names. Files that cannot be
    /// read are left out.
    pub(crate) fn files(&self, keep: impl Fn(&Path) -> bool) -> impl Iterator<Item = Look> {
        let files =
            if self.is_folder() { files_of(&self.path, keep).unwrap_or_default() } else { Vec::new() };
        files.into_iter().filter_map(|file| Look::at(&file).ok())
    }

    /// The first file, by name, of a folder and the folders in it that `keep` keeps.
    pub(crate) fn first_below(&self, keep: fn(&Path) -> bool) -> Option<Look> {
        Look::at(&first_below(&self.path, keep, 0)?).ok().filter(|_| self.is_folder())
    }
}

impl Seen {
    /// The same with fields under the names of formats.
    fn with_fields(self, names: &InputColumns) -> Seen {
        match self {
            seen if names.is_empty() => seen,
            Seen::Record(line, record) => {
                let mut renamed = String::new();
                if json::rename(&line, names, &mut renamed) {
                    record_of(renamed)
                } else {
                    Seen::Record(line, record)
                }
            }
            Seen::Line(line) => Seen::Line(
                columns_of(&line).map(|column| names.field_of(column)).collect::<Vec<_>>().join(","),
            ),
            seen => seen,
        }
    }
}

/// The names of columns in the first line of a table.
fn columns_of(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|column| column.trim().trim_matches('"'))
}

/// What a line of text is.
fn record_of(line: String) -> Seen {
    match serde_json::from_str::<Value>(&line) {
        Ok(Value::Object(record)) => Seen::Record(line, record),
        Ok(_) => Seen::Value,
        Err(_) => Seen::Line(line),
    }
}

/// A path without the ending that says how the file is compressed.
pub(crate) fn uncompressed(path: &Path) -> PathBuf {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz" | "zst") => path.with_extension(""),
        _ => path.to_owned(),
    }
}

/// Whether the name of a file ends in this way, compressed or not.
pub(crate) fn has_extension(path: &Path, wanted: &str) -> bool {
    uncompressed(path).extension().is_some_and(|found| found == wanted)
}

/// The name of a file without its ending, nor that of its compression.
pub(crate) fn stem(path: &Path) -> String {
    uncompressed(path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

pub(crate) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a field of a record is there and not null.
pub(crate) fn given(record: &Map<String, Value>, key: &str) -> bool {
    record.get(key).is_some_and(|value| !value.is_null())
}

/// The first line that is not blank, and its number.
fn first_line(path: &Path) -> Result<(Seen, u64), DatasetError> {
    let mut number = 1;
    let mut from = reader(path)?.take(HEAD);
    let mut bytes = Vec::new();
    let mut buffer = vec![0u8; 1 << 14];
    loop {
        let count = from.read(&mut buffer).map_err(|error| read_error(path, &error))?;
        let looked = bytes.len();
        bytes.extend_from_slice(&buffer[..count]);
        if looked == 0 && bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        // Where the end of the line is still to be looked for.
        let mut from = looked;
        if bytes[..looked].trim_ascii().is_empty() {
            let blank = bytes.len() - bytes.trim_ascii_start().len();
            number += bytes.drain(..blank).filter(|byte| *byte == b'\n').count() as u64;
            from = 0;
        }
        if let Some(end) = memchr::memchr(b'\n', &bytes[from..]) {
            bytes.truncate(from + end);
            break;
        }
        if count == 0 {
            break;
        }
    }
    let line = bytes.trim_ascii();
    if line.is_empty() {
        return Ok((Seen::Blank, number));
    }
    Ok((utf8(line).map_or_else(Seen::Foreign, |line| record_of(line.to_owned())), number))
}

/// The first row of a columnar file as a record.
fn first_row(table: &Arc<Table>) -> Result<Seen, DatasetError> {
    if let Err(error) = table.check_json() {
        return Ok(Seen::Columns(error));
    }
    if table.rows() == 0 {
        return Ok(Seen::Blank);
    }
    let columns = Arc::new(Columns::new(vec![Arc::clone(table)], None)?);
    let file = SourceFile::shard(table.path(), &columns, 0);
    Ok(match file.record(0, 0)? {
        Ok(line) => match serde_json::from_str(&line) {
            Ok(record) => Seen::Record(line, record),
            Err(error) => Seen::Foreign(Fault::new("", error.to_string())),
        },
        Err(fault) => {
            Seen::Columns(DatasetError::invalid(&file.path, file.place(1), fault.field, fault.rule))
        }
    })
}

fn document(path: &Path) -> Option<Map<String, Value>> {
    serde_json::from_str(&text(path)?).ok()
}

fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    reader(path).ok()?.read_to_end(&mut bytes).ok()?;
    let mut text = String::from_utf8(bytes).ok()?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Some(text)
}

fn first_below(folder: &Path, keep: fn(&Path) -> bool, depth: u32) -> Option<PathBuf> {
    const DEEPEST: u32 = 8;
    if let Some(file) = files_of(folder, keep).ok()?.into_iter().next() {
        return Some(file);
    }
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders.iter().filter(|_| depth < DEEPEST).find_map(|folder| first_below(folder, keep, depth + 1))
}
