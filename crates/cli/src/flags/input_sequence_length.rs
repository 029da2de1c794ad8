//! Flags of the group "Input Sequence Length (ISL)".

use super::{Flag, Group, Kind, TOKENS};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--isl",
        &["--prompt-input-tokens-mean", "--synthetic-input-tokens-mean", "--isl"],
        Group::InputSequenceLength,
        Kind::Number(TOKENS),
    )
    .value("TOKENS")
    .default("550")
    .help("Mean input length of a turn; 0 sends images, audio or video without text"),
    Flag::new(
        "--isl-stddev",
        &["--prompt-input-tokens-stddev", "--synthetic-input-tokens-stddev", "--isl-stddev"],
        Group::InputSequenceLength,
        Kind::Number(TOKENS),
    )
    .value("TOKENS")
    .default("0.0")
    .help("Standard deviation of the input length"),
    Flag::new(
        "--isl-block-size",
        &["--prompt-input-tokens-block-size", "--synthetic-input-tokens-block-size", "--isl-block-size"],
        Group::InputSequenceLength,
        Kind::Count { min: 1 },
    )
    .value("TOKENS")
    .shown_default("that of the format")
    .help("Tokens that one hash id of a trace stands for"),
    Flag::new(
        "--seq-dist",
        &["--seq-dist", "--sequence-distribution"],
        Group::InputSequenceLength,
        Kind::Text,
    )
    .value("PAIRS")
    .begins_like_number()
    .help("Pairs of input and output lengths, with shares in percent, in place of --isl and --osl: '256|10,128|5:40;512,256:60'"),
    Flag::new("--random-range-ratio", &["--random-range-ratio"], Group::InputSequenceLength, Kind::Text)
        .value("RATIO")
        .help("Lengths are uniform around --isl and --osl, as far as this ratio; {\"input\":R,\"output\":R} for two"),
    Flag::new("--random-corpus-style", &["--random-corpus-style"], Group::InputSequenceLength, Kind::Choice)
        .value("STYLE")
        .default("vllm")
        .choices(&["vllm", "sglang"])
        .help("The serving benchmark whose ranges and random prompts to imitate, byte for byte with a seed"),
];
