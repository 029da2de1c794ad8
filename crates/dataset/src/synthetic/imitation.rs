//! Random prompts as other serving benchmarks make them from the same seed, byte for byte.
//!
//! All numbers come from one stream: the input lengths of all requests, then their output limits, then where each
//! begins in the pool of tokens, then the prefixes, then the tokens that top up what came out too short. The last are
//! drawn as requests are made, so these are made in order the first time; what a request took is kept, and it can be
//! made again at any time. Such a benchmark draws a request for each conversation. Where there are more, the lengths are
//! those of as many turns, conversation by conversation, and the texts as many, too; those behind them are not imitated.

use std::sync::{Arc, Mutex, PoisonError};

use aiperf_config::{Corpus as CorpusChoice, LengthRange, Lengths, RandomStyle, SyntheticDataset};
use aiperf_tokenize::corpus::{Pool, TokenPool};
use aiperf_tokenize::numpy::NumpyRandom;
use aiperf_tokenize::seed::{Streams, below};
use aiperf_tokenize::{Corpus, Text, Tokenizer};

use super::pool_of;
use crate::{DatasetError, Note, OpenContext, Stop};

/// Whose prompts, from which seed, and how many.
pub(super) struct Plan {
    style: RandomStyle,
    range: LengthRange,
    seed: u64,
    entries: u32,
    /// Texts of a turn.
    batch: u64,
    /// Number of prefixes, and tokens of each.
    prefixes: (u32, u32),
    /// Tokens that a server adds to a bare text.
    special: u64,
    /// All tokens that it adds to the first and to later turns of a conversation.
    overhead: (u64, u64),
    /// For each turn the conversation that it begins; `None` for a later turn.
    begun: Box<[Option<u64>]>,
}

/// The plan, where prompts are to be those of another benchmark, and what is to be said of it. `overhead` tokens are
/// added by the server to the first and to later prompts of a conversation, which has `turns`. A seed that was drawn is
/// used like one that was given, so that the run can be repeated with it.
pub(super) fn plan(
    shape: &SyntheticDataset,
    corpus: Option<CorpusChoice>,
    context: &OpenContext<'_>,
    overhead: (u64, u64),
    turns: impl Fn(u64) -> u32,
) -> (Option<Plan>, Vec<Note>) {
    let Lengths::Range(range) = shape.lengths else { return (None, Vec::new()) };
    if corpus != Some(CorpusChoice::Random) {
        return (None, Vec::new());
    }
    let style = shape.random_style;
    let benchmark = match style {
        RandomStyle::Vllm => "vllm",
        RandomStyle::Sglang => "sglang",
    };
    let mut notes = Vec::new();
    let mut say = |note: Note| {
        if context.seed_given {
            notes.push(note);
        }
    };
    let Ok(entries) = u32::try_from(shape.entries) else {
        say(Note::ImitatedUpTo { benchmark, texts: 0 });
        return (None, notes);
    };
    let batch = u64::from(shape.batch_size.max(1));
    let begun: Box<[Option<u64>]> = (0..shape.entries)
        .flat_map(|entry| (0..turns(entry)).map(move |turn| (turn == 0).then_some(entry)))
        .take(entries as usize)
        .collect();
    if batch > 1 || begun.contains(&None) {
        say(Note::ImitatedUpTo { benchmark, texts: shape.entries });
    }
    let seed = context.seed;
    if style == RandomStyle::Sglang && seed > u64::from(u32::MAX) && context.seed_given {
        notes.push(Note::SeedFolded { seed, folded: folded(seed) });
    }
    let special = context.tokenizer.map_or(0, Tokenizer::num_special_tokens_to_add);
    let prefixes = shape.prefix_pool.unwrap_or_default();
    (Some(Plan { style, range, seed, entries, batch, prefixes, special, overhead, begun }), notes)
}

/// Makes them.
pub(super) struct Imitation {
    corpus: Corpus,
    pool: Arc<TokenPool>,
    any: Arc<TokenPool>,
    turns: Box<[Turn]>,
    /// Where each text begins in the pool.
    offsets: Vec<u32>,
    /// Texts of a turn.
    batch: u64,
    /// Texts of the pool, and their tokens.
    prefixes: Box<[(Text, Vec<u32>)]>,
    prefix_choice: Streams,
    fallback: Streams,
    made: Mutex<Made>,
}

struct Turn {
    input: u32,
    output: u32,
    /// Tokens that a server adds beyond those that lengths are already without.
    overhead: u64,
    /// The conversation that it begins.
    begins: Option<u64>,
}

struct Made {
    random: NumpyRandom,
    /// All draws of tokens that topped a text up.
    drawn: Vec<u32>,
    /// Where the draws of each text that was made begin, and where those of the next one will.
    begins: Vec<usize>,
}

impl Imitation {
    pub(super) fn new(plan: &Plan, corpus: &Corpus, streams: impl Fn(&str) -> Streams) -> Imitation {
        let tokenizer = corpus.tokenizer();
        let pool = TokenPool::of(tokenizer, pool_of(plan.style));
        let mut random = match plan.style {
            RandomStyle::Vllm => NumpyRandom::generator(plan.seed),
            RandomStyle::Sglang => NumpyRandom::random_state(folded(plan.seed)),
        };
        let mut all = |(low, high): (u64, u64)| -> Vec<u32> {
            let clamp = |length: u64| u32::try_from(length).unwrap_or(u32::MAX);
            (0..plan.entries).map(|_| random.within(clamp(low), clamp(high))).collect()
        };
        let inputs = all(plan.range.inputs(plan.style, plan.special));
        let outputs = all(plan.range.outputs(plan.style));
        let offsets = all((0, u64::from(tokenizer.vocab_size().saturating_sub(1))));
        let turns = inputs
            .into_iter()
            .zip(outputs)
            .zip(plan.begun.iter())
            .map(|((input, output), begins)| {
                let (first, later) = plan.overhead;
                let overhead = if begins.is_some() { first } else { later }.saturating_sub(plan.special);
                Turn { input, output, overhead, begins: *begins }
            })
            .collect();
        let any = TokenPool::of(tokenizer, Pool::Decodable);
        let fallback = streams("prompts");
        let (count, length) = plan.prefixes;
        // Each is brought to its length when it is drawn.
        let prefixes = (0..count)
            .map(|number| {
                let drawn = (0..length).map(|_| drawn_token(&pool, &mut random)).collect();
                let more = || drawn_token(&any, &mut random);
                let mut stream = streams("prefixes").at(u64::from(number));
                let text = corpus.topped_up_text(drawn, u64::from(length), more, &mut stream);
                let mut tokens = Vec::with_capacity(length as usize);
                tokenizer.encode(&text.text, &mut tokens);
                (text, tokens)
            })
            .collect();
        Imitation {
            any,
            pool,
            corpus: corpus.clone(),
            turns,
            offsets,
            batch: plan.batch,
            prefixes,
            prefix_choice: streams("prefix_choice"),
            fallback,
            made: Mutex::new(Made { random, drawn: Vec::new(), begins: vec![0] }),
        }
    }

    fn turn(&self, number: u64) -> Option<&Turn> {
        self.turns.get(usize::try_from(number).ok()?)
    }

    /// The output limit of a turn, by its number among those of all conversations; `None` behind those that are imitated.
    pub(super) fn output(&self, turn: u64) -> Option<u64> {
        self.turn(turn).map(|turn| u64::from(turn.output))
    }

    /// The length of each text of a turn, without a prefix.
    pub(super) fn length(&self, turn: u64) -> Option<u64> {
        let turn = self.turn(turn)?;
        let floor = u64::from(turn.begins.is_none() || self.prefixes.is_empty());
        Some(u64::from(turn.input).saturating_sub(turn.overhead).max(floor))
    }

    /// A text of a turn; `None` behind those that are imitated.
    pub(super) fn text(&self, turn: u64, place: u32, stop: &Stop) -> Result<Option<Text>, DatasetError> {
        let number = turn.saturating_mul(self.batch).saturating_add(u64::from(place));
        match usize::try_from(number) {
            Ok(number) if number < self.offsets.len() => self.made(number, stop).map(Some),
            _ => Ok(None),
        }
    }

    /// The prefix of a conversation, where there is a pool of them.
    pub(super) fn prefix(&self, conversation: u64) -> Option<&Text> {
        self.chosen(conversation).map(|(text, _)| text)
    }

    fn chosen(&self, conversation: u64) -> Option<&(Text, Vec<u32>)> {
        if self.prefixes.is_empty() {
            return None;
        }
        let choice = below(&mut self.prefix_choice.at(conversation), self.prefixes.len() as u64);
        self.prefixes.get(choice as usize)
    }

    fn made(&self, index: usize, stop: &Stop) -> Result<Text, DatasetError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            stop.go_on()?;
            if let [begin, end, ..] = made.begins[index.min(made.begins.len())..] {
                let draws = made.drawn[begin..end].to_vec();
                drop(made);
                let mut draws = draws.into_iter();
                return Ok(self.make(index, || draws.next().unwrap_or(0)));
            }
            let next = made.begins.len() - 1;
            let Made { random, drawn, begins } = &mut *made;
            let text = self.make(next, || {
                let draw = random.below(self.any.tokens().len() as u32);
                drawn.push(draw);
                draw
            });
            begins.push(drawn.len());
            if next == index {
                return Ok(text);
            }
        }
    }

    /// Makes a text; `more` draws from all tokens.
    fn make(&self, index: usize, mut more: impl FnMut() -> u32) -> Text {
        let turn = index as u64 / self.batch;
        let begins = self.turn(turn).and_then(|turn| turn.begins);
        let mut tokens = Vec::new();
        if let Some((_, prefix)) = begins.and_then(|conversation| self.chosen(conversation)) {
            tokens.extend_from_slice(prefix);
        }
        // Invariant: there are no fewer turns than texts.
        let body = self.length(turn).unwrap_or(1);
        let wanted = tokens.len() as u64 + body;
        self.pool.append(u64::from(self.offsets[index]) + index as u64, body as usize, &mut tokens);
        let more = || self.any.tokens().get(more() as usize).copied().unwrap_or(0);
        self.corpus.topped_up_text(tokens, wanted, more, &mut self.fallback.at(index as u64))
    }
}

fn drawn_token(pool: &TokenPool, random: &mut NumpyRandom) -> u32 {
    let index = random.below(pool.tokens().len() as u32);
    pool.tokens().get(index as usize).copied().unwrap_or(0)
}

/// The seed of a generator that takes 32 bits.
fn folded(seed: u64) -> u32 {
    (seed ^ seed >> 32) as u32
}
