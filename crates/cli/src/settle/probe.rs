//! What settling must know of a data file.

use std::path::Path;

use aiperf_config::{FileFormat, InputColumns};
use aiperf_source::{Ask, Reference};

use crate::usage::UsageError;

/// A format found by looking at a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The format.
    pub format: FileFormat,
    /// Where its fields are: as it was said, or under common names.
    pub columns: InputColumns,
    /// Whether its first record makes a fixed schedule of a run.
    pub promotes: bool,
}

/// What times the first record of a file carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// A timestamp that is not null.
    pub timestamp: bool,
    /// A delay that is not null.
    pub delay: bool,
    /// The format makes a fixed schedule of a run by itself when there is a timestamp.
    pub promotes: bool,
}

/// What the access check of a reference found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The format, by the flag or the publisher; `None` when the data must tell.
    pub format: Option<FileFormat>,
    /// The publisher's block size.
    pub block_size: Option<u64>,
    /// Whether the data are a folder.
    pub is_folder: bool,
}

/// Looks at data files. Errors are messages that name the file and the next step.
pub trait DatasetProbe {
    /// Finds the format of a file or folder whose fields may be in other columns.
    fn detect(&self, path: &Path, columns: &InputColumns) -> Result<Found, String>;

    /// What times the first record of a file or folder of this format carries.
    fn first_record_timing(
        &self,
        path: &Path,
        format: FileFormat,
        columns: &InputColumns,
    ) -> Result<Timing, String>;

    /// The same for a run that was told to go by recorded times: where the data are elsewhere, whether there are any is
    /// only seen once they are here.
    fn recorded_times(
        &self,
        path: &Path,
        format: FileFormat,
        columns: &InputColumns,
    ) -> Result<Timing, String> {
        self.first_record_timing(path, format, columns)
    }

    /// Checks a reference; what is asked of its path later is answered from there.
    fn access(&self, reference: &Reference, ask: &Ask<'_>) -> Result<Access, UsageError> {
        let _ = ask;
        Err(UsageError::Input { what: format!("{reference} cannot be read here"), fix: None })
    }
}

/// Looks at them through the dataset room.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files;

impl DatasetProbe for Files {
    fn detect(&self, path: &Path, columns: &InputColumns) -> Result<Found, String> {
        let found = aiperf_dataset::detect(path, columns).map_err(|error| error.to_string())?;
        Ok(Found { format: found.format, columns: found.columns, promotes: found.timed })
    }

    fn first_record_timing(
        &self,
        path: &Path,
        format: FileFormat,
        columns: &InputColumns,
    ) -> Result<Timing, String> {
        let timing =
            aiperf_dataset::first_record_timing(path, format, columns).map_err(|error| error.to_string())?;
        Ok(Timing { timestamp: timing.timestamp, delay: timing.delay, promotes: timing.promotes })
    }
}
