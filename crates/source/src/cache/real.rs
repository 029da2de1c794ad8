//! Where the files of a cache are for sure, links followed: thousands of them lie in a few directories.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The real places of files below a root. A directory is looked up once.
#[derive(Debug, Default)]
pub(crate) struct Real(Mutex<HashMap<PathBuf, PathBuf>>);

impl Real {
    /// The regular file that `path` leads to, and its length; `None` where it leads out of `root`, or to none.
    pub(crate) fn file(&self, root: &Path, path: &Path) -> Option<u64> {
        let mut target = self.directory(path.parent()?)?.join(path.file_name()?);
        match std::fs::read_link(&target) {
            Ok(link) => {
                let next = target.parent()?.join(link);
                target = self.directory(next.parent()?)?.join(next.file_name()?);
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            Err(_) => return None,
        }
        let mut found = std::fs::symlink_metadata(&target).ok()?;
        if found.is_symlink() {
            target = target.canonicalize().ok()?;
            found = std::fs::symlink_metadata(&target).ok()?;
        }
        (found.is_file() && target.starts_with(self.directory(root)?)).then_some(found.len())
    }

    fn directory(&self, path: &Path) -> Option<PathBuf> {
        let known = |map: &HashMap<PathBuf, PathBuf>| map.get(path).cloned();
        if let Some(real) = known(&self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Some(real);
        }
        // One that is not there may be made later.
        let real = path.canonicalize().ok()?;
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.insert(path.to_owned(), real.clone());
        Some(real)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_where_its_links_lead_and_none_outside_the_root() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("root");
        let snapshot = root.join("snapshots/c/d");
        std::fs::create_dir_all(&snapshot).unwrap();
        std::fs::create_dir_all(root.join("blobs/shared")).unwrap();
        std::fs::write(root.join("blobs/b"), "12345").unwrap();
        std::fs::write(home.path().join("secret"), "1").unwrap();
        std::fs::write(root.join("blobs/shared/x"), "123").unwrap();
        symlink("shared/x", root.join("blobs/linked")).unwrap();
        std::fs::write(snapshot.join("plain"), "12").unwrap();
        symlink(home.path(), root.join("snapshots/away")).unwrap();
        for (name, to) in [
            ("link", Path::new("../../../blobs/b")),
            ("twice", Path::new("../../../blobs/linked")),
            ("out", Path::new("../../../../secret")),
            ("absolute", &home.path().join("secret")),
            ("inside", &root.join("blobs/b")),
            ("folder", Path::new("../../../blobs")),
            ("up", Path::new("..")),
            ("nowhere", Path::new("../../../blobs/none")),
            ("itself", Path::new("itself")),
        ] {
            symlink(to, snapshot.join(name)).unwrap();
        }
        let real = Real::default();
        let file = |name: &str| real.file(&root, &snapshot.join(name));
        for _ in 0..2 {
            assert_eq!(
                (file("plain"), file("link"), file("twice"), file("inside")),
                (Some(2), Some(5), Some(3), Some(5))
            );
            for name in
                ["out", "absolute", "folder", "up", "nowhere", "itself", "missing", "../../away/secret"]
            {
                assert_eq!(file(name), None, "{name}");
            }
        }
    }
}
