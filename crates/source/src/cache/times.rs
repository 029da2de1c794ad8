//! When a file was written: what tells, without reading it, that its bytes may be others.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};

/// Both times of a file, nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// When it was last written (its mtime): where that changes, its bytes may have, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) modified: Option<u64>,
    /// The same of anything about it (its ctime): who writes it and puts the other time back changes this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<u64>,
}

impl Times {
    pub(crate) fn of(found: &Metadata) -> Times {
        let of = |seconds: i64, nanos: i64| {
            let seconds = u64::try_from(seconds).ok()?;
            seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(nanos).ok()?)
        };
        Times {
            modified: of(found.mtime(), found.mtime_nsec()),
            changed: of(found.ctime(), found.ctime_nsec()),
        }
    }

    /// Whether a file with these times was left alone since it had those. A record of an earlier version of this
    /// program does not have both.
    pub(crate) fn are_still(&self, now: &Times) -> bool {
        self.changed.is_some() && self == now
    }
}
