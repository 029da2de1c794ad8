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
use super::{Corpus, Pool, Position, Source, TextCorpus};

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
/// Tokens looked at beyond a cut, and words that may replace what a cut spoils.
const MORE: usize = 8;

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
        let mut tokens = Vec::new();
        match &self.source {
            Source::Text(corpus) => {
                let start = corpus.draw(&self.tokenizer, rng);
                if self.tokenizer.splits_at_seams() {
                    let ends = corpus.chunk(&self.tokenizer, start.chunk).ends.as_deref();
                    let begin = ends.map(|ends| (start.chunk, begin(ends, start.token)));
                    let text =
                        begin.and_then(|begin| self.window_after(corpus, prefix, begin, n as usize, rng));
                    if let Some(text) = text {
                        return text;
                    }
                }
                corpus.append_tokens(&self.tokenizer, start, n as usize, &mut tokens);
            }
            Source::Tokens(pool, kind) => {
                let start = pool.draw(rng);
                let written = match kind {
                    Pool::Ordinary => self.tokenizer.corpora().written_pool(&self.tokenizer),
                    // Special tokens would part the text at other places.
                    Pool::Decodable => None,
                };
                if let Some(written) = written {
                    let begin = written.position(start);
                    if let Some(text) = self.window_after(&written.corpus, prefix, begin, n as usize, rng) {
                        return text;
                    }
                }
                pool.append(start, n as usize, &mut tokens);
            }
        }
        self.fit(prefix, tokens, n, rng)
    }

    /// A text of `n` tokens made of these, cut or lengthened at the end. Use it for tokens put together by
    /// hand; it may differ from `n` where no text has `n` tokens.
    pub fn exact_text_of(&self, tokens: &[u32], rng: &mut impl Rng, n: u64) -> Text {
        self.fit(&Text::default(), tokens.to_vec(), n, rng)
    }

    /// The window from a byte of a chunk on, its length proven from its ends; `None` where the tokens do not
    /// spell the text, or no cut near gives `n`.
    fn window_after(
        &self,
        corpus: &TextCorpus,
        prefix: &Text,
        (chunk, start): (usize, usize),
        n: usize,
        rng: &mut impl Rng,
    ) -> Option<Text> {
        let first = corpus.chunk(&self.tokenizer, chunk);
        let ends = first.ends.as_deref()?;
        let open = open_end(&prefix.text);
        let open_tokens = self.count_slices(&[open]);
        let finished = |mut text: String, closing: &str| {
            text.push_str(closing);
            Some(Text { text, tokens: prefix.tokens + n as u64 })
        };

        // The head runs from the start to the first seam, joined to what the prefix leaves open. A start that is
        // a seam is none when what the prefix ends with is white space or no ASCII.
        let joins = prefix.text.as_bytes().last().is_none_or(u8::is_ascii_graphic);
        let (seam, seam_begin) = match seam_at_or_after(&first.text, start + usize::from(!joins)) {
            Some(at) => (Position { chunk, token: token_at(ends, at)? }, at),
            None => (Position { chunk: corpus.next(chunk), token: 0 }, first.text.len()),
        };
        let head_text = &first.text[start..seam_begin];
        let head = self.count_slices(&[open, head_text]) - open_tokens;
        if head >= n {
            // So short that its ends are all of it.
            let mut context = [open, head_text].concat();
            self.append_text(corpus, seam, MORE, &mut context)?;
            let closed = self.closed(&context, open_tokens + n, rng)?;
            return finished(prefix.text.clone(), closed.get(open.len()..)?);
        }
        // From the seam on the corpus' own tokens count, but for the last word.
        let mut wanted = n - head;
        let mut text = String::with_capacity(prefix.text.len() + n * 5 + 64);
        text.push_str(&prefix.text);
        text.push_str(head_text);
        for attempt in 0..4 {
            let (end, last) = self.end_after(corpus, seam, wanted)?;
            let last_ends = last.ends.as_deref()?;
            let cut = begin(last_ends, end.token);
            let floor = if end.chunk == seam.chunk && end.token >= seam.token { seam.token } else { 0 };
            let (tail_token, tail_begin) = seam_before(last, last_ends, end.token, floor);
            let middle = wanted - (end.token - tail_token);
            let whole = last.text.is_char_boundary(cut);
            let tail = if whole { self.count_slices(&[&last.text[tail_begin..cut]]) } else { 0 };
            let total = head + middle + tail;
            if whole && total == n {
                self.append_text(corpus, seam, wanted, &mut text)?;
                return finished(text, "");
            }
            if !whole || attempt == 3 {
                // A cut within a character, or none that comes out: the end is made to.
                let mut context = String::new();
                let tail_start = Position { chunk: end.chunk, token: tail_token };
                self.append_text(corpus, tail_start, end.token - tail_token + MORE, &mut context)?;
                let closed = self.closed(&context, n - head - middle, rng)?;
                self.append_text(corpus, seam, middle, &mut text)?;
                return finished(text, &closed);
            }
            wanted = (wanted + n).checked_sub(total).filter(|&wanted| wanted > 0)?;
        }
        None
    }

    /// A beginning of `context`, with a few plain words after it if need be, that has `wanted` tokens.
    fn closed(&self, context: &str, wanted: usize, rng: &mut impl Rng) -> Option<String> {
        let mut tokens = Vec::new();
        self.tokenizer.encode(context, &mut tokens);
        let mut cut = 0;
        let mut cuts = vec![0];
        for &token in tokens.iter().take(wanted) {
            cut += self.tokenizer.token_len(token)?;
            cuts.push(cut);
        }
        let mut words: &[String] = &[];
        for fill in 0..=wanted.min(MORE) {
            let Some(&cut) = cuts.get(wanted - fill) else { continue };
            let Some(kept) = context.get(..cut) else { continue };
            let mut text = kept.to_owned();
            if fill > 0 && words.is_empty() {
                words = self.tokenizer.corpora().plain_words(&self.tokenizer);
            }
            for _ in 0..fill {
                text.push_str(words.get(below(rng, words.len() as u64) as usize)?);
            }
            if self.tokenizer.count(&text) as usize == wanted {
                return Some(text);
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
            // Only the last token may end within a character; what is left of that is dropped.
            let (from, mut until) = (begin(ends, token), begin(ends, token + take));
            while !here.text.is_char_boundary(until) {
                until -= 1;
            }
            text.push_str(here.text.get(from..until)?);
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

/// The first seam from a byte on. The beginning of a chunk is one.
pub(super) fn seam_at_or_after(text: &str, at: usize) -> Option<usize> {
    if at == 0 { Some(0) } else { (at..text.len()).find(|&at| is_seam(text.as_bytes(), at)) }
}

/// The token that begins at a byte.
pub(super) fn token_at(ends: &[u32], at: usize) -> Option<usize> {
    let token = ends.partition_point(|&end| end as usize <= at);
    (begin(ends, token) == at).then_some(token)
}

/// The last token before `token`, but not before `floor`, that begins at a seam, and where. Beginnings of chunks
/// are seams, and so is `floor`.
fn seam_before(chunk: &Chunk, ends: &[u32], token: usize, floor: usize) -> (usize, usize) {
    let bytes = chunk.text.as_bytes();
    let token = (floor + 1..token).rev().find(|&token| is_seam(bytes, begin(ends, token))).unwrap_or(floor);
    (token, begin(ends, token))
}
