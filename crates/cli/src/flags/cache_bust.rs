//! Flags of the group "Cache Bust".

use super::{Flag, Group, Kind};

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
        .help("Put a mark into each conversation that keeps prefix caches from answering: one that no other run of a conversation has, or, to keep warmup apart, one in all of warmup. Endpoints with messages only")];
