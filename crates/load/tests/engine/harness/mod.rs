//! An engine, what it sends, and the server it sends to.

mod rig;
mod server;
mod source;

pub(crate) use rig::{Rig, Setup, endpoint, phase, reading, setup};
pub(crate) use server::{Conn, Request, Server, chat, closed_port};
pub(crate) use source::{Feed, body, conversation, prepared, singles, talks, ticket, trace};

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use aiperf_load::PacerPlace;

/// No wait of a test is longer: what takes longer is a fault.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// Ways to run an engine: the pacer on the only worker, and on a thread beside one, two and three workers.
pub(crate) const LAYOUTS: [(usize, PacerPlace); 4] =
    [(1, PacerPlace::Worker), (1, PacerPlace::Thread), (2, PacerPlace::Thread), (3, PacerPlace::Thread)];

/// A gate that opens once, for any number of threads.
#[derive(Default)]
pub(crate) struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Waits until the gate is open; absent when that takes too long.
    pub(crate) fn pass(&self) -> Option<()> {
        let guard = self.open.lock().unwrap();
        let (guard, _) = self.changed.wait_timeout_while(guard, DEADLINE, |open| !*open).unwrap();
        guard.then_some(())
    }
}

/// How many are inside at once, and the most there ever were.
#[derive(Default)]
pub(crate) struct Gauge {
    /// Now, and at most.
    state: Mutex<(usize, usize)>,
    changed: Condvar,
    /// Only this many at once are worth waking anyone.
    awaited: AtomicUsize,
}

impl Gauge {
    pub(crate) fn enter(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        if state.0 > state.1 {
            state.1 = state.0;
            if state.1 >= self.awaited.load(Ordering::Acquire) {
                self.changed.notify_all();
            }
        }
    }

    pub(crate) fn leave(&self) {
        self.state.lock().unwrap().0 -= 1;
    }

    pub(crate) fn most(&self) -> usize {
        self.state.lock().unwrap().1
    }

    /// Waits until `n` were inside at once; the same `n` for all who wait.
    pub(crate) fn reached(&self, n: usize) -> Option<()> {
        self.awaited.store(n, Ordering::Release);
        let state = self.state.lock().unwrap();
        let (state, _) = self.changed.wait_timeout_while(state, DEADLINE, |state| state.1 < n).unwrap();
        (state.1 >= n).then_some(())
    }
}
