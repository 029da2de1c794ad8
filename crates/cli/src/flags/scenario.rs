//! Flags of the group "Scenario".

use super::{Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--scenario", &["--scenario"], Group::Scenario, Kind::Text)
        .value("NAME")
        .not_yet(Later::Scenarios)
        .help("Run a named scenario"),
    Flag::new("--unsafe-override", &["--unsafe-override"], Group::Scenario, Kind::Switch)
        .default("False")
        .not_yet(Later::Scenarios)
        .help("Change what a scenario fixes"),
];
