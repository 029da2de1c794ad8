//! Which format is this? Told by the first record, by the names of columns, or by what lies in a folder.

use std::path::Path;

use aiperf_config::FileFormat;
use serde_json::Value;

use crate::formats::{self, Format};
use crate::look::{Look, Seen};
use crate::{DatasetError, Place};

/// A format found by looking at a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The format.
    pub format: FileFormat,
    /// Whether its first record carries the time that makes a fixed schedule of a run.
    pub timed: bool,
}

/// What times the first record of a file carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// A timestamp that is not null.
    pub timestamp: bool,
    /// A delay that is not null.
    pub delay: bool,
    /// The format plays a fixed schedule by itself when there is a timestamp.
    pub promotes: bool,
}

/// Finds the format of `path` by its first record. A type that exists and is not built yet is
/// [`DatasetError::NotBuilt`]; none, or several that fit, is [`DatasetError::Undetected`].
pub fn detect(path: &Path) -> Result<Detected, DatasetError> {
    let look = Look::at(path)?;
    let format = one_that_fits(&look)?;
    if !format.is_built() {
        return Err(DatasetError::NotBuilt {
            what: format!("{}: the dataset type {}", path.display(), format.name()),
            help: "convert it to mooncake_trace, single_turn or multi_turn".into(),
        });
    }
    Ok(Detected { format: format.format, timed: format.promotes && (format.times)(&look).timestamp })
}

fn one_that_fits(look: &Look) -> Result<&'static Format, DatasetError> {
    let path = look.path.display();
    match &look.seen {
        Seen::Blank => {
            return Err(DatasetError::Empty(format!("{path}: the file is empty; nothing can be sent")));
        }
        Seen::Value => {
            return Err(DatasetError::invalid(
                &look.path,
                Place::Line(1),
                "",
                "a record must be a JSON object; put one object on each line",
            ));
        }
        Seen::Record(_, record) => {
            if let Some(format) = record.get("type").and_then(Value::as_str).and_then(formats::named) {
                return if (format.fits)(format, look) {
                    Ok(format)
                } else {
                    Err(DatasetError::Undetected(format!(
                        "{path}: the first record says \"type\": \"{name}\", but {name} cannot handle it; correct the \
                         record, or name the type with --custom-dataset-type",
                        name = format.name()
                    )))
                };
            }
        }
        Seen::Folder | Seen::Line(_) | Seen::Foreign | Seen::Columns(_) => {}
    }
    let mut fits = formats::formats().iter().filter(|format| (format.fits)(format, look));
    match (fits.next(), fits.next()) {
        (Some(format), None) => Ok(format),
        (Some(one), Some(other)) => Err(DatasetError::Undetected(format!(
            "{path}: its first record fits {} as well as {}; name the type with --custom-dataset-type",
            one.name(),
            other.name()
        ))),
        (None, _) => Err(nothing_fits(look)),
    }
}

fn nothing_fits(look: &Look) -> DatasetError {
    if let Seen::Columns(error) = &look.seen {
        return error.clone();
    }
    if let Seen::Line(line) = &look.seen
        && line.starts_with('{')
        && !look.is_json()
    {
        // Most likely a JSONL file with a slip in its first line.
        let reason = serde_json::from_str::<Value>(line).err().map(|error| error.to_string());
        return DatasetError::invalid(
            &look.path,
            Place::Line(1),
            "",
            format!("not valid JSON: {}", reason.unwrap_or_default()),
        );
    }
    DatasetError::Undetected(format!(
        "{}: no dataset type fits its first record; name the type with --custom-dataset-type",
        look.path.display()
    ))
}

/// What times the first record of `path`, a file of `format`, carries. Nothing for formats without times, and
/// for files whose first record is no object: opening such a file says what is wrong with it.
pub fn first_record_timing(path: &Path, format: FileFormat) -> Result<Timing, DatasetError> {
    let format = formats::format(format);
    formats::check_one_file(format, path)?;
    let times = (format.times)(&Look::at(path)?);
    Ok(Timing { timestamp: times.timestamp, delay: times.delay, promotes: format.promotes })
}
