//! What is sent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::media::SyntheticMedia;
use crate::{AgentReplay, CacheBust, FileFormat, InputColumns, Lengths, RandomStyle, TraceReplay};

/// A normal distribution of whole numbers, drawn by SY-11.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normal {
    /// Mean.
    pub mean: f64,
    /// Standard deviation; 0 is a constant.
    pub stddev: f64,
}

/// The text that prompts are cut from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Corpus {
    /// Shakespeare.
    #[default]
    Sonnet,
    /// Source code, logs, configuration.
    Coding,
    /// Random token ids.
    Random,
}

/// Order in which conversations are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// In order, wrapping.
    #[default]
    Sequential,
    /// Uniform, with replacement.
    Random,
    /// Reshuffled after each full pass.
    Shuffle,
}

/// What is sent.
#[derive(Clone, Debug)]
pub struct DatasetConfig {
    /// Where it comes from.
    pub source: DatasetSource,
    /// Order of drawing.
    pub sampling: Sampling,
    /// Cap on delays between turns.
    pub inter_turn_delay_cap: Option<Duration>,
    /// Output limit for turns without one.
    pub osl: Option<Normal>,
    /// Verbatim system prompt.
    pub system_prompt: Option<String>,
    /// Corpus by choice; else that of the source.
    pub corpus: Option<Corpus>,
    /// Marks against prefix caches.
    pub cache_bust: Option<CacheBust>,
    /// The public data set that it is of.
    pub public: Option<PublicDataset>,
}

impl DatasetConfig {
    /// What a source holds, in its order, with every option at its default.
    pub fn new(source: DatasetSource) -> DatasetConfig {
        DatasetConfig {
            source,
            sampling: Sampling::Sequential,
            inter_turn_delay_cap: None,
            osl: None,
            system_prompt: None,
            corpus: None,
            cache_bust: None,
            public: None,
        }
    }
}

/// Where conversations come from.
#[derive(Clone, Debug)]
pub enum DatasetSource {
    /// Generated text.
    Synthetic(SyntheticDataset),
    /// A file or folder.
    File(FileDataset),
    /// What was made of the rows of a public data set, at this path; empty until it was brought.
    Stored(PathBuf),
}

/// A public data set, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicDataset {
    /// Its name in the table of sets.
    pub name: &'static str,
    /// The repository on the Hub, where it is no matter of the set.
    pub repo: Option<String>,
    /// The subset, instead of the set's own.
    pub subset: Option<String>,
    /// Which rows are kept: keys and values.
    pub filters: Vec<(String, String)>,
    /// Entries that were asked for by that flag.
    pub entries: Option<u64>,
    /// Rows that are read until so many became something; `None` for all.
    pub bound: Option<u64>,
    /// Tokens that the target takes: longer requests are warned of.
    pub context_limit: Option<u64>,
    /// Recorded tokens of each request that was made of its rows, input and output limit together, where it records them.
    pub request_tokens: Arc<[u64]>,
    /// The version that was brought, as it is written in messages; empty until then.
    pub origin: String,
}

/// Generated text.
#[derive(Clone, Debug)]
pub struct SyntheticDataset {
    /// Number of conversations.
    pub entries: u64,
    /// Tokens of a turn and of its answer.
    pub lengths: Lengths,
    /// Whose random prompts and ranges of lengths are imitated.
    pub random_style: RandomStyle,
    /// Turns of a conversation.
    pub turns: Normal,
    /// Delay before a turn after the first, ms.
    pub turn_delay: Normal,
    /// Factor on the delays.
    pub turn_delay_ratio: f64,
    /// Texts in the one turn; 0 where turns have media alone.
    pub batch_size: u32,
    /// Prefix pool: number of prefixes, tokens of each.
    pub prefix_pool: Option<(u32, u32)>,
    /// Tokens of the system message shared by all conversations.
    pub shared_system_prompt_length: Option<u32>,
    /// Tokens of a user message put before each conversation.
    pub user_context_prompt_length: Option<u32>,
    /// Images, audio and video beside the text of each turn.
    pub media: SyntheticMedia,
    /// What there is to rank, in place of those texts; only with an endpoint that ranks.
    pub rankings: Option<SyntheticRankings>,
}

impl SyntheticDataset {
    /// Conversations of one turn of this length, with every option at its default.
    pub fn new(entries: u64, isl: Normal) -> SyntheticDataset {
        SyntheticDataset {
            entries,
            lengths: Lengths::Normal(isl),
            random_style: RandomStyle::default(),
            turns: Normal { mean: 1.0, stddev: 0.0 },
            turn_delay: Normal { mean: 0.0, stddev: 0.0 },
            turn_delay_ratio: 1.0,
            batch_size: 1,
            prefix_pool: None,
            shared_system_prompt_length: None,
            user_context_prompt_length: None,
            media: SyntheticMedia::default(),
            rankings: None,
        }
    }
}

/// A query and the passages that are to be ranked by it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyntheticRankings {
    /// Number of passages, at least 1.
    pub passages: Normal,
    /// Tokens of a passage.
    pub passage_tokens: Normal,
    /// Tokens of the query.
    pub query_tokens: Normal,
}

/// A file or folder to read.
#[derive(Clone, Debug)]
pub struct FileDataset {
    /// The path, as given.
    pub path: PathBuf,
    /// Its format, declared or detected.
    pub format: FileFormat,
    /// Whether the format was detected.
    pub detected: bool,
    /// Where fields of the format are, if not under their own names.
    pub columns: InputColumns,
    /// Draws of a random pool; conversations to load otherwise.
    pub entries: Option<u64>,
    /// Tokens per hash block.
    pub block_size: Option<u32>,
    /// Drop recorded times and delays.
    pub ignore_trace_delays: bool,
    /// It was said that recorded times make no schedule.
    pub no_schedule: bool,
    /// Send an image with an id once per session, later its id alone.
    pub uuid_and_strip: bool,
    /// Keep rows with start ≤ timestamp ≤ end, ms; only with a fixed schedule.
    pub window: (Option<f64>, Option<f64>),
    /// Items per modality of a random pool: texts, images, audios, videos.
    pub pool_batch: [u32; 4],
    /// How a trace of completions is played.
    pub replay: TraceReplay,
    /// How a trace is changed before it is played.
    pub synthesis: Synthesis,
    /// How a trace of agents is played.
    pub agents: AgentReplay,
}

impl FileDataset {
    /// A file or folder of a known format, with every option at its default.
    pub fn new(path: impl Into<PathBuf>, format: FileFormat) -> FileDataset {
        FileDataset {
            path: path.into(),
            format,
            detected: false,
            columns: InputColumns::default(),
            entries: None,
            block_size: None,
            ignore_trace_delays: false,
            no_schedule: false,
            uuid_and_strip: false,
            window: (None, None),
            pool_batch: [1; 4],
            replay: TraceReplay::default(),
            synthesis: Synthesis::default(),
            agents: AgentReplay::default(),
        }
    }
}

/// How a trace is changed before it is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthesis {
    /// Times and delays are divided by this; above 0.
    pub speedup: f64,
    /// Factor on the blocks of prefixes that several requests share; above 0.
    pub prefix_len: f64,
    /// Number of variants over which equal prefixes are spread; at least 1.
    pub prefix_root: u64,
    /// Factor on the tokens after the shared prefix; above 0.
    pub prompt_len: f64,
    /// Factor on recorded output lengths; 0 or more.
    pub output_len: f64,
    /// Longer inputs are left out, tokens.
    pub max_isl: Option<u64>,
    /// Cap on recorded output lengths, tokens.
    pub max_osl: Option<u64>,
}

impl Default for Synthesis {
    fn default() -> Synthesis {
        Synthesis {
            speedup: 1.0,
            prefix_len: 1.0,
            prefix_root: 1,
            prompt_len: 1.0,
            output_len: 1.0,
            max_isl: None,
            max_osl: None,
        }
    }
}

impl Synthesis {
    /// Whether the blocks and lengths of inputs change.
    #[expect(clippy::float_cmp, reason = "1 is 1 as it was given")]
    pub fn reshapes(&self) -> bool {
        self.prefix_len != 1.0 || self.prompt_len != 1.0 || self.prefix_root != 1
    }

    /// A recorded time on the clock of the changed trace, ms.
    pub fn scaled(&self, recorded_ms: f64) -> f64 {
        if self.transforms() { (recorded_ms / self.speedup).floor() } else { recorded_ms }
    }

    /// Whether any multiplier changes something.
    #[expect(clippy::float_cmp, reason = "1 is 1 as it was given")]
    pub fn transforms(&self) -> bool {
        self.reshapes() || self.speedup != 1.0 || self.output_len != 1.0
    }
}
