//! How requests fail, and under which name.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use aiperf_config::StopRule;
use aiperf_load::schedule::{Draw, NewSession, Plan};
use aiperf_load::{Exchange, Received, Ticket};
use proptest::prelude::*;

use crate::closed_loop::{burst, requests, rng};
use crate::harness::{
    Conn, Feed, Gate, LAYOUTS, Server, body, closed_port, phase, prepared, setup, singles, ticket,
};

/// The one exchange with a server that runs `script`.
fn failing(script: impl Fn(&mut Conn) -> Option<()> + Send + Sync + 'static) -> Exchange {
    let server = Server::start(script);
    let (outcome, mut exchanges) = setup(server.addr).start().run(phase(burst(1, 1), singles()));
    assert_eq!((outcome.counts.returned, exchanges.len()), (1, 1));
    assert_eq!(server.accepted(), 1, "no request is tried twice");
    exchanges.remove(0)
}

fn kind(exchange: &Exchange) -> (Option<i64>, &str) {
    exchange.failure.as_ref().map_or((None, "none"), |error| (error.code, error.kind.as_str()))
}

fn message(exchange: &Exchange) -> &str {
    &exchange.failure.as_ref().unwrap().message
}

#[test]
fn a_server_that_is_not_there_is_a_connector_error() {
    let closed = closed_port();
    let (_, exchanges) = setup(closed.addr).start().run(phase(burst(1, 1), singles()));
    assert_eq!(kind(&exchanges[0]), (None, "ClientConnectorError"));
    let text = message(&exchanges[0]);
    assert!(text.contains(&closed.addr.to_string()) && text.contains("os error 111"), "{text}");
    let trace = &exchanges[0].trace;
    assert_eq!((trace.send_start, trace.send_end, trace.bytes_sent), (None, None, 0));
    assert!(exchanges[0].end >= exchanges[0].start);
}

/// <https://github.com/ai-dynamo/dynamo/issues/11801>
#[test]
fn dynamo_11801_a_closed_loop_does_not_hammer_a_server_that_refuses() {
    let closed = closed_port();
    for layout in LAYOUTS {
        let stop = StopRule { duration: Some(Duration::from_millis(300)), ..StopRule::default() };
        let run = phase(Plan::burst(4, stop, rng()), singles());
        let (outcome, exchanges) = setup(closed.addr).layout(layout).start().run(run);
        // Pauses of 2, 4, … and at last 50 ms per slot; without them there would be thousands.
        assert!((4..=80).contains(&outcome.counts.issued), "{layout:?}: {}", outcome.counts.issued);
        assert_eq!(outcome.counts.issued, exchanges.len() as u64);
        assert_eq!(outcome.counts.issued, outcome.counts.returned);
        // The pause holds the slot; it is no part of the request.
        assert!(exchanges.iter().all(|exchange| exchange.end.since(exchange.start) < 1_000_000_000));
    }
}

#[test]
fn a_close_before_the_answer_is_a_disconnect() {
    let exchange = failing(|conn| conn.request().map(|_| ()));
    assert_eq!(kind(&exchange), (None, "ServerDisconnectedError"));
    assert!(exchange.trace.send_end.is_some() && exchange.headers.is_none() && exchange.status.is_none());
}

#[test]
fn a_reset_is_an_error_of_the_operating_system() {
    let exchange = failing(|conn| {
        conn.request()?;
        conn.reset_on_close();
        Some(())
    });
    assert_eq!(kind(&exchange), (None, "ClientOSError"));
    assert!(message(&exchange).contains("os error 104"), "{}", message(&exchange));
}

#[test]
fn a_body_that_ends_early_is_a_payload_error_even_after_data() {
    let data = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    let cut_in_chunks = failing(move |conn| {
        conn.request()?;
        conn.stream_head()?;
        conn.chunk(data)
    });
    let cut_in_length = failing(|conn| {
        conn.request()?;
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"a\"")
    });
    let cut_in_head = failing(|conn| {
        conn.request()?;
        conn.send(b"HTTP/1.1 200 OK\r\nContent-")
    });
    for exchange in [&cut_in_chunks, &cut_in_length, &cut_in_head] {
        assert_eq!(kind(exchange), (None, "ClientPayloadError"));
    }
    // What came is kept for diagnosis.
    assert_eq!(cut_in_chunks.trace.bytes_received, data.len() as u64);
    assert_eq!(cut_in_chunks.status, Some(200));
    let Received::Bytes(bytes) = cut_in_chunks.received else { panic!("the bytes are kept") };
    assert_eq!(bytes.data, data.as_bytes());
}

/// <https://github.com/triton-inference-server/perf_analyzer/issues/440>
#[test]
fn perf_analyzer_440_a_bad_frame_fails_its_request_and_no_other() {
    let number = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |conn| {
        loop {
            conn.request()?;
            match number.fetch_add(1, Ordering::Relaxed) {
                0 => conn.send(b"SSH-2.0-OpenSSH_9.2\r\n")?,
                1 => conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")?,
                2 => conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n")?,
                3 => {
                    conn.send(b"HTTP/1.1 200 OK\r\nX: ")?;
                    conn.send("y".repeat(70_000).as_bytes())?;
                }
                4 => conn.send(b"\x16\x03\x01\x02\x00")?,
                _ => conn.ok()?,
            }
        }
    });
    let (_, exchanges) = setup(server.addr).start().run(phase(burst(1, 7), singles()));
    for exchange in &exchanges[..5] {
        assert_eq!(kind(exchange), (None, "ClientPayloadError"), "{}", exchange.identity.number);
    }
    assert!(exchanges[5..].iter().all(|exchange| exchange.failure.is_none()));
    assert_eq!(server.accepted(), 6, "each bad answer spoils its connection, a good one does not");
}

#[test]
fn a_failed_status_names_itself_and_keeps_its_body_and_its_true_end() {
    let (go, answered) = (Arc::new(Gate::default()), channel());
    let gate = Arc::clone(&go);
    let server = Server::start(move |conn| {
        conn.request()?;
        conn.send(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 9\r\n\r\nslow")?;
        gate.pass()?;
        answered.0.send(aiperf_clock::now()).unwrap();
        conn.send(b" down")
    });
    let mut rig = setup(server.addr).start();
    rig.begin(phase(burst(1, 1), singles()));
    go.open();
    let (_, exchanges) = rig.finish();
    let error = exchanges[0].failure.as_ref().unwrap();
    assert_eq!((error.code, error.kind.as_str()), (Some(429), "Too Many Requests"));
    assert_eq!((error.message.as_str(), error.retry_after.as_deref()), ("slow down", Some("7")));
    assert!(exchanges[0].end >= answered.1.recv().unwrap());
    assert_eq!(exchanges[0].status, Some(429));
}

#[test]
fn a_server_that_refuses_a_body_before_it_is_sent_is_heard() {
    let server = Server::start(|conn| {
        // Answers at the sight of the head and closes with the body unread, which resets the connection.
        let mut head = [0; 64];
        conn.socket().read_exact(&mut head).ok()?;
        conn.answer("413 Content Too Large", "Connection: close\r\n", "at most 1 MB")
    });
    let (_, exchanges) = setup(server.addr).start().run(phase(burst(1, 1), huge()));
    assert_eq!(kind(&exchanges[0]), (Some(413), "Content Too Large"));
    assert_eq!(message(&exchanges[0]), "at most 1 MB");
    assert_eq!(exchanges[0].trace.send_end, None);
}

#[test]
fn a_failed_status_without_a_phrase_has_the_standard_one() {
    let exchange = failing(|conn| {
        conn.request()?;
        conn.answer("503 ", "", "")
    });
    assert_eq!(kind(&exchange), (Some(503), "Service Unavailable"));
}

#[test]
fn an_endless_error_body_is_read_up_to_its_limit() {
    let exchange = failing(|conn| {
        conn.request()?;
        conn.send(b"HTTP/1.1 500 Oops\r\n\r\n")?;
        while conn.send(&[b'x'; 4096]).is_some() {}
        Some(())
    });
    assert_eq!(kind(&exchange), (Some(500), "Oops"));
    assert_eq!(message(&exchange).len(), 4096);
    assert!(
        (64 * 1024..256 * 1024).contains(&exchange.trace.bytes_received),
        "{}",
        exchange.trace.bytes_received
    );
}

/// Parity backlog of the reference, P1.19: of two engines only one followed redirects.
#[test]
fn aiperf_parity_backlog_p1_19_redirects_are_errors_that_name_their_target_and_are_never_followed() {
    let target = Server::friendly();
    let location = format!("http://user:secret@{}/v1/chat/completions", target.addr);
    for status in ["307 Temporary Redirect", "308 Permanent Redirect", "302 Found"] {
        let header = format!("Location: {location}\r\n");
        let exchange = failing(move |conn| {
            conn.request()?;
            conn.answer(status, &header, "")
        });
        let (code, phrase) = status.split_once(' ').unwrap();
        assert_eq!(kind(&exchange), (code.parse().ok(), phrase));
        assert!(message(&exchange).contains(&target.addr.to_string()), "{}", message(&exchange));
        assert!(!message(&exchange).contains("secret"));
        assert_eq!(exchange.status.map(i64::from), code.parse().ok());
    }
    assert_eq!(target.accepted(), 0);
}

/// No answer follows it: waiting for one lasted as long as the request may take.
#[test]
fn a_switch_to_another_protocol_is_an_error_at_once() {
    let exchange = failing(|conn| {
        conn.request()?;
        conn.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")?;
        conn.closed()?;
        Some(())
    });
    assert_eq!(kind(&exchange), (Some(101), "Switching Protocols"));
    assert!(message(&exchange).contains("which no request asked for"), "{}", message(&exchange));
    assert_eq!(exchange.status, Some(101));
}

#[test]
fn a_request_may_take_as_long_as_its_limit_and_no_longer() {
    let (closing, closes) = channel();
    let server = Server::start(move |conn| {
        conn.request()?;
        if conn.index == 1 {
            conn.stream_head()?;
        }
        closing.send(conn.closed()?).unwrap();
        Some(())
    });
    let limit = Duration::from_millis(80);
    let (_, exchanges) = setup(server.addr).timeout(limit).start().run(phase(burst(1, 2), singles()));
    for exchange in &exchanges {
        assert_eq!(kind(exchange), (None, "TimeoutError"));
        assert!(message(exchange).contains("0.08 seconds"), "{}", message(exchange));
        assert!(exchange.end.since(exchange.start) >= 80_000_000);
        let closed_at = closes.recv_timeout(crate::harness::DEADLINE).unwrap();
        assert!(closed_at >= exchange.start.plus(80_000_000));
    }
    assert_eq!([exchanges[0].headers.is_some(), exchanges[1].headers.is_some()], [false, true]);
}

#[test]
fn no_limit_is_no_limit() {
    let server = Server::start(|conn| {
        conn.request()?;
        // Longer than any limit that a zero could be rounded up to.
        assert!(conn.idle_for(Duration::from_millis(150)));
        conn.ok()
    });
    let (_, exchanges) = setup(server.addr).start().run(phase(burst(1, 1), singles()));
    assert_eq!(kind(&exchanges[0]), (None, "none"));
}

/// A body that no pair of socket buffers holds.
fn huge() -> aiperf_load::Source {
    Feed::new(|| {
        Draw::Session(NewSession {
            conversation: 0,
            turns: 1,
            first_ms: None,
            run: 0,
            ticket: ticket(prepared("huge", vec![body("x".repeat(24 << 20))])),
        })
    })
    .boxed()
}

#[test]
fn a_body_that_cannot_be_sent_in_time_says_so_when_it_was_to_be_broken_off() {
    let done = Arc::new(Gate::default());
    let gate = Arc::clone(&done);
    // Takes the connection and reads nothing.
    let server = Server::start(move |_| gate.pass());
    let limit = Duration::from_millis(150);
    for (cancel_share, expected) in [(1.0, (Some(0), "RequestSendTimeout")), (0.0, (None, "TimeoutError"))] {
        let plan = Plan { cancel_share, ..burst(1, 1) };
        let (_, exchanges) = setup(server.addr).timeout(limit).start().run(phase(plan, huge()));
        assert_eq!(kind(&exchanges[0]), expected);
        let trace = &exchanges[0].trace;
        assert_eq!(trace.send_end, None, "the last byte was never accepted");
        assert!(trace.headers_sent.is_some() && trace.bytes_sent < 24 << 20);
    }
    done.open();
}

/// What a server does with one request.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Answer,
    AnswerAndClose,
    Stream,
    Fail,
    Redirect,
    Close,
    Reset,
    Garbage,
    HalfHead,
    HalfBody,
    Silence,
}

const MOODS: [Mood; 11] = [
    Mood::Answer,
    Mood::AnswerAndClose,
    Mood::Stream,
    Mood::Fail,
    Mood::Redirect,
    Mood::Close,
    Mood::Reset,
    Mood::Garbage,
    Mood::HalfHead,
    Mood::HalfBody,
    Mood::Silence,
];

impl Mood {
    /// Deals with request `n`; absent when the connection is over.
    fn act(self, conn: &mut Conn, n: &str) -> Option<()> {
        match self {
            Mood::Answer => conn.answer("200 OK", "", n),
            Mood::AnswerAndClose => conn.answer("200 OK", "Connection: close\r\n", n).and(None),
            Mood::Stream => {
                conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                for piece in n.split_inclusive(|_| true) {
                    conn.chunk(piece)?;
                }
                conn.chunk("")
            }
            Mood::Fail => conn.answer("500 Oops", "", n),
            Mood::Redirect => conn.answer("308 Elsewhere", "Location: /there\r\n", n),
            Mood::Close => None,
            Mood::Reset => {
                conn.reset_on_close();
                None
            }
            Mood::Garbage => conn.send(b"\0\x01\x02 garbage\r\n\r\n").and(None),
            Mood::HalfHead => conn.send(b"HTTP/1.1 200 OK\r\nContent-Le").and(None),
            Mood::HalfBody => conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1").and(None),
            Mood::Silence => conn.closed().and(None),
        }
    }

    /// The kind of failure that may come of it, none for a good answer.
    fn expected(self) -> &'static [&'static str] {
        match self {
            Mood::Answer | Mood::AnswerAndClose | Mood::Stream => &["none"],
            Mood::Fail => &["Oops"],
            Mood::Redirect => &["Elsewhere"],
            Mood::Close => &["ServerDisconnectedError"],
            // A reset may be seen before or after the request is written.
            Mood::Reset => &["ClientOSError"],
            Mood::Garbage | Mood::HalfHead | Mood::HalfBody => &["ClientPayloadError"],
            Mood::Silence => &["TimeoutError"],
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_server_does_every_request_has_its_own_outcome(
        moods in prop::collection::vec(prop::sample::select(&MOODS[..]), 40),
        cap in 1_u32..9,
        layout in prop::sample::select(&LAYOUTS[..]),
    ) {
        let script = moods.clone();
        let server = Server::start(move |conn| {
            loop {
                let n = conn.request()?.json()["n"].as_u64().unwrap();
                script[n as usize].act(conn, &n.to_string())?;
            }
        });
        let setup = setup(server.addr).layout(layout).timeout(Duration::from_millis(100));
        let (outcome, exchanges) = setup.start().run(phase(burst(cap, 40), singles()));
        prop_assert_eq!(outcome.counts.returned, 40);
        prop_assert!(exchanges.iter().map(|exchange| exchange.identity.number).eq(0..40));
        for exchange in &exchanges {
            let n: usize = exchange.identity.conversation_id[1..].parse().unwrap();
            let mood = moods[n];
            // A host that stalls makes a timeout of anything.
            let found = kind(exchange).1;
            prop_assert!(mood.expected().contains(&found) || found == "TimeoutError", "{mood:?}: {found}");
            if found == "none" {
                let Received::Bytes(bytes) = &exchange.received else { panic!("an answer") };
                prop_assert_eq!(String::from_utf8_lossy(&bytes.data), n.to_string());
            }
        }
    }
}

#[test]
fn a_request_that_cannot_be_made_is_still_one_record() {
    for layout in LAYOUTS {
        let server = Server::friendly();
        let mut n = 0;
        let source = Feed::new(move || {
            n += 1;
            let ticket = match n {
                1 => {
                    let (sender, ticket) = Ticket::new();
                    sender.send(Err("line 7 has no text".into())).unwrap();
                    ticket
                }
                // Its maker went away.
                2 => Ticket::new().1,
                _ => ticket(prepared("good", vec![body("{}"), body("{}")])),
            };
            Draw::Session(NewSession { conversation: n, turns: 2, first_ms: None, run: 0, ticket })
        });
        let run = phase(burst(1, 6), source.boxed());
        let (outcome, exchanges) = setup(server.addr).layout(layout).start().run(run);
        assert_eq!(outcome.counts.returned, 6);
        let kinds: Vec<_> = exchanges.iter().map(|exchange| kind(exchange).1).collect();
        assert_eq!(kinds[..4], ["CreditProcessingError"; 4], "{layout:?}");
        assert_eq!(kinds[4..], ["none"; 2]);
        assert_eq!(message(&exchanges[0]), "line 7 has no text");
        assert_eq!(exchanges[0].failure.as_ref().unwrap().code, Some(500));
        assert_eq!(outcome.tally.sent, 2);
    }
}

#[test]
fn a_source_address_that_is_not_ours_counts_as_a_limit_of_the_client() {
    let server = Server::friendly();
    let mut setup = setup(server.addr);
    let foreign = vec!["192.0.2.1".parse().unwrap()];
    setup.settings.sockets = aiperf_load::transport::SocketOptions::new(foreign, None, None);
    let (outcome, exchanges) = setup.start().run(phase(Plan::burst(1, requests(2), rng()), singles()));
    assert!(exchanges.iter().all(|exchange| kind(exchange) == (None, "ClientConnectorError")));
    assert_eq!(outcome.tally.resource_errors, 2);
}
