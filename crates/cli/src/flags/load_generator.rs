//! Flags of the group "Load Generator".

use super::{ABOVE_0, AT_LEAST_0, Flag, Group, Kind, Later, MOST_SESSIONS, RAMP, RATE, SHAPE, SHARE};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new(
        "--benchmark-duration",
        &["--benchmark-duration"],
        Group::LoadGenerator,
        Kind::Seconds(ABOVE_0),
    )
    .value("SECONDS")
    .help("Stop sending after this time"),
    Flag::new(
        "--benchmark-grace-period",
        &["--benchmark-grace-period"],
        Group::LoadGenerator,
        Kind::SecondsOrForever,
    )
    .value("SECONDS")
    .default("30.0")
    .help("How long requests in flight may finish after the duration; inf waits for all"),
    Flag::new("--concurrency", &["--concurrency"], Group::LoadGenerator, Kind::Count { min: 1 })
        .value("N")
        .most(MOST_SESSIONS)
        .shown_default("1 without a rate or schedule, else no cap")
        .help("Most sessions in flight at once; with a rate, an arrival that finds no free slot is skipped, not queued"),
    Flag::new(
        "--prefill-concurrency",
        &["--prefill-concurrency"],
        Group::LoadGenerator,
        Kind::Count { min: 1 },
    )
    .value("N")
    .not_yet(Later::LoadModes)
    .help("Most requests before their first token at once"),
    Flag::new("--request-rate", &["--request-rate"], Group::LoadGenerator, Kind::Number(RATE))
        .value("PER_SECOND")
        .help("Requests per second"),
    Flag::new(
        "--arrival-pattern",
        &["--arrival-pattern", "--request-rate-mode"],
        Group::LoadGenerator,
        Kind::Choice,
    )
    .value("PATTERN")
    .default("poisson")
    .shown_default("poisson; gamma with --arrival-smoothness")
    .choices(&["concurrency-burst", "constant", "gamma", "poisson"])
    .help("Spacing of arrivals at a rate; concurrency-burst is what there is without one: no pacing, as fast as --concurrency allows"),
    Flag::new(
        "--arrival-smoothness",
        &["--arrival-smoothness", "--vllm-burstiness"],
        Group::LoadGenerator,
        Kind::Number(SHAPE),
    )
    .value("SHAPE")
    .help("Shape of gamma arrivals: below 1 is bursty, 1 is Poisson, above 1 is smooth"),
    Flag::new(
        "--request-count",
        &["--request-count", "--num-requests"],
        Group::LoadGenerator,
        Kind::Count { min: 1 },
    )
    .value("N")
    .shown_default("10 when nothing else ends the run")
    .help("Requests to send"),
    Flag::new(
        "--concurrency-ramp-duration",
        &["--concurrency-ramp-duration"],
        Group::LoadGenerator,
        Kind::Seconds(RAMP),
    )
    .value("SECONDS")
    .help("Raise the concurrency from 1 in this time"),
    Flag::new(
        "--prefill-concurrency-ramp-duration",
        &["--prefill-concurrency-ramp-duration"],
        Group::LoadGenerator,
        Kind::Seconds(RAMP),
    )
    .value("SECONDS")
    .not_yet(Later::LoadModes)
    .help("Raise the prefill concurrency in this time"),
    Flag::new(
        "--request-rate-ramp-duration",
        &["--request-rate-ramp-duration"],
        Group::LoadGenerator,
        Kind::Seconds(RAMP),
    )
    .value("SECONDS")
    .help("Raise the rate from near 0 in this time"),
    Flag::new("--request-rate-series", &["--request-rate-series"], Group::LoadGenerator, Kind::Path)
        .value("FILE")
        .not_yet(Later::LoadModes)
        .help("Follow a series of rates"),
    Flag::new(
        "--failed-request-threshold",
        &["--failed-request-threshold"],
        Group::LoadGenerator,
        Kind::Number(SHARE),
    )
    .value("SHARE")
    .help("Stop the run when more than this share of its requests has failed (0 to 1), those that --request-cancellation-rate broke off included; judged once 10 of them (with a higher --concurrency: that many) are back"),
    Flag::new(
        "--trajectory-start-min-ratio",
        &["--trajectory-start-min-ratio"],
        Group::LoadGenerator,
        Kind::Number(AT_LEAST_0),
    )
    .value("SHARE")
    .default("0.25")
    .not_yet(Later::AgenticReplay)
    .help("Earliest start inside a trajectory"),
    Flag::new(
        "--trajectory-start-max-ratio",
        &["--trajectory-start-max-ratio"],
        Group::LoadGenerator,
        Kind::Number(AT_LEAST_0),
    )
    .value("SHARE")
    .default("0.75")
    .not_yet(Later::AgenticReplay)
    .help("Latest start inside a trajectory"),
    Flag::new("--burst-phase-starts", &["--burst-phase-starts"], Group::LoadGenerator, Kind::Switch)
        .default("False")
        .not_yet(Later::AgenticReplay)
        .help("Start all lanes at once"),
    Flag::new(
        "--trace-idle-gap-cap-seconds",
        &["--trace-idle-gap-cap-seconds"],
        Group::LoadGenerator,
        Kind::Number(AT_LEAST_0),
    )
    .value("SECONDS")
    .help("Shorten gaps between the requests of one weka_trace or tracelab session, subagents included"),
    Flag::new(
        "--system-idle-gap-cap-seconds",
        &["--system-idle-gap-cap-seconds"],
        Group::LoadGenerator,
        Kind::Number(AT_LEAST_0),
    )
    .value("SECONDS")
    .not_yet(Later::AgenticReplay)
    .help("Shorten gaps in which nothing runs"),
];
