//! Free connections of one worker to one origin, used oldest first.

use std::collections::VecDeque;

use aiperf_clock::Mono;

use super::connection::Connection;

/// A connection idle for less than this is used without asking the kernel whether the peer closed it.
const TRUSTED_NS: u64 = 1_000_000;

/// The pool.
#[derive(Debug)]
pub(crate) struct Pool {
    free: VecDeque<Connection>,
    keepalive_ns: u64,
}

impl Pool {
    /// A pool whose connections are kept for `keepalive_ns` when idle.
    pub(crate) fn new(keepalive_ns: u64) -> Pool {
        Pool { free: VecDeque::new(), keepalive_ns }
    }

    /// The connection that has been free longest and is still good.
    pub(crate) fn take(&mut self, now: Mono) -> Option<Connection> {
        while let Some(connection) = self.free.pop_front() {
            let idle = now.saturating_since(connection.idle_since);
            if idle < TRUSTED_NS || (idle < self.keepalive_ns && connection.is_quiet()) {
                return Some(connection);
            }
        }
        None
    }

    /// Gives a connection back.
    pub(crate) fn give(&mut self, mut connection: Connection, now: Mono) {
        connection.idle_since = now;
        connection.used = true;
        self.free.push_back(connection);
    }
}
