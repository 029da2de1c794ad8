//! Rank tables as the build script wrote them: used in place, nothing is loaded.

use super::hash::{EMPTY_SLOT, RANK_BITS, fingerprint, first_slot, hash};

/// The ranks of one vocabulary.
#[derive(Debug)]
pub(crate) struct RankTable {
    text: &'static [u8],
    ends: &'static [u8],
    slots: &'static [u8],
    longest: usize,
}

macro_rules! table {
    ($name:literal) => {
        RankTable {
            text: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".text")),
            ends: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".ends")),
            slots: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".slots")),
            longest: 128,
        }
    };
}

pub(crate) static O200K: RankTable = table!("o200k");
pub(crate) static CL100K: RankTable = table!("cl100k");
pub(crate) static P50K: RankTable = table!("p50k");

#[inline]
fn number(bytes: &[u8], index: usize) -> u32 {
    u32::from_le_bytes(bytes.as_chunks::<4>().0[index])
}

impl RankTable {
    /// The rank of exactly these bytes.
    #[inline]
    pub(crate) fn rank(&self, token: &[u8]) -> Option<u32> {
        if token.len() > self.longest {
            return None;
        }
        self.rank_hashed(token, hash(token))
    }

    /// As [`RankTable::rank`], for bytes whose hash is known already.
    #[inline]
    pub(crate) fn rank_hashed(&self, token: &[u8], hashed: u64) -> Option<u32> {
        let slots = self.slots.as_chunks::<4>().0;
        let wanted = fingerprint(hashed);
        let mut at = first_slot(hashed, slots.len());
        loop {
            let slot = u32::from_le_bytes(slots[at]);
            if slot == EMPTY_SLOT {
                return None;
            }
            let rank = slot & ((1 << RANK_BITS) - 1);
            if slot - rank == wanted && self.bytes(rank) == token {
                return Some(rank);
            }
            at = (at + 1) & (slots.len() - 1);
        }
    }

    /// The bytes of a rank below `len`; empty for a rank that stands for nothing.
    #[inline]
    pub(crate) fn bytes(&self, rank: u32) -> &'static [u8] {
        let rank = rank as usize;
        let start = if rank == 0 { 0 } else { number(self.ends, rank - 1) };
        &self.text[start as usize..number(self.ends, rank) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_found_by_its_bytes() {
        for table in [&O200K, &CL100K, &P50K] {
            for rank in 0..table.ends.len() as u32 / 4 {
                let bytes = table.bytes(rank);
                assert!(bytes.len() <= table.longest);
                if !bytes.is_empty() {
                    assert_eq!(table.rank(bytes), Some(rank));
                }
            }
        }
        assert_eq!(O200K.rank(b"no such token in here"), None);
        assert_eq!(O200K.rank(b""), None);
    }
}
