//! How far requests are while none of a phase has come back, for those who wait and see nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts of requests on their way. Once a request of the phase is back, only connections are counted: from then on the
/// requests that come back tell how far the run is. On a cache line of its own, which is read with every request.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Underway {
    /// Requests that were sent, or wait for a connection to be sent on.
    sent: AtomicU64,
    /// Connections that are being made.
    connecting: AtomicU64,
    /// TLS handshakes that go on.
    securing: AtomicU64,
    /// Answers that have begun.
    begun: AtomicU64,
    back: AtomicBool,
}

/// The counts at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnderwayCounts {
    /// Requests that were sent, or wait for a connection to be sent on.
    pub sent: u64,
    /// Connections that are being made.
    pub connecting: u64,
    /// TLS handshakes that go on.
    pub securing: u64,
    /// Answers that have begun.
    pub begun: u64,
}

impl Underway {
    /// The counts, as long as no request of the phase is back.
    pub fn counts(&self) -> Option<UnderwayCounts> {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (!self.is_back()).then(|| UnderwayCounts {
            sent: of(&self.sent),
            connecting: of(&self.connecting),
            securing: of(&self.securing),
            begun: of(&self.begun),
        })
    }

    /// A phase begins.
    pub(crate) fn restart(&self) {
        self.sent.store(0, Ordering::Relaxed);
        self.begun.store(0, Ordering::Relaxed);
        self.back.store(false, Ordering::Relaxed);
    }

    /// A request of the phase is back.
    pub(crate) fn came_back(&self) {
        if !self.is_back() {
            self.back.store(true, Ordering::Relaxed);
        }
    }

    /// A request is sent.
    pub(crate) fn sent(&self) {
        if !self.is_back() {
            self.sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An answer begins.
    pub(crate) fn begun(&self) {
        if !self.is_back() {
            self.begun.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A connection is being made for as long as the guard lives.
    pub(crate) fn connecting(&self) -> Step<'_> {
        Step::of(&self.connecting)
    }

    /// A TLS handshake goes on for as long as the guard lives.
    pub(crate) fn securing(&self) -> Step<'_> {
        Step::of(&self.securing)
    }

    fn is_back(&self) -> bool {
        self.back.load(Ordering::Relaxed)
    }
}

/// Something that goes on.
pub(crate) struct Step<'a>(&'a AtomicU64);

impl<'a> Step<'a> {
    fn of(count: &'a AtomicU64) -> Step<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        Step(count)
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
