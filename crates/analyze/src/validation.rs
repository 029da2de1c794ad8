//! Whether a dataset loads: the checks of the loader itself, gone through to the end.

use aiperf_config::FileFormat;
use aiperf_dataset::{Dataset, DatasetError, Place, Survey};
use serde_json::{Map, Value, json};

use crate::warnings::Warnings;

/// What is wrong, or noteworthy, and where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// 1-based line or row, where the data has such.
    pub line: Option<u64>,
    /// It is a row.
    pub is_row: bool,
    /// The field; empty when a record as a whole is meant.
    pub field: String,
    /// The rule, and what to do.
    pub message: String,
    /// Where, when it is not a line of the one file that was named.
    pub place: Option<String>,
}

impl Finding {
    pub(crate) fn of(error: &DatasetError, is_folder: bool) -> Finding {
        let DatasetError::Invalid(invalid) = error else {
            return Finding { message: error.to_string(), ..Finding::default() };
        };
        let (field, message) = (invalid.field.clone(), invalid.rule.clone());
        let (line, is_row) = match &invalid.place {
            Place::Line(line) => (*line, false),
            Place::Row(row) => (*row, true),
            // The whole text has the place in it.
            _ => return Finding { field, message: error.to_string(), ..Finding::default() },
        };
        let place = is_folder.then(|| {
            let file = invalid.file.display();
            if is_row { format!("{file} (row {line})") } else { format!("{file}:{line}") }
        });
        Finding { line: Some(line), is_row, field, message, place }
    }

    /// One line of text.
    pub fn text(&self, kind: &str) -> String {
        let field = if self.field.is_empty() || self.line.is_none() {
            String::new()
        } else {
            format!("field `{}`: ", self.field)
        };
        match (&self.place, self.line) {
            (Some(place), _) => format!("{place}: {kind}{field}{}", self.message),
            (None, Some(line)) => {
                let unit = if self.is_row { "Row" } else { "Line" };
                format!("{unit} {line}: {kind}{field}{}", self.message)
            }
            (None, None) => format!("{kind}{}", self.message),
        }
    }

    fn json(&self) -> Value {
        let mut out = Map::new();
        if let Some(line) = self.line {
            out.insert(if self.is_row { "row" } else { "line" }.into(), line.into());
        }
        if let Some(place) = &self.place {
            out.insert("place".into(), place.as_str().into());
        }
        out.insert("field".into(), self.field.as_str().into());
        out.insert("message".into(), self.message.as_str().into());
        Value::Object(out)
    }
}

/// How a check went.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The format it was read as; `None` where that could not be found out.
    pub format: Option<FileFormat>,
    /// Records read, good and bad.
    pub rows: u64,
    /// All errors.
    pub count: u64,
    /// The first of them.
    pub errors: Vec<Finding>,
    /// What a replay accepts and changes; the first of each kind of many.
    pub warnings: Vec<Finding>,
    /// All warnings.
    pub warning_count: u64,
}

impl Validation {
    /// Of data that could not be read at all, and why.
    pub fn unread(format: Option<FileFormat>, message: &str) -> Validation {
        let error = Finding { message: message.to_owned(), ..Finding::default() };
        Validation { format, rows: 0, count: 1, errors: vec![error], warnings: Vec::new(), warning_count: 0 }
    }

    /// The same where `error` kept them from being opened.
    pub fn unopened(format: Option<FileFormat>, error: &DatasetError) -> Validation {
        Validation { errors: vec![Finding::of(error, false)], ..Validation::unread(format, "") }
    }

    /// The same with other words for what is said.
    #[must_use]
    pub fn reworded(mut self, words: impl Fn(&str) -> String) -> Validation {
        for finding in self.errors.iter_mut().chain(&mut self.warnings) {
            finding.message = words(&finding.message);
            finding.place = finding.place.as_deref().map(&words);
        }
        self
    }

    /// Whether the dataset loads.
    pub fn is_valid(&self) -> bool {
        self.count == 0
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let list = |findings: &[Finding]| findings.iter().map(Finding::json).collect::<Value>();
        let mut out = json!({
            "format": self.format.map(FileFormat::name),
            "rows": self.rows,
            "valid": self.is_valid(),
            "error_count": self.count,
            "errors": list(&self.errors),
        });
        if !self.warnings.is_empty() {
            out["warnings"] = list(&self.warnings);
            out["warning_count"] = self.warning_count.into();
        }
        out
    }
}

/// What came of opening a dataset with `survey`, and what of it loads and is hardly meant. `most` findings of each kind
/// are kept; the data are a folder or not.
pub fn validate(
    opened: Result<&dyn Dataset, &DatasetError>,
    survey: &Survey,
    format: FileFormat,
    most: usize,
    is_folder: bool,
) -> Result<Validation, DatasetError> {
    let (faults, mut count) = survey.faults();
    let mut errors: Vec<Finding> = faults.iter().map(|fault| Finding::of(fault, is_folder)).collect();
    let mut warnings = Warnings::default();
    let mut rows = survey.records();
    match opened {
        Ok(dataset) => {
            if rows == 0 {
                // Not read record by record.
                rows = dataset.total_turns().unwrap_or_default();
            }
            warnings = Warnings::of(dataset, format, most, is_folder)?;
            for note in dataset.notes().iter().filter(|note| note.is_of_faults()) {
                warnings.note(note.to_string());
            }
        }
        // Nothing was left because every record is bad: that is said already.
        Err(DatasetError::Empty(_)) if count > 0 => {}
        Err(error @ DatasetError::Invalid(_)) => {
            count += 1;
            if errors.len() < most {
                errors.push(Finding::of(error, is_folder));
            }
        }
        Err(error) => return Err(error.clone()),
    }
    Ok(Validation {
        format: Some(format),
        rows,
        count,
        errors,
        warnings: warnings.kept,
        warning_count: warnings.count,
    })
}
