//! Flags of the group "Request Cancellation".

use super::{AT_LEAST_0, Flag, Group, Kind, PERCENT};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--request-cancellation-rate",
        &["--request-cancellation-rate"],
        Group::RequestCancellation,
        Kind::Number(PERCENT),
    )
    .value("PERCENT")
    .help("Share of requests that the client breaks off on purpose (0 to 100); they count as failed, for --failed-request-threshold too"),
    Flag::new(
        "--request-cancellation-delay",
        &["--request-cancellation-delay"],
        Group::RequestCancellation,
        Kind::Seconds(AT_LEAST_0),
    )
    .value("SECONDS")
    .default("0.0")
    .help("From the last byte sent to breaking off"),
];
