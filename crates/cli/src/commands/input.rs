//! Data that a command looks at instead of sending it.

use std::path::Path;
use std::sync::Arc;

use aiperf_config::{DatasetConfig, DatasetSource, FileDataset, FileFormat, InputColumns, redact_text};
use aiperf_dataset::{Dataset, DatasetError, OpenContext, Survey, detect, first_record_timing, open};

use clap::{Arg, ArgAction, ArgMatches};

use super::whole::whole_u32;
use crate::print;
use crate::similar::closest;

/// The format of this name, in any spelling.
pub(super) fn format_named(name: &str) -> Result<FileFormat, String> {
    let plain = name.to_ascii_lowercase().replace('-', "_");
    FileFormat::ALL.iter().copied().find(|format| format.name() == plain).ok_or_else(|| {
        let near =
            closest(&plain, FileFormat::ALL.iter().map(|format| (format.name(), format.name().into())));
        let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        format!("{name} is no dataset type{near}")
    })
}

/// A file or folder whose fields may be in other columns, its format found unless it is declared.
pub(super) fn file(
    path: &Path,
    declared: Option<FileFormat>,
    block_size: Option<u32>,
    columns: &InputColumns,
) -> Result<FileDataset, DatasetError> {
    let (format, columns) = match declared {
        Some(format) => (format, columns.clone()),
        None => detect(path, columns).map(|found| (found.format, found.columns))?,
    };
    let detected = declared.is_none();
    Ok(FileDataset { block_size, detected, columns, ..FileDataset::new(path, format) })
}

/// The argument that says how large a hash block is.
pub(super) fn block_size_argument() -> Arg {
    Arg::new("block-size")
        .long("block-size")
        .value_name("TOKENS")
        .value_parser(whole_u32(1))
        .help("Tokens of a hash block [default: that of the type]")
}

/// The argument that says which columns hold which fields.
pub(super) fn columns_argument() -> Arg {
    Arg::new("input-columns")
        .long("input-columns")
        .value_name("FIELD=COLUMN")
        .action(ArgAction::Append)
        .help("Columns, or keys, that hold fields of the type under other names")
}

/// The columns that were named.
pub(super) fn columns(matches: &ArgMatches) -> Result<InputColumns, String> {
    let texts = matches.get_many::<String>("input-columns").into_iter().flatten();
    InputColumns::parse(texts.map(String::as_str)).map_err(|what| format!("--input-columns: {what}"))
}

/// Says which columns were found to hold fields under common names.
pub(super) fn tell_columns(asked: &InputColumns, found: &FileDataset) {
    if *asked != found.columns {
        let text = common_names(found.format, &found.columns);
        print::err(&format!("info: {}\n", redact_text(&text)));
    }
}

/// How fields were found under names that they are often given.
pub(crate) fn common_names(format: FileFormat, columns: &InputColumns) -> String {
    format!(
        "the records are read as {}, with --input-columns {columns}, which are common names",
        format.name()
    )
}

/// Advice that names the flags of a command that looks at data, where they are not those of a run.
pub(super) fn own_flags(text: &str) -> String {
    text.replace("--isl-block-size", "--block-size")
}

/// Opens data the way a run would that is told nothing else.
pub(super) fn survey(file: FileDataset, survey: &Survey) -> Result<Arc<dyn Dataset>, DatasetError> {
    let timing = first_record_timing(&file.path, file.format, &file.columns)?;
    let scheduled = timing.promotes && timing.timestamp;
    open(&DatasetConfig::new(DatasetSource::File(file)), &OpenContext::survey(survey, scheduled))
}

/// Reads up to `most` conversations of a file as a run would: the first `kept` faults, and how many there are.
pub(crate) fn faults(
    path: &Path,
    format: FileFormat,
    block_size: Option<u32>,
    most: Option<u64>,
    kept: usize,
) -> (Vec<DatasetError>, u64) {
    let found = Survey::new(kept);
    let opened = file(path, Some(format), block_size, &InputColumns::default())
        .and_then(|file| survey(FileDataset { entries: most, ..file }, &found));
    let fault = match opened {
        Ok(dataset) => {
            dataset.wait_for(u64::MAX);
            dataset.fault()
        }
        Err(fault) => Some(fault),
    };
    match found.faults() {
        (faults, 0) => (faults.into_iter().chain(fault.clone()).collect(), u64::from(fault.is_some())),
        some => some,
    }
}

/// Reads the first record of a file as a run would.
pub(crate) fn first_record(
    path: &Path,
    format: FileFormat,
    block_size: Option<u32>,
    columns: &InputColumns,
) -> Result<(), DatasetError> {
    let faults = Survey::new(1);
    let first = FileDataset { entries: Some(1), ..file(path, Some(format), block_size, columns)? };
    let opened = survey(first, &faults).and_then(|dataset| {
        dataset.wait_for(0);
        dataset.fault().map_or(Ok(()), Err)
    });
    // What is wrong with the record says more than that nothing is left without it.
    faults.faults().0.into_iter().next().map_or(opened, Err)
}

/// Checks a trace as a run would, and counts its rows.
pub(super) fn mooncake_rows(path: &Path, block_size: u32) -> Result<u64, DatasetError> {
    let faults = Survey::new(1);
    let trace = file(path, Some(FileFormat::MooncakeTrace), Some(block_size), &InputColumns::default())?;
    let dataset = survey(trace, &faults)?;
    dataset.wait_for(u64::MAX);
    match faults.faults().0.into_iter().next().or_else(|| dataset.fault()) {
        Some(fault) => Err(fault),
        None => Ok(dataset.total_turns().unwrap_or(0)),
    }
}
