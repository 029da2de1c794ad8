//! Flags of the group "Rankings".

use super::{AT_LEAST_0, Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--rankings-passages-mean",
        &["--rankings-passages-mean"],
        Group::Rankings,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .default("1")
    .not_yet(Later::Rankings)
    .help("Mean number of passages"),
    Flag::new(
        "--rankings-passages-stddev",
        &["--rankings-passages-stddev"],
        Group::Rankings,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .default("0")
    .not_yet(Later::Rankings)
    .help("Its standard deviation"),
    Flag::new(
        "--rankings-passages-prompt-token-mean",
        &["--rankings-passages-prompt-token-mean"],
        Group::Rankings,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .default("550")
    .not_yet(Later::Rankings)
    .help("Mean tokens of a passage"),
    Flag::new(
        "--rankings-passages-prompt-token-stddev",
        &["--rankings-passages-prompt-token-stddev"],
        Group::Rankings,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .default("0")
    .not_yet(Later::Rankings)
    .help("Its standard deviation"),
    Flag::new(
        "--rankings-query-prompt-token-mean",
        &["--rankings-query-prompt-token-mean"],
        Group::Rankings,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .default("550")
    .not_yet(Later::Rankings)
    .help("Mean tokens of the query"),
    Flag::new(
        "--rankings-query-prompt-token-stddev",
        &["--rankings-query-prompt-token-stddev"],
        Group::Rankings,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .default("0")
    .not_yet(Later::Rankings)
    .help("Its standard deviation"),
];
