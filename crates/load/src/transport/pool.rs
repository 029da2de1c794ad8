//! Free connections of one worker to one origin, used oldest first.

use std::collections::VecDeque;

use aiperf_clock::Mono;

use super::connection::Connection;

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

    /// The connection that has been free longest and is still good. Every one is looked at, however short it was
    /// idle: a request must not go to a peer that has closed, nor be answered by bytes left over from before.
    pub(crate) fn take(&mut self, now: Mono) -> Option<Connection> {
        while let Some(connection) = self.free.pop_front() {
            let idle = now.saturating_since(connection.idle_since);
            if idle < self.keepalive_ns && connection.is_quiet() {
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// A pooled connection that was given back at 0, and the peer's end of it.
    async fn pooled(listener: &std::net::TcpListener, pool: &mut Pool) -> std::net::TcpStream {
        let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (peer, _) = listener.accept().unwrap();
        pool.give(Connection::plain(stream), Mono(0));
        peer
    }

    fn with_pool<T>(keepalive_ns: u64, test: impl AsyncFnOnce(std::net::TcpListener, Pool) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        runtime.block_on(test(listener, Pool::new(keepalive_ns)))
    }

    #[test]
    fn the_connection_that_was_free_longest_goes_first() {
        with_pool(u64::MAX, async |listener, mut pool| {
            let peers = [pooled(&listener, &mut pool).await, pooled(&listener, &mut pool).await];
            for peer in &peers {
                let connection = pool.take(Mono(1)).unwrap();
                assert_eq!(connection.local, peer.peer_addr().ok());
                assert!(connection.used);
            }
            assert!(pool.take(Mono(1)).is_none());
        });
    }

    #[test]
    fn a_peer_that_closed_the_moment_before_is_noticed() {
        with_pool(u64::MAX, async |listener, mut pool| {
            drop(pooled(&listener, &mut pool).await);
            let live = pooled(&listener, &mut pool).await;
            // Not a nanosecond idle.
            assert_eq!(pool.take(Mono(0)).unwrap().local, live.peer_addr().ok());
        });
    }

    #[test]
    fn bytes_that_nobody_asked_for_spoil_a_connection() {
        with_pool(u64::MAX, async |listener, mut pool| {
            let mut peer = pooled(&listener, &mut pool).await;
            peer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            assert!(pool.take(Mono(0)).is_none());
        });
    }

    #[test]
    fn idle_connections_end_with_their_lifetime() {
        with_pool(1000, async |listener, mut pool| {
            let _peers = [pooled(&listener, &mut pool).await, pooled(&listener, &mut pool).await];
            assert!(pool.take(Mono(999)).is_some());
            assert!(pool.take(Mono(1000)).is_none());
        });
    }
}
