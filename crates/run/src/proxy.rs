//! Which proxy the environment names for a server. Asked only with `AIPERF_HTTP_TRUST_ENV=1`: a proxy that is
//! merely there must not get between a benchmark and its server.

use url::Url;

/// The proxy for `target`, as `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` say (either case; lower case first).
/// `get` reads a variable.
pub(crate) fn for_target(target: &Url, get: impl Fn(&str) -> Option<String>) -> Result<Option<Url>, String> {
    let read = |name: &str| {
        let lower = get(&name.to_ascii_lowercase());
        lower.or_else(|| get(name)).filter(|value| !value.trim().is_empty())
    };
    let name = if target.scheme() == "https" { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    let Some(value) = read(name) else { return Ok(None) };
    let host = target.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if read("NO_PROXY").is_some_and(|list| excluded(&list, host, target.port_or_known_default())) {
        return Ok(None);
    }
    let text = if value.contains("://") { value } else { format!("http://{value}") };
    match Url::parse(&text) {
        Ok(url) if url.scheme() == "http" && url.host_str().is_some() => Ok(Some(url)),
        _ => {
            Err(format!("{name} must be http://[USER:PASSWORD@]HOST[:PORT]; other proxies are not supported"))
        }
    }
}

/// Whether a `NO_PROXY` list names the host: `*`, a name with all below it, or an address, each with or without
/// a port.
fn excluded(list: &str, host: &str, port: Option<u16>) -> bool {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(target: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let target = Url::parse(target).unwrap();
        let get =
            |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        for_target(&target, get).map(|url| url.map(|url| url.to_string()))
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
    }

    #[test]
    fn other_kinds_of_proxy_are_refused() {
        let error = proxy("http://h/", &[("HTTP_PROXY", "socks5://p:1")]).unwrap_err();
        assert!(error.contains("HTTP_PROXY") && error.contains("http://"), "{error}");
    }
}
