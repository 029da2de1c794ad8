//! A folder that holds an earlier run: nothing of it may be taken for part of this one.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::temporary_name;
use crate::names::{FileNames, LOG_FILE, READY_MARKER};

/// How the name of a report ends.
const REPORT_ENDING: &str = "_console.txt";

/// Every file that a run into `dir` replaces or deletes, whatever it exports.
pub fn files_of_run(dir: &Path, names: &FileNames) -> Vec<PathBuf> {
    let others = replaced_runs(dir, names);
    let others = others.iter().flat_map(|(_, names)| names.chosen()).chain(fixed());
    let paths = names.all().into_iter().chain(others).map(|name| dir.join(name));
    paths.flat_map(|path| [temporary_name(&path), path]).collect()
}

/// Marker and log, which are those of the last run in a folder.
fn fixed() -> [String; 2] {
    [READY_MARKER, LOG_FILE].map(str::to_owned)
}

/// Makes a folder, and those above it. The error names what stands in the place of one.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    is_no_file(dir)?;
    fs::create_dir_all(dir)
}

/// Refuses a file in the place of a folder, or of one above it.
fn is_no_file(dir: &Path) -> io::Result<()> {
    let Some(found) = dir.ancestors().find(|path| path.symlink_metadata().is_ok()) else { return Ok(()) };
    if found.is_dir() {
        return Ok(());
    }
    let what = if found.exists() { "a file" } else { "a link to nothing" };
    let text = format!("{} is {what}, and must be a folder", found.display());
    Err(io::Error::new(io::ErrorKind::NotADirectory, text))
}

/// Makes the folder and deletes what an earlier run left in it, the marker of its end first; before this run writes
/// anything. Were it killed, nobody takes files of two runs for those of one. A run with another prefix goes whole where
/// one of its files has the name of one of this run; the report of each such run is given. A folder in the place of a
/// file, or a file in the place of a folder, is an error, and nothing is deleted.
pub fn prepare_dir(dir: &Path, names: &FileNames) -> io::Result<Vec<String>> {
    make_dir(dir)?;
    for folder in ["logs", "phases/warmup", "phases/profiling"] {
        is_no_file(&dir.join(folder))?;
    }
    if let Some(name) = names.all().into_iter().chain(fixed()).find(|name| dir.join(name).is_dir()) {
        let what = format!("{name}, where a file is written or an earlier one deleted, is a folder");
        return Err(io::Error::new(io::ErrorKind::IsADirectory, what));
    }
    let replaced = replaced_runs(dir, names);
    absent_is_fine(fs::remove_file(dir.join(READY_MARKER)))?;
    for (report, names) in &replaced {
        // Its report goes last: it is what the run is known by, should one of the others not go.
        for name in names.chosen().iter().filter(|name| *name != report).chain([report]) {
            let path = dir.join(name);
            removed(&path)?;
            removed(&temporary_name(&path))?;
        }
    }
    for name in names.all() {
        // What cannot be deleted is told at the end: it may be in the way of one export, and not of the others.
        let _ = fs::remove_file(dir.join(&name));
    }
    remove_unfinished(dir, names);
    Ok(replaced.into_iter().map(|(report, _)| report).collect())
}

/// Files in `dir` by which another run is known whose files have other names than `names`: they stay beside this one's.
pub fn other_runs(dir: &Path, names: &FileNames) -> Vec<String> {
    let own = names.console();
    reports(dir).into_iter().filter(|name| *name != own).collect()
}

/// The reports in a folder, in order. Each run writes one, whatever else it exports.
fn reports(dir: &Path) -> Vec<String> {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let mut reports: Vec<String> =
        names.filter(|name| name.ends_with(REPORT_ENDING) && !name.starts_with('.')).collect();
    reports.sort_unstable();
    reports
}

/// The runs in a folder: the report of each, and its names.
fn runs(dir: &Path) -> Vec<(String, FileNames)> {
    let usual = FileNames::new(None);
    let has_summary =
        |names: &FileNames| dir.join(names.summary_json()).exists() || dir.join(names.summary_csv()).exists();
    let mut runs = Vec::new();
    for report in reports(dir) {
        let prefix = report.strip_suffix(REPORT_ENDING).filter(|prefix| !prefix.is_empty());
        let Some(names) = prefix.map(|prefix| FileNames::new(Some(prefix))) else { continue };
        // A run without a prefix has the report of one with the prefix `profile_export`: their summaries differ.
        if report == usual.console() {
            let is_prefixed = has_summary(&names);
            if is_prefixed {
                runs.push((report.clone(), names));
            }
            // Another prefix gives this name to a summary as well.
            let of_another = dir.join(format!("profile_export_aiperf{REPORT_ENDING}")).exists();
            if has_summary(&usual) && !of_another || !is_prefixed {
                runs.push((report, usual.clone()));
            }
        } else {
            runs.push((report, names));
        }
    }
    runs
}

/// The runs with another prefix that cannot stay beside one with `names`: a file of theirs has the name of one of that
/// run, or of another run that goes.
fn replaced_runs(dir: &Path, names: &FileNames) -> Vec<(String, FileNames)> {
    let mut others: Vec<_> = runs(dir).into_iter().filter(|(_, other)| other != names).collect();
    let mut taken: HashSet<String> = names.chosen().into_iter().collect();
    let mut replaced = Vec::new();
    while let Some(at) =
        others.iter().position(|(_, other)| other.chosen().iter().any(|name| taken.contains(name)))
    {
        let run = others.remove(at);
        taken.extend(run.1.chosen());
        replaced.push(run);
    }
    replaced
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
            assert!(crate::remedy(&error, "--artifact-dir").starts_with("move the folder away, or"));
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
    fn a_run_with_a_file_of_the_same_name_goes_whole_and_others_stay() {
        // The prefix of the earlier run, what it left, the prefix of the new one, whether they can stay side by side.
        for (earlier, later, goes) in [
            (None, Some("profile_export"), true),
            (Some("profile_export"), None, true),
            (None, Some("profile_export_raw"), true),
            (None, Some("profile_export_aiperf"), true),
            (Some("profile_export_aiperf"), None, true),
            (Some("foo"), Some("foo_raw"), true),
            (Some("foo_raw"), Some("foo"), true),
            (Some("foo"), Some("foo_timeslices"), true),
            (Some("foo"), Some("foo_second"), false),
            (None, Some("foo"), false),
            (Some("profile_export_aiperf"), Some("profile_export"), false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let [before, after] = [earlier, later].map(FileNames::new);
            for name in before.chosen().iter().map(String::as_str).chain(["notes.txt", "other_console.txt"]) {
                fs::write(dir.path().join(name), "old").unwrap();
            }
            let listed = files_of_run(dir.path(), &after);
            let replaced = prepare_dir(dir.path(), &after).unwrap();
            assert_eq!(replaced == [before.console()], goes, "{earlier:?} {later:?}: {replaced:?}");
            for name in before.chosen() {
                let path = dir.path().join(&name);
                assert_eq!(path.exists(), !goes, "{earlier:?} {later:?}: {name}");
                assert_eq!(listed.contains(&path), goes, "{earlier:?} {later:?}: {name}");
            }
            assert!(dir.path().join("notes.txt").exists() && dir.path().join("other_console.txt").exists());
        }
    }

    #[test]
    fn a_run_with_the_same_prefix_is_no_other_one() {
        for prefix in [None, Some("profile_export"), Some("foo")] {
            let dir = tempfile::tempdir().unwrap();
            let names = FileNames::new(prefix);
            for name in names.chosen() {
                fs::write(dir.path().join(name), "old").unwrap();
            }
            assert!(prepare_dir(dir.path(), &names).unwrap().is_empty(), "{prefix:?}");
        }
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_is_told_before_anything_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("profile_export_raw.jsonl"), "old").unwrap();
        let fault = |dir: &Path| {
            let error = prepare_dir(dir, &FileNames::new(None)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
            error.to_string()
        };
        for name in ["logs", "phases", "phases/warmup", "phases/profiling"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "mine").unwrap();
            let said = format!("{} is a file, and must be a folder", path.display());
            assert_eq!(fault(dir.path()), said);
            assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
            fs::remove_file(path).unwrap();
        }
        let file = dir.path().join("profile_export_raw.jsonl");
        let said = format!("{} is a file, and must be a folder", file.display());
        assert_eq!(fault(&file), said);
        assert_eq!(fault(&file.join("a/b")), said);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("none", &link).unwrap();
        assert!(fault(&link).ends_with("link is a link to nothing, and must be a folder"));
        assert!(file.exists());
    }

    #[test]
    fn a_new_folder_is_made() {
        let dir = tempfile::tempdir().unwrap();
        prepare_dir(&dir.path().join("a/b"), &FileNames::new(None)).unwrap();
        assert!(dir.path().join("a/b").is_dir());
    }
}
