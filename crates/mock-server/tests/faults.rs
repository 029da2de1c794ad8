//! What each fault looks like on the wire.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod support;

use std::io::Read as _;

use support::{BODY, CHAT, Client, End, FULL, await_stats, faulty, post, request, start};

const FAST: &str = "ttft=1&itl=1&usage=estimate&stall=60ms";

fn hellos(text: &str) -> usize {
    text.matches("hello").count()
}

#[test]
fn ok_is_a_whole_stream_with_its_terminator() {
    let answer = faulty(&start(FAST), "ok").unwrap();
    assert_eq!((answer.status, answer.end), (200, End::Complete));
    assert_eq!(answer.header("Content-Type"), Some("text/event-stream"));
    let data = answer.data();
    assert_eq!(data.len(), 10);
    assert!(data[0].contains(r#""delta":{"role":"assistant","content":""}"#));
    assert!(data[7].contains(r#""delta":{},"finish_reason":"length""#));
    assert!(data[8].contains(r#""usage":{"prompt_tokens":4,"completion_tokens":6,"total_tokens":10}"#));
    assert_eq!(data[9], "[DONE]");
    assert_eq!(answer.chunks, 10);
}

#[test]
fn http_statuses_have_a_json_error_and_their_headers() {
    let server = start(FAST);
    for (status, reason) in [
        (500, "Internal Server Error"),
        (404, "Not Found"),
        (429, "Too Many Requests"),
        (503, "Service Unavailable"),
        (307, "Temporary Redirect"),
        (599, "Server Error"),
    ] {
        let answer = faulty(&server, &format!("http{status}")).unwrap();
        assert_eq!((answer.status, answer.end), (status, End::Complete));
        assert!(answer.head.starts_with(&format!("HTTP/1.1 {status} {reason}\n")), "{}", answer.head);
        assert_eq!(answer.json()["error"]["code"], status);
        let retries = matches!(status, 429 | 503);
        assert_eq!(answer.header("Retry-After"), retries.then_some("1"));
        assert_eq!(answer.header("Location").is_some(), status == 307);
    }
    assert_eq!(faulty(&server, "http304").unwrap().status, 304);
}

#[test]
fn malformed_replaces_the_third_content_chunk() {
    let answer = faulty(&start(FAST), "malformed").unwrap();
    let data = answer.data();
    assert_eq!(data[3], r#"{"id": "broken", "choices": ["#);
    assert_eq!((hellos(&answer.text()), data.len(), answer.end), (5, 10, End::Complete));
}

#[test]
fn midstream_error_is_an_error_object_and_done_after_two_chunks() {
    let data = faulty(&start(FAST), "midstream_error").unwrap().data();
    assert_eq!(data.len(), 5);
    assert_eq!(data[3], r#"{"error":{"message":"mock engine died","type":"internal","code":503}}"#);
    assert_eq!(data[4], "[DONE]");
}

#[test]
fn sse_error_event_has_its_message_in_a_comment() {
    let answer = faulty(&start(FAST), "sse_error_event").unwrap();
    assert!(answer.text().ends_with("event: error\n: mock engine died\n\n"));
    assert_eq!((hellos(&answer.text()), answer.end), (2, End::Complete));
}

#[test]
fn empty_has_no_content() {
    let answer = faulty(&start(FAST), "empty").unwrap();
    assert_eq!((answer.data().len(), hellos(&answer.text())), (4, 0));
    assert!(answer.text().contains("\"completion_tokens\":0"));
}

#[test]
fn early_close_and_reset_end_after_two_chunks() {
    let server = start(FAST);
    for (fault, end) in [("early_close", End::Closed), ("reset", End::Reset)] {
        let answer = faulty(&server, fault).unwrap();
        assert_eq!((hellos(&answer.text()), &answer.end), (2, &end), "{fault}");
        let full = post(&server, CHAT, &format!("X-Mock-Fault: {fault}\r\n"), FULL).unwrap();
        assert_eq!(full.end, end, "{fault}");
        assert!(!full.body.is_empty());
    }
    await_stats(&server, |stats| stats.in_flight == 0);
    assert_eq!(server.stats().aborted, 0, "the server closed, not the client");
}

#[test]
fn close_and_garbage_have_no_head() {
    let server = start(FAST);
    assert_eq!(faulty(&server, "close").unwrap_err(), End::Closed);
    let mut client = Client::connect(&server);
    client.send(request(CHAT, "X-Mock-Fault: garbage\r\n", BODY).as_bytes());
    let (bytes, end) = client.read_to_end();
    assert!(!bytes.is_empty() && !bytes.starts_with(b"HTTP"));
    assert_eq!(end, End::Closed);
}

#[test]
fn truncated_is_shorter_than_its_content_length() {
    let server = start(FAST);
    for body in [BODY, FULL] {
        let answer = post(&server, CHAT, "X-Mock-Fault: truncated\r\n", body).unwrap();
        let promised: usize = answer.header("Content-Length").unwrap().parse().unwrap();
        assert!(answer.body.len() < promised);
        assert_eq!(answer.end, End::Closed);
    }
    let stream = post(&server, CHAT, "X-Mock-Fault: truncated\r\n", BODY).unwrap();
    assert_eq!(stream.data().last().unwrap(), "[DONE]");
}

#[test]
fn no_done_ends_cleanly_without_done_and_finish_reason() {
    let answer = faulty(&start(FAST), "no_done").unwrap();
    assert_eq!(answer.end, End::Complete);
    assert!(!answer.text().contains("[DONE]") && !answer.text().contains("\"finish_reason\":\""));
    assert_eq!(hellos(&answer.text()), 6);
}

#[test]
fn stalls_take_their_time_and_then_go_on() {
    let server = start(FAST);
    for fault in ["stall", "slow_headers"] {
        let begun = aiperf_clock::now();
        let answer = faulty(&server, fault).unwrap();
        assert!(aiperf_clock::now().since(begun) >= 60_000_000, "{fault}");
        assert_eq!((hellos(&answer.text()), answer.end), (6, End::Complete));
    }
}

#[test]
fn hang_gives_two_chunks_and_then_waits_for_the_client_to_go() {
    let server = start(FAST);
    let mut client = Client::connect(&server);
    client.send(request(CHAT, "X-Mock-Fault: hang\r\n", BODY).as_bytes());
    let mut seen = String::new();
    while hellos(&seen) < 2 {
        let mut bytes = [0; 4096];
        let length = client.stream.read(&mut bytes).unwrap();
        assert!(length > 0);
        seen.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    assert_eq!(server.stats().in_flight, 1);
    drop(client);
    await_stats(&server, |stats| stats.in_flight == 0 && stats.aborted == 1);
}

#[test]
fn reasoning_comes_first_and_is_counted() {
    let answer = faulty(&start(FAST), "reasoning").unwrap();
    assert_eq!(answer.text().matches("\"reasoning_content\":").count(), 3);
    assert_eq!(hellos(&answer.text()), 6);
    assert!(answer.text().contains("\"completion_tokens_details\":{\"reasoning_tokens\":3}"));
}

#[test]
fn tools_are_three_deltas_and_eight_tokens() {
    let answer = faulty(&start(FAST), "tools").unwrap();
    assert_eq!(answer.text().matches("\"tool_calls\":").count(), 3);
    assert!(answer.text().contains("\"completion_tokens\":8"));
    let arguments: String = answer.data()[1..4]
        .iter()
        .map(|event| {
            let chunk: serde_json::Value = serde_json::from_str(event).unwrap();
            let call = &chunk["choices"][0]["delta"]["tool_calls"][0]["function"];
            call["arguments"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(arguments, r#"{"q":"hello"}"#);
}

#[test]
fn refusal_is_refusal_text_only() {
    let answer = faulty(&start(FAST), "refusal").unwrap();
    assert_eq!(answer.text().matches("\"delta\":{\"refusal\":").count(), 6);
    assert!(!answer.text().contains("\"delta\":{\"content\""));
}

#[test]
fn one_and_bundle_change_tokens_per_chunk() {
    let server = start(FAST);
    let one = faulty(&server, "one").unwrap();
    assert_eq!(hellos(&one.text()), 1);
    assert!(one.text().contains("\"completion_tokens\":1") && one.text().contains("\"stop\""));
    let bundle = faulty(&server, "bundle").unwrap();
    assert_eq!((hellos(&bundle.text()), bundle.data().len()), (6, 6));
    assert!(bundle.data()[2].contains("\" hello hello\""));
}

#[test]
fn comments_stand_between_chunks() {
    let text = faulty(&start(FAST), "comments").unwrap().text();
    assert_eq!(text.matches("\n: ping\n\n").count(), 5);
    assert_eq!(text.matches("event: heartbeat\ndata: {").count(), 5);
    assert_eq!(hellos(&text), 6);
}

#[test]
fn split_and_crlf_say_the_same_in_other_bytes() {
    let server = start(FAST);
    let plain = faulty(&server, "ok").unwrap().text().replace("-0000", "");
    let split = faulty(&server, "split").unwrap().text().replace("-0001", "");
    let crlf = faulty(&server, "crlf").unwrap().text().replace("-0002", "");
    assert_eq!(split, plain);
    assert_eq!(crlf, plain.replace('\n', "\r\n"));
}

#[test]
fn no_stream_and_no_usage() {
    let server = start(FAST);
    let whole = faulty(&server, "no_stream").unwrap();
    assert_eq!(whole.header("Content-Type"), Some("application/json"));
    assert_eq!(whole.json()["usage"]["completion_tokens"], 6);
    assert!(!faulty(&server, "no_usage").unwrap().text().contains("usage"));
}

#[test]
fn gzip_bodies_inflate_to_the_plain_ones() {
    let server = start(FAST);
    for body in [BODY, FULL] {
        let packed = post(&server, CHAT, "X-Mock-Fault: gzip\r\n", body).unwrap();
        assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
        assert_eq!(hellos(&text), 6);
        assert!(text.ends_with(if body == BODY { "data: [DONE]\n\n" } else { "}" }));
    }
}

#[test]
fn header_then_query_then_plan_choose_the_fault() {
    let server = start("ttft=0&itl=0&usage=off&plan=ok*2:http500:one");
    let status = |path: &str, headers: &str| post(&server, path, headers, FULL).unwrap().status;
    let query = format!("{CHAT}?x=1&fault=http503");
    assert_eq!(status(CHAT, ""), 200);
    assert_eq!(status(CHAT, ""), 200);
    assert_eq!(status(CHAT, ""), 500);
    assert_eq!(status(&query, ""), 503);
    assert_eq!(status(&query, "x-mock-fault: http429\r\n"), 429);
    assert_eq!(status(CHAT, "X-Mock-Fault: nope\r\n"), 400);
    assert_eq!(status(&format!("{CHAT}?fault=nope"), ""), 400);
}
