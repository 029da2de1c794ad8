//! Flags of the group "Fixed Schedule".

use super::{Flag, Group, Kind};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--fixed-schedule", &["--fixed-schedule"], Group::FixedSchedule, Kind::Switch)
        .default("False")
        .help("Send each request at its recorded time. A trace with times does so by itself"),
    Flag::new("--no-fixed-schedule", &["--no-fixed-schedule"], Group::FixedSchedule, Kind::Switch)
        .default("False")
        .help("Ignore the recorded times of a trace"),
    Flag::new(
        "--fixed-schedule-auto-offset",
        &["--fixed-schedule-auto-offset"],
        Group::FixedSchedule,
        Kind::Switch,
    )
    .default("False")
    .shown_default("on")
    .help("Start the schedule at the first recorded time; on unless a start offset is given"),
    Flag::new(
        "--fixed-schedule-start-offset",
        &["--fixed-schedule-start-offset"],
        Group::FixedSchedule,
        Kind::Count { min: 0 },
    )
    .value("MS")
    .help("Play from this recorded time on"),
    Flag::new(
        "--fixed-schedule-end-offset",
        &["--fixed-schedule-end-offset"],
        Group::FixedSchedule,
        Kind::Count { min: 0 },
    )
    .value("MS")
    .help("Play up to this recorded time, inclusive"),
];
