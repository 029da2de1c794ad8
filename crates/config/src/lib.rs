//! What is a run? One settled description, with every default filled in and every contradiction refused. The
//! rooms downstream read it and never reject any of it.

mod cache_bust;
mod credential;
mod format;
mod lengths;
mod replay;
mod run;
mod secret;
mod signed;
mod tuning;

pub use cache_bust::CacheBust;
pub use credential::{basic_credential, secrets_of_path, secrets_of_url};
pub use format::FileFormat;
#[cfg(any(test, feature = "fuzzing"))]
pub use lengths::fuzz_length_pairs;
pub use lengths::{LengthPair, LengthPairs, LengthPairsError, LengthRange, Lengths, RandomStyle};
pub use replay::{AgentReplay, SessionColumn, TraceReplay};
pub use run::{
    Arrival, AudioFormat, Cancellation, ConnectionReuse, Corpus, DatasetConfig, DatasetSource,
    EndpointConfig, EndpointKind, ExportLevel, FileDataset, FixedSchedule, Header, ImageFormat,
    ImageSampling, ImageSource, IpVersion, LoadMode, Normal, OutputConfig, PhaseConfig, PublicDataset,
    RampTimes, RemoteDataset, RunConfig, RuntimeConfig, Sampling, StopRule, Synthesis, SyntheticAudio,
    SyntheticDataset, SyntheticImages, SyntheticMedia, SyntheticRankings, SyntheticVideo, Target,
    TokenizerConfig, TokenizerSource, Ui, VideoContainer, VideoKind, VideoSound,
};
pub use secret::{REDACTED, Secret, SecretUrl, is_secret_header, is_secret_pair, redact_path, redact_text};
pub use signed::{Signature, identity, moment, signature};
pub use tuning::Tuning;
