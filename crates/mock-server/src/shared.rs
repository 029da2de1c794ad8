//! What the threads of one server have in common.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use aiperf_clock::Mono;
use rustix::event::{EventfdFlags, eventfd};

use crate::settings::Settings;
use crate::stats::Counters;

/// What another thread can tell a network thread.
#[derive(Debug)]
pub(crate) enum Message {
    /// A connection to serve.
    Connection(OwnedFd, Mono),
    /// The prompt tokens of the request in `slot` that had `serial`.
    Counted { slot: usize, serial: u32, tokens: u64 },
    /// Close everything and end.
    Stop,
}

/// The way into a network thread: a queue and an event that wakes its poll.
#[derive(Debug)]
pub(crate) struct Inbox {
    queue: Mutex<VecDeque<Message>>,
    pub(crate) event: OwnedFd,
}

impl Inbox {
    pub(crate) fn new() -> std::io::Result<Inbox> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Inbox { queue: Mutex::new(VecDeque::new()), event })
    }

    pub(crate) fn send(&self, message: Message) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
        // The counter of an eventfd is full only when the reader has long been woken.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Takes what has arrived.
    pub(crate) fn take(&self) -> VecDeque<Message> {
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        std::mem::take(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Shared by all threads of a server.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) counters: Counters,
    pub(crate) inboxes: Vec<Arc<Inbox>>,
    /// The JSON value of an embedding as numbers and as base64.
    pub(crate) vectors: [Arc<str>; 2],
}

impl Shared {
    pub(crate) fn new(settings: Settings) -> std::io::Result<Shared> {
        let inboxes = (0..settings.threads).map(|_| Inbox::new().map(Arc::new)).collect::<Result<_, _>>()?;
        let vectors = vectors(settings.embedding_dim);
        Ok(Shared { settings, counters: Counters::new(), inboxes, vectors })
    }
}

/// The vector 0.1, 0.2, … 0.9, 0.1, …: as a JSON array, and as the base64 of its little-endian `f32`s.
fn vectors(length: usize) -> [Arc<str>; 2] {
    use base64::Engine as _;
    let tenths = || (0..length).map(|at| at % 9 + 1);
    let mut array = String::with_capacity(length * 4 + 2);
    array.push('[');
    for tenth in tenths() {
        if array.len() > 1 {
            array.push(',');
        }
        array.push_str("0.");
        array.push(char::from(b'0' + tenth as u8));
    }
    array.push(']');
    let bytes: Vec<u8> = tenths().flat_map(|tenth| (tenth as f32 / 10.0).to_le_bytes()).collect();
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    [array.into(), format!("\"{encoded}\"").into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_vectors_have_the_length_asked_for() {
        let [array, encoded] = vectors(11);
        let numbers: Vec<f64> = serde_json::from_str(&array).unwrap();
        assert_eq!(numbers.len(), 11);
        assert_eq!(numbers[9..], [0.1, 0.2]);
        let text: String = serde_json::from_str(&encoded).unwrap();
        assert_eq!(text.len(), (11 * 4usize).div_ceil(3) * 4);
    }
}
