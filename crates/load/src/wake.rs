//! Waking another thread's task, and waking at an instant to the microsecond.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use aiperf_clock::{Mono, nanos, now};
use atomic_waker::AtomicWaker;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

/// By how much tokio's timers may be late with nothing in the way: its wheel and the wait of its loop each round up to
/// the millisecond.
const COARSE: Duration = Duration::from_millis(3);

/// A bell for one listener: rings are remembered until heard, and any number of them is one.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: AtomicBool,
    waker: AtomicWaker,
}

impl Bell {
    /// Rings.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Waits for a ring.
    pub(crate) async fn heard(&self) {
        poll_fn(|cx| {
            if self.rung.swap(false, Ordering::AcqRel) {
                return Poll::Ready(());
            }
            self.waker.register(cx.waker());
            // Rung between the check and the registration.
            if self.rung.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// What comes of `work` when it is done within `limit`, which is kept to the kernel's resolution. Most of a long wait is
/// left to tokio's timer, so that a descriptor is spent on its end alone.
pub(crate) async fn within<W: Future>(limit: Duration, work: W) -> Option<W::Output> {
    let due = now().plus(nanos(limit));
    let mut work = pin!(work);
    if let Some(most) = limit.checked_sub(COARSE)
        && let Ok(done) = timeout(most, work.as_mut()).await
    {
        return Some(done);
    }
    let Ok(timer) = PreciseTimer::new() else {
        // Out of descriptors: late is better than never.
        return timeout(Duration::from_nanos(due.saturating_since(now())), work).await.ok();
    };
    tokio::select! {
        biased;
        done = work => Some(done),
        () = timer.until(due) => None,
    }
}

/// A timer with the kernel's resolution: tokio's own rounds up to the millisecond.
pub(crate) struct PreciseTimer {
    fd: AsyncFd<OwnedFd>,
}

impl PreciseTimer {
    /// A timer, not armed. Needs the runtime of the calling thread.
    pub(crate) fn new() -> io::Result<PreciseTimer> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        #[expect(unsafe_code, reason = "tokio has no safe way in for a descriptor of one's own")]
        // SAFETY: an `OwnedFd` answers with the same descriptor for as long as it lives, and closes it when dropped;
        // nothing else owns this one.
        let fd = unsafe { AsyncFd::register(fd) }?;
        Ok(PreciseTimer { fd })
    }

    /// Waits until `at`.
    pub(crate) async fn until(&self, at: Mono) {
        loop {
            if now() >= at {
                return;
            }
            self.set(at.0.max(1), 0);
            self.expired().await;
        }
    }

    /// Arms the timer to expire every `period_ns` from `first` on.
    pub(crate) fn every(&self, first: Mono, period_ns: u64) {
        self.set(first.0, period_ns);
    }

    /// Waits for the next expiry.
    pub(crate) async fn expired(&self) {
        let Ok(mut guard) = self.fd.readable().await else { return };
        let mut count = [0_u8; 8];
        // The count is not needed: reading it is what clears the readiness.
        let _ = rustix::io::read(self.fd.get_ref().as_fd(), &mut count);
        guard.clear_ready();
    }

    fn set(&self, at: u64, period: u64) {
        let spec =
            |ns: u64| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
        let timer = Itimerspec { it_interval: spec(period), it_value: spec(at) };
        // Fails only for times out of range, which `Mono` cannot hold.
        let _ = timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &timer);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn block_on<W: Future>(work: W) -> W::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn a_limit_ends_what_is_not_done_and_never_early() {
        for limit in [Duration::ZERO, Duration::from_micros(700), Duration::from_millis(5)] {
            let before = now();
            assert_eq!(block_on(within(limit, pending::<()>())), None);
            assert!(now().saturating_since(before) >= nanos(limit), "{limit:?}");
        }
    }

    #[test]
    fn what_is_done_in_time_is_kept_on_either_side_of_the_coarse_wait() {
        for limit in [Duration::from_millis(1), Duration::from_hours(1)] {
            assert_eq!(block_on(within(limit, ready(7))), Some(7));
        }
    }

    #[test]
    fn what_is_done_in_the_fine_part_of_the_wait_is_kept() {
        // Asked when the wait begins, when its coarse part is over, and when its fine part begins.
        let mut polls = 0;
        let work = poll_fn(|_| {
            polls += 1;
            if polls == 3 { Poll::Ready(7) } else { Poll::Pending }
        });
        let done = block_on(within(COARSE + Duration::from_millis(1), work));
        assert_eq!(done, Some(7));
    }
}
