//! Shared prefixes of rows, by the numbers of their blocks.
//!
//! Prefixes are nodes of a tree: two rows share one when they pass through the same node. So a prefix costs one
//! entry, whatever its length, and nothing is taken for equal that is not.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes small integers: ids count up, or are hashes already.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(29) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

pub(crate) type Fast = BuildHasherDefault<Mix>;

/// The tree of all prefixes.
#[derive(Default)]
pub(crate) struct Prefixes {
    nodes: HashMap<(u32, i64), u32, Fast>,
    /// Rows through each node; node 0 is the root.
    rows: Vec<u32>,
}

impl Prefixes {
    /// Adds a row; leading blocks that an earlier row has as a prefix of its own.
    pub(crate) fn add(&mut self, ids: &[i64]) {
        if self.rows.is_empty() {
            self.rows.push(0);
        }
        let mut node = 0;
        for id in ids {
            let next = self.rows.len() as u32;
            node = *self.nodes.entry((node, *id)).or_insert(next);
            if node == next {
                self.rows.push(0);
            }
            self.rows[node as usize] += 1;
        }
    }

    /// Different prefixes, of every length.
    pub(crate) fn unique(&self) -> u64 {
        self.rows.len().saturating_sub(1) as u64
    }

    /// First blocks with which at least two rows begin.
    pub(crate) fn groups(&self) -> u64 {
        self.nodes.iter().filter(|((from, _), node)| *from == 0 && self.rows[**node as usize] >= 2).count()
            as u64
    }

    /// Occurrences of prefixes that occur at least twice, among all occurrences; `None` without any.
    pub(crate) fn reuse_ratio(&self) -> Option<f64> {
        let all: u64 = self.rows.iter().map(|rows| u64::from(*rows)).sum();
        let shared: u64 = self.rows.iter().filter(|rows| **rows >= 2).map(|rows| u64::from(*rows)).sum();
        (all > 0).then(|| shared as f64 / all as f64)
    }
}

/// Which blocks were met.
#[derive(Default)]
pub(crate) struct Seen {
    ids: HashSet<i64, Fast>,
}

impl Seen {
    /// Leading blocks of a row that were met before it; all of them are known from now on.
    pub(crate) fn add(&mut self, ids: &[i64]) -> u64 {
        let leading = ids.iter().take_while(|id| self.ids.contains(*id)).count();
        self.ids.extend(&ids[leading..]);
        leading as u64
    }
}

/// Which blocks occur at least twice at the same place in their rows.
#[derive(Default)]
pub(crate) struct Repeated {
    places: HashMap<(u32, i64), bool, Fast>,
}

impl Repeated {
    pub(crate) fn add(&mut self, ids: &[i64]) {
        for (place, id) in ids.iter().enumerate() {
            self.places.entry((place as u32, *id)).and_modify(|again| *again = true).or_insert(false);
        }
    }

    /// Blocks of a row that occur again at their place.
    pub(crate) fn count(&self, ids: &[i64]) -> usize {
        ids.iter()
            .enumerate()
            .filter(|(place, id)| self.places.get(&(*place as u32, **id)).copied().unwrap_or(false))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_tree_counts_what_lists_of_all_prefixes_count(
            rows in prop::collection::vec(prop::collection::vec(-2i64..4, 0..6), 0..20),
        ) {
            let mut tree = Prefixes::default();
            let mut lists: HashMap<Vec<i64>, u64> = HashMap::new();
            for row in &rows {
                tree.add(row);
                for length in 1..=row.len() {
                    *lists.entry(row[..length].to_vec()).or_default() += 1;
                }
            }
            prop_assert_eq!(tree.unique(), lists.len() as u64);
            let groups = lists.iter().filter(|(list, count)| list.len() == 1 && **count >= 2).count();
            prop_assert_eq!(tree.groups(), groups as u64);
            let all: u64 = lists.values().sum();
            let shared: u64 = lists.values().filter(|count| **count >= 2).sum();
            prop_assert_eq!(tree.reuse_ratio(), (all > 0).then(|| shared as f64 / all as f64));
        }

        #[test]
        fn leading_blocks_are_those_of_earlier_rows(
            rows in prop::collection::vec(prop::collection::vec(0i64..6, 0..6), 0..20),
        ) {
            let mut seen = Seen::default();
            let mut known: HashSet<i64> = HashSet::new();
            for row in &rows {
                let expected = row.iter().take_while(|id| known.contains(*id)).count() as u64;
                prop_assert_eq!(seen.add(row), expected);
                known.extend(row);
            }
        }
    }
}
