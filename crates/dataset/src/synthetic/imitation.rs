//! Random prompts as other serving benchmarks make them from the same seed, byte for byte.
//!
//! All numbers come from one stream: the input lengths of all requests, then their output limits, then where each
//! begins in the pool of tokens, then the prefixes, then the tokens that top up what came out too short. The last are
//! drawn as requests are made, so these are made in order the first time; what a request took is kept, and it can be
//! made again at any time.

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
    /// Number of prefixes, and tokens of each.
    prefixes: (u32, u32),
    /// Tokens that a server adds to a bare text.
    special: u64,
    /// All tokens that it adds.
    overhead: u64,
}

/// The plan, where prompts are to be those of another benchmark, and what is to be said of it. `overhead` tokens are
/// added by the server to the first prompt of a conversation. A seed that was drawn is used like one that was given, so
/// that the run can be repeated with it.
pub(super) fn plan(
    shape: &SyntheticDataset,
    corpus: Option<CorpusChoice>,
    context: &OpenContext<'_>,
    overhead: u64,
) -> (Option<Plan>, Vec<Note>) {
    let Lengths::Range(range) = shape.lengths else { return (None, Vec::new()) };
    if corpus != Some(CorpusChoice::Random) {
        return (None, Vec::new());
    }
    let style = shape.random_style;
    let one_text = shape.turns.stddev <= 0.0 && shape.turns.mean < 1.5 && shape.batch_size <= 1;
    let (Ok(entries), true) = (u32::try_from(shape.entries), one_text) else {
        let benchmark = match style {
            RandomStyle::Vllm => "vllm",
            RandomStyle::Sglang => "sglang",
        };
        return (None, if context.seed_given { vec![Note::NotImitated { benchmark }] } else { Vec::new() });
    };
    let seed = context.seed;
    let mut notes = Vec::new();
    if style == RandomStyle::Sglang && seed > u64::from(u32::MAX) && context.seed_given {
        notes.push(Note::SeedFolded { seed, folded: folded(seed) });
    }
    let special = context.tokenizer.map_or(0, Tokenizer::num_special_tokens_to_add);
    let prefixes = shape.prefix_pool.unwrap_or_default();
    (Some(Plan { style, range, seed, entries, prefixes, special, overhead }), notes)
}

/// Makes them.
pub(super) struct Imitation {
    corpus: Corpus,
    pool: Arc<TokenPool>,
    any: Arc<TokenPool>,
    requests: Box<[Request]>,
    prefixes: Box<[Vec<u32>]>,
    prefix_choice: Streams,
    fallback: Streams,
    /// Tokens that a server adds beyond those that lengths are already without.
    overhead: u64,
    made: Mutex<Made>,
}

struct Request {
    input: u32,
    output: u32,
    offset: u32,
}

struct Made {
    random: NumpyRandom,
    /// All draws of tokens that topped a request up.
    drawn: Vec<u32>,
    /// Where the draws of each request that was made begin, and where those of the next one will.
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
        let requests = inputs
            .into_iter()
            .zip(outputs)
            .zip(offsets)
            .map(|((input, output), offset)| Request { input, output, offset })
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
                let text = corpus.topped_up_text(drawn, u64::from(length), more, &mut stream).text;
                let mut tokens = Vec::with_capacity(length as usize);
                tokenizer.encode(&text, &mut tokens);
                tokens
            })
            .collect();
        Imitation {
            any,
            pool,
            corpus: corpus.clone(),
            requests,
            prefixes,
            prefix_choice: streams("prefix_choice"),
            fallback,
            overhead: plan.overhead.saturating_sub(plan.special),
            made: Mutex::new(Made { random, drawn: Vec::new(), begins: vec![0] }),
        }
    }

    /// The text of a request and its output limit.
    pub(super) fn request(&self, index: u64, stop: &Stop) -> Result<(Text, u64), DatasetError> {
        let index = index as usize;
        Ok((self.text(index, stop)?, u64::from(self.requests[index].output)))
    }

    fn text(&self, index: usize, stop: &Stop) -> Result<Text, DatasetError> {
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

    /// Makes a request; `more` draws from all tokens.
    fn make(&self, index: usize, mut more: impl FnMut() -> u32) -> Text {
        let request = &self.requests[index];
        let mut tokens = Vec::new();
        if !self.prefixes.is_empty() {
            let choice = below(&mut self.prefix_choice.at(index as u64), self.prefixes.len() as u64);
            tokens.extend_from_slice(&self.prefixes[choice as usize]);
        }
        let floor = u64::from(tokens.is_empty());
        let body = u64::from(request.input).saturating_sub(self.overhead).max(floor);
        let wanted = tokens.len() as u64 + body;
        self.pool.append(u64::from(request.offset) + index as u64, body as usize, &mut tokens);
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
