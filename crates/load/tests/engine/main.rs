//! The engine over real sockets, against servers that do what a test tells them.
//!
//! Nothing here waits for time to pass in order to be in step with another thread: threads meet through channels
//! and locks, and every wait has a deadline, so that a fault fails a test instead of hanging it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that panics has failed, and that is what it is for"
)]

mod closed_loop;
mod connections;
mod failures;
mod harness;
mod open_loop;
mod proxy;
mod sessions;
mod stopping;
mod streams;
mod tls;
mod wire;
