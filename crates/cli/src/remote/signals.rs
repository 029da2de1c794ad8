//! Ctrl-C, SIGTERM and a terminal that goes away end a transfer, and nothing else; a second one ends the program.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use aiperf_source::Stop;
use signal_hook::SigId;

use crate::exit::ExitStatus;

/// The handlers, as long as this is held.
#[derive(Debug)]
pub(crate) struct Signals(Vec<SigId>);

impl Signals {
    pub(crate) fn set(stop: &Stop) -> Signals {
        let flag: Arc<AtomicBool> = stop.flag();
        let again = i32::from(ExitStatus::Interrupted.code());
        // Where a handler cannot be set, the signal ends the program at once. They run in this order: the first signal
        // finds the flag unset.
        let handlers = |signal| {
            [
                signal_hook::flag::register_conditional_shutdown(signal, again, Arc::clone(&flag)),
                signal_hook::flag::register(signal, Arc::clone(&flag)),
            ]
        };
        Signals(aiperf_run::interrupts().flat_map(handlers).flatten().collect())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in &self.0 {
            signal_hook::low_level::unregister(*id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use signal_hook::consts::{SIGHUP, SIGINT};

    use super::*;

    const SIGNALS: &str = "AIPERF_TEST_SIGNALS";

    #[test]
    fn the_second_signal_ends_the_program_even_where_nothing_looks_at_the_first() {
        // Where the tests themselves run under `nohup`, nobody hears it.
        let hangup = 7 + i32::from(aiperf_run::interrupts().any(|signal| signal == SIGHUP));
        for (count, code) in [("0", 7), ("1", 8), ("2", 130), ("hangup", hangup)] {
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "remote::signals::tests::child_that_is_interrupted", "--nocapture"])
                .env(SIGNALS, count)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(code), "{count} {:?}", output.status.signal());
        }
    }

    /// Not a test by itself: the child of the one above.
    #[test]
    fn child_that_is_interrupted() {
        let Ok(text) = std::env::var(SIGNALS) else { return };
        let (signal, count) =
            if text == "hangup" { (SIGHUP, 1) } else { (SIGINT, text.parse::<u32>().unwrap()) };
        let stop = Stop::default();
        let _signals = Signals::set(&stop);
        for _ in 0..count {
            signal_hook::low_level::raise(signal).unwrap();
        }
        std::process::exit(7 + i32::from(stop.flag().load(std::sync::atomic::Ordering::Relaxed)));
    }
}
