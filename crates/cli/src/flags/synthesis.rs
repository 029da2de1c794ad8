//! Flags of the group "Synthesis".

use super::{ABOVE_0, AT_LEAST_0, Flag, Group, Kind};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--synthesis-speedup-ratio",
        &["--synthesis-speedup-ratio"],
        Group::Synthesis,
        Kind::Number(ABOVE_0),
    )
    .value("FACTOR")
    .default("1.0")
    .help("Divide the times and delays of a trace by this"),
    Flag::new(
        "--synthesis-prefix-len-multiplier",
        &["--synthesis-prefix-len-multiplier"],
        Group::Synthesis,
        Kind::Number(ABOVE_0),
    )
    .value("FACTOR")
    .default("1.0")
    .help("Stretch the prefixes that requests of a trace share"),
    Flag::new(
        "--synthesis-prefix-root-multiplier",
        &["--synthesis-prefix-root-multiplier"],
        Group::Synthesis,
        Kind::Count { min: 1 },
    )
    .value("N")
    .default("1")
    .help("Spread the requests of a trace at random over so many variants of their prefixes"),
    Flag::new(
        "--synthesis-prompt-len-multiplier",
        &["--synthesis-prompt-len-multiplier"],
        Group::Synthesis,
        Kind::Number(ABOVE_0),
    )
    .value("FACTOR")
    .default("1.0")
    .help("Stretch what follows the shared prefix"),
    Flag::new(
        "--synthesis-output-len-multiplier",
        &["--synthesis-output-len-multiplier"],
        Group::Synthesis,
        Kind::Number(AT_LEAST_0),
    )
    .value("FACTOR")
    .default("1.0")
    .help("Stretch recorded output lengths"),
    Flag::new("--synthesis-max-isl", &["--synthesis-max-isl"], Group::Synthesis, Kind::Count { min: 1 })
        .value("TOKENS")
        .help("Leave longer inputs of a trace out"),
    Flag::new("--synthesis-max-osl", &["--synthesis-max-osl"], Group::Synthesis, Kind::Count { min: 1 })
        .value("TOKENS")
        .help("Cap recorded output lengths"),
];
