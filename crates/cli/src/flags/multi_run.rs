//! Flags of the group "Multi-Run".

use super::{AT_LEAST_0, Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--num-profile-runs", &["--num-profile-runs"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .default("1")
        .not_yet(Later::MultiRun)
        .help("Repeat the run this often"),
    Flag::new(
        "--profile-run-cooldown-seconds",
        &["--profile-run-cooldown-seconds"],
        Group::MultiRun,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .default("0.0")
    .not_yet(Later::MultiRun)
    .help("Pause between runs"),
    Flag::new("--confidence-level", &["--confidence-level"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .default("0.95")
        .not_yet(Later::MultiRun)
        .help("Level of the confidence intervals"),
    Flag::new(
        "--profile-run-disable-warmup-after-first",
        &["--profile-run-disable-warmup-after-first", "--no-profile-run-disable-warmup-after-first"],
        Group::MultiRun,
        Kind::Switch,
    )
    .default("True")
    .not_yet(Later::MultiRun)
    .help("Warm up before the first run only"),
    Flag::new(
        "--set-consistent-seed",
        &["--set-consistent-seed", "--no-set-consistent-seed"],
        Group::MultiRun,
        Kind::Switch,
    )
    .default("True")
    .not_yet(Later::MultiRun)
    .help("The same seed for every run"),
    Flag::new(
        "--vary-seed-per-trial",
        &["--vary-seed-per-trial", "--no-vary-seed-per-trial"],
        Group::MultiRun,
        Kind::Switch,
    )
    .default("False")
    .not_yet(Later::MultiRun)
    .help("Another seed for every run"),
    Flag::new("--convergence-metric", &["--convergence-metric"], Group::MultiRun, Kind::Texts)
        .value("VALUE")
        .not_yet(Later::MultiRun)
        .help("Stop repeating when this metric settles"),
    Flag::new("--convergence-stat", &["--convergence-stat"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .default("avg")
        .choices(&["avg", "p50", "p90", "p95", "p99", "min", "max"])
        .not_yet(Later::MultiRun)
        .help("Statistic of that metric"),
    Flag::new(
        "--convergence-threshold",
        &["--convergence-threshold"],
        Group::MultiRun,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .not_yet(Later::MultiRun)
    .help("How settled it must be"),
    Flag::new("--convergence-mode", &["--convergence-mode"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .default("ci-width")
        .choices(&["ci-width", "cv", "distribution"])
        .not_yet(Later::MultiRun)
        .help("How that is judged"),
    Flag::new(
        "--parameter-sweep-cooldown-seconds",
        &["--parameter-sweep-cooldown-seconds"],
        Group::MultiRun,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .default("0.0")
    .not_yet(Later::Sweeps)
    .help("Pause between points"),
    Flag::new(
        "--parameter-sweep-same-seed",
        &["--parameter-sweep-same-seed", "--no-parameter-sweep-same-seed"],
        Group::MultiRun,
        Kind::Switch,
    )
    .default("False")
    .not_yet(Later::Sweeps)
    .help("The same seed for every point"),
    Flag::new("--parameter-sweep-mode", &["--parameter-sweep-mode"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .default("repeated")
        .choices(&["independent", "repeated"])
        .not_yet(Later::Sweeps)
        .help("Order of points and repeats"),
    Flag::new("--sweep-type", &["--sweep-type"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .default("grid")
        .choices(&["grid", "zip"])
        .not_yet(Later::Sweeps)
        .help("All combinations or pairs"),
    Flag::new("--no-sweep-table", &["--no-sweep-table"], Group::MultiRun, Kind::Switch)
        .default("False")
        .not_yet(Later::Sweeps)
        .help("No table after a sweep"),
    Flag::new("--search-space", &["--search-space"], Group::MultiRun, Kind::Texts)
        .value("VALUE")
        .not_yet(Later::Search)
        .help("Settings to search over"),
    Flag::new("--search-metric", &["--search-metric"], Group::MultiRun, Kind::Texts)
        .value("VALUE")
        .not_yet(Later::Search)
        .help("Metric to optimise"),
    Flag::new("--search-stat", &["--search-stat"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .choices(&["avg", "p50", "p90", "p95", "p99"])
        .not_yet(Later::Search)
        .help("Statistic of it"),
    Flag::new("--search-direction", &["--search-direction"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .choices(&["maximize", "minimize"])
        .not_yet(Later::Search)
        .help("Towards more or less"),
    Flag::new(
        "--search-max-iterations",
        &["--search-max-iterations"],
        Group::MultiRun,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .not_yet(Later::Search)
    .help("Most points to try"),
    Flag::new(
        "--search-initial-points",
        &["--search-initial-points"],
        Group::MultiRun,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .not_yet(Later::Search)
    .help("Points to start with"),
    Flag::new("--search-random-seed", &["--search-random-seed"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Search)
        .help("Seed of the search"),
    Flag::new("--search-planner", &["--search-planner"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .choices(&["bayesian", "monotonic-sla", "smooth-isotonic", "optuna"])
        .not_yet(Later::Search)
        .help("Who picks the next point"),
    Flag::new("--optuna-sampler", &["--optuna-sampler"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .choices(&["gp", "tpe", "botorch"])
        .not_yet(Later::Search)
        .help("Sampler of Optuna"),
    Flag::new("--optuna-acquisition", &["--optuna-acquisition"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .choices(&["logei", "qlogei", "qnei", "qlognei", "qehvi", "qnehvi", "qlognehvi"])
        .not_yet(Later::Search)
        .help("Acquisition function of Optuna"),
    Flag::new("--optuna-terminator", &["--optuna-terminator"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .choices(&["regret", "emmr", "none"])
        .not_yet(Later::Search)
        .help("When Optuna stops"),
    Flag::new("--search-percentile-pooling", &["--search-percentile-pooling"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .choices(&["mean", "pooled"])
        .not_yet(Later::Search)
        .help("How percentiles of repeats are joined"),
    Flag::new("--bo-constraint-mode", &["--bo-constraint-mode"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .choices(&["penalty", "eic"])
        .not_yet(Later::Search)
        .help("How limits enter the search"),
    Flag::new("--variant", &["--variant", "--sweep-variant"], Group::MultiRun, Kind::Texts)
        .value("VALUE")
        .default("[]")
        .not_yet(Later::Sweeps)
        .help("A named variant of the run"),
    Flag::new("--search-sla", &["--search-sla"], Group::MultiRun, Kind::Texts)
        .value("VALUE")
        .not_yet(Later::Search)
        .help("Limits a point must keep"),
    Flag::new("--search-sla-tier", &["--search-sla-tier"], Group::MultiRun, Kind::Texts)
        .value("VALUE")
        .not_yet(Later::Search)
        .help("Tiers of such limits"),
    Flag::new("--search-recipe", &["--search-recipe"], Group::MultiRun, Kind::Texts)
        .value("VALUE")
        .not_yet(Later::Search)
        .help("A ready-made search"),
    Flag::new("--ttft-sla-ms", &["--ttft-sla-ms"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Search)
        .help("Limit on time to first token"),
    Flag::new("--isl-osl-pairs", &["--isl-osl-pairs"], Group::MultiRun, Kind::Texts)
        .value("VALUE")
        .not_yet(Later::Sweeps)
        .help("Pairs of lengths to try"),
    Flag::new("--itl-sla-ms", &["--itl-sla-ms"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Search)
        .help("Limit on inter-token latency"),
    Flag::new("--tpot-sla-ms", &["--tpot-sla-ms"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Search)
        .help("Limit on time per output token"),
    Flag::new("--e2e-sla-ms", &["--e2e-sla-ms"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Search)
        .help("Limit on request latency"),
    Flag::new("--error-rate-sla", &["--error-rate-sla"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Search)
        .help("Limit on the error rate"),
    Flag::new(
        "--slo-attainment-fraction",
        &["--slo-attainment-fraction"],
        Group::MultiRun,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .not_yet(Later::Search)
    .help("Share of requests that must keep them"),
    Flag::new("--search-style", &["--search-style"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .choices(&["smooth_isotonic", "monotonic", "bo", "optuna", "grid"])
        .not_yet(Later::Search)
        .help("Kind of search"),
    Flag::new(
        "--degradation-threshold",
        &["--degradation-threshold"],
        Group::MultiRun,
        Kind::Number(AT_LEAST_0),
    )
    .value("N")
    .not_yet(Later::Search)
    .help("Fall that ends the search"),
    Flag::new("--degradation-metric-tag", &["--degradation-metric-tag"], Group::MultiRun, Kind::Texts)
        .value("VALUE")
        .not_yet(Later::Search)
        .help("Metric whose fall counts"),
    Flag::new("--degradation-stat", &["--degradation-stat"], Group::MultiRun, Kind::Choice)
        .value("NAME")
        .choices(&["avg", "p50", "p90", "p95", "p99"])
        .not_yet(Later::Search)
        .help("Statistic of it"),
    Flag::new("--isl-min", &["--isl-min"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Sweeps)
        .help("Lowest input length"),
    Flag::new("--isl-max", &["--isl-max"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Sweeps)
        .help("Highest input length"),
    Flag::new("--isl-steps", &["--isl-steps"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Sweeps)
        .help("Input lengths to try"),
    Flag::new("--concurrency-min", &["--concurrency-min"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Sweeps)
        .help("Lowest concurrency"),
    Flag::new("--concurrency-max", &["--concurrency-max"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Sweeps)
        .help("Highest concurrency"),
    Flag::new("--concurrency-steps", &["--concurrency-steps"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Sweeps)
        .help("Concurrencies to try"),
    Flag::new("--osl-min", &["--osl-min"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Sweeps)
        .help("Lowest output length"),
    Flag::new("--osl-max", &["--osl-max"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Sweeps)
        .help("Highest output length"),
    Flag::new("--osl-steps", &["--osl-steps"], Group::MultiRun, Kind::Number(AT_LEAST_0))
        .value("N")
        .not_yet(Later::Sweeps)
        .help("Output lengths to try"),
];
