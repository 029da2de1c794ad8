//! Traces made longer, shorter, wider or faster: what the multipliers do to one row.

use aiperf_config::Synthesis;

/// No model answers at more length; beyond it a multiplier is a slip.
pub(crate) const LONGEST_OUTPUT: u64 = 20_000_000;

/// What becomes of recorded output lengths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outputs {
    multiplier: f64,
    most: Option<u64>,
}

impl Outputs {
    pub(crate) fn new(synthesis: &Synthesis) -> Outputs {
        Outputs { multiplier: synthesis.output_len, most: synthesis.max_osl }
    }

    /// The output limit for a recorded length; below 1 something was recorded that is no length.
    pub(crate) fn limit(self, recorded: i64) -> u64 {
        let scaled = self.scaled(recorded);
        self.most.map_or(scaled, |most| scaled.min(most)).max(1)
    }

    /// What is wrong with a multiplier that makes more of a recorded length than any answer has.
    pub(crate) fn fault(self, recorded: i64) -> Option<String> {
        (self.multiplier > 1.0 && self.limit(recorded) > LONGEST_OUTPUT).then(|| {
            format!(
                "--synthesis-output-len-multiplier makes more than {LONGEST_OUTPUT} tokens of its {recorded}, which are the \
                 most; lower it, or set --synthesis-max-osl"
            )
        })
    }

    /// Whether the cap makes a recorded length shorter.
    pub(crate) fn caps(self, recorded: i64) -> bool {
        self.most.is_some_and(|most| self.scaled(recorded) > most)
    }

    #[expect(clippy::float_cmp, reason = "1 is 1 as it was given")]
    fn scaled(self, recorded: i64) -> u64 {
        let recorded = recorded.max(1);
        if self.multiplier == 1.0 {
            return recorded as u64;
        }
        (recorded as f64 * self.multiplier).round_ties_even() as u64
    }
}

/// How prompts of blocks are reshaped, for all rows of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reshape {
    prefix: f64,
    prompt: f64,
    /// Tokens of a block.
    block: u64,
    most: Option<u64>,
    /// Ids that one shared id becomes.
    copies: i64,
}

/// How one row is reshaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Leading blocks that other rows have as well.
    pub(crate) shared: u64,
    /// The first id that is new with this row.
    pub(crate) fresh: i64,
    /// Added to all ids.
    pub(crate) shift: i64,
}

/// A row, reshaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reshaped {
    pub(crate) ids: Vec<i64>,
    /// Tokens of the input.
    pub(crate) length: u64,
    /// Ids that are new with this row, those included that a cap then left out.
    pub(crate) fresh: u64,
}

impl Reshape {
    pub(crate) fn new(synthesis: &Synthesis, block: u32) -> Reshape {
        Reshape {
            prefix: synthesis.prefix_len,
            prompt: synthesis.prompt_len,
            block: u64::from(block),
            most: synthesis.max_isl,
            copies: if synthesis.prefix_len > 1.0 { synthesis.prefix_len.floor() as i64 } else { 1 },
        }
    }

    /// The first id that no shared block can become, where `largest` is the largest shared id (0 if there is none);
    /// `None` when ids would leave the range of 64 bits.
    pub(crate) fn first_fresh(&self, largest: i64) -> Option<i64> {
        largest.checked_add(1)?.checked_mul(self.copies)?.checked_add(1)
    }

    /// Leading blocks of a row that are shared and full in it.
    pub(crate) fn shared(&self, ids: &[i64], length: u64, is_shared: impl Fn(i64) -> bool) -> u64 {
        let run = ids.iter().take_while(|id| is_shared(**id)).count() as u64;
        run.min(length / self.block)
    }

    /// Blocks that a shared prefix of so many becomes.
    #[expect(clippy::float_cmp, reason = "1 is 1 as it was given")]
    fn prefix_blocks(&self, shared: u64) -> u64 {
        if shared == 0 || self.prefix == 1.0 {
            shared
        } else if self.prefix > 1.0 {
            (shared as f64 * self.prefix).ceil() as u64
        } else {
            ((shared as f64 * self.prefix).floor() as u64).max(1)
        }
    }

    /// Tokens after the prefix.
    fn prompt_tokens(&self, shared: u64, length: u64) -> u64 {
        ((length - shared * self.block) as f64 * self.prompt).floor() as u64
    }

    /// Tokens that a row becomes.
    pub(crate) fn length(&self, shared: u64, length: u64) -> u64 {
        let prefix = self.prefix_blocks(shared).saturating_mul(self.block);
        let total = prefix.saturating_add(self.prompt_tokens(shared, length));
        self.most.map_or(total, |most| total.min(most))
    }

    /// How many ids are new with a row, of which `shared` leading blocks are not.
    pub(crate) fn fresh(&self, shared: u64, length: u64) -> u64 {
        let blocks = self.prefix_blocks(shared);
        let stretched = blocks.saturating_sub(shared.saturating_mul(self.copies as u64));
        let filling = if self.prefix > 1.0 { stretched } else { 0 };
        filling.saturating_add(self.prompt_tokens(shared, length).div_ceil(self.block))
    }

    /// The ids and the length of a row after its plan.
    pub(crate) fn apply(&self, plan: &Plan, ids: &[i64], length: u64) -> Reshaped {
        let blocks = self.prefix_blocks(plan.shared);
        let fresh = self.fresh(plan.shared, length);
        let total = self.length(plan.shared, length);
        let kept = total.div_ceil(self.block);
        let prefix = ids.iter().take(plan.shared as usize).flat_map(|id| {
            let first = id.wrapping_mul(self.copies);
            (0..self.copies).map(move |copy| first.wrapping_add(copy))
        });
        let prefix = prefix.take(blocks as usize);
        let new = (0..fresh as i64).map(|number| plan.fresh.wrapping_add(number));
        let ids = prefix.chain(new).take(kept as usize).map(|id| id.wrapping_add(plan.shift)).collect();
        Reshaped { ids, length: total, fresh }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reshape(prefix_len: f64, prompt_len: f64, max_isl: Option<u64>, block: u32) -> Reshape {
        Reshape::new(&Synthesis { prefix_len, prompt_len, max_isl, ..Synthesis::default() }, block)
    }

    #[test]
    fn outputs_are_scaled_with_ties_to_even_then_capped() {
        let outputs =
            |output_len, max_osl| Outputs::new(&Synthesis { output_len, max_osl, ..Synthesis::default() });
        assert_eq!([1, 3, 5].map(|length| outputs(0.5, None).limit(length)), [1, 2, 2]);
        assert_eq!(outputs(0.0, None).limit(90), 1);
        assert!(outputs(1e300, None).fault(90).is_some() && outputs(1e300, Some(5)).fault(90).is_none());
        assert!(outputs(1.0, None).fault(30_000_000).is_none() && outputs(2.0, None).fault(9).is_none());
        assert_eq!([-5, 0].map(|length| outputs(1.0, None).limit(length)), [1, 1]);
        assert_eq!([4, 5, 6].map(|length| outputs(2.0, Some(10)).limit(length)), [8, 10, 10]);
        assert_eq!([4, 5, 6].map(|length| outputs(2.0, Some(10)).caps(length)), [false, false, true]);
    }

    #[test]
    fn a_longer_prefix_repeats_every_shared_id_and_goes_on_with_new_ones() {
        // Two shared blocks of 16, then 20 tokens; 2.5 times the prefix is 5 blocks: 2 copies of each, one new.
        let plan = Plan { shared: 2, fresh: 100, shift: 0 };
        let row = reshape(2.5, 1.0, None, 16).apply(&plan, &[3, 4, 50, 51], 52);
        assert_eq!(row, Reshaped { ids: vec![6, 7, 8, 9, 100, 101, 102], length: 100, fresh: 3 });
    }

    #[test]
    fn a_shorter_prefix_keeps_its_first_blocks_and_at_least_one() {
        let plan = Plan { shared: 3, fresh: 100, shift: 0 };
        let row = reshape(0.5, 2.0, None, 16).apply(&plan, &[3, 4, 5, 50], 50);
        assert_eq!(row, Reshaped { ids: vec![3, 100], length: 20, fresh: 1 });
        let row = reshape(0.1, 1.0, None, 16).apply(&plan, &[3, 4, 5, 50], 50);
        assert_eq!(row.length, 16 + 2);
    }

    #[test]
    fn without_a_shared_prefix_nothing_is_added_in_front() {
        let plan = Plan { shared: 0, fresh: 100, shift: 0 };
        let row = reshape(0.5, 1.0, None, 16).apply(&plan, &[50, 51], 20);
        assert_eq!(row, Reshaped { ids: vec![100, 101], length: 20, fresh: 2 });
    }

    #[test]
    fn a_row_that_is_shared_up_to_its_partial_last_block_shares_its_full_ones() {
        // As in published traces: the last block is partial here and shared with a longer row.
        let reshape = reshape(1.0, 1.0, None, 16);
        assert_eq!(reshape.shared(&[1, 2, 3], 40, |_| true), 2);
        assert_eq!(reshape.shared(&[1, 2, 3], 48, |_| true), 3);
        assert_eq!(reshape.shared(&[1, 9, 3], 48, |id| id != 9), 1);
    }

    #[test]
    fn variants_of_a_prefix_are_shifted_as_a_whole_and_long_inputs_are_cut() {
        let plan = Plan { shared: 1, fresh: 100, shift: 1000 };
        let row = reshape(1.0, 3.0, Some(40), 16).apply(&plan, &[3, 50], 32);
        assert_eq!(row, Reshaped { ids: vec![1003, 1100, 1101], length: 40, fresh: 3 });
    }

    #[test]
    fn ids_beyond_64_bits_are_noticed() {
        assert_eq!(reshape(3.0, 1.0, None, 16).first_fresh(9), Some(31));
        assert_eq!(reshape(1.0, 1.0, None, 16).first_fresh(i64::MAX), None);
        assert_eq!(reshape(2.0, 1.0, None, 16).first_fresh(i64::MAX / 2), None);
    }

    proptest! {
        #[test]
        fn blocks_fit_the_length_whatever_the_multipliers(
            prefix in 0.05f64..6.0,
            prompt in 0.05f64..6.0,
            most in proptest::option::of(1u64..500),
            block in 1u32..64,
            ids in proptest::collection::vec(0i64..30, 0..12),
            tail in 0u64..200,
        ) {
            let reshape = reshape(prefix, prompt, most, block);
            let length = (ids.len() as u64 * u64::from(block)).saturating_sub(u64::from(block) - 1) + tail;
            let shared = reshape.shared(&ids, length, |id| id < 10);
            let fresh = reshape.first_fresh(9).unwrap();
            let row = reshape.apply(&Plan { shared, fresh, shift: 0 }, &ids, length);
            prop_assert!(row.ids.len() as u64 <= row.length.div_ceil(u64::from(block)));
            prop_assert!(most.is_none_or(|most| row.length <= most));
            prop_assert_eq!(row.fresh, reshape.fresh(shared, length));
            // New ids are never those of a shared block, and never repeat.
            let mut new: Vec<i64> = row.ids.iter().copied().filter(|id| *id >= fresh).collect();
            prop_assert!(row.ids.iter().filter(|id| **id < fresh).all(|id| *id < fresh - 1));
            let count = new.len();
            new.dedup();
            prop_assert_eq!(count, new.len());
        }

        #[test]
        fn rows_that_share_blocks_still_share_them(
            prefix in 0.05f64..6.0,
            shared in proptest::collection::vec(0i64..1000, 1..8),
            tails in (1u64..100, 1u64..100),
        ) {
            let reshape = reshape(prefix, 1.0, None, 16);
            let length = shared.len() as u64 * 16;
            let fresh = reshape.first_fresh(1000).unwrap();
            let row = |tail: u64, fresh: i64| {
                let plan = Plan { shared: shared.len() as u64, fresh, shift: 0 };
                reshape.apply(&plan, &shared, length + tail).ids
            };
            let one = row(tails.0, fresh);
            let other = row(tails.1, fresh + 1000);
            let both = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
            // Every copy of every shared block, as far as the prefix goes.
            let copies = if prefix > 1.0 { prefix.floor() as usize } else { 1 };
            let kept = if prefix < 1.0 {
                ((shared.len() as f64 * prefix).floor() as usize).max(1)
            } else {
                shared.len() * copies
            };
            prop_assert_eq!(both, kept);
        }
    }
}
