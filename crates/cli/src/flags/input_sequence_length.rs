//! Flags of the group "Input Sequence Length (ISL)".

use super::{AT_LEAST_0, Flag, Group, Kind, Later, TOKENS};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--isl",
        &["--prompt-input-tokens-mean", "--synthetic-input-tokens-mean", "--isl"],
        Group::InputSequenceLength,
        Kind::Number(TOKENS),
    )
    .value("TOKENS")
    .default("550")
    .help("Mean input length of a turn"),
    Flag::new(
        "--isl-stddev",
        &["--prompt-input-tokens-stddev", "--synthetic-input-tokens-stddev", "--isl-stddev"],
        Group::InputSequenceLength,
        Kind::Number(AT_LEAST_0),
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
    .not_yet(Later::LengthPairs)
    .help("Pairs of input and output lengths with their shares"),
    Flag::new("--random-range-ratio", &["--random-range-ratio"], Group::InputSequenceLength, Kind::Text)
        .value("RATIO")
        .not_yet(Later::LengthPairs)
        .help("Uniform range around the lengths"),
    Flag::new("--random-corpus-style", &["--random-corpus-style"], Group::InputSequenceLength, Kind::Choice)
        .value("STYLE")
        .default("vllm")
        .choices(&["vllm", "sglang"])
        .not_yet(Later::LengthPairs)
        .help("Whose random prompts to imitate"),
];
