//! The figures that the reference gives of a Mooncake trace, rows in file order.

use crate::prefix::{Prefixes, Repeated, Seen};
use crate::stats::Stats;

/// What rows of a Mooncake trace share. Lengths that are not recorded count as 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Mooncake {
    /// Rows.
    pub requests: u64,
    /// Rows that do not record how long their input is.
    pub without_input: u64,
    /// The same of the output.
    pub without_output: u64,
    /// Different prefixes of block numbers, of every length.
    pub unique_prefixes: u64,
    /// First blocks with which at least two rows begin.
    pub prefix_groups: u64,
    /// Occurrences of prefixes that occur at least twice, among all.
    pub reuse_ratio: f64,
    /// Tokens of the inputs.
    pub input: Option<Stats>,
    /// Tokens of blocks that occur again at their place.
    pub context: Option<Stats>,
    /// The rest of the inputs.
    pub unique_prompt: Option<Stats>,
    /// Tokens of the outputs.
    pub output: Option<Stats>,
    /// Share of leading blocks that earlier rows have, of rows with blocks.
    pub hit_rate: Option<Stats>,
}

/// Takes every row twice: what is repeated is known after the first time.
#[derive(Default)]
pub(crate) struct MooncakeBuilder {
    prefixes: Prefixes,
    seen: Seen,
    repeated: Repeated,
    without_input: u64,
    without_output: u64,
    input: Vec<f64>,
    output: Vec<f64>,
    hits: Vec<f64>,
    context: Vec<f64>,
    unique: Vec<f64>,
}

impl MooncakeBuilder {
    pub(crate) fn first(&mut self, input: Option<u64>, output: Option<u64>, ids: &[i64]) {
        self.without_input += u64::from(input.is_none());
        self.without_output += u64::from(output.is_none());
        self.input.push(input.unwrap_or(0) as f64);
        self.output.push(output.unwrap_or(0) as f64);
        self.prefixes.add(ids);
        self.repeated.add(ids);
        let leading = self.seen.add(ids);
        if !ids.is_empty() {
            self.hits.push(leading as f64 / ids.len() as f64);
        }
    }

    pub(crate) fn second(&mut self, input: Option<u64>, ids: &[i64], block_size: u32) {
        let input = input.unwrap_or(0) as f64;
        let again = self.repeated.count(ids);
        let context = match again {
            0 => 0.0,
            all if all == ids.len() => input,
            some => some as f64 * f64::from(block_size),
        };
        self.context.push(context);
        self.unique.push(input - context);
    }

    pub(crate) fn finish(mut self) -> Mooncake {
        Mooncake {
            requests: self.input.len() as u64,
            without_input: self.without_input,
            without_output: self.without_output,
            unique_prefixes: self.prefixes.unique(),
            prefix_groups: self.prefixes.groups(),
            reuse_ratio: self.prefixes.reuse_ratio().unwrap_or(0.0),
            input: Stats::of(&mut self.input),
            context: Stats::of(&mut self.context),
            unique_prompt: Stats::of(&mut self.unique),
            output: Stats::of(&mut self.output),
            hit_rate: Stats::of(&mut self.hits),
        }
    }
}
