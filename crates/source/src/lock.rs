//! One process at a time fetches a file; the others wait and use what it fetched.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Problem;
use crate::events::Events;
use crate::settings::Patience;
use crate::temp::Root;

/// Of the file, as the Python client has it.
const MODE: u32 = 0o664;

/// A lock that is held, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    /// `None` on a filesystem without locks.
    file: Option<File>,
}

impl Lock {
    /// Whether nobody else holds it; nothing tells where the filesystem has no locks.
    pub(crate) fn is_held(&self) -> bool {
        self.file.is_some()
    }
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
    acquire_by(File::try_lock, path, root, patience, events, cannot_write).await
}

async fn acquire_by(
    try_lock: impl Fn(&File) -> Result<(), TryLockError>,
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
        match try_lock(&file) {
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
                // Whatever comes of two at once is whole: files get their names when they are.
                events.warn_once(format!(
                    "files in {} cannot be locked ({error}); going on without, so that two runs at once may both download",
                    root.path.display()
                ));
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
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE)
        .custom_flags(flags as i32)
        .open(path)?;
    // Others of the group take it, too, whatever the mask of whoever makes it; that of somebody else is left as it is.
    if file.metadata().is_ok_and(|found| found.mode() & 0o777 != MODE) {
        let _ = file.set_permissions(Permissions::from_mode(MODE));
    }
    Ok(file)
}

fn same(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(held), Ok(named)) => (held.dev(), held.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use rustix::io::Errno;

    use super::*;
    use crate::events::Event;
    use crate::settings::Settings;

    fn patience() -> Patience {
        Settings::of(&BTreeMap::new()).unwrap().patience
    }

    #[test]
    fn where_there_are_no_locks_the_work_goes_on_after_one_warning() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for errno in [Errno::NOLCK, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS] {
            let told = Arc::new(Mutex::new(Vec::new()));
            let its_told = Arc::clone(&told);
            let events = Events::to(move |event| its_told.lock().unwrap().push(event));
            let root = Root { path: folder.path().join("cache"), mode: 0o700 };
            for name in ["a.lock", "b.lock"] {
                let lock = runtime.block_on(acquire_by(
                    |_| Err(TryLockError::Error(errno.into())),
                    &root.path.join("locks").join(name),
                    &root,
                    &patience(),
                    &events,
                    |error| panic!("{error}"),
                ));
                assert!(lock.unwrap().file.is_none());
            }
            let told = told.lock().unwrap();
            let [Event::Note { warning: true, text }] = told.as_slice() else { panic!("{told:?}") };
            assert!(text.contains("cannot be locked") && text.contains("going on without"), "{text}");
        }
    }

    #[test]
    fn a_lock_can_be_taken_by_others_of_the_group_whatever_the_mask() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let file = open(&path).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o664);
        file.set_permissions(Permissions::from_mode(0o600)).unwrap();
        assert_eq!(open(&path).unwrap().metadata().unwrap().mode() & 0o777, 0o664);
    }
}
