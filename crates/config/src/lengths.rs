//! Input and output lengths of generated turns.

use std::fmt;

use crate::Normal;

mod pairs;

pub use pairs::LengthPairsError;
#[cfg(any(test, feature = "fuzzing"))]
pub use pairs::fuzz_length_pairs;

/// Tokens of a turn, and of the answer to it.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// Inputs have this length; answers are limited by [`DatasetConfig::osl`](crate::DatasetConfig::osl).
    Normal(Normal),
    /// Both come from one of several pairs.
    Pairs(LengthPairs),
    /// Both are uniform around a length.
    Range(LengthRange),
}

/// Pairs of an input and an output length, each with its share of the turns.
#[derive(Clone, Debug, PartialEq)]
pub struct LengthPairs {
    list: Vec<LengthPair>,
}

/// One pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LengthPair {
    /// Input length, tokens.
    pub input: Normal,
    /// Output limit, tokens.
    pub output: Normal,
    /// Share of the turns, percent.
    pub share: f64,
}

impl LengthPairs {
    /// The pairs, in their order; never empty, and their shares add up to 100.
    pub fn list(&self) -> &[LengthPair] {
        &self.list
    }

    /// The pair at a place from 0 to 1 in the row of their shares.
    pub fn at(&self, place: f64) -> &LengthPair {
        let total: f64 = self.list.iter().map(|pair| pair.share).sum();
        let mut left = place * total;
        let mut last = &self.list[0];
        for pair in self.list.iter().filter(|pair| pair.share > 0.0) {
            last = pair;
            if left < pair.share {
                break;
            }
            left -= pair.share;
        }
        last
    }
}

/// Writes what [`LengthPairs::parse`] reads: `256|10,128|5:40;512,256:60`.
impl fmt::Display for LengthPairs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |formatter: &mut fmt::Formatter<'_>, length: Normal| {
            write!(formatter, "{}", length.mean)?;
            if length.stddev > 0.0 { write!(formatter, "|{}", length.stddev) } else { Ok(()) }
        };
        for (number, pair) in self.list.iter().enumerate() {
            if number > 0 {
                formatter.write_str(";")?;
            }
            length(formatter, pair.input)?;
            formatter.write_str(",")?;
            length(formatter, pair.output)?;
            write!(formatter, ":{}", pair.share)?;
        }
        Ok(())
    }
}

/// Uniform lengths around an input and an output length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LengthRange {
    /// Input length, tokens, at least 1.
    pub input: u64,
    /// Output limit, tokens, at least 1.
    pub output: u64,
    /// How far inputs spread, as [`RandomStyle`] reads it.
    pub input_ratio: f64,
    /// How far output limits spread.
    pub output_ratio: f64,
}

/// The serving benchmark whose random prompts are imitated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomStyle {
    /// That of vLLM: a ratio of r spreads a length by r to both sides; prompts are of tokens that are not special.
    #[default]
    Vllm,
    /// That of `SGLang`: a ratio of r spreads a length from r times itself up to itself; any token may occur.
    Sglang,
}

impl LengthRange {
    /// The lowest and the highest input length, of which the server adds `special` tokens. The lowest may be 0.
    pub fn inputs(&self, style: RandomStyle, special: u64) -> (u64, u64) {
        match style {
            RandomStyle::Vllm => around(self.input.saturating_sub(special), self.input_ratio),
            RandomStyle::Sglang => {
                let (low, high) = up_to(self.input, self.input_ratio);
                (low.saturating_sub(special).max(1), high.saturating_sub(special).max(1))
            }
        }
    }

    /// The lowest and the highest output limit, at least 1.
    pub fn outputs(&self, style: RandomStyle) -> (u64, u64) {
        let (low, high) = match style {
            RandomStyle::Vllm => around(self.output, self.output_ratio),
            RandomStyle::Sglang => up_to(self.output, self.output_ratio),
        };
        (low.max(1), high.max(1))
    }
}

fn around(length: u64, ratio: f64) -> (u64, u64) {
    let length = length as f64;
    ((length * (1.0 - ratio)).floor() as u64, (length * (1.0 + ratio)).ceil() as u64)
}

fn up_to(length: u64, ratio: f64) -> (u64, u64) {
    (((length as f64 * ratio) as u64).max(1), length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(input: u64, output: u64, input_ratio: f64, output_ratio: f64) -> LengthRange {
        LengthRange { input, output, input_ratio, output_ratio }
    }

    #[test]
    fn the_style_says_where_a_range_lies() {
        let (vllm, sglang) = (RandomStyle::Vllm, RandomStyle::Sglang);
        assert_eq!(range(16, 8, 0.25, 0.25).inputs(vllm, 0), (12, 20));
        assert_eq!(range(16, 8, 0.25, 0.25).outputs(vllm), (6, 10));
        assert_eq!(range(16, 8, 0.5, 0.25).inputs(vllm, 0), (8, 24));
        assert_eq!(range(16, 8, 0.5, 0.5).inputs(sglang, 0), (8, 16));
        assert_eq!(range(16, 8, 0.5, 0.5).outputs(sglang), (4, 8));
        assert_eq!(range(7, 7, 0.0, 0.0).inputs(vllm, 0), (7, 7));
        assert_eq!(range(7, 7, 0.1, 0.1).inputs(vllm, 0), (6, 8));
        assert_eq!(range(7, 7, 1.0, 0.0).inputs(sglang, 0), (7, 7));
        assert_eq!(range(7, 7, 0.0, 0.0).outputs(sglang), (1, 7));
    }

    #[test]
    fn what_the_server_adds_is_part_of_the_input() {
        assert_eq!(range(17, 1, 0.25, 0.0).inputs(RandomStyle::Vllm, 1), (12, 20));
        assert_eq!(range(1, 1, 0.25, 0.0).inputs(RandomStyle::Vllm, 3), (0, 0));
        assert_eq!(range(16, 1, 0.5, 0.0).inputs(RandomStyle::Sglang, 1), (7, 15));
        assert_eq!(range(2, 1, 0.5, 0.0).inputs(RandomStyle::Sglang, 5), (1, 1));
    }

    #[test]
    fn a_place_in_the_row_of_shares_is_a_pair() {
        let pairs = LengthPairs::parse("1,1:0;2,2:40;3,3:60;4,4:0").unwrap();
        let at = |place: f64| pairs.at(place).input.mean as u64;
        assert_eq!([at(0.0), at(0.399), at(0.4), at(0.999), at(1.0)], [2, 2, 3, 3, 3]);
    }
}
