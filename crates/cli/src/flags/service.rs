//! Flags of the group "Service".

use super::{AT_LEAST_0, Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--log-level", &["--log-level"], Group::Service, Kind::Choice)
        .value("LEVEL")
        .default("info")
        .choices(&["trace", "debug", "info", "notice", "warning", "success", "error", "critical"])
        .help("Lowest level that is logged; --verbose and --extra-verbose win over it"),
    Flag::new("--verbose", &["--verbose", "-v"], Group::Service, Kind::Switch)
        .default("False")
        .help("Log at level debug: each failed request, and where the server is"),
    Flag::new("--extra-verbose", &["--extra-verbose", "-vv"], Group::Service, Kind::Switch)
        .default("False")
        .help("Log at level trace: each request"),
    Flag::new(
        "--record-processors",
        &["--record-processor-service-count", "--record-processors"],
        Group::Service,
        Kind::Count { min: 1 },
    )
    .value("N")
    .shown_default("by the number of cores")
    .help("Threads that count tokens, compute metrics and write records"),
    Flag::new("--api-port", &["--api-port"], Group::Service, Kind::Count { min: 1 })
        .value("PORT")
        .not_yet(Later::LiveApi)
        .help("Serve live figures on this port"),
    Flag::new("--api-host", &["--api-host"], Group::Service, Kind::Text)
        .value("HOST")
        .not_yet(Later::LiveApi)
        .help("Address to serve them on"),
    Flag::new("--stats-interval", &["--stats-interval"], Group::Service, Kind::Seconds(AT_LEAST_0))
        .value("SECONDS")
        .shown_default("30")
        .help("Pause between two blocks of live figures; 0 shows none"),
];
