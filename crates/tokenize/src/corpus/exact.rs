//! Text of exactly n tokens.
//!
//! A window of a corpus, written out and tokenised again, comes to the same tokens but at its two ends: the cut
//! may fall within a word. Where the tokenizer begins a token at every lone space between visible characters (a
//! seam), the ends are all that needs tokenising again; the middle is known. Elsewhere the whole text is
//! tokenised again and cut or lengthened until it comes out.

use std::cell::RefCell;

use crate::ranks::split::is_seam;
use crate::seed::{Rng, below};
use crate::tokenizer::lossy;

use super::text::{Chunk, begin};
use super::{Corpus, Position, Source, TextCorpus};

/// A text and its number of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Its tokens by the corpus' tokenizer, none added.
    pub tokens: u64,
}

/// Makes texts of an exact number of tokens; what [`Corpus`] does, by the name of the job.
pub type ExactText = Corpus;

/// Rounds of cutting and lengthening.
const ROUNDS: usize = 10;

thread_local! {
    static EDGE: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Corpus {
    /// A text of `n` tokens from a random start.
    ///
    /// For text corpora through tokenizers that split at spaces the count is proven; elsewhere it is `n` for all
    /// but a few in ten thousand, and never more than one off. `tokens` says what it is.
    pub fn exact_text(&self, rng: &mut impl Rng, n: u64) -> Text {
        self.exact_text_after(&Text::default(), rng, n)
    }

    /// A text that begins with `prefix` and has `n` tokens more, the join included.
    pub fn exact_text_after(&self, prefix: &Text, rng: &mut impl Rng, n: u64) -> Text {
        if n == 0 {
            return prefix.clone();
        }
        if let Source::Text(corpus) = &self.source {
            let start = corpus.draw(&self.tokenizer, rng);
            if self.tokenizer.splits_at_seams()
                && let Some(text) = self.window_after(corpus, prefix, start, n as usize)
            {
                return text;
            }
            let mut tokens = Vec::with_capacity(n as usize);
            corpus.append_tokens(&self.tokenizer, start, n as usize, &mut tokens);
            return self.fit(prefix, tokens, n, rng);
        }
        let mut tokens = Vec::with_capacity(n as usize);
        self.draw_window(rng, n as usize, &mut tokens);
        self.fit(prefix, tokens, n, rng)
    }

    /// A text of `n` tokens made of these, cut or lengthened at the end. Use it for tokens put together by
    /// hand; it may differ from `n` where no text has `n` tokens.
    pub fn exact_text_of(&self, tokens: &[u32], rng: &mut impl Rng, n: u64) -> Text {
        self.fit(&Text::default(), tokens.to_vec(), n, rng)
    }

    /// The window at `start`, its length proven from its ends; `None` when no cut near gives `n`.
    fn window_after(&self, corpus: &TextCorpus, prefix: &Text, start: Position, n: usize) -> Option<Text> {
        let first = corpus.chunk(&self.tokenizer, start.chunk);
        let ends = first.ends.as_deref()?;
        let start_at = begin(ends, start.token);
        let open = open_end(&prefix.text);
        let open_tokens = self.count_slices(&[open]);

        // The head runs from the start to the first seam, joined to what the prefix leaves open. A start that is
        // a seam is none when what the prefix ends with is white space or no ASCII.
        let joins = prefix.text.as_bytes().last().is_none_or(u8::is_ascii_graphic);
        let (seam, seam_begin) = match seam_at_or_after(first, ends, start.token + usize::from(!joins)) {
            Some((token, at)) => (Position { token, ..start }, at),
            None => (Position { chunk: corpus.next(start.chunk), token: 0 }, first.text.len()),
        };
        let head = self.count_slices(&[open, &first.text[start_at..seam_begin]]) - open_tokens;
        if head >= n {
            return self.short_window(corpus, prefix, start, n);
        }
        // From the seam on the corpus' own tokens count, but for the last word.
        let mut wanted = n - head;
        for _ in 0..4 {
            let (end, last) = self.end_after(corpus, seam, wanted)?;
            let last_ends = last.ends.as_deref()?;
            let cut = begin(last_ends, end.token);
            let floor = if end.chunk == seam.chunk && end.token >= seam.token { seam.token } else { 0 };
            let (tail_token, tail_begin) = seam_before(last, last_ends, end.token, floor);
            let tail = self.count_slices(&[&last.text[tail_begin..cut]]);
            let total = head + wanted - (end.token - tail_token) + tail;
            if total == n {
                let mut text = String::with_capacity(prefix.text.len() + n * 5 + 64);
                text.push_str(&prefix.text);
                text.push_str(&first.text[start_at..seam_begin]);
                self.append_text(corpus, seam, wanted, &mut text)?;
                return Some(Text { text, tokens: prefix.tokens + n as u64 });
            }
            wanted = (wanted + n).checked_sub(total).filter(|&wanted| wanted > 0)?;
        }
        None
    }

    /// A window so short that its ends are all of it: every length up to a little more is tried.
    fn short_window(&self, corpus: &TextCorpus, prefix: &Text, start: Position, n: usize) -> Option<Text> {
        let open = open_end(&prefix.text);
        let open_tokens = self.count_slices(&[open]);
        let mut window = String::new();
        let nearby = [0, 1, -1, 2, -2, 3, 4, 5, 6];
        for wanted in
            nearby.iter().filter_map(|more| n.checked_add_signed(*more)).filter(|&wanted| wanted > 0)
        {
            window.clear();
            self.append_text(corpus, start, wanted, &mut window)?;
            if self.count_slices(&[open, &window]) - open_tokens == n {
                return Some(Text {
                    text: format!("{}{window}", prefix.text),
                    tokens: prefix.tokens + n as u64,
                });
            }
        }
        None
    }

    /// The position `wanted` tokens on, as an end (so at the end of a chunk rather than at the beginning of the
    /// next), and its chunk.
    fn end_after<'corpus>(
        &self,
        corpus: &'corpus TextCorpus,
        start: Position,
        wanted: usize,
    ) -> Option<(Position, &'corpus Chunk)> {
        let Position { mut chunk, mut token } = start;
        let mut left = wanted;
        loop {
            let here = corpus.chunk(&self.tokenizer, chunk);
            here.ends.as_ref()?;
            let room = here.tokens.len().checked_sub(token)?;
            if left <= room {
                return Some((Position { chunk, token: token + left }, here));
            }
            left -= room;
            chunk = corpus.next(chunk);
            token = 0;
        }
    }

    /// Appends the text of `wanted` tokens from a position on.
    fn append_text(
        &self,
        corpus: &TextCorpus,
        start: Position,
        wanted: usize,
        text: &mut String,
    ) -> Option<()> {
        let Position { mut chunk, mut token } = start;
        let mut left = wanted;
        loop {
            let here = corpus.chunk(&self.tokenizer, chunk);
            let ends = here.ends.as_deref()?;
            let take = left.min(here.tokens.len() - token);
            text.push_str(&here.text[begin(ends, token)..begin(ends, token + take)]);
            left -= take;
            if left == 0 {
                return Some(());
            }
            chunk = corpus.next(chunk);
            token = 0;
        }
    }

    /// Tokens of a few slices as one text.
    fn count_slices(&self, slices: &[&str]) -> usize {
        match slices {
            [one] => self.tokenizer.count(one) as usize,
            many => EDGE.with_borrow_mut(|edge| {
                edge.clear();
                edge.extend(many.iter().copied());
                self.tokenizer.count(edge) as usize
            }),
        }
    }

    /// Writes tokens out, tokenises the text again, cuts or lengthens, until it comes out.
    fn fit(&self, prefix: &Text, mut tokens: Vec<u32>, n: u64, rng: &mut impl Rng) -> Text {
        let target = prefix.tokens + n;
        let mut best: Option<Text> = None;
        let mut again = Vec::new();
        for _ in 0..ROUNDS {
            let text = self.written(prefix, &tokens);
            again.clear();
            self.tokenizer.encode(&text, &mut again);
            let found = again.len() as u64;
            let closer = |best: &Text| found.abs_diff(target) < best.tokens.abs_diff(target);
            let settled = best.as_ref().is_some_and(|best| !closer(best));
            if !settled {
                best = Some(Text { text, tokens: found });
            }
            if found == target {
                break;
            }
            tokens.clear();
            tokens.extend_from_slice(again.get((prefix.tokens as usize).min(again.len())..).unwrap_or(&[]));
            if found > target {
                if settled {
                    // Cut at the same place again and no shorter: the cut makes tokens of its own.
                    break;
                }
                tokens.truncate(n as usize);
            } else {
                self.draw_window(rng, (target - found) as usize, &mut tokens);
            }
        }
        let best = best.unwrap_or_default();
        if best.tokens == target {
            return best;
        }
        self.filled_up(prefix, &tokens, n, rng).unwrap_or(best)
    }

    /// The longest beginning of `tokens` that is whole characters, filled up to `n` tokens with plain words.
    fn filled_up(&self, prefix: &Text, tokens: &[u32], n: u64, rng: &mut impl Rng) -> Option<Text> {
        let words = self.tokenizer.corpora().plain_words(&self.tokenizer);
        let mut bytes = Vec::new();
        let mut kept = tokens.len().min(n as usize) + 1;
        for _ in 0..ROUNDS {
            // Characters are at most four bytes, so five steps back find a whole one.
            let whole = (0..kept).rev().take(5).find(|&kept| {
                bytes.clear();
                self.tokenizer.decode_into(&tokens[kept.saturating_sub(8)..kept], &mut bytes);
                !lossy(bytes.clone()).ends_with('\u{fffd}')
            });
            kept = whole.unwrap_or(0);
            let mut text = self.written(prefix, &tokens[..kept]);
            let target = prefix.tokens + n;
            if let Some(missing) = target.checked_sub(self.tokenizer.count(&text)) {
                for _ in 0..missing {
                    text.push_str(words.get(below(rng, words.len() as u64) as usize)?);
                }
                if self.tokenizer.count(&text) == target {
                    return Some(Text { text, tokens: target });
                }
            }
            if kept == 0 {
                return None;
            }
        }
        None
    }

    fn written(&self, prefix: &Text, tokens: &[u32]) -> String {
        let mut bytes = Vec::with_capacity(prefix.text.len() + tokens.len() * 6);
        bytes.extend_from_slice(prefix.text.as_bytes());
        self.tokenizer.decode_into(tokens, &mut bytes);
        lossy(bytes)
    }
}

/// What follows the last seam of a text: all that later text can change the tokens of.
fn open_end(text: &str) -> &str {
    let bytes = text.as_bytes();
    let seam = (1..bytes.len()).rev().find(|&at| is_seam(bytes, at)).unwrap_or(0);
    &text[seam..]
}

/// The first token from `token` on that begins at a seam, and where.
pub(super) fn seam_at_or_after(chunk: &Chunk, ends: &[u32], token: usize) -> Option<(usize, usize)> {
    if token == 0 {
        return Some((0, 0));
    }
    let bytes = chunk.text.as_bytes();
    (token..ends.len()).map(|token| (token, ends[token - 1] as usize)).find(|&(_, at)| is_seam(bytes, at))
}

/// The last token before `token`, but not before `floor`, that begins at a seam, and where. Beginnings of chunks
/// are seams, and so is `floor`.
fn seam_before(chunk: &Chunk, ends: &[u32], token: usize, floor: usize) -> (usize, usize) {
    let bytes = chunk.text.as_bytes();
    let token = (floor + 1..token).rev().find(|&token| is_seam(bytes, begin(ends, token))).unwrap_or(floor);
    (token, begin(ends, token))
}
