//! Shards of which only some ranges are fetched.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aiperf_dataset::public::{Fault, ShardBytes};
use aiperf_source::{RangedFile, SourceError};

/// What happened to the shards of a set.
#[derive(Debug, Default)]
pub(super) struct Met {
    /// Bytes that came over the network.
    pub(super) fetched: AtomicU64,
    lost: Mutex<Option<SourceError>>,
}

impl Met {
    pub(super) fn lost(&self) -> Option<SourceError> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The bytes of a shard, each range brought when it is first read.
#[derive(Debug)]
pub(super) struct Ranged {
    pub(super) file: RangedFile,
    /// The repository, as it is named in errors.
    pub(super) origin: String,
    pub(super) met: Arc<Met>,
}

impl Ranged {
    /// Counts what came since `before`, and keeps an error for whoever tells how the program ends.
    fn told(&self, before: u64, result: Result<(), SourceError>) -> std::io::Result<()> {
        self.met.fetched.fetch_add(self.file.fetched() - before, Ordering::Relaxed);
        result.map_err(|mut error| {
            error.reference.clone_from(&self.origin);
            let fault = Fault::new(error.problem.to_string(), error.problem.fix());
            *self.met.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            std::io::Error::other(fault)
        })
    }
}

impl ShardBytes for Ranged {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read_at(&self, start: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        let before = self.file.fetched();
        self.told(before, self.file.read_at(start, buffer))
    }

    fn expect(&self, ranges: &[Range<u64>]) -> std::io::Result<()> {
        let before = self.file.fetched();
        self.told(before, self.file.bring(ranges))
    }

    fn here(&self, start: u64) -> u64 {
        self.file.here(start)
    }
}
