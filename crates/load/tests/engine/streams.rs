//! Streamed answers: what they mean, and very many of them at once.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use aiperf_endpoint::Reading;
use aiperf_load::{Exchange, PacerPlace, preflight};
use aiperf_mock_server::{Server as Mock, Settings};

use crate::closed_loop::burst;
use crate::harness::{
    DEADLINE, Server, Setup, conversation, endpoint, phase, reading, setup, singles, talks,
};

/// An event with a piece of text.
fn delta(text: &str) -> String {
    format!(
        "data: {{\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
    )
}

/// The exchange with a server that streams `pieces`, and what was read of it. Without `end` the connection is
/// cut after the last piece.
fn streamed(pieces: &[String], end: bool) -> (Option<aiperf_types::RequestError>, Reading) {
    let pieces = pieces.to_vec();
    let server = Server::start(move |conn| {
        conn.request()?;
        conn.stream_head()?;
        for piece in &pieces {
            conn.chunk(piece)?;
        }
        if end {
            conn.chunk("")?;
        }
        Some(())
    });
    let mut endpoint = endpoint();
    endpoint.streaming = true;
    let setup = Setup::new(&format!("http://{}", server.addr), &endpoint);
    let source = talks(vec![conversation("a", &["hi"])], &setup.settings.format, 0.0);
    let (_, mut exchanges) = setup.start().run(phase(burst(1, 1), source));
    let exchange: Exchange = exchanges.remove(0);
    (exchange.failure.clone(), reading(exchange, true))
}

/// <https://github.com/vllm-project/guidellm/issues/743>
#[test]
fn guidellm_743_an_error_inside_a_stream_fails_it() {
    let error = "data: {\"error\":{\"message\":\"out of memory\",\"type\":\"ServerError\",\"code\":507}}\n\n"
        .to_owned();
    let (failure, reading) = streamed(&[delta("a"), delta("b"), error], true);
    assert_eq!(failure, None, "the transport saw nothing wrong");
    let error = reading.error.unwrap();
    assert_eq!(
        (error.code, error.kind.as_str(), error.message.as_str()),
        (Some(507), "ServerError", "out of memory")
    );
    assert_eq!((reading.answer.text.as_str(), reading.answer.content.len()), ("ab", 2));
}

#[test]
fn an_error_event_ends_the_request() {
    let event = "event: error\n: the model fell over\ndata: x\n\n".to_owned();
    let (failure, reading) = streamed(&[delta("a"), delta("b"), event], true);
    assert_eq!(failure, None);
    let error = reading.error.unwrap();
    assert_eq!((error.code, error.kind.as_str()), (Some(502), "SSEResponseError"));
    assert_eq!(error.message, "the model fell over");
}

#[test]
fn a_cut_stream_fails_and_a_clean_end_without_done_does_not() {
    let (failure, reading) = streamed(&[delta("a"), delta("b")], false);
    assert_eq!(failure.unwrap().kind, "ClientPayloadError");
    assert_eq!(reading.answer.text, "ab");
    let (failure, reading) = streamed(&[delta("a"), delta("b")], true);
    assert_eq!((failure, reading.error), (None, None));
    assert_eq!((reading.answer.text.as_str(), reading.answer.stream_complete), ("ab", Some(false)));
    let done = "data: [DONE]\n\n".to_owned();
    let (failure, reading) = streamed(&[delta("a"), done], true);
    assert_eq!((failure, reading.error, reading.answer.stream_complete), (None, None, Some(true)));
}

#[test]
fn a_refusal_is_an_answer() {
    let refusal = delta("no").replace("\"content\"", "\"refusal\"");
    let (failure, reading) = streamed(&[refusal], true);
    assert_eq!((failure, reading.error, reading.answer.text.as_str()), (None, None, "no"));
}

#[test]
fn events_cut_anywhere_say_the_same() {
    let text =
        [delta("a\u{2028}b"), ": comment\n\n".to_owned(), delta("\u{1f600}").replace('\n', "\r\n")].concat();
    for size in [1, 2, 3, 7, 64] {
        let mut bytes = text.as_bytes().chunks(size).map(<[u8]>::to_vec);
        let pieces: Vec<Vec<u8>> = bytes.by_ref().collect();
        let server = Server::start(move |conn| {
            conn.request()?;
            conn.stream_head()?;
            for piece in &pieces {
                conn.send(format!("{:x}\r\n", piece.len()).as_bytes())?;
                conn.send(piece)?;
                conn.send(b"\r\n")?;
            }
            conn.chunk("")
        });
        let (_, mut exchanges) = setup(server.addr).start().run(phase(burst(1, 1), singles()));
        let reading = reading(exchanges.remove(0), true);
        assert_eq!((reading.error, reading.answer.text.as_str()), (None, "a\u{2028}b\u{1f600}"), "{size}");
        assert_eq!(reading.answer.content.len(), 2);
        assert!(reading.answer.content.is_sorted_by_key(|event| event.at));
    }
}

/// <https://github.com/gpustack/gpustack/issues/2324>
#[test]
fn gpustack_2324_there_is_no_ceiling_on_connections_that_nobody_set() {
    // More than the 2,500 that others stop at, all in flight at once.
    let most = 2600;
    assert!(preflight::raise_descriptor_limit() >= 3 * most, "the descriptor limit is too low for this test");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 4096).unwrap();
    let mut setup = setup(listener.local_addr().unwrap()).layout((2, PacerPlace::Thread));
    let server = std::thread::spawn(move || {
        // Nobody is answered before everybody has asked.
        let mut asked: Vec<TcpStream> = (0..most).map(|_| listener.accept().unwrap().0).collect();
        for stream in &mut asked {
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                let mut piece = [0; 1024];
                let n = stream.read(&mut piece).unwrap();
                assert!(n > 0, "the client closed");
                request.extend_from_slice(&piece[..n]);
            }
        }
        for mut stream in asked {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        }
    });
    setup.settings.want_facts = false;
    let (outcome, exchanges) = setup.start().run(phase(burst(most as u32, most), singles()));
    server.join().unwrap();
    assert_eq!(outcome.counts.max_in_flight, most as u32);
    assert!(exchanges.iter().all(|exchange| exchange.failure.is_none()));
}

#[test]
fn a_thousand_streams_lose_no_event() {
    preflight::raise_descriptor_limit();
    let settings = Settings::from_url("mock://?ttft=100ms&itl=10ms&tokens=20").unwrap();
    let mock = Mock::start(&settings, "127.0.0.1:0".parse().unwrap()).unwrap();
    let mut endpoint = endpoint();
    endpoint.streaming = true;
    let mut setup = Setup::new(&format!("http://{}", mock.addr()), &endpoint).layout((2, PacerPlace::Thread));
    setup.settings.want_facts = false;
    let talk = |n: usize| conversation(&format!("s{n}"), &["say something"]);
    let source = talks((0..1000).map(talk).collect(), &setup.settings.format, 0.0);
    let (outcome, exchanges) = setup.start().run(phase(burst(1000, 1000), source));
    assert_eq!((outcome.counts.returned, exchanges.len()), (1000, 1000));
    for exchange in exchanges {
        assert_eq!(exchange.failure, None);
        let (start, end) = (exchange.start, exchange.end);
        let reading = reading(exchange, true);
        assert_eq!(reading.error, None);
        let answer = reading.answer;
        assert_eq!((answer.content.len(), answer.stream_complete), (20, Some(true)));
        assert!(answer.content.is_sorted_by_key(|event| event.at));
        // A server that waits before and between its events is never seen to be quicker.
        assert!(answer.content[0].at.since(start) >= 100_000_000);
        assert!(answer.content[19].at.since(start) >= 290_000_000 && answer.content[19].at <= end);
    }
    assert_eq!((mock.stats().requests, mock.stats().aborted), (1000, 0));
}
