//! The proxies of the environment: which one stands between this machine and a server.

use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use super::Failure;
use crate::error::Problem;

/// The variables that name one; the client looks at them by itself.
const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The rules of the environment, as the client reads them.
#[derive(Debug)]
pub(super) struct Proxies {
    matcher: Matcher,
    /// The variable that names the proxy of http, and that of https.
    named_by: [Option<&'static str>; 2],
}

/// A proxy that a request takes.
#[derive(Debug)]
pub(super) struct Proxy {
    /// Host and port.
    pub(super) address: String,
    /// The variable that names it.
    named_by: Option<&'static str>,
}

impl Proxies {
    /// Refuses a value that the client would pass over in silence. `get` reads a variable.
    pub(super) fn of(get: impl Fn(&str) -> Option<String>) -> Result<Proxies, Problem> {
        let is_usable = |value: &str| {
            let any = http::Uri::from_static("http://any.invalid/");
            Matcher::builder().http(value.to_owned()).build().intercept(&any).is_some()
        };
        for name in VARIABLES {
            if get(name).is_some_and(|value| !value.is_empty() && !is_usable(&value)) {
                // It may hold a password, in whatever form.
                return Err(Problem::Setting {
                    name,
                    value: "<redacted>".into(),
                    rule: "it must be http://HOST:PORT, with USER:PASSWORD@ before HOST where the proxy asks for them; in a \
                           password a space is %20, an @ %40",
                });
            }
        }
        // As the client looks: the first that is set, and the one for all where that is empty.
        let first = |names: &[&'static str]| {
            let set = names.iter().find_map(|name| Some((*name, get(name)?)));
            set.filter(|(_, value)| !value.is_empty()).map(|(name, _)| name)
        };
        let named_by =
            [&VARIABLES[..2], &VARIABLES[2..4]].map(|own| first(own).or_else(|| first(&VARIABLES[4..])));
        Ok(Proxies { matcher: Matcher::from_env(), named_by })
    }

    /// The proxy that a request to `url` takes.
    pub(super) fn between(&self, url: &Url) -> Option<Proxy> {
        let found = self.matcher.intercept(&url.as_str().parse().ok()?)?;
        let host = found.uri().host()?.to_owned();
        let address = found.uri().port_u16().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        Some(Proxy { address, named_by: self.named_by[usize::from(url.scheme() == "https")] })
    }
}

/// A proxy that asks for a user and a password.
pub(super) fn asks_who(proxy: Option<&str>) -> Problem {
    let proxy = proxy.map_or_else(|| "a proxy".to_owned(), |proxy| format!("the proxy {proxy}"));
    Problem::Denied {
        what: format!("{proxy} asks for a user and a password, or refused them (407)"),
        fix: "Write USER:PASSWORD@ before its host in HTTP_PROXY or HTTPS_PROXY".into(),
    }
}

/// A failure of a request that went through a proxy names both.
pub(super) fn by_way_of(proxy: &Proxy, failure: Failure) -> Failure {
    let Proxy { address: proxy, named_by: variable } = proxy;
    let told = |problem: Problem| match problem {
        Problem::Connect { cause, .. } if cause.contains("proxy authorization required") => {
            asks_who(Some(proxy))
        }
        Problem::Connect { host, cause, named_by } => {
            let cause = format!("by way of the proxy {proxy}: {cause}");
            Problem::Connect { host, cause, named_by: variable.or(named_by) }
        }
        Problem::Untrusted { host, cause, fix } => {
            Problem::Untrusted { host, cause: format!("by way of the proxy {proxy}: {cause}"), fix }
        }
        other => other,
    };
    match failure {
        Failure::Final(problem) => Failure::Final(told(problem)),
        Failure::NoSuchRange(problem) => Failure::NoSuchRange(told(problem)),
        Failure::Transient { problem, wait } => match told(problem) {
            denied @ Problem::Denied { .. } => Failure::Final(denied),
            problem => Failure::Transient { problem, wait },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &'static str, value: &'static str) -> Result<Proxies, Problem> {
        Proxies::of(move |asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn a_proxy_that_the_client_would_pass_over_is_refused_without_its_password() {
        for value in ["http://p:1", "p:1", "http://u:a%20b@p:1", "https://p", "socks5://p:1", ""] {
            assert!(of("HTTP_PROXY", value).is_ok(), "{value}");
        }
        for name in VARIABLES {
            let problem = of(name, "http://me:CANARY PASS@127.0.0.1:1").unwrap_err();
            let text = problem.to_string();
            assert!(text.starts_with(name) && text.contains("%20") && !text.contains("CANARY"), "{text}");
        }
    }

    #[test]
    fn a_failure_behind_a_proxy_names_it() {
        let failure = |cause: &str| {
            let problem = Problem::Connect { host: "h:1".into(), cause: cause.into(), named_by: None };
            let proxy = Proxy { address: "p:2".into(), named_by: Some("all_proxy") };
            by_way_of(&proxy, Failure::transient(problem))
        };
        let Failure::Transient { problem, .. } = failure("refused") else { panic!("it may work later") };
        assert_eq!(problem.to_string(), "could not connect to h:1: by way of the proxy p:2: refused");
        let fix = problem.fix();
        assert!(fix.starts_with("Check the network and all_proxy, which names the proxy, or set"), "{fix}");
        let Failure::Final(problem) = failure("tunnel error: proxy authorization required") else {
            panic!("it does not help to ask again")
        };
        assert!(
            problem.to_string().contains("access was denied: the proxy p:2 asks for a user"),
            "{problem}"
        );
    }
}
