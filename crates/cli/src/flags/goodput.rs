//! Flags of the group "Goodput".

use super::{Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[Flag::new("--goodput", &["--goodput"], Group::Goodput, Kind::Texts)
    .value("TAG:VALUE")
    .not_yet(Later::Goodput)
    .help("Latency limits a good request keeps")];
