//! What is written, and where.

use std::path::PathBuf;

use aiperf_config::{EndpointConfig, ExportLevel, LoadMode, OutputConfig, PhaseConfig};
use aiperf_report::FileNames;

use crate::environment::Environment;
use crate::typed::Typed;
use crate::usage::UsageError;

/// What the names of result files end with; a prefix that ends so is meant without it.
const SUFFIXES: [&str; 14] = [
    "_server_metrics.parquet",
    "_server_metrics.jsonl",
    "_server_metrics.json",
    "_server_metrics.csv",
    "_network_latency.jsonl",
    "_gpu_telemetry.jsonl",
    "_timeslices.csv",
    "_timeslices.json",
    "_console.txt",
    "_raw.jsonl",
    ".parquet",
    ".csv",
    ".json",
    ".jsonl",
];

pub(super) fn settle(
    typed: &Typed,
    environment: &Environment,
    model: &str,
    endpoint: &EndpointConfig,
    phases: &[PhaseConfig],
) -> Result<OutputConfig, UsageError> {
    let dir = match typed.text("--artifact-dir") {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from("artifacts").join(run_name(model, endpoint, phases)),
    };
    // Metrics of developers are shown only where both switches say so.
    let developer = environment.is_on("AIPERF_DEV_MODE")?;
    Ok(OutputConfig {
        dir: environment.directory.join(dir),
        prefix: prefix(typed)?,
        level: match typed.text("--export-level") {
            Some("summary") => ExportLevel::Summary,
            Some("raw") => ExportLevel::Raw,
            _ => ExportLevel::Records,
        },
        http_trace: typed.is_on("--export-http-trace"),
        show_trace_timing: typed.is_on("--show-trace-timing"),
        show_internal_metrics: developer && environment.is_on("AIPERF_DEV_SHOW_INTERNAL_METRICS")?,
        show_experimental_metrics: developer && environment.is_on("AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS")?,
    })
}

/// Model, dialect and load, in one name.
fn run_name(model: &str, endpoint: &EndpointConfig, phases: &[PhaseConfig]) -> String {
    let load = phases.last().map_or_else(String::new, |phase| match phase.mode {
        LoadMode::FixedSchedule(_) => "fixed_schedule".to_owned(),
        LoadMode::Burst => format!("concurrency{}", phase.concurrency.unwrap_or(1)),
        // A whole rate keeps its ".0": that is how the reference names the folder.
        LoadMode::Rate { rate, .. } => match phase.concurrency {
            Some(concurrency) => format!("concurrency{concurrency}-request_rate{rate:?}"),
            None => format!("request_rate{rate:?}"),
        },
    });
    format!("{}-openai-{}-{load}", model.replace('/', "_"), endpoint.kind.name())
}

fn prefix(typed: &Typed) -> Result<Option<String>, UsageError> {
    let Some(text) = typed.text("--profile-export-prefix") else { return Ok(None) };
    let refuse = |rule: &str| UsageError::Value {
        flag: typed.name("--profile-export-prefix").into(),
        value: text.into(),
        rule: rule.into(),
        similar: None,
    };
    if text.contains('/') {
        return Err(refuse("a name; the folder goes to --artifact-dir"));
    }
    let prefix = SUFFIXES.iter().find_map(|suffix| text.strip_suffix(suffix)).unwrap_or(text);
    if ["", ".", ".."].contains(&prefix) {
        return Err(refuse("a name for the result files"));
    }
    if let Some(file) = FileNames::new(Some(prefix)).collision() {
        return Err(UsageError::combination(
            format!(
                "{} {text}: the figures of the run would be written to {file}, which another of its files is called",
                typed.name("--profile-export-prefix")
            ),
            "choose another prefix",
        ));
    }
    Ok(Some(prefix.to_owned()))
}
