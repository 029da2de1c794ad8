//! https.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use aiperf_mock_server::{Server, Settings, StartError};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use support::{BODY, CHAT, FULL, request};

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn server(key: &str) -> Result<Server, StartError> {
    let (certificate, key) = (data("certificate.pem"), data(key));
    let pairs = [
        ("tls-cert", certificate.as_str()),
        ("tls-key", &key),
        ("ttft", "1"),
        ("itl", "0"),
        ("usage", "estimate"),
    ];
    Server::start(&Settings::from_pairs(pairs).unwrap(), ([127, 0, 0, 1], 0).into())
}

#[test]
fn answers_come_over_tls() {
    let server = server("test-only-key.pem").unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(data("authority.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(server.addr()).unwrap();
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    let long = FULL.replace(":6", ":20000");
    for wire in [
        request(CHAT, "", BODY),
        request(CHAT, "X-Mock-Fault: split\r\n", BODY),
        request(CHAT, "Connection: close\r\n", &long),
    ] {
        stream.write_all(wire.as_bytes()).unwrap();
    }
    let mut text = String::new();
    // Ends without an error only if the server said that it closes.
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3);
    assert_eq!(text.matches("[DONE]").count(), 2);
    assert_eq!(text.matches("hello").count(), 20_012);
}

#[test]
fn plain_text_to_a_tls_port_is_dropped() {
    let server = server("test-only-key.pem").unwrap();
    let mut client = support::Client::connect(&server);
    client.send(request(CHAT, "", FULL).as_bytes());
    let (bytes, _) = client.read_to_end();
    assert!(!bytes.starts_with(b"HTTP"));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let error = server("missing.pem").unwrap_err();
    assert!(matches!(error, StartError::Tls(_)));
    assert!(error.to_string().contains("missing.pem"), "{error}");
    let error = server("authority.pem").unwrap_err().to_string();
    assert!(error.contains("authority.pem") && error.contains("private key"), "{error}");
}
