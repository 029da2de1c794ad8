//! Runs made of published results, so that exports can be compared with the files they came from.
#![allow(dead_code, clippy::unwrap_used, reason = "test code, of which each test file uses a part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aiperf_clock::{Anchor, Mono};
use aiperf_config::{
    DatasetConfig, DatasetSource, EndpointConfig, EndpointKind, ExportLevel, LoadMode, Normal, OutputConfig,
    PhaseConfig, RampTimes, RunConfig, RuntimeConfig, Sampling, SecretUrl, StopRule, SyntheticDataset,
    Target, TokenizerConfig, TokenizerSource, Tuning, Ui,
};
use aiperf_metrics::{Block, ErrorGroup, Metric, RecordValues, Summary, Value as Measured, registry};
use aiperf_report::{PhaseResults, Redactor, RunResults};
use aiperf_types::{
    Answer, Body, HttpTrace, Identity, Packet, PhaseKind, PlanInstants, RawEvent, RawResponse, RequestError,
    RequestFacts, RequestRecord, SpecDecode, TokenCounts, TransportFacts, Usage,
};
use serde_json::{Map, Value};
use url::Url;

/// A file of a published case.
pub(crate) fn golden(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn golden_json(path: &str) -> Value {
    serde_json::from_str(&golden(path)).unwrap()
}

/// A chat run into `dir`.
pub(crate) fn config(dir: &Path) -> RunConfig {
    let normal = |mean| Normal { mean, stddev: 0.0 };
    let url = "http://127.0.0.1:18431";
    RunConfig {
        benchmark_id: "0123456789ab".into(),
        seed: 42,
        seed_given: true,
        models: vec!["mock-model".into()],
        endpoint: EndpointConfig {
            streaming: true,
            ..EndpointConfig::new(
                EndpointKind::Chat,
                Target::Server(SecretUrl::new(Url::parse(url).unwrap(), url)),
            )
        },
        dataset: DatasetConfig {
            cache_bust: None,
            public: None,
            source: DatasetSource::Synthetic(SyntheticDataset::new(1, normal(64.0))),
            sampling: Sampling::Sequential,
            inter_turn_delay_cap: None,
            osl: None,
            system_prompt: None,
            corpus: None,
        },
        tokenizer: TokenizerConfig {
            source: TokenizerSource::Builtin,
            revision: "main".into(),
            apply_chat_template: false,
        },
        phases: vec![PhaseConfig {
            ends_by_default: false,
            kind: PhaseKind::Profiling,
            mode: LoadMode::Burst,
            concurrency: Some(2),
            ramps: RampTimes::default(),
            stop: StopRule::default(),
            grace: None,
            cancellation: None,
            idle_gap_cap: None,
        }],
        failed_request_threshold: None,
        network_latency_mean_ms: None,
        output: OutputConfig {
            dir: dir.to_owned(),
            prefix: None,
            level: ExportLevel::Records,
            http_trace: false,
            show_trace_timing: false,
            show_internal_metrics: false,
            show_experimental_metrics: false,
        },
        runtime: RuntimeConfig {
            workers: None,
            record_processors: None,
            ui: Ui::None,
            stats_interval: None,
            log_level: 2,
        },
        tuning: Tuning::default(),
        strict_load: false,
        remote: None,
        cli_command: "aiperf profile --model 'mock-model'".into(),
        input_config: Value::Object(Map::new()),
    }
}

/// The configuration of a published case.
pub(crate) fn config_of(summary: &Value, dir: &Path) -> RunConfig {
    let mut config = config(dir);
    config.benchmark_id = text(&summary["benchmark_id"]);
    config.input_config = summary["input_config"].clone();
    config.cli_command = text(&summary["run_info"]["cli_command"]);
    config.endpoint.kind = match summary["input_config"]["endpoint"]["type"].as_str() {
        Some("embeddings") => EndpointKind::Embeddings,
        Some("completions") => EndpointKind::Completions,
        _ => EndpointKind::Chat,
    };
    config
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The metric blocks of a published summary.
pub(crate) fn blocks_of(summary: &Value) -> Vec<(Metric, Block)> {
    registry::all()
        .filter_map(|def| {
            let block = summary.get(def.tag)?;
            let figure = |name: &str| block.get(name).and_then(Value::as_f64);
            let block = Block {
                unit: def.display_unit,
                avg: figure("avg"),
                p1: figure("p1"),
                p5: figure("p5"),
                p10: figure("p10"),
                p25: figure("p25"),
                p50: figure("p50"),
                p75: figure("p75"),
                p90: figure("p90"),
                p95: figure("p95"),
                p99: figure("p99"),
                min: figure("min"),
                max: figure("max"),
                std: figure("std"),
                count: block.get("count").and_then(Value::as_u64),
                sum: figure("sum"),
            };
            Some((def.metric, block))
        })
        .collect()
}

pub(crate) fn error_of(value: &Value) -> RequestError {
    RequestError {
        code: value["code"].as_i64(),
        kind: text(&value["type"]),
        message: text(&value["message"]),
        cause: value["cause"].as_str().map(str::to_owned),
        cause_chain: value["cause_chain"].as_array().into_iter().flatten().map(text).collect(),
        retry_after: None,
    }
}

/// Everything a published summary says of its records.
pub(crate) fn summary_of(summary: &Value) -> Summary {
    let count = |tag: &str| summary[tag]["avg"].as_f64().unwrap_or(0.0) as u64;
    let groups = summary["error_summary"].as_array().into_iter().flatten();
    Summary {
        blocks: blocks_of(summary),
        valid_count: count("request_count"),
        failed_count: count("error_request_count"),
        error_groups: groups
            .map(|group| ErrorGroup {
                error: error_of(&group["error_details"]),
                count: group["count"].as_u64().unwrap(),
            })
            .collect(),
        pooled_spec_decode_acceptance_histogram: summary["pooled_spec_decode_acceptance_histogram"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(accepted, steps)| (accepted.parse().unwrap(), steps.as_u64().unwrap()))
            .collect(),
        ..Summary::default()
    }
}

pub(crate) fn phase(kind: PhaseKind, index: u16, summary: Summary) -> PhaseResults {
    PhaseResults {
        kind,
        index,
        start: Mono(1_000_000_000),
        end: Mono(2_000_000_000),
        sent_count: summary.record_count(),
        summary,
        was_cancelled: false,
        in_flight_cancelled_count: 0,
        branches: None,
        load_delivery: None,
    }
}

pub(crate) fn results(config: &RunConfig, phases: Vec<PhaseResults>) -> RunResults<'_> {
    RunResults {
        config,
        version: "0.1.0",
        redactor: Redactor::new(config),
        phases,
        was_cancelled: false,
        incomplete_reason: None,
        token_source: "builtin".into(),
        written: Vec::new(),
        has_partial_file: false,
        log_file: None,
        has_log_gaps: false,
    }
}

/// The run of a published case, to be written into `dir`.
pub(crate) fn run_of<'c>(config: &'c RunConfig, summary: &Value) -> RunResults<'c> {
    let mut phases = Vec::new();
    if let Some(warmup) = summary.get("warmup_metrics") {
        phases.push(phase(PhaseKind::Warmup, 0, summary_of(warmup)));
    }
    phases.push(phase(PhaseKind::Profiling, phases.len() as u16, summary_of(summary)));
    let mut results = results(config, phases);
    results.was_cancelled = summary["was_cancelled"] == true;
    results.incomplete_reason = summary["incomplete_reason"].as_str().map(str::to_owned);
    results
}

/// A published record line, with the raw line beside it, as a record and its values. Each such line has its own
/// pair of clock readings.
pub(crate) fn record_of(line: &Value, raw: Option<&Value>) -> (RequestRecord, RecordValues, Anchor) {
    let metadata = &line["metadata"];
    let start_wall = metadata["request_start_ns"].as_u64().unwrap();
    let start = Mono(raw.and_then(|raw| raw["start_perf_ns"].as_u64()).unwrap_or(1_000_000_000_000));
    let anchor = Anchor::fixed(start, start_wall);
    let instant = |value: &Value| value.as_u64().map(|wall| anchor.mono(wall));
    let trace = &line["trace_data"];
    let span = |from: &str, until: &str| Some((instant(&trace[from])?, instant(&trace[until])?));
    let correlation_id: Arc<str> = text(&metadata["x_correlation_id"]).into();
    let phase =
        if metadata["benchmark_phase"] == "warmup" { PhaseKind::Warmup } else { PhaseKind::Profiling };
    let issued = instant(&metadata["credit_issued_ns"]).unwrap();
    let facts = trace.is_object().then(|| {
        let address = |ip: &str, port: &str| {
            format!("{}:{}", trace[ip].as_str().unwrap(), trace[port]).parse().unwrap()
        };
        Box::new(TransportFacts {
            writes: vec![(instant(&trace["request_send_end_ns"]).unwrap(), 436)],
            reads: vec![(Mono(start.0 + 5), 100), (Mono(start.0 + 9), 2_604)],
            reason: text(&trace["response_reason"]),
            response_headers: headers(&trace["response_headers"]),
            local: Some(address("local_ip", "local_port")),
            remote: Some(address("remote_ip", "remote_port")),
        })
    });
    let record = RequestRecord {
        identity: Identity {
            number: metadata["session_num"].as_u64().unwrap(),
            request_id: text(&metadata["x_request_id"]).as_bytes().try_into().unwrap(),
            correlation_id,
            conversation_id: text(&metadata["conversation_id"]).into(),
            turn_index: metadata["turn_index"].as_u64().unwrap() as u32,
            phase,
            phase_index: metadata["phase_index"].as_u64().unwrap() as u16,
            worker: 0,
            lineage: None,
            source: None,
        },
        plan: PlanInstants { due: issued, let_go: issued, issued, ..PlanInstants::default() },
        start,
        headers: instant(&metadata["request_ack_ns"]),
        end: instant(&metadata["request_end_ns"]).unwrap(),
        trace: HttpTrace {
            pool_wait: None,
            dns: None,
            connect: span("tcp_connect_start_ns", "tcp_connect_end_ns"),
            tls: None,
            reused: trace["connection_reused_ns"].is_u64(),
            send_start: instant(&trace["request_send_start_ns"]),
            headers_sent: instant(&trace["request_headers_sent_ns"]),
            send_end: instant(&trace["request_send_end_ns"]),
            receive_start: instant(&trace["response_receive_start_ns"]),
            receive_end: instant(&trace["response_receive_end_ns"]),
            chunks_sent: trace["request_chunks_count"].as_u64().unwrap_or(0) as u32,
            chunks_received: trace["response_chunks_count"].as_u64().unwrap_or(0) as u32,
            bytes_sent: trace["request_bytes_total"].as_u64().unwrap_or(0),
            bytes_received: trace["response_bytes_total"].as_u64().unwrap_or(0),
            facts,
        },
        status: raw
            .and_then(|raw| raw["status"].as_u64())
            .map_or(metadata["request_ack_ns"].is_u64().then_some(200), |status| Some(status as u16)),
        request: RequestFacts {
            body: raw
                .map_or_else(Body::default, |raw| Body::single(serde_json::to_vec(&raw["payload"]).unwrap())),
            headers: trace
                .get("request_headers")
                .or_else(|| raw.and_then(|raw| raw.get("request_headers")))
                .map(headers),
            ..RequestFacts::default()
        },
        answer: Answer {
            raw: raw.and_then(|raw| raw_response(&raw["responses"])),
            spec_decode: line.get("spec_decode_acceptance").map(spec_decode),
            usage: Some(Usage {
                completion_tokens: line["spec_decode_acceptance"]["completion_tokens"].as_u64(),
                ..Usage::default()
            }),
            ..Answer::default()
        },
        tokens: TokenCounts::default(),
        error: line.get("error").map(error_of),
        cancelled_at: instant(&metadata["cancellation_time_ns"]),
        context_overflow: false,
        client_delayed: false,
    };
    (record, values_of(&line["metrics"]), anchor)
}

fn headers(value: &Value) -> Vec<(String, String)> {
    value.as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

fn raw_response(responses: &Value) -> Option<RawResponse> {
    let responses = responses.as_array()?;
    let at = |value: &Value| Mono(value["perf_ns"].as_u64().unwrap());
    match responses.first() {
        None => None,
        Some(first) if first.get("text").is_some() => Some(RawResponse::Text {
            at: at(first),
            text: text(&first["text"]),
            content_type: text(&first["content_type"]),
        }),
        Some(_) => {
            let packets = |event: &Value| {
                let packets = event["packets"].as_array().unwrap().iter();
                packets
                    .map(|packet| Packet { name: text(&packet["name"]), value: text(&packet["value"]) })
                    .collect()
            };
            Some(RawResponse::Events(
                responses.iter().map(|event| RawEvent { at: at(event), packets: packets(event) }).collect(),
            ))
        }
    }
}

fn spec_decode(value: &Value) -> SpecDecode {
    let count = |name: &str| value[name].as_u64();
    let histogram = value["acceptance_histogram"].as_object().unwrap();
    let mut buckets = vec![0; count("num_spec_tokens").unwrap() as usize + 1];
    for (accepted, steps) in histogram {
        buckets[accepted.parse::<usize>().unwrap()] = steps.as_u64().unwrap();
    }
    SpecDecode {
        acceptance_histogram: buckets,
        num_spec_steps: count("num_spec_steps").unwrap(),
        num_spec_tokens: count("num_spec_tokens"),
        draft_tokens: count("num_draft_tokens"),
        accepted_draft_tokens: count("num_accepted_draft_tokens"),
        mean_acceptance_length: value["mean_acceptance_length"].as_f64(),
        raw: None,
    }
}

fn values_of(metrics: &Value) -> RecordValues {
    let mut values = RecordValues::new();
    for (tag, metric) in metrics.as_object().unwrap() {
        let metric_id = Metric::from_tag(tag).unwrap_or_else(|| panic!("unknown metric {tag}"));
        let list: Vec<f64>;
        let value = match &metric["value"] {
            Value::Array(items) => {
                list = items.iter().map(|item| item.as_f64().unwrap()).collect();
                Measured::List(&list)
            }
            value if value.is_i64() => Measured::Int(value.as_i64().unwrap()),
            value => Measured::Float(value.as_f64().unwrap()),
        };
        values.insert(metric_id, value);
    }
    values
}

/// Keys of an object, in order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Every file below a folder.
pub(crate) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}
