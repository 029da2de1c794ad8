//! The files of a source under their own names, and nothing else beside them: what a loader is given.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use aiperf_source::{Local, Problem};

/// A directory of this process, gone with this value.
#[derive(Debug)]
pub(super) struct Directory(PathBuf);

/// Makes a directory that only this user may enter.
fn directory() -> io::Result<Directory> {
    loop {
        let random = RandomState::new().hash_one(std::process::id());
        let path = std::env::temp_dir().join(format!("aiperf-{random:016x}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(Directory(path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// The same, as a fault of the disk where it cannot be made.
pub(super) fn scratch() -> Result<Directory, Problem> {
    directory().map_err(|error| cannot_write(&std::env::temp_dir(), &error))
}

/// What is made for the time of this process cannot be.
pub(super) fn cannot_write(directory: &Path, error: &io::Error) -> Problem {
    Problem::CannotWrite { directory: directory.to_owned(), cause: error.to_string(), variable: "TMPDIR" }
}

impl Directory {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A path that a loader can read.
#[derive(Debug)]
pub(crate) struct View {
    path: PathBuf,
    /// Holds the links of a folder.
    directory: Option<Directory>,
}

impl View {
    /// Of files that are here: the file itself, or a folder that links exactly the chosen ones. A folder of a cache is
    /// never read as it lies, because other files may lie there, too.
    pub(super) fn of(local: &Local) -> io::Result<View> {
        match local.files.as_slice() {
            [file] if !local.folder => Ok(View { path: file.path.clone(), directory: None }),
            files => {
                let directory = directory()?;
                let mut made = directory.path().to_owned();
                for file in files {
                    let link = directory.path().join(&file.name);
                    if let Some(parent) = link.parent().filter(|parent| *parent != made) {
                        std::fs::create_dir_all(parent)?;
                        parent.clone_into(&mut made);
                    }
                    symlink(std::path::absolute(&file.path)?, link)?;
                }
                Ok(View { path: directory.path().to_owned(), directory: Some(directory) })
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory that is gone with this value, where there is one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_ref().map(Directory::path)
    }
}
