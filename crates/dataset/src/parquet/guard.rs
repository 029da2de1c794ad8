//! Damaged files: what is said of them, and the panics of decoders that they make.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::DatasetError;

pub(super) fn damaged(path: &Path, what: &str) -> DatasetError {
    DatasetError::Unreadable {
        path: path.to_owned(),
        reason: format!("damaged or unusual parquet data ({what}); fetch or write the file again"),
    }
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would be caught here and told as the error of a damaged file: a panic hook has
/// nothing to say or do then.
pub fn panic_is_caught() -> bool {
    GUARDED.get()
}

/// The decoders panic on some damaged files; that is an error like any other.
pub(crate) fn guarded<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, DatasetError>,
) -> Result<T, DatasetError> {
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    result.unwrap_or_else(|_| Err(damaged(path, "the decoder gave up")))
}
