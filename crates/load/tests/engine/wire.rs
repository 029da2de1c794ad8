//! What goes over the wire, byte by byte, and the stamps of every step.

use std::sync::Arc;
use std::sync::mpsc::channel;

use aiperf_config::{Header, Secret};
use aiperf_load::Received;
use aiperf_types::{Body, PhaseKind};

use crate::closed_loop::burst;
use crate::harness::{Feed, Gate, LAYOUTS, Server, Setup, endpoint, phase, prepared, setup, singles, ticket};

fn hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[test]
fn a_request_is_these_bytes_and_no_others() {
    let (asked, requests) = channel();
    let server = Server::start(move |conn| {
        asked.send(conn.request()?).unwrap();
        conn.ok()
    });
    let mut endpoint = endpoint();
    endpoint.streaming = true;
    endpoint.api_key = Some(Secret::new("sk-key"));
    let header = |name: &str, value: &str| Header { name: name.into(), value: Secret::new(value) };
    endpoint.headers =
        vec![header("user-agent", "mine/1"), header("X-Extra", "1"), header("accept", "text/html")];
    let setup = Setup::new(&format!("http://{}/base/v1?tenant=7", server.addr), &endpoint);
    let format = Arc::clone(&setup.settings.format);
    let conversation = crate::harness::conversation("a", &["hé\u{1f600}"]);
    let source = crate::harness::talks(vec![conversation], &format, 0.0);
    let (_, exchanges) = setup.start().run(phase(burst(1, 1), source));
    let request = requests.recv().unwrap();
    let identity = &exchanges[0].identity;
    let id = std::str::from_utf8(&identity.request_id).unwrap();
    let session = &identity.correlation_id;
    assert!(
        id.len() == 36 && hexadecimal(id) && session.len() == 36 && hexadecimal(session) && id != &**session
    );
    let length = request.body.len();
    assert_eq!(
        request.head,
        format!(
            "POST /base/v1/chat/completions?tenant=7 HTTP/1.1\r\nHost: {}\r\nUser-Agent: mine/1\r\nX-Request-ID: {id}\r\n\
             X-Correlation-ID: {session}\r\nX-Extra: 1\r\naccept: text/event-stream\r\nAuthorization: Bearer sk-key\r\n\
             Content-Type: application/json\r\nX-Session-Affinity: {session}\r\nContent-Length: {length}\r\n\r\n",
            server.addr
        )
    );
    let body = "{\"messages\":[{\"role\":\"user\",\"content\":\"hé\u{1f600}\"}],\"model\":\"m\",\"stream\":true,\
                \"stream_options\":{\"include_usage\":true}}";
    assert_eq!(String::from_utf8(request.body).unwrap(), body);
}

#[test]
fn nothing_is_asked_for_that_would_change_what_is_measured() {
    let (asked, requests) = channel();
    let server = Server::start(move |conn| {
        asked.send(conn.request()?).unwrap();
        conn.answer("200 OK", "Set-Cookie: a=b\r\n", "{}")?;
        asked.send(conn.request()?).unwrap();
        conn.ok()
    });
    setup(server.addr).start().run(phase(burst(1, 2), singles()));
    for request in requests.try_iter() {
        for name in
            ["accept-encoding", "cookie", "expect", "te", "upgrade", "connection", "transfer-encoding"]
        {
            assert_eq!(request.header(name), None, "{name}");
        }
        assert_eq!(request.header("accept"), Some("application/json"));
    }
}

#[test]
fn a_body_of_many_pieces_arrives_whole() {
    let (asked, requests) = channel();
    let server = Server::start(move |conn| {
        loop {
            asked.send(conn.request()?).unwrap();
            conn.ok()?;
        }
    });
    // More pieces than one write call takes, and more bytes than a socket buffer holds.
    let pieces: Vec<Vec<u8>> =
        (0..1500_usize).map(|n| vec![b'a' + (n % 26) as u8; 1 + n * 7 % 9000]).collect();
    let whole = pieces.concat();
    let mut pieces = Some(pieces);
    let source = Feed::new(move || {
        let Some(pieces) = pieces.take() else { return aiperf_load::schedule::Draw::Exhausted };
        let mut body = Body::default();
        for piece in pieces {
            body.push(piece);
        }
        let mut request = aiperf_endpoint::Rendered::default();
        request.body = body;
        aiperf_load::schedule::Draw::Session(aiperf_load::schedule::NewSession {
            conversation: 0,
            turns: 1,
            first_ms: None,
            run: 0,
            ticket: ticket(prepared("c", vec![Arc::new(request)])),
        })
    });
    let (_, exchanges) = setup(server.addr).start().run(phase(burst(1, 1), source.boxed()));
    assert!(requests.recv().unwrap().body == whole);
    let trace = &exchanges[0].trace;
    let facts = trace.facts.as_ref().unwrap();
    assert_eq!(trace.bytes_sent, whole.len() as u64);
    assert_eq!(trace.chunks_sent as usize, facts.writes.len());
    assert!(facts.writes.len() > 20);
    assert_eq!(facts.writes.iter().map(|write| u64::from(write.1)).sum::<u64>(), whole.len() as u64);
    assert!(facts.writes.is_sorted_by_key(|write| write.0));
    assert_eq!(facts.writes.last().map(|write| write.0), trace.send_end);
}

#[test]
fn stamps_are_in_the_order_of_what_they_stamp() {
    for layout in LAYOUTS {
        let server = Server::start(|conn| {
            loop {
                conn.request()?;
                conn.stream_head()?;
                for _ in 0..3 {
                    conn.chunk("data: {}\n\n")?;
                }
                conn.chunk("")?;
            }
        });
        let (outcome, exchanges) =
            setup(server.addr).layout(layout).start().run(phase(burst(3, 60), singles()));
        for exchange in exchanges {
            let trace = &exchange.trace;
            let facts = trace.facts.as_ref().unwrap();
            let mut steps = vec![outcome.t0, exchange.plan.due, exchange.plan.let_go, exchange.plan.issued];
            steps.push(exchange.start);
            if let Some((from, until)) = trace.connect {
                steps.extend([from, until]);
            }
            assert_eq!(trace.connect.is_none(), trace.reused, "a connection is new or used");
            assert_eq!((trace.dns, trace.tls, trace.pool_wait), (None, None, None));
            steps.extend([trace.send_start, trace.headers_sent, trace.send_end].map(Option::unwrap));
            steps.push(exchange.headers.unwrap());
            steps.push(trace.receive_start.unwrap());
            steps.extend(facts.reads.iter().map(|read| read.0));
            steps.extend([trace.receive_end.unwrap(), exchange.end, outcome.end]);
            assert!(steps.is_sorted(), "{layout:?}: {steps:?}");
            assert_eq!(trace.chunks_received as usize, facts.reads.len());
            assert_eq!(facts.reads.iter().map(|read| u64::from(read.1)).sum::<u64>(), 30);
            assert_eq!((trace.bytes_received, trace.chunks_sent), (30, 1));
            assert_eq!(exchange.status, Some(200));
            assert_eq!(exchange.identity.phase, PhaseKind::Profiling);
        }
    }
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/86>
#[test]
fn inference_perf_86_every_read_is_stamped_and_the_answer_ends_with_its_last_byte() {
    let (go, ready) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    let (gates, seen) = ((Arc::clone(&go), Arc::clone(&ready)), channel());
    let server = Server::start(move |conn| {
        conn.request()?;
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\nabcd")?;
        gates.1.open();
        gates.0.pass()?;
        seen.0.send(aiperf_clock::now()).unwrap();
        conn.send(b"efgh")?;
        conn.request()?;
        conn.ok()
    });
    let mut rig = setup(server.addr).start();
    rig.begin(phase(burst(1, 1), singles()));
    ready.pass().unwrap();
    go.open();
    let (_, exchanges) = rig.finish();
    let exchange = &exchanges[0];
    let second_half = seen.1.recv().unwrap();
    assert!(exchange.end >= second_half && exchange.trace.receive_end.unwrap() >= second_half);
    assert!(exchange.trace.receive_start.unwrap() <= exchange.trace.receive_end.unwrap());
    let Received::Bytes(bytes) = &exchange.received else { panic!("a whole body is left unread") };
    assert_eq!(bytes.data, b"abcdefgh");
    let facts = exchange.trace.facts.as_ref().unwrap();
    let ends: Vec<_> = bytes.reads.iter().map(|read| read.0).collect();
    // Two reads, unless the client was so slow that both halves were there at its first.
    assert!(ends == [4, 8] || ends == [8], "{ends:?}");
    assert_eq!(
        bytes.reads.iter().map(|read| read.1).collect::<Vec<_>>(),
        facts.reads.iter().map(|read| read.0).collect::<Vec<_>>()
    );
    assert_eq!((facts.reason.as_str(), facts.remote), ("OK", Some(server.addr)));
    assert_eq!(facts.response_headers[0], ("Content-Type".to_owned(), "application/json".to_owned()));
    assert!(
        facts.local.is_some_and(|local| local.ip() == server.addr.ip() && local.port() != server.addr.port())
    );
}

#[test]
fn a_compressed_answer_is_handed_on_as_it_came() {
    let server = Server::start(|conn| {
        conn.request()?;
        conn.answer("200 OK", "Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n", "not text")
    });
    let (_, exchanges) = setup(server.addr).start().run(phase(burst(1, 1), singles()));
    let Received::Bytes(bytes) = &exchanges[0].received else { panic!("nobody decodes on a network thread") };
    assert_eq!((bytes.content_encoding.as_str(), bytes.data.as_slice()), ("gzip", b"not text".as_slice()));
}

#[test]
fn facts_are_kept_only_when_asked_for() {
    let server = Server::friendly();
    let mut setup = setup(server.addr);
    setup.settings.want_facts = false;
    setup.settings.want_headers = true;
    let (_, exchanges) = setup.start().run(phase(burst(1, 1), singles()));
    assert!(exchanges[0].trace.facts.is_none());
    let headers = exchanges[0].request.headers.as_ref().unwrap();
    assert!(headers.iter().any(|(name, value)| name == "Host" && *value == server.addr.to_string()));
}
