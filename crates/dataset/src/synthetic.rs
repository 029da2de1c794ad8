//! Generated conversations. Entry i is made from streams of its own, so it is the same however many entries there
//! are and whoever makes it.

mod audio;
mod canvas;
mod images;
mod imitation;
mod lengths;
mod pictures;
mod rankings;
mod video;

use std::sync::{Arc, OnceLock};

use aiperf_config::{
    CacheBust, Corpus as CorpusChoice, DatasetConfig, EndpointKind, RandomStyle, SyntheticDataset,
    SyntheticMedia,
};
use aiperf_tokenize::corpus::Pool;
use aiperf_tokenize::seed::{Stream, Streams, below, stream};
use aiperf_tokenize::{Corpus, Text, Tokenizer};
use aiperf_types::{Content, ContextMode, Conversation, TextGroup, Turn};

use audio::Audio;
use images::Images;
use imitation::Imitation;
use lengths::{EntryLengths, LengthDraws};
use rankings::Rankings;
use video::Video;

use crate::file::Finish;
use crate::prompt::corpus_kind;
use crate::random::whole;
use crate::{Dataset, DatasetError, Len, Note, OpenContext, Outline, TurnOutline};

/// Entries between two counts of the turns before.
const STRIDE: u64 = 64;
/// Marks whose tokens are counted.
const MARKS: u64 = 64;

struct Synthetic {
    shape: SyntheticDataset,
    corpus: Corpus,
    /// Tokens that a server adds to the first and to later prompts.
    overhead: (u64, u64),
    turns: Streams,
    delays: Streams,
    /// No delay is longer, ms.
    delay_cap_ms: f64,
    lengths: LengthDraws,
    /// Makes prompts and lengths instead, where they are to be those of another benchmark.
    imitation: Option<Imitation>,
    /// Makes what there is to rank, in place of prompts.
    rankings: Option<Rankings>,
    prompts: Streams,
    prefix_choice: Streams,
    prefix_texts: Streams,
    prefixes: Box<[OnceLock<Text>]>,
    contexts: Streams,
    images: Option<Images>,
    audio: Option<Audio>,
    video: Option<Video>,
    system_message: Option<Arc<str>>,
    /// Turns of all entries; counted when first asked for.
    total: OnceLock<u64>,
    /// Turns before every entry whose number is a multiple of [`STRIDE`]; counted when first asked for.
    before: OnceLock<Box<[u64]>>,
    notes: Vec<Note>,
    finish: Finish,
}

/// Opens generated data.
pub(crate) fn open(
    shape: &SyntheticDataset,
    config: &DatasetConfig,
    context: &OpenContext<'_>,
    finish: Finish,
) -> Result<Arc<dyn Dataset>, DatasetError> {
    let unsuitable = |text: String| Err(DatasetError::Unsuitable(text));
    let Some(tokenizer) = context.tokenizer else {
        return Err(DatasetError::Prompt(
            "generated prompts need a tokenizer; name one with --tokenizer, or send a file with --input-file"
                .into(),
        ));
    };
    if context.fixed_schedule {
        return unsuitable("--fixed-schedule needs recorded times; name a trace with --input-file".into());
    }
    if shape.entries == 0 {
        return Err(DatasetError::Empty("--num-dataset-entries is 0: nothing can be sent".into()));
    }
    if shape.batch_size == 0 && shape.media == SyntheticMedia::default() {
        return unsuitable(
            "--batch-size 0 and --isl 0 leave nothing to send without images, audio or video".into(),
        );
    }
    if shape.batch_size > 1 && !context.endpoint.single_turn_only() {
        return unsuitable(format!(
            "--batch-size {} makes several texts of a turn, and a {} request carries one; use the embeddings or the \
             completions endpoint",
            shape.batch_size,
            context.endpoint.name()
        ));
    }
    if shape.media != SyntheticMedia::default() && context.endpoint != EndpointKind::Chat {
        return unsuitable(format!(
            "generated images, audio and video need an endpoint with messages, and {} has no place for them; use \
             --endpoint-type chat",
            context.endpoint.name()
        ));
    }
    let corpus = match config.corpus.unwrap_or_default() {
        CorpusChoice::Random => Corpus::random(pool_of(shape.random_style), tokenizer),
        choice => Corpus::open(corpus_kind(choice), tokenizer),
    };
    lengths::check(shape, tokenizer)?;
    let streams = |name: &str| Streams::new(context.seed, &format!("dataset.{name}"));
    let mark = mark_tokens(config, tokenizer);
    let in_system =
        shape.shared_system_prompt_length.is_some() && config.cache_bust.is_some_and(CacheBust::is_system);
    let (system_mark, turn_mark) = if in_system { (mark, 0) } else { (0, mark) };
    let system_message = shape.shared_system_prompt_length.map(|length| {
        let length = u64::from(length).saturating_sub(system_mark).max(1);
        corpus.exact_text(&mut stream(context.seed, "dataset.system_prompt"), length).text.into()
    });
    let (first, later) = overhead(tokenizer, context);
    let (prefixes, _) = shape.prefix_pool.unwrap_or_default();
    let first = first + turn_mark;
    let turn_counts = streams("turns");
    let (plan, notes) = imitation::plan(shape, config.corpus, context, (first, later), |entry| {
        turns_of(shape, &turn_counts, entry)
    });
    let special = tokenizer.num_special_tokens_to_add();
    let dataset = Synthetic {
        overhead: (first, later),
        turns: turn_counts,
        delays: streams("delays"),
        delay_cap_ms: config.inter_turn_delay_cap.map_or(f64::INFINITY, |cap| cap.as_secs_f64() * 1000.0),
        lengths: LengthDraws::new(&shape.lengths, shape.random_style, special, streams),
        rankings: shape.rankings.map(|shape| Rankings::new(shape, streams)),
        imitation: plan.map(|plan| Imitation::new(&plan, &corpus, streams)),
        prompts: streams("prompts"),
        prefix_choice: streams("prefix_choice"),
        prefix_texts: streams("prefixes"),
        prefixes: (0..prefixes).map(|_| OnceLock::new()).collect(),
        contexts: streams("user_context"),
        images: shape.media.images.clone().map(|images| Images::new(images, streams)).transpose()?,
        audio: shape.media.audio.clone().map(|audio| Audio::new(audio, streams)).transpose()?,
        video: shape.media.video.clone().map(|video| Video::new(video, streams)).transpose()?,
        system_message,
        total: OnceLock::new(),
        notes,
        before: OnceLock::new(),
        corpus,
        shape: shape.clone(),
        finish,
    };
    if context.endpoint.single_turn_only()
        && !dataset.one_turn()
        && let Some(entry) = (0..shape.entries).find(|entry| dataset.turns(*entry) > 1)
    {
        return unsuitable(format!(
            "generated session `{}` has {} turns that build on each other, and the {} endpoint takes one turn; use \
             --endpoint-type chat, or one turn per conversation",
            dataset.finish.names().generate(entry),
            dataset.turns(entry),
            context.endpoint.name()
        ));
    }
    Ok(Arc::new(dataset))
}

/// The tokens of random prompts in this style.
fn pool_of(style: RandomStyle) -> Pool {
    match style {
        RandomStyle::Vllm => Pool::Ordinary,
        RandomStyle::Sglang => Pool::Decodable,
    }
}

/// Tokens of a mark against prefix caches, which is part of the length asked for: the mean, since its digits differ from
/// run to run. A mark that is in warmup alone takes nothing away: profiling has none.
fn mark_tokens(config: &DatasetConfig, tokenizer: &Tokenizer) -> u64 {
    let target = config.cache_bust.filter(|target| !target.is_warmup_isolation());
    let count = |target: CacheBust| {
        let tokens = |number: u64| {
            let digits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
            tokenizer.count(&target.mark(&format!("rid:{digits:012x}")))
        };
        ((1..=MARKS).map(tokens).sum::<u64>() + MARKS / 2) / MARKS
    };
    target.map_or(0, count)
}

/// Tokens that a server adds to the first and to later prompts of a conversation.
fn overhead(tokenizer: &Tokenizer, context: &OpenContext<'_>) -> (u64, u64) {
    let special = tokenizer.num_special_tokens_to_add();
    let template = tokenizer
        .chat_template()
        .filter(|_| context.apply_chat_template && context.endpoint == EndpointKind::Chat);
    match template {
        None => (special, special),
        Some(template) => {
            let overhead = template.overhead();
            (special + overhead.first_turn(), overhead.later_turn())
        }
    }
}

fn one_turn(shape: &SyntheticDataset) -> bool {
    shape.turns.stddev <= 0.0 && shape.turns.mean < 1.5
}

/// The number of turns of an entry.
fn turns_of(shape: &SyntheticDataset, counts: &Streams, entry: u64) -> u32 {
    if one_turn(shape) {
        return 1;
    }
    u32::try_from(whole(&mut counts.at(entry), shape.turns, 1)).unwrap_or(u32::MAX)
}

impl Synthetic {
    fn one_turn(&self) -> bool {
        one_turn(&self.shape)
    }

    fn turns(&self, index: u64) -> u32 {
        turns_of(&self.shape, &self.turns, index)
    }

    /// Turns of all entries before this one.
    fn turns_before(&self, index: u64) -> u64 {
        if self.one_turn() {
            return index;
        }
        let before = self.before.get_or_init(|| {
            let mut sum = 0;
            let count = |stride: u64| {
                let counted = sum;
                let entries = stride * STRIDE..self.shape.entries.min((stride + 1) * STRIDE);
                sum += entries.map(|entry| u64::from(self.turns(entry))).sum::<u64>();
                counted
            };
            (0..=self.shape.entries / STRIDE).map(count).collect()
        });
        let rest = (index / STRIDE * STRIDE..index).map(|entry| u64::from(self.turns(entry)));
        before[(index / STRIDE) as usize] + rest.sum::<u64>()
    }

    /// The delays of an entry, turn by turn; `None` when there are none.
    fn delays(&self, index: u64) -> Option<impl FnMut() -> f64> {
        let ratio = self.shape.turn_delay_ratio;
        let wanted = self.shape.turn_delay.mean > 0.0 && ratio > 0.0;
        let normal = self.shape.turn_delay;
        let cap = self.delay_cap_ms;
        let mut stream = wanted.then(|| self.delays.at(index))?;
        Some(move || (whole(&mut stream, normal, 0) as f64 * ratio).min(cap))
    }

    fn prefix(&self, index: u64) -> Option<&Text> {
        if let Some(imitation) = &self.imitation {
            return imitation.prefix(index);
        }
        let (count, length) = self.shape.prefix_pool?;
        let choice = below(&mut self.prefix_choice.at(index), u64::from(count));
        let text = || self.corpus.exact_text(&mut self.prefix_texts.at(choice), u64::from(length));
        self.prefixes.get(choice as usize).map(|prefix| prefix.get_or_init(text))
    }

    /// Makes the media of an entry, turn by turn.
    fn media(&self, index: u64) -> impl FnMut(&mut Turn) -> Result<(), DatasetError> {
        let mut images = self.images.as_ref().map(|images| {
            let before = if images.go_round() { self.turns_before(index) } else { 0 };
            (images, images.draws(index, before))
        });
        let mut audio = self.audio.as_ref().map(|audio| (audio, audio.draws(index)));
        let mut video = self.video.as_ref().map(|video| (video, video.draws(index)));
        let stop = self.finish.stop();
        move |turn| {
            let Content::Parts { media, .. } = &mut turn.content else { return Ok(()) };
            if let Some((images, draws)) = &mut images {
                images.turn(draws, media, stop)?;
            }
            if let Some((audio, draws)) = &mut audio {
                turn.audio_seconds = audio.turn(draws, media, stop)?;
            }
            if let Some((video, draws)) = &mut video {
                video.turn(draws, media, stop)?;
            }
            Ok(())
        }
    }

    /// The texts of a turn, which has a number among those of all entries.
    fn turn(
        &self,
        lengths: &mut EntryLengths<'_>,
        prompts: &mut Stream,
        overhead: u64,
        prefix: Option<&Text>,
        number: u64,
    ) -> Result<Turn, DatasetError> {
        let floor = u64::from(prefix.is_none());
        let imitation = self.imitation.as_ref();
        let drawn = lengths.turn();
        let max_tokens = imitation.and_then(|imitation| imitation.output(number)).or(drawn);
        if self.shape.batch_size == 0 {
            return Ok(Turn { max_tokens, ..Turn::default() });
        }
        let mut contents = Vec::with_capacity(self.shape.batch_size as usize);
        let mut tokens = 0;
        for place in 0..self.shape.batch_size {
            self.finish.stop().go_on()?;
            let drawn = lengths.text(overhead, floor);
            let length = imitation.and_then(|imitation| imitation.length(number)).unwrap_or(drawn);
            let imitated = match imitation {
                Some(imitation) => imitation.text(number, place, self.finish.stop())?,
                None => None,
            };
            let text = imitated.unwrap_or_else(|| match prefix {
                None => self.corpus.exact_text(prompts, length),
                Some(prefix) => self.corpus.exact_text_after(prefix, prompts, length),
            });
            tokens += text.tokens;
            contents.push(text.text.into());
        }
        Ok(Turn {
            content: Content::Parts { texts: vec![TextGroup { name: None, contents }], media: Vec::new() },
            text_tokens: Some(tokens),
            max_tokens,
            ..Turn::default()
        })
    }
}

impl Dataset for Synthetic {
    fn len(&self) -> Len {
        Len::Exact(self.shape.entries)
    }

    fn outline(&self, index: u64) -> Outline {
        let turns = self.turns(index);
        if turns == 1 {
            return Outline::one(TurnOutline::default());
        }
        let mut delays = self.delays(index);
        let rest: Box<[_]> = (1..turns)
            .map(|_| TurnOutline { timestamp_ms: None, delay_ms: delays.as_mut().map(|draw| draw()) })
            .collect();
        Outline::new(TurnOutline::default(), rest)
    }

    fn build(&self, index: u64) -> Result<Conversation, DatasetError> {
        let count = self.turns(index);
        let mut delays = self.delays(index);
        let mut lengths = self.lengths.entry(index);
        let mut prompts = self.prompts.at(index);
        let mut turns = Vec::with_capacity(count as usize);
        let mut media = self.media(index);
        // Only what is imitated asks for its place among all.
        let before = if self.imitation.is_some() { self.turns_before(index) } else { 0 };
        for number in 0..count {
            let (overhead, prefix) =
                if number == 0 { (self.overhead.0, self.prefix(index)) } else { (self.overhead.1, None) };
            let mut turn = if let Some(rankings) = &self.rankings {
                rankings.turn(&self.corpus, index, &mut prompts, self.finish.stop())?
            } else {
                let number = before + u64::from(number);
                self.turn(&mut lengths, &mut prompts, overhead, prefix, number)?
            };
            if number > 0 {
                turn.delay_ms = delays.as_mut().map(|draw| draw());
            }
            media(&mut turn)?;
            turns.push(turn);
        }
        let user_context_message = self.shape.user_context_prompt_length.map(|length| {
            self.corpus.exact_text(&mut self.contexts.at(index), u64::from(length)).text.into()
        });
        let mut conversation = Conversation {
            id: self.finish.names().generate(index),
            turns,
            context_mode: ContextMode::DeltasWithoutResponses,
            system_message: self.system_message.clone(),
            user_context_message,
            source_session: None,
        };
        self.finish.apply(index, &mut conversation);
        Ok(conversation)
    }

    fn total_turns(&self) -> Option<u64> {
        let count = || {
            if self.one_turn() {
                return self.shape.entries;
            }
            (0..self.shape.entries).map(|entry| u64::from(self.turns(entry))).sum()
        };
        Some(*self.total.get_or_init(count))
    }

    fn notes(&self) -> Vec<Note> {
        let images = self.images.as_ref().and_then(Images::note);
        self.notes.iter().cloned().chain(images).collect()
    }
}
