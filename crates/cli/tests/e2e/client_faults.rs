//! Clients that were the bottleneck themselves: each public report is held off by a test that names it.

use aiperf_clock::now;
use rustix::process::Signal;

use crate::support::{Live, Mock, Place};

const SERVER: [(&str, &str); 3] = [("ttft", "1ms"), ("itl", "0"), ("tokens", "4")];

fn threads_of(flags: &str) -> Vec<String> {
    let place = Place::new();
    let mock = Mock::start(&SERVER);
    let live =
        Live::start(&mut place.profile(&mock.url(), &format!("{flags} --benchmark-duration 40 --isl 16")));
    mock.until(|stats| stats.requests >= 20);
    let threads = live.threads();
    live.signal(Signal::INT);
    live.end().with_code(0);
    threads
}

/// <https://github.com/vllm-project/vllm/issues/7935>: many client objects in one process did not scale. One process
/// has a thread for every core it may use.
#[test]
fn vllm_7935_one_process_has_a_thread_for_every_core() {
    let threads = threads_of("--concurrency 256");
    let working =
        threads.iter().filter(|name| name.starts_with("net-") || name.starts_with("compute-")).count();
    let cores = std::thread::available_parallelism().unwrap().get();
    assert!(working >= cores.min(16), "{working} threads on {cores} cores: {threads:?}");
}

/// <https://github.com/ai-dynamo/aiperf/issues/1057>: each send and each return crossed processes. With one network
/// thread the schedule runs on it, and nothing lies between the schedule and the socket.
#[test]
fn aiperf_1057_with_one_worker_the_schedule_runs_beside_the_sockets() {
    let threads = threads_of("--concurrency 4 --workers-max 1");
    assert!(threads.iter().any(|name| name == "net-0"), "{threads:?}");
    assert!(threads.iter().all(|name| name != "pacer" && name != "net-1"), "{threads:?}");
}

/// <https://github.com/NVIDIA-NeMo/Skills/issues/1500>: 95 % of a core went into the client's event loop, and no figure
/// said so.
#[test]
fn nemo_skills_1500_what_the_client_used_is_in_every_report() {
    let place = Place::new();
    let mock = Mock::start(&SERVER);
    let begin = now();
    let ran = place.run(&mock.url(), "--streaming --concurrency 8 --request-count 400 --isl 16").with_code(0);
    let lasted = now().saturating_since(begin) as f64 / 1e9;
    let client = &place.results().summary()["load_delivery"]["client"];
    let cpu = client["cpu_sec"].as_f64().unwrap();
    assert!(cpu > 0.0 && cpu < lasted * client["cores"].as_f64().unwrap(), "{client}");
    let each = client["cpu_us_per_request"].as_f64().unwrap();
    assert!((each - cpu * 1e6 / 400.0).abs() < 1.0, "{client}");
    assert!(client["busiest_worker_cpu_pct"].as_f64().unwrap() > 0.0, "{client}");
    assert!(ran.out.contains("us per request, busiest worker"), "{}", ran.out);
}

/// <https://github.com/ai-dynamo/aiperf/issues/1076>: a second parser, made by hand, took answers for good that the
/// first one refused. The answer that a conversation goes on with is the one that is recorded.
#[test]
fn aiperf_1076_the_answer_that_goes_on_is_the_one_that_is_recorded() {
    let place = Place::new();
    let line = "--streaming --num-conversations 6 --conversation-turn-mean 3 --conversation-turn-stddev 0 --isl 16 \
                --export-level raw";
    let url = "mock://?ttft=1ms&itl=0&tokens=5&plan=ok*3:malformed:reasoning:sse_error_event:midstream_error";
    place.run(url, line).with_code(0);
    let lines = place.results().lines("profile_export_raw.jsonl");
    let mut checked = 0;
    for line in &lines {
        let at = &line["metadata"];
        let next = lines.iter().find(|other| {
            other["metadata"]["x_correlation_id"] == at["x_correlation_id"]
                && other["metadata"]["turn_index"].as_u64() == at["turn_index"].as_u64().map(|turn| turn + 1)
        });
        let Some(next) = next else { continue };
        let messages = next["payload"]["messages"].as_array().unwrap();
        let before = &messages[messages.len() - 2];
        let failed = line.get("error").is_some();
        // A turn that failed leaves no answer behind: two messages of the user in a row.
        assert_eq!(before["role"] == "user", failed, "{line}\n{messages:?}");
        checked += 1;
    }
    assert_eq!(checked, 12);
}
