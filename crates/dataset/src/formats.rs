//! The table of file formats: one file per format, one line here. Whatever differs from format to format is said
//! by its entry; nothing else asks which format it has.

mod azure_llm;
mod bailian;
mod baseten;
mod blocks;
mod burst_gpt;
mod dag_jsonl;
mod inputs_json;
mod media;
mod mooncake;
mod multi_turn;
mod parts;
mod random_pool;
mod raw_payload;
mod sagemaker;
mod single_turn;
mod speed_bench;
mod table_trace;
mod tracelab;
mod weka_trace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_config::{Corpus, FileFormat, InputColumns};

use crate::json::Fault;
use crate::look::Look;
use crate::open::Opening;
use crate::source::{files_below, files_of, shards_of};
use crate::{Dataset, DatasetError};

/// A file format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Which one it is.
    pub format: FileFormat,
    /// What a record of it is, in a few words.
    pub record: &'static str,
    /// How files of it are written.
    pub files: Files,
    /// Whether Parquet files are read wherever JSONL is.
    pub parquet: bool,
    /// Whether it records when requests were sent, so that it can be replayed, scaled and thinned out.
    pub trace: bool,
    /// Whether records may carry the times of a fixed schedule.
    pub timed: bool,
    /// Whether a recorded time in the first record makes a fixed schedule of a run.
    pub promotes: bool,
    /// Whether texts are made by the run, so that a tokenizer is needed.
    pub makes_text: bool,
    /// Whether its requests are written out as a whole: what the run makes or reads text from, not what is on
    /// disk in full already.
    pub writes_inputs: bool,
    /// Whether a run without any stop rule plays every conversation once.
    pub sessions_by_default: bool,
    /// Tokens of a hash block when nothing else is said.
    pub block_size: Option<u32>,
    /// What prompts are cut from when nothing else is said.
    pub corpus: Option<Corpus>,
    /// Whether it can hold a query and passages, for endpoints that rank.
    pub(crate) ranks: bool,
    /// The options that act on it, of those that do not act on every file.
    pub options: &'static [&'static str],
    /// The fields of a record that may be under other names in a file; none where they are those of one program, or
    /// where whole bodies are sent.
    pub fields: &'static [&'static str],
    /// Names under which fields are found in files that nobody said more of.
    pub(crate) common_names: &'static [(&'static str, &'static [&'static str])],
    /// Whether what is seen of a path fits; never a matter of reading all of it.
    pub(crate) fits: fn(&Format, &Look) -> bool,
    /// Which times the first record carries.
    pub(crate) times: fn(&Look) -> FirstTimes,
    /// Which files of a folder are read; none where a folder cannot be read.
    pub(crate) folder: Folder,
    /// What is said of files that do not fit and are like it.
    pub(crate) near: Option<Near>,
    /// Makes a dataset of it.
    pub(crate) open: Open,
}

/// What files that are meant to be of a format have, and what keeps them from being so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    /// Keys, or columns, that records of the format have.
    pub(crate) keys: &'static [&'static str],
    /// The first rule that a record breaks; of a document, that the whole breaks; of a table, that its first line
    /// breaks.
    pub(crate) fault: fn(&str) -> Option<Fault>,
}

/// Makes a dataset.
pub(crate) type Open = fn(Opening<'_>) -> Result<Arc<dyn Dataset>, DatasetError>;

/// How files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// One JSON value on each line.
    Jsonl,
    /// One JSON document.
    Json,
    /// Rows below a line of column names.
    Csv,
    /// A Parquet or Arrow file.
    Parquet,
}

/// Times of a first record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstTimes {
    pub(crate) timestamp: bool,
    pub(crate) delay: bool,
}

/// Which files of a folder are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Folder {
    /// None: one file is read.
    Never,
    /// Those that the function keeps, by name.
    Files(fn(&Path) -> bool),
    /// Those that the function keeps, also in folders below, by name.
    Below(fn(&Path) -> bool),
}

impl Format {
    /// A format without times and options: where entries start from.
    pub(crate) const fn new(format: FileFormat, files: Files, record: &'static str, open: Open) -> Format {
        Format {
            format,
            record,
            files,
            parquet: false,
            trace: false,
            timed: false,
            promotes: false,
            makes_text: false,
            writes_inputs: false,
            ranks: false,
            sessions_by_default: false,
            block_size: None,
            corpus: None,
            options: &[],
            fields: &[],
            common_names: &[],
            fits: |_, _| false,
            times: |_| FirstTimes { timestamp: false, delay: false },
            folder: Folder::Never,
            near: None,
            open,
        }
    }

    /// The name on the command line.
    pub const fn name(&self) -> &'static str {
        self.format.name()
    }

    /// Whether folders of it are read.
    pub fn reads_folders(&self) -> bool {
        !matches!(self.folder, Folder::Never)
    }

    /// The files that data of this format at `path` are read from: the file itself, or those of a folder. Where the
    /// folder cannot be read there are none.
    pub fn files_read(&self, path: &Path) -> Vec<PathBuf> {
        if !path.is_dir() {
            return vec![path.to_owned()];
        }
        let files = match self.folder {
            Folder::Never => Ok(Vec::new()),
            Folder::Files(keep) => files_of(path, keep),
            Folder::Below(keep) => files_below(path, keep),
        };
        let shards = if self.parquet { shards_of(path).ok().flatten() } else { None };
        let shards = shards.into_iter().flat_map(|shards| shards.read).map(|name| path.join(name));
        files.unwrap_or_default().into_iter().chain(shards).collect()
    }

    /// Whether `option`, one that does not act on every file, acts on it.
    pub fn takes(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    /// What keeps columns from being fields of this format.
    pub fn check_columns(&self, columns: &InputColumns) -> Result<(), String> {
        let name = self.name();
        match columns.pairs().find(|(field, _)| !self.fields.contains(field)) {
            None => Ok(()),
            Some(_) if self.fields.is_empty() => Err(format!(
                "--input-columns says which columns hold the fields of records, and those of {name} have names of their \
                 own; leave it out"
            )),
            Some((field, column)) => Err(format!(
                "--input-columns {field}={column}: {name} has no field `{field}`; its fields are {}",
                self.fields.join(", ")
            )),
        }
    }
}

/// The error when a format that reads one columnar file is given a folder.
pub(crate) fn check_one_file(format: &Format, path: &Path) -> Result<(), DatasetError> {
    if format.files != Files::Parquet || !path.is_dir() {
        return Ok(());
    }
    Err(DatasetError::Unsuitable(format!(
        "{}: it is a folder, and {} reads one file; name the file, or write the parts of the trace into one",
        path.display(),
        format.name()
    )))
}

/// Every format, in the order of [`FileFormat`].
const TABLE: [Format; FileFormat::ALL.len()] = {
    const SIMPLE: &[Format] = &[
        single_turn::FORMAT,
        multi_turn::FORMAT,
        random_pool::FORMAT,
        mooncake::FORMAT,
        raw_payload::FORMAT,
        inputs_json::FORMAT,
        bailian::FORMAT,
        burst_gpt::FORMAT,
        azure_llm::FORMAT,
        baseten::FORMAT,
        sagemaker::FORMAT,
        tracelab::FORMAT,
        weka_trace::FORMAT,
        dag_jsonl::FORMAT,
    ];
    let mut table = [SIMPLE[0]; FileFormat::ALL.len()];
    let mut at = 0;
    while at < table.len() {
        // What follows the others are the splits and categories of SPEED-Bench, which are alike.
        table[at] = if at < SIMPLE.len() { SIMPLE[at] } else { speed_bench::format_of(FileFormat::ALL[at]) };
        assert!(table[at].format as usize == at, "the table has the order of FileFormat");
        at += 1;
    }
    table
};

static FORMATS: [Format; FileFormat::ALL.len()] = TABLE;

/// Every format.
pub fn formats() -> &'static [Format] {
    &FORMATS
}

/// What is said of `format`.
pub fn format(format: FileFormat) -> &'static Format {
    &FORMATS[format as usize]
}

/// The format of this exact name.
pub(crate) fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name() == name)
}

/// Names of all formats.
pub const NAMES: &[&str] = &{
    let mut names = [""; TABLE.len()];
    let mut at = 0;
    while at < TABLE.len() {
        names[at] = TABLE[at].name();
        at += 1;
    }
    names
};
