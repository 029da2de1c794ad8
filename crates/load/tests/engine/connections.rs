//! Which connection a request takes, and how one is made.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Shutdown};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aiperf_load::Exchange;
use aiperf_load::transport::SocketOptions;

use crate::closed_loop::burst;
use crate::harness::{DEADLINE, Gate, LAYOUTS, Server, endpoint, phase, setup, singles};

/// The number that an answer consists of.
fn connection(exchange: &Exchange) -> usize {
    let aiperf_load::Received::Bytes(bytes) = &exchange.received else { panic!("{:?}", exchange.failure) };
    std::str::from_utf8(&bytes.data).unwrap().parse().unwrap()
}

/// The connections that `n` requests of a closed loop of one took with an answer made of `pieces`.
fn connections_after(pieces: &'static [&'static str]) -> Vec<bool> {
    let server = Server::start(move |conn| {
        loop {
            conn.request()?;
            for piece in pieces {
                conn.send(piece.as_bytes())?;
            }
            let whole = pieces.concat();
            if !whole.contains("Length") && !whole.contains("chunked") {
                return Some(());
            }
        }
    });
    let (_, exchanges) = setup(server.addr).start().run(phase(burst(1, 4), singles()));
    assert!(exchanges.iter().all(|exchange| exchange.failure.is_none()), "{pieces:?}");
    exchanges.iter().map(|exchange| exchange.trace.reused).collect()
}

#[test]
fn a_connection_is_used_again_only_after_an_answer_that_allows_it() {
    let again = [false, true, true, true];
    let anew = [false; 4];
    assert_eq!(connections_after(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]), again);
    assert_eq!(
        connections_after(&["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"]),
        again
    );
    assert_eq!(
        connections_after(&["HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}"]),
        again
    );
    let behind_an_interim_one =
        &["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"];
    assert_eq!(connections_after(behind_an_interim_one), again);
    assert_eq!(connections_after(&["HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"]), anew);
    assert_eq!(
        connections_after(&["HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"]),
        anew
    );
    assert_eq!(connections_after(&["HTTP/1.1 200 OK\r\n\r\n{}"]), anew);
    // Bytes that belong to no answer.
    assert_eq!(connections_after(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}!"]), anew);
}

#[test]
fn free_connections_are_taken_oldest_first() {
    let gates = [Arc::new(Gate::default()), Arc::new(Gate::default())];
    let inner = gates.clone();
    let (asked, connections) = channel();
    let server = Server::start(move |conn| {
        for turn in 0.. {
            conn.request()?;
            asked.send(conn.index).unwrap();
            if turn == 0 {
                inner[conn.index].pass()?;
            }
            conn.answer("200 OK", "", &conn.index.to_string())?;
        }
        Some(())
    });
    let mut rig = setup(server.addr).start();
    rig.begin(phase(burst(2, 2), singles()));
    connections.recv().unwrap();
    connections.recv().unwrap();
    // The second connection becomes free first.
    gates[1].open();
    assert_eq!(connection(&rig.next()), 1);
    gates[0].open();
    assert_eq!(connection(&rig.next()), 0);
    rig.finish();
    let (_, exchanges) = rig.run(phase(burst(1, 4), singles()));
    assert_eq!(exchanges.iter().map(connection).collect::<Vec<_>>(), [1, 0, 1, 0]);
    assert!(exchanges.iter().all(|exchange| exchange.trace.reused));
    assert_eq!(server.accepted(), 2);
}

#[test]
fn idle_connections_have_a_lifetime() {
    let server = Server::friendly();
    let mut setup = setup(server.addr);
    setup.settings.keep_alive = Duration::ZERO;
    let (_, exchanges) = setup.start().run(phase(burst(1, 3), singles()));
    assert!(exchanges.iter().all(|exchange| !exchange.trace.reused && exchange.failure.is_none()));
    assert!(exchanges.iter().all(|exchange| exchange.trace.connect.is_some()));
}

#[test]
fn a_server_that_closes_idle_connections_disconnects_nobody() {
    for layout in LAYOUTS {
        let (close, closing) = channel::<()>();
        let (told, closed) = channel();
        let closing = Mutex::new(closing);
        let server = Server::start(move |conn| {
            conn.request()?;
            conn.ok()?;
            closing.lock().unwrap().recv_timeout(DEADLINE).ok()?;
            conn.socket().shutdown(Shutdown::Write).unwrap();
            told.send(()).unwrap();
            conn.closed().map(|_| ())
        });
        let mut rig = setup(server.addr).layout(layout).start();
        for _ in 0..5 {
            let (_, exchanges) = rig.run(phase(burst(1, 1), singles()));
            assert_eq!(exchanges[0].failure, None, "{layout:?}");
            assert!(!exchanges[0].trace.reused);
            // The connection is idle now, and its server closes it before the next request.
            close.send(()).unwrap();
            closed.recv_timeout(DEADLINE).unwrap();
        }
        assert_eq!(server.accepted(), 5);
    }
}

#[test]
fn a_close_after_the_first_byte_is_an_error_and_no_second_attempt() {
    let (asked, requests) = channel();
    let server = Server::start(move |conn| {
        asked.send(conn.request()?).unwrap();
        conn.ok()?;
        // The second request on a connection that was good until now.
        asked.send(conn.request()?).unwrap();
        Some(())
    });
    let (_, exchanges) = setup(server.addr).start().run(phase(burst(1, 4), singles()));
    let kinds: Vec<_> =
        exchanges.iter().map(|exchange| exchange.failure.as_ref().map(|error| error.kind.as_str())).collect();
    assert_eq!(kinds, [None, Some("ServerDisconnectedError"), None, Some("ServerDisconnectedError")]);
    assert!(exchanges[1].trace.reused && exchanges[1].trace.connect.is_none());
    assert_eq!(requests.try_iter().count(), 4);
}

/// <https://github.com/kubernetes-sigs/inference-perf/issues/50>
#[test]
fn inference_perf_50_source_addresses_take_turns() {
    for layout in LAYOUTS {
        let peers = Arc::new(Mutex::new(Vec::new()));
        let (all, seen) = (Arc::new(Gate::default()), Arc::clone(&peers));
        let server = Server::start(move |conn| {
            conn.request()?;
            let count = {
                let mut seen = seen.lock().unwrap();
                seen.push(conn.peer.ip());
                seen.len()
            };
            if count == 6 {
                all.open();
            }
            all.pass()?;
            conn.ok()
        });
        let sources = [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)].map(IpAddr::V4);
        let mut setup = setup(server.addr).layout(layout);
        setup.settings.sockets = SocketOptions::new(sources.to_vec(), None, None);
        let (_, exchanges) = setup.start().run(phase(burst(6, 6), singles()));
        let peers = peers.lock().unwrap();
        for source in sources {
            assert_eq!(peers.iter().filter(|peer| **peer == source).count(), 3, "{layout:?}: {peers:?}");
        }
        let local = |exchange: &Exchange| exchange.trace.facts.as_ref().unwrap().local.unwrap().ip();
        assert_eq!(exchanges.iter().map(local).collect::<HashSet<_>>(), HashSet::from(sources));
    }
}

#[test]
fn a_server_is_reached_over_ipv6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        // A host without IPv6 has nothing to show here.
        return;
    }
    let (asked, hosts) = channel();
    let server = Server::open("[::1]:0".parse().unwrap(), None, move |conn| {
        asked.send(conn.request()?.header("host").map(str::to_owned)).unwrap();
        conn.ok()
    });
    let (_, exchanges) = setup(server.addr).start().run(phase(burst(1, 1), singles()));
    assert_eq!(exchanges[0].failure, None);
    assert_eq!(hosts.recv().unwrap(), Some(server.addr.to_string()));
}

#[test]
fn an_address_of_the_wrong_family_is_not_used_as_a_source() {
    let server = Server::friendly();
    let mut setup = setup(server.addr);
    setup.settings.sockets = SocketOptions::new(vec!["::1".parse().unwrap()], None, None);
    let (_, exchanges) = setup.start().run(phase(burst(1, 1), singles()));
    assert!(exchanges[0].failure.is_none());
}

#[test]
fn a_name_with_several_addresses_is_reached_at_the_one_that_answers() {
    // `localhost` has an address of each family on most hosts; the server listens on one of them.
    let server = Server::friendly();
    let port = server.addr.port();
    let mut setup = crate::harness::Setup::new(&format!("http://localhost:{port}"), &endpoint());
    setup.settings.resolver =
        aiperf_load::transport::Resolver::new(&setup.settings.origin, aiperf_config::IpVersion::Auto)
            .unwrap();
    let (_, exchanges) = setup.start().run(phase(burst(1, 1), singles()));
    assert!(exchanges[0].failure.is_none());
    assert_eq!(exchanges[0].trace.dns, None, "the name was looked up before the run");
    assert_eq!(exchanges[0].trace.facts.as_ref().unwrap().remote, Some(server.addr));
}
