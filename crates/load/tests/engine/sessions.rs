//! Conversations of several turns.

use std::sync::Arc;
use std::sync::mpsc::channel;

use aiperf_clock::Mono;
use aiperf_config::{FixedSchedule, LoadMode, StopRule};
use aiperf_load::Exchange;
use aiperf_load::schedule::{CapRamp, Plan, TurnTiming};
use serde_json::{Value, json};

use crate::closed_loop::rng;
use crate::harness::{
    DEADLINE, Gauge, LAYOUTS, Request, Server, Setup, closed_port, conversation, phase, setup, talks, trace,
};

fn all() -> Plan {
    Plan::burst(1, StopRule::default(), rng())
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// A server that keeps what it was asked, and answers number k with `answer(k)`: status, headers and body.
fn recording(
    answer: impl Fn(usize) -> (&'static str, &'static str, Vec<u8>) + Send + Sync + 'static,
) -> (Server, std::sync::mpsc::Receiver<Request>) {
    let (asked, requests) = channel();
    let number = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(move |conn| {
        loop {
            asked.send(conn.request()?).unwrap();
            let (status, headers, body) = answer(number.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
            let length = body.len();
            conn.send(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n").as_bytes())?;
            conn.send(&body)?;
        }
    });
    (server, requests)
}

const JSON: &str = "Content-Type: application/json\r\n";

fn says(text: &str) -> (&'static str, &'static str, Vec<u8>) {
    ("200 OK", JSON, crate::harness::chat(text).into_bytes())
}

fn messages(request: &Request) -> Value {
    request.json()["messages"].clone()
}

#[test]
fn a_failed_turn_does_not_end_its_session_and_leaves_no_answer_behind() {
    for layout in LAYOUTS {
        let (server, requests) = recording(|k| match k % 3 {
            1 => ("503 Service Unavailable", "", b"busy".to_vec()),
            _ => says("fine"),
        });
        let setup = setup(server.addr).layout(layout);
        let talk = |id| conversation(id, &["one", "two", "three"]);
        let source = talks(vec![talk("a"), talk("b")], &setup.settings.format, 100.0);
        let (outcome, exchanges) = setup.start().run(phase(all(), source));
        let seen: Vec<_> = requests.try_iter().map(|request| messages(&request)).collect();
        let expected = [
            json!([user("one")]),
            json!([user("one"), assistant("fine"), user("two")]),
            json!([user("one"), assistant("fine"), user("two"), user("three")]),
        ];
        assert_eq!(seen[..3], expected, "{layout:?}");
        assert_eq!(seen[3..], expected, "{layout:?}");
        let codes: Vec<_> = exchanges.iter().map(|exchange| exchange.status.unwrap()).collect();
        assert_eq!(codes, [200, 503, 200, 200, 503, 200]);
        // The slot was held through the delays and freed once: never two sessions at a time.
        assert_eq!(outcome.counts.max_in_flight, 1);
        assert_eq!((outcome.counts.sessions, outcome.counts.returned), (2, 6));
        for pair in exchanges.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let wait = if after.identity.turn_index == 0 { 0 } else { 100_000_000 };
            assert!(after.start.since(before.end) >= wait, "{layout:?}");
        }
    }
}

#[test]
fn a_turn_that_found_no_server_is_still_part_of_the_conversation() {
    let closed = closed_port();
    let mut setup = setup(closed.addr);
    setup.settings.want_template_input = true;
    let source = talks(vec![conversation("a", &["one", "two", "three"])], &setup.settings.format, 0.0);
    let (outcome, exchanges) = setup.start().run(phase(all(), source));
    assert_eq!(outcome.counts.returned, 3);
    let sent: Vec<Value> = exchanges
        .iter()
        .map(|exchange| serde_json::from_slice(&exchange.request.body.to_bytes()).unwrap())
        .collect();
    assert_eq!(sent[1]["messages"], json!([user("one"), user("two")]));
    assert_eq!(sent[2]["messages"], json!([user("one"), user("two"), user("three")]));
}

#[test]
fn a_turn_that_the_client_broke_off_does_not_end_its_session() {
    for layout in LAYOUTS {
        let (server, requests) = recording(|_| says("too late"));
        let setup = setup(server.addr).layout(layout);
        let source = talks(vec![conversation("a", &["one", "two", "three"])], &setup.settings.format, 0.0);
        let plan = Plan { cancel_share: 1.0, ..all() };
        let (outcome, exchanges) = setup.start().run(phase(plan, source));
        assert_eq!((outcome.counts.returned, outcome.counts.cut), (3, 0));
        assert!(exchanges.iter().all(|exchange| exchange.cancelled_at.is_some()));
        let mut sent: Vec<_> = (0..3).map(|_| messages(&requests.recv_timeout(DEADLINE).unwrap())).collect();
        sent.sort_by_key(|messages| messages.as_array().map(Vec::len));
        assert_eq!(sent[1], json!([user("one"), user("two")]));
        assert_eq!(sent[2], json!([user("one"), user("two"), user("three")]));
    }
}

#[test]
fn an_answer_that_came_compressed_is_repeated_like_any_other() {
    // `gzip -n` of the answer that says "zip".
    let body = gzip(crate::harness::chat("zip").as_bytes());
    let (server, requests) = recording(move |_| {
        ("200 OK", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", body.clone())
    });
    let setup = setup(server.addr);
    let source = talks(vec![conversation("a", &["one", "two"])], &setup.settings.format, 0.0);
    setup.start().run(phase(all(), source));
    let second = requests.try_iter().nth(1).unwrap();
    assert_eq!(messages(&second), json!([user("one"), assistant("zip"), user("two")]));
}

/// A gzip member of stored blocks.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let length = bytes.len() as u16;
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(bytes);
    let crc = bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    });
    out.extend((!crc).to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out
}

#[test]
fn a_streamed_answer_is_repeated_as_its_joined_text() {
    let (asked, requests) = channel();
    let server = Server::start(move |conn| {
        loop {
            asked.send(conn.request()?).unwrap();
            conn.stream_head()?;
            // More than the bytes that are kept unread, so that both ways of reading are joined.
            for n in 0..200 {
                let delta = json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": format!("w{n} ")}}]});
                conn.chunk(&format!("data: {delta}\n\n"))?;
            }
            conn.chunk("data: [DONE]\n\n")?;
            conn.chunk("")?;
        }
    });
    let mut endpoint = crate::harness::endpoint();
    endpoint.streaming = true;
    let setup = Setup::new(&format!("http://{}", server.addr), &endpoint);
    let source = talks(vec![conversation("a", &["one", "two"])], &setup.settings.format, 0.0);
    let (_, exchanges) = setup.start().run(phase(all(), source));
    let text = (0..200).map(|n| format!("w{n} ")).collect::<Vec<_>>().concat();
    let second = requests.try_iter().nth(1).unwrap();
    assert_eq!(messages(&second), json!([user("one"), assistant(&text), user("two")]));
    assert_eq!(second.json()["stream"], json!(true));
    for exchange in exchanges {
        let reading = crate::harness::reading(exchange, true);
        assert_eq!((reading.error, reading.answer.text.as_ref()), (None, text.as_str()));
    }
}

#[test]
fn sessions_hold_their_slot_between_turns() {
    for layout in LAYOUTS {
        let gauge = Arc::new(Gauge::default());
        let inside = Arc::clone(&gauge);
        // Sessions, not requests: inside from the first turn to the last.
        let server = Server::start(move |conn| {
            loop {
                let turns = conn.request()?.json()["messages"].as_array().unwrap().len().div_ceil(2);
                if turns == 1 {
                    inside.enter();
                }
                if turns == 3 {
                    inside.leave();
                }
                conn.ok()?;
            }
        });
        let setup = setup(server.addr).layout(layout);
        let talk = |n: usize| conversation(&format!("s{n}"), &["a", "b", "c"]);
        let source = talks((0..24).map(talk).collect(), &setup.settings.format, 5.0);
        let plan = Plan { cap: Some(CapRamp::new(4, 0)), ..all() };
        let (outcome, _) = setup.start().run(phase(plan, source));
        assert_eq!(gauge.most(), 4, "{layout:?}");
        assert_eq!(outcome.counts.returned, 72);
    }
}

fn at(timestamp_ms: f64) -> TurnTiming {
    TurnTiming { timestamp_ms: Some(timestamp_ms), delay_ms: None }
}

fn after(delay_ms: f64) -> TurnTiming {
    TurnTiming { timestamp_ms: None, delay_ms: Some(delay_ms) }
}

fn turn(exchanges: &[Exchange], conversation: &str, turn: u32) -> (Mono, Mono) {
    let found = exchanges.iter().find(|exchange| {
        &*exchange.identity.conversation_id == conversation && exchange.identity.turn_index == turn
    });
    found.map(|exchange| (exchange.start, exchange.end)).unwrap()
}

#[test]
fn a_recorded_schedule_sends_in_order_and_never_early() {
    for layout in LAYOUTS {
        let (server, requests) = recording(|_| says("x"));
        let source = trace(vec![
            vec![at(1000.0), at(1090.0), after(40.0), at(1005.0)],
            vec![at(1050.0), after(80.0)],
            vec![at(1050.0)],
        ]);
        let plan = Plan {
            mode: LoadMode::FixedSchedule(FixedSchedule { zero_ms: Some(1000.0) }),
            cap: None,
            ..all()
        };
        let run = aiperf_load::PhaseRun { fixed_schedule: true, ..phase(plan, source) };
        let (outcome, exchanges) = setup(server.addr).layout(layout).start().run(run);
        let seen: Vec<_> = requests
            .try_iter()
            .map(|request| {
                assert!(request.header("x-correlation-id").unwrap().starts_with("fixed-schedule-c"));
                let json = request.json();
                (json["c"].as_u64().unwrap(), json["t"].as_u64().unwrap())
            })
            .collect();
        let first_turns: Vec<_> = exchanges
            .iter()
            .filter(|exchange| exchange.identity.turn_index == 0)
            .map(|exchange| exchange.identity.conversation_id.to_string())
            .collect();
        assert_eq!(
            first_turns,
            ["c0", "c1", "c2"],
            "{layout:?}: equal timestamps keep the order of the file"
        );
        let of_first: Vec<_> = seen.iter().filter(|(c, _)| *c == 0).map(|(_, t)| *t).collect();
        assert_eq!(of_first, [0, 1, 2, 3], "{layout:?}");
        let since_t0 = |at: Mono| at.saturating_since(outcome.t0);
        let ms = 1_000_000;
        assert!(since_t0(turn(&exchanges, "c1", 0).0) >= 50 * ms);
        assert!(since_t0(turn(&exchanges, "c0", 1).0) >= 90 * ms);
        assert!(turn(&exchanges, "c0", 2).0.since(turn(&exchanges, "c0", 1).1) >= 40 * ms as i64);
        // Recorded before its predecessor was over: it goes at once and overtakes nobody.
        assert!(turn(&exchanges, "c0", 3).0 >= turn(&exchanges, "c0", 2).1);
        assert!(turn(&exchanges, "c1", 1).0.since(turn(&exchanges, "c1", 0).1) >= 80 * ms as i64);
        assert_eq!(outcome.counts.issued, 7);
        assert_eq!(outcome.tally.negative_differences, 0);
    }
}
