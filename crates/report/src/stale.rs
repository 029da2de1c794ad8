//! A folder that holds an earlier run: nothing of it may be taken for part of this one.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::temporary_name;
use crate::names::{FileNames, LOG_FILE, READY_MARKER};

/// Every file that a run into `dir` replaces or deletes, whatever it exports.
pub fn files_of_run(dir: &Path, names: &FileNames) -> Vec<PathBuf> {
    let others = [READY_MARKER, LOG_FILE].map(str::to_owned);
    let paths = names.all().into_iter().chain(others).map(|name| dir.join(name));
    paths.flat_map(|path| [temporary_name(&path), path]).collect()
}

/// Makes the folder and deletes what an earlier run left in it, the marker of its end first; before this run writes
/// anything. Were it killed, nobody takes files of two runs for those of one. A folder in the place of a file is an
/// error, and nothing is deleted.
pub fn prepare_dir(dir: &Path, names: &FileNames) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let others = [READY_MARKER, LOG_FILE].map(str::to_owned);
    if let Some(name) = names.all().into_iter().chain(others).find(|name| dir.join(name).is_dir()) {
        let what = format!("{name}, where a file is written or an earlier one deleted, is a folder");
        return Err(io::Error::new(io::ErrorKind::IsADirectory, what));
    }
    absent_is_fine(fs::remove_file(dir.join(READY_MARKER)))?;
    for name in names.all() {
        // What cannot be deleted is told at the end: it may be in the way of one export, and not of the others.
        let _ = fs::remove_file(dir.join(&name));
    }
    remove_unfinished(dir, names);
    Ok(())
}

/// Files in `dir` by which another run is known whose files have other names than `names`: they stay beside this one's.
pub fn other_runs(dir: &Path, names: &FileNames) -> Vec<String> {
    let own = names.console();
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let others = files.filter_map(|file| file.file_name().into_string().ok());
    // Each run writes one, whatever else it exports.
    let mut others: Vec<String> = others
        .filter(|name| name.ends_with("_console.txt") && *name != own && !name.starts_with('.'))
        .collect();
    others.sort_unstable();
    others
}

/// Deletes what stands under a temporary name: files that were not whole when their writer was killed, or is about to
/// be.
pub fn remove_unfinished(dir: &Path, names: &FileNames) {
    for name in names.all() {
        let _ = fs::remove_file(temporary_name(&dir.join(&name)));
    }
}

/// Deletes the files of an earlier run that this run did not write; after all exports. Files of other names stay.
pub(crate) fn remove_stale(dir: &Path, names: &FileNames, written: &[PathBuf]) -> io::Result<()> {
    let kept: HashSet<&Path> = written.iter().map(PathBuf::as_path).collect();
    for name in names.all() {
        let path = dir.join(&name);
        if !kept.contains(path.as_path()) {
            removed(&path)?;
        }
        // Left by a run that was killed while it wrote.
        removed(&temporary_name(&path))?;
    }
    for phase in ["phases/warmup", "phases/profiling", "phases"] {
        // Only empty folders go; one that holds anything else is not ours to judge.
        let _ = fs::remove_dir(dir.join(phase));
    }
    Ok(())
}

/// Deletes a file, if there is one. The error names it.
fn removed(path: &Path) -> io::Result<()> {
    absent_is_fine(fs::remove_file(path))
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
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

    const EARLIER: [&str; 5] = [
        "profile_export_raw.jsonl",
        "profile_export_aiperf.json",
        "inputs.json",
        "phases/warmup/profile_export_aiperf.csv",
        ".inputs.json.tmp",
    ];

    #[test]
    fn nothing_of_an_earlier_run_is_left_when_one_begins() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let names = FileNames::new(None);
        fs::create_dir_all(at("phases/warmup")).unwrap();
        for name in EARLIER.iter().chain(&["notes.txt", "foo.json", READY_MARKER]) {
            fs::write(at(name), "old").unwrap();
        }
        prepare_dir(dir.path(), &names).unwrap();
        for name in EARLIER.iter().chain(&[READY_MARKER]) {
            assert!(!at(name).exists(), "{name}");
        }
        assert!(at("notes.txt").exists() && at("foo.json").exists());
        // With a prefix its own names are meant.
        prepare_dir(dir.path(), &FileNames::new(Some("foo"))).unwrap();
        assert!(at("notes.txt").exists() && !at("foo.json").exists());
    }

    #[test]
    fn files_that_this_run_did_not_write_go_and_other_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("phases/warmup")).unwrap();
        for name in EARLIER.iter().chain(&["notes.txt"]) {
            fs::write(at(name), "old").unwrap();
        }
        remove_stale(dir.path(), &FileNames::new(None), &[at("profile_export_aiperf.json")]).unwrap();
        for name in EARLIER.iter().filter(|name| **name != "profile_export_aiperf.json") {
            assert!(!at(name).exists(), "{name}");
        }
        assert!(!at("phases").exists());
        assert!(at("profile_export_aiperf.json").exists() && at("notes.txt").exists());
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_is_told_before_anything_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("profile_export_raw.jsonl"), "old").unwrap();
        for name in ["inputs.json", "outputs.json", READY_MARKER] {
            fs::create_dir(dir.path().join(name)).unwrap();
            let error = prepare_dir(dir.path(), &FileNames::new(None)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
            assert!(error.to_string().starts_with(name), "{error}");
            fs::remove_dir(dir.path().join(name)).unwrap();
        }
        assert!(dir.path().join("profile_export_raw.jsonl").exists());
        fs::create_dir(dir.path().join(".inputs.json.tmp")).unwrap();
        let error = remove_stale(dir.path(), &FileNames::new(None), &[]).unwrap_err().to_string();
        assert!(error.contains(".inputs.json.tmp: "), "{error}");
    }

    #[test]
    fn a_run_with_other_names_is_found_by_its_report() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["profile_export_console.txt", "foo_console.txt", ".foo_console.txt.tmp", "notes.txt"] {
            fs::write(dir.path().join(name), "old").unwrap();
        }
        let others = |prefix| other_runs(dir.path(), &FileNames::new(prefix));
        assert_eq!(others(None), ["foo_console.txt"]);
        assert_eq!(others(Some("foo")), ["profile_export_console.txt"]);
        assert_eq!(others(Some("bar")), ["foo_console.txt", "profile_export_console.txt"]);
        assert!(other_runs(&dir.path().join("none"), &FileNames::new(None)).is_empty());
    }

    #[test]
    fn a_new_folder_is_made() {
        let dir = tempfile::tempdir().unwrap();
        prepare_dir(&dir.path().join("a/b"), &FileNames::new(None)).unwrap();
        assert!(dir.path().join("a/b").is_dir());
    }
}
