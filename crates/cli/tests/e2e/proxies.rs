//! What keeps a proxy of the environment from being used is laid to the proxy, not to the server behind it.

use crate::support::{Echo, Live, Place, Ran, http};

/// A run towards a server that only the proxy would know.
fn through(variable: &str, proxy: &str) -> Ran {
    let place = Place::new();
    let scheme = if variable.eq_ignore_ascii_case("https_proxy") { "https" } else { "http" };
    let mut command = place.profile(&format!("{scheme}://far.example:81"), "--request-count 2 --isl 16");
    command.env("AIPERF_HTTP_TRUST_ENV", "1").env("AIPERF_HTTP_SSL_VERIFY", "0").env(variable, proxy);
    Live::start(&mut command).end()
}

#[test]
fn a_proxy_that_is_not_there_is_named_with_its_variable() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = through("HTTP_PROXY", &format!("http://{free}")).with_code(1);
    assert!(
        ran.err.contains(&format!("Cannot connect to proxy {free} (HTTP_PROXY): Connection refused")),
        "{}",
        ran.err
    );
    let last = ran.err.lines().find(|line| line.contains("no request succeeded")).unwrap();
    assert!(last.contains("AIPERF_HTTP_TRUST_ENV") && !last.contains("--url"), "{last}");
    let ran = through("http_proxy", "http://no-such-host.invalid:3").with_code(1);
    assert!(
        ran.err.contains("error: http_proxy: cannot resolve the proxy 'no-such-host.invalid'"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("--url"), "{}", ran.err);
}

#[test]
fn a_proxy_of_another_kind_is_refused_with_the_form_it_should_have() {
    let ran = through("HTTP_PROXY", "junk://planted@x").with_code(2);
    assert!(
        ran.err.starts_with("error: HTTP_PROXY is no proxy that can be used: it must be http://HOST:PORT, with USER:PASSWORD@ before HOST"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("planted"), "{}", ran.err);
}

#[test]
fn a_proxy_that_asks_for_credentials_is_not_taken_for_the_server() {
    let proxy = Echo::start(|_| http("407 Proxy Authentication Required", "", ""));
    for variable in ["HTTP_PROXY", "HTTPS_PROXY"] {
        let ran = through(variable, &format!("127.0.0.1:{}", proxy.port)).with_code(1);
        let last = ran.err.lines().find(|line| line.contains("no request succeeded")).unwrap();
        assert!(last.contains("the proxy, and not the server, asks for credentials"), "{variable}: {last}");
        let first = ran.err.lines().find(|line| line.contains("first failed request")).unwrap();
        assert!(
            first.contains("407 Proxy Authentication Required") && !first.trim_end().ends_with(':'),
            "{first}"
        );
    }
}

/// What reads the requests may answer them.
#[test]
fn a_refusal_that_may_come_from_the_proxy_is_not_laid_to_the_server_alone() {
    let proxy = Echo::start(|_| http("401 Unauthorized", "", ""));
    let ran = through("http_proxy", &format!("127.0.0.1:{}", proxy.port)).with_code(1);
    let last = ran.err.lines().find(|line| line.contains("no request succeeded")).unwrap();
    assert!(last.contains("the server, or the proxy of http_proxy, asks for credentials"), "{last}");
    let ran = through("https_proxy", &format!("127.0.0.1:{}", proxy.port)).with_code(1);
    let last = ran.err.lines().find(|line| line.contains("no request succeeded")).unwrap();
    assert!(last.contains("the proxy, and not the server, asks for credentials"), "{last}");
}
