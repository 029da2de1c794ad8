//! The verdict on the client's own work, brought about from outside.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Live, Mock, Place, Ran, keys};

const ORDER: [&str; 21] = [
    "verdict",
    "reasons",
    "mode",
    "intended_rate",
    "delivered_rate",
    "planned_count",
    "sent_count",
    "skipped_count",
    "unsent_count",
    "lateness",
    "cap_wait",
    "slip",
    "initial_fill_ms",
    "concurrency",
    "catch_up_sec",
    "ramp_sec",
    "drain_sec",
    "late_prompt_count",
    "service",
    "from_intended",
    "client",
];

const CLIENT: [&str; 13] = [
    "cores",
    "workers",
    "cpu_sec",
    "mock_cpu_sec",
    "pacer_spin_sec",
    "cpu_us_per_request",
    "busiest_worker_cpu_pct",
    "peak_rss_bytes",
    "loop_delay",
    "delayed_request_count",
    "spilled_record_count",
    "negative_difference_count",
    "resource_error_count",
];

fn delivery(place: &Place) -> Value {
    place.results().summary()["load_delivery"].clone()
}

fn codes(delivery: &Value) -> Vec<&str> {
    delivery["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap()).collect()
}

/// `found` are some of `order`, in that order, and have all of `needed`.
#[track_caller]
fn in_order(found: &[&str], order: &[&str], needed: &[&str]) {
    let expected: Vec<&str> = order.iter().copied().filter(|key| found.contains(key)).collect();
    assert_eq!(found, expected);
    for key in needed {
        assert!(found.contains(key), "{key} is missing in {found:?}");
    }
}

#[test]
fn the_block_has_its_keys_in_order_in_every_mode() {
    let quick = "mock://?ttft=2ms&itl=1ms&tokens=4";
    let rows = "{\"timestamp\": 0, \"input_length\": 8, \"output_length\": 2}\n\
                {\"timestamp\": 60, \"input_length\": 8, \"output_length\": 2}\n";
    let common = [
        "planned_count",
        "sent_count",
        "skipped_count",
        "unsent_count",
        "lateness",
        "drain_sec",
        "service",
        "from_intended",
        "client",
    ];
    for (mode, flags, needed, absent) in [
        (
            "concurrency",
            "--concurrency 2 --request-count 8 --isl 16",
            &["concurrency", "initial_fill_ms"][..],
            &["intended_rate", "cap_wait", "slip"][..],
        ),
        (
            "rate",
            "--request-rate 100 --request-count 8 --isl 16",
            &["intended_rate", "delivered_rate"],
            &["initial_fill_ms", "concurrency", "cap_wait"],
        ),
        (
            "rate",
            "--request-rate 100 --concurrency 2 --request-count 8 --isl 16",
            &["intended_rate", "cap_wait", "concurrency"],
            &["initial_fill_ms"],
        ),
        (
            "rate",
            "--request-rate 100 --request-rate-ramp-duration 0.2 --request-count 8 --isl 16",
            &["ramp_sec"],
            &["concurrency"],
        ),
        (
            "fixed_schedule",
            "--input-file rows.jsonl --custom-dataset-type mooncake_trace",
            &["slip"],
            &["initial_fill_ms"],
        ),
    ] {
        let place = Place::new();
        place.write("rows.jsonl", rows);
        place.run(quick, &format!("--streaming {flags}")).with_code(0);
        let delivery = delivery(&place);
        in_order(&keys(&delivery), &ORDER, &[&common[..], needed].concat());
        for key in absent {
            assert!(delivery.get(key).is_none(), "{flags}: {key} in {delivery}");
        }
        assert_eq!(delivery["mode"], mode, "{flags}");
        in_order(
            &keys(&delivery["client"]),
            &CLIENT,
            &[
                "cores",
                "workers",
                "cpu_sec",
                "cpu_us_per_request",
                "peak_rss_bytes",
                "loop_delay",
                "resource_error_count",
            ],
        );
        let block = &delivery["lateness"];
        assert_eq!(keys(block), ["unit", "avg", "p50", "p90", "p99", "max", "count"], "{flags}");
        assert_eq!(block["unit"], "ms");
        for latency in ["service", "from_intended"] {
            assert_eq!(keys(&delivery[latency]), ["time_to_first_token", "request_latency"], "{flags}");
        }
        for reason in delivery["reasons"].as_array().unwrap() {
            assert_eq!(keys(reason), ["code", "message", "value", "limit", "unit", "next_step"], "{flags}");
        }
        let count = |key: &str| delivery[key].as_u64().unwrap();
        assert_eq!(
            count("planned_count"),
            count("sent_count") + count("skipped_count") + count("unsent_count"),
            "{flags}"
        );
        assert_eq!(delivery["client"]["negative_difference_count"], 0, "{flags}");
    }
}

/// A run that was stopped for a while in the middle, as a busy host does it.
fn stalled(place: &Place, flags: &str, after: u64, pause_ms: u64, environment: &[(&str, &str)]) -> Ran {
    let mock = Mock::start(&[("ttft", "60ms"), ("itl", "5ms"), ("tokens", "3")]);
    let mut command =
        place.profile(&mock.url(), &format!("--streaming --isl 16 --arrival-pattern constant {flags}"));
    for (name, value) in environment {
        command.env(name, value);
    }
    let live = Live::start(&mut command);
    mock.until(|stats| stats.requests >= after);
    live.signal(Signal::STOP);
    std::thread::park_timeout(Duration::from_millis(pause_ms));
    live.signal(Signal::CONT);
    live.end()
}

/// No arrival is lost or moved by a stall of the client; its lateness shows it, and the verdict says so.
/// <https://github.com/ai-dynamo/aiperf/issues/1185>, <https://github.com/vllm-project/vllm/issues/21104>
#[test]
fn aiperf_1185_a_stall_moves_no_arrival_and_is_told() {
    for (strict, code) in [("", 0), ("--strict-load", 3)] {
        let place = Place::new();
        let ran = stalled(&place, &format!("--request-rate 100 --request-count 60 {strict}"), 10, 400, &[])
            .with_code(code);
        let results = place.results();
        results.assert_complete(false);
        let delivery = delivery(&place);
        assert_eq!(delivery["verdict"], "suspect");
        assert_eq!(delivery["sent_count"], 60);
        let codes = codes(&delivery);
        for code in ["late_sends", "send_stall", "stamps_delayed"] {
            assert!(codes.contains(&code), "{code} in {delivery}");
        }
        assert!(delivery["lateness"]["max"].as_f64().unwrap() > 100.0);
        // The plan stood still: arrival k is due k intervals after the start.
        let mut scheduled: Vec<u64> = results
            .records()
            .iter()
            .map(|record| record["metadata"]["scheduled_ns"].as_u64().unwrap())
            .collect();
        scheduled.sort_unstable();
        assert!(scheduled.windows(2).all(|pair| pair[1] - pair[0] == 10_000_000), "{scheduled:?}");
        assert!(results.records().iter().any(|record| record["metadata"]["client_delayed"] == true));
        // From the intended start the wait is in the latency, from the send it is not.
        let p99 = |from: &str| delivery[from]["request_latency"]["p99"].as_f64().unwrap();
        assert!(p99("from_intended") > p99("service"), "{delivery}");
        for text in [&ran.out, &results.text("profile_export_console.txt")] {
            assert!(text.contains("Load Delivery: SUSPECT"));
            assert!(text.contains("from send p50") && text.contains("from intended start p50"), "{text}");
            assert!(text.contains("  ! "), "{text}");
        }
    }
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/245>
#[test]
fn inference_perf_245_what_could_not_be_sent_in_time_is_counted_and_suspect() {
    let place = Place::new();
    stalled(&place, "--request-rate 50 --benchmark-duration 1 --strict-load", 5, 1400, &[]).with_code(3);
    let delivery = delivery(&place);
    assert!(codes(&delivery).contains(&"unsent"), "{delivery}");
    let unsent = delivery["unsent_count"].as_u64().unwrap();
    assert!(unsent > 10, "{delivery}");
    assert_eq!(
        delivery["planned_count"].as_u64().unwrap(),
        delivery["sent_count"].as_u64().unwrap() + unsent
    );
}

/// The run ends while the client stands still: what was left leaves later than intended, and slower.
#[test]
fn a_rate_that_did_not_leave_is_told() {
    let place = Place::new();
    stalled(&place, "--request-rate 100 --request-count 300 --strict-load", 5, 4000, &[]).with_code(3);
    let delivery = delivery(&place);
    assert!(codes(&delivery).contains(&"rate_shortfall"), "{delivery}");
    let rate = |key: &str| delivery[key].as_f64().unwrap();
    assert!(rate("delivered_rate") < 0.99 * rate("intended_rate"), "{delivery}");
}

#[test]
fn schedule_time_that_was_given_up_is_told() {
    let place = Place::new();
    stalled(
        &place,
        "--request-rate 100 --request-count 50 --strict-load",
        10,
        400,
        &[("AIPERF_TIMING_MAX_CATCHUP_SECONDS", "0.05")],
    )
    .with_code(3);
    let delivery = delivery(&place);
    assert!(codes(&delivery).contains(&"catch_up_cut"), "{delivery}");
    assert!(delivery["catch_up_sec"].as_f64().unwrap() > 0.1, "{delivery}");
}

/// Prompts that take longer than their requests: the slots of a closed loop stand idle. Enough of them that a host
/// which holds the network up for a while does not hide it.
#[test]
fn slots_that_stand_idle_are_told() {
    let place = Place::new();
    place
        .run(
            "mock://?ttft=0&itl=0&tokens=1&usage=off",
            "--concurrency 4 --request-count 120 --isl 12000 --num-dataset-entries 120 --strict-load --export-level summary",
        )
        .with_code(3);
    let delivery = delivery(&place);
    assert!(codes(&delivery).contains(&"slots_idle"), "{delivery}");
    assert!(delivery["late_prompt_count"].as_u64().unwrap() > 0, "{delivery}");
    assert!(delivery["concurrency"]["lost_share"].as_f64().unwrap() > 0.01);
}

/// Skipped arrivals, waits for a cap and errors of the server are no fault of the client.
#[test]
fn what_was_asked_for_is_no_reason() {
    let place = Place::new();
    let ran = place
        .run(
            "mock://?ttft=80ms&itl=0&tokens=2&plan=ok:http500",
            "--request-rate 100 --arrival-pattern constant --concurrency 1 --request-count 5 --isl 16",
        )
        .with_code(0);
    let delivery = delivery(&place);
    assert!(delivery["skipped_count"].as_u64().unwrap() > 5, "{delivery}");
    assert_eq!(delivery["unsent_count"], 0);
    assert_eq!(delivery["concurrency"]["max_in_flight"], 1);
    assert!(ran.out.contains("  Asked     100.00 requests/sec: "), "{}", ran.out);
    // What the host does to a test is not the point here.
    for code in codes(&delivery) {
        assert!(!["unsent", "catch_up_cut", "client_limits", "clock_disorder"].contains(&code), "{delivery}");
    }
}

/// A trace is played under a cap of the user's own: the rate falls behind the recorded one, and that was asked for.
#[test]
fn a_cap_that_holds_a_recorded_schedule_back_is_no_shortfall() {
    let place = Place::new();
    let row = |index: u32| {
        format!("{{\"timestamp\": {}, \"input_length\": 8, \"output_length\": 2}}\n", index * 10)
    };
    place.write("rows.jsonl", (0..12).map(row).collect::<String>());
    let ran = place
        .run(
            "mock://?ttft=60ms&itl=0&tokens=2",
            "--input-file rows.jsonl --custom-dataset-type mooncake_trace --concurrency 1",
        )
        .with_code(0);
    let delivery = delivery(&place);
    let rate = |key: &str| delivery[key].as_f64().unwrap();
    assert!(rate("delivered_rate") < 0.5 * rate("intended_rate"), "{delivery}");
    assert!(delivery["cap_wait"]["max"].as_f64().unwrap() > 400.0, "{delivery}");
    // Only a client that was itself late may fall short.
    let codes = codes(&delivery);
    assert!(!codes.contains(&"rate_shortfall") || codes.contains(&"late_sends"), "{delivery}");
    assert!(ran.out.contains("for a place under --concurrency 1"), "{}", ran.out);
}

/// Exit code 3 and the verdict are one thing. A calm run is valid; on a host that is never calm none is, and says so.
#[test]
fn strict_load_fails_a_run_if_and_only_if_it_is_suspect() {
    for _ in 0..5 {
        let place = Place::new();
        let ran = place.run(
            "mock://?ttft=1ms&itl=0&tokens=2",
            "--request-rate 25 --arrival-pattern constant --request-count 6 --isl 16 --strict-load",
        );
        let delivery = delivery(&place);
        let suspect = delivery["verdict"] == "suspect";
        assert_eq!(suspect, !codes(&delivery).is_empty());
        assert_eq!(ran.code, Some(if suspect { 3 } else { 0 }), "{delivery}");
        if !suspect {
            assert!(ran.out.contains("Load Delivery: VALID"));
            return;
        }
    }
}

/// The stronger status decides: nothing succeeded, whatever the delivery was.
#[test]
fn a_failed_run_is_1_even_under_strict_load() {
    let place = Place::new();
    stalled_failure(&place).with_code(1);
}

fn stalled_failure(place: &Place) -> Ran {
    let mock = Mock::start(&[("ttft", "1ms"), ("plan", "http500")]);
    let live = Live::start(&mut place.profile(
        &mock.url(),
        "--isl 16 --request-rate 100 --arrival-pattern constant --request-count 40 --strict-load",
    ));
    mock.until(|stats| stats.requests >= 5);
    live.signal(Signal::STOP);
    std::thread::park_timeout(Duration::from_millis(250));
    live.signal(Signal::CONT);
    live.end()
}
