//! Flags of the group "UI".

use super::{Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[Flag::new("--ui", &["--ui-type", "--ui"], Group::Ui, Kind::Choice)
    .value("VIEW")
    .default("dashboard")
    .shown_default("simple on a terminal, log lines elsewhere")
    .choices(&["dashboard", "none", "simple"])
    .later(Later::LiveView, &["dashboard"])
    .help("simple: progress bars; none: no progress and no live figures")];
