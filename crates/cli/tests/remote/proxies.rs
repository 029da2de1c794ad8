//! A proxy between this machine and the data.

use std::net::TcpListener;

use aiperf_test_servers::{Answer, Server};

use crate::machine::{Machine, TRACE, stderr};

/// What `resolve` says of a file behind this proxy.
fn said(proxy: &str) -> String {
    let server = Server::start(|request| Answer::file(request, &TRACE.into()));
    let mut machine = Machine::bare();
    machine.set("HTTP_PROXY", proxy);
    let reference = format!("{}/x.jsonl", server.url());
    let output = machine.aiperf(&["dataset", "resolve", &reference]);
    assert!(!output.status.success() && server.log().is_empty());
    stderr(&output)
}

#[test]
fn a_proxy_that_is_not_there_is_named_beside_the_server() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = said(&format!("http://me:canary@{free}"));
    assert!(said.contains(&format!(": by way of the proxy {free}: ")), "{said}");
    assert!(said.contains("Check the network and HTTP_PROXY, which names the proxy"), "{said}");
    assert!(said.contains("attempt 1 of 3 failed: could not connect to "), "{said}");
    assert!(!said.contains("canary"), "{said}");
}

#[test]
fn a_proxy_that_asks_for_a_password_is_told() {
    let proxy = Server::start(|_| Answer::status(407));
    let said = said(&proxy.url());
    let told =
        format!("access was denied: the proxy 127.0.0.1:{} asks for a user and a password", proxy.port());
    assert!(said.contains(&told) && said.contains("USER:PASSWORD@"), "{said}");
    assert_eq!(proxy.log().len(), 1, "it does not help to ask again");
}

#[test]
fn a_proxy_that_cannot_be_read_is_not_passed_over() {
    let said = said("http://me:canary pass@127.0.0.1:1");
    let rule = "HTTP_PROXY is \"<redacted>\": it must be http://HOST:PORT, with USER:PASSWORD@ before HOST";
    assert!(said.contains(rule), "{said}");
    assert!(!said.contains("canary") && !said.contains("pass@"), "{said}");
}
