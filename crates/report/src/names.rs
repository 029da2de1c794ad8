//! Names of files and folders of a run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use aiperf_config::{EndpointKind, LoadMode};

/// The marker that is written last of all.
pub const READY_MARKER: &str = ".aiperf_results_ready.json";
/// The log, below the artifact folder.
pub const LOG_FILE: &str = "logs/aiperf.log";
/// The dataset as sent.
pub const INPUTS: &str = "inputs.json";
/// List of the phases of a run.
pub const PHASE_MANIFEST: &str = "phase_manifest.json";
/// Summary of one phase, below its own folder.
pub(crate) const PHASE_SUMMARY: &str = "profile_export_aiperf";

/// Suffixes that are cut from a chosen prefix, longest first where one ends another.
const KNOWN_SUFFIXES: [&str; 14] = [
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

/// Names of the exported files, with or without a chosen prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileNames {
    prefix: Option<String>,
}

impl FileNames {
    /// Names for a prefix as typed: `foo`, or the name of any file it would give (`foo_raw.jsonl`).
    pub fn new(prefix: Option<&str>) -> FileNames {
        let cut = |typed: &str| {
            let suffix =
                KNOWN_SUFFIXES.iter().find(|suffix| typed.len() > suffix.len() && typed.ends_with(**suffix));
            typed[..typed.len() - suffix.map_or(0, |suffix| suffix.len())].to_owned()
        };
        FileNames { prefix: prefix.map(cut) }
    }

    fn name(&self, chosen: &str, default: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}{chosen}"),
            None => default.to_owned(),
        }
    }

    /// Aggregates as JSON.
    pub fn summary_json(&self) -> String {
        self.name(".json", "profile_export_aiperf.json")
    }

    /// Aggregates as CSV.
    pub fn summary_csv(&self) -> String {
        self.name(".csv", "profile_export_aiperf.csv")
    }

    /// A line per request.
    pub fn records(&self) -> String {
        self.name(".jsonl", "profile_export.jsonl")
    }

    /// A line per request with everything that went over the wire.
    pub fn raw(&self) -> String {
        self.name("_raw.jsonl", "profile_export_raw.jsonl")
    }

    /// The tables as plain text.
    pub fn console(&self) -> String {
        self.name("_console.txt", "profile_export_console.txt")
    }

    /// Every file a run with these names may write below its folder, apart from marker and log.
    pub(crate) fn all(&self) -> Vec<String> {
        let mut names = vec![
            self.summary_json(),
            self.summary_csv(),
            self.records(),
            self.raw(),
            self.console(),
            self.name("_timeslices.csv", "profile_export_aiperf_timeslices.csv"),
            self.name("_timeslices.json", "profile_export_aiperf_timeslices.json"),
            self.name("_gpu_telemetry.jsonl", "gpu_telemetry_export.jsonl"),
            self.name("_network_latency.jsonl", "profile_export_network_latency.jsonl"),
            INPUTS.to_owned(),
            "outputs.json".to_owned(),
            PHASE_MANIFEST.to_owned(),
        ];
        for format in ["json", "csv", "jsonl", "parquet"] {
            names.push(
                self.name(&format!("_server_metrics.{format}"), &format!("server_metrics_export.{format}")),
            );
        }
        for phase in ["warmup", "profiling"] {
            for file in [
                "profile_export_aiperf.json",
                "profile_export_aiperf.csv",
                "gpu_telemetry.json",
                "server_metrics.json",
            ] {
                names.push(format!("phases/{phase}/{file}"));
            }
        }
        names
    }
}

/// The folder of a run for which none was chosen: `artifacts/<model>-openai-<endpoint>-<stimulus>`.
pub fn default_artifact_dir(
    models: &[String],
    kind: EndpointKind,
    mode: &LoadMode,
    concurrency: Option<u32>,
) -> PathBuf {
    let mut name = models.first().map_or("", String::as_str).replace('/', "_");
    if models.len() > 1 {
        name.push_str("_multi");
    }
    name.push_str("-openai-");
    name.push_str(kind.name());
    if let (Some(limit), LoadMode::Burst | LoadMode::Rate { .. }) = (concurrency, mode) {
        let _ = write!(name, "-concurrency{limit}");
    }
    match mode {
        LoadMode::Burst => {}
        LoadMode::Rate { rate, .. } => {
            // A float always shows its fraction: `20.0`.
            let _ = write!(name, "-request_rate{rate:?}");
        }
        LoadMode::FixedSchedule(_) => name.push_str("-fixed_schedule"),
    }
    Path::new("artifacts").join(name)
}

#[cfg(test)]
mod tests {
    use aiperf_config::{Arrival, FixedSchedule};

    use super::*;

    #[test]
    fn a_prefix_may_be_typed_as_any_of_its_files() {
        for typed in ["foo", "foo.json", "foo_raw.jsonl", "foo_server_metrics.parquet", "foo_timeslices.csv"]
        {
            assert_eq!(FileNames::new(Some(typed)).raw(), "foo_raw.jsonl", "{typed}");
        }
        assert_eq!(FileNames::new(Some("demo")).summary_csv(), "demo.csv");
        assert_eq!(FileNames::new(Some(".json")).summary_json(), ".json.json");
        assert_eq!(FileNames::new(None).summary_json(), "profile_export_aiperf.json");
        assert_eq!(FileNames::new(None).records(), "profile_export.jsonl");
    }

    #[test]
    fn the_default_folder_names_model_endpoint_and_load() {
        let models = ["org/mock-model".to_owned(), "b".to_owned()];
        let rate = LoadMode::Rate { rate: 20.0, arrival: Arrival::Poisson };
        let name = |models: &[String], mode, limit| {
            default_artifact_dir(models, EndpointKind::Chat, mode, limit).to_str().unwrap().to_owned()
        };
        assert_eq!(
            name(&models[..1], &rate, Some(3)),
            "artifacts/org_mock-model-openai-chat-concurrency3-request_rate20.0"
        );
        assert_eq!(name(&models, &rate, None), "artifacts/org_mock-model_multi-openai-chat-request_rate20.0");
        assert_eq!(name(&models[1..], &LoadMode::Burst, Some(1)), "artifacts/b-openai-chat-concurrency1");
        let schedule = LoadMode::FixedSchedule(FixedSchedule::default());
        assert_eq!(name(&models[1..], &schedule, Some(8)), "artifacts/b-openai-chat-fixed_schedule");
    }
}
