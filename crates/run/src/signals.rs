//! Ctrl-C and its kin, from the first moment of the program on.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use aiperf_clock::{Mono, now};
use aiperf_config::OutputConfig;
use aiperf_load::StopCause;
use aiperf_report::{FileNames, Screen, remove_unfinished};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals as Hook};
use signal_hook::low_level;

use crate::compute::Shared;

/// A second signal this soon after the first is the same one, ns: `timeout` and `kill` of a group send it to the process and
/// to its group, wrappers pass on what the terminal sent to both.
const SAME: u64 = 100_000_000;

/// A run that signals are about, and how many came.
struct Attached {
    shared: Arc<Shared>,
    screen: Arc<Screen>,
    output: OutputConfig,
    /// When the first one had been heard.
    signalled: Option<Mono>,
    /// Nothing more is sent.
    is_over: bool,
}

/// What a signal is about.
#[derive(Default)]
enum About {
    /// The process: nothing has begun.
    #[default]
    Process,
    /// A run whose folder is being made, and the signal that came meanwhile.
    Beginning(Option<i32>),
    Run(Attached),
    /// What is left of the process when its run is over.
    End,
}

type Slot = Arc<Mutex<About>>;

/// Listens to signals. Before there is a run a signal ends the process as it would have without us; the first process
/// of a container would otherwise not hear it at all. One that comes while a run makes its files waits until they are
/// made: a folder holds the results of a run, or nothing.
pub struct Signals {
    slot: Slot,
    hook: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// Starts listening.
    pub fn install() -> std::io::Result<Signals> {
        let mut signals = Hook::new(interrupts())?;
        let hook = signals.handle();
        let slot = Slot::default();
        let inner = Arc::clone(&slot);
        let thread = std::thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in signals.forever() {
                match &mut *inner.lock().unwrap_or_else(PoisonError::into_inner) {
                    About::Beginning(waiting @ None) => *waiting = Some(signal),
                    About::Process => {
                        let ended = "ended before the first request; nothing was written";
                        Screen::stderr(false).last_lines(&format!("{}: {ended}", name(signal)));
                        die(signal);
                    }
                    About::Beginning(Some(_)) | About::End => die(signal),
                    About::Run(run) => heard(run, signal),
                }
            }
        })?;
        Ok(Signals { slot, hook, thread: Some(thread) })
    }

    /// From now on files are made: a signal waits for [`Signals::attach`].
    pub(crate) fn hold(&self) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = About::Beginning(None);
    }

    /// From now on signals are about this run, one that waited first of all.
    pub(crate) fn attach(&self, shared: Arc<Shared>, screen: Arc<Screen>, output: OutputConfig) {
        let mut run = Attached { shared, screen, output, signalled: None, is_over: false };
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let About::Beginning(Some(signal)) = *slot {
            heard(&mut run, signal);
        }
        *slot = About::Run(run);
    }

    /// Every request is back: what is left is to write.
    pub(crate) fn over(&self) {
        if let About::Run(run) = &mut *self.slot.lock().unwrap_or_else(PoisonError::into_inner) {
            run.is_over = true;
        }
    }

    /// The run is over, or cannot begin, and so is its hold on the compute threads.
    pub(crate) fn detach(&self) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = About::End;
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.hook.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn heard(run: &mut Attached, signal: i32) {
    if let Some(first) = run.signalled {
        if is_same(first, now()) {
            return;
        }
        // Whole lines only: what is in a file then ends with a record.
        for sink in [&run.shared.records, &run.shared.raw].into_iter().flatten() {
            sink.seal(now());
        }
        remove_unfinished(&run.output.dir, &FileNames::new(run.output.prefix.as_deref()));
        run.screen.bar(String::new());
        // At once: what other threads hold is not waited for.
        low_level::exit(130);
    }
    // First of all: a terminal may take its time.
    run.shared.stop(StopCause::Interrupt);
    let name = name(signal);
    let what = match (run.is_over, run.shared.inputs.is_some()) {
        (true, true) => "the run is over; inputs.json ends with what was made, the results are written",
        (true, false) => "the run is over; the results are written",
        (false, _) => "no more requests are sent; writing what was measured",
    };
    run.screen.lines(&format!("{name}: {what} (again: stop at once)"));
    run.signalled = Some(now());
}

fn is_same(first: Mono, at: Mono) -> bool {
    at.saturating_since(first) < SAME
}

/// What a person calls it.
fn name(signal: i32) -> &'static str {
    match signal {
        SIGTERM => "SIGTERM",
        SIGHUP => "SIGHUP",
        _ => "Ctrl-C",
    }
}

/// Ends the process so that a shell sees it was this signal.
fn die(signal: i32) {
    // The kernel keeps the default action from the first process of a container.
    if std::process::id() != 1 {
        let _ = low_level::emulate_default_handler(signal);
    }
    low_level::exit(128 + signal);
}

/// The signals that interrupt what goes on. A terminal that goes away is an interrupt too, unless `nohup` said
/// otherwise.
pub fn interrupts() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM].into_iter().chain((!hangup_is_ignored()).then_some(SIGHUP))
}

/// Whether the process was started with SIGHUP ignored.
fn hangup_is_ignored() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, SIGHUP))
}

/// Whether the mask `SigIgn` of a `/proc/<pid>/status` has `signal`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_to_the_process_and_to_its_group_is_one() {
        assert!(is_same(Mono(5), Mono(5)) && is_same(Mono(5), Mono(4 + SAME)));
        assert!(!is_same(Mono(5), Mono(5 + SAME)));
    }

    #[test]
    fn an_ignored_hangup_is_seen() {
        assert!(ignores("Name:\tx\nSigIgn:\t0000000000001001\n", SIGHUP));
        assert!(!ignores("SigIgn:\t0000000000001000\n", SIGHUP));
        assert!(!ignores("", SIGHUP));
    }
}
