//! Flags of the group "Video Input".

use super::{ABOVE_0, Flag, Group, Kind};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--video-batch-size",
        &["--video-batch-size", "--batch-size-video"],
        Group::VideoInput,
        Kind::Count { min: 0 },
    )
    .value("N")
    .default("1")
    .help(
        "Videos of a turn, generated (with a width and a height; needs ffmpeg) or drawn from a random_pool",
    ),
    Flag::new("--video-duration", &["--video-duration"], Group::VideoInput, Kind::Number(ABOVE_0))
        .value("SECONDS")
        .default("5.0")
        .help("Length of a generated video"),
    Flag::new("--video-fps", &["--video-fps"], Group::VideoInput, Kind::Count { min: 1 })
        .value("N")
        .default("4")
        .help("Frames per second"),
    Flag::new("--video-width", &["--video-width"], Group::VideoInput, Kind::Count { min: 1 })
        .value("PIXELS")
        .help("Width; with a height, each turn has generated videos"),
    Flag::new("--video-height", &["--video-height"], Group::VideoInput, Kind::Count { min: 1 })
        .value("PIXELS")
        .help("Height; with a width, each turn has generated videos"),
    Flag::new("--video-synth-type", &["--video-synth-type"], Group::VideoInput, Kind::Choice)
        .value("KIND")
        .default("moving-shapes")
        .choices(&["moving-shapes", "grid-clock", "noise"])
        .help("What the video shows"),
    Flag::new("--video-format", &["--video-format"], Group::VideoInput, Kind::Choice)
        .value("FORMAT")
        .default("webm")
        .choices(&["mp4", "webm"])
        .help("Container"),
    Flag::new("--video-codec", &["--video-codec"], Group::VideoInput, Kind::Text)
        .value("NAME")
        .default("libvpx-vp9")
        .help("Codec of the picture, as the installed ffmpeg calls it"),
    Flag::new(
        "--video-audio-sample-rate",
        &["--video-audio-sample-rate"],
        Group::VideoInput,
        Kind::Count { min: 1 },
    )
    .value("HZ")
    .default("44100")
    .help("Sample rate of its sound, before encoding"),
    Flag::new(
        "--video-audio-num-channels",
        &["--video-audio-num-channels"],
        Group::VideoInput,
        Kind::Count { min: 0 },
    )
    .value("N")
    .default("0")
    .help("Channels of its sound: 0 is none, 1 or 2"),
    Flag::new("--video-audio-codec", &["--video-audio-codec"], Group::VideoInput, Kind::Choice)
        .value("NAME")
        .choices(&["aac", "libvorbis", "libopus"])
        .help("Codec of its sound; without, libvorbis in webm and libopus in mp4"),
    Flag::new("--video-audio-depth", &["--video-audio-depth"], Group::VideoInput, Kind::Choice)
        .value("BITS")
        .default("16")
        .choices(&["8", "16", "24", "32"])
        .help("Bit depth of its sound, before encoding"),
];
