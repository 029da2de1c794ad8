//! The likeliest way to cut a text, by the scores of its pieces.

use super::proto::{Kind, Piece};
use super::trie::{ROOT, Trie};

/// Below the lowest score, for a character no piece has.
const UNKNOWN_PENALTY: f32 = 10.0;
const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Unigram {
    trie: Trie,
    /// Score of each piece.
    scores: Vec<f32>,
    kinds: Vec<Kind>,
    highest: f32,
    unknown_score: f32,
}

#[derive(Clone, Copy)]
struct Best {
    score: f32,
    begin: u32,
    piece: u32,
}

impl Unigram {
    pub(crate) fn new(pieces: &[Piece], trie: Trie) -> Unigram {
        let normal = || pieces.iter().filter(|piece| piece.kind == Kind::Normal).map(|piece| piece.score);
        let lowest = normal().fold(f32::MAX, f32::min);
        Unigram {
            trie,
            scores: pieces.iter().map(|piece| piece.score).collect(),
            kinds: pieces.iter().map(|piece| piece.kind).collect(),
            highest: pieces.iter().map(|piece| piece.score).fold(f32::MIN, f32::max),
            unknown_score: lowest - UNKNOWN_PENALTY,
        }
    }

    /// Calls `found` with each piece in order: its number, and where it ends. `unknown` is the number of a
    /// character that no piece has. Sums are kept in single precision, as the models were scored.
    pub(crate) fn cut(&self, text: &str, unknown: u32, mut found: impl FnMut(u32, usize)) {
        let bytes = text.as_bytes();
        let mut best = vec![Best { score: 0.0, begin: NOWHERE, piece: unknown }; bytes.len() + 1];
        for (begin, character) in text.char_indices() {
            let so_far = best[begin].score;
            let width = character.len_utf8();
            let mut alone = false;
            let mut node = ROOT;
            for end in begin + 1..=bytes.len() {
                let Some((child, piece)) = self.trie.step(node, bytes[end - 1]) else { break };
                node = child;
                let Some(piece) = piece else { continue };
                if self.kinds[piece as usize] == Kind::Unused {
                    continue;
                }
                let own = match self.kinds[piece as usize] {
                    // What a user defined always wins.
                    Kind::UserDefined => (end - begin) as f32 * self.highest - 0.1,
                    _ => self.scores[piece as usize],
                };
                let score = own + so_far;
                let target = &mut best[end];
                if target.begin == NOWHERE || score > target.score {
                    *target = Best { score, begin: begin as u32, piece };
                }
                alone |= end - begin == width;
            }
            if !alone {
                let score = self.unknown_score + so_far;
                let target = &mut best[begin + width];
                if target.begin == NOWHERE || score > target.score {
                    *target = Best { score, begin: begin as u32, piece: unknown };
                }
            }
        }
        let mut path = Vec::new();
        let mut end = bytes.len();
        while end > 0 {
            let Best { begin, piece, .. } = best[end];
            path.push((piece, end));
            end = begin as usize;
        }
        for (piece, end) in path.into_iter().rev() {
            found(piece, end);
        }
    }
}
