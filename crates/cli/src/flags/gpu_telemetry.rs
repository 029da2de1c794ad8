//! Flags of the group "GPU Telemetry".

use super::{Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--gpu-telemetry", &["--gpu-telemetry"], Group::GpuTelemetry, Kind::Texts)
        .value("URL")
        .not_yet(Later::Telemetry)
        .help("Collect GPU telemetry"),
    Flag::new("--no-gpu-telemetry", &["--no-gpu-telemetry"], Group::GpuTelemetry, Kind::Switch)
        .default("False")
        .help("Collect no GPU telemetry; nothing is collected yet either way"),
];
