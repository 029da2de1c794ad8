//! Named random streams: every concern of a run draws from its own, so that changing one option moves no other.
//!
//! The algorithm is pinned (`ChaCha12` keyed by a SHA-256), so a seed means the same data on every machine and in
//! every version.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;
use sha2::{Digest, Sha256};

pub use rand_chacha::rand_core::Rng;

/// What a named stream is.
pub type Stream = ChaCha12Rng;

/// The stream of `seed` called `name`: `ChaCha12` keyed by SHA-256 of `"<seed>:<name>"`.
pub fn stream(seed: u64, name: &str) -> Stream {
    Streams::new(seed, name).at(0)
}

/// A family of streams under one name, one for each item (entry, conversation, session): item 17 draws the same
/// whether there are 18 items or a million. Item 0 is [`stream`] itself.
#[derive(Clone, Debug)]
pub struct Streams {
    key: [u8; 32],
}

impl Streams {
    /// The family of `seed` called `name`.
    pub fn new(seed: u64, name: &str) -> Streams {
        let mut digest = Sha256::new();
        digest.update(seed.to_string());
        digest.update(":");
        digest.update(name);
        Streams { key: digest.finalize().into() }
    }

    /// As [`Streams::new`], with bytes (a file's identity, say) as part of the name.
    pub fn keyed(seed: u64, name: &str, bytes: &[u8]) -> Streams {
        let mut digest = Sha256::new();
        digest.update(seed.to_string());
        digest.update(":");
        digest.update(name);
        digest.update(":");
        digest.update(bytes);
        Streams { key: digest.finalize().into() }
    }

    /// The stream of one item; takes no hashing.
    pub fn at(&self, item: u64) -> Stream {
        let mut rng = ChaCha12Rng::from_seed(self.key);
        rng.set_stream(item);
        rng
    }
}

/// A whole number below `bound`, uniform and without bias (Lemire's multiplication with rejection); 0 when
/// `bound` is 0. One draw, seldom two.
#[inline]
pub fn below(rng: &mut (impl Rng + ?Sized), bound: u64) -> u64 {
    let mut product = u128::from(rng.next_u64()) * u128::from(bound);
    if (product as u64) < bound {
        let reject_below = bound.wrapping_neg() % bound;
        while (product as u64) < reject_below {
            product = u128::from(rng.next_u64()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}

/// A number in [0, 1), uniform over multiples of 2⁻⁵³.
#[inline]
pub fn unit(rng: &mut (impl Rng + ?Sized)) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The draws of a seed are part of what a seed promises: these may never change.
    #[test]
    fn streams_are_pinned() {
        let mut prompts = stream(42, "prompts");
        assert_eq!(prompts.next_u64(), PINNED);
        assert_ne!(stream(42, "lengths").next_u64(), PINNED);
        assert_ne!(stream(43, "prompts").next_u64(), PINNED);
    }

    const PINNED: u64 = 9_567_633_667_067_203_456;

    #[test]
    fn items_of_a_family_are_apart_and_repeatable() {
        let family = Streams::new(7, "entries");
        let draws: Vec<u64> = (0..100).map(|item| family.at(item).next_u64()).collect();
        let again: Vec<u64> = (0..100).rev().map(|item| family.at(item).next_u64()).rev().collect();
        assert_eq!(draws, again);
        assert_eq!(draws[0], stream(7, "entries").next_u64());
        let mut distinct = draws.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), draws.len());
    }

    #[test]
    fn below_is_uniform_and_in_range() {
        let mut rng = stream(1, "below");
        assert_eq!(below(&mut rng, 0), 0);
        assert_eq!(below(&mut rng, 1), 0);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[below(&mut rng, 7) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (9_600..10_400).contains(&count)), "{seen:?}");
    }
}
