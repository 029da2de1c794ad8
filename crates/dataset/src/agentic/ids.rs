//! The numbers of a prompt's blocks, kept as runs: traces count their blocks up.

/// Block ids in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockIds {
    /// First id and length of each run.
    runs: Box<[(i64, u32)]>,
    len: u32,
}

impl FromIterator<i64> for BlockIds {
    fn from_iter<I: IntoIterator<Item = i64>>(ids: I) -> BlockIds {
        let mut runs: Vec<(i64, u32)> = Vec::new();
        let mut len = 0;
        for id in ids {
            match runs.last_mut() {
                Some((first, count)) if first.checked_add(i64::from(*count)) == Some(id) => *count += 1,
                _ => runs.push((id, 1)),
            }
            len += 1;
        }
        BlockIds { runs: runs.into(), len }
    }
}

impl BlockIds {
    /// Number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// All ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = i64> {
        self.runs.iter().flat_map(|(first, count)| (0..i64::from(*count)).map(move |at| first + at))
    }

    /// Ids `from` up to but not `to`.
    pub(crate) fn slice(&self, from: usize, to: usize) -> impl Iterator<Item = i64> {
        let mut start = 0;
        self.runs.iter().flat_map(move |(first, count)| {
            let length = *count as usize;
            let run = start..start + length;
            start += length;
            let (low, high) = (from.max(run.start), to.min(run.end));
            (low..high.max(low)).map(move |at| first + (at - run.start) as i64)
        })
    }

    /// How many leading ids are equal.
    pub(crate) fn common(&self, other: &BlockIds) -> usize {
        let (mut common, mut ours, mut theirs) = (0, self.runs.iter(), other.runs.iter());
        let (mut one, mut two) = (ours.next().copied(), theirs.next().copied());
        while let (Some((first, length)), Some((second, count))) = (one, two) {
            if first != second {
                break;
            }
            let step = length.min(count);
            common += step as usize;
            let rest = |first: i64, length: u32| (first + i64::from(step), length - step);
            one = if length > step { Some(rest(first, length)) } else { ours.next().copied() };
            two = if count > step { Some(rest(second, count)) } else { theirs.next().copied() };
        }
        common
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids() -> impl Strategy<Value = Vec<i64>> {
        prop::collection::vec((-3_i64..6, 0_i64..5), 0..6)
            .prop_map(|runs| runs.into_iter().flat_map(|(first, count)| first..first + count).collect())
    }

    proptest! {
        #[test]
        fn runs_say_what_lists_say(one in ids(), two in ids(), from in 0_usize..12, to in 0_usize..12) {
            let (ours, theirs): (BlockIds, BlockIds) =
                (one.iter().copied().collect(), two.iter().copied().collect());
            prop_assert_eq!(ours.len(), one.len());
            prop_assert_eq!(ours.iter().collect::<Vec<_>>(), one.clone());
            let part: Vec<i64> = one.iter().copied().take(to).skip(from).collect();
            prop_assert_eq!(ours.slice(from, to).collect::<Vec<_>>(), part);
            let common = one.iter().zip(&two).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(ours.common(&theirs), common);
        }
    }

    #[test]
    fn ids_at_the_edge_of_their_range_do_not_overflow() {
        let ids: BlockIds = [i64::MAX, i64::MIN, i64::MAX - 1, i64::MAX].into_iter().collect();
        assert_eq!(ids.iter().count(), 4);
        assert_eq!(ids.common(&ids.clone()), 4);
    }
}
