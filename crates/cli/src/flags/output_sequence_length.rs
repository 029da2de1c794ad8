//! Flags of the group "Output Sequence Length (OSL)".

use super::{Flag, Group, Kind, TOKENS};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--osl",
        &["--prompt-output-tokens-mean", "--output-tokens-mean", "--osl"],
        Group::OutputSequenceLength,
        Kind::Number(TOKENS),
    )
    .value("TOKENS")
    .help("Mean output limit sent with a turn; unset or 0 sends none"),
    Flag::new(
        "--osl-stddev",
        &["--prompt-output-tokens-stddev", "--output-tokens-stddev", "--osl-stddev"],
        Group::OutputSequenceLength,
        Kind::Number(TOKENS),
    )
    .value("TOKENS")
    .default("0")
    .help("Standard deviation of the output limit; needs --osl"),
];
