//! Text of exactly n tokens, made as other benchmarks make theirs.

use crate::seed::Rng;

use super::{Corpus, Text};

/// Corrections before it is brought to its length by other means.
const ROUNDS: usize = 10;

impl Corpus {
    /// A text of `n` tokens that begins as these do. They are written out and tokenised again; what is too long is cut,
    /// what is too short gets tokens from `more`, and so on until it comes out. For token numbers that are no text this
    /// seldom takes more than three rounds; what ten do not settle ends in plain words drawn with `rng`.
    pub fn topped_up_text(
        &self,
        mut tokens: Vec<u32>,
        n: u64,
        mut more: impl FnMut() -> u32,
        rng: &mut impl Rng,
    ) -> Text {
        let wanted = usize::try_from(n).unwrap_or(usize::MAX);
        for _ in 0..=ROUNDS {
            let text = self.tokenizer.decode(&tokens);
            tokens.clear();
            self.tokenizer.encode(&text, &mut tokens);
            if tokens.len() == wanted {
                return Text { text, tokens: n };
            }
            tokens.truncate(wanted);
            while tokens.len() < wanted {
                tokens.push(more());
            }
        }
        self.exact_text_of(&tokens, rng, n)
    }
}
