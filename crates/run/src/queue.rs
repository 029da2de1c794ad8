//! Finished exchanges on their way to the compute threads: bounded by number and by what they hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aiperf_load::{Exchange, ExchangeSink};
use crossbeam_channel::{Receiver, Sender, unbounded};

/// How much may wait in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Exchanges.
    pub(crate) exchanges: usize,
    /// Bytes that they hold: prompts not counted yet, answers not read yet.
    pub(crate) bytes: u64,
}

impl Limits {
    /// 80 % of 10,240 exchanges; 64 MiB.
    pub(crate) const RUN: Limits = Limits { exchanges: 8192, bytes: 64 << 20 };

    /// At half of it what waits on disk comes back.
    fn halved(self) -> Limits {
        Limits { exchanges: self.exchanges / 2, bytes: self.bytes / 2 }
    }
}

/// An exchange and the bytes it was taken for: a prompt shared with others may be counted, and weigh nothing, before
/// it leaves the queue.
#[derive(Debug)]
pub(crate) struct Weighed {
    exchange: Exchange,
    bytes: u64,
}

/// The end that takes exchanges.
#[derive(Clone)]
pub(crate) struct Entrance {
    sender: Sender<Weighed>,
    bytes: Arc<AtomicU64>,
    limits: Limits,
}

/// The end that gives them away.
#[derive(Clone)]
pub(crate) struct Exit {
    receiver: Receiver<Weighed>,
    bytes: Arc<AtomicU64>,
}

/// A queue.
pub(crate) fn queue(limits: Limits) -> (Entrance, Exit) {
    let (sender, receiver) = unbounded();
    let bytes = Arc::new(AtomicU64::new(0));
    (Entrance { sender, bytes: Arc::clone(&bytes), limits }, Exit { receiver, bytes })
}

impl Entrance {
    fn has_room(&self, limits: Limits) -> bool {
        self.sender.len() < limits.exchanges && self.bytes.load(Ordering::Relaxed) < limits.bytes
    }

    /// Whether what waits on disk may come back.
    pub(crate) fn is_half_empty(&self) -> bool {
        self.has_room(self.limits.halved())
    }

    /// Whether one more may wait.
    pub(crate) fn takes(&self) -> bool {
        self.has_room(self.limits)
    }

    /// Takes an exchange, room or not.
    pub(crate) fn send(&self, exchange: Exchange) {
        let bytes = exchange.held_bytes() as u64;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // The threads outlive the network: a closed queue means the process is going down.
        let _ = self.sender.send(Weighed { exchange, bytes });
    }
}

impl Exit {
    /// For waiting on several channels; what comes out goes through [`Exit::take`].
    pub(crate) fn receiver(&self) -> &Receiver<Weighed> {
        &self.receiver
    }

    /// The exchange, which no longer waits.
    pub(crate) fn take(&self, weighed: Weighed) -> Exchange {
        self.bytes.fetch_sub(weighed.bytes, Ordering::Relaxed);
        weighed.exchange
    }
}

/// The way in for network threads.
pub(crate) struct Inlet {
    entrance: Entrance,
    /// For what does not fit.
    overflow: Sender<Exchange>,
    /// Exchanges handed over so far.
    accepted: Arc<AtomicU64>,
}

impl Inlet {
    pub(crate) fn new(entrance: Entrance, overflow: Sender<Exchange>, accepted: Arc<AtomicU64>) -> Inlet {
        Inlet { entrance, overflow, accepted }
    }
}

impl ExchangeSink for Inlet {
    fn accept(&self, exchange: Exchange) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        if self.entrance.takes() {
            self.entrance.send(exchange);
        } else {
            let _ = self.overflow.send(exchange);
        }
    }
}

#[cfg(test)]
mod tests {
    use aiperf_types::CountedText;

    use super::*;
    use crate::spill::tests::exchange;

    fn with_prompt(number: u64, bytes: usize) -> Exchange {
        let mut exchange = exchange(number);
        exchange.request.texts = vec![Arc::new(CountedText::new("x".repeat(bytes)))];
        exchange
    }

    #[test]
    fn large_prompts_overflow_long_before_there_are_many_of_them() {
        let limits = Limits { exchanges: 1_000, bytes: 1 << 20 };
        let (entrance, exit) = queue(limits);
        let (overflow, overflown) = unbounded();
        let inlet = Inlet::new(entrance.clone(), overflow, Arc::default());
        let prompt = 100_000;
        for number in 0..200 {
            inlet.accept(with_prompt(number, prompt));
            let held = entrance.bytes.load(Ordering::Relaxed);
            assert!(held <= limits.bytes + 2 * prompt as u64, "{held} bytes wait");
        }
        assert_eq!(exit.receiver().len(), 11);
        assert_eq!(overflown.len(), 189);
        assert!(!entrance.is_half_empty());
        for weighed in exit.receiver().try_iter() {
            exit.take(weighed);
        }
        assert_eq!(entrance.bytes.load(Ordering::Relaxed), 0);
        assert!(entrance.is_half_empty());
    }

    #[test]
    fn a_shared_prompt_that_is_counted_meanwhile_leaves_the_sum_right() {
        let (entrance, exit) = queue(Limits::RUN);
        let shared = Arc::new(CountedText::new("x".repeat(1_000)));
        for number in 0..3 {
            let mut exchange = exchange(number);
            exchange.request.texts = vec![Arc::clone(&shared)];
            entrance.send(exchange);
        }
        for weighed in exit.receiver().try_iter() {
            let exchange = exit.take(weighed);
            assert_eq!(exchange.request.texts[0].tokens(|text| text.len() as u64), 1_000);
        }
        assert_eq!(entrance.bytes.load(Ordering::Relaxed), 0);
    }
}
