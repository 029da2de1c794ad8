//! Byte-pair merging of one piece, and the small memory of pieces merged before.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::hash::hash;
use super::table::RankTable;

const NO_RANK: u32 = u32::MAX;
/// Up to this length a scan for the next merge beats a heap.
const SCAN_LIMIT: usize = 64;
const CACHE_SLOTS: usize = 4096;
const CACHED_BYTES: usize = 34;
const CACHED_TOKENS: usize = 6;

/// A piece and its tokens; 64 bytes, so that it lies in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Entry {
    owner: u32,
    len: u8,
    count: u8,
    bytes: [u8; CACHED_BYTES],
    tokens: [u32; CACHED_TOKENS],
}

const VACANT: Entry =
    Entry { owner: 0, len: 0, count: 0, bytes: [0; CACHED_BYTES], tokens: [0; CACHED_TOKENS] };

/// Working memory of a thread.
pub(crate) struct Scratch {
    cache: Vec<Entry>,
    merger: Merger,
}

/// Working memory of one merge.
pub(crate) struct Merger {
    /// The tokens found.
    pub(crate) merged: Vec<u32>,
    links: Vec<Link>,
    queue: BinaryHeap<Reverse<(u32, u32)>>,
}

#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    end: u32,
    /// Rank of this part joined with the next; `NO_RANK` when they do not join or this part is gone.
    joined: u32,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const {
        RefCell::new(Scratch {
            cache: Vec::new(),
            merger: Merger { merged: Vec::new(), links: Vec::new(), queue: BinaryHeap::new() },
        })
    };
}

/// Calls `work` with the thread's working memory.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.cache.is_empty() {
            scratch.cache.resize(CACHE_SLOTS, VACANT);
        }
        work(scratch)
    })
}

impl Scratch {
    /// The tokens of one piece: those kept from before, or what `merge` appends to its list. `owner` tells
    /// vocabularies apart, from 1.
    #[inline]
    pub(crate) fn tokens(&mut self, owner: u32, piece: &[u8], merge: impl FnOnce(&mut Merger)) -> &[u32] {
        if piece.len() > CACHED_BYTES {
            self.merger.merged.clear();
            merge(&mut self.merger);
            return &self.merger.merged;
        }
        let slot = (hash(piece) >> 40) as usize % CACHE_SLOTS;
        let entry = &self.cache[slot];
        let hit = entry.owner == owner
            && usize::from(entry.len) == piece.len()
            && &entry.bytes[..piece.len()] == piece;
        if !hit {
            self.merger.merged.clear();
            merge(&mut self.merger);
            let merged = &self.merger.merged;
            if merged.len() > CACHED_TOKENS {
                return merged;
            }
            let entry = &mut self.cache[slot];
            entry.owner = owner;
            entry.len = piece.len() as u8;
            entry.count = merged.len() as u8;
            entry.bytes[..piece.len()].copy_from_slice(piece);
            entry.tokens[..merged.len()].copy_from_slice(merged);
        }
        let entry = &self.cache[slot];
        &entry.tokens[..usize::from(entry.count)]
    }
}

impl Merger {
    /// Appends the tokens of a piece by the ranks below `limit` of a table.
    pub(crate) fn merge(&mut self, table: &RankTable, limit: u32, piece: &[u8]) {
        let joined = |bytes: &[u8]| table.rank(bytes).filter(|&rank| rank < limit).unwrap_or(NO_RANK);
        if piece.len() <= SCAN_LIMIT {
            merge_by_scan(piece, joined, &mut self.merged);
        } else {
            self.merge_by_heap(piece, joined);
        }
    }

    /// Joins the pair of lowest rank, the leftmost of equals, until none joins: O(n log n).
    fn merge_by_heap(&mut self, piece: &[u8], joined: impl Fn(&[u8]) -> u32) {
        let len = piece.len();
        self.links.clear();
        self.queue.clear();
        for at in 0..len {
            let rank = if at + 1 < len { joined(&piece[at..at + 2]) } else { NO_RANK };
            self.links.push(Link { previous: at.wrapping_sub(1) as u32, end: (at + 1) as u32, joined: rank });
            if rank != NO_RANK {
                self.queue.push(Reverse((rank, at as u32)));
            }
        }
        while let Some(Reverse((rank, at))) = self.queue.pop() {
            let left = self.links[at as usize];
            if left.joined != rank {
                continue;
            }
            let right = self.links[left.end as usize];
            self.links[left.end as usize].joined = NO_RANK;
            if let Some(after) = self.links.get_mut(right.end as usize) {
                after.previous = at;
            }
            self.links[at as usize].end = right.end;
            self.rejoin(piece, at, &joined);
            if left.previous != u32::MAX {
                self.rejoin(piece, left.previous, &joined);
            }
        }
        let mut at = 0;
        while at < len {
            let end = self.links[at].end as usize;
            self.merged.push(joined(&piece[at..end]));
            at = end;
        }
    }

    fn rejoin(&mut self, piece: &[u8], at: u32, joined: &impl Fn(&[u8]) -> u32) {
        let middle = self.links[at as usize].end as usize;
        let rank = match self.links.get(middle) {
            Some(next) => joined(&piece[at as usize..next.end as usize]),
            None => NO_RANK,
        };
        self.links[at as usize].joined = rank;
        if rank != NO_RANK {
            self.queue.push(Reverse((rank, at)));
        }
    }
}

fn merge_by_scan(piece: &[u8], joined: impl Fn(&[u8]) -> u32, merged: &mut Vec<u32>) {
    // starts[i] and ranks[i]: where part i begins, and the rank of parts i and i + 1 joined.
    let mut starts = [0u8; SCAN_LIMIT + 1];
    let mut ranks = [NO_RANK; SCAN_LIMIT];
    let mut parts = piece.len();
    for (at, start) in starts.iter_mut().enumerate() {
        *start = at as u8;
    }
    for at in 1..parts {
        ranks[at - 1] = joined(&piece[at - 1..=at]);
    }
    while parts > 1 {
        let (mut at, mut lowest) = (0, NO_RANK);
        for (index, &rank) in ranks[..parts - 1].iter().enumerate() {
            if rank < lowest {
                (at, lowest) = (index, rank);
            }
        }
        if lowest == NO_RANK {
            break;
        }
        starts.copy_within(at + 2..=parts, at + 1);
        ranks.copy_within(at + 2..parts.max(at + 2), at + 1);
        parts -= 1;
        ranks[parts - 1] = NO_RANK;
        let span = |from: usize| usize::from(starts[from])..usize::from(starts[from + 2]);
        ranks[at] = if at + 2 <= parts { joined(&piece[span(at)]) } else { NO_RANK };
        if at > 0 {
            ranks[at - 1] = joined(&piece[span(at - 1)]);
        }
    }
    merged.extend(
        starts[..=parts].windows(2).map(|pair| joined(&piece[usize::from(pair[0])..usize::from(pair[1])])),
    );
}
