//! From a configuration to a dataset.

use std::path::Path;
use std::sync::Arc;

use aiperf_config::{DatasetConfig, DatasetSource, FileDataset as FileConfig, FileFormat, Sampling};

use crate::file::{FileDataset, Finish};
use crate::formats::{inputs_json, mooncake, multi_turn, random_pool, raw_payload, single_turn};
use crate::index::{Rules, index};
use crate::prompt::Prompts;
use crate::record::Render;
use crate::source::{Coding, SourceFile, coding, files_of};
use crate::{Dataset, DatasetError, OpenContext, synthetic};

/// More files than this in one folder are not what a folder format is for.
const MOST_FILES: usize = 1 << 16;

/// Opens a dataset. A bad record that is met before the first conversation can be sent is an error; one met
/// later is a [`Dataset::fault`].
pub fn open(config: &DatasetConfig, context: &OpenContext<'_>) -> Result<Arc<dyn Dataset>, DatasetError> {
    let strip = matches!(&config.source, DatasetSource::File(file) if file.uuid_and_strip);
    let finish = Finish::new(config.osl, config.system_prompt.as_deref(), context).strip_repeats(strip);
    match &config.source {
        DatasetSource::Synthetic(shape) => synthetic::open(shape, config, context, finish),
        DatasetSource::File(file) => open_file(file, config, context, finish),
    }
}

fn open_file(
    file: &FileConfig,
    config: &DatasetConfig,
    context: &OpenContext<'_>,
    finish: Finish,
) -> Result<Arc<dyn Dataset>, DatasetError> {
    let format = file.format;
    let trace = is_trace(format);
    check_options(file, config, context)?;
    let (files, is_folder) = sources(&file.path, format)?;
    let limit = file.entries.unwrap_or(u64::MAX);
    if limit == 0 {
        return Err(DatasetError::Empty("--num-dataset-entries is 0: nothing can be sent".into()));
    }
    let line_format = match format {
        FileFormat::SingleTurn => single_turn::format(context.endpoint),
        FileFormat::MultiTurn => multi_turn::format(context.endpoint),
        FileFormat::MooncakeTrace => mooncake::format(
            context.endpoint,
            context.streaming,
            file.block_size,
            Prompts::new(config.corpus, context)?,
        ),
        FileFormat::RawPayload => raw_payload::format(context.endpoint, context.streaming),
        FileFormat::RandomPool => {
            let batch = if is_folder { [1; 4] } else { file.pool_batch };
            return random_pool::open(files, context.endpoint, batch, file.entries, context.seed, finish);
        }
        FileFormat::InputsJson => {
            let index = inputs_json::index(&files[0], context.streaming, limit)?;
            let render: Arc<dyn Render> = Arc::new(raw_payload::Verbatim);
            return Ok(Arc::new(FileDataset { files, index, render, finish }));
        }
    };
    let rules = Rules {
        format,
        endpoint: context.endpoint,
        fixed_schedule: context.fixed_schedule,
        window: if context.fixed_schedule { file.window } else { (None, None) },
        drop_times: trace && file.ignore_trace_delays,
        delay_cap_ms: config.inter_turn_delay_cap.map(|cap| cap.as_secs_f64() * 1000.0),
        limit,
        whole: context.fixed_schedule || config.sampling != Sampling::Sequential || is_folder,
    };
    let render = Arc::clone(&line_format.render);
    let index = index(Arc::clone(&files), line_format, rules, finish.names(), is_folder)?;
    // Made before the fault is looked at: dropping it ends the reading thread.
    let dataset = FileDataset { files, index, render, finish };
    match dataset.fault() {
        Some(fault) => Err(fault),
        None => Ok(Arc::new(dataset)),
    }
}

/// Whether a format records when requests were sent.
pub(crate) fn is_trace(format: FileFormat) -> bool {
    format == FileFormat::MooncakeTrace
}

/// Refuses options that this format cannot follow.
fn check_options(
    file: &FileConfig,
    config: &DatasetConfig,
    context: &OpenContext<'_>,
) -> Result<(), DatasetError> {
    let name = file.format.name();
    let refuse = |text: String| Err(DatasetError::Unsuitable(text));
    if file.block_size.is_some() && file.format != FileFormat::MooncakeTrace && !file.detected {
        return refuse(format!(
            "--isl-block-size sets the block size of traces; {name} has no blocks, leave it out"
        ));
    }
    if file.block_size == Some(0) {
        return refuse("--isl-block-size must be above 0".into());
    }
    if file.pool_batch != [1; 4] && (file.format != FileFormat::RandomPool || file.path.is_dir()) {
        return refuse(format!(
            "--prompt-batch-size and --image/audio/video-batch-size draw from one random_pool file, and {} is {}; \
             leave them out",
            file.path.display(),
            if file.format == FileFormat::RandomPool { "a folder" } else { name }
        ));
    }
    if context.fixed_schedule {
        if matches!(file.format, FileFormat::RandomPool | FileFormat::RawPayload | FileFormat::InputsJson) {
            return refuse(format!(
                "--fixed-schedule needs recorded times, and {name} has none; use --no-fixed-schedule"
            ));
        }
        if is_trace(file.format) && file.ignore_trace_delays {
            return refuse(
                "--ignore-trace-delays drops the times that --fixed-schedule plays; leave one of them out"
                    .into(),
            );
        }
        if config.sampling != Sampling::Sequential {
            return refuse(
                "--dataset-sampling-strategy has no effect on a fixed schedule, which plays every conversation once; \
                 leave it out or use --no-fixed-schedule"
                    .into(),
            );
        }
    }
    Ok(())
}

/// The files of a dataset, and whether they are a folder.
fn sources(path: &Path, format: FileFormat) -> Result<(Arc<[SourceFile]>, bool), DatasetError> {
    let name = format.name();
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            DatasetError::Missing { dataset: name.to_owned(), path: path.to_owned() }
        }
        _ => DatasetError::io(path, &error),
    })?;
    if !metadata.is_dir() {
        check_coding(path, format)?;
        return Ok((Arc::new([SourceFile::open(path, true)?]), false));
    }
    let paths = match format {
        FileFormat::RandomPool => files_of(path, |file| !is_hidden(file))?,
        FileFormat::RawPayload => {
            files_of(path, |file| file.extension().is_some_and(|found| found == "jsonl"))?
        }
        _ if !files_of(path, |file| file.extension().is_some_and(|found| found == "parquet"))?.is_empty() => {
            return Err(parquet(path, format));
        }
        _ => {
            return Err(DatasetError::Unreadable {
                path: path.to_owned(),
                reason: format!("it is a directory, and {name} reads one file; name the file"),
            });
        }
    };
    if paths.is_empty() {
        return Err(DatasetError::Empty(format!("{}: the folder has no {name} files", path.display())));
    }
    if paths.len() > MOST_FILES {
        return Err(DatasetError::Unsuitable(format!(
            "{}: the folder has {} files, at most {MOST_FILES} are read",
            path.display(),
            paths.len()
        )));
    }
    let mut files = Vec::with_capacity(paths.len());
    for file in &paths {
        check_coding(file, format)?;
        files.push(SourceFile::open(file, false)?);
    }
    Ok((files.into(), true))
}

pub(crate) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn check_coding(path: &Path, format: FileFormat) -> Result<(), DatasetError> {
    match coding(path)? {
        Coding::Parquet | Coding::Arrow => Err(parquet(path, format)),
        _ => Ok(()),
    }
}

/// The answer to a parquet file: some formats never read it, the others do not yet.
fn parquet(path: &Path, format: FileFormat) -> DatasetError {
    let name = format.name();
    match format {
        FileFormat::RandomPool | FileFormat::RawPayload | FileFormat::InputsJson => {
            DatasetError::Unsuitable(format!(
                "{}: {name} does not read parquet files; convert the file to JSONL, or choose a format that reads \
                 parquet with --custom-dataset-type",
                path.display()
            ))
        }
        FileFormat::SingleTurn | FileFormat::MultiTurn | FileFormat::MooncakeTrace => {
            DatasetError::NotBuilt {
                what: format!("{}: reading parquet files", path.display()),
                help: "convert the file to JSONL".into(),
            }
        }
    }
}
