//! One process at a time fetches a file; the others wait and use what it fetched.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Problem;
use crate::events::Events;
use crate::settings::Patience;
use crate::temp::Root;

/// A lock that is held, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    /// `None` on a filesystem without locks.
    file: Option<File>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
    }
}

/// Takes the exclusive lock of `path` (`flock`, which the Python client takes too), waiting for whoever holds it.
pub(crate) async fn acquire(
    path: &Path,
    root: &Root,
    patience: &Patience,
    events: &Events,
    cannot_write: impl Fn(io::Error) -> Problem,
) -> Result<Lock, Problem> {
    const POLL: Duration = Duration::from_millis(50);
    let start = aiperf_clock::now();
    let mut said = 0;
    if let Some(directory) = path.parent() {
        root.directory(directory).map_err(&cannot_write)?;
    }
    loop {
        let file = open(path).map_err(&cannot_write)?;
        match file.try_lock() {
            Ok(()) => {
                // The path may name another file by now: then nobody else would see this lock.
                if same(&file, path) {
                    return Ok(Lock { file: Some(file) });
                }
                continue;
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(TryLockError::Error(error)) => {
                events.warn(format!("{} cannot be locked ({error}); going on without", path.display()));
                return Ok(Lock { file: None });
            }
        }
        let elapsed = aiperf_clock::now().saturating_since(start);
        if elapsed >= aiperf_clock::nanos(patience.lock) {
            return Err(Problem::Locked(PathBuf::from(path)));
        }
        let lines = elapsed / aiperf_clock::nanos(patience.say_again).max(1) + 1;
        if lines > said {
            said = lines;
            events.info(format!("waiting for another process that holds {}", path.display()));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC).bits();
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o664)
        .custom_flags(flags as i32)
        .open(path)
}

fn same(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(held), Ok(named)) => (held.dev(), held.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}
