//! The structure of our files against those that the reference wrote for the same command against the same answers.
//! Its files are test data of the crates `metrics` and `report`. What differs on purpose is listed here, case by case,
//! and for users in `docs/differences.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{Live, Mock, Place, Results, keys};

const REGISTRY: &str = include_str!("../../../metrics/tests/data/metrics.json");

macro_rules! reference {
    ($case:literal) => {
        Reference {
            summary: include_str!(concat!(
                "../../../metrics/tests/data/",
                $case,
                "/profile_export_aiperf.json"
            )),
            records: include_str!(concat!("../../../metrics/tests/data/", $case, "/profile_export.jsonl")),
            csv: include_str!(concat!("../../../report/tests/data/", $case, "/profile_export_aiperf.csv")),
        }
    };
}

struct Reference {
    summary: &'static str,
    records: &'static str,
    csv: &'static str,
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
    /// Metrics that the reference shows and we leave out, and the reverse.
    left_out: &'static [&'static str],
    added: &'static [&'static str],
}

const COMMON: &str = "--ui none --workers-max 1 --record-processors 1 --random-seed 42 --no-gpu-telemetry \
    --no-server-metrics";

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

    fn run(&self, place: &Place) -> (Value, Results) {
        let mock = Mock::start(self.server);
        let mut command = crate::support::aiperf();
        command.current_dir(place.root()).args([
            "profile",
            "--model",
            "mock-model",
            "--tokenizer",
            "builtin",
        ]);
        command.args(COMMON.split_whitespace()).args(self.flags.split_whitespace());
        command.args(["--url", &mock.url(), "--artifact-dir", "out"]);
        for (name, value) in self.environment {
            command.env(name, value);
        }
        Live::start(&mut command).end().with_code(0);
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
        for (theirs, ours) in [(&theirs["run_info"], &ours["run_info"])] {
            assert_eq!(keys(theirs), keys(ours));
        }
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
            .filter(|key| !OURS.contains(key) && !(cancelled && *key == "request_ack_ns"))
            .collect();
        assert_eq!(found, keys(&theirs["metadata"]));
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

    fn check(&self, except: &[&str]) -> (Value, Results, Place) {
        let place = Place::new();
        let (summary, results) = self.run(&place);
        self.assert_summary_has_the_structure(&summary);
        self.assert_configuration_is_the_same(&summary);
        self.assert_csv_has_the_rows(&results);
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

#[test]
fn chat_streaming() {
    let (summary, ..) = Case {
        reference: reference!("chat_streaming"),
        flags: "--endpoint-type chat --streaming --request-count 10 --concurrency 2 --isl 64 --osl 12 --export-level raw \
                --export-http-trace --show-trace-timing",
        server: &[("ttft", "40ms"), ("itl", "10ms"), ("tokens", "16")],
        ttft_ms: 40.0,
        itl_ms: 10.0,
        environment: &[],
        prefix: None,
        left_out: &[],
        added: &[],
    }
    .check(&[]);
    assert_eq!(summary["error_summary"], Value::Array(Vec::new()));
}

#[test]
fn chat_nonstreaming() {
    Case {
        reference: reference!("chat_nonstreaming"),
        flags: "--endpoint-type chat --request-count 8 --concurrency 2 --isl 64 --osl 10 --export-level raw",
        server: &[("ttft", "30ms"), ("itl", "3ms"), ("tokens", "16")],
        ttft_ms: 30.0,
        itl_ms: 3.0,
        environment: &[],
        prefix: None,
        left_out: &EMPTY_CURVES,
        added: &[],
    }
    .check(&[]);
}

#[test]
fn completions_streaming() {
    Case {
        reference: reference!("completions_streaming"),
        flags: "--endpoint-type completions --streaming --request-count 8 --concurrency 1 --isl 32 --osl 8 \
                --export-level raw",
        server: &[("ttft", "30ms"), ("itl", "8ms"), ("tokens", "16")],
        ttft_ms: 30.0,
        itl_ms: 8.0,
        environment: &[],
        prefix: None,
        left_out: &[],
        added: &[],
    }
    .check(&[]);
}

#[test]
fn embeddings() {
    let left_out: Vec<&str> = EMPTY_CURVES.into_iter().chain(["output_sequence_length"]).collect();
    Case {
        reference: reference!("embeddings"),
        flags: "--endpoint-type embeddings --request-count 6 --concurrency 2 --isl 32 --export-level raw",
        server: &[("ttft", "15ms"), ("itl", "5ms"), ("tokens", "16")],
        ttft_ms: 15.0,
        itl_ms: 5.0,
        environment: &[],
        prefix: None,
        left_out: left_out.leak(),
        // The reference reads no usage from embeddings.
        added: &["usage_prompt_tokens", "total_usage_prompt_tokens", "usage_prompt_tokens_diff_pct"],
    }
    .check(&[]);
}

/// One request of each kind. An error object and a chunk that is not JSON fail their requests; the reference lets
/// both pass.
#[test]
fn errors_mix() {
    let case = Case {
        reference: reference!("errors_mix"),
        flags: "--endpoint-type chat --streaming --request-count 10 --concurrency 1 --isl 32 --osl 12 --export-level raw",
        server: &[
            ("ttft", "20ms"),
            ("itl", "4ms"),
            ("tokens", "16"),
            (
                "plan",
                "ok:http500:malformed:midstream_error:sse_error_event:empty:early_close:tools:one:bundle",
            ),
        ],
        ttft_ms: 20.0,
        itl_ms: 4.0,
        environment: &[],
        prefix: None,
        left_out: &[],
        added: &[],
    };
    let place = Place::new();
    let (summary, results) = case.run(&place);
    case.assert_summary_has_the_structure(&summary);
    case.assert_configuration_is_the_same(&summary);
    case.assert_csv_has_the_rows(&results);
    case.assert_records_have_the_structure(&results);
    assert_eq!(summary["request_count"]["avg"], 4.0);
    assert_eq!(summary["error_request_count"]["avg"], 6.0);
    assert_eq!(summary["total_isl"]["avg"], 128.0);
    assert_eq!(summary["total_error_isl"]["avg"], 192.0);
    let groups: Vec<(Value, &str, u64)> = summary["error_summary"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            let details = &group["error_details"];
            (details["code"].clone(), details["type"].as_str().unwrap(), group["count"].as_u64().unwrap())
        })
        .collect();
    let code = |code: u64| Value::from(code);
    assert_eq!(
        groups,
        [
            (code(500), "Internal Server Error", 1),
            (Value::Null, "MalformedResponseError", 1),
            (code(503), "internal", 1),
            (code(502), "SSEResponseError", 1),
            (Value::Null, "InvalidInferenceResultError", 1),
            (Value::Null, "ClientPayloadError", 1),
        ]
    );
    // More than half failed: the upper percentiles are infinite, not absent.
    for tag in ["adj_request_latency", "adj_time_to_first_token"] {
        assert_eq!(summary[tag]["p90"], "inf");
        assert!(summary[tag]["p25"].is_f64());
    }
    assert!(results.text("profile_export_console.txt").contains("inf"));
}

#[test]
fn reasoning() {
    Case {
        reference: reference!("reasoning"),
        flags: "--endpoint-type chat --streaming --request-count 9 --concurrency 1 --isl 32 --osl 12 --export-level raw",
        server: &[
            ("ttft", "20ms"),
            ("itl", "4ms"),
            ("tokens", "16"),
            ("plan", "reasoning:reasoning:ok"),
            ("cached-tokens", "16"),
        ],
        ttft_ms: 20.0,
        itl_ms: 4.0,
        environment: &[],
        prefix: None,
        left_out: &[],
        added: &[],
    }
    .check(&[]);
}

#[test]
fn multi_turn() {
    let case = Case {
        reference: reference!("multi_turn"),
        flags: "--endpoint-type chat --streaming --concurrency 2 --num-conversations 2 --conversation-turn-mean 3 \
                --conversation-turn-stddev 0 --isl 24 --osl 6 --warmup-request-count 2 --export-level raw",
        server: &[("ttft", "15ms"), ("itl", "3ms"), ("tokens", "16")],
        ttft_ms: 15.0,
        itl_ms: 3.0,
        environment: &[],
        prefix: None,
        left_out: &[],
        added: &[],
    };
    let (summary, results, _place) = case.check(&[]);
    let theirs = case.reference.summary();
    let set = |value: &Value| keys(value).into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(set(&summary["warmup_metrics"]), set(&theirs["warmup_metrics"]));
    let manifest: Value =
        serde_json::from_str(include_str!("../../../report/tests/data/multi_turn/phase_manifest.json"))
            .unwrap();
    let ours = results.json("phase_manifest.json");
    assert_eq!(keys(&ours), keys(&manifest));
    for (ours, theirs) in
        ours["phases"].as_array().unwrap().iter().zip(manifest["phases"].as_array().unwrap())
    {
        let timeless = |phase: &Value| -> BTreeMap<String, Value> {
            let map = phase.as_object().unwrap().iter();
            map.filter(|(key, _)| !key.ends_with("_ns"))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        assert_eq!(keys(ours), keys(theirs));
        assert_eq!(timeless(ours), timeless(theirs));
    }
    assert!(results.text("phase_manifest.json").ends_with("}\n"));
    for phase in ["warmup", "profiling"] {
        let reference: Value = serde_json::from_str(match phase {
            "warmup" => {
                include_str!("../../../report/tests/data/multi_turn/phases/warmup/profile_export_aiperf.json")
            }
            _ => include_str!(
                "../../../report/tests/data/multi_turn/phases/profiling/profile_export_aiperf.json"
            ),
        })
        .unwrap();
        let ours = results.json(&format!("phases/{phase}/profile_export_aiperf.json"));
        let expected: BTreeSet<String> = set(&reference).into_iter().chain(OURS.map(str::to_owned)).collect();
        let found = set(&ours);
        assert!(found.is_subset(&expected), "{phase}: {:?}", found.difference(&expected).collect::<Vec<_>>());
        assert!(set(&reference).is_subset(&found), "{phase}: {found:?}");
    }
}

#[test]
fn fixed_schedule() {
    let case = Case {
        reference: reference!("fixed_schedule"),
        flags: "--endpoint-type chat --streaming --input-file trace.jsonl --custom-dataset-type mooncake_trace \
                --fixed-schedule --export-level records",
        server: &[("ttft", "15ms"), ("itl", "3ms"), ("tokens", "16")],
        ttft_ms: 15.0,
        itl_ms: 3.0,
        environment: &[],
        prefix: None,
        left_out: &[],
        added: &[],
    };
    let trace = include_str!("../../../metrics/tests/data/fixed_schedule/trace.jsonl");
    let place = Place::new();
    place.write("trace.jsonl", trace);
    let (summary, results) = case.run(&place);
    case.assert_summary_has_the_structure(&summary);
    case.assert_configuration_is_the_same(&summary);
    case.assert_csv_has_the_rows(&results);
    case.assert_records_have_the_structure(&results);
    // Its prompts came out up to 12 tokens longer than asked for; ours are exact.
    case.assert_counts(
        &summary,
        &[
            "usage_prompt_tokens",
            "usage_total_tokens",
            "usage_prompt_tokens_diff_pct",
            "total_usage_prompt_tokens",
            "total_usage_total_tokens",
        ],
    );
    // Each was sent in the order of its time, never before it.
    let mut records = results.records();
    records.sort_by_key(|record| record["metadata"]["session_num"].as_u64());
    let rows: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut times: Vec<f64> = rows.iter().map(|row| row["timestamp"].as_f64().unwrap()).collect();
    times.sort_by(f64::total_cmp);
    let scheduled: Vec<u64> =
        records.iter().map(|record| record["metadata"]["scheduled_ns"].as_u64().unwrap()).collect();
    for (record, (scheduled, time)) in records.iter().zip(scheduled.iter().zip(&times)) {
        let offset_ms = (scheduled - scheduled_start(&records)) as f64 / 1e6;
        assert!((offset_ms - (time - times[0])).abs() < 0.001, "{offset_ms} ms, not {time} ms");
        assert!(record["metadata"]["request_start_ns"].as_u64().unwrap() >= *scheduled);
    }
}

fn scheduled_start(records: &[Value]) -> u64 {
    records.iter().map(|record| record["metadata"]["scheduled_ns"].as_u64().unwrap()).min().unwrap()
}

#[test]
fn server_tokens_spec() {
    let (summary, ..) = Case {
        reference: reference!("server_tokens_spec"),
        flags: "--endpoint-type chat --streaming --request-count 6 --concurrency 1 --isl 24 --osl 12 \
                --use-server-token-count --per-chunk-usage --export-level raw",
        server: &[
            ("ttft", "30ms"),
            ("itl", "8ms"),
            ("tokens", "16"),
            ("plan", "bundle:ok:reasoning"),
            ("cached-tokens", "8"),
            ("spec-decode", "true"),
        ],
        ttft_ms: 30.0,
        itl_ms: 8.0,
        environment: &[("AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS", "1")],
        prefix: None,
        left_out: &[],
        added: &[],
    }
    .check(&[]);
    assert!(summary["pooled_spec_decode_acceptance_histogram"].is_object());
}

/// Which requests are cancelled is drawn; the draws are ours.
#[test]
fn cancel_dev() {
    let case = Case {
        reference: reference!("cancel_dev"),
        flags: "--endpoint-type chat --streaming --request-count 10 --concurrency 2 --isl 24 --osl 10 \
                --request-cancellation-rate 40 --request-cancellation-delay 0.02 --network-latency-mean 5 \
                --profile-export-prefix demo --export-level raw",
        server: &[("ttft", "30ms"), ("itl", "6ms"), ("tokens", "16")],
        ttft_ms: 30.0,
        itl_ms: 6.0,
        environment: &[
            ("AIPERF_DEV_MODE", "1"),
            ("AIPERF_DEV_SHOW_INTERNAL_METRICS", "1"),
            ("AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS", "1"),
        ],
        prefix: Some("demo"),
        left_out: &[],
        added: &[],
    };
    let place = Place::new();
    let (summary, results) = case.run(&place);
    case.assert_summary_has_the_structure(&summary);
    case.assert_configuration_is_the_same(&summary);
    case.assert_csv_has_the_rows(&results);
    case.assert_records_have_the_structure(&results);
    let records = case.records(&results);
    let cancelled: Vec<&Value> =
        records.iter().filter(|record| record["metadata"]["was_cancelled"] == true).collect();
    assert!(!cancelled.is_empty() && cancelled.len() < 10);
    for record in cancelled {
        assert_eq!(record["error"]["code"], 499);
        assert_eq!(record["error"]["type"], "RequestCancellationError");
        let at = |key: &str| record["metadata"][key].as_u64().unwrap();
        assert!(at("cancellation_time_ns") >= at("request_start_ns") + 20_000_000);
    }
    for tag in ["time_to_first_token", "request_latency"] {
        let adjusted = summary[format!("network_adjusted_{tag}")]["avg"].as_f64().unwrap();
        assert!((summary[tag]["avg"].as_f64().unwrap() - 5.0 - adjusted).abs() < 1e-6);
    }
    assert_eq!(
        results.files().iter().filter(|name| name.starts_with("demo")).count(),
        5,
        "json, csv, jsonl, raw, console"
    );
}
