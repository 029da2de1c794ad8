//! Records whose fields are under names of their own.

use std::path::Path;

use aiperf_config::InputColumns;

use super::SourceFile;
use crate::{DatasetError, json};

/// Columns that a message names at most.
const MOST_NAMED: usize = 30;

/// The error when a column that is to hold a field is not among those of a file.
pub(crate) fn check_columns<'a>(
    path: &Path,
    names: &InputColumns,
    found: impl Iterator<Item = &'a str>,
) -> Result<(), DatasetError> {
    if names.is_empty() {
        return Ok(());
    }
    let found: Vec<&str> = found.collect();
    match names.pairs().find(|(_, column)| !found.contains(column)) {
        None => Ok(()),
        Some((field, column)) => Err(absent(
            path,
            field,
            column,
            &format!("the file has no such column, only {}", found[..found.len().min(MOST_NAMED)].join(", ")),
        )),
    }
}

/// The error when a key that is to hold a field is in no record of a file of lines.
pub(crate) fn check_keys(file: &SourceFile) -> Result<(), DatasetError> {
    for (field, column) in file.names.pairs() {
        if !file.may_have(field)? {
            return Err(absent(&file.path, field, column, "no record has such a key"));
        }
    }
    Ok(())
}

/// How a message ends about a column that was named and is not there.
pub const WRONG_COLUMN: &str = "; correct the name, or leave it out";

fn absent(path: &Path, field: &str, column: &str, what: &str) -> DatasetError {
    DatasetError::Unsuitable(format!(
        "{}: --input-columns {field}={column}: {what}{WRONG_COLUMN}",
        path.display()
    ))
}

impl SourceFile {
    /// The same file, some of whose columns hold fields of other names.
    pub(crate) fn with_names(self, names: &InputColumns) -> SourceFile {
        SourceFile { names: names.clone(), ..self }
    }

    /// A record with its fields under the names of the format: as it is where they are so, else written into `out`.
    pub(super) fn with_fields<'t>(&self, record: &'t str, out: &'t mut String) -> &'t str {
        if self.names.is_empty() || !json::rename(record, &self.names, out) {
            return record;
        }
        out
    }
}
