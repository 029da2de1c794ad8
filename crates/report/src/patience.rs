//! What is said of work that takes longer than a second.

use std::sync::Arc;

use aiperf_clock::{Mono, now};

use crate::screen::Screen;

/// Nothing is said before, ns.
const FIRST: u64 = 1_000_000_000;
/// A terminal shows each; a log is to stay short.
const ON_TERMINAL: u64 = 200_000_000;
const IN_LOG: u64 = 10_000_000_000;

/// Says how far a piece of work is, once it has taken a second. Dropped, it clears its line.
#[derive(Debug)]
pub struct Patience {
    screen: Arc<Screen>,
    next: Mono,
    shown: bool,
}

impl Patience {
    /// The work begins now.
    pub fn new(screen: Arc<Screen>) -> Patience {
        Patience { screen, next: now().plus(FIRST), shown: false }
    }

    /// `done` of `all` things are done; 0 of all is that it is not known.
    pub fn tell(&mut self, done: u64, all: u64, things: &str) {
        self.tell_at(now(), done, all, things);
    }

    fn tell_at(&mut self, at: Mono, done: u64, all: u64, things: &str) {
        if at < self.next {
            return;
        }
        let all = if all == 0 { String::new() } else { format!(" of {all}") };
        self.screen.bar(format!("{done}{all} {things}"));
        self.next = at.plus(if self.screen.is_terminal() { ON_TERMINAL } else { IN_LOG });
        self.shown = true;
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if self.shown {
            self.screen.bar(String::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::tests::Memory;

    #[test]
    fn quick_work_is_not_spoken_of_and_slow_work_now_and_then() {
        const TERMINAL: &str = "\r\x1b[K110 of 900 rows\r\x1b[K130 rows\r\x1b[K";
        for (is_terminal, said) in [(true, TERMINAL), (false, "110 of 900 rows\n")] {
            let memory = Memory::default();
            let mut patience = Patience::new(Arc::new(memory.screen(is_terminal)));
            let begin = patience.next.0 - FIRST;
            let mut tell = |tenths: u64, all| {
                patience.tell_at(Mono(begin + tenths * 100_000_000), tenths * 10, all, "rows");
            };
            tell(9, 900);
            tell(11, 900);
            tell(12, 900);
            tell(13, 0);
            drop(patience);
            assert_eq!(memory.take(), said);
        }
    }
}
