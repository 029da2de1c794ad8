//! The server over real sockets, faults aside.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod support;

use aiperf_mock_server::{Server, Settings, StartError};
use support::{BODY, CHAT, Client, End, FULL, await_stats, post, request, start, start_with};

const FAST: &str = "ttft=0&itl=0&usage=estimate";

#[test]
fn answers_on_one_connection_and_pipelined_requests_keep_their_order() {
    let server = start("ttft=2&itl=1&usage=estimate");
    let mut client = Client::connect(&server);
    for number in 0..3 {
        let answer = client.post(CHAT, "", FULL).unwrap();
        assert_eq!(answer.json()["id"], format!("chatcmpl-{number:04}"));
    }
    let all: String = (0..5).map(|_| request(CHAT, "", BODY)).collect();
    client.send(all.as_bytes());
    for number in 3..8 {
        let answer = client.receive().unwrap();
        assert!(answer.text().contains(&format!("chatcmpl-{number:04}")));
        assert_eq!(answer.end, End::Complete);
    }
    assert_eq!(server.stats().connections, 1);
    assert_eq!(server.stats().max_in_flight, 1);
}

#[test]
fn a_request_split_at_every_byte_is_the_same_request() {
    let server = start(FAST);
    let chunked = format!(
        "POST {CHAT} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{:x};a=b\r\n{}\r\n1\r\n \r\n0\r\nT: x\r\n\r\n",
        FULL.len(),
        FULL
    );
    let mut client = Client::connect(&server);
    for wire in [request(CHAT, "", FULL), chunked] {
        for split in 1..wire.len() {
            client.send(&wire.as_bytes()[..split]);
            client.send(&wire.as_bytes()[split..]);
            let answer = client.receive().unwrap();
            assert_eq!((answer.status, answer.end), (200, End::Complete), "{split}");
        }
        for byte in wire.as_bytes() {
            client.send(std::slice::from_ref(byte));
        }
        assert_eq!(client.receive().unwrap().status, 200);
    }
}

#[test]
fn bodies_larger_than_any_buffer_arrive_whole() {
    let server = start(FAST);
    let text = "x".repeat(3_000_000);
    let body = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}],"max_tokens":1}}"#);
    let answer = post(&server, CHAT, "", &body).unwrap();
    assert_eq!(answer.json()["usage"]["prompt_tokens"], 750_000);
    assert_eq!(server.stats().body_bytes, body.len() as u64);
}

#[test]
fn answers_larger_than_the_socket_buffer_arrive_whole() {
    let server = start(FAST);
    for stream in [true, false] {
        let body = format!(r#"{{"messages":[],"stream":{stream},"max_tokens":200000}}"#);
        let answer = post(&server, CHAT, "", &body).unwrap();
        assert_eq!(answer.end, End::Complete);
        assert_eq!(answer.text().matches("hello").count(), 200_000);
    }
}

#[test]
fn bad_bodies_get_400_and_the_connection_lives() {
    let server = start(FAST);
    let mut client = Client::connect(&server);
    for (path, body, named) in [
        (CHAT, "not json", "JSON"),
        (CHAT, "", "JSON"),
        (CHAT, "[]", "JSON"),
        (CHAT, r#"{"messages":[]"#, "JSON"),
        (CHAT, r#"{"prompt":"x"}"#, "`messages`"),
        ("/v1/completions", r#"{"messages":[]}"#, "`prompt`"),
        ("/v1/embeddings", r#"{"prompt":"x"}"#, "`input`"),
        ("/v2/rerank", r#"{"documents":["x"]}"#, "`query`"),
        ("/v2/rerank", r#"{"query":"x"}"#, "`documents`"),
        ("/rerank", r#"{"query":"x","documents":[]}"#, "`texts`"),
        ("/v1/ranking", r#"{"query":{"text":"x"}}"#, "`passages`"),
        (CHAT, r#"{"messages":[],"max_tokens":0}"#, "`max_tokens`"),
        (CHAT, r#"{"messages":[],"max_completion_tokens":"5"}"#, "`max_completion_tokens`"),
    ] {
        let answer = client.post(path, "", body).unwrap();
        assert_eq!(answer.status, 400, "{body}");
        let error = &answer.json()["error"];
        assert!(error["message"].as_str().unwrap().contains(named), "{error}");
        assert_eq!(error["type"], "invalid_request_error");
    }
    assert_eq!(client.post(CHAT, "", FULL).unwrap().status, 200);
    // Said before the last byte is written, so it holds as soon as that is read.
    assert_eq!(server.stats().in_flight, 0);
}

#[test]
fn more_vectors_than_fit_in_memory_are_refused() {
    let server = start("ttft=0&embedding-dim=1048576");
    let mut client = Client::connect(&server);
    let input = |texts: usize| format!(r#"{{"input":[{}"x"]}}"#, "\"x\",".repeat(texts - 1));
    let answer = client.post("/v1/embeddings", "", &input(5000)).unwrap();
    assert_eq!(answer.status, 400);
    let error = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(error.contains("`input` has 5000 texts") && error.contains("256 MiB"), "{error}");
    assert_eq!(client.post("/v1/embeddings", "", &input(1)).unwrap().status, 200);
}

#[test]
fn heads_that_are_too_long_or_no_http_are_refused_and_the_connection_closes() {
    let server = start(FAST);
    for (head, status) in [
        (format!("POST {CHAT} HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(70_000)), 431),
        (format!("POST {CHAT} HTTP/1.1\r\nA: {}", "x".repeat(70_000)), 431),
        ("this is no request\r\n\r\n".to_owned(), 400),
        (format!("POST {CHAT} HTTP/1.1\r\nContent-Length: x\r\n\r\n"), 400),
        (format!("POST {CHAT} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), 400),
    ] {
        let mut client = Client::connect(&server);
        client.send(head.as_bytes());
        assert_eq!(client.receive().unwrap().status, status);
        assert_eq!(client.read_to_end().1, End::Closed);
    }
    let long = format!("A: {}\r\n", "x".repeat(60_000));
    assert_eq!(post(&server, CHAT, &long, FULL).unwrap().status, 200);
    await_stats(&server, |stats| stats.in_flight == 0);
}

#[test]
fn http_1_0_and_close_get_an_answer_that_ends_with_the_connection() {
    let server = start(FAST);
    let mut client = Client::connect(&server);
    client.send(request(CHAT, "", BODY).replace("HTTP/1.1", "HTTP/1.0").as_bytes());
    let answer = client.receive().unwrap();
    assert_eq!(answer.header("Transfer-Encoding"), None);
    assert!(answer.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(answer.end, End::Closed);
    let mut client = Client::connect(&server);
    assert_eq!(client.post(CHAT, "Connection: close\r\n", BODY).unwrap().end, End::Complete);
    assert_eq!(client.read_to_end(), (vec![], End::Closed));
}

#[test]
fn expect_is_answered_before_the_body() {
    let server = start(FAST);
    let wire = request(CHAT, "Expect: 100-continue\r\n", FULL);
    let (head, body) = wire.split_at(wire.len() - FULL.len());
    let mut client = Client::connect(&server);
    client.send(head.as_bytes());
    assert_eq!(client.receive().unwrap().status, 100);
    client.send(body.as_bytes());
    assert_eq!(client.receive().unwrap().status, 200);
}

#[test]
fn embeddings_in_input_order_with_the_dimension_asked_for() {
    let server = start("ttft=0&usage=estimate&embedding-dim=5");
    let answer =
        post(&server, "/v1/embeddings", "", r#"{"input":["ab","cd ef","gh"],"model":"e"}"#).unwrap().json();
    assert_eq!((&answer["object"], &answer["model"]), (&"list".into(), &"e".into()));
    for (index, item) in answer["data"].as_array().unwrap().iter().enumerate() {
        assert_eq!((&item["object"], &item["index"]), (&"embedding".into(), &index.into()));
        assert_eq!(item["embedding"], serde_json::json!([0.1, 0.2, 0.3, 0.4, 0.5]));
    }
    assert_eq!(answer["data"].as_array().unwrap().len(), 3);
    assert_eq!(answer["usage"], serde_json::json!({"prompt_tokens": 2, "total_tokens": 2}));
    let encoded = post(&server, "/v1/embeddings", "", r#"{"input":"x","encoding_format":"base64"}"#).unwrap();
    assert!(encoded.json()["data"][0]["embedding"].is_string());
    let chat = post(&server, "/v1/embeddings", "", FULL).unwrap().json();
    assert_eq!(chat["data"].as_array().unwrap().len(), 1);
}

#[test]
fn rankings_in_the_words_of_three_servers() {
    let server = start("ttft=0&usage=estimate");
    let ask = |path: &str, body: &str| post(&server, path, "", body).unwrap().json();
    assert_eq!(
        ask("/v2/rerank", r#"{"model":"m","query":"ab","documents":["cd","ef"],"stream":true}"#),
        serde_json::json!({
            "id": "rerank-0",
            "results": [{"index": 0, "relevance_score": 1.0}, {"index": 1, "relevance_score": 0.5}],
            "meta": {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": 2}}
        })
    );
    assert_eq!(
        ask("/rerank", r#"{"query":"ab","texts":["cd","ef","gh"]}"#),
        serde_json::json!([{"index": 0, "score": 1.0}, {"index": 1, "score": 0.5}, {"index": 2, "score": 0.333_333}])
    );
    assert_eq!(
        ask(
            "/v1/ranking",
            r#"{"model":"m","query":{"text":"abcd"},"passages":[{"text":"efg"},{"title":"x"}]}"#
        ),
        serde_json::json!({
            "rankings": [{"index": 0, "logit": 1.0}, {"index": 1, "logit": 0.5}],
            "usage": {"prompt_tokens": 2, "total_tokens": 2}
        })
    );
    let empty = post(&server, "/rerank?fault=empty", "", r#"{"query":"ab","texts":["cd"]}"#).unwrap().json();
    assert_eq!(empty, serde_json::json!([]));
}

#[test]
fn exact_usage_is_the_count_of_all_texts_joined_by_one_space() {
    let server = start("ttft=0&itl=0");
    let tokenizer = aiperf_tokenize::Tokenizer::builtin();
    let body = r#"{"messages":[{"role":"system","content":"Be \"brief\"\n"},{"role":"user","content":[{"type":"text","text":"Füße und Hände"}]}],"max_tokens":2}"#;
    let answer = post(&server, CHAT, "", body).unwrap().json();
    assert_eq!(answer["usage"]["prompt_tokens"], tokenizer.count("Be \"brief\"\n Füße und Hände"));
    let ids = post(&server, "/v1/completions", "", r#"{"prompt":[5,6,7]}"#).unwrap().json();
    assert_eq!(ids["usage"]["prompt_tokens"], 3);
    let stream = post(&server, CHAT, "", BODY).unwrap().text();
    assert!(stream.contains(&format!("\"prompt_tokens\":{}", tokenizer.count("one two three four"))));
}

#[test]
fn usage_settings_and_usage_in_each_chunk() {
    let off = start("ttft=0&itl=0&usage=off");
    assert!(!post(&off, CHAT, "", BODY).unwrap().text().contains("usage"));
    assert!(!post(&off, CHAT, "", FULL).unwrap().text().contains("usage"));
    let on = start("ttft=0&itl=0&usage=estimate&cached-tokens=3&spec-decode=true");
    let body = BODY.replace("include_usage\":true", "include_usage\":true,\"continuous_usage_stats\":true");
    let data = post(&on, CHAT, "", &body).unwrap().data();
    for (number, event) in data[1..7].iter().enumerate() {
        assert!(event.contains(&format!("\"completion_tokens\":{}", number + 1)), "{event}");
    }
    assert!(data[8].contains("\"prompt_tokens_details\":{\"cached_tokens\":3}"));
    assert!(data[7].contains("\"speculative_decoding\""));
    let none = BODY.replace("true}}", "false}}");
    assert!(!post(&on, CHAT, "", &none).unwrap().text().contains("usage"));
}

#[test]
fn models_are_listed_and_others_refused() {
    let any = start(FAST);
    assert_eq!(Client::connect(&any).get("/v1/models").json()["data"][0]["id"], "mock-model");
    let odd = r#"{"messages":[],"model":"a \"b\" \u00fc","max_tokens":1}"#;
    assert_eq!(post(&any, CHAT, "", odd).unwrap().json()["model"], "a \"b\" ü");
    let server = start("ttft=0&itl=0&models=org%2Fa:b");
    let listed = Client::connect(&server).get("/v1/models").json();
    assert_eq!((&listed["data"][0]["id"], &listed["data"][1]["id"]), (&"org/a".into(), &"b".into()));
    let ask = |model: &str| post(&server, CHAT, "", &FULL.replace("mock-model", model)).unwrap();
    assert_eq!(ask("org/a").status, 200);
    assert_eq!(ask("org\\/a").status, 200);
    let refused = ask("c");
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (404, &"model_not_found".into()));
    let message = |model: &str| ask(model).json()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(message("c"), "the model `c` does not exist");
    assert!(message("org/a:b").ends_with("; `models` was read as several names: as `org/a:b,` it is one"));
}

#[test]
fn other_methods_are_told_which_one_a_path_takes() {
    let server = start("ttft=0&itl=0");
    let mut client = Client::connect(&server);
    for (method, path, allowed) in
        [("GET", CHAT, "POST"), ("PUT", "/v1/models", "GET, HEAD"), ("GET", "/mock/reset", "POST")]
    {
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        let answer = client.receive().unwrap();
        assert_eq!((answer.status, answer.header("Allow")), (405, Some(allowed)), "{method} {path}");
        assert!(answer.text().contains("answers to"), "{}", answer.text());
    }
    assert_eq!(client.get("/nowhere").status, 404);
    // The head of an answer alone: what follows on the connection is the next answer.
    let listed = client.get("/v1/models").body.len().to_string();
    let heads = format!("HEAD /v1/models HTTP/1.1\r\n\r\nHEAD {CHAT} HTTP/1.1\r\nConnection: close\r\n\r\n");
    client.send(heads.as_bytes());
    let (bytes, _) = client.read_to_end();
    let text = String::from_utf8(bytes).unwrap();
    let answers: Vec<&str> = text.split_terminator("\r\n\r\n").collect();
    assert_eq!(answers.len(), 2, "{text}");
    assert!(answers[0].starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(answers[0].ends_with(&format!("Content-Length: {listed}")), "{text}");
    assert!(answers[1].starts_with("HTTP/1.1 405 ") && answers[1].contains("\r\nAllow: POST"), "{text}");
}

#[test]
fn stats_metrics_and_reset() {
    let server = start("ttft=0&itl=0&usage=estimate&plan=ok:http500");
    let mut client = Client::connect(&server);
    for status in [200, 500, 200] {
        assert_eq!(client.post(CHAT, "", FULL).unwrap().status, status);
    }
    assert_eq!(client.post("/nowhere", "", "").unwrap().status, 404);
    let stats = client.get("/mock/stats").json();
    let bytes = FULL.len() * 3;
    assert_eq!(
        stats,
        serde_json::json!({"requests": 4, "in_flight": 0, "max_in_flight": 1, "connections": 1, "aborted": 0, "body_bytes": bytes})
    );
    let metrics = client.get("/metrics").text();
    for line in [
        "mock_requests_total{code=\"200\"} 2",
        "mock_requests_total{code=\"404\"} 1",
        "mock_requests_total{code=\"500\"} 1",
        "mock_prompt_tokens_total 12",
        "mock_generation_tokens_total 12",
        "mock_requests_in_flight 0",
        "mock_time_to_first_token_seconds_count 2",
        "mock_request_duration_seconds_bucket{le=\"+Inf\"} 4",
        "# TYPE mock_request_duration_seconds histogram",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in\n{metrics}");
    }
    let reset = client.post("/mock/reset", "", "").unwrap().json();
    assert_eq!(
        reset,
        serde_json::json!({"requests": 0, "in_flight": 0, "max_in_flight": 0, "connections": 0, "aborted": 0, "body_bytes": 0})
    );
    assert_eq!(client.post(CHAT, "", FULL).unwrap().json()["id"], "chatcmpl-0000");
}

#[test]
fn in_flight_is_from_the_head_to_the_end_of_the_answer() {
    let server = start("ttft=60000&usage=estimate&threads=2");
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(&server)).collect();
    for client in &mut clients[..4] {
        client.send(request(CHAT, "", FULL).as_bytes());
    }
    for client in &mut clients[4..] {
        client.send(request(CHAT, "", FULL).split_at(100).0.as_bytes());
    }
    await_stats(&server, |stats| stats.in_flight == 8);
    drop(clients);
    await_stats(&server, |stats| stats.in_flight == 0);
    let stats = server.stats();
    assert_eq!((stats.requests, stats.max_in_flight, stats.connections, stats.aborted), (8, 8, 8, 8));
}

#[test]
fn idle_connections_are_closed_after_their_time_and_busy_ones_are_not() {
    let server = start("ttft=150&itl=0&usage=estimate&idle-timeout=50ms");
    let begun = aiperf_clock::now();
    let mut client = Client::connect(&server);
    assert_eq!(client.post(CHAT, "", FULL).unwrap().status, 200);
    assert_eq!(client.read_to_end(), (vec![], End::Closed));
    assert!(aiperf_clock::now().since(begun) >= 200_000_000);
}

#[test]
fn tokens_are_never_early() {
    let server = start("ttft=30&itl=10&usage=estimate");
    let mut client = Client::connect(&server);
    let begun = aiperf_clock::now();
    let answer = client.post(CHAT, "", BODY).unwrap();
    assert!(aiperf_clock::now().since(begun) >= 80_000_000);
    assert_eq!(answer.end, End::Complete);
    let begun = aiperf_clock::now();
    client.post(CHAT, "", FULL).unwrap();
    assert!(aiperf_clock::now().since(begun) >= 80_000_000);
}

#[test]
fn the_log_has_one_line_per_request_with_times_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("times.jsonl");
    let settings =
        Settings::from_pairs([("log", path.to_str().unwrap()), ("ttft", "5ms"), ("itl", "1ms")]).unwrap();
    let server = start_with(&settings);
    let ids = "X-Request-ID: r-1\r\nX-Correlation-ID: c\"1\r\n";
    let before = aiperf_clock::now().0;
    post(&server, CHAT, ids, BODY).unwrap();
    post(&server, CHAT, "X-Mock-Fault: http503\r\n", FULL).unwrap();
    post(&server, CHAT, "", "no").unwrap();
    let mut client = Client::connect(&server);
    client.send(request(CHAT, "X-Mock-Fault: hang\r\n", FULL).as_bytes());
    await_stats(&server, |stats| stats.in_flight == 1 && stats.body_bytes > 0);
    drop(client);
    await_stats(&server, |stats| stats.aborted == 1);
    let after = aiperf_clock::now().0;
    server.stop();
    server.join();
    assert!(server.log_fault().is_none());
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    let first = &lines[0];
    assert_eq!((&first["request_id"], &first["correlation_id"]), (&"r-1".into(), &"c\"1".into()));
    let times: Vec<u64> =
        ["accepted_ns", "head_ns", "received_ns", "first_token_ns", "last_token_ns", "end_ns"]
            .iter()
            .map(|name| first[name].as_u64().unwrap())
            .collect();
    assert!(times.is_sorted() && before <= times[0] && times[5] <= after);
    assert!(times[3] - times[2] >= 5_000_000 && times[4] - times[2] >= 10_000_000);
    assert!(first["max_itl_error_us"].is_f64());
    assert_eq!(
        (&first["tokens"], &first["status"], &first["fault"], &first["aborted"]),
        (&6.into(), &200.into(), &"ok".into(), &false.into())
    );
    assert_eq!(
        (&lines[1]["fault"], &lines[1]["status"], &lines[1]["request_id"]),
        (&"http503".into(), &503.into(), &serde_json::Value::Null)
    );
    assert_eq!((&lines[2]["status"], &lines[2]["fault"]), (&400.into(), &serde_json::Value::Null));
    assert_eq!(
        (&lines[3]["fault"], &lines[3]["aborted"], &lines[3]["first_token_ns"]),
        (&"hang".into(), &true.into(), &serde_json::Value::Null)
    );
}

#[test]
fn every_connection_is_served_whatever_the_number_of_threads() {
    let server = start("ttft=1&itl=0&usage=estimate&threads=3");
    let mut clients: Vec<Client> = (0..12).map(|_| Client::connect(&server)).collect();
    for client in &mut clients {
        client.send(request(CHAT, "", BODY).as_bytes());
    }
    for client in &mut clients {
        assert_eq!(client.receive().unwrap().end, End::Complete);
    }
    assert_eq!(server.stats().requests, 12);
}

#[test]
fn a_taken_port_is_said_and_a_stopped_server_frees_it() {
    let server = start(FAST);
    let address = server.addr();
    let settings = Settings::default();
    let refused = Server::start(&settings, address).unwrap_err();
    assert!(matches!(refused, StartError::PortTaken(taken) if taken == address));
    assert!(refused.to_string().contains(&address.to_string()));
    drop(server);
    assert_eq!(Server::start(&settings, address).unwrap().addr(), address);
}

#[test]
fn cpu_time_grows_and_stays_after_the_end() {
    let server = start(FAST);
    let before = server.cpu_ns().unwrap();
    let mut client = Client::connect(&server);
    for _ in 0..200 {
        client.post(CHAT, "", BODY).unwrap();
    }
    server.stop();
    server.join();
    let after = server.cpu_ns().unwrap();
    assert!(after > before);
    assert_eq!(server.cpu_ns(), Some(after));
}

#[test]
fn stopping_ends_answers_under_way() {
    let server = start("ttft=60000&usage=estimate");
    let mut client = Client::connect(&server);
    client.send(request(CHAT, "", FULL).as_bytes());
    await_stats(&server, |stats| stats.in_flight == 1);
    server.stop();
    assert_eq!(client.receive().unwrap_err(), End::Closed);
    server.join();
    assert_eq!((server.stats().in_flight, server.stats().aborted), (0, 0));
}
