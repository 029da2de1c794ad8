//! Readers at work and readers that are kept where they stopped: how much memory they take together is bounded.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes of pages that readers hold together at most; one reader may take more when it is alone.
const READERS_BYTES: u64 = 128 << 20;
/// Readers that are kept where they stopped.
const KEPT_READERS: usize = 4;

/// Which table, and a row of it.
pub(super) type Key = (usize, u64);

/// The readers of some columns.
pub(super) struct Readers<R> {
    /// Bytes of pages at most.
    most: u64,
    state: Mutex<State<R>>,
    changed: Condvar,
}

struct State<R> {
    /// In the order in which they stopped.
    kept: Vec<Stopped<R>>,
    /// The rows that readers at work will stop at.
    coming: Vec<Key>,
    /// Bytes of the readers at work and of those kept.
    used: u64,
    /// Who waits for memory, in order.
    line: VecDeque<u64>,
    /// Numbers given out in the line.
    numbers: u64,
    /// Readers opened so far.
    opened: u64,
}

/// A reader, and the row it goes on with.
struct Stopped<R> {
    next: Key,
    reader: R,
    bytes: u64,
}

/// The right to read, given back when it is dropped.
pub(super) struct Lease<'r, R> {
    readers: &'r Readers<R>,
    bytes: u64,
    end: Option<Key>,
}

impl<R> Readers<R> {
    pub(super) fn new() -> Readers<R> {
        Self::within(READERS_BYTES)
    }

    fn within(most: u64) -> Readers<R> {
        let state = State {
            kept: Vec::new(),
            coming: Vec::new(),
            used: 0,
            line: VecDeque::new(),
            numbers: 0,
            opened: 0,
        };
        Readers { most, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Whoever wants to read from row `at` to before row `end` of the same table. A reader that stops there, or will
    /// in a moment, is handed over; otherwise one may be opened, which takes `bytes`, as soon as there is room.
    pub(super) fn at(&self, at: Key, end: Key, bytes: u64) -> (Lease<'_, R>, Option<R>) {
        self.lease(Some(at), Some(end), bytes)
    }

    /// The same for a reader that nobody else goes on with.
    pub(super) fn apart(&self, bytes: u64) -> Lease<'_, R> {
        self.lease(None, None, bytes).0
    }

    /// Whether a reader stops at this row, or will in a moment.
    pub(super) fn reach(&self, at: Key) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.coming.contains(&at) || state.kept.iter().any(|stopped| stopped.next == at)
    }

    fn lease(&self, at: Option<Key>, end: Option<Key>, bytes: u64) -> (Lease<'_, R>, Option<R>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut number = None;
        loop {
            if let Some(found) = state.kept.iter().position(|stopped| Some(stopped.next) == at) {
                let stopped = state.kept.remove(found);
                state.leave(number);
                state.coming.extend(end);
                self.changed.notify_all();
                return (Lease { readers: self, bytes: stopped.bytes, end }, Some(stopped.reader));
            }
            // A reader on its way there is waited for: opening another one would read the same pages again.
            if at.is_none_or(|at| !state.coming.contains(&at)) {
                let mine = *number.get_or_insert_with(|| state.enter());
                if state.line.front() == Some(&mine) && state.makes_room(bytes, self.most) {
                    state.leave(number);
                    state.used += bytes;
                    state.opened += 1;
                    state.coming.extend(end);
                    self.changed.notify_all();
                    return (Lease { readers: self, bytes, end }, None);
                }
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Readers opened so far.
    #[cfg(test)]
    pub(super) fn opened(&self) -> u64 {
        self.state.lock().unwrap().opened
    }

    /// Bytes that readers hold, and how many are kept.
    #[cfg(test)]
    pub(super) fn held(&self) -> (u64, usize) {
        let state = self.state.lock().unwrap();
        (state.used, state.kept.len())
    }
}

impl<R> State<R> {
    fn enter(&mut self) -> u64 {
        self.numbers += 1;
        self.line.push_back(self.numbers);
        self.numbers
    }

    fn leave(&mut self, number: Option<u64>) {
        self.line.retain(|other| Some(*other) != number);
    }

    /// Lets go of kept readers until there is room; whether there is.
    fn makes_room(&mut self, bytes: u64, most: u64) -> bool {
        while self.used > 0 && self.used.saturating_add(bytes) > most {
            if self.kept.is_empty() {
                return false;
            }
            self.used -= self.kept.remove(0).bytes;
        }
        true
    }
}

impl<R> Lease<'_, R> {
    /// Keeps the reader where it stopped, for whoever goes on there.
    pub(super) fn keep(mut self, reader: R) {
        let Some(next) = self.end else { return };
        let bytes = std::mem::take(&mut self.bytes);
        let mut state = self.readers.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.kept.len() == KEPT_READERS {
            state.used -= state.kept.remove(0).bytes;
        }
        state.kept.push(Stopped { next, reader, bytes });
    }
}

impl<R> Drop for Lease<'_, R> {
    fn drop(&mut self) {
        let mut state = self.readers.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.used -= self.bytes;
        if let Some(at) = state.coming.iter().position(|coming| Some(*coming) == self.end) {
            state.coming.swap_remove(at);
        }
        self.readers.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn readers_that_do_not_fit_together_are_opened_one_after_the_other() {
        let readers = Readers::<()>::within(100);
        let (open, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (readers, open, most) = (&readers, &open, &most);
                scope.spawn(move || {
                    for step in 0..50 {
                        let (lease, found) = readers.at((thread, step), (thread, step + 1), 60);
                        assert!(found.is_none());
                        most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        open.fetch_sub(1, Ordering::SeqCst);
                        drop(lease);
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 1);
        assert_eq!((readers.held(), readers.opened()), ((0, 0), 200));
    }

    #[test]
    fn a_reader_larger_than_the_room_is_opened_alone_and_small_ones_together() {
        let readers = Readers::<()>::within(100);
        drop(readers.apart(1000));
        let first = readers.apart(50);
        let second = readers.apart(50);
        assert_eq!(readers.held(), (100, 0));
        drop((first, second));
        assert_eq!(readers.held(), (0, 0));
    }

    #[test]
    fn a_reader_on_its_way_to_a_row_is_waited_for() {
        let readers = Readers::within(100);
        let (lease, _) = readers.at((0, 0), (0, 10), 60);
        std::thread::scope(|scope| {
            let next = scope.spawn(|| {
                let (lease, found) = readers.at((0, 10), (0, 20), 60);
                lease.keep(found.unwrap_or("opened"));
            });
            lease.keep("the first");
            next.join().unwrap();
        });
        assert_eq!((readers.held(), readers.opened()), ((60, 1), 1));
        let (lease, found) = readers.at((0, 20), (0, 30), 60);
        assert_eq!(found, Some("the first"));
        // It failed on its way: another one is opened.
        std::thread::scope(|scope| {
            let next = scope.spawn(|| readers.at((0, 30), (0, 40), 60).1);
            drop(lease);
            assert_eq!(next.join().unwrap(), None);
        });
        assert_eq!((readers.held(), readers.opened()), ((0, 0), 2));
    }

    #[test]
    fn kept_readers_go_where_there_is_no_room_for_another() {
        let readers = Readers::within(100);
        for number in 0..10 {
            let (lease, _) = readers.at((number, 0), (number, 10), 40);
            lease.keep(number);
        }
        assert_eq!(readers.held(), (80, 2));
        assert_eq!(readers.at((9, 10), (9, 20), 40).1, Some(9));
        drop(readers.apart(100));
        assert_eq!(readers.held(), (0, 0));
    }
}
