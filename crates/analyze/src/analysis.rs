//! What a dataset holds, whatever its format.

use aiperf_config::FileFormat;
use aiperf_dataset::{Dataset, DatasetError, Note, TurnFacts};
use aiperf_tokenize::Tokenizer;

use crate::arrivals::Rates;
use crate::cache::{Cache, CacheBuilder, CumulativeBuilder, CumulativeCache};
use crate::histogram::{Bin, bins};
use crate::mooncake::{Mooncake, MooncakeBuilder};
use crate::stats::Stats;
use crate::text;
use crate::walk::{Stop, depth, in_file_order, in_time_order, senders, walk};

/// The figures and the histogram of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// Key in the JSON report.
    pub key: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Its figures.
    pub stats: Stats,
    /// Its histogram; empty where all numbers are equal.
    pub bins: Vec<Bin>,
}

impl Quantity {
    fn of(key: &'static str, title: &'static str, mut values: Vec<f64>) -> Option<Quantity> {
        let stats = Stats::of(&mut values)?;
        Some(Quantity { key, title, stats, bins: bins(&values) })
    }
}

/// What a dataset holds. What its format does not carry is absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The format.
    pub format: FileFormat,
    /// Requests.
    pub requests: u64,
    /// Conversations.
    pub conversations: u64,
    /// Conversations that others start, where there are some.
    pub subagents: Option<u64>,
    /// How many of them start each other at most, one below the other.
    pub depth: Option<u32>,
    /// Quantities that are known, in the order of the report.
    pub quantities: Vec<Quantity>,
    /// From the first recorded time to the last, ms.
    pub span_ms: Option<f64>,
    /// How fast requests come.
    pub rates: Option<Rates>,
    /// Hits of an infinite cache, where blocks have numbers; requests in the order of their times.
    pub cache: Option<Cache>,
    /// The same over whole contexts, where rows record only what they add to their session.
    pub cumulative: Option<CumulativeCache>,
    /// Tokens of a block.
    pub block_size: Option<u32>,
    /// Requests that were cancelled, where that is recorded.
    pub cancelled: Option<u64>,
    /// Requests whose recorded output is empty, where any output is recorded.
    pub without_output: Option<u64>,
    /// Rows that cannot be read and are left out, where a format leaves them out.
    pub skipped: Option<u64>,
    /// The figures that the reference gives of a Mooncake trace.
    pub mooncake: Option<Mooncake>,
}

#[derive(Default)]
struct Columns {
    input_tokens: Vec<f64>,
    input_characters: Vec<f64>,
    output_tokens: Vec<f64>,
    whole_contexts: Vec<f64>,
    delays: Vec<f64>,
    times: Vec<f64>,
    cancelled: Option<u64>,
    without_output: u64,
    block_size: Option<u32>,
}

/// Looks at every turn of a dataset. `block_size` is that of the format or the one asked for; with a tokenizer,
/// recorded texts are counted in tokens instead of characters.
pub fn analyze(
    dataset: &dyn Dataset,
    format: FileFormat,
    block_size: Option<u32>,
    tokenizer: Option<&Tokenizer>,
) -> Result<Analysis, DatasetError> {
    let mut stops = in_file_order(dataset);
    let conversations = dataset.wait_for(u64::MAX).known();
    let is_mooncake = format == FileFormat::MooncakeTrace;
    // Rows that only say what is new in their session: later ones wait for the answer before them.
    let incremental = is_mooncake
        && stops.iter().any(|stop| stop.turn > 0)
        && (0..conversations).any(|index| {
            let outline = dataset.outline(index);
            (1..outline.turns()).any(|turn| outline.turn(turn).is_some_and(|turn| turn.delay_ms.is_some()))
        });

    let mut columns = Columns { block_size, ..Columns::default() };
    let mut mooncake = is_mooncake.then(MooncakeBuilder::default);
    let mut cumulative = incremental.then(|| CumulativeBuilder::new(block_size.unwrap_or(1)));
    let mut cache = CacheBuilder::default();
    walk(dataset, &stops, |stop, outline, facts| {
        if let Some(mooncake) = &mut mooncake {
            mooncake.first(facts.input_tokens, facts.output_tokens, &facts.hash_ids);
        }
        if let (Some(cumulative), Some(input)) = (&mut cumulative, facts.input_tokens) {
            let output = facts.output_tokens.unwrap_or(0);
            let whole = cumulative.add(stop.conversation, stop.turn, &facts.hash_ids, input, output);
            columns.whole_contexts.push(whole as f64);
        }
        cache.add(stop.turn, facts.hash_scope, &facts.hash_ids, facts.block_size.or(block_size));
        if stop.turn > 0 {
            columns.delays.extend(outline.delay_ms);
        }
        columns.times.extend(outline.timestamp_ms);
        columns.take(&facts, tokenizer);
    })?;
    if let Some(mooncake) = &mut mooncake {
        let block_size = block_size.unwrap_or(1);
        walk(dataset, &stops, |_, _, facts| {
            mooncake.second(facts.input_tokens, &facts.hash_ids, block_size);
        })?;
    }
    if cache.is_used() && in_time_order(&mut stops) {
        cache = cache_of(dataset, &stops, block_size)?;
    }
    Ok(columns.finish(
        dataset,
        format,
        stops.len() as u64,
        conversations,
        Found {
            cache: cache.finish(),
            cumulative: cumulative.and_then(CumulativeBuilder::finish),
            mooncake: mooncake.map(MooncakeBuilder::finish),
        },
    ))
}

struct Found {
    cache: Option<Cache>,
    cumulative: Option<CumulativeCache>,
    mooncake: Option<Mooncake>,
}

fn cache_of(
    dataset: &dyn Dataset,
    stops: &[Stop],
    block_size: Option<u32>,
) -> Result<CacheBuilder, DatasetError> {
    let mut cache = CacheBuilder::default();
    walk(dataset, stops, |stop, _, facts| {
        cache.add(stop.turn, facts.hash_scope, &facts.hash_ids, facts.block_size.or(block_size));
    })?;
    Ok(cache)
}

impl Columns {
    fn take(&mut self, facts: &TurnFacts, tokenizer: Option<&Tokenizer>) {
        if facts.block_size.is_some() {
            self.block_size = facts.block_size;
        }
        match (facts.input_tokens, &facts.content) {
            (Some(tokens), _) => self.input_tokens.push(tokens as f64),
            (None, Some(content)) => {
                let mut length = 0u64;
                text::each(content, &mut |text| {
                    length += match tokenizer {
                        Some(tokenizer) => tokenizer.count(text),
                        None => text.chars().count() as u64,
                    };
                });
                if tokenizer.is_some() {
                    self.input_tokens.push(length as f64);
                } else {
                    self.input_characters.push(length as f64);
                }
            }
            (None, None) => {}
        }
        if let Some(output) = facts.output_tokens {
            self.output_tokens.push(output as f64);
            self.without_output += u64::from(output == 0);
        }
        if let Some(cancelled) = facts.cancelled {
            *self.cancelled.get_or_insert(0) += u64::from(cancelled);
        }
    }

    fn finish(
        mut self,
        dataset: &dyn Dataset,
        format: FileFormat,
        requests: u64,
        conversations: u64,
        found: Found,
    ) -> Analysis {
        self.times.sort_unstable_by(f64::total_cmp);
        let gaps = self.times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let turns =
            senders(dataset).into_iter().map(|index| f64::from(dataset.outline(index).turns())).collect();
        let skipped = dataset.notes().into_iter().find_map(|note| match note {
            Note::RowsOfTable { skipped, .. } => Some(skipped),
            _ => None,
        });
        let children = Some(dataset.children()).filter(|children| *children > 0);
        let has_output = !self.output_tokens.is_empty();
        let quantities = [
            Quantity::of("isl", "Input length, tokens", self.input_tokens),
            Quantity::of("input_characters", "Input length, characters", self.input_characters),
            Quantity::of("cumulative_isl", "Whole context, tokens", self.whole_contexts),
            Quantity::of("osl", "Output length, tokens", self.output_tokens),
            Quantity::of("turns_per_conversation", "Turns per conversation", turns),
            Quantity::of("inter_arrival_ms", "Inter-arrival time, ms", gaps),
            Quantity::of("delay_ms", "Delay after an answer, ms", self.delays),
        ];
        Analysis {
            format,
            requests,
            conversations,
            subagents: children,
            depth: children.map(|_| depth(dataset)),
            quantities: quantities.into_iter().flatten().collect(),
            span_ms: self.times.first().zip(self.times.last()).map(|(first, last)| last - first),
            rates: Rates::of(&self.times),
            block_size: found.cache.is_some().then_some(self.block_size).flatten(),
            cache: found.cache,
            cumulative: found.cumulative,
            cancelled: self.cancelled,
            without_output: has_output.then_some(self.without_output),
            skipped,
            mooncake: found.mooncake,
        }
    }
}
