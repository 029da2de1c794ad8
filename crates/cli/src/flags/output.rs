//! Flags of the group "Output".

use super::{ABOVE_0, Flag, Group, Kind, Later};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--artifact-dir", &["--output-artifact-dir", "--artifact-dir"], Group::Output, Kind::Path).value("DIR").default("artifacts").shown_default("artifacts/<model>-openai-<endpoint type>-<load>").help("Folder of the results"),
    Flag::new("--profile-export-prefix", &["--profile-export-prefix", "--profile-export-file"], Group::Output, Kind::Text).value("NAME").help("Name the result files NAME.json, NAME.csv, NAME.jsonl instead of profile_export…"),
    Flag::new("--export-level", &["--export-level", "--profile-export-level"], Group::Output, Kind::Choice).value("LEVEL").default("records").choices(&["summary", "records", "raw"]).help("summary: aggregates only; records: and one line per request; raw: and everything sent and received"),
    Flag::new("--slice-duration", &["--slice-duration"], Group::Output, Kind::Seconds(ABOVE_0)).value("SECONDS").not_yet(Later::Goodput).help("Report per time slice"),
    Flag::new("--auto-plot", &["--auto-plot", "--no-auto-plot"], Group::Output, Kind::Switch).not_yet(Later::Plots).help("Plot the results after the run"),
    Flag::new("--plot-required", &["--plot-required"], Group::Output, Kind::Switch).default("False").not_yet(Later::Plots).help("Fail when plotting fails"),
    Flag::new("--export-outputs-json", &["--export-outputs-json"], Group::Output, Kind::Switch).default("False").not_yet(Later::OutputsJson).help("Write the answers to outputs.json"),
    Flag::new("--otel-url", &["--otel-url"], Group::Output, Kind::Text).value("URL").not_yet(Later::Trackers).help("Send metrics to an OpenTelemetry collector"),
    Flag::new("--stream", &["--stream"], Group::Output, Kind::Texts).value("KIND").not_yet(Later::Trackers).help("What is sent to it"),
    Flag::new("--otel-resource-attributes", &["--otel-resource-attributes"], Group::Output, Kind::Texts).value("KEY=VALUE").not_yet(Later::Trackers).help("Attributes of that resource"),
    Flag::new("--gen-ai-provider", &["--gen-ai-provider"], Group::Output, Kind::Text).value("NAME").not_yet(Later::Trackers).help("Provider name in that data"),
    Flag::new("--mlflow-tracking-uri", &["--mlflow-tracking-uri"], Group::Output, Kind::Text).value("URI").not_yet(Later::Trackers).help("Log the run to MLflow"),
    Flag::new("--mlflow-experiment", &["--mlflow-experiment"], Group::Output, Kind::Text).value("NAME").not_yet(Later::Trackers).help("Experiment there"),
    Flag::new("--mlflow-run-name", &["--mlflow-run-name"], Group::Output, Kind::Text).value("NAME").not_yet(Later::Trackers).help("Run name there"),
    Flag::new("--mlflow-tag", &["--mlflow-tag"], Group::Output, Kind::Texts).value("KEY=VALUE").not_yet(Later::Trackers).help("Tags there"),
    Flag::new("--mlflow-parent-run-id", &["--mlflow-parent-run-id"], Group::Output, Kind::Text).value("ID").not_yet(Later::Trackers).help("Parent run there"),
    Flag::new("--mlflow-artifact-glob", &["--mlflow-artifact-glob"], Group::Output, Kind::Texts).value("GLOB").not_yet(Later::Trackers).help("Files to upload there"),
    Flag::new("--wandb-project", &["--wandb-project"], Group::Output, Kind::Text).value("NAME").not_yet(Later::Trackers).help("Log the run to Weights & Biases"),
    Flag::new("--wandb-entity", &["--wandb-entity"], Group::Output, Kind::Text).value("NAME").not_yet(Later::Trackers).help("Entity there"),
    Flag::new("--wandb-run-name", &["--wandb-run-name"], Group::Output, Kind::Text).value("NAME").not_yet(Later::Trackers).help("Run name there"),
    Flag::new("--wandb-tag", &["--wandb-tag"], Group::Output, Kind::Texts).value("TAG").not_yet(Later::Trackers).help("Tags there"),
];
