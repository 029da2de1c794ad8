//! Inputs given as a length and the numbers of their blocks: checked, reshaped where asked for, and made.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, OnceLock};

use aiperf_tokenize::Text;
use aiperf_tokenize::seed::{Streams, below};

use crate::identity::Identity;
use crate::index::{IDENTITY_RECORDS, row_fault};
use crate::json::{self, Fault, Field};
use crate::open::Opening;
use crate::prompt::Prompts;
use crate::record::{Arranged, Problem, Row, Tally, changed};
use crate::synthesis::{Plan, Reshape};
use crate::{DatasetError, Survey, TurnFacts};

/// No model takes more; a prompt beyond this is a slip that would fill the memory.
const LONGEST_INPUT: i64 = 20_000_000;

/// Bits of a row's tag that a format has for itself; the others number the plan of a reshaped row.
pub(crate) const OWN_BITS: u32 = 3;

/// What check and render have in common: set while the file is read, or when all of it was.
#[derive(Default)]
struct Shared {
    identity: OnceLock<[u8; 32]>,
    plans: OnceLock<Vec<Plan>>,
}

/// Checks lengths and block numbers.
pub(crate) struct BlockCheck {
    block_size: u32,
    /// Prompts can be made.
    prompts: bool,
    /// Blocks must fit their lengths and each other.
    against_others: bool,
    /// Each block has one size in the whole file.
    sizes: IdMap,
    identity: Option<Identity>,
    records: u64,
    shared: Arc<Shared>,
    reshape: Option<Counting>,
}

/// What is counted where rows are to be reshaped.
struct Counting {
    reshape: Reshape,
    variants: u64,
    seed: u64,
    /// 1 for ids met once, 2 for those met more often.
    met: IdMap,
    /// Ids of the last record.
    last: Vec<i64>,
}

/// Makes the prompts of such rows.
pub(crate) struct BlockPrompts {
    prompts: Option<Prompts>,
    block_size: u32,
    reshape: Option<Reshape>,
    shared: Arc<Shared>,
}

/// A check of blocks and what makes prompts of them.
pub(crate) fn blocks(opening: &Opening<'_>) -> Result<(BlockCheck, BlockPrompts), DatasetError> {
    let prompts = Prompts::new(opening.corpus(), opening.context)?;
    let block_size = opening.block_size();
    let synthesis = &opening.file.synthesis;
    let reshape = synthesis.reshapes().then(|| Reshape::new(synthesis, block_size));
    let mut check = BlockCheck::new(block_size, prompts.is_some() || opening.context.survey.is_some());
    // Who only looks makes no prompts.
    check.against_others = opening.context.survey.is_none_or(Survey::checks_blocks);
    check.reshape = reshape.map(|reshape| Counting {
        reshape,
        variants: synthesis.prefix_root,
        seed: opening.context.seed,
        met: IdMap::default(),
        last: Vec::new(),
    });
    let shared = Arc::clone(&check.shared);
    Ok((check, BlockPrompts { prompts, block_size, reshape, shared }))
}

impl BlockCheck {
    /// A check of single rows, for looking at one.
    pub(crate) fn of_one_row() -> BlockCheck {
        BlockCheck { against_others: false, ..BlockCheck::new(1, true) }
    }

    pub(crate) fn new(block_size: u32, prompts: bool) -> BlockCheck {
        BlockCheck {
            block_size,
            prompts,
            against_others: true,
            sizes: IdMap::default(),
            identity: Some(Identity::default()),
            records: 0,
            shared: Arc::default(),
            reshape: None,
        }
    }

    /// Checks a length and its blocks; the length.
    pub(crate) fn input(&mut self, length: i64, ids: Field<'_>) -> Result<u64, Fault> {
        if length > LONGEST_INPUT {
            return Err(Fault::new(
                "input_length",
                format!("must be at most {LONGEST_INPUT} tokens, is {length}"),
            ));
        }
        if !self.prompts {
            return Err(Fault::new("input_length", "prompts need a tokenizer; name one with --tokenizer"));
        }
        match ids {
            Some(ids) if self.against_others => self.blocks(length, ids)?,
            Some(ids) => json::integers("hash_ids", ids, |_| Ok(()))?,
            None => not_negative(length)?,
        }
        Ok(length.max(0) as u64)
    }

    /// Checks that the blocks make up the length, and that every block has one size in the whole file.
    fn blocks(&mut self, length: i64, ids: &str) -> Result<(), Fault> {
        let mut count = 0i64;
        json::integers("hash_ids", ids, |_| {
            count += 1;
            Ok(())
        })?;
        let block = i64::from(self.block_size);
        if count == 0 {
            return not_negative(length);
        }
        if length <= 0 {
            return Err(Fault::new(
                "input_length",
                format!("must be above 0 where there are `hash_ids`, is {length}"),
            ));
        }
        // Tokens of the last block; a longer input goes on with tokens of its own.
        let last = (length - (count - 1) * block).min(block);
        if last < 1 {
            return Err(Fault::new(
                "hash_ids",
                format!(
                    "{count} blocks of {block} tokens do not fit an input of {length} tokens: the last one would have \
                     {last}, and it must have 1 to {block}; set the trace's block size with --isl-block-size"
                ),
            ));
        }
        let (sizes, reshape) = (&mut self.sizes, &mut self.reshape);
        if let Some(counting) = reshape {
            counting.last.clear();
        }
        let mut seen = 0;
        json::integers("hash_ids", ids, |id| {
            seen += 1;
            if let Some(counting) = reshape {
                counting.last.push(id);
            }
            let size = if seen == count { last } else { block } as u32;
            match sizes.get(id) {
                0 => sizes.set(id, size),
                known if known == size => {}
                other => {
                    return Err(Fault::new(
                        "hash_ids",
                        format!(
                            "block {id} has {size} tokens here and {other} in an earlier row; the trace is damaged or \
                             its block size is not {block}: set it with --isl-block-size"
                        ),
                    ));
                }
            }
            Ok(())
        })
    }

    /// A record passed the check.
    pub(crate) fn checked(&mut self, text: &str) {
        self.records += 1;
        if self.records <= IDENTITY_RECORDS
            && let Some(identity) = &mut self.identity
        {
            identity.add(text);
        }
        if self.records == IDENTITY_RECORDS {
            self.finish();
        }
    }

    /// Whether the turn of the last record is kept.
    pub(crate) fn kept(&mut self, kept: bool) {
        let Some(counting) = &mut self.reshape else { return };
        for id in counting.last.drain(..).filter(|_| kept) {
            counting.met.set(id, (counting.met.get(id) + 1).min(2));
        }
    }

    /// All records were read.
    pub(crate) fn finish(&mut self) {
        if let Some(identity) = self.identity.take() {
            let _ = self.shared.identity.set(identity.finish());
        }
    }

    /// Plans how every row with blocks is reshaped. `blocks` takes a record apart: the length and the blocks, where it
    /// says such.
    pub(crate) fn plan(
        &mut self,
        turns: &mut Arranged<'_>,
        tally: &mut Tally,
        blocks: impl for<'t> Fn(&'t str, Row) -> Result<Option<(i64, Field<'t>)>, Fault>,
    ) -> Result<(), DatasetError> {
        let Some(counting) = self.reshape.take() else { return Ok(()) };
        let too_large = || {
            DatasetError::Unsuitable(format!(
                "{}: its block ids are too large to be multiplied; leave --synthesis-prefix-len-multiplier, \
                 --synthesis-prefix-root-multiplier and --synthesis-prompt-len-multiplier out",
                turns.files[0].path.display()
            ))
        };
        let first =
            counting.reshape.first_fresh(counting.met.largest(2).unwrap_or(0)).ok_or_else(too_large)?;
        let mut next = first;
        let mut plans = Vec::new();
        let mut planned = Vec::new();
        for number in 0..turns.rows.len() {
            let row = turns.rows[number];
            let text = turns.text(number)?;
            let read = blocks(&text, row).and_then(|found| match found {
                Some((length, Some(ids))) => Ok(Some((length.max(0) as u64, ids_of(ids)?))),
                _ => Ok(None),
            });
            let read = read.map_err(|fault| changed(turns.files, row, fault))?;
            let Some((length, ids)) = read.filter(|(_, ids)| !ids.is_empty()) else { continue };
            let shared = counting.reshape.shared(&ids, length, |id| counting.met.get(id) == 2);
            let reshaped = counting.reshape.length(shared, length);
            if reshaped > LONGEST_INPUT as u64 {
                let rule = format!(
                    "the multipliers make {reshaped} tokens of its {length}, and {LONGEST_INPUT} are the most; lower \
                     --synthesis-prefix-len-multiplier and --synthesis-prompt-len-multiplier, or set --synthesis-max-isl"
                );
                return Err(row_fault(turns.files, row, Fault::new("input_length", rule)));
            }
            plans.push(Plan { shared, fresh: next, shift: 0 });
            planned.push(number);
            let fresh = i64::try_from(counting.reshape.fresh(shared, length)).map_err(|_| too_large())?;
            next = next.checked_add(fresh).ok_or_else(too_large)?;
        }
        tally.nothing_to_reshape = plans.is_empty();
        if counting.variants > 1 {
            // Every variant has all ids to itself.
            let streams = Streams::new(counting.seed, "dataset.prefix_root");
            for (number, plan) in plans.iter_mut().enumerate() {
                let variant = below(&mut streams.at(number as u64), counting.variants);
                let shift = i64::try_from(variant).ok().and_then(|variant| variant.checked_mul(next));
                plan.shift = shift.filter(|shift| shift.checked_add(next).is_some()).ok_or_else(too_large)?;
            }
        }
        if plans.len() as u64 >= 1 << (u32::BITS - OWN_BITS) {
            return Err(DatasetError::Unsuitable(format!(
                "{}: too many rows with blocks to be reshaped; split the file",
                turns.files[0].path.display()
            )));
        }
        for (plan, number) in planned.into_iter().enumerate() {
            turns.rows[number].tag |= (plan as u32 + 1) << OWN_BITS;
        }
        let _ = self.shared.plans.set(plans);
        Ok(())
    }
}

fn not_negative(length: i64) -> Result<(), Fault> {
    if length < 0 {
        return Err(Fault::new("input_length", format!("must be 0 or more, is {length}")));
    }
    Ok(())
}

/// The numbers of a list of blocks.
pub(crate) fn ids_of(text: &str) -> Result<Vec<i64>, Fault> {
    let mut list = Vec::new();
    json::integers("hash_ids", text, |id| {
        list.push(id);
        Ok(())
    })?;
    Ok(list)
}

/// What a row records of an input of this length and these blocks.
pub(crate) fn block_facts(length: i64, ids: Field<'_>) -> Result<TurnFacts, Fault> {
    Ok(TurnFacts {
        input_tokens: Some(length.max(0) as u64),
        hash_ids: ids.map(ids_of).transpose()?.unwrap_or_default(),
        ..TurnFacts::default()
    })
}

impl BlockPrompts {
    /// The prompt of a row of this recorded length, and its tokens where making it told them.
    pub(crate) fn text(
        &self,
        length: i64,
        ids: Field<'_>,
        row: Row,
    ) -> Result<(String, Option<u64>), Problem> {
        let prompts = Prompts::required(self.prompts.as_ref())?;
        let mut list = ids.map(ids_of).transpose()?.unwrap_or_default();
        let mut length = length.max(0) as u64;
        let plan =
            (row.tag >> OWN_BITS).checked_sub(1).and_then(|plan| self.shared.plans.get()?.get(plan as usize));
        if let (Some(plan), Some(reshape)) = (plan, &self.reshape) {
            let reshaped = reshape.apply(plan, &list, length);
            (list, length) = (reshaped.ids, reshaped.length);
        }
        if list.is_empty() {
            let Text { text, tokens } = prompts.exact(row.record(), length);
            return Ok((text, Some(tokens)));
        }
        // Set as soon as enough records were read for a first conversation.
        let identity = self.shared.identity.get().copied().unwrap_or_default();
        Ok((prompts.blocks(&identity, &list, self.block_size, length, row.record()), None))
    }
}

/// A small number for every block id met so far; 0 for others.
#[derive(Default)]
struct IdMap {
    /// Ids that count up from 0, as published traces have them.
    small: Vec<u32>,
    other: HashMap<i64, u32, BuildHasherDefault<IdHasher>>,
}

/// Ids below this are kept in a list.
const SMALL_IDS: i64 = 1 << 22;

impl IdMap {
    fn get(&self, id: i64) -> u32 {
        if (0..SMALL_IDS).contains(&id) {
            self.small.get(id as usize).copied().unwrap_or(0)
        } else {
            self.other.get(&id).copied().unwrap_or(0)
        }
    }

    fn set(&mut self, id: i64, value: u32) {
        if (0..SMALL_IDS).contains(&id) {
            let index = id as usize;
            if index >= self.small.len() {
                self.small.resize((index + 1).next_power_of_two(), 0);
            }
            self.small[index] = value;
            return;
        }
        self.other.insert(id, value);
    }

    /// The largest id with this number.
    fn largest(&self, value: u32) -> Option<i64> {
        let small = self.small.iter().rposition(|found| *found == value).map(|index| index as i64);
        let other = self.other.iter().filter(|(_, found)| **found == value).map(|(id, _)| *id).max();
        small.max(other)
    }
}

/// Hashes one integer: ids are hashes already, or count up.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i64(i64::from(*byte));
        }
    }

    fn write_i64(&mut self, id: i64) {
        let mixed = (self.0 ^ id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
