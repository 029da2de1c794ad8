//! Shared by the integration tests.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::trivially_copy_pass_by_ref,
    reason = "helpers of tests, in the form of the API"
)]

use aiperf_clock::Mono;
use aiperf_config::{EndpointConfig, EndpointKind, Target};
use aiperf_endpoint::{ReadPlan, Reader, Reading};
use serde_json::Value;

/// An endpoint with nothing special.
pub fn endpoint(kind: EndpointKind, streaming: bool) -> EndpointConfig {
    EndpointConfig { streaming, ..EndpointConfig::new(kind, Target::Mock(String::new())) }
}

/// A recorded case: one JSON object per request.
pub fn case(name: &str) -> Vec<(Value, String)> {
    let path = format!("{}/tests/data/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| {
        // The payload stands last, so that its bytes can be had as they are.
        let at = line.rfind(",\"payload\":").unwrap() + ",\"payload\":".len();
        (serde_json::from_str(line).unwrap(), line[at..line.len() - 1].to_owned())
    });
    lines.collect()
}

/// Reads one event per element, the k-th at instant `times[k]`.
pub fn read(plan: &ReadPlan, reads: &[(&str, u64)]) -> Reading {
    let mut reader = Reader::new(plan, "text/event-stream");
    let mut end = 0;
    for (bytes, at) in reads {
        reader.push(bytes.as_bytes(), Mono(*at));
        end = *at;
    }
    reader.finish(Mono(end + 1))
}

/// Reads a whole body at instant 7.
pub fn whole(plan: &ReadPlan, body: &str) -> Reading {
    let mut reader = Reader::new(plan, "application/json");
    reader.push(body.as_bytes(), Mono(7));
    reader.finish(Mono(8))
}

/// `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":…}]}` as an event.
pub fn delta(delta: &str) -> String {
    format!(
        "data: {{\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n"
    )
}
