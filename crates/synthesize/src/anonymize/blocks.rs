//! Numbers of blocks: equal numbers mean equal text up to there.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// Numbers blocks by first appearance. A number stands for the block before it and the tokens of the block. The hashes
/// are kept here and written nowhere.
#[derive(Default)]
pub(super) struct BlockIds {
    seen: HashMap<[u8; 16], u64>,
}

impl BlockIds {
    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.seen.len() as u64
    }

    /// The number of the block of `tokens` after block `before`.
    pub(super) fn id(&mut self, before: Option<u64>, tokens: &[u32]) -> u64 {
        let mut digest = Sha256::new();
        // No block has this number.
        digest.update(before.unwrap_or(u64::MAX).to_le_bytes());
        for token in tokens {
            digest.update(token.to_le_bytes());
        }
        let whole: [u8; 32] = digest.finalize().into();
        let mut key = [0; 16];
        key.copy_from_slice(&whole[..16]);
        let next = self.len();
        *self.seen.entry(key).or_insert(next)
    }
}
