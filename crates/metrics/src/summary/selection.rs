//! Exact order statistics of numbers that are too many to be held: they are read several times instead.
//!
//! The first reading counts them in cells of growing width; each further one splits only the cells that hold a
//! wanted place, until a cell is one number wide.

/// Cells below 2^DIRECT are one number wide; above, each power of two has 2^(DIRECT − 1) of them.
const DIRECT: u32 = 12;

/// Parts a cell is split into by one reading.
const PARTS: u64 = 4096;

/// Counts of one stretch of numbers, in equal parts.
struct Stretch {
    /// Smallest number of the stretch.
    low: u64,
    /// Width of one part.
    part: u64,
    /// Numbers below the stretch.
    below: u64,
    counts: Vec<u64>,
}

/// The numbers at the given places (from 0, ascending) of all numbers in order. `read` gives every number to
/// its argument, the same ones each time.
pub(crate) fn select(places: &[u64], read: impl Fn(&mut dyn FnMut(u64))) -> Vec<u64> {
    let mut counts = vec![0u64; cell(u64::MAX) + 1];
    read(&mut |number| counts[cell(number)] += 1);

    let mut found = vec![0; places.len()];
    // What is still open: index of the place, smallest number and width of its cell, numbers below it.
    let mut open = Vec::new();
    let (mut below, mut index) = (0, 0);
    for (cell, count) in counts.iter().enumerate() {
        while index < places.len() && places[index] < below + count {
            let (low, width) = extent(cell);
            open.push((index, low, width, below));
            index += 1;
        }
        below += count;
    }
    drop(counts);

    loop {
        open.retain(|(index, low, width, _)| {
            if *width == 1 {
                found[*index] = *low;
            }
            *width > 1
        });
        if open.is_empty() {
            return found;
        }
        let stretches = split(&open, &read);
        for (index, low, width, below) in &mut open {
            let stretch = stretches.iter().find(|stretch| stretch.low == *low);
            let Some(stretch) = stretch else { continue };
            let mut before = stretch.below;
            for (part, count) in (0..).zip(&stretch.counts) {
                if places[*index] < before + count {
                    *low = stretch.low + part * stretch.part;
                    *width = stretch.part;
                    *below = before;
                    break;
                }
                before += count;
            }
        }
    }
}

/// Counts the numbers of all open cells in parts.
fn split(open: &[(usize, u64, u64, u64)], read: &impl Fn(&mut dyn FnMut(u64))) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for (_, low, width, below) in open {
        if stretches.last().is_none_or(|last| last.low != *low) {
            let part = width.div_ceil(PARTS);
            let counts = vec![0; width.div_ceil(part) as usize];
            stretches.push(Stretch { low: *low, part, below: *below, counts });
        }
    }
    read(&mut |number| {
        let after = stretches.partition_point(|stretch| stretch.low <= number);
        if after > 0 {
            let stretch = &mut stretches[after - 1];
            let part = (number - stretch.low) / stretch.part;
            if let Some(count) = stretch.counts.get_mut(part as usize) {
                *count += 1;
            }
        }
    });
    stretches
}

fn cell(number: u64) -> usize {
    if number >> DIRECT == 0 {
        return number as usize;
    }
    let power = number.ilog2();
    let within = (number >> (power - (DIRECT - 1))) as usize & ((1 << (DIRECT - 1)) - 1);
    (1 << DIRECT) + ((power - DIRECT) as usize) * (1 << (DIRECT - 1)) + within
}

/// Smallest number and width of a cell.
fn extent(cell: usize) -> (u64, u64) {
    let Some(above) = cell.checked_sub(1 << DIRECT) else { return (cell as u64, 1) };
    let power = DIRECT + (above >> (DIRECT - 1)) as u32;
    let within = (above & ((1 << (DIRECT - 1)) - 1)) as u64;
    let width = 1 << (power - (DIRECT - 1));
    ((1 << power) + within * width, width)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(numbers: &[u64]) {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        let places: Vec<u64> = (0..sorted.len() as u64).collect();
        let found = select(&places, |visit| numbers.iter().for_each(|number| visit(*number)));
        assert_eq!(found, sorted);
    }

    #[test]
    fn cells_cover_every_number_once() {
        for number in [0, 1, 4095, 4096, 4097, 8191, 8192, 1 << 40, (1 << 40) + 12_345, u64::MAX] {
            let (low, width) = extent(cell(number));
            assert!(number >= low && number - low < width, "{number}: {low} + {width}");
        }
    }

    #[test]
    fn extremes_are_found() {
        check(&[u64::MAX, 0, u64::MAX - 1, 1 << 63, 5, 5, 5]);
    }

    proptest! {
        #[test]
        fn every_place_is_found_exactly(
            numbers in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..100, 0u64..1 << 34], 1..200)
        ) {
            check(&numbers);
        }
    }
}
