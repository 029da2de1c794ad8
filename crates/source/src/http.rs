//! One HTTP client for every scheme: no redirects and no retries of its own, bounded waits, proxies from the
//! environment. What is tried again, and when, is decided here.

mod body;
mod proxies;
mod trust;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, LINK, LOCATION, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode};

pub(crate) use body::Body;

use url::Url;

use crate::error::Problem;
use crate::settings::Patience;
use proxies::Proxies;

/// Redirects that are followed.
pub(crate) const MOST_HOPS: usize = 10;
/// Attempts of one request.
pub(crate) const ATTEMPTS: u32 = 3;

/// A request that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It never will.
    Final(Problem),
    /// It may, in a while; the problem is told when it does not.
    Transient {
        /// What to say in the end.
        problem: Problem,
        /// The wait that the server asks for.
        wait: Option<Duration>,
    },
    /// It cannot begin where it was asked to (416); from the first byte it may.
    NoSuchRange(Problem),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::Final(problem)
    }
}

impl Failure {
    pub(crate) fn transient(problem: Problem) -> Failure {
        Failure::Transient { problem, wait: None }
    }
}

/// Performs `attempt` up to three times.
pub(crate) async fn retrying<T>(
    patience: &Patience,
    mut attempt: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<T, Problem> {
    let mut made = 0;
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(failure) => made = pause(patience, failure, made).await?,
        }
    }
}

/// After attempt `made` (from 0) failed: waits and returns how many were made, or says that it is over.
pub(crate) async fn pause(patience: &Patience, failure: Failure, made: u32) -> Result<u32, Problem> {
    let (problem, wait) = match failure {
        Failure::Final(problem) | Failure::NoSuchRange(problem) => return Err(problem),
        Failure::Transient { problem, wait } => (problem, wait),
    };
    if made + 1 >= ATTEMPTS {
        return Err(problem);
    }
    let asked_for = if wait.is_some() { ", as the server asks" } else { "" };
    let wait = match wait {
        Some(wait) if wait > patience.longest_wait => {
            return Err(match problem {
                Problem::Answered { status, what, .. } => {
                    Problem::RateLimited { status, what, seconds: wait.as_secs().max(1) }
                }
                other => other,
            });
        }
        Some(wait) => wait,
        None => {
            // ±25 %, so that those who failed together do not come back together.
            let share = RandomState::new().hash_one(made) as f64 / u64::MAX as f64;
            patience.between_attempts[made as usize % 2].mul_f64(0.75 + share / 2.0)
        }
    };
    let once = match problem {
        Problem::Answered { status, what, .. } => Problem::Answered { status, what, attempts: 1 },
        other => other,
    };
    patience.events.warn(format!(
        "attempt {} of {ATTEMPTS} failed: {once}; the next one starts in {:.1} s{asked_for}",
        made + 1,
        wait.as_secs_f64()
    ));
    tokio::time::sleep(wait).await;
    Ok(made + 1)
}

/// The client, made when it is first needed.
#[derive(Debug)]
pub(crate) struct Http {
    client: OnceLock<reqwest::Client>,
    proxies: OnceLock<Proxies>,
    patience: Patience,
    /// Of the next byte of a body.
    idle: Duration,
    /// A host that stands in the place of the usual one, and the setting that names it.
    named: Option<(String, &'static str)>,
}

impl Http {
    /// A client whose bodies may pause for `idle`.
    pub(crate) fn new(patience: Patience, idle: Duration) -> Http {
        Http { client: OnceLock::new(), proxies: OnceLock::new(), patience, idle, named: None }
    }

    /// The same; `setting` is told when the host of `endpoint` cannot be reached, because it names it.
    pub(crate) fn named_by(self, endpoint: Option<&Url>, setting: &'static str) -> Http {
        Http { named: endpoint.map(|url| (host_of(url), setting)), ..self }
    }

    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// The client itself, to build requests with.
    pub(crate) fn client(&self) -> Result<&reqwest::Client, Problem> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        self.proxies()?;
        let failed =
            |what: String| Problem::Connect { host: "the network".into(), cause: what, named_by: None };
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(trust::tls().map_err(failed)?)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .http1_only()
            .connect_timeout(self.patience.connect)
            .read_timeout(self.idle)
            .user_agent(concat!("aiperf/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| failed(cause(&error)))?;
        Ok(self.client.get_or_init(|| client))
    }

    fn proxies(&self) -> Result<&Proxies, Problem> {
        if let Some(proxies) = self.proxies.get() {
            return Ok(proxies);
        }
        let proxies = Proxies::of(|name| std::env::var(name).ok())?;
        Ok(self.proxies.get_or_init(|| proxies))
    }

    /// Sends a request and returns the answer, whatever its status, once its headers are there.
    pub(crate) async fn send(
        &self,
        request: RequestBuilder,
        headers_within: Duration,
    ) -> Result<Response, Failure> {
        let request = request.build().map_err(|error| Problem::Unexpected {
            what: format!("nothing: the request cannot be made: {}", cause(&error)),
            fix: "Check the reference and its settings".into(),
        })?;
        let host = host_of(request.url());
        let named_by = self.named.as_ref().filter(|(named, _)| *named == host).map(|(_, setting)| *setting);
        let proxy = self.proxies()?.between(request.url());
        let failure = match tokio::time::timeout(headers_within, self.client()?.execute(request)).await {
            Ok(Ok(response)) if response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                return Err(proxies::asks_who(proxy.as_ref().map(|proxy| proxy.address.as_str())).into());
            }
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => failed(&error, host, named_by),
            Err(_) => {
                let cause = format!("no answer within {} s", headers_within.as_secs_f64());
                Failure::transient(Problem::Connect { host, cause, named_by })
            }
        };
        Err(match proxy {
            Some(proxy) => proxies::by_way_of(&proxy, failure),
            None => failure,
        })
    }
}

/// Why no answer came, and whether one may come the next time.
fn failed(error: &reqwest::Error, host: String, named_by: Option<&'static str>) -> Failure {
    let cause = cause(error);
    let tls = trust::tls_error(error);
    let is_https = matches!(tls, Some(rustls::Error::InvalidMessage(_)));
    // As the client says what it could not parse of an answer.
    if is_https || cause.ends_with(" parsed") || cause == "message head is too large" {
        return Failure::Final(Problem::NotHttp { host, cause, is_https });
    }
    match tls {
        // Another attempt comes to the same.
        Some(rustls::Error::InvalidCertificate(fault)) => {
            let (cause, fix) = trust::explained(fault, cause);
            Failure::Final(Problem::Untrusted { host, cause, fix })
        }
        _ => Failure::transient(Problem::Connect { host, cause, named_by }),
    }
}

/// Host and port of a URL: what is printed of it when it may hold a signature.
pub(crate) fn host_of(url: &url::Url) -> String {
    let host = url.host_str().unwrap_or("?");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether a status means "not now", and the wait that goes with it.
pub(crate) fn transient_answer(status: StatusCode, headers: &HeaderMap, what: &str) -> Option<Failure> {
    (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()).then(|| Failure::Transient {
        problem: Problem::Answered { status: status.as_u16(), what: what.to_owned(), attempts: ATTEMPTS },
        wait: retry_after(headers),
    })
}

/// `Retry-After`: seconds, or a date by the clock of the server.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = header(headers, RETRY_AFTER.as_str())?;
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => http_date(text)?.saturating_sub(server_time(headers).unwrap_or_else(own_time)),
    };
    Some(Duration::from_secs(seconds))
}

/// The clock of this machine, seconds since 1970.
pub(crate) fn own_time() -> u64 {
    aiperf_clock::wall(aiperf_clock::now()) / 1_000_000_000
}

/// The clock of the server, seconds since 1970, where its answer tells.
pub(crate) fn server_time(headers: &HeaderMap) -> Option<u64> {
    http_date(header(headers, DATE.as_str())?)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` as seconds since 1970.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = parts.as_slice() else { return None };
    let month = MONTHS.iter().position(|name| name == month)? + 1;
    aiperf_config::moment(&format!("{year}{month:02}{day}{}", time.replace(':', "")))
}

/// Where a redirect leads; never from a private connection to an open one.
pub(crate) fn redirect_target(from: &Url, headers: &HeaderMap) -> Result<Url, Problem> {
    let refuse = |why: &str| Problem::Redirect { what: format!("of {} {why}", host_of(from)) };
    let location = header(headers, LOCATION.as_str()).ok_or_else(|| refuse("says nowhere where it leads"))?;
    let next = from.join(location).map_err(|_| refuse("leads to no URL"))?;
    match (from.scheme(), next.scheme()) {
        (_, "https") | ("http", "http") => Ok(next),
        ("https", "http") => Err(refuse("leads from https to http, and is not followed")),
        _ => Err(refuse("leads to another scheme, and is not followed")),
    }
}

/// The first byte and the whole length that a `Content-Range` names.
pub(crate) fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let (range, total) = header(headers, "content-range")?.strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()))
}

/// Where the next page of a listing is, as its `Link` header tells.
pub(crate) fn next_page(headers: &HeaderMap) -> Option<String> {
    headers
        .get_all(LINK)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .find_map(|link| {
            let (url, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
            parameters
                .split(';')
                .any(|parameter| matches!(parameter.trim(), "rel=\"next\"" | "rel=next"))
                .then(|| url.to_owned())
        })
}

/// A header as text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// Whether an answer is a page for people, by the type that it says it has.
pub(crate) fn is_page(headers: &HeaderMap) -> bool {
    const PAGE: &str = "text/html";
    header(headers, CONTENT_TYPE.as_str())
        .and_then(|kind| kind.get(..PAGE.len()))
        .is_some_and(|start| start.eq_ignore_ascii_case(PAGE))
}

/// The innermost cause of an error of the client, which names no URL.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it timed out".into();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    // The outermost level is the one that knows the URL.
    if std::ptr::eq(std::ptr::from_ref(innermost).cast::<()>(), std::ptr::from_ref(error).cast::<()>()) {
        return "the request failed".into();
    }
    aiperf_config::redact_text(&innermost.to_string())
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn a_page_is_known_by_its_type_in_any_case() {
        let kinds = ["text/html", " Text/HTML; charset=utf-8", "text/plain", "text/htm", "text/htmé", ""];
        let pages = kinds.map(|kind| {
            is_page(&HeaderMap::from_iter([(
                CONTENT_TYPE,
                HeaderValue::from_bytes(kind.as_bytes()).unwrap(),
            )]))
        });
        assert_eq!(pages, [true, true, false, false, false, false]);
        assert!(!is_page(&HeaderMap::new()));
    }

    #[test]
    fn a_date_to_come_back_at_is_by_the_clock_of_the_server() {
        let wait = |after: &str, date: Option<&str>| {
            let mut headers = HeaderMap::new();
            for (name, text) in [(RETRY_AFTER, Some(after)), (DATE, date)] {
                headers.extend(
                    text.and_then(|text| HeaderValue::from_str(text).ok()).map(|value| (name, value)),
                );
            }
            retry_after(&headers).map(|wait| wait.as_secs())
        };
        let noon = Some("Mon, 30 Nov 2026 12:00:00 GMT");
        assert_eq!(wait("7", None), Some(7));
        assert_eq!(wait("Mon, 30 Nov 2026 12:01:30 GMT", noon), Some(90));
        assert_eq!(wait("Mon, 30 Nov 2026 11:00:00 GMT", noon), Some(0));
        for text in ["soon", "-1", "", "Mon, 99 Nov 2026 12:00:00 GMT", "Mon, é0 Nov 2026 12:00:00 GMT"] {
            assert_eq!(wait(text, noon), None, "{text}");
        }
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
    }
}
