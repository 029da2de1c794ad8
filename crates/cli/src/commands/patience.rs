//! What a command says when it takes longer than a second.

use std::io::IsTerminal;

use aiperf_clock::{Mono, now};

use crate::print;

const FIRST: u64 = 1_000_000_000;
/// A terminal shows each; a log is to stay short.
const ON_TERMINAL: u64 = 200_000_000;
const IN_LOG: u64 = 10_000_000_000;

/// Says how far a command is, once it has taken a second. Dropped, it clears its line.
pub(super) struct Patience {
    next: Mono,
    terminal: bool,
    shown: bool,
    calls: u32,
}

impl Patience {
    pub(super) fn new() -> Patience {
        let terminal = std::io::stderr().is_terminal();
        Patience { next: now().plus(FIRST), terminal, shown: false, calls: 0 }
    }

    /// `done` of `all` things are done. Cheap: the clock is read now and then.
    pub(super) fn tell(&mut self, done: u64, all: u64, things: &str) {
        self.calls = self.calls.wrapping_add(1);
        if !self.calls.is_multiple_of(64) {
            return;
        }
        let at = now();
        if at < self.next {
            return;
        }
        let all = if all == 0 { String::new() } else { format!(" of {all}") };
        if self.terminal {
            print::err(&format!("\r\x1b[K{done}{all} {things}"));
            self.next = at.plus(ON_TERMINAL);
        } else {
            print::err(&format!("{done}{all} {things}\n"));
            self.next = at.plus(IN_LOG);
        }
        self.shown = true;
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if self.shown && self.terminal {
            print::err("\r\x1b[K");
        }
    }
}
