//! What is a run? One settled description, with every default filled in and every contradiction refused. The
//! rooms downstream read it and never reject any of it.

mod cache_bust;
mod columns;
mod credential;
mod dataset;
mod endpoint;
mod extras;
mod format;
mod known_key;
mod lengths;
mod media;
mod mistyped;
mod parameter;
mod phase;
mod redact;
mod replay;
mod run;
mod secret;
mod signed;
mod tuning;

pub use cache_bust::CacheBust;
pub use columns::InputColumns;
pub use credential::{basic_credential, secrets_of_path, secrets_of_url};
pub use dataset::{
    Corpus, DatasetConfig, DatasetSource, FileDataset, Normal, PublicDataset, Sampling, Synthesis,
    SyntheticDataset, SyntheticRankings,
};
pub use endpoint::{ConnectionReuse, EndpointConfig, EndpointKind, Header, IpVersion, Target};
pub use extras::{names_a_secret, secrets_of_extra, secrets_of_extras, shown_extra, shown_extras};
pub use format::FileFormat;
pub use known_key::{holds_known_key, is_known_key};
#[cfg(any(test, feature = "fuzzing"))]
pub use lengths::fuzz_length_pairs;
pub use lengths::{LengthPair, LengthPairs, LengthPairsError, LengthRange, Lengths, RandomStyle};
pub use media::{
    AudioFormat, ImageFormat, ImageSampling, ImageSource, SyntheticAudio, SyntheticImages, SyntheticMedia,
    SyntheticVideo, VideoContainer, VideoKind, VideoSound,
};
pub use mistyped::meant_reference;
pub use phase::{Arrival, Cancellation, FixedSchedule, LoadMode, PhaseConfig, RampTimes, StopRule};
pub use redact::{
    begins_like_reference, has_torn_user_info, is_url_with_secret, redact_keys, redact_known, redact_path,
    redact_reference, redact_text,
};
pub use replay::{AgentReplay, SessionColumn, TraceReplay};
pub use run::{
    ExportLevel, OutputConfig, RemoteDataset, RunConfig, RuntimeConfig, TokenizerConfig, TokenizerSource, Ui,
};
pub use secret::{REDACTED, Secret, SecretUrl, is_random_word, is_secret_header, is_secret_pair};
pub use signed::{Signature, identity, moment, signature, was_printed};
pub use tuning::Tuning;
