//! Flags of the group "Server Metrics".

use super::{Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--server-metrics", &["--server-metrics"], Group::ServerMetrics, Kind::Texts)
        .value("URL")
        .not_yet(Later::Telemetry)
        .help("Collect Prometheus metrics of the server"),
    Flag::new("--no-server-metrics", &["--no-server-metrics"], Group::ServerMetrics, Kind::Switch)
        .default("False")
        .help("Collect no metrics of the server; nothing is collected yet either way"),
    Flag::new("--server-metrics-formats", &["--server-metrics-formats"], Group::ServerMetrics, Kind::Texts)
        .value("FORMAT")
        .default("[json, csv]")
        .choices(&["json", "csv", "jsonl", "parquet"])
        .not_yet(Later::Telemetry)
        .help("Files they are written to"),
];
