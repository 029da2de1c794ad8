//! The structure of our files against those that the reference wrote for the same command against the same answers.
//! Its files are test data of the crates `metrics` and `report`. What differs on purpose is listed here, case by case,
//! and for users in `docs/differences.md`.

mod cases;
mod shown;

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::support::{Live, Mock, Place, Results, keys};

const REGISTRY: &str = include_str!("../../../../metrics/tests/data/metrics.json");

struct Reference {
    summary: &'static str,
    records: &'static str,
    csv: &'static str,
    console: &'static str,
    /// Empty where none was written.
    raw: &'static str,
}

impl Reference {
    fn summary(&self) -> Value {
        serde_json::from_str(self.summary).unwrap()
    }

    fn records(&self) -> Vec<Value> {
        self.records.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// What the case of the reference was run with.
struct Case {
    reference: Reference,
    /// Behind the flags that all cases share.
    flags: &'static str,
    server: &'static [(&'static str, &'static str)],
    ttft_ms: f64,
    itl_ms: f64,
    environment: &'static [(&'static str, &'static str)],
    prefix: Option<&'static str>,
    /// The reference was given a seed. Without one it records none; ours is drawn and recorded.
    seeded: bool,
    /// Metrics that the reference shows and we leave out, and the reverse.
    left_out: &'static [&'static str],
    added: &'static [&'static str],
}

impl Case {
    /// Without flags, and with nothing that differs.
    const fn of(reference: Reference) -> Case {
        Case {
            reference,
            flags: "",
            server: &[],
            ttft_ms: 0.0,
            itl_ms: 0.0,
            environment: &[],
            prefix: None,
            seeded: true,
            left_out: &[],
            added: &[],
        }
    }
}

const COMMON: &str = "--ui none --workers-max 1 --record-processors 1 --no-gpu-telemetry --no-server-metrics";

/// Curves without input: the reference prints rows of zeros.
const EMPTY_CURVES: [&str; 13] = [
    "effective_decode_throughput",
    "effective_prefill_throughput",
    "effective_decode_concurrency",
    "effective_prefill_concurrency",
    "effective_total_throughput",
    "effective_decode_throughput_per_user",
    "effective_prefill_throughput_per_user",
    "tokens_in_flight",
    "active_decode_throughput",
    "active_prefill_throughput",
    "active_decode_throughput_per_user",
    "active_prefill_throughput_per_user",
    "active_total_throughput",
];

/// Ours, directly before `metadata`.
const OURS: [&str; 5] = [
    "observation_window",
    "in_flight_cancelled_count",
    "truncated_stream_count",
    "send_lag",
    "load_delivery",
];

/// The start of the summary, in this order; everything else follows in the order of the registry.
const FIRST: [&str; 25] = [
    "request_throughput",
    "request_latency",
    "request_count",
    "time_to_first_token",
    "time_to_second_token",
    "inter_token_latency",
    "output_token_throughput",
    "output_token_throughput_per_user",
    "output_sequence_length",
    "input_sequence_length",
    "goodput",
    "good_request_count",
    "output_token_count",
    "reasoning_token_count",
    "min_request_timestamp",
    "max_response_timestamp",
    "inter_chunk_latency",
    "total_output_tokens",
    "total_reasoning_tokens",
    "benchmark_duration",
    "total_isl",
    "total_osl",
    "error_request_count",
    "error_isl",
    "total_error_isl",
];

const MIDDLE: [&str; 12] = [
    "telemetry_data",
    "input_config",
    "run_info",
    "was_cancelled",
    "is_complete",
    "incomplete_reason",
    "error_summary",
    "start_time",
    "end_time",
    "branch_stats",
    "warmup_metrics",
    "pooled_spec_decode_acceptance_histogram",
];

fn registry_order() -> Vec<String> {
    let registry: Vec<Value> = serde_json::from_str(REGISTRY).unwrap();
    registry.iter().map(|metric| metric["tag"].as_str().unwrap().to_owned()).collect()
}

impl Case {
    fn is_left_out(&self, tag: &str) -> bool {
        self.left_out.contains(&tag) || tag == "telemetry_data"
    }

    fn command(&self, place: &Place, mock: &Mock) -> Command {
        let mut command = crate::support::aiperf();
        command.current_dir(place.root()).args([
            "profile",
            "--model",
            "mock-model",
            "--tokenizer",
            "builtin",
        ]);
        command.args(COMMON.split_whitespace()).args(self.flags.split_whitespace());
        if self.seeded {
            command.args(["--random-seed", "42"]);
        }
        command.args(["--url", &mock.url(), "--artifact-dir", "out"]);
        for (name, value) in self.environment {
            command.env(name, value);
        }
        command
    }

    fn run(&self, place: &Place) -> (Value, Results) {
        let mock = Mock::start(self.server);
        Live::start(&mut self.command(place, &mock)).end().with_code(0);
        let results = place.results();
        results.assert_all_accounted_for_with(self.prefix);
        let summary = results.json(&match self.prefix {
            None => "profile_export_aiperf.json".to_owned(),
            Some(prefix) => format!("{prefix}.json"),
        });
        (summary, results)
    }

    fn records(&self, results: &Results) -> Vec<Value> {
        results
            .lines(&self.prefix.map_or("profile_export.jsonl".to_owned(), |prefix| format!("{prefix}.jsonl")))
    }

    /// Keys and their order, units, blocks.
    fn assert_summary_has_the_structure(&self, ours: &Value) {
        let theirs = self.reference.summary();
        let order = registry_order();
        let mut expected: BTreeSet<&str> =
            keys(&theirs).into_iter().filter(|key| !self.is_left_out(key)).collect();
        expected.extend(self.added);
        let mut sorted = vec!["schema_version", "aiperf_version", "benchmark_id"];
        sorted.extend(FIRST.iter().chain(&MIDDLE).filter(|key| expected.contains(*key)));
        let head: BTreeSet<&str> = sorted.iter().copied().collect();
        sorted.extend(
            order.iter().map(String::as_str).filter(|tag| expected.contains(tag) && !head.contains(tag)),
        );
        sorted.extend(OURS);
        assert_eq!(keys(ours), sorted);
        assert_eq!(ours["schema_version"], theirs["schema_version"]);
        for (tag, block) in theirs.as_object().unwrap() {
            if block.get("unit").is_none() || self.is_left_out(tag) {
                continue;
            }
            assert_eq!(ours[tag]["unit"], block["unit"], "{tag}");
            if !tag.starts_with("adj_") {
                assert_eq!(keys(&ours[tag]), keys(block), "{tag}");
            }
        }
        let info: Vec<&str> = keys(&ours["run_info"]);
        let info: Vec<&str> = info.into_iter().filter(|key| self.seeded || *key != "random_seed").collect();
        assert_eq!(info, keys(&theirs["run_info"]));
    }

    fn assert_configuration_is_the_same(&self, ours: &Value) {
        let theirs = &self.reference.summary()["input_config"];
        let mut found = ours["input_config"].clone();
        let mut wanted = theirs.clone();
        // Port and folder are this run's own; two flags come later; server metrics were not asked for here.
        for config in [&mut found, &mut wanted] {
            config["endpoint"]["urls"] = Value::Null;
            config["artifacts"]["dir"] = Value::Null;
            config["artifacts"].as_object_mut().unwrap().remove("export_outputs_json");
            config["server_metrics"] = Value::Null;
            if let Some(path) = config["datasets"][0].get_mut("path") {
                *path = Value::Null;
            }
        }
        assert_eq!(found.to_string(), wanted.to_string(), "order counts, too");
    }

    /// Names of rows, section by section.
    fn assert_csv_has_the_rows(&self, results: &Results) {
        let text = results
            .text(&self.prefix.map_or("profile_export_aiperf.csv".to_owned(), |name| format!("{name}.csv")));
        let registry: Vec<Value> = serde_json::from_str(REGISTRY).unwrap();
        let headers = |tags: &[&str]| -> BTreeSet<String> {
            registry
                .iter()
                .filter(|metric| tags.contains(&metric["tag"].as_str().unwrap()))
                .map(|metric| metric["header"].as_str().unwrap().to_owned())
                .collect()
        };
        let (left_out, added) = (headers(self.left_out), headers(self.added));
        let plain = |name: &str| name.trim_matches('"').split(" (").next().unwrap_or_default().to_owned();
        let sections = |text: &str| -> Vec<Vec<String>> {
            text.split("\r\n\r\n")
                .take(2)
                .map(|section| section.split("\r\n").filter(|row| !row.is_empty()).map(first_cell).collect())
                .collect()
        };
        let theirs: Vec<Vec<String>> = sections(self.reference.csv)
            .into_iter()
            .map(|names| names.into_iter().filter(|name| !left_out.contains(&plain(name))).collect())
            .collect();
        let ours: Vec<Vec<String>> = sections(&text)
            .into_iter()
            .map(|names| names.into_iter().filter(|name| !added.contains(&plain(name))).collect())
            .collect();
        assert_eq!(ours, theirs);
        assert_eq!(text.lines().next(), self.reference.csv.lines().next());
    }

    fn assert_records_have_the_structure(&self, results: &Results) {
        let (mut theirs, mut ours) = (self.reference.records(), self.records(results));
        assert_eq!(ours.len(), theirs.len());
        let number = |record: &Value| {
            let metadata = &record["metadata"];
            (metadata["phase_index"].as_u64().unwrap(), metadata["session_num"].as_u64().unwrap())
        };
        theirs.sort_by_key(number);
        ours.sort_by_key(number);
        for (theirs, ours) in theirs.iter().zip(&ours) {
            assert_eq!(number(theirs), number(ours));
            let kind = |record: &Value| record.get("error").is_some();
            if kind(theirs) != kind(ours) {
                // Which requests fail is the business of the case.
                continue;
            }
            self.assert_record_is_alike(theirs, ours);
        }
        for record in &ours {
            self.assert_record_keeps_to_the_servers_times(record);
        }
    }

    fn assert_record_is_alike(&self, theirs: &Value, ours: &Value) {
        const OURS: [&str; 4] = ["scheduled_ns", "due_ns", "stream_complete", "client_delayed"];
        // Whether a cancelled request had its headers by then is a matter of microseconds; the reference drops them.
        let cancelled = ours["metadata"]["was_cancelled"] == true;
        let found: Vec<&str> = keys(&ours["metadata"])
            .into_iter()
            .filter(|key| !(OURS.contains(key) || cancelled && *key == "request_ack_ns"))
            .collect();
        assert_eq!(found, keys(&theirs["metadata"]));
        // Ours come after theirs.
        let last: Vec<&str> = keys(&ours["metadata"]).into_iter().filter(|key| OURS.contains(key)).collect();
        assert!(keys(&ours["metadata"]).ends_with(&last));
        let parts: Vec<&str> = keys(ours);
        assert_eq!(parts, keys(theirs));
        for part in ["trace_data", "spec_decode_acceptance"] {
            assert_eq!(keys(&ours[part]), keys(&theirs[part]), "{part}");
        }
        let set = |record: &Value| -> BTreeSet<String> {
            keys(&record["metrics"])
                .into_iter()
                .filter(|tag| !self.is_left_out(tag) && !self.added.contains(tag))
                // A rate of a measured length of 0 is absent; whether one is met depends on the reads.
                .filter(|tag| *tag != "output_token_throughput_per_user")
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(set(ours), set(theirs));
        for (tag, metric) in theirs["metrics"].as_object().unwrap() {
            let Some(found) = ours["metrics"].get(tag) else { continue };
            assert_eq!(found["unit"], metric["unit"], "{tag}");
            assert_eq!(found["value"].is_array(), metric["value"].is_array(), "{tag}");
            assert_eq!(found["value"].is_f64(), metric["value"].is_f64(), "{tag}: {found} {metric}");
        }
        let error = |record: &Value| (record["error"]["code"].clone(), record["error"]["type"].clone());
        assert_eq!(error(ours), error(theirs));
    }

    /// A client that is early is wrong; how late one may be is measured elsewhere.
    fn assert_record_keeps_to_the_servers_times(&self, record: &Value) {
        let value = |tag: &str| record["metrics"].get(tag).and_then(|metric| metric["value"].as_f64());
        match (value("time_to_first_token"), value("request_latency"), value("usage_completion_tokens")) {
            (Some(ttft), ..) => assert!(ttft >= self.ttft_ms, "{ttft} ms"),
            // A whole answer comes when its last token would.
            (None, Some(latency), Some(tokens)) => {
                assert!(
                    latency >= self.ttft_ms + self.itl_ms * (tokens - 1.0),
                    "{latency} ms for {tokens} tokens"
                );
            }
            _ => {}
        }
        if let Some(Value::Array(chunks)) =
            record["metrics"].get("inter_chunk_latency").map(|metric| &metric["value"])
        {
            let sum: f64 = chunks.iter().map(|gap| gap.as_f64().unwrap()).sum();
            let latency = value("request_latency").unwrap();
            let ttft = value("time_to_first_token").unwrap();
            assert!((ttft + sum - latency).abs() < 1e-6, "{ttft} + {sum} is not {latency}");
            // The last of n chunks comes no earlier than n - 1 gaps after the first was due.
            assert!(latency >= self.ttft_ms + self.itl_ms * chunks.len() as f64, "{latency} ms: {chunks:?}");
        }
    }

    /// Figures that do not depend on time.
    fn assert_counts(&self, ours: &Value, except: &[&str]) {
        let theirs = self.reference.summary();
        let exact = |tag: &str| {
            (tag.starts_with("usage_") || tag.starts_with("total_") || tag.contains("spec_decode"))
                && !tag.contains("throughput")
                || ["request_count", "error_request_count", "input_sequence_length", "output_sequence_length"]
                    .contains(&tag)
                || [
                    "output_token_count",
                    "reasoning_token_count",
                    "osl_mismatch_diff_pct",
                    "completed_request_count",
                ]
                .contains(&tag)
        };
        let mut compared = 0;
        for (tag, block) in theirs.as_object().unwrap() {
            if block.get("unit").is_none()
                || !exact(tag)
                || self.is_left_out(tag)
                || except.contains(&tag.as_str())
            {
                continue;
            }
            for (key, wanted) in block.as_object().unwrap() {
                let Some(wanted) = wanted.as_f64() else { continue };
                let found = ours[tag][key].as_f64().unwrap_or_else(|| panic!("{tag}.{key}"));
                assert!(
                    (found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0),
                    "{tag}.{key}: {found}, not {wanted}"
                );
                compared += 1;
            }
        }
        assert!(compared > 0);
    }

    fn assert_files(&self, results: &Results) {
        self.assert_csv_has_the_rows(results);
        self.assert_console_has_the_rows(results);
        self.assert_raw_lines_have_the_structure_if_any(results);
    }

    fn assert_raw_lines_have_the_structure_if_any(&self, results: &Results) {
        if !self.reference.raw.is_empty() {
            self.assert_raw_lines_have_the_structure(results);
        }
    }

    fn check(&self, except: &[&str]) -> (Value, Results, Place) {
        let place = Place::new();
        let (summary, results) = self.run(&place);
        self.assert_summary_has_the_structure(&summary);
        self.assert_configuration_is_the_same(&summary);
        self.assert_files(&results);
        self.assert_records_have_the_structure(&results);
        self.assert_counts(&summary, except);
        (summary, results, place)
    }
}

fn first_cell(row: &str) -> String {
    match row.strip_prefix('"') {
        Some(rest) => rest.split('"').next().unwrap_or_default().to_owned(),
        None => row.split(',').next().unwrap_or_default().to_owned(),
    }
}
