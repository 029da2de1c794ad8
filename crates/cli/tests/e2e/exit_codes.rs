//! What the shell is told.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use crate::support::{Echo, Live, Mock, Place, http};

const QUICK: &str = "mock://?ttft=1ms&itl=0&tokens=4";

#[test]
fn a_good_run_is_0() {
    let place = Place::new();
    let ran = place.run(QUICK, "--streaming --request-count 10 --concurrency 2 --isl 16").with_code(0);
    assert!(ran.out.contains("Request Latency") && ran.out.contains("Load Delivery"));
    assert!(ran.out.contains(&format!("those of the in-process mock server, {QUICK}\n")), "{}", ran.out);
    place.results().assert_complete(false);
    place.results().assert_all_accounted_for();
}

/// <https://github.com/ai-dynamo/aiperf>, parity backlog P0.6: a run in which all requests failed exited with 0.
#[test]
fn aiperf_parity_backlog_p0_6_all_failed_is_1_with_every_file_and_the_error_table() {
    let place = Place::new();
    let ran =
        place.run("mock://?ttft=1ms&plan=http500", "--request-count 6 --concurrency 2 --isl 16").with_code(1);
    let results = place.results();
    results.assert_complete(false);
    results.assert_all_accounted_for();
    let summary = results.summary();
    assert_eq!(summary["error_request_count"]["avg"], 6.0);
    assert!(summary.get("request_count").is_none_or(|block| block["avg"] == 0.0));
    assert_eq!(summary["error_summary"][0]["count"], 6);
    assert_eq!(summary["error_summary"][0]["error_details"]["code"], 500);
    let console = results.text("profile_export_console.txt");
    for text in [&ran.out, &console] {
        assert!(text.contains("500") && text.contains("Internal Server Error"), "{text}");
    }
    assert!(results.json("inputs.json")["data"].as_array().is_some_and(|data| !data.is_empty()));
}

#[test]
fn half_failed_is_0() {
    let place = Place::new();
    place.run("mock://?ttft=1ms&tokens=3&plan=ok:http500", "--request-count 8 --isl 16").with_code(0);
    let summary = place.results().summary();
    assert_eq!(summary["request_count"]["avg"], 4.0);
    assert_eq!(summary["error_request_count"]["avg"], 4.0);
    assert_eq!(summary["request_error_rate"]["avg"], 50.0);
}

/// Redirects are never followed for inference: latency would double unseen.
#[test]
fn a_redirect_is_an_error_that_names_its_target() {
    let place = Place::new();
    let server =
        Echo::start(|_| http("307 Temporary Redirect", "Location: http://elsewhere.test/v2\r\n", ""));
    let url = format!("http://127.0.0.1:{}", server.port);
    let ran = place.run(&url, "--request-count 3 --isl 16").with_code(1);
    let summary = place.results().summary();
    let error = &summary["error_summary"][0]["error_details"];
    assert_eq!(error["code"], 307);
    assert!(error["message"].as_str().unwrap().contains("http://elsewhere.test/v2"), "{error}");
    assert!(ran.out.contains("elsewhere.test"));
    assert_eq!(server.received().len(), 3);
}

#[test]
fn passing_the_threshold_of_failures_ends_the_run_with_1_and_keeps_what_was_measured() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms"), ("itl", "0"), ("tokens", "3"), ("plan", "ok:ok:http500")]);
    let ran = place
        .run(&mock.url(), "--failed-request-threshold 0.2 --request-count 2000 --concurrency 2 --isl 16")
        .with_code(1);
    let results = place.results();
    results.assert_complete(true);
    results.assert_all_accounted_for();
    let summary = results.summary();
    let count = |key: &str| summary[key]["avg"].as_f64().unwrap();
    let (failed, valid) = (count("error_request_count"), count("request_count"));
    let said =
        format!("{failed} of {} requests failed: --failed-request-threshold 0.2 was passed", failed + valid);
    assert!(ran.err.contains(&said), "{said}: {}", ran.err);
    assert!(summary["incomplete_reason"].as_str().unwrap().contains("--failed-request-threshold"));
    assert!(mock.stats().requests >= 10, "judged after 10 records at the earliest");
    assert!(mock.stats().requests < 2000, "the run went on");
    // A tenth request is needed to judge it: one says so instead of passing it in silence.
    let failing = "mock://?plan=ok:http500&ttft=1ms&itl=0&tokens=2";
    for (count, code) in [(9, 0), (10, 1)] {
        let flags = format!("--failed-request-threshold 0.2 --request-count {count} --isl 16");
        let ran = place.run(failing, &flags).with_code(code);
        let said = "4 of 9 requests failed, more than --failed-request-threshold 0.2 allows, but it judges no run of fewer than \
                    10 requests";
        assert_eq!(ran.err.contains(said), count == 9, "{}", ran.err);
    }
    // It is the tenth request that is judged, whether it failed or not.
    let nine = "mock://?plan=http500*9:ok*100&ttft=1ms&itl=0&tokens=2";
    let ran = place.run(nine, "--failed-request-threshold 0.8 --request-count 10 --isl 16").with_code(1);
    assert!(
        ran.err.contains("9 of 10 requests failed: --failed-request-threshold 0.8 was passed"),
        "{}",
        ran.err
    );
    // Below the threshold nothing happens.
    place.run(QUICK, "--failed-request-threshold 0.2 --request-count 20 --isl 16").with_code(0);
}

#[test]
fn usage_errors_are_2_within_a_second_without_a_folder_and_without_output() {
    let place = Place::new();
    let ends: &[&str] = &[
        "--no-such-flag",
        "--request-count -1",
        "--request-count 0",
        "--concurrency two",
        "--prefill-concurrency 2 --concurrency 4",
        "--benchmark-grace-period 5",
        "--request-cancellation-delay 1",
        "--user-centric-rate 3 --request-rate 5",
        "--num-users 4",
        "--fixed-schedule-start-offset 5",
        "--arrival-smoothness 2 --arrival-pattern constant --request-rate 5",
        "--request-rate-ramp-duration 5",
        "--endpoint-type responses",
        "--endpoint-type nonsense",
        "--goodput request_latency:1",
        "--zmq-host there",
        "--failed-request-threshold 2",
        "--model-selection-strategy weighted",
        "--export-level everything",
        "--input-file nowhere.jsonl",
        "--tokenizer ./no/such/tokenizer.json",
    ];
    for line in ends {
        let mut command = place.profile("http://127.0.0.1:9", "--ui none");
        command.args(line.split_whitespace());
        if line.contains("--tokenizer") {
            command = crate::support::aiperf();
            command.current_dir(place.root()).args(["profile", "--model", "demo", "--artifact-dir", "out"]);
            command.args(line.split_whitespace());
        }
        let ran = Live::start(&mut command).end();
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.err);
        assert!(ran.out.is_empty(), "{line}: {}", ran.out);
        assert!(ran.err.starts_with("error: "), "{line}: {}", ran.err);
        assert!(
            ran.err.contains(line.split(' ').next().unwrap()) || ran.err.contains("nowhere.jsonl"),
            "{line}: {}",
            ran.err
        );
        // The host may be slower than the program now and then.
        let again = || Live::start(&mut command).end().took;
        let took = std::iter::once(ran.took).chain(std::iter::repeat_with(again).take(2));
        assert!(took.into_iter().any(|took| took < Duration::from_secs(1)), "{line}: {:?}", ran.took);
        assert!(place.is_untouched(), "{line}");
    }
}

/// No server listens: every request fails, the report says so.
#[test]
fn a_refused_port_is_1_with_a_report() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let place = Place::new();
    let ran = place
        .run(&format!("http://127.0.0.1:{port}"), "--streaming --request-count 5 --concurrency 2 --isl 16")
        .with_code(1);
    let results = place.results();
    results.assert_complete(false);
    results.assert_all_accounted_for();
    let summary = results.summary();
    assert_eq!(summary["error_request_count"]["avg"], 5.0);
    let error = &summary["error_summary"][0]["error_details"];
    assert!(error["message"].as_str().unwrap().contains("refused"), "{error}");
    assert!(ran.err.contains("first failed request"), "{}", ran.err);
    assert!(ran.out.contains("5 failed connections kept their slots for up to "), "{}", ran.out);
}

#[test]
fn a_name_that_does_not_resolve_is_1_before_anything_is_sent() {
    let place = Place::new();
    let ran = place.run("http://no-such-host.invalid:8000", "--request-count 2 --isl 16").with_code(1);
    assert!(ran.err.contains("--url") && ran.err.contains("no-such-host.invalid"), "{}", ran.err);
    assert!(ran.out.is_empty());
    assert_eq!(ran.err.matches("error: ").count(), 1, "{}", ran.err);
    assert!(place.is_untouched());
}

/// <https://github.com/huggingface/inference-benchmarker/issues/26>, <https://github.com/ray-project/llmperf/issues/58>
#[test]
fn inference_benchmarker_26_a_wrong_path_shows_the_servers_404() {
    let place = Place::new();
    let mock = Mock::start(&[("ttft", "1ms")]);
    let ran = place.run(&mock.url(), "--endpoint /nope --request-count 3 --isl 16").with_code(1);
    let summary = place.results().summary();
    assert_eq!(summary["error_summary"][0]["error_details"]["code"], 404);
    assert!(ran.out.contains("404") && ran.err.contains("first failed request: 404"), "{}", ran.err);

    // A path in the URL is no fault: it is not doubled.
    for path in ["", "/", "/v1", "/v1/", "/v1/chat/completions"] {
        place.run(&format!("{}{path}", mock.url()), "--request-count 1 --isl 16 --osl 2").with_code(0);
    }
}

/// <https://github.com/huggingface/inference-benchmarker/issues/26>: a wrong model name.
#[test]
fn inference_benchmarker_26_a_wrong_model_shows_what_the_server_says() {
    let place = Place::new();
    let mock = Mock::start(&[("models", "llama:qwen")]);
    let ran = place.run(&mock.url(), "--request-count 2 --isl 16").with_code(1);
    let details = place.results().summary()["error_summary"][0]["error_details"].clone();
    assert_eq!(details["code"], 404);
    assert!(details["message"].as_str().unwrap().contains("model_not_found"), "{details}");
    assert!(ran.err.contains("demo") && ran.err.contains("llama, qwen"), "{}", ran.err);
}
