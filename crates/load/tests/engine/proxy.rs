//! Through an HTTP proxy.

use std::io::copy;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::channel;

use aiperf_config::Secret;
use aiperf_load::transport::{AffinityHeaders, HeadTemplate, TlsSettings};
use aiperf_load::{Exchange, Proxy, Tls};

use crate::closed_loop::burst;
use crate::harness::{Conn, Server, Setup, endpoint, phase, setup, singles};
use crate::tls::{authority, config, friendly, kind, serve};

/// Two exchanges with `target`, which has a name that only `proxy` can reach, over TLS.
fn through(proxy: &Server, target: &str) -> Vec<Exchange> {
    let mut setup = Setup::new(&format!("https://{target}"), &endpoint());
    // What is looked up is the proxy.
    setup.settings.resolver = crate::harness::setup(proxy.addr).settings.resolver;
    setup.settings.tls = Some(Tls::new(&setup.settings.origin, &TlsSettings { insecure: true }).unwrap());
    let credential = Some(Secret::new("Basic canary"));
    setup.settings.proxy =
        Some(Proxy { authority: proxy.addr.to_string(), variable: "HTTPS_PROXY".into(), credential });
    setup.start().run(phase(burst(1, 2), singles())).1
}

/// Passes bytes between the client of `conn` and `target` until both are silent.
fn splice(conn: &Conn, target: &Server) -> Option<()> {
    let client = conn.socket().try_clone().ok()?;
    let server = TcpStream::connect(target.addr).ok()?;
    let (mut from_client, mut to_server) = (client.try_clone().ok()?, server.try_clone().ok()?);
    let up = std::thread::spawn(move || {
        let _ = copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let _ = copy(&mut &server, &mut &client);
    let _ = client.shutdown(Shutdown::Both);
    up.join().ok()
}

#[test]
fn tls_goes_through_a_tunnel_once_per_connection() {
    let target = std::sync::Arc::new(serve(config(&authority(), "localhost", |_| {}), friendly));
    let (asked, tunnels) = channel();
    let inner = std::sync::Arc::clone(&target);
    let proxy = Server::start(move |conn| {
        asked.send(conn.request()?.head).unwrap();
        conn.send(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")?;
        splice(conn, &inner)
    });
    let name = format!("localhost:{}", target.addr.port());
    let exchanges = through(&proxy, &name);
    assert!(exchanges.iter().all(|exchange| exchange.failure.is_none()), "{:?}", exchanges[0].failure);
    assert!(!exchanges[0].trace.reused && exchanges[1].trace.reused);
    let expected =
        format!("CONNECT {name} HTTP/1.1\r\nHost: {name}\r\nProxy-Authorization: Basic canary\r\n\r\n");
    assert_eq!(tunnels.try_iter().collect::<Vec<_>>(), [expected]);
    // The tunnel is part of connecting, and no part of the handshake.
    let trace = &exchanges[0].trace;
    let (connect, tls) = (trace.connect.unwrap(), trace.tls.unwrap());
    assert!(connect.0 < tls.0 && tls.1 <= connect.1);
}

#[test]
fn a_refused_tunnel_says_what_the_proxy_said_and_not_the_password() {
    let refusing = Server::start(|conn| {
        conn.request()?;
        conn.answer("407 Proxy Authentication Required", "", "")
    });
    let closing = Server::start(|conn| conn.request().map(|_| ()));
    let endless = Server::start(|conn| {
        conn.request()?;
        while conn.send(&[b'x'; 4096]).is_some() {}
        Some(())
    });
    for (proxy, expected) in [
        (&refusing, "407 Proxy Authentication Required"),
        (&closing, "the proxy closed the connection"),
        (&endless, "too long"),
    ] {
        let exchanges = through(proxy, "localhost:9");
        assert_eq!(kind(&exchanges[0]), "ClientConnectorError");
        let message = &exchanges[0].failure.as_ref().unwrap().message;
        assert!(message.contains(&format!("proxy {} (HTTPS_PROXY)", proxy.addr)), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("canary"));
    }
}

#[test]
fn plain_requests_name_the_whole_target_to_the_proxy() {
    let (asked, heads) = channel();
    let proxy = Server::start(move |conn| {
        asked.send(conn.request()?.head).unwrap();
        conn.ok()
    });
    let mut setup = setup(proxy.addr);
    let target = "http://far.example:81/v1/chat/completions";
    setup.settings.head =
        HeadTemplate::new("far.example:81", target, "0.1.0", &endpoint(), AffinityHeaders::default());
    setup.settings.proxy =
        Some(Proxy { authority: proxy.addr.to_string(), variable: "HTTP_PROXY".into(), credential: None });
    let (_, exchanges) = setup.start().run(phase(burst(1, 1), singles()));
    assert!(exchanges[0].failure.is_none());
    let head = heads.recv().unwrap();
    assert!(head.starts_with(&format!("POST {target} HTTP/1.1\r\nHost: far.example:81\r\n")), "{head}");
}
