//! Installed programs that encode what no library here does: found before a run starts, fed through a pipe.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, Write};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The most of what a program says that is kept.
const MOST_SAID: u64 = 64 << 10;

/// An installed program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
}

impl Program {
    /// The program of that name in one of the folders of `PATH`.
    pub(crate) fn find(name: &str) -> Option<Program> {
        Program::find_in(name, &std::env::var_os("PATH")?)
    }

    fn find_in(name: &str, folders: &std::ffi::OsStr) -> Option<Program> {
        std::env::split_paths(folders)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|path| is_program(path))
            .map(|path| Program { path })
    }

    /// Runs it; `write` is given its standard input. Its last words are the error where it fails.
    pub(crate) fn run(
        &self,
        arguments: &[String],
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), String> {
        use std::os::unix::process::CommandExt as _;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let failed = |error: &std::io::Error| format!("{name}: {error}");
        let mut said = tempfile::tempfile().map_err(|error| failed(&error))?;
        let child = Command::new(&self.path)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(said.try_clone().map_err(|error| failed(&error))?)
            // Ctrl-C is for this program, which ends the other one by closing the pipe.
            .process_group(0)
            .spawn()
            .map_err(|error| failed(&error))?;
        let mut child = Ended(child);
        let written = match child.0.stdin.take() {
            Some(mut pipe) => write(&mut pipe),
            None => Ok(()),
        };
        if let Err(error) = &written
            && error.kind() != ErrorKind::BrokenPipe
        {
            // Half of it is of no use, so it is not waited for.
            return Err(failed(error));
        }
        let status = child.0.wait().map_err(|error| failed(&error))?;
        if status.success() {
            return Ok(());
        }
        let mut text = Vec::new();
        said.rewind()
            .and_then(|()| said.take(MOST_SAID).read_to_end(&mut text))
            .map_err(|error| failed(&error))?;
        let text = String::from_utf8_lossy(&text);
        let words = text.lines().map(str::trim).find(|line| !line.is_empty());
        Err(match words {
            Some(words) => format!("{name}: {words}"),
            None => format!("{name} ended with {status}"),
        })
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A child that does not outlive its user.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both are without effect on one that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A temporary file that another program opens by a path and that goes whatever becomes of this one: on Linux it has
/// no name.
pub(crate) struct Scratch {
    #[cfg(target_os = "linux")]
    file: File,
    #[cfg(not(target_os = "linux"))]
    file: tempfile::NamedTempFile,
}

impl Scratch {
    pub(crate) fn new() -> std::io::Result<Scratch> {
        #[cfg(target_os = "linux")]
        let file = tempfile::tempfile()?;
        #[cfg(not(target_os = "linux"))]
        let file = tempfile::NamedTempFile::new()?;
        Ok(Scratch { file })
    }

    pub(crate) fn holding(bytes: &[u8]) -> std::io::Result<Scratch> {
        let mut scratch = Scratch::new()?;
        scratch.file.write_all(bytes)?;
        Ok(scratch)
    }

    /// Where other programs find it, while this lives.
    pub(crate) fn path(&self) -> String {
        #[cfg(target_os = "linux")]
        return format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        #[cfg(not(target_os = "linux"))]
        return self.file.path().to_string_lossy().into_owned();
    }

    /// What is in it.
    pub(crate) fn read(mut self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.rewind()?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// How a package is installed on this machine, as far as that is known.
pub(crate) fn how_to_install(package: &str) -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    install(package, &release, cfg!(target_os = "macos"))
}

fn install(package: &str, release: &str, is_macos: bool) -> String {
    if is_macos {
        return format!("install it with: brew install {package}");
    }
    let of = |key: &str| release.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    let names = format!("{} {}", of("ID="), of("ID_LIKE=")).replace(['"', '\''], "");
    let known = [
        ("debian", "apt-get install"),
        ("ubuntu", "apt-get install"),
        ("fedora", "dnf install"),
        ("rhel", "dnf install"),
        ("alpine", "apk add"),
        ("arch", "pacman -S"),
        ("suse", "zypper install"),
        ("nixos", "nix-env -iA nixos."),
    ];
    let command = names.split_whitespace().find_map(|name| {
        known.iter().find(|(known, _)| *known == name || name.starts_with("opensuse") && *known == "suse")
    });
    match command {
        Some((_, command)) if command.ends_with('.') => format!("install it with: {command}{package}"),
        Some((_, command)) => format!("install it with: {command} {package}"),
        None => format!("install the package {package}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static MUCH: &[u8] = &[0; 1 << 20];

    #[test]
    fn the_way_to_install_is_that_of_the_host() {
        for (release, expected) in [
            ("NAME=x\nID=debian\nVERSION=12\n", "apt-get install ffmpeg"),
            ("ID=pop\nID_LIKE=\"ubuntu debian\"\n", "apt-get install ffmpeg"),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf install ffmpeg"),
            ("ID=alpine\n", "apk add ffmpeg"),
            ("ID=\"opensuse-leap\"\n", "zypper install ffmpeg"),
            ("ID=other\n", "install the package ffmpeg"),
            ("", "install the package ffmpeg"),
        ] {
            assert!(install("ffmpeg", release, false).ends_with(expected), "{release}");
        }
        assert!(install("ffmpeg", "", true).ends_with("brew install ffmpeg"));
    }

    #[test]
    fn a_program_is_a_file_that_can_be_run_in_a_folder_of_the_path() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("encoder");
        std::fs::write(&path, "#!/bin/sh\ncat >&2\nexit 3\n").unwrap();
        assert!(Program::find_in("encoder", folder.path().as_os_str()).is_none());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = Program::find_in("encoder", folder.path().as_os_str()).unwrap();
        assert_eq!(program.path, path);
        assert!(Program::find_in("encoder", "".as_ref()).is_none());
    }

    #[test]
    fn what_a_program_says_when_it_fails_is_the_error() {
        let shell = Program::find("sh").unwrap();
        let run = |script: &str, input: &'static [u8]| {
            shell.run(&["-c".into(), script.into()], |pipe| pipe.write_all(input))
        };
        assert_eq!(run("cat >/dev/null", b"words"), Ok(()));
        assert_eq!(run("cat >&2; exit 3", b"\n no such codec \nmore\n"), Err("sh: no such codec".into()));
        assert!(run("exit 4", b"").unwrap_err().contains("exit status: 4"));
        // It stops reading long before all is written.
        assert_eq!(run("echo enough >&2; exit 1", MUCH), Err("sh: enough".into()));
        assert_eq!(run("head -c 10 >/dev/null", MUCH), Ok(()));
        // Who gives up does not wait for it to end by itself.
        let given_up =
            shell.run(&["-c".into(), "exec sleep 1000".into()], |_| Err(std::io::Error::other("enough")));
        assert_eq!(given_up, Err("sh: enough".into()));
        let missing = Program { path: "/nonexistent/encoder".into() };
        assert!(missing.run(&[], |_| Ok(())).unwrap_err().starts_with("encoder: "));
    }

    #[test]
    fn a_scratch_file_is_shared_with_another_program_by_its_path() {
        let shell = Program::find("sh").unwrap();
        let (from, to) = (Scratch::holding(b"sound").unwrap(), Scratch::new().unwrap());
        let script = format!("cat - {} > {}", from.path(), to.path());
        shell.run(&["-c".into(), script], |pipe| pipe.write_all(b"frames ")).unwrap();
        assert_eq!(to.read().unwrap(), b"frames sound");
    }
}
