//! Why a dataset cannot be used. A message names the file, the line, the field, the rule and the next step.

use std::fmt;
use std::path::{Path, PathBuf};

/// What to do about a path where there is nothing. Where standard input is meant, that it is not read.
pub fn check_the_path(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input is not read, for data is read more than once: save it to a file and name that".into()
    } else if let Some(reference) = path.to_str().and_then(aiperf_config::meant_reference) {
        format!("did you mean {reference}?")
    } else {
        "check the path: a relative one starts at the working directory".into()
    }
}

/// Why a dataset cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatasetError {
    /// There is nothing at the path.
    #[error("{}{} does not exist; {}", named(.dataset.as_deref()), .path.display(), check_the_path(.path))]
    Missing {
        /// Format, as declared; nothing while it is still to be detected.
        dataset: Option<String>,
        /// The path, as given.
        path: PathBuf,
    },
    /// The path is there and cannot be read.
    #[error("cannot read {}: {reason}", .path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system, or the decompressor, said.
        reason: String,
    },
    /// A record breaks a rule.
    #[error("{0}")]
    Invalid(Box<Invalid>),
    /// No format, or more than one, fits the first record.
    #[error("{0}")]
    Undetected(String),
    /// The dataset as a whole does not go with an option, an endpoint or a schedule.
    #[error("{0}")]
    Unsuitable(String),
    /// Nothing is left to send.
    #[error("{0}")]
    Empty(String),
    /// Prompts cannot be made.
    #[error("{0}")]
    Prompt(String),
    /// It was given up, as was asked.
    #[error("the conversation was given up while it was being made")]
    Stopped,
}

fn named(dataset: Option<&str>) -> String {
    dataset.map_or_else(String::new, |dataset| format!("dataset {dataset}: "))
}

/// A record that breaks a rule, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The file.
    pub file: PathBuf,
    /// Where in the file.
    pub place: Place,
    /// The field, or empty when the record as a whole is meant.
    pub field: String,
    /// The rule that is broken, and what to do.
    pub rule: String,
}

/// Where in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// 1-based line.
    Line(u64),
    /// 1-based row of a columnar file.
    Row(u64),
    /// A path inside one JSON document, such as `data[3]`.
    Json(String),
    /// Byte offset of a record that was fine when it was indexed.
    Offset(u64),
}

impl Place {
    /// The place in `file`, for people.
    pub(crate) fn of(&self, file: &Path) -> String {
        let file = file.display();
        match self {
            Place::Line(line) => format!("{file}:{line}"),
            Place::Row(row) => format!("{file}: row {row}"),
            Place::Json(path) if path.is_empty() => file.to_string(),
            Place::Json(path) => format!("{file}: {path}"),
            Place::Offset(offset) => format!("{file} (byte {offset})"),
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place.of(&self.file))?;
        if !self.field.is_empty() {
            write!(f, "field `{}`: ", self.field)?;
        }
        f.write_str(&self.rule)
    }
}

impl DatasetError {
    pub(crate) fn invalid(
        file: &Path,
        place: Place,
        field: impl Into<String>,
        rule: impl Into<String>,
    ) -> DatasetError {
        DatasetError::Invalid(Box::new(Invalid {
            file: file.to_owned(),
            place,
            field: field.into(),
            rule: rule.into(),
        }))
    }

    pub(crate) fn io(path: &Path, error: &std::io::Error) -> DatasetError {
        DatasetError::Unreadable { path: path.to_owned(), reason: error.to_string() }
    }
}
