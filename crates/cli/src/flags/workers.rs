//! Flags of the group "Workers".

use super::{Flag, Group, Kind};

pub(super) const FLAGS: &[Flag] = &[Flag::new(
    "--workers-max",
    &["--workers-max", "--max-workers"],
    Group::Workers,
    Kind::Count { min: 1 },
)
.value("N")
.shown_default("half the cores, 16 at most")
.help("Network threads")];
