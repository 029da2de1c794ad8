//! A run replaces its result files, or deletes those of an earlier run: nothing that it reads may be one of them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use aiperf_config::{DatasetConfig, DatasetSource, OutputConfig};
use aiperf_report::{FileNames, file_id, files_of_run};

use crate::typed::Typed;
use crate::usage::UsageError;

pub(super) fn refuse(
    typed: &Typed,
    dataset: &DatasetConfig,
    output: &OutputConfig,
) -> Result<(), UsageError> {
    let results = files_of_run(&output.dir, &FileNames::new(output.prefix.as_deref()));
    let results: HashSet<(u64, u64)> = results.iter().filter_map(|file| file_id(file)).collect();
    if results.is_empty() {
        return Ok(());
    }
    let data = match &dataset.source {
        DatasetSource::File(file) => aiperf_dataset::format(file.format).files_read(&file.path),
        DatasetSource::Synthetic(_) | DatasetSource::Stored(_) => Vec::new(),
    };
    let named = |flag: &str| -> Vec<PathBuf> { typed.text(flag).map(PathBuf::from).into_iter().collect() };
    let read: [(&str, Vec<PathBuf>); 3] = [
        ("--input-file", data),
        ("--system-prompt-file", named("--system-prompt-file")),
        ("--tokenizer", named("--tokenizer")),
    ];
    for (flag, files) in &read {
        let lost = files.iter().find(|file| file_id(file).is_some_and(|id| results.contains(&id)));
        let (Some(lost), Some(given)) = (lost, typed.text(flag)) else { continue };
        let lost = if lost == Path::new(given) {
            "this file".to_owned()
        } else {
            format!("{}, which is read,", lost.display())
        };
        return Err(UsageError::combination(
            format!(
                "{} {given}: the results of the run go to {}, where {lost} would be replaced or deleted",
                typed.name(flag),
                output.dir.display()
            ),
            "choose another folder for the results with --artifact-dir",
        ));
    }
    Ok(())
}
