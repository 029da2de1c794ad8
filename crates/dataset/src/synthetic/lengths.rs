//! How long the texts of a turn are, and the answer to it.

use aiperf_config::{LengthPairs, Lengths, Normal, RandomStyle, SyntheticDataset};
use aiperf_tokenize::Tokenizer;
use aiperf_tokenize::seed::{Stream, Streams, below, unit};

use crate::DatasetError;
use crate::random::whole;

/// Refuses a range of lengths with inputs of nothing.
pub(super) fn check(shape: &SyntheticDataset, tokenizer: &Tokenizer) -> Result<(), DatasetError> {
    let Lengths::Range(range) = &shape.lengths else { return Ok(()) };
    let special = tokenizer.num_special_tokens_to_add();
    let prefix = shape.prefix_pool.map_or(0, |(_, length)| u64::from(length));
    let (lowest, _) = range.inputs(shape.random_style, special);
    if prefix + lowest >= 1 {
        return Ok(());
    }
    Err(DatasetError::Unsuitable(format!(
        "--random-range-ratio {} around --isl {} makes inputs of 0 tokens (the server adds {special}, prefixes have \
         {prefix}), and at least 1 is needed; raise --isl, add --num-prefix-prompts and --prefix-prompt-length, or lower \
         --random-range-ratio",
        range.input_ratio, range.input
    )))
}

/// Draws the lengths of all entries.
pub(super) struct LengthDraws {
    rule: Rule,
    /// Tokens that a server adds; ranges are already without them.
    special: u64,
    inputs: Streams,
    outputs: Streams,
}

enum Rule {
    Normal(Normal),
    Pairs(LengthPairs),
    /// The lowest and the highest input and output length.
    Range((u64, u64), (u64, u64)),
}

impl LengthDraws {
    pub(super) fn new(
        lengths: &Lengths,
        style: RandomStyle,
        special: u64,
        streams: impl Fn(&str) -> Streams,
    ) -> LengthDraws {
        let rule = match lengths {
            Lengths::Normal(normal) => Rule::Normal(*normal),
            Lengths::Pairs(pairs) => Rule::Pairs(pairs.clone()),
            Lengths::Range(range) => Rule::Range(range.inputs(style, special), range.outputs(style)),
        };
        LengthDraws { rule, special, inputs: streams("input_length"), outputs: streams("output_length") }
    }

    /// The lengths of an entry, turn by turn.
    pub(super) fn entry(&self, index: u64) -> EntryLengths<'_> {
        EntryLengths {
            draws: self,
            inputs: self.inputs.at(index),
            outputs: self.outputs.at(index),
            input: Normal { mean: 1.0, stddev: 0.0 },
        }
    }
}

/// Draws the lengths of one entry.
pub(super) struct EntryLengths<'a> {
    draws: &'a LengthDraws,
    inputs: Stream,
    outputs: Stream,
    /// Of the turn at hand.
    input: Normal,
}

impl EntryLengths<'_> {
    /// Goes on to the next turn: its output limit, where the rule has one.
    pub(super) fn turn(&mut self) -> Option<u64> {
        match &self.draws.rule {
            Rule::Normal(normal) => {
                self.input = *normal;
                None
            }
            Rule::Pairs(pairs) => {
                let pair = pairs.at(unit(&mut self.inputs));
                self.input = pair.input;
                Some(whole(&mut self.outputs, pair.output, 1))
            }
            Rule::Range(_, output) => Some(within(&mut self.outputs, *output)),
        }
    }

    /// The length of a text of the turn, without the `overhead` that a server adds; at least `floor`.
    pub(super) fn text(&mut self, overhead: u64, floor: u64) -> u64 {
        let (length, overhead) = match &self.draws.rule {
            Rule::Normal(_) | Rule::Pairs(_) => (whole(&mut self.inputs, self.input, 1), overhead),
            Rule::Range(input, _) => {
                (within(&mut self.inputs, *input), overhead.saturating_sub(self.draws.special))
            }
        };
        length.saturating_sub(overhead).max(floor)
    }
}

fn within(stream: &mut Stream, (low, high): (u64, u64)) -> u64 {
    low + below(stream, high - low + 1)
}
