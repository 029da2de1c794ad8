//! What the first record tells of data before they are downloaded.

use std::cell::OnceCell;
use std::path::Path;

use aiperf_config::{FileFormat, InputColumns};
use aiperf_source::{Plan, SourceError, Sources};

use super::{by_reference, fetch, formats, is_columnar, on_first_lines, timing};
use crate::settle::{DatasetProbe as _, Files};

/// Of a file of columns too, names and values of one record are within so many lines.
const LINES: usize = 2;

/// What is known once the first record was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstRecord {
    /// Declared, or else found.
    pub(crate) format: Option<FileFormat>,
    /// Whether it makes a fixed schedule of a run.
    pub(crate) promotes: Option<bool>,
    /// Why that is not known, and the next step.
    pub(crate) fault: Option<String>,
}

/// Reads the first record of a plan, from as few bytes as it takes. Where no format is declared, the one that it has is
/// found, if it can be without a download.
pub(crate) fn first_record(sources: &Sources, plan: &Plan) -> Result<FirstRecord, SourceError> {
    let columns = InputColumns::default();
    if let Some(format) = plan.format.and_then(formats::of_name) {
        let timing = timing(sources, plan, &OnceCell::new(), format, &columns)?;
        let promotes = timing.as_ref().ok().map(|timing| timing.promotes && timing.timestamp);
        return Ok(FirstRecord { format: Some(format), promotes, fault: timing.err() });
    }
    let detect = |path: &Path| Files.detect(path, &columns).map_err(|fault| by_reference(&fault, path, plan));
    let is_here = sources.present(plan)?.iter().all(|file| file.cached);
    // Columns make a schedule only where somebody says that they are a trace.
    let by_name = plan.files().next().is_some_and(|(name, _)| is_columnar(name));
    let seen = if by_name { None } else { on_first_lines(sources, plan, LINES, detect)? };
    let seen = match seen {
        Some(Ok(found)) => Some(Ok(found)),
        // What is no file of lines may tell as a whole.
        _ if is_here => Some(detect(fetch(sources, plan)?.view.path())),
        seen => seen,
    };
    let (found, fault) = match seen {
        Some(Ok(found)) => (Some(found), None),
        seen => (None, seen.and_then(Result::err)),
    };
    Ok(FirstRecord {
        format: found.as_ref().map(|found| found.format),
        promotes: if by_name { Some(false) } else { found.map(|found| found.promotes) },
        fault,
    })
}
