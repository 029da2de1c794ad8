//! Flags of the group "Network Latency".

use super::{ABOVE_0, Flag, Group, Kind, Later, PAUSE};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--network-latency-automatic",
        &["--network-latency-automatic"],
        Group::NetworkLatency,
        Kind::Switch,
    )
    .default("False")
    .not_yet(Later::NetworkProbe)
    .help("Measure the round trip during the run"),
    Flag::new(
        "--network-latency-mean",
        &["--network-latency-mean"],
        Group::NetworkLatency,
        Kind::Number(PAUSE),
    )
    .value("MS")
    .help("Round trip of the network, subtracted in the network_adjusted_ copies of the latencies"),
    Flag::new(
        "--network-latency-ping-interval",
        &["--network-latency-ping-interval"],
        Group::NetworkLatency,
        Kind::Seconds(ABOVE_0),
    )
    .value("SECONDS")
    .not_yet(Later::NetworkProbe)
    .help("Pause between two probes"),
];
