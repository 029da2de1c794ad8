//! The hash that places tokens in the embedded tables. The build script and the program share this file.

/// Bits of a slot that hold the rank; the rest is a fingerprint of the token.
pub(crate) const RANK_BITS: u32 = 18;
/// A slot that holds nothing.
pub(crate) const EMPTY_SLOT: u32 = u32::MAX;

const MIX: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F];

#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes[at..].first_chunk::<8>() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => 0,
    }
}

#[inline]
fn half(bytes: &[u8], at: usize) -> u64 {
    match bytes[at..].first_chunk::<4>() {
        Some(chunk) => u64::from(u32::from_le_bytes(*chunk)),
        None => 0,
    }
}

/// A 64-bit hash of `bytes`; the same on every machine.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    let (low, high, seed) = match len {
        0 => (0, 0, MIX[2]),
        1..=3 => {
            let low = u64::from(bytes[0]) | u64::from(bytes[len / 2]) << 8 | u64::from(bytes[len - 1]) << 16;
            (low, 0, MIX[2])
        }
        4..=7 => (half(bytes, 0), half(bytes, len - 4), MIX[2]),
        8..=16 => (word(bytes, 0), word(bytes, len - 8), MIX[2]),
        _ => {
            let mut seed = MIX[2];
            let mut at = 0;
            while at + 16 < len {
                seed = fold(word(bytes, at) ^ MIX[0] ^ seed, word(bytes, at + 8) ^ MIX[1]);
                at += 16;
            }
            (word(bytes, len - 16), word(bytes, len - 8), seed)
        }
    };
    fold(low ^ MIX[0] ^ (len as u64), high ^ seed)
}

/// The fingerprint of a hash, in the bits above the rank.
#[inline]
pub(crate) fn fingerprint(hash: u64) -> u32 {
    ((hash >> 32) as u32) & !((1 << RANK_BITS) - 1)
}

/// The first slot to look at; the next one follows, wrapping.
#[inline]
pub(crate) fn first_slot(hash: u64, slots: usize) -> usize {
    hash as usize & (slots - 1)
}
