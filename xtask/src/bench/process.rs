//! Processes under measurement: when they started, what CPU they used, how much memory they held.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use aiperf_clock::{Mono, now};
use anyhow::{Context as _, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};

/// How often the memory of a process is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What an ended process used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    /// Just before the call that made it.
    pub(crate) started: Mono,
    /// From `started` to its end, seconds.
    pub(crate) wall_sec: f64,
    /// User and system time of the process and its descendants, seconds.
    pub(crate) cpu_sec: f64,
    /// Peak resident memory, bytes: of the process alone, or the sum over its tree when that was watched.
    pub(crate) peak_bytes: u64,
    /// Exit code; absent when a signal ended it.
    pub(crate) code: Option<i32>,
}

/// A started process, in a group of its own. Its output goes to files beside it.
#[derive(Debug)]
pub(crate) struct Running {
    pid: Pid,
    started: Mono,
    output: PathBuf,
    /// Whether the end was awaited.
    ended: bool,
}

impl Running {
    /// Starts `command` with stdout and stderr in `folder`.
    pub(crate) fn start(mut command: Command, folder: &Path) -> Result<Self> {
        let stdout = folder.join("stdout.txt");
        let stderr = folder.join("stderr.txt");
        command
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).with_context(|| format!("cannot make {}", stdout.display()))?)
            .stderr(File::create(&stderr).with_context(|| format!("cannot make {}", stderr.display()))?)
            .process_group(0);
        let started = now();
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        let pid = Pid::from_child(&child);
        Ok(Self { pid, started, output: folder.to_path_buf(), ended: false })
    }

    /// Awaits the end; an error after `limit`, when the group is killed.
    pub(crate) fn wait(self, limit: Duration) -> Result<Used> {
        self.wait_and(limit, limit, || false)
    }

    /// Awaits the end and meanwhile adds up memory and CPU of the whole tree, five times a second.
    pub(crate) fn wait_watching_tree(self, limit: Duration) -> Result<Used> {
        self.wait_watching_tree_until(limit, || false)
    }

    /// The same, and kills the group as soon as `enough` says so.
    pub(crate) fn wait_watching_tree_until(
        self,
        limit: Duration,
        mut enough: impl FnMut() -> bool,
    ) -> Result<Used> {
        let root = self.pid.as_raw_nonzero().get();
        let mut seen = BTreeMap::new();
        let mut used = self.wait_and(limit, Duration::from_millis(200), || {
            sample_tree(root, &mut seen);
            enough()
        })?;
        let cpu: f64 = seen.values().map(|member: &Member| member.cpu_sec).sum();
        let peak: u64 = seen.values().map(|member| member.peak_bytes).sum();
        // A descendant that was not awaited by its parent is missing in the one, the last stretch in the other.
        used.cpu_sec = used.cpu_sec.max(cpu);
        used.peak_bytes = used.peak_bytes.max(peak);
        Ok(used)
    }

    /// Awaits the end, and kills the group as soon as `enough` says so; asked every `every`.
    pub(crate) fn wait_and(
        mut self,
        limit: Duration,
        every: Duration,
        mut enough: impl FnMut() -> bool,
    ) -> Result<Used> {
        let pidfd = rustix::process::pidfd_open(self.pid, PidfdFlags::empty()).context("pidfd_open")?;
        let deadline = self.started.plus(limit.as_nanos() as u64);
        let mut killed = false;
        let mut peak = 0;
        let mut ask = now().plus(every.as_nanos() as u64);
        loop {
            let left = Duration::from_nanos(deadline.saturating_since(now())).min(every).min(LOOK);
            let timeout = Timespec::try_from(left).context("a wait this long")?;
            let mut polled = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
            let ready = match poll(&mut polled, Some(&timeout)) {
                Ok(ready) => ready,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error).context("poll on a process"),
            };
            if ready > 0 {
                break;
            }
            if !is_this_program(self.id()) {
                peak = peak.max(peak_bytes(self.id()).unwrap_or(0));
            }
            if now() >= ask {
                ask = now().plus(every.as_nanos() as u64);
                if enough() && !killed {
                    self.kill(Signal::KILL);
                    killed = true;
                }
            }
            if now() >= deadline {
                self.kill(Signal::KILL);
                self.ended = true;
                let _ = reap(self.pid);
                bail!("still running after {} s\n{}", limit.as_secs(), tail(&self.output.join("stderr.txt")));
            }
        }
        let ended = now();
        self.ended = true;
        let mut used = reap(self.pid)?;
        // A process begins with the peak of whoever made it, of which the kernel tells a few MiB too little: only what
        // is clearly more than that is its own.
        let makers = peak_bytes(std::process::id() as i32).unwrap_or(0) + (32 << 20);
        if used.peak_bytes <= makers && peak > 0 {
            used.peak_bytes = peak;
        }
        used.started = self.started;
        used.wall_sec = ended.saturating_since(self.started) as f64 / 1e9;
        Ok(used)
    }

    /// Signals the whole group.
    pub(crate) fn kill(&self, signal: Signal) {
        // Gone already: what was wanted.
        let _ = rustix::process::kill_process_group(self.pid, signal);
    }

    /// The process id, for `/proc`.
    pub(crate) fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.kill(Signal::KILL);
            let _ = reap(self.pid);
        }
    }
}

/// The last lines of a file, for an error message.
pub(crate) fn tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// Awaits a child and reads what it used; instants are filled in by the caller.
fn reap(pid: Pid) -> Result<Used> {
    let mut status = 0;
    // SAFETY: rusage is plain integers, for which all zeroes is a value.
    #[expect(
        unsafe_code,
        reason = "wait4 is the one call that gives one child's rusage, and rustix has none"
    )]
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live locals of the types the call fills in.
        #[expect(unsafe_code, reason = "see above")]
        let result = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) };
        if result >= 0 {
            break;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("wait4");
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Used {
        started: Mono(0),
        wall_sec: 0.0,
        cpu_sec: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak_bytes: usage.ru_maxrss as u64 * 1024,
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
    })
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    cpu_sec: f64,
    peak_bytes: u64,
}

/// Adds what `root` and its descendants have used so far to `seen`.
fn sample_tree(root: i32, seen: &mut BTreeMap<i32, Member>) {
    let Ok(entries) = fs::read_dir("/proc") else { return };
    let mut parents = BTreeMap::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Some(parent) = stat_field(pid, 4) {
            parents.insert(pid, parent as i32);
        }
    }
    for &pid in parents.keys() {
        let mut at = pid;
        while at != root {
            match parents.get(&at) {
                Some(&parent) if parent != 0 => at = parent,
                _ => break,
            }
        }
        if at == root {
            let member = seen.entry(pid).or_default();
            // Ticks of 10 ms, threads that have ended included.
            let ticks = stat_field(pid, 14).unwrap_or(0) + stat_field(pid, 15).unwrap_or(0);
            member.cpu_sec = member.cpu_sec.max(ticks as f64 / 100.0);
            member.peak_bytes = member.peak_bytes.max(peak_bytes(pid).unwrap_or(0));
        }
    }
}

/// Field `number` (from 1) of `/proc/PID/stat`, from the third on.
fn stat_field(pid: i32, number: usize) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the name in brackets, may hold anything.
    let after = &text[text.rfind(')')? + 1..];
    after.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

/// CPU seconds of each living thread of a process, to the nanosecond.
pub(crate) fn threads_cpu_sec(pid: i32) -> Vec<f64> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            Some(text.split_ascii_whitespace().next()?.parse::<u64>().ok()? as f64 / 1e9)
        })
        .collect()
}

/// Whether a child has not become the program it was made for yet: until then its memory is that of its maker.
fn is_this_program(pid: i32) -> bool {
    let program = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
    program(&pid.to_string()) == program("self")
}

/// Peak resident memory of a living process so far.
pub(crate) fn peak_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Lifts the soft limit of open files to the hard one, for the servers and clients to come.
pub(crate) fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // Left as it is where that fails: the row that needs more says so.
    let _ = rustix::process::setrlimit(
        Resource::Nofile,
        Rlimit { current: limit.maximum, maximum: limit.maximum },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-process-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn cpu_of_children_of_the_process_is_counted() {
        let folder = folder("cpu");
        let mut command = Command::new("sh");
        command.args(["-c", "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; exit 3"]);
        let used = Running::start(command, &folder).unwrap().wait(Duration::from_mins(1)).unwrap();
        assert_eq!(used.code, Some(3));
        assert!(used.cpu_sec > 0.005, "{used:?}");
        assert!(used.wall_sec >= used.cpu_sec * 0.5 && used.peak_bytes > 0, "{used:?}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_peak_of_a_process_is_not_that_of_the_harness() {
        let folder = folder("peak");
        let large = std::hint::black_box(vec![1_u8; 200 << 20]);
        let mut command = Command::new("sleep");
        command.arg("2");
        let used = Running::start(command, &folder).unwrap().wait(Duration::from_mins(1)).unwrap();
        assert!(large.len() == 200 << 20 && used.peak_bytes < 50 << 20, "{used:?}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_process_that_hangs_is_killed_with_its_group() {
        let folder = folder("hang");
        let mut command = Command::new("sh");
        command.args(["-c", "echo talk >&2; sleep 600 & wait"]);
        let running = Running::start(command, &folder).unwrap();
        let error = running.wait(Duration::from_millis(300)).unwrap_err().to_string();
        assert!(error.contains("still running") && error.contains("talk"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn fields_of_the_own_process_are_read() {
        let own = std::process::id() as i32;
        assert!(stat_field(own, 4).unwrap() > 0);
        assert!(peak_bytes(own).unwrap() > 100_000);
        assert!(!threads_cpu_sec(own).is_empty());
    }
}
