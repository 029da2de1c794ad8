//! Flags of the group "User-Centric Rate".

use super::{ABOVE_0, Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--user-centric-rate", &["--user-centric-rate"], Group::UserCentricRate, Kind::Number(ABOVE_0))
        .value("PER_SECOND")
        .not_yet(Later::LoadModes)
        .help("Requests per second over all users, each on its own clock"),
    Flag::new("--num-users", &["--num-users"], Group::UserCentricRate, Kind::Count { min: 1 })
        .value("N")
        .not_yet(Later::LoadModes)
        .help("Users of that mode"),
];
