//! Where fetched files stay. Each cache has its own layout; what is common is what a transfer needs of it.

use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digests;
use crate::error::Problem;
use crate::names;
use crate::plan::Plan;
use crate::protocol::Entry;
use crate::temp::{Root, TempFile};

/// A cache. A hit downloads nothing.
pub(crate) trait Store {
    /// A file of the plan that is in the cache and looks whole: where it lies.
    fn hit(&self, plan: &Plan, file: &Entry) -> Option<PathBuf>;

    /// What must be locked while a file is fetched (`None`: while any file of the plan is).
    fn lock(&self, plan: &Plan, file: Option<&Entry>) -> Option<PathBuf>;

    /// A file to fetch into, on the filesystem of its later place. What killed runs left of it goes, where the caller
    /// is `alone`: holds the lock of that file.
    fn temp(&self, plan: &Plan, file: &Entry, alone: bool) -> io::Result<TempFile>;

    /// Puts a verified file in its place.
    fn publish(&self, plan: &Plan, file: &Entry, temp: TempFile, digests: &Digests) -> io::Result<PathBuf>;

    /// Puts aside what a hit turned out to be: not what was promised.
    fn discard(&self, plan: &Plan, file: &Entry, path: &Path) -> io::Result<()>;

    /// Notes that every file of the plan is there, with its digest.
    fn finish(&self, plan: &Plan, digests: &[Digests]) -> Result<(), Problem>;

    /// The digest of a file of the plan that is on record, so that a hit needs no reading.
    fn recorded(&self, plan: &Plan, file: &Entry) -> Option<String>;

    /// Whether a file that is here is still the one on record, as far as can be told without reading it.
    fn is_untouched(&self, _: &Plan, _: &Entry) -> bool {
        true
    }

    /// Notes that the bytes of a file that lies at `path` were read and are what they should be.
    fn note(&self, _: &Entry, _path: &Path) {}

    /// What lies in the place of a file of the plan, whole or not.
    fn remains(&self, plan: &Plan, file: &Entry) -> Option<PathBuf> {
        self.hit(plan, file)
    }

    /// What lies where a file or its record belongs and can be no copy of it, with the reason.
    fn obstacle(&self, _: &Plan, _: &Entry) -> Option<Problem> {
        None
    }

    /// The variable that moves this cache.
    fn variable(&self) -> &'static str;

    /// Its root.
    fn root(&self) -> Root;

    /// Whether names that differ in case alone are one name there.
    fn folds_case(&self) -> bool {
        names::folds_case(&self.root().path)
    }

    /// Whether it holds copies: what is wrong with one is put right by fetching it again.
    fn is_cache(&self) -> bool {
        true
    }
}
