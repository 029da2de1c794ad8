//! The settled description of one run.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::{
    AgentReplay, CacheBust, FileFormat, Lengths, RandomStyle, Secret, SecretUrl, TraceReplay, Tuning,
};

/// Everything a run needs to know.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// 12 hex digits that name the run.
    pub benchmark_id: String,
    /// The seed in effect: the one given, or one drawn for this run.
    pub seed: u64,
    /// Whether the seed was given; only then are session ids counted instead of random.
    pub seed_given: bool,
    /// Model names; the first is the default.
    pub models: Vec<String>,
    /// Where and how requests go.
    pub endpoint: EndpointConfig,
    /// What is sent.
    pub dataset: DatasetConfig,
    /// What counts tokens.
    pub tokenizer: TokenizerConfig,
    /// The phases, in order: at most one warmup, then profiling.
    pub phases: Vec<PhaseConfig>,
    /// Run is cancelled when errors / records of the profiling phase exceeds this (T-63).
    pub failed_request_threshold: Option<f64>,
    /// Round trip to subtract in the network-adjusted copies, ms.
    pub network_latency_mean_ms: Option<f64>,
    /// What is written.
    pub output: OutputConfig,
    /// How the client itself runs.
    pub runtime: RuntimeConfig,
    /// What the environment sets.
    pub tuning: Tuning,
    /// A verdict `suspect` is exit code 3.
    pub strict_load: bool,
    /// The command line as recorded in results, secrets redacted (MX-105).
    pub cli_command: String,
    /// Where the data came from, when it was not this machine.
    pub remote: Option<RemoteDataset>,
    /// `input_config` of the JSON export: what was set, in the reference's layout (MX-104).
    pub input_config: Value,
}

impl RunConfig {
    /// The profiling phase.
    pub fn profiling(&self) -> &PhaseConfig {
        // Invariant: settling puts exactly one profiling phase last.
        &self.phases[self.phases.len() - 1]
    }

    /// Adds to `input_config` which version of the tokenizer a name stood for.
    pub fn note_tokenizer_revision(&mut self, revision: &str) {
        if let Some(Value::Object(tokenizer)) = self.input_config.get_mut("tokenizer") {
            tokenizer.insert("resolved_revision".into(), revision.into());
        }
    }

    /// Completes `input_config` with what only the loaded data tell: a fixed schedule without a request count plays
    /// every turn there is.
    pub fn note_scheduled_turns(&mut self, turns: u64) {
        if !matches!(self.profiling().mode, LoadMode::FixedSchedule(_))
            || self.profiling().stop.requests.is_some()
        {
            return;
        }
        self.note_in_phase("requests", turns);
    }

    /// Notes how much a public data set held, where that is known only now.
    pub fn note_public_dataset(&mut self, conversations: u64, requests: Option<u64>) {
        let Some(remote) = self.remote.as_mut().filter(|_| self.dataset.public.is_some()) else { return };
        let Value::Object(provenance) = &mut remote.provenance else { return };
        provenance.entry("conversations").or_insert(conversations.into());
        if let Some(requests) = requests {
            provenance.entry("requests").or_insert(requests.into());
        }
    }

    /// Completes a plan without any stop rule: it plays each of the `conversations` once.
    pub fn note_conversations(&mut self, conversations: u64) {
        let Some(phase) = self.phases.last_mut() else { return };
        if phase.stop != StopRule::default() || matches!(phase.mode, LoadMode::FixedSchedule(_)) {
            return;
        }
        phase.stop.sessions = Some(conversations);
        self.note_in_phase("sessions", conversations);
    }

    fn note_in_phase(&mut self, key: &str, count: u64) {
        let phase = self
            .input_config
            .get_mut("phases")
            .and_then(Value::as_array_mut)
            .and_then(|phases| phases.last_mut());
        if let Some(Value::Object(phase)) = phase {
            let at = phase.keys().position(|key| key == "type").map_or(phase.len(), |at| at + 1);
            phase.shift_insert(at, key.into(), count.into());
        }
    }
}

/// Data that were fetched for the run.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteDataset {
    /// What the log says about it, a line each.
    pub lines: Vec<String>,
    /// `metadata.dataset` of the JSON export: reference, version, files with their digests.
    pub provenance: Value,
}

/// An API dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// `POST /v1/chat/completions`
    Chat,
    /// `POST /v1/completions`
    Completions,
    /// `POST /v1/embeddings`
    Embeddings,
    /// `POST /v2/rerank`
    CohereRankings,
    /// `POST /rerank`
    HfTeiRankings,
    /// `POST /v1/ranking`
    NimRankings,
}

impl EndpointKind {
    /// Every type.
    pub const ALL: [EndpointKind; 6] = [
        EndpointKind::Chat,
        EndpointKind::Completions,
        EndpointKind::Embeddings,
        EndpointKind::CohereRankings,
        EndpointKind::HfTeiRankings,
        EndpointKind::NimRankings,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            EndpointKind::Chat => "chat",
            EndpointKind::Completions => "completions",
            EndpointKind::Embeddings => "embeddings",
            EndpointKind::CohereRankings => "cohere-rankings",
            EndpointKind::HfTeiRankings => "hf-tei-rankings",
            EndpointKind::NimRankings => "nim-rankings",
        }
    }

    /// The type with this name.
    pub fn named(name: &str) -> Option<EndpointKind> {
        EndpointKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Path below the base URL.
    pub fn path(self) -> &'static str {
        match self {
            EndpointKind::Chat => "/v1/chat/completions",
            EndpointKind::Completions => "/v1/completions",
            EndpointKind::Embeddings => "/v1/embeddings",
            EndpointKind::CohereRankings => "/v2/rerank",
            EndpointKind::HfTeiRankings => "/rerank",
            EndpointKind::NimRankings => "/v1/ranking",
        }
    }

    /// Whether answers can be streamed.
    pub fn can_stream(self) -> bool {
        self.produces_tokens()
    }

    /// Whether answers are text made of tokens.
    pub fn produces_tokens(self) -> bool {
        matches!(self, EndpointKind::Chat | EndpointKind::Completions)
    }

    /// Whether a request asks which of several passages fit a query best.
    pub fn ranks(self) -> bool {
        matches!(self, EndpointKind::CohereRankings | EndpointKind::HfTeiRankings | EndpointKind::NimRankings)
    }

    /// Whether the input is text that is counted in tokens.
    pub fn tokenizes_input(self) -> bool {
        true
    }

    /// Whether a request carries one turn only.
    pub fn single_turn_only(self) -> bool {
        self != EndpointKind::Chat
    }

    /// Title of the metrics table (MX-130).
    pub fn metrics_title(self) -> &'static str {
        match self {
            EndpointKind::Chat | EndpointKind::Completions => "LLM Metrics",
            EndpointKind::Embeddings => "Embeddings Metrics",
            EndpointKind::CohereRankings | EndpointKind::HfTeiRankings | EndpointKind::NimRankings => {
                "Rankings Metrics"
            }
        }
    }
}

/// Where requests go.
#[derive(Clone, Debug)]
pub enum Target {
    /// A server, with the base URL as given.
    Server(SecretUrl),
    /// `mock://…`: a server started inside the process; the text as given.
    Mock(String),
}

/// A header the user asked for.
#[derive(Clone, Debug)]
pub struct Header {
    /// Name, as typed.
    pub name: String,
    /// Value; printed only when the name is not that of a credential.
    pub value: Secret,
}

/// Which addresses a name may resolve to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4 only.
    #[default]
    V4,
    /// IPv6 only.
    V6,
    /// Both, IPv6 as the system orders them.
    Auto,
}

/// When connections are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionReuse {
    /// Free connections are reused, oldest first.
    #[default]
    Pooled,
}

/// Where and how requests go.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// API dialect.
    pub kind: EndpointKind,
    /// The server.
    pub target: Target,
    /// Path that replaces the dialect's (`--endpoint`).
    pub custom_path: Option<String>,
    /// Ask for streamed answers.
    pub streaming: bool,
    /// Bearer token.
    pub api_key: Option<Secret>,
    /// Extra headers, in order.
    pub headers: Vec<Header>,
    /// Extra top-level body keys, in order.
    pub extra_inputs: Map<String, Value>,
    /// `max_tokens` instead of `max_completion_tokens` on chat.
    pub use_legacy_max_tokens: bool,
    /// Token counts from the server's usage instead of the client's tokenizer.
    pub use_server_token_count: bool,
    /// Ask for usage on every chunk.
    pub per_chunk_usage: bool,
    /// Limit on one request; `None` is none.
    pub request_timeout: Option<Duration>,
    /// Connection policy.
    pub connection_reuse: ConnectionReuse,
    /// Source addresses, used round robin.
    pub bind_addresses: Vec<IpAddr>,
}

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
    /// Texts in the one turn.
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

/// Generated media of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyntheticMedia {
    /// Images.
    pub images: Option<SyntheticImages>,
    /// Audio clips.
    pub audio: Option<SyntheticAudio>,
    /// Videos.
    pub video: Option<SyntheticVideo>,
}

/// Generated images.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticImages {
    /// Images of a turn, at least 1.
    pub count: u32,
    /// Width, pixels.
    pub width: Normal,
    /// Height, pixels.
    pub height: Normal,
    /// How they are encoded.
    pub format: ImageFormat,
    /// What they show.
    pub source: ImageSource,
    /// Which picture is next, where they show pictures.
    pub sampling: ImageSampling,
}

/// What generated images show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// Noise, new for each.
    Noise,
    /// The pictures that come with the program.
    Assets,
    /// The pictures of a folder.
    Folder(PathBuf),
}

/// The order in which pictures are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSampling {
    /// Each as likely as the others, every time.
    Random,
    /// All of them in a random order, then all in another.
    Shuffle,
    /// In the order of their names, again and again.
    Sequential,
}

/// How generated images are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// PNG, 8 bits of red, green and blue.
    Png,
    /// JPEG of quality 85 without chroma subsampling.
    Jpeg,
    /// Either, as likely as the other, for each image.
    Random,
}

/// Generated audio clips: noise.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticAudio {
    /// Clips of a turn, at least 1.
    pub count: u32,
    /// Length, seconds; never below 0.01.
    pub length: Normal,
    /// Sample rates to draw from, Hz; never empty.
    pub sample_rates: Vec<u32>,
    /// Bits of a sample to draw from: 8, 16, 24 or 32; never empty.
    pub depths: Vec<u8>,
    /// 1 or 2.
    pub channels: u8,
    /// How they are encoded.
    pub format: AudioFormat,
}

/// How generated audio clips are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioFormat {
    /// PCM samples in a WAV file.
    Wav,
    /// MP3, by an installed encoder.
    Mp3,
}

/// Generated videos, encoded by an installed ffmpeg.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticVideo {
    /// Videos of a turn, at least 1.
    pub count: u32,
    /// Width, pixels, at least 1.
    pub width: u16,
    /// Height, pixels, at least 1.
    pub height: u16,
    /// Length, seconds; above 0.
    pub seconds: f64,
    /// Frames a second, at least 1.
    pub fps: u32,
    /// What they show.
    pub kind: VideoKind,
    /// The file they are in.
    pub container: VideoContainer,
    /// Their codec, as ffmpeg calls it.
    pub codec: String,
    /// Their sound.
    pub sound: Option<VideoSound>,
}

impl SyntheticVideo {
    /// Frames of a video, at least 1.
    pub fn frames(&self) -> u64 {
        ((self.seconds * f64::from(self.fps)) as u64).max(1)
    }
}

/// What generated videos show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoKind {
    /// Discs and a square that move over a black ground.
    MovingShapes,
    /// A dial on a grid, and the number of the frame.
    GridClock,
    /// Noise, new for each frame.
    Noise,
}

/// The file that a generated video is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoContainer {
    /// `WebM`.
    Webm,
    /// MP4.
    Mp4,
}

impl VideoContainer {
    /// As media types and ffmpeg call it.
    pub fn name(self) -> &'static str {
        match self {
            VideoContainer::Webm => "webm",
            VideoContainer::Mp4 => "mp4",
        }
    }
}

/// The sound of generated videos: noise.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoSound {
    /// 1 or 2.
    pub channels: u8,
    /// Samples a second of each channel.
    pub sample_rate: u32,
    /// Bits of a sample before encoding: 8, 16, 24 or 32.
    pub depth: u8,
    /// Its codec, as ffmpeg calls it.
    pub codec: String,
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
    /// Draws of a random pool; conversations to load otherwise.
    pub entries: Option<u64>,
    /// Tokens per hash block.
    pub block_size: Option<u32>,
    /// Drop recorded times and delays.
    pub ignore_trace_delays: bool,
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

impl FileDataset {
    /// A file or folder of a known format, with every option at its default.
    pub fn new(path: impl Into<PathBuf>, format: FileFormat) -> FileDataset {
        FileDataset {
            path: path.into(),
            format,
            detected: false,
            entries: None,
            block_size: None,
            ignore_trace_delays: false,
            uuid_and_strip: false,
            window: (None, None),
            pool_batch: [1; 4],
            replay: TraceReplay::default(),
            synthesis: Synthesis::default(),
            agents: AgentReplay::default(),
        }
    }
}

/// What counts tokens.
#[derive(Clone, Debug)]
pub struct TokenizerConfig {
    /// Which tokenizer.
    pub source: TokenizerSource,
    /// Branch, tag or commit on the hub.
    pub revision: String,
    /// Count inputs through the chat template.
    pub apply_chat_template: bool,
}

/// Which tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenizerSource {
    /// The embedded `o200k_base`.
    Builtin,
    /// A hub name, a folder, or a `tokenizer.json`.
    Named(String),
}

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// Evenly spaced.
    Constant,
    /// Exponential gaps.
    Poisson,
    /// Gamma gaps of this shape.
    Gamma(f64),
}

/// When a fixed schedule plays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FixedSchedule {
    /// Time of the schedule that is T0, ms; `None` is the first timestamp.
    pub zero_ms: Option<f64>,
}

/// Which programme a phase runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadMode {
    /// As fast as the slots allow.
    Burst,
    /// Arrivals at a rate, per second.
    Rate {
        /// Requests per second.
        rate: f64,
        /// Spacing.
        arrival: Arrival,
    },
    /// Recorded times.
    FixedSchedule(FixedSchedule),
}

/// What ends issuing; all that are given apply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StopRule {
    /// Requests issued.
    pub requests: Option<u64>,
    /// Sessions started.
    pub sessions: Option<u64>,
    /// Time since T0.
    pub duration: Option<Duration>,
}

/// Linear ramps at the start of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RampTimes {
    /// Of the concurrency cap.
    pub concurrency: Option<Duration>,
    /// Of the rate.
    pub rate: Option<Duration>,
}

/// Requests that the client breaks off on purpose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cancellation {
    /// Share of requests, 0 to 1.
    pub share: f64,
    /// From the last byte sent to the close.
    pub delay: Duration,
}

/// One load programme.
#[derive(Clone, Debug)]
pub struct PhaseConfig {
    /// Warmup or profiling.
    pub kind: aiperf_types::PhaseKind,
    /// The programme.
    pub mode: LoadMode,
    /// Cap on live sessions; `None` is none.
    pub concurrency: Option<u32>,
    /// Ramps.
    pub ramps: RampTimes,
    /// What ends issuing.
    pub stop: StopRule,
    /// How long requests in flight may finish after the duration; `None` is for ever.
    pub grace: Option<Duration>,
    /// Requests broken off on purpose.
    pub cancellation: Option<Cancellation>,
    /// Longest time in which nothing is in flight and a recorded instant or a delay is waited for.
    pub idle_gap_cap: Option<Duration>,
}

/// How much is written per request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExportLevel {
    /// Aggregates only.
    Summary,
    /// One line per request.
    #[default]
    Records,
    /// And everything that came back.
    Raw,
}

/// What is written, and where.
#[derive(Clone, Debug)]
pub struct OutputConfig {
    /// Folder of the results.
    pub dir: PathBuf,
    /// Prefix of the file names, when one was chosen.
    pub prefix: Option<String>,
    /// Detail.
    pub level: ExportLevel,
    /// `trace_data` in the records.
    pub http_trace: bool,
    /// A console table of the trace timings.
    pub show_trace_timing: bool,
    /// Internal metrics are shown and exported.
    pub show_internal_metrics: bool,
    /// Experimental metrics are computed, shown and exported.
    pub show_experimental_metrics: bool,
}

/// What the user sees while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ui {
    /// Nothing, and no live lines: chosen explicitly.
    None,
    /// Log lines and the live block: not a terminal.
    Lines,
    /// One bar at a time.
    Simple,
}

/// How the client itself runs.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Network workers; `None` is by cores.
    pub workers: Option<usize>,
    /// Record processors; `None` is by cores.
    pub record_processors: Option<usize>,
    /// Progress.
    pub ui: Ui,
    /// Seconds between live blocks; `None` is the default of the view, 0 is off.
    pub stats_interval: Option<Duration>,
    /// Lowest level that is logged: 0 trace … 7 critical (MX-143).
    pub log_level: u8,
}
