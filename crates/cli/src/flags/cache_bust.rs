//! Flags of the group "Cache Bust".

use super::{Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] =
    &[Flag::new("--cache-bust", &["--cache-bust"], Group::CacheBust, Kind::Choice)
        .value("WHERE")
        .default("none")
        .choices(&[
            "none",
            "system-prefix",
            "system-suffix",
            "first-turn-prefix",
            "first-turn-suffix",
            "warmup-isolation-system",
            "warmup-isolation-first-turn",
        ])
        .not_yet(Later::CacheBust)
        .help("Keep prefix caches from answering")];
