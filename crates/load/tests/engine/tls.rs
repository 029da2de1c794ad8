//! TLS, with a certificate authority made for the occasion. What is trusted comes from the environment, as it does
//! for a user; each test that trusts something runs in a process of its own.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aiperf_load::transport::{TlsError, TlsSettings};
use aiperf_load::{Exchange, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::{HandshakeKind, ServerConfig};
use rustls_pki_types::PrivateKeyDer;

use crate::closed_loop::burst;
use crate::harness::{Conn, DEADLINE, Rig, Server, Setup, endpoint, phase, reading, singles};

/// Set in the process that runs a test.
const INNER: &str = "AIPERF_TEST_TRUSTS";

/// Runs `test` in a process that trusts the certificates in the file it is given, which `test` is to write.
fn trusting(name: &str, test: impl FnOnce(&Path)) {
    if std::env::var_os(INNER).is_some() {
        return test(Path::new(&std::env::var_os("SSL_CERT_FILE").unwrap()));
    }
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("SSL_CERT_FILE", dir.path().join("roots.pem"))
        .env_remove("SSL_CERT_DIR")
        .env(INNER, "1")
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

/// A certificate authority.
pub(crate) fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server's settings with a certificate of `authority` for `name`.
pub(crate) fn config(
    authority: &CertifiedIssuer<'static, KeyPair>,
    name: &str,
    change: impl FnOnce(&mut CertificateParams),
) -> ServerConfig {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    change(&mut params);
    let certificate = params.signed_by(&key, authority).unwrap();
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap()
}

pub(crate) fn serve(
    config: ServerConfig,
    script: impl Fn(&mut Conn) -> Option<()> + Send + Sync + 'static,
) -> Server {
    Server::open(([127, 0, 0, 1], 0).into(), Some(Arc::new(config)), script)
}

pub(crate) fn friendly(conn: &mut Conn) -> Option<()> {
    loop {
        conn.request()?;
        conn.ok()?;
    }
}

/// An engine towards `server` under the name `host`.
fn rig(server: &Server, host: &str, insecure: bool) -> Rig {
    let mut setup = Setup::new(&format!("https://{host}:{}", server.addr.port()), &endpoint());
    setup.settings.tls = Some(Tls::new(&setup.settings.origin, &TlsSettings { insecure }).unwrap());
    setup.timeout(Duration::from_secs(5)).start()
}

pub(crate) fn kind(exchange: &Exchange) -> &str {
    exchange.failure.as_ref().map_or("none", |error| error.kind.as_str())
}

#[test]
fn a_trusted_server_is_spoken_to_in_http_1_1_and_sessions_are_resumed() {
    trusting("tls::a_trusted_server_is_spoken_to_in_http_1_1_and_sessions_are_resumed", |roots| {
        let authority = authority();
        std::fs::write(roots, authority.pem()).unwrap();
        for host in ["localhost", "127.0.0.1"] {
            let mut config = config(&authority, host, |_| {});
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            let (met, handshakes) = channel();
            let server = serve(config, move |conn| {
                conn.request()?;
                let tls = conn.tls()?;
                met.send((tls.handshake_kind(), tls.alpn_protocol().map(<[u8]>::to_vec))).unwrap();
                conn.ok()?;
                conn.request()?;
                conn.answer("200 OK", "Connection: close\r\n", "{}")
            });
            let (_, exchanges) = rig(&server, host, false).run(phase(burst(1, 6), singles()));
            for (n, exchange) in exchanges.iter().enumerate() {
                assert_eq!(kind(exchange), "none");
                let trace = &exchange.trace;
                assert_eq!(trace.reused, n % 2 == 1);
                assert_eq!(trace.tls.is_some(), n % 2 == 0);
                let mut steps = vec![exchange.start];
                if let (Some(connect), Some(tls)) = (trace.connect, trace.tls) {
                    steps.extend([connect.0, tls.0, tls.1, connect.1]);
                }
                steps.extend([trace.send_start, trace.headers_sent, trace.send_end].map(Option::unwrap));
                steps.extend([exchange.headers, trace.receive_start, trace.receive_end].map(Option::unwrap));
                steps.push(exchange.end);
                assert!(steps.is_sorted(), "{steps:?}");
                assert_eq!(trace.bytes_sent, exchange.request.body.len() as u64);
            }
            let seen: Vec<_> = handshakes.try_iter().collect();
            assert_eq!(seen.len(), 3);
            assert!(seen.iter().all(|(_, protocol)| protocol.as_deref() == Some(b"http/1.1")));
            let kinds: Vec<_> = seen.iter().map(|(kind, _)| kind.unwrap()).collect();
            assert_eq!(kinds[1..], [HandshakeKind::Resumed; 2]);
        }
    });
}

#[test]
fn a_stream_over_tls_is_stamped_record_by_record() {
    trusting("tls::a_stream_over_tls_is_stamped_record_by_record", |roots| {
        let authority = authority();
        std::fs::write(roots, authority.pem()).unwrap();
        let server = serve(config(&authority, "localhost", |_| {}), |conn| {
            loop {
                conn.request()?;
                conn.stream_head()?;
                for n in 0..300 {
                    conn.chunk(&format!(
                        "data: {{\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"w{n} \"}}}}]}}\n\n"
                    ))?;
                }
                conn.chunk("data: [DONE]\n\n")?;
                conn.chunk("")?;
            }
        });
        let (_, exchanges) = rig(&server, "localhost", false).run(phase(burst(2, 4), singles()));
        for exchange in exchanges {
            assert_eq!(kind(&exchange), "none");
            let reads = exchange.trace.facts.as_ref().unwrap().reads.clone();
            assert!(reads.is_sorted_by_key(|read| read.0));
            assert!(reads[0].0 >= exchange.headers.unwrap());
            let reading = reading(exchange, true);
            assert_eq!((reading.error, reading.answer.content.len()), (None, 300));
            assert!(reading.answer.content.iter().all(|event| reads.iter().any(|read| read.0 == event.at)));
        }
    });
}

/// Parity backlog of the reference, P1.22: two engines trusted different authorities.
#[test]
fn aiperf_parity_backlog_p1_22_a_certificate_that_cannot_be_trusted_is_named() {
    trusting("tls::aiperf_parity_backlog_p1_22_a_certificate_that_cannot_be_trusted_is_named", |roots| {
        let (ours, theirs) = (authority(), authority());
        std::fs::write(roots, ours.pem()).unwrap();
        let expired = |params: &mut CertificateParams| params.not_after = date_time_ymd(2020, 1, 1);
        let cases = [
            ("of another authority", config(&theirs, "localhost", |_| {})),
            ("of another host", config(&ours, "other.example", |_| {})),
            ("out of date", config(&ours, "localhost", expired)),
        ];
        for (what, config) in cases {
            let server = serve(config, friendly);
            let (_, exchanges) = rig(&server, "localhost", false).run(phase(burst(1, 1), singles()));
            assert_eq!(kind(&exchanges[0]), "ClientConnectorCertificateError", "{what}");
            let message = &exchanges[0].failure.as_ref().unwrap().message;
            assert!(message.contains("localhost") && message.contains("certificate"), "{what}: {message}");
            assert_eq!(exchanges[0].trace.send_start, None, "{what}: nothing was sent");
            // Verification switched off takes them all.
            let (_, exchanges) = rig(&server, "localhost", true).run(phase(burst(1, 1), singles()));
            assert_eq!(kind(&exchanges[0]), "none", "{what}");
        }
    });
}

#[test]
fn a_missing_bundle_is_said_before_anything_starts() {
    trusting("tls::a_missing_bundle_is_said_before_anything_starts", |file| {
        let setup = Setup::new("https://localhost:1", &endpoint());
        let error = || Tls::new(&setup.settings.origin, &TlsSettings::default()).err().unwrap();
        let refused = |cause: &str| {
            let error = error();
            assert!(matches!(error, TlsError::CertFile { .. }), "{error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("SSL_CERT_FILE {}: {cause}", file.display())), "{text}");
        };
        refused("No such file or directory");
        std::fs::write(file, "no certificate").unwrap();
        refused("it has no certificate that can be used");
    });
}

#[test]
fn a_handshake_that_fails_is_a_tls_error() {
    let plain = Server::start(|conn| {
        // Not a handshake: answered like the nonsense it is.
        conn.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")?;
        conn.closed().map(|_| ())
    });
    let closing = Server::start(|_| None);
    let authority = authority();
    let mut only_h2 = config(&authority, "localhost", |_| {});
    only_h2.alpn_protocols = vec![b"h2".to_vec()];
    let only_h2 = serve(only_h2, friendly);
    for server in [&plain, &closing, &only_h2] {
        let (_, exchanges) = rig(server, "localhost", true).run(phase(burst(1, 1), singles()));
        assert_eq!(kind(&exchanges[0]), "ClientConnectorSSLError", "{:?}", exchanges[0].failure);
    }
}

#[test]
fn an_end_without_goodbye_is_never_a_complete_answer() {
    let authority = authority();
    let until_close = b"HTTP/1.1 200 OK\r\n\r\n{}";
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}";
    let one = |answer: &'static [u8], goodbye: bool| {
        let server = serve(config(&authority, "localhost", |_| {}), move |conn| {
            conn.request()?;
            conn.send(answer)?;
            if goodbye { conn.close_notify() } else { Some(()) }
        });
        let (_, mut exchanges) = rig(&server, "localhost", true).run(phase(burst(1, 1), singles()));
        exchanges.remove(0)
    };
    for (answer, goodbye, expected) in [
        (until_close.as_slice(), true, "none"),
        (until_close, false, "ClientPayloadError"),
        (short, true, "ClientPayloadError"),
        (short, false, "ClientPayloadError"),
        (b"", true, "ServerDisconnectedError"),
        (b"", false, "ServerDisconnectedError"),
    ] {
        assert_eq!(kind(&one(answer, goodbye)), expected, "{} {goodbye}", String::from_utf8_lossy(answer));
    }
}

#[test]
fn an_idle_connection_that_said_goodbye_is_not_used() {
    let authority = authority();
    let (close, closing) = channel::<()>();
    let (told, closed) = channel();
    let closing = Mutex::new(closing);
    let server = serve(config(&authority, "localhost", |_| {}), move |conn| {
        conn.request()?;
        conn.ok()?;
        closing.lock().unwrap().recv_timeout(DEADLINE).ok()?;
        conn.close_notify()?;
        told.send(()).unwrap();
        conn.closed().map(|_| ())
    });
    let mut rig = rig(&server, "localhost", true);
    for _ in 0..3 {
        let (_, exchanges) = rig.run(phase(burst(1, 1), singles()));
        assert_eq!(exchanges[0].failure, None);
        assert!(!exchanges[0].trace.reused);
        close.send(()).unwrap();
        closed.recv_timeout(DEADLINE).unwrap();
    }
}

#[test]
fn a_handshake_that_never_ends_is_called_that() {
    // Takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let mut setup = Setup::new(&format!("https://localhost:{port}"), &endpoint());
    setup.settings.tls = Some(Tls::new(&setup.settings.origin, &TlsSettings { insecure: true }).unwrap());
    let (_, exchanges) = setup.timeout(Duration::from_millis(100)).start().run(phase(burst(1, 1), singles()));
    let error = exchanges[0].failure.as_ref().unwrap();
    assert_eq!(error.kind, "TimeoutError");
    let said = format!("The TLS handshake with localhost:{port} did not end within 0.1 seconds");
    assert!(error.message.starts_with(&said), "{}", error.message);
    assert!(exchanges[0].trace.connect.is_some() && exchanges[0].trace.tls.is_none());
}
