//! Whole numbers in few bits.
//!
//! A run of numbers is stored as differences from its smallest, each in as many bits as pays: the few numbers
//! that need more keep their upper bits in a list behind ("patched frame of reference", Zukowski et al.,
//! "Super-Scalar RAM-CPU Cache Compression", 2006). Equal numbers cost nothing but the header.

/// Bytes that must follow the last run, so that reading eight bytes at any position stays inside.
pub(crate) const PADDING: usize = 8;

/// Widest packed number: a number at any bit offset then lies within eight bytes.
const WIDEST: u32 = 56;

/// Appends a run of numbers to `out`.
pub(crate) fn pack(values: &[i64], out: &mut Vec<u8>) {
    let Some(base) = values.iter().copied().min() else { return };
    let offset = |value: i64| value.wrapping_sub(base) as u64;
    let mut needing = [0usize; 65];
    for value in values {
        needing[bits(offset(*value)) as usize] += 1;
    }
    let width = cheapest_width(&needing, values.len());

    let exceptions: usize = needing[width as usize + 1..].iter().sum();
    out.push(width as u8);
    put_varint(zigzag(base), out);
    put_varint(exceptions as u64, out);
    let mask = low_mask(width);
    let (mut pending, mut filled) = (0u64, 0u32);
    for value in values {
        pending |= (offset(*value) & mask) << filled;
        filled += width;
        while filled >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(pending as u8);
    }
    if exceptions > 0 {
        let mut last = 0;
        for (index, value) in values.iter().enumerate() {
            let upper = offset(*value) >> width;
            if upper != 0 {
                put_varint((index - last) as u64, out);
                put_varint(upper, out);
                last = index;
            }
        }
    }
}

/// Reads a run of `into.len()` numbers that starts at `at`; gives the position after it.
pub(crate) fn unpack(data: &[u8], mut at: usize, into: &mut [i64]) -> usize {
    if into.is_empty() {
        return at;
    }
    let width = u32::from(data[at]);
    at += 1;
    let base = unzigzag(varint(data, &mut at));
    let exceptions = varint(data, &mut at);
    let mask = low_mask(width);
    if width == 0 {
        into.fill(base);
    } else {
        let mut bit = 0;
        for value in into.iter_mut() {
            let start = at + bit / 8;
            let word = u64::from_le_bytes(data[start..start + 8].try_into().unwrap_or_default());
            *value = base.wrapping_add((word >> (bit % 8) & mask) as i64);
            bit += width as usize;
        }
        at += bit.div_ceil(8);
    }
    let mut index = 0;
    for _ in 0..exceptions {
        index += varint(data, &mut at) as usize;
        let upper = varint(data, &mut at);
        into[index] = into[index].wrapping_add((upper << width) as i64);
    }
    at
}

/// The width with the smallest total: packed bits for all, about three bytes and the upper bits for those
/// that do not fit.
fn cheapest_width(needing: &[usize; 65], count: usize) -> u32 {
    let mut best = (usize::MAX, 0);
    let mut wider = 0;
    let mut wider_bits = 0;
    for width in (0..=64usize).rev() {
        let cost = count * width + wider * 16 + wider_bits;
        if width as u32 <= WIDEST && cost < best.0 {
            best = (cost, width as u32);
        }
        // Each of those that need `width` bits becomes an exception of all narrower widths, one bit longer
        // with each step down.
        wider += needing[width];
        wider_bits += wider * 8 / 7;
    }
    best.1
}

fn bits(value: u64) -> u32 {
    64 - value.leading_zeros()
}

fn low_mask(width: u32) -> u64 {
    (1 << width) - 1
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint(data: &[u8], at: &mut usize) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let byte = data[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(values: &[i64]) -> usize {
        let mut out = vec![7; 3];
        pack(values, &mut out);
        let end = out.len();
        out.extend([0; PADDING]);
        let mut back = vec![0; values.len()];
        assert_eq!(unpack(&out, 3, &mut back), end);
        assert_eq!(back, values);
        end - 3
    }

    #[test]
    fn equal_numbers_cost_only_the_header() {
        assert!(round_trip(&[123_456_789; 500]) < 10);
    }

    #[test]
    fn one_outlier_does_not_widen_the_rest() {
        let mut values = vec![5; 500];
        values[77] = i64::MAX;
        assert!(round_trip(&values) < 30);
    }

    #[test]
    fn extremes_survive() {
        round_trip(&[i64::MIN, i64::MAX, 0, -1, 1]);
        round_trip(&[]);
        round_trip(&[i64::MIN; 3]);
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            values in prop::collection::vec(prop_oneof![any::<i64>(), -9i64..9, 0i64..1 << 30], 0..600)
        ) {
            round_trip(&values);
        }
    }
}
