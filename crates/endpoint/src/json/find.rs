//! The next byte of a string that is not plain.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// A mask whose lowest set bit lies in the first byte of `word` that is a quote, a backslash or a control
/// character. Bytes above the first may be marked wrongly; the first never is.
#[inline]
fn special_mask(word: u64) -> u64 {
    let quote = word ^ (ONES * u64::from(b'"'));
    let backslash = word ^ (ONES * u64::from(b'\\'));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = quote.wrapping_sub(ONES) & !quote;
    let backslash = backslash.wrapping_sub(ONES) & !backslash;
    (control | quote | backslash) & HIGHS
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Index of the first quote, backslash or control character of `bytes` at or after `from`; the length when
/// there is none.
#[inline]
pub(super) fn special(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    // Most strings of a stream are short: a few words first, wide blocks for the long ones.
    for _ in 0..4 {
        let Some(word) = bytes.get(at..at + 8) else { return tail(bytes, at) };
        let mask = special_mask(load(word));
        if mask != 0 {
            return at + (mask.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    long(bytes, at)
}

/// Whether there is no quote, backslash or control character in `bytes`.
#[inline]
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    special(bytes, 0) == bytes.len()
}

#[inline]
fn load(word: &[u8]) -> u64 {
    let mut array = [0; 8];
    array.copy_from_slice(word);
    u64::from_le_bytes(array)
}

fn long(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes.get(at..at + 64) {
        // Without a branch inside, so that it becomes vector code.
        let hit = block.iter().fold(0u8, |hit, &byte| hit | u8::from(is_special(byte)));
        if hit != 0 {
            break;
        }
        at += 64;
    }
    while let Some(word) = bytes.get(at..at + 8) {
        let mask = special_mask(load(word));
        if mask != 0 {
            return at + (mask.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    tail(bytes, at)
}

fn tail(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| is_special(byte)).map_or(bytes.len(), |index| at + index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_what_a_plain_loop_finds(bytes in prop::collection::vec(prop_oneof![8 => 0x20u8..=0xff, 1 => any::<u8>()], 0..300), from in 0usize..40) {
            let from = from.min(bytes.len());
            let expected = bytes[from..].iter().position(|&b| is_special(b)).map_or(bytes.len(), |i| from + i);
            prop_assert_eq!(special(&bytes, from), expected);
        }
    }
}
