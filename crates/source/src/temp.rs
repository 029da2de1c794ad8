//! Files that are not there until they are whole.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::error::Problem;

/// Hexadecimal digits that make the name of a file its own.
const RANDOM: usize = 16;

/// A file under a name of its own; gone with this value unless it is put in place.
#[derive(Debug)]
pub(crate) struct TempFile {
    path: PathBuf,
    file: File,
    placed: bool,
}

impl TempFile {
    /// Makes one in `directory`, which must be on the filesystem of its later place. Never an existing file, never
    /// through a link.
    pub(crate) fn create(directory: &Path, stem: &str, ending: &str) -> io::Result<TempFile> {
        TempFile::with_mode(directory, stem, ending, 0o644)
    }

    fn with_mode(directory: &Path, stem: &str, ending: &str, mode: u32) -> io::Result<TempFile> {
        loop {
            let random = RandomState::new().hash_one(std::process::id());
            let path = directory.join(format!("{stem}{random:0RANDOM$x}{ending}"));
            match File::options().read(true).write(true).create_new(true).mode(mode).open(&path) {
                Ok(file) => return Ok(TempFile { path, file, placed: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Its name while it is not whole.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its place, replacing what is there. Its bytes must be on the disk by then.
    pub(crate) fn place(mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, path)?;
        self.placed = true;
        sync_directory(path);
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.placed {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Writes a small file so that no reader sees a part of it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use io::Write as _;
    let directory = path.parent().ok_or_else(|| io::Error::other("a file lies in a directory"))?;
    std::fs::create_dir_all(directory)?;
    let temp = TempFile::create(directory, ".", ".tmp")?;
    temp.file().write_all(bytes)?;
    temp.file().sync_all()?;
    temp.place(path)
}

/// Replaces a file that only its owner may read.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use io::Write as _;
    let directory = path.parent().ok_or_else(|| io::Error::other("a file lies in a directory"))?;
    let temp = TempFile::with_mode(directory, ".", ".tmp", 0o600)?;
    temp.file().write_all(bytes)?;
    temp.file().sync_all()?;
    temp.place(path)
}

/// A cache, as its directories are made.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    /// Mode of new directories.
    pub(crate) mode: u32,
}

impl Root {
    /// Makes a directory of the cache, unless a link leads it out of there.
    pub(crate) fn directory(&self, path: &Path) -> io::Result<()> {
        let make = |path: &Path| std::fs::DirBuilder::new().recursive(true).mode(self.mode).create(path);
        make(&self.path)?;
        let there = path.ancestors().find(|above| above.symlink_metadata().is_ok()).unwrap_or(&self.path);
        if !there.canonicalize()?.starts_with(self.path.canonicalize()?) {
            return Err(io::Error::other(format!("{} leads out of the cache", there.display())));
        }
        make(path)
    }
}

/// Makes a rename last; a filesystem that cannot is left alone.
fn sync_directory(path: &Path) {
    if let Some(directory) = path.parent()
        && let Ok(directory) = File::open(directory)
    {
        let _ = directory.sync_all();
    }
}

/// Why what lies at `path` can be no file of a cache, where something does.
/// `variable` moves the cache.
pub(crate) fn obstacle(path: &Path, variable: &'static str) -> Option<Problem> {
    match File::open(path).and_then(|file| file.metadata()) {
        Ok(found) if found.is_dir() => {
            Some(Problem::CannotRead { path: path.to_owned(), cause: "it is a directory".into() })
        }
        Ok(_) => None,
        // What has no place is told by whoever cannot write it.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
        Err(error) => {
            let cause = error.to_string();
            // A directory that may not be entered hides what lies in it.
            let seen = path.ancestors().find(|above| above.symlink_metadata().is_ok()).unwrap_or(path);
            Some(if seen == path {
                Problem::CannotRead { path: path.to_owned(), cause }
            } else {
                Problem::CannotEnter { directory: seen.to_owned(), cause, variable }
            })
        }
    }
}

/// What a file is to whoever sweeps its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// Nothing that this program made under such a name.
    No,
    /// Of a run that may go on.
    Perhaps,
    /// Of a run that is over: the lock that it held is held here.
    Yes,
}

/// Whether [`TempFile::create`] makes names like this one; `stem` is `None` for any that ends in a dot.
pub(crate) fn is_temp(name: &str, stem: Option<&str>, ending: &str) -> bool {
    let Some(begin) = name.strip_suffix(ending) else { return false };
    let Some(at) = begin.len().checked_sub(RANDOM) else { return false };
    let (Some(found), Some(random)) = (begin.get(..at), begin.get(at..)) else { return false };
    random.bytes().all(|byte| byte.is_ascii_hexdigit())
        && stem.map_or_else(|| found.ends_with('.'), |stem| stem == found)
}

/// Removes files of runs that were killed: those in `directory` that are left for sure, and those that may be once
/// they are untouched for a day.
pub(crate) fn sweep(directory: &Path, is_left: impl Fn(&str) -> Leftover) {
    const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;
    let now = aiperf_clock::wall(aiperf_clock::now());
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let leftover = entry.file_name().to_str().map_or(Leftover::No, &is_left);
        let old = || {
            entry.metadata().and_then(|metadata| metadata.modified()).is_ok_and(|modified| {
                modified
                    .duration_since(std::time::UNIX_EPOCH)
                    .is_ok_and(|since| aiperf_clock::nanos(since).saturating_add(DAY_NS) < now)
            })
        };
        if leftover == Leftover::Yes || (leftover == Leftover::Perhaps && old()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_placed_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let temp = TempFile::create(dir.path(), "x.", ".incomplete").unwrap();
        let path = temp.path().to_owned();
        assert!(path.exists());
        drop(temp);
        assert!(!path.exists());
        write(&dir.path().join("a/b"), b"1").unwrap();
        write(&dir.path().join("a/b"), b"2").unwrap();
        assert_eq!(std::fs::read(dir.path().join("a/b")).unwrap(), b"2");
        assert_eq!(std::fs::read_dir(dir.path().join("a")).unwrap().count(), 1);
    }

    #[test]
    fn only_files_of_yesterday_are_swept_and_those_whose_lock_is_held() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["old.incomplete", "new.incomplete", "mine.incomplete", "old.blob"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        for name in ["old.incomplete", "old.blob"] {
            let file = File::options().write(true).open(dir.path().join(name)).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1)).unwrap();
        }
        sweep(dir.path(), |name| match name {
            "mine.incomplete" => Leftover::Yes,
            _ if name.ends_with(".incomplete") => Leftover::Perhaps,
            _ => Leftover::No,
        });
        let mut left: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["new.incomplete", "old.blob"]);
        let temp = TempFile::create(dir.path(), "stem.", ".incomplete").unwrap();
        let name = temp.path().file_name().unwrap().to_str().unwrap();
        assert!(is_temp(name, Some("stem."), ".incomplete") && is_temp(name, None, ".incomplete"), "{name}");
        for other in
            [&name[1..], &name[..name.len() - 1], "stem.incomplete", "é.incomplete", ".incomplete", ""]
        {
            assert!(!is_temp(other, Some("stem."), ".incomplete"), "{other}");
        }
    }
}
