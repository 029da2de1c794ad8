//! Flags of the group "Audio Input".

use super::{AT_LEAST_0, Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--audio-batch-size",
        &["--audio-batch-size", "--batch-size-audio"],
        Group::AudioInput,
        Kind::Count { min: 0 },
    )
    .value("N")
    .default("1")
    .help("With random_pool: audio clips drawn per request. Generated audio is not supported yet"),
    Flag::new("--audio-length-mean", &["--audio-length-mean"], Group::AudioInput, Kind::Number(AT_LEAST_0))
        .value("SECONDS")
        .default("0.0")
        .not_yet(Later::MediaInput)
        .help("Mean length of a clip"),
    Flag::new(
        "--audio-length-stddev",
        &["--audio-length-stddev"],
        Group::AudioInput,
        Kind::Number(AT_LEAST_0),
    )
    .value("SECONDS")
    .default("0.0")
    .not_yet(Later::MediaInput)
    .help("Its standard deviation"),
    Flag::new("--audio-format", &["--audio-format"], Group::AudioInput, Kind::Choice)
        .value("FORMAT")
        .default("wav")
        .choices(&["wav", "mp3"])
        .not_yet(Later::MediaInput)
        .help("Format of clips"),
    Flag::new("--audio-depths", &["--audio-depths"], Group::AudioInput, Kind::Texts)
        .value("BITS")
        .default("[16]")
        .not_yet(Later::MediaInput)
        .help("Bit depths to draw from"),
    Flag::new("--audio-sample-rates", &["--audio-sample-rates"], Group::AudioInput, Kind::Texts)
        .value("KHZ")
        .default("[16.0]")
        .not_yet(Later::MediaInput)
        .help("Sample rates to draw from"),
    Flag::new("--audio-num-channels", &["--audio-num-channels"], Group::AudioInput, Kind::Count { min: 1 })
        .value("N")
        .default("1")
        .not_yet(Later::MediaInput)
        .help("Mono or stereo"),
];
