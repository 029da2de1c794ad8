//! What an infinite prefix cache holds of each request, by one definition for every figure, and the structure of the
//! first sessions in blocks.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Config, Session};

/// Sessions whose structure is written out.
const SHOWN: usize = 50;

/// Follows the sessions in file order and says how many blocks of each request were there before it.
#[derive(Debug)]
pub(crate) struct Reuse {
    block_size: u64,
    layer1: u64,
    layer1_5: u64,
    any: bool,
    groups: HashSet<u32>,
}

/// The blocks of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Blocks of the whole context.
    pub(crate) total: u64,
    /// Leading ones that an earlier request had.
    pub(crate) hit: u64,
}

impl Reuse {
    pub(crate) fn new(config: &Config) -> Reuse {
        Reuse {
            block_size: u64::from(config.block_size),
            layer1: config.layer1_blocks(),
            layer1_5: config.layer1_5_blocks(),
            any: false,
            groups: HashSet::new(),
        }
    }

    /// The blocks of each request of the next session. `resumed` are leading blocks that a restart finds.
    pub(crate) fn session(&mut self, session: &Session, resumed: Option<u64>, blocks: &mut Vec<Blocks>) {
        blocks.clear();
        let mut hit = resumed.unwrap_or_else(|| {
            let group = if self.groups.contains(&session.group) { self.layer1_5 } else { 0 };
            if self.any { self.layer1 + group } else { 0 }
        });
        for turn in &session.turns {
            let total = turn.context.div_ceil(self.block_size);
            blocks.push(Blocks { total, hit: hit.min(total) });
            hit = total;
        }
        self.any = true;
        self.groups.insert(session.group);
    }
}

/// The first sessions in blocks: which layer each block of a request belongs to, and whether it is new.
#[derive(Debug)]
pub struct CacheStructure {
    block_size: u32,
    layer1: u64,
    layer1_5: u64,
    sessions: Vec<Value>,
}

impl CacheStructure {
    pub(crate) fn new(config: &Config) -> CacheStructure {
        CacheStructure {
            block_size: config.block_size,
            layer1: config.layer1_blocks(),
            layer1_5: config.layer1_5_blocks(),
            sessions: Vec::new(),
        }
    }

    pub(crate) fn session(&mut self, name: &str, session: &Session, blocks: &[Blocks]) {
        if self.sessions.len() >= SHOWN {
            return;
        }
        let own = self.layer1 + self.layer1_5;
        let turns: Vec<Value> = session
            .turns
            .iter()
            .zip(blocks)
            .enumerate()
            .map(|(index, (turn, blocks))| {
                let mut segments = Vec::new();
                let mut segment = |from: u64, to: u64, layer: &str| {
                    let (from, to) = (from.min(blocks.total), to.min(blocks.total));
                    for (start, end, status) in
                        [(from, to.min(blocks.hit), "cached"), (from.max(blocks.hit), to, "new")]
                    {
                        if start < end {
                            segments.push(json!({
                                "start": start, "count": end - start, "layer": layer, "status": status,
                            }));
                        }
                    }
                };
                segment(0, self.layer1, "L1");
                segment(self.layer1, own, "L1.5");
                // What the session had before this turn is its own start context by now.
                let before = if index == 0 { blocks.total } else { blocks.hit.max(own) };
                segment(own, before, "L2");
                segment(before, blocks.total, "L3");
                json!({
                    "turn_index": index,
                    "input_length": turn.new,
                    "output_length": turn.output,
                    "num_blocks": blocks.total,
                    "segments": segments,
                })
            })
            .collect();
        self.sessions.push(json!({"session_id": name, "turns": turns}));
    }

    /// As it is written.
    pub fn to_json(&self) -> Value {
        json!({
            "block_size": self.block_size,
            "l1_blocks": self.layer1,
            "l15_blocks": self.layer1_5,
            "sessions": self.sessions,
        })
    }
}
