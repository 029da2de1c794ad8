//! Flags of the group "Video Input".

use super::{ABOVE_0, Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--video-batch-size",
        &["--video-batch-size", "--batch-size-video"],
        Group::VideoInput,
        Kind::Count { min: 0 },
    )
    .value("N")
    .default("1")
    .help("With random_pool: videos drawn per request. Generated videos are not supported yet"),
    Flag::new("--video-duration", &["--video-duration"], Group::VideoInput, Kind::Number(ABOVE_0))
        .value("SECONDS")
        .default("5.0")
        .not_yet(Later::MediaInput)
        .help("Length of a video"),
    Flag::new("--video-fps", &["--video-fps"], Group::VideoInput, Kind::Count { min: 1 })
        .value("N")
        .default("4")
        .not_yet(Later::MediaInput)
        .help("Frames per second"),
    Flag::new("--video-width", &["--video-width"], Group::VideoInput, Kind::Count { min: 1 })
        .value("PIXELS")
        .not_yet(Later::MediaInput)
        .help("Width"),
    Flag::new("--video-height", &["--video-height"], Group::VideoInput, Kind::Count { min: 1 })
        .value("PIXELS")
        .not_yet(Later::MediaInput)
        .help("Height"),
    Flag::new("--video-synth-type", &["--video-synth-type"], Group::VideoInput, Kind::Choice)
        .value("KIND")
        .default("moving-shapes")
        .choices(&["moving-shapes", "grid-clock", "noise"])
        .not_yet(Later::MediaInput)
        .help("What the video shows"),
    Flag::new("--video-format", &["--video-format"], Group::VideoInput, Kind::Choice)
        .value("FORMAT")
        .default("webm")
        .choices(&["mp4", "webm"])
        .not_yet(Later::MediaInput)
        .help("Container"),
    Flag::new("--video-codec", &["--video-codec"], Group::VideoInput, Kind::Text)
        .value("NAME")
        .default("libvpx-vp9")
        .not_yet(Later::MediaInput)
        .help("Codec"),
    Flag::new(
        "--video-audio-sample-rate",
        &["--video-audio-sample-rate"],
        Group::VideoInput,
        Kind::Count { min: 1 },
    )
    .value("HZ")
    .default("44100")
    .not_yet(Later::MediaInput)
    .help("Sample rate of its sound"),
    Flag::new(
        "--video-audio-num-channels",
        &["--video-audio-num-channels"],
        Group::VideoInput,
        Kind::Count { min: 0 },
    )
    .value("N")
    .default("0")
    .not_yet(Later::MediaInput)
    .help("Channels of its sound"),
    Flag::new("--video-audio-codec", &["--video-audio-codec"], Group::VideoInput, Kind::Choice)
        .value("NAME")
        .choices(&["aac", "libvorbis", "libopus"])
        .not_yet(Later::MediaInput)
        .help("Codec of its sound"),
    Flag::new("--video-audio-depth", &["--video-audio-depth"], Group::VideoInput, Kind::Choice)
        .value("BITS")
        .default("16")
        .choices(&["8", "16", "24", "32"])
        .not_yet(Later::MediaInput)
        .help("Bit depth of its sound"),
];
