//! What is odd about answers, and about a warmup: said once, counted, and no reason to end a run.

use crate::support::{Echo, Place, http};

#[test]
fn what_is_odd_about_answers_is_said_once() {
    for (url, flags, said) in [
        (
            "mock://?ttft=1ms&itl=0&tokens=3&plan=gzip",
            "",
            "the server compresses answers it was not asked to compress",
        ),
        (
            "mock://?ttft=1ms&itl=0&tokens=3&plan=no_stream",
            "--streaming",
            "4 streaming request(s) were answered in one piece",
        ),
        (
            "mock://?ttft=1ms&itl=0&tokens=3&plan=no_usage",
            "--use-server-token-count",
            "--use-server-token-count is given and the server reports no usage",
        ),
    ] {
        let place = Place::new();
        let ran = place.run(url, &format!("--request-count 4 --concurrency 2 --isl 16 {flags}")).with_code(0);
        assert_eq!(ran.err.matches(said).count(), 1, "{url}: {}", ran.err);
        assert_eq!(place.results().summary()["request_count"]["avg"], 4.0);
    }
}

/// Events that a proxy holds back and sends together share one instant; how many, is said.
#[test]
fn events_that_arrive_together_are_counted_and_said() {
    let place = Place::new();
    let server = Echo::start(|_| {
        let event = |text: &str| {
            let chunk = serde_json::json!({
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": {"content": text}}],
            });
            format!("data: {chunk}\n\n")
        };
        let body: String = ["one", " two", " three", " four"].map(event).concat() + "data: [DONE]\n\n";
        http("200 OK", "Content-Type: text/event-stream\r\n", &body)
    });
    let url = format!("http://127.0.0.1:{}", server.port);
    let ran = place.run(&url, "--streaming --request-count 3 --isl 16").with_code(0);
    let said = "75.0 % of the events arrived together with the one before and share its time";
    assert!(ran.err.contains(said), "{}", ran.err);
}

/// A clean end without a word about it may be the end of the answer, or that of a proxy's patience.
#[test]
fn streams_that_end_without_saying_so_are_told_once() {
    let place = Place::new();
    let url = "mock://?ttft=1ms&itl=0&tokens=3&plan=ok*3:no_done";
    let ran = place.run(url, "--streaming --request-count 24 --isl 16").with_code(0);
    let said = "6 of 24 streams ended without [DONE] or a finish reason: their outputs may be cut";
    assert_eq!(ran.err.matches(said).count(), 1, "{}", ran.err);
    assert_eq!(place.results().summary()["truncated_stream_count"], 6);
    let ran =
        place.run("mock://?ttft=1ms&itl=0&tokens=3", "--streaming --request-count 4 --isl 16").with_code(0);
    assert!(!ran.err.contains("[DONE]"), "{}", ran.err);
}

#[test]
fn a_prompt_that_does_not_fit_the_context_is_counted_as_such() {
    let place = Place::new();
    let server = Echo::start(|_| {
        let error =
            "{\"error\":{\"message\":\"This model's maximum context length is 8 tokens\",\"code\":400}}";
        http("400 Bad Request", "Content-Type: application/json\r\n", error)
    });
    let url = format!("http://127.0.0.1:{}", server.port);
    let ran = place.run(&url, "--request-count 3 --isl 16").with_code(1);
    assert_eq!(place.results().summary()["context_overflow_count"]["avg"], 3.0);
    assert!(
        ran.err.contains("no request succeeded: the run has failed (exit code 1); the server does not take")
    );
}

/// A warmup whose requests all fail ends nothing, counts for no threshold, and breaks nothing off on purpose.
#[test]
fn a_warmup_that_fails_is_said_and_stops_nothing() {
    let place = Place::new();
    let flags = "--warmup-request-count 12 --request-count 12 --isl 16 --failed-request-threshold 0.1";
    let ran = place.run("mock://?ttft=1ms&itl=0&tokens=3&plan=http500*12:ok*12", flags).with_code(0);
    assert_eq!(ran.err.matches("12 of 12 warmup requests failed").count(), 1, "{}", ran.err);
    let summary = place.results().summary();
    assert_eq!(summary["request_count"]["avg"], 12.0);
    assert!(summary.get("error_request_count").is_none_or(|block| block["avg"] == 0.0));
}

#[test]
fn no_request_of_a_warmup_is_broken_off_on_purpose() {
    let place = Place::new();
    let flags = "--warmup-request-count 3 --request-count 4 --isl 16 --request-cancellation-rate 100";
    let ran = place.run("mock://?ttft=1ms&itl=0&tokens=3", flags).with_code(1);
    let said = "no request succeeded: the run has failed (exit code 1); every request was broken off by \
                --request-cancellation-rate 100\n";
    assert!(ran.err.contains(said), "{}", ran.err);
    let records = place.results().records();
    let count = |phase: &str, cancelled: bool| {
        let of = |record: &&serde_json::Value| {
            record["metadata"]["benchmark_phase"] == phase && record["metadata"]["was_cancelled"] == cancelled
        };
        records.iter().filter(of).count()
    };
    assert_eq!([count("warmup", false), count("profiling", true), records.len()], [3, 4, 7]);
}

/// The last line of a run names what was wrong with the answers, in a line that can be read.
#[test]
fn the_last_line_says_what_was_wrong_with_the_answers() {
    let stream =
        "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let page = format!("<html>{}</html>", "x".repeat(4000));
    let redirect = "Location: http://elsewhere:1/v1\r\n";
    let json = "Content-Type: application/json\r\n";
    let answers = [
        (
            http("200 OK", "Content-Type: text/plain\r\n", stream),
            "the answer is an event stream, but its Content-Type is text/plain: the server, or a proxy before it, must send \
             text/event-stream",
        ),
        (http("200 OK", "Content-Type: text/html\r\n", &page), "xxx…"),
        (
            http("200 OK", &format!("{json}Content-Encoding: br\r\n"), "\u{b}"),
            "(gzip and deflate can be read)",
        ),
        (
            http("302 Found", redirect, ""),
            "the server redirects to http://elsewhere:1/v1; give that address as --url",
        ),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n".to_vec(),
            "--url must name a server of HTTP/1.1",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), "check --url and --endpoint; its log may say why"),
        (
            http("401 Unauthorized", "", ""),
            "refuses the key of --api-key: check it, and what it may be used for",
        ),
        (http("503 Service Unavailable", "Retry-After: 7\r\n", "model loading"), "(Retry-After: 7): wait"),
    ];
    for (answer, last_words) in answers {
        let server = Echo::start(move |_| answer.clone());
        let url = format!("http://127.0.0.1:{}", server.port);
        let place = Place::new();
        let flags = "--streaming --request-count 3 --isl 16 --api-key planted";
        let ran = place.run(&url, flags).with_code(1);
        let last = ran.err.trim_end().lines().last().unwrap();
        assert!(last.ends_with(last_words) && last.len() < 450, "{last_words}: {}", ran.err);
    }
}
