//! Flags of the group "Audio Input".

use super::{Flag, Group, Kind, SOUND};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--audio-batch-size",
        &["--audio-batch-size", "--batch-size-audio"],
        Group::AudioInput,
        Kind::Count { min: 0 },
    )
    .value("N")
    .default("1")
    .help("Audio clips of a turn, generated (with a length) or drawn from a random_pool"),
    Flag::new("--audio-length-mean", &["--audio-length-mean"], Group::AudioInput, Kind::Number(SOUND))
        .value("SECONDS")
        .default("0.0")
        .help("Mean length of a clip; with it, each turn has clips of noise; 0 is off"),
    Flag::new("--audio-length-stddev", &["--audio-length-stddev"], Group::AudioInput, Kind::Number(SOUND))
        .value("SECONDS")
        .default("0.0")
        .help("Its standard deviation"),
    Flag::new("--audio-format", &["--audio-format"], Group::AudioInput, Kind::Choice)
        .value("FORMAT")
        .default("wav")
        .choices(&["wav", "mp3"])
        .help("Format of generated clips; mp3 needs the program lame or ffmpeg"),
    Flag::new("--audio-depths", &["--audio-depths"], Group::AudioInput, Kind::Texts)
        .value("BITS")
        .default("[16]")
        .help("Bit depths to draw from: 8, 16, 24, 32"),
    Flag::new("--audio-sample-rates", &["--audio-sample-rates"], Group::AudioInput, Kind::Texts)
        .value("KHZ")
        .default("[16.0]")
        .help("Sample rates to draw from; above 96 in Hz"),
    Flag::new("--audio-num-channels", &["--audio-num-channels"], Group::AudioInput, Kind::Count { min: 1 })
        .value("N")
        .default("1")
        .help("Mono or stereo"),
];
