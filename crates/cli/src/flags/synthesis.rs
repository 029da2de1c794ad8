//! Flags of the group "Synthesis".

use super::{AT_LEAST_0, Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--synthesis-speedup-ratio",
        &["--synthesis-speedup-ratio"],
        Group::Synthesis,
        Kind::Number(AT_LEAST_0),
    )
    .value("FACTOR")
    .default("1.0")
    .not_yet(Later::Synthesis)
    .help("Play a trace faster"),
    Flag::new(
        "--synthesis-prefix-len-multiplier",
        &["--synthesis-prefix-len-multiplier"],
        Group::Synthesis,
        Kind::Number(AT_LEAST_0),
    )
    .value("FACTOR")
    .default("1.0")
    .not_yet(Later::Synthesis)
    .help("Stretch shared prefixes"),
    Flag::new(
        "--synthesis-prefix-root-multiplier",
        &["--synthesis-prefix-root-multiplier"],
        Group::Synthesis,
        Kind::Number(AT_LEAST_0),
    )
    .value("FACTOR")
    .default("1")
    .not_yet(Later::Synthesis)
    .help("Spread over more prefix trees"),
    Flag::new(
        "--synthesis-prompt-len-multiplier",
        &["--synthesis-prompt-len-multiplier"],
        Group::Synthesis,
        Kind::Number(AT_LEAST_0),
    )
    .value("FACTOR")
    .default("1.0")
    .not_yet(Later::Synthesis)
    .help("Stretch the rest of prompts"),
    Flag::new(
        "--synthesis-output-len-multiplier",
        &["--synthesis-output-len-multiplier"],
        Group::Synthesis,
        Kind::Number(AT_LEAST_0),
    )
    .value("FACTOR")
    .default("1.0")
    .not_yet(Later::Synthesis)
    .help("Stretch output lengths"),
    Flag::new("--synthesis-max-isl", &["--synthesis-max-isl"], Group::Synthesis, Kind::Number(AT_LEAST_0))
        .value("TOKENS")
        .not_yet(Later::Synthesis)
        .help("Drop longer inputs"),
    Flag::new("--synthesis-max-osl", &["--synthesis-max-osl"], Group::Synthesis, Kind::Number(AT_LEAST_0))
        .value("TOKENS")
        .not_yet(Later::Synthesis)
        .help("Cap output lengths"),
];
