//! Flags of the group "Warmup".

use super::{ABOVE_0, ARRIVAL_PATTERNS, AT_LEAST_0, Flag, Group, Kind, Later, MOST_SESSIONS, RAMP, RATE};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--warmup-request-count",
        &["--warmup-request-count", "--num-warmup-requests"],
        Group::Warmup,
        Kind::Count { min: 1 },
    )
    .value("N")
    .most(MOST_SESSIONS)
    .help("Requests to send before the measured part"),
    Flag::new("--warmup-duration", &["--warmup-duration"], Group::Warmup, Kind::Seconds(ABOVE_0))
        .value("SECONDS")
        .help("Warm up for this time"),
    Flag::new(
        "--agentic-cache-warmup-duration",
        &["--agentic-cache-warmup-duration"],
        Group::Warmup,
        Kind::Seconds(AT_LEAST_0),
    )
    .value("SECONDS")
    .not_yet(Later::AgenticReplay)
    .help("Warm the caches of agentic traces"),
    Flag::new(
        "--agentic-warmup-grace-period",
        &["--agentic-warmup-grace-period"],
        Group::Warmup,
        Kind::Seconds(AT_LEAST_0),
    )
    .value("SECONDS")
    .not_yet(Later::AgenticReplay)
    .help("Grace after that"),
    Flag::new("--num-warmup-sessions", &["--num-warmup-sessions"], Group::Warmup, Kind::Count { min: 1 })
        .value("N")
        .most(MOST_SESSIONS)
        .help("Sessions to start in the warmup"),
    Flag::new("--warmup-concurrency", &["--warmup-concurrency"], Group::Warmup, Kind::Count { min: 1 })
        .value("N")
        .most(MOST_SESSIONS)
        .shown_default("--concurrency")
        .help("Concurrency of the warmup"),
    Flag::new(
        "--warmup-prefill-concurrency",
        &["--warmup-prefill-concurrency"],
        Group::Warmup,
        Kind::Count { min: 1 },
    )
    .value("N")
    .not_yet(Later::LoadModes)
    .help("Prefill concurrency of the warmup"),
    Flag::new("--warmup-request-rate", &["--warmup-request-rate"], Group::Warmup, Kind::Number(RATE))
        .value("PER_SECOND")
        .shown_default("--request-rate")
        .help("Rate of the warmup"),
    Flag::new("--warmup-arrival-pattern", &["--warmup-arrival-pattern"], Group::Warmup, Kind::Choice)
        .value("PATTERN")
        .shown_default("--arrival-pattern")
        .one_of(ARRIVAL_PATTERNS)
        .help("Spacing of arrivals in the warmup"),
    Flag::new("--warmup-grace-period", &["--warmup-grace-period"], Group::Warmup, Kind::SecondsOrForever)
        .value("SECONDS")
        .shown_default("inf")
        .help("How long warmup requests may finish after --warmup-duration"),
    Flag::new(
        "--warmup-concurrency-ramp-duration",
        &["--warmup-concurrency-ramp-duration"],
        Group::Warmup,
        Kind::Seconds(RAMP),
    )
    .value("SECONDS")
    .shown_default("--concurrency-ramp-duration")
    .help("Raise the concurrency of the warmup in this time"),
    Flag::new(
        "--warmup-prefill-concurrency-ramp-duration",
        &["--warmup-prefill-concurrency-ramp-duration"],
        Group::Warmup,
        Kind::Seconds(RAMP),
    )
    .value("SECONDS")
    .not_yet(Later::LoadModes)
    .help("Raise the prefill concurrency of the warmup in this time"),
    Flag::new(
        "--warmup-request-rate-ramp-duration",
        &["--warmup-request-rate-ramp-duration"],
        Group::Warmup,
        Kind::Seconds(RAMP),
    )
    .value("SECONDS")
    .shown_default("--request-rate-ramp-duration")
    .help("Raise the rate of the warmup in this time"),
];
