//! What a cache without limit would find again.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::prefix::Fast;

/// Hits of an infinite cache, over the blocks that records name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cache {
    /// Leading blocks that were met before, among all blocks.
    pub by_block: f64,
    /// Mean over requests of their own share.
    pub by_request: f64,
    /// The same over first turns; absent when none has blocks.
    pub first_turns: Option<f64>,
    /// The same over later turns.
    pub later_turns: Option<f64>,
    /// Different blocks.
    pub working_set_blocks: u64,
    /// Tokens of these, where the size of a block is known.
    pub working_set_tokens: Option<u64>,
}

/// The same where each row records only what it adds to its session: what a request repeats counts as well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CumulativeCache {
    /// Leading blocks that were met before, among all blocks of the whole contexts.
    pub by_block: f64,
    /// Mean over requests of their own share.
    pub by_request: f64,
}

#[derive(Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn get(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Takes requests in the order in which they come.
#[derive(Default)]
pub(crate) struct CacheBuilder {
    seen: HashSet<(u64, i64), Fast>,
    hits: u64,
    blocks: u64,
    tokens: u64,
    unknown_size: bool,
    first: Mean,
    later: Mean,
}

impl CacheBuilder {
    pub(crate) fn add(&mut self, turn: u32, scope: u64, ids: &[i64], block_size: Option<u32>) {
        if ids.is_empty() {
            return;
        }
        let leading = ids.iter().take_while(|id| self.seen.contains(&(scope, **id))).count();
        for id in &ids[leading..] {
            if self.seen.insert((scope, *id)) {
                match block_size {
                    Some(size) => self.tokens += u64::from(size),
                    None => self.unknown_size = true,
                }
            }
        }
        self.hits += leading as u64;
        self.blocks += ids.len() as u64;
        let share = leading as f64 / ids.len() as f64;
        if turn == 0 { &mut self.first } else { &mut self.later }.add(share);
    }

    /// Whether any request names blocks.
    pub(crate) fn is_used(&self) -> bool {
        self.blocks > 0
    }

    pub(crate) fn finish(self) -> Option<Cache> {
        let all = Mean { sum: self.first.sum + self.later.sum, count: self.first.count + self.later.count };
        Some(Cache {
            by_request: all.get()?,
            by_block: self.hits as f64 / self.blocks as f64,
            first_turns: self.first.get(),
            later_turns: self.later.get(),
            working_set_blocks: self.seen.len() as u64,
            working_set_tokens: (!self.unknown_size).then_some(self.tokens),
        })
    }
}

impl Cache {
    pub(crate) fn json(&self) -> Value {
        let mut map = Map::new();
        map.insert("by_block".into(), self.by_block.into());
        map.insert("by_request".into(), self.by_request.into());
        for (name, value) in [("first_turns", self.first_turns), ("later_turns", self.later_turns)] {
            if let Some(value) = value {
                map.insert(name.into(), value.into());
            }
        }
        Value::Object(map)
    }
}

/// Follows sessions whose rows record only what is new.
#[derive(Default)]
pub(crate) struct CumulativeBuilder {
    seen: HashSet<i64, Fast>,
    sessions: HashMap<u64, Context>,
    block_size: u64,
    hits: u64,
    blocks: u64,
    shares: Mean,
}

/// Tokens of the last request of a session, and of its answer.
#[derive(Clone, Copy, Default)]
struct Context {
    sent: u64,
    answered: u64,
}

impl CumulativeBuilder {
    pub(crate) fn new(block_size: u32) -> CumulativeBuilder {
        CumulativeBuilder { block_size: u64::from(block_size.max(1)), ..CumulativeBuilder::default() }
    }

    /// Adds a row; tokens of the whole context that its request has.
    pub(crate) fn add(&mut self, session: u64, turn: u32, ids: &[i64], input: u64, output: u64) -> u64 {
        let before = if turn == 0 {
            Context::default()
        } else {
            self.sessions.get(&session).copied().unwrap_or_default()
        };
        let whole = before.sent + before.answered + input;
        self.sessions.insert(session, Context { sent: whole, answered: output });
        let leading = ids.iter().take_while(|id| self.seen.contains(id)).count() as u64;
        self.seen.extend(ids);
        let blocks = whole.div_ceil(self.block_size);
        if blocks > 0 {
            // A later turn finds what the request before it sent.
            let hits = if turn == 0 { leading } else { before.sent.div_ceil(self.block_size) };
            let hits = hits.min(blocks);
            self.hits += hits;
            self.blocks += blocks;
            self.shares.add(hits as f64 / blocks as f64);
        }
        whole
    }

    pub(crate) fn finish(self) -> Option<CumulativeCache> {
        Some(CumulativeCache {
            by_request: self.shares.get()?,
            by_block: self.hits as f64 / self.blocks as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_blocks_and_of_requests() {
        let mut cache = CacheBuilder::default();
        cache.add(0, 0, &[1, 2], Some(16));
        cache.add(0, 0, &[1, 2, 3, 4], Some(16));
        cache.add(1, 0, &[9, 1], Some(16));
        // The same numbers in another trace are other blocks.
        cache.add(0, 1, &[1, 2], Some(16));
        let cache = cache.finish().unwrap();
        assert_eq!(cache.by_block, 0.2);
        assert_eq!(cache.by_request, 0.125);
        assert_eq!((cache.first_turns, cache.later_turns), (Some(0.5 / 3.0), Some(0.0)));
        assert_eq!((cache.working_set_blocks, cache.working_set_tokens), (7, Some(112)));
    }

    #[test]
    fn a_later_turn_of_an_incremental_session_finds_what_was_sent_before() {
        let mut cache = CumulativeBuilder::new(10);
        assert_eq!(cache.add(7, 0, &[1, 2, 3], 30, 10), 30);
        assert_eq!(cache.add(7, 1, &[4], 10, 5), 50);
        assert_eq!(cache.add(8, 0, &[1, 9], 20, 1), 20);
        let cache = cache.finish().unwrap();
        assert_eq!(cache.by_block, (3.0 + 1.0) / (3.0 + 5.0 + 2.0));
        assert!((cache.by_request - (0.0 + 0.6 + 0.5) / 3.0).abs() < 1e-12);
    }
}
