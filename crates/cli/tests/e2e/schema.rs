//! What the program writes is what the published schemas say.
//! <https://github.com/ai-dynamo/aiperf/issues/340>: results had other keys than those of the predecessor, and nothing
//! but a run told which.

mod validator;

use std::path::Path;

use aiperf_metrics::registry;
use serde_json::{Value, json};

use self::validator::problems;
use crate::support::{Mock, Place};

fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn summary_schema() -> Value {
    schema("profile_export_aiperf.schema.json")
}

fn record_schema() -> Value {
    schema("profile_export.schema.json")
}

/// Checks the files of a run, those of its phases too.
#[track_caller]
pub(crate) fn assert_valid(place: &Place) {
    let results = place.results();
    let schema = summary_schema();
    let mut seen = 0;
    for name in results.files().iter().filter(|name| name.ends_with("profile_export_aiperf.json")) {
        assert_eq!(problems(&schema, &results.json(name)), Vec::<String>::new(), "{name}");
        seen += 1;
    }
    assert!(seen > 0);
    let schema = record_schema();
    for record in results.records() {
        assert_eq!(problems(&schema, &record), Vec::<String>::new(), "{record}");
    }
}

#[test]
fn aiperf_340_files_of_a_streaming_run_with_warmup_failures_and_traces_follow_the_schema() {
    let place = Place::new();
    let line = "--streaming --concurrency 3 --request-count 24 --warmup-request-count 3 --isl 16 \
                --export-http-trace --num-conversations 12 --conversation-turn-mean 2";
    place
        .run("mock://?ttft=1ms&itl=1ms&tokens=5&plan=ok*6:reasoning:http429:sse_error_event", line)
        .with_code(0);
    assert_valid(&place);
    let summary = place.results().summary();
    for key in ["warmup_metrics", "adj_request_latency", "reasoning_token_count", "load_delivery"] {
        assert!(summary.get(key).is_some(), "{key}");
    }
}

#[test]
fn aiperf_340_files_of_runs_of_other_kinds_follow_the_schema() {
    for line in [
        "--request-rate 300 --concurrency 2 --request-count 12 --isl 16 --use-server-token-count",
        "--endpoint-type completions --streaming --request-rate 300 --request-count 12 --isl 16",
        "--endpoint-type embeddings --request-count 6 --isl 16",
        "--endpoint-type cohere-rankings --request-count 6 --rankings-query-prompt-token-mean 8",
        "--request-count 10 --concurrency 4 --isl 16 --streaming --request-cancellation-rate 50",
    ] {
        let place = Place::new();
        place.run("mock://?ttft=1ms&itl=1ms&tokens=4&spec-decode=true", line).with_code(0);
        assert_valid(&place);
    }
}

#[test]
fn aiperf_340_files_of_a_schedule_and_of_a_run_that_failed_follow_the_schema() {
    let place = Place::new();
    let rows = (0..6).map(|row| json!({"timestamp": row * 5, "input_length": 16, "output_length": 3}));
    let file = place.write("trace.jsonl", rows.map(|row| row.to_string()).collect::<Vec<_>>().join("\n"));
    let line = format!("--streaming --custom-dataset-type mooncake_trace --input-file {file}");
    place.run("mock://?ttft=1ms&itl=1ms", &line).with_code(0);
    assert_valid(&place);

    let place = Place::new();
    let mock = Mock::start(&[("plan", "http500")]);
    place.run(&mock.url(), "--request-count 3 --isl 16").with_code(1);
    assert_valid(&place);
}

/// Every metric of the program is in the schemas, with its unit.
#[test]
fn aiperf_340_the_schemas_list_every_metric() {
    let (summary, record) = (summary_schema(), record_schema());
    let blocks = summary["$defs"]["metrics"]["properties"].as_object().unwrap();
    let lines = record["properties"]["metrics"]["properties"].as_object().unwrap();
    let tags: Vec<&str> = registry::all().map(|metric| metric.tag).collect();
    for tag in blocks.keys() {
        assert!(tags.contains(&tag.as_str()), "there is no metric {tag}");
    }
    for metric in registry::all() {
        let block = blocks.get(metric.tag).unwrap_or_else(|| panic!("{} is in no schema", metric.tag));
        assert_eq!(block["properties"]["unit"]["const"], metric.display_unit, "{}", metric.tag);
        assert_eq!(block["description"].as_str().unwrap_or_default(), metric.header, "{}", metric.tag);
        let line = lines.get(metric.tag);
        assert_eq!(line.is_some(), metric.per_record_export, "{}", metric.tag);
        if let Some(line) = line {
            assert_eq!(line["properties"]["unit"]["const"], metric.display_unit, "{}", metric.tag);
        }
    }
}

/// A check that lets everything pass would pass every test above.
#[test]
fn the_schema_check_finds_what_is_wrong() {
    let schema = json!({
        "type": "object",
        "required": ["a"],
        "allOf": [{"$ref": "#/$defs/more"}],
        "properties": {"a": {"type": "integer", "minimum": 0}, "b": {"enum": ["x", "y"]}},
        "$defs": {"more": {"type": "object", "properties": {"c": {"type": "array", "items": {"const": 1}}}}},
    });
    assert_eq!(problems(&schema, &json!({"a": 0, "b": "x", "c": [1, 1]})), Vec::<String>::new());
    for (wrong, what) in [
        (json!({}), ": no member a"),
        (json!([]), ": not of type object"),
        (json!({"a": 1.5}), ".a: not of type integer"),
        (json!({"a": -1}), ".a: below 0"),
        (json!({"a": 1, "b": "z"}), ".b: none of"),
        (json!({"a": 1, "c": [2]}), ".c.0: not 1"),
        (json!({"a": 1, "d": 2}), ": unknown member d"),
        (json!({"a": null}), ".a: not of type integer"),
    ] {
        let found = problems(&schema, &wrong);
        assert!(found.iter().any(|problem| problem.starts_with(what)), "{wrong}: {found:?}");
    }
    let unsupported = std::panic::catch_unwind(|| problems(&json!({"dependentSchemas": {}}), &json!({})));
    assert!(unsupported.is_err());
}
