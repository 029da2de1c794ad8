//! Faults that users of tools like this one have met, each held off by a test of its own that names the public report.
//! Those that a crate can show by itself are tested there.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Echo, Live, Mock, Place, chat, http};

const QUICK: &str = "mock://?ttft=1ms&itl=0&tokens=3";

fn scheduled(place: &Place) -> Vec<u64> {
    let mut times: Vec<u64> = place
        .results()
        .records()
        .iter()
        .map(|record| record["metadata"]["scheduled_ns"].as_u64().unwrap())
        .collect();
    times.sort_unstable();
    times
}

fn only_error(summary: &Value) -> &Value {
    assert_eq!(summary["error_summary"].as_array().unwrap().len(), 1, "{}", summary["error_summary"]);
    &summary["error_summary"][0]["error_details"]
}

/// <https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/issues/166>: nobody could tell from which instant
/// a latency starts.
#[test]
fn glm_5_3_flash_166_the_report_says_where_latency_starts() {
    let place = Place::new();
    let ran = place.run(QUICK, "--streaming --request-count 6 --isl 16").with_code(0);
    for name in ["Latency   from send p50 ", "TTFT      from send p50 "] {
        let line = ran.out.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{}", ran.out));
        assert!(line.contains("from intended start p50"), "{line}");
    }
    assert!(ran.out.contains("send lag p99"));
}

/// <https://github.com/vllm-project/vllm/issues/13412>: a closed loop sends faster the faster answers come; the rate
/// it came to is part of the result.
#[test]
fn vllm_13412_a_closed_loop_tells_the_rate_it_produced() {
    let place = Place::new();
    let ran = place.run(QUICK, "--concurrency 2 --request-count 20 --isl 16").with_code(0);
    let delivered = place.results().summary()["load_delivery"]["delivered_rate"].as_f64().unwrap();
    assert!(delivered > 0.0);
    assert!(ran.out.contains("Loop      concurrency 2 held") && ran.out.contains("produced"), "{}", ran.out);
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/633>, <https://github.com/hatoo/oha/issues/157>: what was
/// asked for is what the server got, no more, no less, and never early.
#[test]
fn inference_perf_633_the_server_gets_exactly_the_load_that_was_asked_for() {
    for flags in [
        "--request-rate 400 --arrival-pattern constant --request-count 120 --workers-max 3",
        "--request-rate 400 --request-count 120",
        "--concurrency 7 --request-count 120 --workers-max 3",
        "--concurrency 5 --num-conversations 60 --conversation-turn-mean 2 --conversation-turn-stddev 0",
    ] {
        let place = Place::new();
        let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "2"), ("usage", "estimate")]);
        place.run(&mock.url(), &format!("{flags} --isl 16")).with_code(0);
        assert_eq!(mock.stats().requests, 120, "{flags}");
        place.results().assert_all_accounted_for();
        for record in place.results().records() {
            let at = |key: &str| record["metadata"][key].as_u64();
            if let Some(scheduled) = at("scheduled_ns") {
                assert!(at("request_start_ns").unwrap() >= scheduled, "{flags}: a send was early");
            }
        }
    }
}

/// <https://github.com/ai-dynamo/aiperf/issues/1185>: pauses below a millisecond are rounded up, and high rates are
/// not delivered.
#[test]
fn aiperf_1185_deadlines_of_a_high_rate_are_absolute() {
    let place = Place::new();
    place
        .run(QUICK, "--request-rate 3000 --arrival-pattern constant --request-count 300 --isl 16")
        .with_code(0);
    let times = scheduled(&place);
    for (index, time) in times.iter().enumerate() {
        let expected = (index as f64 * 1e9 / 3000.0).round();
        let offset = (time - times[0]) as f64;
        assert!((offset - expected).abs() <= 1.0, "arrival {index}: {offset} ns, not {expected} ns");
    }
    assert_eq!(place.results().summary()["load_delivery"]["unsent_count"], 0);
}

/// <https://github.com/sgl-project/genai-bench/issues/125>: one throttle per worker bunches arrivals.
#[test]
fn genai_bench_125_there_is_one_arrival_process_for_all_workers() {
    let place = Place::new();
    // Answers that outlast the gap between sends: one worker that is always free would take them all.
    place
        .run(
            "mock://?ttft=200ms&itl=0&tokens=3",
            "--request-rate 500 --arrival-pattern constant --request-count 60 --isl 16 --workers-max 4",
        )
        .with_code(0);
    assert!(scheduled(&place).windows(2).all(|pair| pair[1] - pair[0] == 2_000_000));
    let workers: BTreeSet<String> =
        place.results().records().iter().map(|record| record["metadata"]["worker_id"].to_string()).collect();
    assert!(workers.len() > 1, "{workers:?}");
}

/// <https://github.com/ai-dynamo/aiperf/issues/1424>: a new connection for each request nearly doubled TTFT.
#[test]
fn aiperf_1424_connections_are_kept() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "2")]);
    place.run(&mock.url(), "--streaming --concurrency 3 --request-count 60 --isl 16").with_code(0);
    assert!(mock.stats().connections <= 3, "{:?}", mock.stats());
    let reused = place.results().summary()["http_req_connection_reused"]["sum"].as_f64().unwrap();
    assert!(reused >= 57.0, "{reused}");
}

/// <https://github.com/gpustack/gpustack/issues/2324>: a hidden limit of connections looked like a slow server.
#[test]
fn gpustack_2324_there_is_no_hidden_ceiling_of_connections() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("tokens", "1"), ("usage", "off"), ("plan", "ok:hang*300")]);
    let mut command =
        place.profile(&mock.url(), "--concurrency 300 --request-count 301 --isl 4 --export-level summary");
    let live = Live::start(&mut command);
    mock.until(|stats| stats.in_flight == 300);
    live.signal(rustix::process::Signal::INT);
    live.end().with_code(0);
    let summary = place.results().summary();
    assert_eq!(summary["load_delivery"]["concurrency"]["max_in_flight"], 300);
    assert_eq!(summary["in_flight_cancelled_count"], 300);
}

/// Parity backlog of the reference, P1.14: a cap split over workers, at least one each, exceeds the cap.
#[test]
fn aiperf_parity_backlog_p1_14_the_cap_holds_for_any_number_of_workers() {
    for (cap, workers) in [(1, 3), (2, 3), (7, 3), (5, 4)] {
        let place = Place::new();
        let mock = Mock::start(&[("ttft", "5ms"), ("itl", "0"), ("tokens", "1"), ("usage", "estimate")]);
        place
            .run(
                &mock.url(),
                &format!("--concurrency {cap} --workers-max {workers} --request-count 60 --isl 8"),
            )
            .with_code(0);
        assert!(mock.stats().max_in_flight <= cap, "{cap} over {workers} workers: {:?}", mock.stats());
        assert_eq!(place.results().summary()["load_delivery"]["concurrency"]["max_in_flight"], cap);
    }
}

/// <https://github.com/aws-samples/sample-apj-sup-sa/issues/181>: batches that timed out were dropped, which
/// flattered the throughput.
#[test]
fn sample_apj_sup_sa_181_timeouts_stay_in_the_result() {
    let place = Place::new();
    place
        .run(
            "mock://?ttft=1ms&itl=0&tokens=3&plan=ok:hang",
            "--streaming --concurrency 4 --request-count 8 --isl 16 --request-timeout-seconds 0.3",
        )
        .with_code(0);
    let summary = place.results().summary();
    assert_eq!(summary["completed_request_count"]["avg"], 8.0);
    assert_eq!(summary["request_error_rate"]["avg"], 50.0);
    assert_eq!(only_error(&summary)["type"], "TimeoutError");
    assert_eq!(summary["adj_request_latency"]["p99"], "inf");
    for record in place.results().records().iter().filter(|record| record.get("error").is_some()) {
        let at = |key: &str| record["metadata"][key].as_u64().unwrap();
        assert!(
            at("request_end_ns") - at("request_start_ns") >= 300_000_000,
            "it ended when it was given up"
        );
    }
}

/// <https://github.com/sgl-project/genai-bench/issues/100>: absurd samples were dropped without a word.
#[test]
fn genai_bench_100_implausible_samples_are_kept() {
    let place = Place::new();
    place
        .run("mock://?ttft=0&itl=0&tokens=64&plan=ok:one:bundle", "--streaming --request-count 30 --isl 16")
        .with_code(0);
    let results = place.results();
    assert_eq!(results.summary()["request_count"]["avg"], 30.0);
    assert_eq!(results.summary()["request_latency"]["count"], 30);
    assert_eq!(results.records().len(), 30);
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/580>,
/// <https://github.com/triton-inference-server/client/issues/698>: tokens counted chunk by chunk are too many.
#[test]
fn inference_perf_580_the_clients_count_is_the_servers() {
    let place = Place::new();
    place
        .run(
            "mock://?ttft=1ms&itl=0&plan=ok:bundle:reasoning:split",
            "--streaming --request-count 12 --isl 50 --isl-stddev 10 --osl 30 --concurrency 3",
        )
        .with_code(0);
    for record in place.results().records() {
        let value =
            |tag: &str| record["metrics"][tag]["value"].as_f64().unwrap_or_else(|| panic!("{tag}: {record}"));
        assert_eq!(value("input_sequence_length"), value("usage_prompt_tokens"));
        assert_eq!(value("output_sequence_length"), value("usage_completion_tokens"));
    }
    assert_eq!(place.results().summary()["usage_discrepancy_count"]["avg"], 0.0);
}

/// <https://github.com/kubernetes-sigs/inference-perf/pull/577>, <https://github.com/ai-dynamo/aiperf/issues/339>: it
/// was not said who counted.
#[test]
fn inference_perf_577_the_report_names_the_source_of_its_counts() {
    let place = Place::new();
    let ran = place.run(QUICK, "--request-count 3 --isl 16").with_code(0);
    assert!(ran.out.contains("tokens by builtin"), "{}", ran.out);
    let ran = place.run(QUICK, "--request-count 3 --isl 16 --use-server-token-count").with_code(0);
    assert!(ran.out.contains("tokens by server usage"), "{}", ran.out);
}

/// <https://github.com/modelscope/evalscope/issues/1694>, <https://github.com/modelscope/evalscope/issues/408>
#[test]
fn evalscope_1694_percentiles_rise_and_none_is_0_on_a_slow_server() {
    let place = Place::new();
    place
        .run(
            "mock://?ttft=uniform:10ms:30ms&itl=2ms&tokens=4",
            "--streaming --concurrency 4 --request-count 40 --isl 16",
        )
        .with_code(0);
    let summary = place.results().summary();
    for tag in ["time_to_first_token", "request_latency", "decode_duration", "inter_chunk_latency"] {
        let block = &summary[tag];
        let figures: Vec<f64> = ["min", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "max"]
            .iter()
            .map(|key| block[*key].as_f64().unwrap())
            .collect();
        assert!(figures.is_sorted(), "{tag}: {block}");
    }
    assert!(summary["time_to_first_token"]["min"].as_f64().unwrap() >= 10.0);
    // Without streaming there is no first token to time.
    place.run(QUICK, "--request-count 3 --isl 16").with_code(0);
    assert!(place.results().summary().get("time_to_first_token").is_none());
}

/// <https://github.com/vllm-project/vllm/issues/44708>: tokenizers of client and server disagree.
#[test]
fn vllm_44708_counts_that_disagree_are_shown() {
    let server = Echo::start(|_| {
        // A server that counts twice as many prompt tokens.
        let text = String::from_utf8(chat("hello hello")).unwrap();
        text.replace("\"prompt_tokens\":4", "\"prompt_tokens\":9").into_bytes()
    });
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}", server.port);
    let ran = place.run(&url, "--request-count 4 --isl 16").with_code(0);
    let summary = place.results().summary();
    assert_eq!(summary["usage_discrepancy_count"]["avg"], 4.0);
    assert!(ran.out.contains("Token Counts Disagree") && ran.out.contains("4 of 4 requests"), "{}", ran.out);
}

/// <https://github.com/ai-dynamo/aiperf/issues/644>: answers shorter than asked for went unnoticed.
#[test]
fn aiperf_644_short_answers_are_counted_and_the_remedy_is_named() {
    let place = Place::new();
    let ran = place
        .run("mock://?ttft=1ms&itl=0&plan=one", "--streaming --request-count 5 --isl 16 --osl 40")
        .with_code(0);
    assert_eq!(place.results().summary()["osl_mismatch_count"]["avg"], 5.0);
    assert!(ran.out.contains("ignore_eos") || ran.out.contains("min_tokens"), "{}", ran.out);
}

/// <https://github.com/sgl-project/genai-bench/issues/155>: answers with status 429 were missing.
#[test]
fn genai_bench_155_every_status_is_counted_with_its_retry_after() {
    let place = Place::new();
    place.run("mock://?ttft=1ms&tokens=2&plan=ok:http429", "--request-count 6 --isl 16").with_code(0);
    let summary = place.results().summary();
    let details = only_error(&summary);
    assert_eq!(details["code"], 429);
    assert_eq!(details["type"], "Too Many Requests");
    assert_eq!(details["details"]["retry_after"].to_string().trim_matches('"'), "1");
    assert_eq!(summary["error_summary"][0]["count"], 3);
}

/// <https://github.com/triton-inference-server/client/issues/777>, <https://github.com/ai-dynamo/dynamo/issues/11662>:
/// "no results" without a cause; an unknown field of the body failed every request, and nobody showed the answer.
#[test]
fn dynamo_11662_the_first_error_body_is_shown_once() {
    let body = "{\"error\": {\"message\": \"unknown field `frobnicate` in the body\"}}";
    let server = Echo::start(move |_| http("400 Bad Request", "Content-Type: application/json\r\n", body));
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}", server.port);
    let ran = place
        .run(&url, "--concurrency 3 --request-count 12 --isl 16 --extra-inputs frobnicate:1")
        .with_code(1);
    assert_eq!(ran.err.matches("unknown field `frobnicate`").count(), 1, "{}", ran.err);
    assert!(ran.err.contains("first failed request: 400"), "{}", ran.err);
    assert!(ran.out.contains("frobnicate"));
}

/// vllm-bench, README: connection errors were retried up to three times without a word.
#[test]
fn vllm_bench_readme_nothing_is_retried() {
    let place = Place::new();
    let mock =
        Mock::start(&[("ttft", "1ms"), ("tokens", "2"), ("plan", "close:reset:early_close:truncated:ok")]);
    place.run(&mock.url(), "--streaming --request-count 10 --isl 16").with_code(0);
    assert_eq!(mock.stats().requests, 10);
    let summary = place.results().summary();
    assert_eq!(
        summary["request_count"]["avg"].as_f64().unwrap()
            + summary["error_request_count"]["avg"].as_f64().unwrap(),
        10.0
    );
}

/// <https://github.com/vllm-project/aibrix/issues/2653>, <https://github.com/brainlid/langchain/issues/28>,
/// <https://github.com/triton-inference-server/triton_distributed/issues/264>: bytes one by one, line ends of both
/// kinds, comments between events.
#[test]
fn aibrix_2653_however_a_stream_is_cut_it_reads_the_same() {
    let tokens = |plan: &str| {
        let place = Place::new();
        place
            .run(
                &format!("mock://?ttft=1ms&itl=0&plan={plan}"),
                "--streaming --request-count 2 --isl 16 --osl 9 --random-seed 1",
            )
            .with_code(0);
        let summary = place.results().summary();
        assert!(summary.get("error_request_count").is_none(), "{plan}");
        let sum = |tag: &str| summary[tag]["avg"].as_f64().unwrap();
        let chunks: usize = place
            .results()
            .records()
            .iter()
            .map(|record| record["metrics"]["inter_chunk_latency"]["value"].as_array().unwrap().len())
            .sum();
        (sum("total_osl"), sum("total_usage_completion_tokens"), chunks)
    };
    let plain = tokens("ok");
    assert_eq!(plain, (18.0, 18.0, 16));
    for plan in ["split", "crlf", "comments", "gzip", "no_done"] {
        assert_eq!((tokens(plan).0, tokens(plan).2), (plain.0, plain.2), "{plan}");
    }
}

/// <https://github.com/huggingface/inference-benchmarker> `src/requests.rs`: the last usage frame has no choices, and
/// taking the first of them was a panic.
#[test]
fn inference_benchmarker_requests_a_usage_frame_without_choices_is_legal() {
    let stream = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n\
                  data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
                  data: {\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,\"total_tokens\":4}}\n\n\
                  data: {\"object\":\"chat.completion.chunk\",\"usage\":null}\n\n\
                  data: [DONE]\n\n";
    let server = Echo::start(move |_| http("200 OK", "Content-Type: text/event-stream\r\n", stream));
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}", server.port);
    place.run(&url, "--streaming --request-count 3 --isl 16").with_code(0);
    let summary = place.results().summary();
    assert_eq!(summary["total_usage_completion_tokens"]["avg"], 3.0);
    assert!(summary.get("error_request_count").is_none());
}

/// Parity backlog of the reference, P1.19 to P1.22: proxies were picked up from the environment.
#[test]
fn aiperf_parity_backlog_p1_20_proxies_of_the_environment_are_not_used() {
    let place = Place::new();
    let mut command = place.profile(QUICK, "--request-count 2 --isl 16");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:1");
    }
    Live::start(&mut command).end().with_code(0);
}

/// <https://github.com/vllm-project/guidellm/issues/38>: 114 MB of JSON by default.
#[test]
fn guidellm_38_the_summary_does_not_grow_with_the_run() {
    let size = |count: u32| {
        let place = Place::new();
        place
            .run(
                QUICK,
                &format!(
                    "--streaming --concurrency 8 --request-count {count} --isl 8 --num-dataset-entries 10"
                ),
            )
            .with_code(0);
        assert_eq!(place.results().records().len(), count as usize);
        place.results().text("profile_export_aiperf.json").len()
    };
    let (small, large) = (size(20), size(600));
    assert!(large < small * 5 / 4, "{small} bytes, then {large}");
    assert!(large < 64 * 1024);
}

/// <https://github.com/NVIDIA-NeMo/Guardrails/pull/2323>: the ramp-up counted in the statistics.
#[test]
fn guardrails_2323_the_warmup_is_not_in_the_statistics() {
    let place = Place::new();
    place
        .run(
            "mock://?ttft=1ms&itl=0&tokens=2&plan=http500*5:ok*1000",
            "--warmup-request-count 5 --request-count 10 --concurrency 1 --isl 16",
        )
        .with_code(0);
    let summary = place.results().summary();
    assert!(summary.get("error_request_count").is_none());
    assert_eq!(summary["request_count"]["avg"], 10.0);
    assert_eq!(summary["warmup_metrics"]["error_request_count"]["avg"], 5.0);
    assert_eq!(summary["load_delivery"]["sent_count"], 10);
    // Ramps are part of the window; how long they took is said.
    place
        .run(QUICK, "--concurrency 4 --concurrency-ramp-duration 0.3 --request-count 200 --isl 16")
        .with_code(0);
    let ramp = place.results().summary()["load_delivery"]["ramp_sec"].as_f64().unwrap();
    assert!((ramp - 0.3).abs() < 1e-9);
}

/// <https://github.com/sgl-project/genai-bench/issues/100>: fewer requests than asked for, and no reason.
#[test]
fn genai_bench_100_a_run_that_ended_early_says_why() {
    let place = Place::new();
    let ran = place
        .run(
            "mock://?ttft=1ms&plan=http500",
            "--failed-request-threshold 0.5 --concurrency 2 --request-count 5000 --num-dataset-entries 10 --isl 16",
        )
        .with_code(1);
    assert!(
        ran.out.contains("INCOMPLETE RESULTS") && ran.out.contains("--failed-request-threshold"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("cancelled early"), "{}", ran.out);
}

const TOKENIZER: &str = include_str!("../../../tokenize/tests/data/byte-bpe/tokenizer.json");

/// <https://github.com/ray-project/llmperf/issues/92>: the tokenizer was fixed in the code.
/// <https://github.com/triton-inference-server/perf_analyzer/issues/224>: which one was used is in the results.
#[test]
fn llmperf_92_any_tokenizer_file_counts_and_is_recorded() {
    let place = Place::new();
    let path = place.write("tokenizer.json", TOKENIZER);
    for name in [path.clone(), place.root().display().to_string()] {
        let mut command = crate::support::aiperf();
        command.current_dir(place.root()).args([
            "profile",
            "--model",
            "demo",
            "--artifact-dir",
            "out",
            "--ui",
            "none",
        ]);
        command.args(["--url", QUICK, "--tokenizer", &name, "--request-count", "3", "--isl", "20"]);
        let ran = Live::start(&mut command).end().with_code(0);
        let summary = place.results().summary();
        // The server will add one: this tokenizer begins each text with a special token.
        assert_eq!(summary["input_sequence_length"]["avg"], 19.0);
        assert_eq!(summary["input_config"]["tokenizer"]["name"], name.as_str());
        assert!(ran.out.contains("tokens by "), "{}", ran.out);
    }
}

/// <https://github.com/NVIDIA/TensorRT-LLM/issues/12998>, <https://github.com/vllm-project/vllm-omni/issues/6055>: a
/// gated model without a token failed although it was in the cache.
#[test]
fn tensorrt_llm_12998_what_is_in_the_cache_is_used_without_network_or_token() {
    let place = Place::new();
    let repository = place.path("home/hub/models--gated--model");
    let snapshot = repository.join("snapshots/0123456789abcdef0123456789abcdef01234567");
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::create_dir_all(repository.join("refs")).unwrap();
    std::fs::write(repository.join("refs/main"), "0123456789abcdef0123456789abcdef01234567").unwrap();
    std::fs::write(snapshot.join("tokenizer.json"), TOKENIZER).unwrap();
    let run = |name: &str, offline: &str| {
        let mut command = crate::support::aiperf();
        command.current_dir(place.root()).env("HF_HOME", place.path("home")).env("HF_HUB_OFFLINE", offline);
        command.args(["profile", "--model", "demo", "--artifact-dir", "out", "--ui", "none", "--url", QUICK]);
        Live::start(command.args(["--tokenizer", name, "--request-count", "2", "--isl", "20"])).end()
    };
    for offline in ["0", "1"] {
        run("gated/model", offline).with_code(0);
    }
    // What is not there says every place that was searched.
    let ran = run("gated/other", "1").with_code(2);
    assert!(ran.err.contains("gated/other") && ran.err.contains("home/hub"), "{}", ran.err);
    assert!(ran.err.contains("builtin"), "{}", ran.err);
}

/// <https://github.com/sgl-project/sglang/issues/5386>: even random prompts needed the hub.
#[test]
fn sglang_5386_generated_prompts_need_no_network() {
    let place = Place::new();
    let mut command = crate::support::aiperf();
    command.current_dir(place.root()).env("HF_HUB_OFFLINE", "1").env("HF_HOME", place.path("nowhere"));
    command.args(["profile", "--model", "demo", "--artifact-dir", "out", "--ui", "none", "--url", QUICK]);
    Live::start(command.args(["--request-count", "2", "--isl", "40"])).end().with_code(0);
    assert!(!place.path("nowhere").exists());
}

/// <https://github.com/llm-d/llm-d-benchmark/issues/188>, <https://github.com/ai-dynamo/aiperf/issues/570>: the whole
/// workload was built before the first request. Rows that are not sent are not made.
#[test]
fn llm_d_benchmark_188_and_aiperf_570_a_large_trace_starts_at_once() {
    let place = Place::new();
    // As prompts these are 4,000,000,000 tokens.
    let row = "{\"timestamp\": 0, \"input_length\": 40000, \"output_length\": 1}\n";
    let rows =
        "{\"timestamp\": 0, \"input_length\": 20, \"output_length\": 1}\n".to_owned() + &row.repeat(100_000);
    place.write("trace.jsonl", rows);
    place
        .run(
            QUICK,
            "--input-file trace.jsonl --custom-dataset-type mooncake_trace --no-fixed-schedule --request-count 1",
        )
        .with_code(0);
    assert_eq!(place.results().records().len(), 1);
}
