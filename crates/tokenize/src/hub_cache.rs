//! Where hub clients keep what they downloaded: `models--ORG--NAME/refs/REVISION` holds a commit,
//! `models--ORG--NAME/snapshots/COMMIT/` its files.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// A repository at one commit in the cache.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) folder: PathBuf,
    pub(crate) commit: String,
}

/// The cache folders that the environment names, first match first.
pub(crate) fn folders() -> Vec<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("HF_HUB_CACHE")
        .or_else(|| set("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| set("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
        .or_else(|| env::home_dir().map(|home| home.join(".cache/huggingface/hub")));
    folder.map(|folder| expand_home(&folder)).into_iter().collect()
}

/// `~/…` as a path below the home folder.
pub(crate) fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// Finds a revision of a repository; else the places that were looked at.
pub(crate) fn find(folders: &[PathBuf], name: &str, revision: &str) -> Result<Snapshot, Vec<PathBuf>> {
    let mut searched = Vec::new();
    for folder in folders {
        let repository = folder.join(format!("models--{}", name.replace('/', "--")));
        let commit = if is_commit(revision) {
            revision.to_owned()
        } else {
            let reference = repository.join("refs").join(revision);
            let Ok(text) = fs::read_to_string(&reference) else {
                searched.push(reference);
                continue;
            };
            text.trim().to_owned()
        };
        let snapshot = repository.join("snapshots").join(&commit);
        if !commit.is_empty() && snapshot.is_dir() {
            return Ok(Snapshot { folder: snapshot, commit });
        }
        searched.push(snapshot);
    }
    Err(searched)
}

fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_without_its_snapshot_is_no_hit() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join("models--org--name");
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let folders = [folder.path().to_owned()];
        assert_eq!(find(&folders, "org/name", "main"), Err(vec![repository.join("refs/main")]));
        fs::create_dir_all(repository.join("refs")).unwrap();
        fs::write(repository.join("refs/main"), format!("{commit}\n")).unwrap();
        let snapshot = repository.join("snapshots").join(commit);
        assert_eq!(find(&folders, "org/name", "main"), Err(vec![snapshot.clone()]));
        fs::create_dir_all(&snapshot).unwrap();
        let hit = Snapshot { folder: snapshot, commit: commit.to_owned() };
        assert_eq!(find(&folders, "org/name", "main").as_ref(), Ok(&hit));
        assert_eq!(find(&folders, "org/name", commit), Ok(hit));
        assert!(find(&folders, "org/name", &"f".repeat(40)).is_err());
        assert!(find(&folders, "org/other", commit).is_err());
    }
}
