//! A folder that holds an earlier run: nothing of it may be taken for part of this one.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::temporary_name;
use crate::names::{FileNames, READY_MARKER};

/// Makes the folder and deletes the marker that an earlier run finished; before the first request.
pub fn prepare_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    absent_is_fine(fs::remove_file(dir.join(READY_MARKER)))
}

/// Deletes the files of an earlier run that this run did not write; after all exports. Files of other names stay.
pub(crate) fn remove_stale(dir: &Path, names: &FileNames, written: &[PathBuf]) -> io::Result<()> {
    let kept: HashSet<&Path> = written.iter().map(PathBuf::as_path).collect();
    for name in names.all() {
        let path = dir.join(&name);
        if !kept.contains(path.as_path()) {
            absent_is_fine(fs::remove_file(&path))?;
        }
        // Left by a run that was killed while it wrote.
        absent_is_fine(fs::remove_file(temporary_name(&path)))?;
    }
    for phase in ["phases/warmup", "phases/profiling", "phases"] {
        // Only empty folders go; one that holds anything else is not ours to judge.
        let _ = fs::remove_dir(dir.join(phase));
    }
    Ok(())
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_earlier_run_go_and_other_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("phases/warmup")).unwrap();
        let earlier = [
            "profile_export_raw.jsonl",
            "inputs.json",
            "phases/warmup/profile_export_aiperf.csv",
            ".inputs.json.tmp",
        ];
        for name in earlier.iter().chain(&["profile_export_aiperf.json", "notes.txt", READY_MARKER]) {
            fs::write(at(name), "old").unwrap();
        }
        prepare_dir(dir.path()).unwrap();
        assert!(!at(READY_MARKER).exists());
        assert!(at("inputs.json").exists(), "nothing else goes before the run is over");

        remove_stale(dir.path(), &FileNames::new(None), &[at("profile_export_aiperf.json")]).unwrap();
        for name in earlier {
            assert!(!at(name).exists(), "{name}");
        }
        assert!(!at("phases").exists());
        assert!(at("profile_export_aiperf.json").exists() && at("notes.txt").exists());
    }

    #[test]
    fn a_new_folder_is_made() {
        let dir = tempfile::tempdir().unwrap();
        prepare_dir(&dir.path().join("a/b")).unwrap();
        assert!(dir.path().join("a/b").is_dir());
    }
}
