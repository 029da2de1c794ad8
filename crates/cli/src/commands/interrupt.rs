//! Ctrl-C while a command writes what it makes, or reads what it is named.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aiperf_report::temporary_name;
use signal_hook::iterator::{Handle, Signals as Hook};

use crate::exit::{ExitStatus, Failure};
use crate::print;

/// What is said of a command that did not come to its end.
const INTERRUPTED: &str = "interrupted; nothing was left behind";

/// Hands Ctrl-C and its kin to `work`, on a thread of its own. Where that cannot be, they end the program by themselves.
fn listen(work: impl FnOnce(Hook) + Send + 'static) -> Option<Handle> {
    let listening = Hook::new(aiperf_run::interrupts()).and_then(|signals| {
        let handle = signals.handle();
        std::thread::Builder::new().name("signals".into()).spawn(move || work(signals))?;
        Ok(handle)
    });
    if listening.is_err() {
        // A handler that was set once stays, and with nothing behind it the signal is ignored.
        for signal in aiperf_run::interrupts() {
            let always = Arc::new(AtomicBool::new(true));
            _ = signal_hook::flag::register_conditional_default(signal, always);
        }
    }
    listening.ok()
}

/// Hears Ctrl-C and its kin as long as it is held; a second one ends the program.
pub(super) struct Interrupt {
    heard: Arc<AtomicBool>,
    signals: Option<Handle>,
}

impl Interrupt {
    /// `unfinished` is what is half made until the command ends; a second signal removes it. Where signals cannot be
    /// listened to, they end the program themselves.
    pub(super) fn new(unfinished: &Arc<Unfinished>) -> Interrupt {
        let heard = Arc::<AtomicBool>::default();
        let (flag, unfinished) = (Arc::clone(&heard), Arc::clone(unfinished));
        let signals = listen(move |mut signals| {
            for _ in signals.forever() {
                if flag.swap(true, Ordering::Relaxed) {
                    unfinished.remove();
                    signal_hook::low_level::exit(ExitStatus::Interrupted.code().into());
                }
            }
        });
        Interrupt { heard, signals }
    }

    /// Fails once one was heard. Whoever asks removes what is half made.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.heard.load(Ordering::Relaxed) {
            return Err(Failure::new(INTERRUPTED, ExitStatus::Failure));
        }
        Ok(())
    }

    /// `inner`, which takes nothing more once one was heard.
    pub(super) fn writer<W: Write>(&self, inner: W) -> impl Write + use<W> {
        Interruptible { inner, heard: Arc::clone(&self.heard) }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(signals) = &self.signals {
            signals.close();
        }
    }
}

/// A file or a folder that is half made, and the folders that were made for it.
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
    /// The innermost first.
    made_for_it: Vec<PathBuf>,
}

impl Unfinished {
    /// The temporary file beside `output`, whose folder is there.
    pub(super) fn file(output: &Path) -> Arc<Unfinished> {
        Arc::new(Unfinished { path: temporary_name(output), made_for_it: Vec::new() })
    }

    /// A folder that is about to be made, with those above it that are not there yet.
    pub(super) fn folder(path: &Path) -> Arc<Unfinished> {
        let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        let missing = above.take_while(|folder| folder.symlink_metadata().is_err());
        Arc::new(Unfinished { path: path.to_owned(), made_for_it: missing.map(Path::to_owned).collect() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, and what was made for it as far as nothing else is in there.
    pub(super) fn remove(&self) {
        if fs::remove_file(&self.path).is_err() {
            remove_folder(&self.path);
        }
        for folder in &self.made_for_it {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

/// Removes a folder that another thread may still write to: what it makes meanwhile is removed, too.
fn remove_folder(path: &Path) {
    const ATTEMPTS: usize = 100;
    let is_gone = |_: &usize| match fs::remove_dir_all(path) {
        Ok(()) => true,
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied),
    };
    _ = (0..ATTEMPTS).find(is_gone);
}

/// While it is held, Ctrl-C and its kin end a command that only reads: at once, whatever it does.
pub(super) struct EndsAtOnce(Option<Handle>);

impl EndsAtOnce {
    /// `folder` is removed before the end. Where signals cannot be listened to, they end the program themselves.
    pub(super) fn new(folder: Option<PathBuf>) -> EndsAtOnce {
        EndsAtOnce(listen(move |mut signals| {
            if signals.forever().next().is_some() {
                if let Some(folder) = folder {
                    remove_folder(&folder);
                }
                print::last_err(&format!("error: {INTERRUPTED}\n"));
                std::process::exit(ExitStatus::Failure.code().into());
            }
        }))
    }
}

impl Drop for EndsAtOnce {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.close();
        }
    }
}

struct Interruptible<W> {
    inner: W,
    heard: Arc<AtomicBool>,
}

impl<W: Write> Write for Interruptible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.heard.load(Ordering::Relaxed) {
            // Not `Interrupted`, after which a writer tries again.
            return Err(io::Error::other("interrupted"));
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use aiperf_source::Stop;
    use signal_hook::consts::SIGINT;

    use super::*;
    use crate::remote::Signals;

    const FOLDER: &str = "AIPERF_TEST_ENDS_AT_ONCE";

    #[test]
    fn a_command_that_only_reads_ends_at_the_first_signal() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("links");
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "commands::interrupt::tests::child_that_reads_for_ever", "--nocapture"])
            .env(FOLDER, &made)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("error: interrupted; nothing was left behind\n"), "{said}");
        assert!(!made.exists());
    }

    /// Not a test by itself: the child of the one above.
    #[test]
    fn child_that_reads_for_ever() {
        let Some(folder) = std::env::var_os(FOLDER) else { return };
        std::fs::create_dir(&folder).unwrap();
        // Sources were asked before: nothing listens any more.
        drop(Signals::set(&Stop::default()));
        let _ends = EndsAtOnce::new(Some(folder.into()));
        signal_hook::low_level::raise(SIGINT).unwrap();
        loop {
            std::thread::park();
        }
    }

    const UNFINISHED: &str = "AIPERF_TEST_UNFINISHED";

    #[test]
    fn a_second_signal_leaves_nothing_half_made_behind() {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "commands::interrupt::tests::child_that_writes_for_ever", "--nocapture"])
            .env(UNFINISHED, folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Not a test by itself: the child of the one above.
    #[test]
    fn child_that_writes_for_ever() {
        let Some(root) = std::env::var_os(UNFINISHED) else { return };
        let unfinished = Unfinished::folder(&Path::new(&root).join("a/b/.half.tmp"));
        let interrupt = Interrupt::new(&unfinished);
        fs::create_dir_all(unfinished.path()).unwrap();
        fs::write(unfinished.path().join("rows"), "1").unwrap();
        signal_hook::low_level::raise(SIGINT).unwrap();
        while interrupt.check().is_ok() {
            std::thread::yield_now();
        }
        signal_hook::low_level::raise(SIGINT).unwrap();
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn what_is_still_written_to_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let unfinished = Unfinished::folder(&root.path().join(".half.tmp"));
        fs::create_dir(unfinished.path()).unwrap();
        std::thread::scope(|scope| {
            let folder = unfinished.path();
            let writer = scope.spawn(move || {
                (0..1_000_000).find(|number| fs::write(folder.join(number.to_string()), "1").is_err())
            });
            while fs::read_dir(folder).unwrap().count() < 100 {
                std::thread::yield_now();
            }
            unfinished.remove();
            assert!(!folder.exists());
            writer.join().unwrap();
        });
    }

    const UNHEARD: &str = "AIPERF_TEST_UNHEARD";

    #[test]
    fn a_signal_that_nobody_can_listen_to_ends_the_program_by_itself() {
        for kind in ["interrupt", "ends"] {
            let output = Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "commands::interrupt::tests::child_that_can_start_no_thread",
                    "--nocapture",
                ])
                .arg("--test-threads=1")
                // No thread has room for such a stack.
                .envs([("RUST_MIN_STACK", (1_u64 << 60).to_string()), (UNHEARD, kind.to_owned())])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.signal(), Some(SIGINT), "{kind} {:?} {said}", output.status);
        }
    }

    /// Not a test by itself: the child of the one above.
    #[test]
    fn child_that_can_start_no_thread() {
        let Ok(kind) = std::env::var(UNHEARD) else { return };
        let unfinished = Unfinished::file(Path::new("none"));
        let _held = match kind.as_str() {
            "ends" => (None, Some(EndsAtOnce::new(None))),
            _ => (Some(Interrupt::new(&unfinished)), None),
        };
        signal_hook::low_level::raise(SIGINT).unwrap();
        std::process::exit(9);
    }

    #[test]
    fn folders_that_hold_something_else_stay() {
        let root = tempfile::tempdir().unwrap();
        let there = root.path().join("there");
        fs::create_dir(&there).unwrap();
        let unfinished = Unfinished::folder(&there.join("a/b/.half.tmp"));
        fs::create_dir_all(unfinished.path()).unwrap();
        fs::write(there.join("a/other"), "1").unwrap();
        unfinished.remove();
        assert!(there.join("a/other").exists() && !there.join("a/b").exists());
        let unfinished = Unfinished::folder(&there.join(".half.tmp"));
        fs::create_dir(unfinished.path()).unwrap();
        unfinished.remove();
        assert!(there.exists() && !unfinished.path().exists());
    }
}
