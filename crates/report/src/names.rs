//! Names of files and folders of a run.

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
/// Files whose names no prefix changes.
const FIXED: [&str; 3] = [INPUTS, "outputs.json", PHASE_MANIFEST];

/// Names of the exported files, with or without a chosen prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileNames {
    prefix: Option<String>,
}

impl FileNames {
    /// Names for a settled prefix: one without the ending of a file.
    pub fn new(prefix: Option<&str>) -> FileNames {
        FileNames { prefix: prefix.map(str::to_owned) }
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

    /// The first file of a chosen prefix whose name is that of another file of a run, which one of them would replace.
    pub fn collision(&self) -> Option<String> {
        self.chosen().into_iter().find(|name| name == READY_MARKER || FIXED.contains(&name.as_str()))
    }

    /// Every file a run with these names may write below its folder, apart from marker and log.
    pub(crate) fn all(&self) -> Vec<String> {
        let mut names = self.chosen();
        names.extend(FIXED.map(str::to_owned));
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

    /// The files whose names a prefix decides.
    pub(crate) fn chosen(&self) -> Vec<String> {
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
        ];
        for format in ["json", "csv", "jsonl", "parquet"] {
            names.push(
                self.name(&format!("_server_metrics.{format}"), &format!("server_metrics_export.{format}")),
            );
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_takes_the_place_of_the_usual_name() {
        assert_eq!(FileNames::new(Some("foo")).raw(), "foo_raw.jsonl");
        assert_eq!(FileNames::new(Some("demo")).summary_csv(), "demo.csv");
        // Endings are cut once, when the run is settled.
        assert_eq!(FileNames::new(Some("foo.json")).summary_json(), "foo.json.json");
        assert_eq!(FileNames::new(None).summary_json(), "profile_export_aiperf.json");
        assert_eq!(FileNames::new(None).records(), "profile_export.jsonl");
    }

    #[test]
    fn a_prefix_that_names_another_file_of_the_run_is_found() {
        for prefix in ["inputs", "outputs", "phase_manifest", ".aiperf_results_ready"] {
            assert_eq!(FileNames::new(Some(prefix)).collision(), Some(format!("{prefix}.json")));
        }
        for prefix in
            [None, Some("profile_export_aiperf"), Some("inputs.json"), Some("my_inputs"), Some("logs")]
        {
            assert_eq!(FileNames::new(prefix).collision(), None, "{prefix:?}");
        }
    }
}
