//! Files that are whole or not there: written under a temporary name in the same folder, then renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A whole file in the making. Nothing is visible under its name before [`AtomicFile::commit`]; dropped before
/// that, it leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    writer: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Opens the temporary file beside `path`.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<AtomicFile> {
        let path = path.into();
        let temporary = temporary_name(&path);
        let writer = BufWriter::with_capacity(64 * 1024, File::create(&temporary)?);
        Ok(AtomicFile { path, temporary, writer: Some(writer) })
    }

    /// Writes what is buffered and gives the file its name.
    pub fn commit(mut self) -> io::Result<PathBuf> {
        if let Some(mut writer) = self.writer.take() {
            let renamed = writer.flush().and_then(|()| fs::rename(&self.temporary, &self.path));
            if let Err(error) = renamed {
                // Whatever is still buffered failed to be written once; dropping the writer must not try again.
                drop(writer.into_parts());
                let _ = fs::remove_file(&self.temporary);
                return Err(error);
            }
        }
        Ok(std::mem::take(&mut self.path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Err(io::Error::other("the file was closed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            drop(writer.into_parts());
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// What helps when something cannot be written, where `flag` says in which place.
pub fn remedy(cause: &io::Error, flag: &str) -> String {
    use io::ErrorKind;
    match cause.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("free space there, or choose another place with {flag}")
        }
        ErrorKind::FileTooLarge => {
            format!("raise the limit of file sizes (ulimit -f), or choose another place with {flag}")
        }
        ErrorKind::InvalidFilename => format!("choose a shorter name with {flag}"),
        ErrorKind::IsADirectory => format!("move the folder away, or choose another place with {flag}"),
        _ => format!("choose a place that can be written with {flag}"),
    }
}

/// Writes `bytes` to `path`, whole or not at all.
pub fn write_atomic(path: impl Into<PathBuf>, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// Which file a path leads to, however it is spelled and linked: its device and its number there. `None` where there
/// is none.
pub fn file_id(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Where a file is kept until it is whole.
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_only_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(file.commit().unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_given_up_leaves_the_old_one_and_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_known_under_each_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "x").unwrap();
        fs::write(at("other"), "x").unwrap();
        fs::hard_link(at("a"), at("hard")).unwrap();
        std::os::unix::fs::symlink("a", at("soft")).unwrap();
        let id = file_id(&at("a"));
        assert!(id.is_some());
        for name in ["hard", "soft", "./a"] {
            assert_eq!(file_id(&at(name)), id, "{name}");
        }
        assert_ne!(file_id(&at("other")), id);
        assert_eq!(file_id(&at("none")), None);
    }

    #[test]
    fn a_full_disk_is_an_error_and_keeps_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink("/dev/full", dir.path().join(".a.json.tmp")).unwrap();
        let error = write_atomic(&path, b"new").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
}
