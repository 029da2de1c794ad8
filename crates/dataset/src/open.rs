//! From a configuration to a dataset.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_config::{Corpus, DatasetConfig, DatasetSource, FileDataset as FileConfig, Sampling};

use crate::detect::{body_keys, unread_keys};
use crate::file::{FileDataset, Finish};
use crate::formats::{Files, Folder, Format, format};
use crate::index::{Index, Rules, index};
use crate::look::uncompressed;
use crate::parquet::Table;
use crate::record::{Check, LineFormat};
use crate::source::{
    Coding, Columns, SourceFile, check_keys, coding, files_below, files_of, shard_notes, shards_of,
};
use crate::{Dataset, DatasetError, Note, OpenContext, Place, Stop, public, synthetic};

/// More files than this in one folder are not what a folder format is for.
const MOST_FILES: usize = 1 << 16;

/// Opens a dataset. A bad record that is met before the first conversation can be sent is an error; one met
/// later is a [`Dataset::fault`].
pub fn open(config: &DatasetConfig, context: &OpenContext<'_>) -> Result<Arc<dyn Dataset>, DatasetError> {
    open_until(config, context, &Stop::default())
}

/// The same; once `stop` is set, a conversation that is being made ends as [`DatasetError::Stopped`].
pub fn open_until(
    config: &DatasetConfig,
    context: &OpenContext<'_>,
    stop: &Stop,
) -> Result<Arc<dyn Dataset>, DatasetError> {
    let strip = matches!(&config.source, DatasetSource::File(file) if file.uuid_and_strip);
    let finish =
        Finish::new(config.osl, config.system_prompt.as_deref(), context).strip_repeats(strip).until(stop);
    match &config.source {
        DatasetSource::Synthetic(shape) => synthetic::open(shape, config, context, finish),
        DatasetSource::File(file) => open_file(file, config, context, finish),
        DatasetSource::Stored(path) => {
            let cap = config.inter_turn_delay_cap.map(|cap| cap.as_secs_f64() * 1000.0);
            public::open(path, context, cap, finish)
        }
    }
}

fn open_file(
    file: &FileConfig,
    config: &DatasetConfig,
    context: &OpenContext<'_>,
    finish: Finish,
) -> Result<Arc<dyn Dataset>, DatasetError> {
    let opening = Opening { format: format(file.format), file, config, context, finish };
    opening.check_options()?;
    (opening.format.open)(opening)
}

/// What a format opens a dataset with.
pub(crate) struct Opening<'a> {
    pub(crate) format: &'static Format,
    pub(crate) file: &'a FileConfig,
    pub(crate) config: &'a DatasetConfig,
    pub(crate) context: &'a OpenContext<'a>,
    pub(crate) finish: Finish,
}

/// The files of a dataset.
pub(crate) struct Sources {
    pub(crate) files: Arc<[SourceFile]>,
    /// They are those of a folder.
    pub(crate) is_folder: bool,
    /// What is to be said of them.
    pub(crate) notes: Vec<Note>,
}

impl Opening<'_> {
    /// Tokens of a hash block: those asked for, else those of the format.
    pub(crate) fn block_size(&self) -> u32 {
        self.file.block_size.or(self.format.block_size).unwrap_or(DEFAULT_BLOCK_SIZE)
    }

    /// What prompts are cut from: the corpus asked for, else that of the format.
    pub(crate) fn corpus(&self) -> Option<Corpus> {
        self.config.corpus.or(self.format.corpus)
    }

    /// Most conversations that are loaded.
    pub(crate) fn limit(&self) -> u64 {
        self.file.entries.unwrap_or(u64::MAX)
    }

    /// Whether a first record without a time is all that keeps the run from going by recorded times.
    pub(crate) fn goes_by_first_time(&self) -> bool {
        let file = self.file;
        let declined = file.no_schedule || file.ignore_trace_delays || file.agents.think_time_only;
        // Who plays published data says so where they are to be on schedule.
        self.format.promotes && !self.context.fixed_schedule && !declined && self.config.public.is_none()
    }

    /// Opens the file, or those files of the folder that the format reads.
    pub(crate) fn sources(&self) -> Result<Sources, DatasetError> {
        let path = &self.file.path;
        if !self.is_folder()? {
            self.check_coding(path)?;
            return Ok(Sources { files: Arc::new([self.file(path)?]), is_folder: false, notes: Vec::new() });
        }
        let paths = self.files_of_folder(path)?;
        let mut files = Vec::with_capacity(paths.len());
        for file in &paths {
            self.check_coding(file)?;
            files.push(SourceFile::open(file, false)?);
        }
        Ok(Sources { files: files.into(), is_folder: true, notes: Vec::new() })
    }

    /// Opens a file of lines.
    fn file(&self, path: &Path) -> Result<SourceFile, DatasetError> {
        let file = SourceFile::open(path, true)?.with_names(&self.file.columns);
        check_keys(&file)?;
        Ok(file)
    }

    fn is_folder(&self) -> Result<bool, DatasetError> {
        let path = &self.file.path;
        let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                DatasetError::Missing { dataset: Some(self.format.name().to_owned()), path: path.clone() }
            }
            _ => DatasetError::io(path, &error),
        })?;
        Ok(metadata.is_dir())
    }

    fn files_of_folder(&self, path: &Path) -> Result<Vec<PathBuf>, DatasetError> {
        let name = self.format.name();
        let paths = match self.format.folder {
            Folder::Files(keep) => files_of(path, keep)?,
            Folder::Below(keep) => files_below(path, keep)?,
            Folder::Never if shards_of(path)?.is_some() => return Err(self.no_parquet(path)),
            Folder::Never => {
                let reads =
                    if self.format.parquet { "a file or a folder of Parquet shards" } else { "one file" };
                return Err(DatasetError::Unreadable {
                    path: path.to_owned(),
                    reason: format!("it is a directory, and {name} reads {reads}; name the file"),
                });
            }
        };
        if paths.is_empty() && shards_of(path)?.is_some() {
            return Err(self.no_parquet(path));
        }
        if paths.is_empty() {
            return Err(DatasetError::Empty(format!("{}: the folder has no {name} files", path.display())));
        }
        check_count(path, paths.len())?;
        check_copies(&paths)?;
        Ok(paths)
    }

    fn check_coding(&self, path: &Path) -> Result<(), DatasetError> {
        match coding(path)? {
            Coding::Parquet | Coding::Arrow => Err(self.no_parquet(path)),
            _ => refuse_false_name(path),
        }
    }

    /// The rows of a parquet file, or of the shards of a folder, where the format reads them: of the columns in
    /// `keys` what matters. `None` where the path is something else.
    fn columns(&self, keys: Option<&[&str]>) -> Result<Option<Sources>, DatasetError> {
        let path = &self.file.path;
        if !self.format.parquet {
            return Ok(None);
        }
        let (paths, notes) = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                let Some(shards) = shards_of(path)? else { return Ok(None) };
                let notes = shard_notes(&shards);
                (shards.read.into_iter().map(|name| path.join(name)).collect(), notes)
            }
            Ok(_) => match coding(path)? {
                Coding::Parquet => (vec![path.clone()], Vec::new()),
                Coding::Arrow => {
                    return Err(DatasetError::Unsuitable(format!(
                        "{}: {} does not read Arrow files, only baseten_trace does; convert the file to parquet or JSONL",
                        path.display(),
                        self.format.name()
                    )));
                }
                _ => return Ok(None),
            },
            // What is wrong with the path is said where text files are opened.
            Err(_) => return Ok(None),
        };
        check_count(path, paths.len())?;
        let table = |path: &PathBuf| Table::named(path, &self.file.columns).map(Arc::new);
        let tables = paths.iter().map(table).collect::<Result<_, _>>()?;
        let columns = Arc::new(Columns::new(tables, keys)?);
        let files = paths
            .iter()
            .enumerate()
            .map(|(number, path)| SourceFile::shard(path, &columns, number))
            .collect();
        Ok(Some(Sources { files, is_folder: false, notes }))
    }

    /// The answer to a parquet file where the format never reads one.
    fn no_parquet(&self, path: &Path) -> DatasetError {
        DatasetError::Unsuitable(format!(
            "{}: {} does not read parquet files; convert the file to JSONL, or choose a format that reads parquet with \
             --custom-dataset-type",
            path.display(),
            self.format.name()
        ))
    }

    /// A file of rows below a row of column names; its records are objects of strings.
    fn table(&self, check: &mut dyn Check) -> Result<Sources, DatasetError> {
        let path = &self.file.path;
        if self.is_folder()? {
            self.files_of_folder(path)?;
        }
        self.check_coding(path)?;
        let file = SourceFile::open_table(path, &self.file.columns)?;
        let names = file.header().map_or(&[][..], |header| header.names());
        if names.is_empty() {
            return Err(DatasetError::Empty(format!(
                "{}: the file is empty; nothing can be sent",
                path.display()
            )));
        }
        check
            .columns(names)
            .map_err(|fault| DatasetError::invalid(path, Place::Line(1), fault.field, fault.rule))?;
        Ok(Sources { files: Arc::new([file]), is_folder: false, notes: Vec::new() })
    }

    /// Refuses options that this format cannot follow.
    fn check_options(&self) -> Result<(), DatasetError> {
        let (file, name) = (self.file, self.format.name());
        let refuse = |text: String| Err(DatasetError::Unsuitable(text));
        if self.limit() == 0 {
            return Err(DatasetError::Empty("--num-dataset-entries is 0: nothing can be sent".into()));
        }
        self.format.check_columns(&file.columns).map_err(DatasetError::Unsuitable)?;
        if file.block_size.is_some() && !self.format.takes("--isl-block-size") && !file.detected {
            return refuse(format!(
                "--isl-block-size sets the block size of traces; {name} has no blocks, leave it out"
            ));
        }
        if file.block_size == Some(0) {
            return refuse("--isl-block-size must be above 0".into());
        }
        let batches = self.format.takes("--prompt-batch-size");
        if file.pool_batch != [1; 4] && (!batches || file.path.is_dir()) {
            return refuse(format!(
                "--prompt-batch-size and --image/audio/video-batch-size draw from one random_pool file, and {} is {}; \
                 leave them out",
                file.path.display(),
                if batches { "a folder" } else { name }
            ));
        }
        if self.context.endpoint.ranks() && !self.format.ranks {
            return refuse(format!(
                "{name} has no query and passages, which the {} endpoint takes; use single_turn or random_pool with named \
                 texts, or --endpoint-type chat",
                self.context.endpoint.name()
            ));
        }
        if !self.context.fixed_schedule {
            return Ok(());
        }
        if !self.format.timed {
            return refuse(format!(
                "--fixed-schedule needs recorded times, and {name} has none; use --no-fixed-schedule"
            ));
        }
        if self.format.trace && file.ignore_trace_delays {
            return refuse(
                "--ignore-trace-delays drops the times that --fixed-schedule plays; leave one of them out"
                    .into(),
            );
        }
        if self.config.sampling != Sampling::Sequential {
            return refuse(
                "--dataset-sampling-strategy has no effect on a fixed schedule, which plays every conversation once; \
                 leave it out or use --no-fixed-schedule"
                    .into(),
            );
        }
        Ok(())
    }

    /// Indexes the files record by record.
    pub(crate) fn records(self, mut format: LineFormat) -> Result<Arc<dyn Dataset>, DatasetError> {
        let Sources { files, is_folder, mut notes } = match self.columns(format.check.keys())? {
            Some(sources) => sources,
            None if self.format.files == Files::Csv => self.table(&mut *format.check)?,
            None => self.sources()?,
        };
        // Who says which columns hold what has seen the others.
        let keys =
            if self.file.columns.is_empty() { unread_keys(self.format, &self.file.path) } else { Vec::new() };
        if !keys.is_empty() {
            notes.push(Note::KeysNotRead { keys });
        }
        let keys = body_keys(self.format, &self.file.path);
        if !keys.is_empty() {
            notes.push(Note::KeysOfBodies { keys });
        }
        let fixed_schedule = self.context.fixed_schedule;
        let rules = Rules {
            format: self.format.format,
            endpoint: self.context.endpoint,
            fixed_schedule,
            window: if fixed_schedule { self.file.window } else { (None, None) },
            drop_times: self.format.trace && self.file.ignore_trace_delays,
            synthesis: self.file.synthesis,
            delay_cap_ms: self.config.inter_turn_delay_cap.map(|cap| cap.as_secs_f64() * 1000.0),
            limit: self.limit(),
            whole: fixed_schedule || self.config.sampling != Sampling::Sequential || is_folder,
        };
        let render = Arc::clone(&format.render);
        let index =
            index(Arc::clone(&files), format, rules, self.finish.names(), is_folder, self.context.survey)?;
        if self.goes_by_first_time() {
            notes.extend(first_without_time(&files, &index));
        }
        // Made before the fault is looked at: dropping it ends the reading thread.
        let dataset = FileDataset { files, index, render, finish: self.finish, notes };
        match dataset.fault() {
            Some(fault) => Err(fault),
            None => Ok(Arc::new(dataset)),
        }
    }
}

/// What is to be said where the first record has no time and others have, as far as they are read.
fn first_without_time(files: &[SourceFile], index: &Index) -> Option<Note> {
    let rows = &index.rows;
    let first = rows.get(0).filter(|row| row.record() == 1 && row.timestamp().is_none())?;
    let is_timed = |row: u64| rows.get(row).is_some_and(|row| row.timestamp().is_some());
    (1..rows.len()).any(is_timed).then(|| {
        let file = &files[first.file()];
        Note::first_without_time(&file.path, &file.place_of(first.offset()), "timestamp")
    })
}

fn check_count(folder: &Path, files: usize) -> Result<(), DatasetError> {
    if files <= MOST_FILES {
        return Ok(());
    }
    Err(DatasetError::Unsuitable(format!(
        "{}: the folder has {files} files, at most {MOST_FILES} are read",
        folder.display()
    )))
}

/// Refuses files that are there twice, compressed and not: what they hold would be sent twice.
fn check_copies(paths: &[PathBuf]) -> Result<(), DatasetError> {
    let mut seen: HashMap<PathBuf, &Path> = HashMap::with_capacity(paths.len());
    for path in paths {
        if let Some(other) = seen.insert(uncompressed(path), path) {
            return Err(DatasetError::Unsuitable(format!(
                "{} and {} differ in their compression alone, and both would be sent; move one of them away",
                other.display(),
                path.display()
            )));
        }
    }
    Ok(())
}

/// Tokens of a hash block where neither the options nor the format say so.
const DEFAULT_BLOCK_SIZE: u32 = 512;

/// Refuses a file of text whose name says that it has columns: what was fetched is something else, or damaged.
pub(crate) fn refuse_false_name(path: &Path) -> Result<(), DatasetError> {
    if path.extension().is_none_or(|ending| ending != "parquet") {
        return Ok(());
    }
    Err(DatasetError::Unreadable {
        path: path.to_owned(),
        reason: "its name says parquet and its content does not: it does not start with PAR1; fetch the file again"
            .into(),
    })
}
