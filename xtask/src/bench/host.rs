//! What the host itself takes away from everybody: one thread on each core that only sleeps, ahead of all others.
//!
//! On a virtual machine a core can be away for milliseconds with nothing here to blame. A program that is measured
//! then cannot be told from one that was slow, unless something that does nothing and waits for nobody was late too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use aiperf_clock::now;
use anyhow::{Context as _, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How long a watcher sleeps at a time.
const NAP: Duration = Duration::from_millis(1);

/// Watchers of every core this process may use.
#[derive(Debug)]
pub(crate) struct Watch {
    over: Arc<AtomicBool>,
    /// Each gives the most that a nap took too long; absent where it was not let ahead of the others.
    watchers: Vec<JoinHandle<Option<Duration>>>,
}

impl Watch {
    /// Starts watching.
    pub(crate) fn start() -> Result<Self> {
        let cores = sched_getaffinity(None).context("sched_getaffinity")?;
        let over = Arc::new(AtomicBool::new(false));
        let watchers = (0..CpuSet::MAX_CPU)
            .filter(|&core| cores.is_set(core))
            .map(|core| {
                let over = Arc::clone(&over);
                std::thread::Builder::new()
                    .name(format!("core-{core}"))
                    .spawn(move || watch(core, &over))
                    .context("cannot start a thread")
            })
            .collect::<Result<_>>()?;
        Ok(Self { over, watchers })
    }

    /// Ends the watch: the longest that any core was away. Absent when the watchers had to queue like everybody else
    /// (going first needs `CAP_SYS_NICE`): what they waited for was then not the host alone.
    pub(crate) fn worst_gap(self) -> Option<Duration> {
        self.over.store(true, Ordering::Relaxed);
        // A watcher that panicked knows nothing either.
        let gaps = self.watchers.into_iter().map(|watcher| watcher.join().ok().flatten());
        gaps.collect::<Option<Vec<_>>>()?.into_iter().max()
    }
}

fn watch(core: usize, over: &AtomicBool) -> Option<Duration> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).ok()?;
    go_first()?;
    let mut worst = 0;
    while !over.load(Ordering::Relaxed) {
        let before = now();
        std::thread::sleep(NAP);
        worst = worst.max(now().saturating_since(before).saturating_sub(NAP.as_nanos() as u64));
    }
    Some(Duration::from_nanos(worst))
}

/// Lets the calling thread run before every thread of the normal kind.
fn go_first() -> Option<()> {
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: the pointer is to a live local of the type the call reads; 0 is the calling thread.
    #[expect(unsafe_code, reason = "rustix has no sched_setscheduler on Linux")]
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first) };
    (result == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_ends_and_knows_a_gap_only_where_it_may_go_first() {
        let allowed = std::thread::spawn(|| go_first().is_some()).join().unwrap();
        let gap = Watch::start().unwrap().worst_gap();
        assert_eq!(gap.is_some(), allowed);
    }
}
