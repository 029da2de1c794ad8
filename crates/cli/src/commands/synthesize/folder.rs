//! The folder that a workload of several files is written to: hidden until it is whole.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::super::interrupt::Unfinished;
use super::super::output;
use crate::exit::Failure;
use crate::print;

/// How the names of hidden folders end.
const HIDDEN: &str = ".tmp";

/// Where the folder of a run will be. Nothing is made yet.
pub(super) struct Place {
    parent: PathBuf,
    name: String,
    unfinished: Arc<Unfinished>,
}

impl Place {
    /// In `parent`, which may not be there either; `stem` and the time are the name.
    pub(super) fn of_run(parent: &Path, stem: &str) -> Place {
        let utc = aiperf_clock::format_utc(aiperf_clock::wall(aiperf_clock::now()));
        let time: String = utc[..19].chars().filter(char::is_ascii_digit).collect();
        let name = format!("{stem}_{}-{}", &time[..8], &time[8..]);
        let hidden = parent.join(format!(".{name}.{}{HIDDEN}", std::process::id()));
        Place { parent: parent.to_owned(), name, unfinished: Unfinished::folder(&hidden) }
    }

    /// What is to be taken away if the run does not come to its end.
    pub(super) fn unfinished(&self) -> &Arc<Unfinished> {
        &self.unfinished
    }

    /// Makes it, and removes what runs that were killed have left beside it.
    pub(super) fn make(self) -> Result<Folder, Failure> {
        let mut folder = Folder { place: self, claim: None, published: false };
        folder.claim = folder.claim().map_err(|error| {
            output::broken(format!("a folder in {}", folder.place.parent.display()), &error)
        })?;
        folder.sweep();
        Ok(folder)
    }
}

/// The folder of a run; gone with this value unless it was published.
pub(super) struct Folder {
    place: Place,
    /// Its lock, which tells it from what a killed run has left. `None` on a file system without locks.
    claim: Option<File>,
    published: bool,
}

impl Folder {
    fn hidden(&self) -> &Path {
        self.place.unfinished.path()
    }

    fn claim(&self) -> io::Result<Option<File>> {
        loop {
            fs::create_dir_all(self.hidden())?;
            let opened = File::open(self.hidden());
            match opened.and_then(|folder| folder.lock().map(|()| folder)) {
                // Another run that sweeps took it for abandoned before it was locked.
                _ if !self.hidden().exists() => {}
                Ok(folder) => return Ok(Some(folder)),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Removes hidden folders like this one that nobody holds.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(folder_of(self.hidden())) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path == self.hidden() || !is_hidden_name(&name) || !path.is_dir() {
                continue;
            }
            let Ok(folder) = File::open(&path) else { continue };
            let is_abandoned = match folder.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
            };
            if is_abandoned && self.claim.is_some() && fs::remove_dir_all(&path).is_ok() {
                print::err(&format!(
                    "note: removed {}, which an earlier run did not finish\n",
                    path.display()
                ));
            }
        }
    }

    /// Where a file of the run is written.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.hidden().join(file)
    }

    pub(super) fn cannot_write(&self, error: &io::Error) -> Failure {
        output::broken(format!("in {}", self.place.parent.display()), error)
    }

    pub(super) fn text(&self, file: &str, text: &str) -> Result<(), Failure> {
        fs::write(self.path(file), text).map_err(|error| self.cannot_write(&error))
    }

    pub(super) fn json(&self, file: &str, value: &Value) -> Result<(), Failure> {
        // A value of strings and finite numbers can always be written.
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.text(file, &(text + "\n"))
    }

    /// Gives the folder its name. Where another run of the same second has it already, a number follows.
    pub(super) fn publish(mut self) -> Result<PathBuf, Failure> {
        let Place { parent, name, .. } = &self.place;
        for number in 1u32.. {
            let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
            let path = parent.join(name);
            match fs::rename(self.hidden(), &path) {
                Ok(()) => {
                    self.published = true;
                    return Ok(path);
                }
                Err(_) if path.symlink_metadata().is_ok() && number < 1000 => {}
                Err(error) => return Err(self.cannot_write(&error)),
            }
        }
        unreachable!("a thousand names are refused above")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.published {
            self.place.unfinished.remove();
        }
    }
}

/// The folder that holds `path`.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a folder is one that a run hid: `.<config>_<N>s_seed<seed>_<date>-<time>.<process>.tmp`.
fn is_hidden_name(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(HIDDEN));
    let Some((run, process)) = inner.and_then(|inner| inner.rsplit_once('.')) else { return false };
    let Some((run, time)) = run.rsplit_once('_') else { return false };
    let Some((run, seed)) = run.rsplit_once("_seed") else { return false };
    let sessions = run.rsplit_once('_').and_then(|(_, sessions)| sessions.strip_suffix('s'));
    let time = time
        .split_once('-')
        .is_some_and(|(day, time)| digits(day) && digits(time) && day.len() == 8 && time.len() == 6);
    time && digits(process) && digits(seed) && sessions.is_some_and(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_run_hid_is_taken_for_that() {
        assert!(is_hidden_name(".my.conf_x_20s_seed42_20261130-144857.11059.tmp"));
        for other in [
            ".default_20s_seed42_20261130-144857.tmp",
            "default_20s_seed42_20261130-144857.11059.tmp",
            ".default_20s_seed_20261130-144857.1.tmp",
            ".default_xs_seed4_20261130-144857.1.tmp",
            ".default_2s_seed4_2026-144857.1.tmp",
            ".tmp",
        ] {
            assert!(!is_hidden_name(other), "{other}");
        }
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_a_running_one_makes_is_not() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join("a/b");
        let left = parent.join(".default_2s_seed1_20260101-000000.1.tmp");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("dataset.jsonl"), "{}").unwrap();
        let first = Place::of_run(&parent, "first_1s_seed1").make().unwrap();
        assert!(!left.exists());
        first.text("x", "1").unwrap();
        let second = Place::of_run(&parent, "second_1s_seed1").make().unwrap();
        assert!(first.path("x").exists());
        drop(second);
        let published = first.publish().unwrap();
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 1);
        assert!(published.join("x").exists());
    }

    #[test]
    fn a_run_that_ends_early_takes_the_folders_away_that_it_made() {
        let root = tempfile::tempdir().unwrap();
        let folder = Place::of_run(&root.path().join("a/b"), "x_1s_seed1").make().unwrap();
        folder.text("x", "1").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
