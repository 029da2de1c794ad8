//! The verdict on the client: each reason is brought about once, and nothing else brings it about.

use aiperf_metrics::Block;
use aiperf_metrics::delivery::{
    ClientFacts, ConcurrencyFacts, DeliveryFacts, LoadMode, Spread, Verdict, judge, rate,
};
use serde_json::Value;

const MS: f64 = 1e6;

fn spread(p99: f64, max: f64) -> Spread {
    Spread { avg: 0.02 * MS, p50: 0.01 * MS, p90: 0.05 * MS, p99: p99 * MS, max: max * MS, count: 15_000 }
}

/// A run of 30 s at 500 requests per second without a blemish.
fn clean() -> DeliveryFacts {
    DeliveryFacts {
        mode: LoadMode::Rate,
        intended_rate: Some(500.0),
        delivered_rate: Some(499.98),
        planned_count: 15_000,
        sent_count: 15_000,
        lateness: Some(spread(0.11, 0.8)),
        phase_ns: 30_000_000_000,
        record_count: 15_000,
        client: ClientFacts {
            cores: Some(2.0),
            workers: Some(1),
            cpu_sec: Some(1.23),
            busiest_worker_cpu_pct: Some(35.0),
            peak_rss_bytes: Some(64 << 20),
            loop_delay: Some(spread(0.3, 1.2)),
            ..ClientFacts::default()
        },
        ..DeliveryFacts::default()
    }
}

/// The only reason of a clean run that was spoilt in one way.
fn spoilt(spoil: impl FnOnce(&mut DeliveryFacts)) -> (&'static str, f64, f64, &'static str, String) {
    let mut facts = clean();
    spoil(&mut facts);
    let delivery = judge(facts);
    assert_eq!(delivery.verdict, Verdict::Suspect);
    let [reason] = delivery.reasons.as_slice() else { panic!("{:?}", delivery.reasons) };
    assert!(!reason.message.is_empty() && !reason.message.ends_with('.'));
    assert!(!reason.next_step.is_empty() && !reason.next_step.ends_with('.'));
    (reason.code, reason.value, reason.limit, reason.unit, reason.next_step.clone())
}

#[test]
fn a_clean_run_is_valid() {
    let delivery = judge(clean());
    assert_eq!(delivery.verdict, Verdict::Valid);
    assert!(delivery.reasons.is_empty());
}

// https://github.com/vllm-project/vllm/issues/21104
#[test]
fn vllm_21104_a_rate_that_did_not_leave_is_suspect() {
    let (code, value, limit, unit, next) = spoilt(|facts| facts.delivered_rate = Some(490.0));
    assert_eq!((code, value, limit, unit), ("rate_shortfall", 98.0, 99.0, "%"));
    assert!(next.contains("--workers-max"), "{next}");
    let mut at_the_limit = clean();
    at_the_limit.delivered_rate = Some(495.0);
    assert_eq!(judge(at_the_limit).verdict, Verdict::Valid);
}

#[test]
fn a_rate_that_the_users_own_cap_held_back_is_no_shortfall_of_the_client() {
    let mut facts = clean();
    facts.mode = LoadMode::FixedSchedule;
    facts.intended_rate = Some(11.35);
    facts.let_go_rate = Some(5.83);
    facts.delivered_rate = Some(5.82);
    assert_eq!(judge(facts.clone()).verdict, Verdict::Valid);
    // Behind what the cap let go, it is the client's again.
    facts.delivered_rate = Some(5.2);
    let delivery = judge(facts);
    assert_eq!(delivery.reasons.len(), 1);
    assert_eq!(delivery.reasons[0].code, "rate_shortfall");
    assert!((delivery.reasons[0].value - 89.19).abs() < 0.01, "{:?}", delivery.reasons);
}

#[test]
fn a_closed_loop_has_no_rate_to_fall_short_of() {
    let mut facts = clean();
    facts.mode = LoadMode::Concurrency;
    facts.intended_rate = None;
    facts.delivered_rate = Some(1.0);
    assert_eq!(judge(facts).verdict, Verdict::Valid);
}

#[test]
fn one_late_send_in_a_hundred_is_suspect() {
    let (code, value, limit, unit, _) = spoilt(|facts| facts.lateness = Some(spread(1.5, 2.0)));
    assert_eq!((code, value, limit, unit), ("late_sends", 1.5, 1.0, "ms"));
}

// https://github.com/triton-inference-server/perf_analyzer/issues/312: requests late by fractions of a millisecond
// were all counted as late.
#[test]
fn perf_analyzer_312_fractions_of_a_millisecond_are_shown_and_no_fault() {
    let mut facts = clean();
    facts.lateness = Some(spread(0.9, 40.0));
    let delivery = judge(facts);
    assert_eq!(delivery.verdict, Verdict::Valid);
    let shown = serde_json::to_value(&delivery).unwrap();
    assert_eq!(shown["lateness"]["p99"], 0.9);
    assert_eq!(shown["lateness"]["count"], 15_000);
}

// https://github.com/kubernetes-sigs/inference-perf/issues/188
#[test]
fn inference_perf_188_lateness_names_its_likeliest_cause() {
    let late = |facts: &mut DeliveryFacts| facts.lateness = Some(spread(1.5, 2.0));
    let (.., next) = spoilt(|facts| {
        late(facts);
        facts.late_prompt_count = 900;
    });
    assert!(next.contains("Prompts"), "{next}");
    let (.., next) = spoilt(|facts| {
        late(facts);
        facts.client.busiest_worker_cpu_pct = Some(88.0);
    });
    assert!(next.contains("--workers-max"), "{next}");
    let (.., next) = spoilt(|facts| {
        late(facts);
        facts.client.loop_delay = Some(spread(4.0, 9.0));
    });
    assert!(next.contains("other load"), "{next}");
}

#[test]
fn one_long_stall_is_suspect() {
    let (code, value, limit, unit, _) = spoilt(|facts| facts.lateness = Some(spread(0.2, 150.0)));
    assert_eq!((code, value, limit, unit), ("send_stall", 150.0, 100.0, "ms"));
}

#[test]
fn idle_slots_are_suspect() {
    let cap = ConcurrencyFacts {
        limit: 16,
        max_in_flight: 16,
        lost_share: Some(0.02),
        ..ConcurrencyFacts::default()
    };
    let (code, value, limit, unit, next_step) = spoilt(|facts| {
        facts.concurrency = Some(cap);
        facts.service.request_latency = Some(Block { unit: "ms", ..Block::default() });
    });
    assert_eq!((code, value, limit, unit), ("slots_idle", 2.0, 1.0, "%"));
    assert!(next_step.contains("--workers-max"), "{next_step}");
}

/// Failures come back at once: more cores are no help against an error.
#[test]
fn slots_that_stood_idle_between_failures_send_to_the_errors() {
    let cap = ConcurrencyFacts {
        limit: 16,
        max_in_flight: 16,
        lost_share: Some(0.02),
        ..ConcurrencyFacts::default()
    };
    let (code, value, limit, unit, next_step) = spoilt(|facts| facts.concurrency = Some(cap));
    assert_eq!((code, value, limit, unit), ("slots_idle", 2.0, 1.0, "%"));
    assert!(next_step.contains("errors") && !next_step.contains("--workers-max"), "{next_step}");
}

/// The same failures make the sends late: neither prompts nor cores are what is missing.
#[test]
fn late_sends_between_failures_send_to_the_errors() {
    let late = |mode, request_latency| {
        let (code, .., next_step) = spoilt(|facts| {
            facts.mode = mode;
            facts.lateness = Some(spread(1.5, 2.0));
            facts.late_prompt_count = 900;
            facts.service.request_latency = request_latency;
        });
        assert_eq!(code, "late_sends");
        next_step
    };
    let failures = late(LoadMode::Concurrency, None);
    assert!(failures.contains("errors") && !failures.contains("Prompts"), "{failures}");
    // Where something succeeded, and where a plan made the requests due, the cause is looked for as ever.
    let some = Some(Block { unit: "ms", ..Block::default() });
    for other in [late(LoadMode::Concurrency, some), late(LoadMode::Rate, None)] {
        assert!(other.contains("Prompts") && !other.contains("errors"), "{other}");
    }
}

#[test]
fn a_saturated_worker_is_suspect_in_phases_that_last() {
    let (code, value, limit, unit, _) = spoilt(|facts| facts.client.busiest_worker_cpu_pct = Some(97.0));
    assert_eq!((code, value, limit, unit), ("worker_saturated", 97.0, 90.0, "%"));
    let mut short = clean();
    short.client.busiest_worker_cpu_pct = Some(97.0);
    short.phase_ns = 999_999_999;
    assert_eq!(judge(short).verdict, Verdict::Valid);
}

#[test]
fn delayed_stamps_are_suspect() {
    let (code, value, limit, unit, _) = spoilt(|facts| facts.client.delayed_request_count = 300);
    assert_eq!((code, value, limit, unit), ("stamps_delayed", 2.0, 1.0, "%"));
    let mut few = clean();
    few.client.delayed_request_count = 150;
    assert_eq!(judge(few).verdict, Verdict::Valid);
    // Prompts that were late have no part in it.
    for (busiest, remedy) in [(5.0, "other load"), (88.0, "--workers-max")] {
        let (.., next) = spoilt(|facts| {
            facts.client.delayed_request_count = 300;
            facts.late_prompt_count = 9_000;
            facts.client.busiest_worker_cpu_pct = Some(busiest);
        });
        assert!(next.contains(remedy), "{next}");
    }
}

// https://github.com/kubernetes-sigs/inference-perf/issues/245
#[test]
fn inference_perf_245_unsent_requests_are_suspect() {
    let (code, value, limit, unit, _) = spoilt(|facts| facts.unsent_count = 8_000);
    assert_eq!((code, value, limit, unit), ("unsent", 8_000.0, 0.0, "requests"));
}

#[test]
fn schedule_time_given_up_is_suspect() {
    let (code, value, limit, unit, next) = spoilt(|facts| facts.catch_up_ns = Some(1_500_000_000));
    assert_eq!((code, value, limit, unit), ("catch_up_cut", 1.5, 0.0, "sec"));
    assert!(next.contains("AIPERF_TIMING_MAX_CATCHUP_SECONDS"));
}

// https://github.com/kubernetes-sigs/inference-perf/issues/50
#[test]
fn inference_perf_50_limits_of_the_client_are_suspect_and_named() {
    let (code, value, limit, unit, next) = spoilt(|facts| facts.client.resource_error_count = 3);
    assert_eq!((code, value, limit, unit), ("client_limits", 3.0, 0.0, "errors"));
    assert!(next.contains("ulimit -n") && next.contains("ip_local_port_range"));
    let (.., next) = spoilt(|facts| {
        facts.client.resource_error_count = 3;
        facts.client.resource_limit = Some("net.ipv4.ip_local_port_range");
    });
    assert_eq!(next, "Raise net.ipv4.ip_local_port_range");
}

#[test]
fn instants_in_the_wrong_order_are_suspect() {
    let (code, value, limit, unit, _) = spoilt(|facts| facts.client.negative_difference_count = 1);
    assert_eq!((code, value, limit, unit), ("clock_disorder", 1.0, 0.0, "differences"));
}

#[test]
fn what_was_asked_for_and_what_the_server_did_is_never_suspect() {
    let mut facts = clean();
    facts.skipped_count = 9_000;
    facts.cap_wait = Some(spread(5_000.0, 9_000.0));
    facts.slip = Some(spread(5_000.0, 9_000.0));
    facts.client.spilled_record_count = 10;
    facts.record_count = 0;
    assert_eq!(judge(facts).verdict, Verdict::Valid);
}

#[test]
fn reasons_come_in_a_fixed_order() {
    let mut facts = clean();
    facts.client.negative_difference_count = 1;
    facts.unsent_count = 1;
    facts.delivered_rate = Some(1.0);
    facts.lateness = Some(spread(200.0, 200.0));
    let codes: Vec<&str> = judge(facts).reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(codes, ["rate_shortfall", "late_sends", "send_stall", "unsent", "clock_disorder"]);
}

#[test]
fn a_rate_needs_two_requests() {
    assert_eq!(rate(1, 1_000_000_000), None);
    assert_eq!(rate(50, 2_000_000_000), Some(25.0));
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
}

#[test]
fn the_object_has_its_keys_in_order_and_only_what_is_known() {
    let mut facts = clean();
    let object = serde_json::to_value(judge(facts.clone())).unwrap();
    assert_eq!(
        keys(&object),
        [
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
            "late_prompt_count",
            "client"
        ]
    );
    assert_eq!(object["verdict"], "valid");
    assert_eq!(object["reasons"], serde_json::json!([]));
    assert_eq!(object["mode"], "rate");
    assert_eq!(keys(&object["lateness"]), ["unit", "avg", "p50", "p90", "p99", "max", "count"]);
    assert_eq!(object["lateness"]["p99"], 0.11);
    assert_eq!(
        keys(&object["client"]),
        [
            "cores",
            "workers",
            "cpu_sec",
            "cpu_us_per_request",
            "busiest_worker_cpu_pct",
            "peak_rss_bytes",
            "loop_delay",
            "delayed_request_count",
            "spilled_record_count",
            "negative_difference_count",
            "resource_error_count"
        ]
    );
    assert_eq!(object["client"]["cpu_us_per_request"], 82.0);

    facts.mode = LoadMode::Concurrency;
    facts.cap_wait = Some(spread(1.0, 1.0));
    facts.slip = Some(spread(1.0, 1.0));
    facts.initial_fill_ns = Some(2_500_000);
    facts.concurrency =
        Some(ConcurrencyFacts { limit: 16, max_in_flight: 16, ..ConcurrencyFacts::default() });
    facts.catch_up_ns = Some(0);
    facts.ramp_ns = Some(5_000_000_000);
    facts.drain_ns = Some(20_000_000);
    facts.client.mock_cpu_sec = 0.5;
    facts.client.pacer_spin_sec = 0.25;
    facts.unsent_count = 2;
    let block =
        Block { unit: "ms", avg: Some(21.5), p99: Some(f64::INFINITY), count: Some(3), ..Block::default() };
    facts.service.request_latency = Some(block);
    facts.from_intended.time_to_first_token = Some(block);
    let object = serde_json::to_value(judge(facts)).unwrap();
    assert_eq!(
        keys(&object),
        [
            "verdict",
            "reasons",
            "mode",
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
            "client"
        ]
    );
    assert_eq!(keys(&object["reasons"][0]), ["code", "message", "value", "limit", "unit", "next_step"]);
    assert_eq!(object["initial_fill_ms"], 2.5);
    assert_eq!(object["concurrency"], serde_json::json!({"limit": 16, "max_in_flight": 16}));
    assert_eq!(
        object["service"],
        serde_json::json!({"request_latency": {"unit": "ms", "avg": 21.5, "p99": "inf", "count": 3}})
    );
    assert_eq!(keys(&object["client"])[2..5], ["cpu_sec", "mock_cpu_sec", "pacer_spin_sec"]);
}
