//! A list that one thread appends to while others read, without a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Items per chunk.
const CHUNK: usize = 1024;
/// Level k holds 2^k chunks; 40 levels are more than memory can hold.
const LEVELS: usize = 40;

type Level<T> = OnceLock<Box<[OnceLock<Box<[T]>>]>>;

/// Items are appended chunk by chunk and never move.
pub(crate) struct Growing<T> {
    levels: [Level<T>; LEVELS],
    len: AtomicU64,
}

impl<T: Copy> Growing<T> {
    pub(crate) fn new() -> Growing<T> {
        Growing { levels: [const { OnceLock::new() }; LEVELS], len: AtomicU64::new(0) }
    }

    /// Items that can be read.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn place(chunk: usize) -> (usize, usize) {
        let number = chunk + 1;
        let level = number.ilog2() as usize;
        (level, number - (1 << level))
    }

    /// Item `index`, when it is there.
    pub(crate) fn get(&self, index: u64) -> Option<T> {
        if index >= self.len() {
            return None;
        }
        let index = index as usize;
        let (level, slot) = Self::place(index / CHUNK);
        self.levels[level].get()?[slot].get()?.get(index % CHUNK).copied()
    }
}

/// The one writer of a [`Growing`] list. Items are readable once their chunk is full or flushed.
pub(crate) struct Appender<T> {
    pending: Vec<T>,
    chunks: usize,
}

impl<T: Copy> Appender<T> {
    pub(crate) fn new() -> Appender<T> {
        Appender { pending: Vec::with_capacity(CHUNK), chunks: 0 }
    }

    /// Items appended, readable or not.
    pub(crate) fn len(&self) -> u64 {
        (self.chunks * CHUNK + self.pending.len()) as u64
    }

    pub(crate) fn push(&mut self, list: &Growing<T>, item: T) {
        self.pending.push(item);
        if self.pending.len() == CHUNK {
            self.publish(list);
        }
    }

    /// Makes the last, partial chunk readable; nothing may be appended afterwards.
    pub(crate) fn finish(mut self, list: &Growing<T>) {
        if !self.pending.is_empty() {
            self.publish(list);
        }
    }

    fn publish(&mut self, list: &Growing<T>) {
        let chunk: Box<[T]> = self.pending.as_slice().into();
        let (level, slot) = Growing::<T>::place(self.chunks);
        let total = self.len();
        let slots =
            list.levels[level].get_or_init(|| (0..1usize << level).map(|_| OnceLock::new()).collect());
        // One writer: the slot is empty.
        let _ = slots[slot].set(chunk);
        self.chunks += 1;
        self.pending.clear();
        list.len.store(total, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_by_index_across_chunks_and_levels() {
        let list = Growing::new();
        let mut writer = Appender::new();
        for item in 0..10_500u64 {
            writer.push(&list, item);
        }
        assert_eq!(list.len(), 10_240);
        assert_eq!(list.get(10_240), None);
        assert_eq!(writer.len(), 10_500);
        writer.finish(&list);
        for item in 0..10_500 {
            assert_eq!(list.get(item), Some(item));
        }
        assert_eq!(list.get(10_500), None);
    }

    #[test]
    fn readers_see_what_is_published_while_it_grows() {
        let list = Growing::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = Appender::new();
                for item in 0..50_000u64 {
                    writer.push(&list, item);
                }
                writer.finish(&list);
            });
            loop {
                let len = list.len();
                if len > 0 {
                    assert_eq!(list.get(len - 1), Some(len - 1));
                }
                if len == 50_000 {
                    break;
                }
            }
        });
    }
}
