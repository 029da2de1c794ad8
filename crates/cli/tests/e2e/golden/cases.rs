//! The cases, one by one, and what each differs in.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::Signal;
use serde_json::Value;

use super::{Case, EMPTY_CURVES, OURS, Reference};
use crate::support::{Live, Mock, Place, keys};

macro_rules! reference {
    ($case:literal) => {
        reference!(
            $case,
            include_str!(concat!("../../../../metrics/tests/data/", $case, "/profile_export_raw.jsonl"))
        )
    };
    ($case:literal, $raw:expr) => {
        Reference {
            summary: include_str!(concat!(
                "../../../../metrics/tests/data/",
                $case,
                "/profile_export_aiperf.json"
            )),
            records: include_str!(concat!("../../../../metrics/tests/data/", $case, "/profile_export.jsonl")),
            csv: include_str!(concat!("../../../../report/tests/data/", $case, "/profile_export_aiperf.csv")),
            console: include_str!(concat!(
                "../../../../report/tests/data/",
                $case,
                "/profile_export_console.txt"
            )),
            raw: $raw,
        }
    };
}

#[test]
fn chat_streaming() {
    let (summary, ..) = Case {
        flags: "--endpoint-type chat --streaming --request-count 10 --concurrency 2 --isl 64 --osl 12 --export-level raw \
                --export-http-trace --show-trace-timing",
        server: &[("ttft", "40ms"), ("itl", "10ms"), ("tokens", "16")],
        ttft_ms: 40.0,
        itl_ms: 10.0,
        ..Case::of(reference!("chat_streaming"))
    }
    .check(&[]);
    assert_eq!(summary["error_summary"], Value::Array(Vec::new()));
}

#[test]
fn chat_nonstreaming() {
    Case {
        flags: "--endpoint-type chat --request-count 8 --concurrency 2 --isl 64 --osl 10 --export-level raw",
        server: &[("ttft", "30ms"), ("itl", "3ms"), ("tokens", "16")],
        ttft_ms: 30.0,
        itl_ms: 3.0,
        left_out: &EMPTY_CURVES,
        ..Case::of(reference!("chat_nonstreaming"))
    }
    .check(&[]);
}

#[test]
fn completions_streaming() {
    Case {
        flags: "--endpoint-type completions --streaming --request-count 8 --concurrency 1 --isl 32 --osl 8 \
                --export-level raw",
        server: &[("ttft", "30ms"), ("itl", "8ms"), ("tokens", "16")],
        ttft_ms: 30.0,
        itl_ms: 8.0,
        ..Case::of(reference!("completions_streaming"))
    }
    .check(&[]);
}

#[test]
fn embeddings() {
    let left_out: Vec<&str> = EMPTY_CURVES.into_iter().chain(["output_sequence_length"]).collect();
    Case {
        flags: "--endpoint-type embeddings --request-count 6 --concurrency 2 --isl 32 --export-level raw",
        server: &[("ttft", "15ms"), ("itl", "5ms"), ("tokens", "16")],
        ttft_ms: 15.0,
        itl_ms: 5.0,
        left_out: left_out.leak(),
        // The reference reads no usage from embeddings.
        added: &["usage_prompt_tokens", "total_usage_prompt_tokens", "usage_prompt_tokens_diff_pct"],
        ..Case::of(reference!("embeddings"))
    }
    .check(&[]);
}

/// One request of each kind. An error object and a chunk that is not JSON fail their requests; the reference lets
/// both pass.
#[test]
fn errors_mix() {
    let case = Case {
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
        ..Case::of(reference!("errors_mix"))
    };
    let place = Place::new();
    let (summary, results) = case.run(&place);
    case.assert_summary_has_the_structure(&summary);
    case.assert_configuration_is_the_same(&summary);
    case.assert_files(&results);
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
        ..Case::of(reference!("reasoning"))
    }
    .check(&[]);
}

#[test]
fn multi_turn() {
    let case = Case {
        flags: "--endpoint-type chat --streaming --concurrency 2 --num-conversations 2 --conversation-turn-mean 3 \
                --conversation-turn-stddev 0 --isl 24 --osl 6 --warmup-request-count 2 --export-level raw",
        server: &[("ttft", "15ms"), ("itl", "3ms"), ("tokens", "16")],
        ttft_ms: 15.0,
        itl_ms: 3.0,
        ..Case::of(reference!("multi_turn"))
    };
    let (summary, results, _place) = case.check(&[]);
    let theirs = case.reference.summary();
    let set = |value: &Value| keys(value).into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(set(&summary["warmup_metrics"]), set(&theirs["warmup_metrics"]));
    let manifest: Value =
        serde_json::from_str(include_str!("../../../../report/tests/data/multi_turn/phase_manifest.json"))
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
    let theirs: Value =
        serde_json::from_str(include_str!("../../../../report/tests/data/multi_turn/inputs.json")).unwrap();
    let inputs = results.json("inputs.json");
    let shape = |inputs: &Value| -> Vec<(String, Vec<String>)> {
        let sessions = inputs["data"].as_array().unwrap().iter();
        sessions
            .map(|session| {
                assert_eq!(keys(session), ["session_id", "payloads"]);
                let payloads = session["payloads"].as_array().unwrap().iter();
                (session["session_id"].to_string(), payloads.map(|payload| keys(payload).join(",")).collect())
            })
            .collect()
    };
    assert_eq!(shape(&inputs), shape(&theirs));
    for phase in ["warmup", "profiling"] {
        let reference: Value = serde_json::from_str(match phase {
            "warmup" => {
                include_str!(
                    "../../../../report/tests/data/multi_turn/phases/warmup/profile_export_aiperf.json"
                )
            }
            _ => include_str!(
                "../../../../report/tests/data/multi_turn/phases/profiling/profile_export_aiperf.json"
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
        flags: "--endpoint-type chat --streaming --input-file trace.jsonl --custom-dataset-type mooncake_trace \
                --fixed-schedule --export-level records",
        server: &[("ttft", "15ms"), ("itl", "3ms"), ("tokens", "16")],
        ttft_ms: 15.0,
        itl_ms: 3.0,
        ..Case::of(reference!("fixed_schedule", ""))
    };
    let trace = include_str!("../../../../metrics/tests/data/fixed_schedule/trace.jsonl");
    let place = Place::new();
    place.write("trace.jsonl", trace);
    let (summary, results) = case.run(&place);
    case.assert_summary_has_the_structure(&summary);
    case.assert_configuration_is_the_same(&summary);
    case.assert_files(&results);
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
        ..Case::of(reference!("server_tokens_spec"))
    }
    .check(&[]);
    assert!(summary["pooled_spec_decode_acceptance_histogram"].is_object());
}

/// Which requests are cancelled is drawn; the draws are ours.
#[test]
fn cancel_dev() {
    let case = Case {
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
        ..Case::of(reference!("cancel_dev"))
    };
    let place = Place::new();
    let (summary, results) = case.run(&place);
    case.assert_summary_has_the_structure(&summary);
    case.assert_configuration_is_the_same(&summary);
    case.assert_files(&results);
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

/// How many requests there were by the signal is a matter of time; what is written about them is not.
#[test]
fn sigint() {
    let case = Case {
        flags: "--endpoint-type chat --streaming --concurrency 3 --benchmark-duration 30 --isl 24 --osl 20 --stats-interval 1",
        server: &[("ttft", "200ms"), ("itl", "20ms"), ("tokens", "16")],
        ttft_ms: 200.0,
        itl_ms: 20.0,
        seeded: false,
        ..Case::of(reference!("sigint", ""))
    };
    let (place, mock) = (Place::new(), Mock::start(case.server));
    let live = Live::start(&mut case.command(&place, &mock));
    mock.until(|stats| stats.requests >= 9);
    live.signal(Signal::INT);
    let ran = live.end().with_code(0);
    let results = place.results();
    results.assert_complete(true);
    results.assert_all_accounted_for();
    let summary = results.summary();
    case.assert_summary_has_the_structure(&summary);
    case.assert_configuration_is_the_same(&summary);
    // The reference's table of an interrupted run has the curves among the other rows.
    case.assert_csv_has_the_rows(&results);
    assert_eq!(summary["is_complete"], false);
    let theirs = &case.reference.records()[0];
    let ours = results.records();
    assert!(ours.len() >= 3, "{ours:?}");
    for record in &ours {
        case.assert_record_is_alike(theirs, record);
        case.assert_record_keeps_to_the_servers_times(record);
    }
    for words in ["INCOMPLETE RESULTS", "sec (cancelled early)", "The run was cancelled early"] {
        assert!(ran.out.contains(words), "{words}: {}", ran.out);
    }
}
