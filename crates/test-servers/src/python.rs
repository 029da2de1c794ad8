//! Python programs that tests run, each with its packages.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A Python with these packages in it, installed once into a folder below `tools`; `check` is a program that runs when it is
/// ready.
pub fn venv(tools: &Path, name: &str, check: &str, packages: &[&str]) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let venv = tools.join(name);
    let python = venv.join("bin/python");
    let check = Command::new(&python).args(["-c", check]).output();
    if !check.is_ok_and(|output| output.status.success()) {
        let run = |command: &mut Command| {
            let output = command.output().expect("python3 is there");
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{packages:?} cannot be installed (python3-venv, pip): {text}");
        };
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        run(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(packages));
    }
    python
}
