//! Flags of the group "Rankings".

use super::{Flag, Group, Kind, PASSAGES, SPREAD, TOKENS};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--rankings-passages-mean",
        &["--rankings-passages-mean"],
        Group::Rankings,
        Kind::Number(PASSAGES),
    )
    .value("N")
    .default("1")
    .help("Mean number of passages of a request to a rankings endpoint"),
    Flag::new(
        "--rankings-passages-stddev",
        &["--rankings-passages-stddev"],
        Group::Rankings,
        Kind::Number(SPREAD),
    )
    .value("N")
    .default("0")
    .help("Standard deviation of the number of passages"),
    Flag::new(
        "--rankings-passages-prompt-token-mean",
        &["--rankings-passages-prompt-token-mean"],
        Group::Rankings,
        Kind::Number(TOKENS),
    )
    .value("N")
    .default("550")
    .help("Mean tokens of a passage"),
    Flag::new(
        "--rankings-passages-prompt-token-stddev",
        &["--rankings-passages-prompt-token-stddev"],
        Group::Rankings,
        Kind::Number(TOKENS),
    )
    .value("N")
    .default("0")
    .help("Standard deviation of the tokens of a passage"),
    Flag::new(
        "--rankings-query-prompt-token-mean",
        &["--rankings-query-prompt-token-mean"],
        Group::Rankings,
        Kind::Number(TOKENS),
    )
    .value("N")
    .default("550")
    .help("Mean tokens of the query"),
    Flag::new(
        "--rankings-query-prompt-token-stddev",
        &["--rankings-query-prompt-token-stddev"],
        Group::Rankings,
        Kind::Number(TOKENS),
    )
    .value("N")
    .default("0")
    .help("Standard deviation of the tokens of the query"),
];
