//! Flags of the group "Image Input".

use super::{Flag, Group, Kind, PIXELS};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--image-width-mean", &["--image-width-mean"], Group::ImageInput, Kind::Number(PIXELS))
        .value("PIXELS")
        .default("0.0")
        .help("Mean width; with a height, each turn has images; 0 is off"),
    Flag::new("--image-width-stddev", &["--image-width-stddev"], Group::ImageInput, Kind::Number(PIXELS))
        .value("PIXELS")
        .default("0.0")
        .help("Its standard deviation"),
    Flag::new("--image-height-mean", &["--image-height-mean"], Group::ImageInput, Kind::Number(PIXELS))
        .value("PIXELS")
        .default("0.0")
        .help("Mean height; with a width, each turn has images; 0 is off"),
    Flag::new("--image-height-stddev", &["--image-height-stddev"], Group::ImageInput, Kind::Number(PIXELS))
        .value("PIXELS")
        .default("0.0")
        .help("Its standard deviation"),
    Flag::new(
        "--image-batch-size",
        &["--image-batch-size", "--batch-size-image"],
        Group::ImageInput,
        Kind::Count { min: 0 },
    )
    .value("N")
    .default("1")
    .help("Images of a turn, generated (with a width and a height) or drawn from a random_pool"),
    Flag::new("--image-format", &["--image-format"], Group::ImageInput, Kind::Choice)
        .value("FORMAT")
        .default("png")
        .choices(&["png", "jpeg", "random"])
        .help("Format of generated images; random takes either for each"),
    Flag::new("--image-source", &["--image-source"], Group::ImageInput, Kind::Path)
        .value("SOURCE")
        .default("noise")
        .choices(&["assets", "noise"])
        .help("What images show: noise, the pictures of the program, or those (PNG, JPEG) of a folder"),
    Flag::new("--image-source-sampling", &["--image-source-sampling"], Group::ImageInput, Kind::Choice)
        .value("WAY")
        .default("random-with-replacement")
        .choices(&["random-with-replacement", "shuffle-cycle", "sequential-cycle"])
        .help("Order in which pictures are taken; the cycles need pictures"),
];
