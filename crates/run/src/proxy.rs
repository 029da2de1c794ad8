//! Which proxy the environment names for a server. Asked only with `AIPERF_HTTP_TRUST_ENV=1`: a proxy that is
//! merely there must not get between a benchmark and its server.

use std::net::IpAddr;

use url::Url;

/// A proxy, and the variable that names it.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) url: Url,
    pub(crate) variable: String,
}

/// The proxy for `target`, as `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` say (either case; lower case first).
/// `get` reads a variable.
///
/// The error is the name of the variable whose value is no such proxy.
pub(crate) fn for_target(
    target: &Url,
    get: impl Fn(&str) -> Option<String>,
) -> Result<Option<Named>, String> {
    let read = |name: &str| {
        let names = [name.to_ascii_lowercase(), name.to_owned()];
        let mut found = names.into_iter().filter_map(|name| get(&name).map(|value| (name, value)));
        found.next().filter(|(_, value)| !value.trim().is_empty())
    };
    let name = if target.scheme() == "https" { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    let Some((variable, value)) = read(name) else { return Ok(None) };
    let host = target.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if read("NO_PROXY").is_some_and(|(_, list)| excluded(&list, host, target.port_or_known_default())) {
        return Ok(None);
    }
    let text = if value.contains("://") { value } else { format!("http://{value}") };
    match Url::parse(&text) {
        Ok(url) if url.scheme() == "http" && url.host_str().is_some() => Ok(Some(Named { url, variable })),
        _ => Err(variable),
    }
}

/// Whether a `NO_PROXY` list names the host: `*`, a name with all below it, or an address, each with or without
/// a port; or a network (`10.0.0.0/8`), which names addresses and no names.
fn excluded(list: &str, host: &str, port: Option<u16>) -> bool {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let Some((network, bits)) = entry.split_once('/') {
            return is_within(network, bits, host).unwrap_or(false);
        }
        let (name, wanted) = match entry.rsplit_once(':') {
            Some((name, digits)) if !name.contains(':') => match digits.parse::<u16>() {
                Ok(number) => (name, Some(number)),
                Err(_) => (entry, None),
            },
            _ => (entry, None),
        };
        if wanted.is_some() && wanted != port {
            return false;
        }
        let name = name.trim_start_matches("*.").trim_start_matches('.').trim_matches(['[', ']']);
        let tail = host.len().checked_sub(name.len()).map(|at| host.split_at_checked(at));
        tail.flatten().is_some_and(|(before, tail)| {
            tail.eq_ignore_ascii_case(name) && (before.is_empty() || before.ends_with('.'))
        })
    })
}

/// Whether a host is an address of a network, of whose addresses the first `bits` bits are alike; `None` where one of
/// them is none.
fn is_within(network: &str, bits: &str, host: &str) -> Option<bool> {
    let bits: u32 = bits.parse().ok()?;
    let network: IpAddr = network.trim_matches(['[', ']']).parse().ok()?;
    // What differs, counted from the first bit of an address.
    let (differs, width) = match (network, host.parse().ok()?) {
        (IpAddr::V4(network), IpAddr::V4(host)) => (u128::from(network.to_bits() ^ host.to_bits()), 32),
        (IpAddr::V6(network), IpAddr::V6(host)) => (network.to_bits() ^ host.to_bits(), 128),
        _ => return None,
    };
    let rest = u32::checked_sub(width, bits)?;
    Some(differs.checked_shr(rest).unwrap_or(0) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(target: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let target = Url::parse(target).unwrap();
        let get =
            |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        for_target(&target, get).map(|found| found.map(|found| found.url.to_string()))
    }

    #[test]
    fn the_scheme_of_the_server_chooses_the_variable() {
        let both = [("HTTP_PROXY", "http://a:1"), ("HTTPS_PROXY", "b:2")];
        assert_eq!(proxy("http://h/", &both), Ok(Some("http://a:1/".into())));
        assert_eq!(proxy("https://h/", &both), Ok(Some("http://b:2/".into())));
        assert_eq!(proxy("http://h/", &[]), Ok(None));
        assert_eq!(
            proxy("http://h/", &[("http_proxy", "l:1"), ("HTTP_PROXY", "u:1")]),
            Ok(Some("http://l:1/".into()))
        );
    }

    #[test]
    fn hosts_that_are_named_go_direct() {
        let with = |list: &str, target: &str| {
            proxy(target, &[("HTTP_PROXY", "p:1"), ("NO_PROXY", list)]).unwrap().is_none()
        };
        assert!(with("*", "http://any/"));
        assert!(with("example.org", "http://api.example.org/"));
        assert!(with(" x , .example.org", "http://EXAMPLE.org/"));
        assert!(!with("example.org", "http://badexample.org/"));
        assert!(with("127.0.0.1", "http://127.0.0.1:8000/"));
        assert!(with("127.0.0.1:8000", "http://127.0.0.1:8000/"));
        assert!(!with("127.0.0.1:9", "http://127.0.0.1:8000/"));
        assert!(with("10.0.0.0/8,127.0.0.0/8", "http://127.0.0.1:8000/"));
        assert!(with("127.0.0.1/32", "http://127.0.0.1/") && with("1.2.3.4/0", "http://127.0.0.1/"));
        assert!(with("fd00::/8", "http://[fd12::1]:8000/") && with("::/0", "http://[::1]/"));
        for other in
            ["127.0.0.2/32", "128.0.0.0/1", "127.0.0.0/33", "127.0.0.0/x", "::/0", "/8", "127.0.0.0/"]
        {
            assert!(!with(other, "http://127.0.0.1:8000/"), "{other}");
        }
        assert!(!with("127.0.0.0/8", "http://localhost/"));
    }

    #[test]
    fn other_kinds_of_proxy_are_refused() {
        let error = |name| proxy("http://h/", &[(name, "socks5://p:1")]).unwrap_err();
        assert_eq!((error("HTTP_PROXY"), error("http_proxy")), ("HTTP_PROXY".into(), "http_proxy".into()));
        // Nothing of the rule is taken for a credential.
        let text = crate::InputError::Proxy("HTTP_PROXY".into()).to_string();
        assert_eq!(aiperf_config::redact_text(&text), text);
    }
}
