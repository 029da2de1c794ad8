//! What came of a run whose requests all failed, and what helps against the failure that came up most often.

use aiperf_config::{EndpointConfig, LoadMode, PhaseConfig, RunConfig, Target, is_secret_header};
use aiperf_endpoint::standard_phrase;
use aiperf_metrics::ErrorGroup;
use aiperf_types::RequestError;

use crate::proxy;

/// What of the command line decides which way out there is.
pub(crate) struct Asked<'a> {
    pub(crate) phase: &'a PhaseConfig,
    pub(crate) endpoint: &'a EndpointConfig,
    /// The variable that names a proxy which reads the requests and may answer for the server.
    pub(crate) proxy: Option<String>,
}

impl<'a> Asked<'a> {
    pub(crate) fn of(config: &'a RunConfig) -> Asked<'a> {
        let proxy = match &config.endpoint.target {
            Target::Server(url)
                if config.tuning.trust_environment_proxies && url.expose().scheme() == "http" =>
            {
                proxy::for_target(url.expose(), |name| std::env::var(name).ok()).ok().flatten()
            }
            _ => None,
        };
        Asked {
            phase: config.profiling(),
            endpoint: &config.endpoint,
            proxy: proxy.map(|named| named.variable),
        }
    }

    /// The flag that makes the load less, where there is more than one request at a time.
    fn less(&self) -> &'static str {
        match (&self.phase.mode, self.phase.concurrency) {
            (LoadMode::Rate { .. }, Some(_)) => ", or lower --request-rate or --concurrency",
            (LoadMode::Rate { .. }, None) => ", or lower --request-rate",
            (LoadMode::FixedSchedule(_), None) => ", or bound the load with --concurrency",
            (LoadMode::Burst | LoadMode::FixedSchedule(_), Some(0..=1) | None) => "",
            (LoadMode::Burst | LoadMode::FixedSchedule(_), Some(_)) => ", or lower --concurrency",
        }
    }

    /// What is said of requests that are not let in.
    fn not_let_in(&self) -> String {
        let who = match &self.proxy {
            Some(variable) => format!("the server, or the proxy of {variable},"),
            None => "the server".to_owned(),
        };
        if self.endpoint.api_key.is_some() {
            format!("{who} refuses the key of --api-key: check it, and what it may be used for")
        } else if self.endpoint.headers.iter().any(|header| is_secret_header(&header.name)) {
            format!("{who} refuses the credentials of --header: check them, and what they may be used for")
        } else {
            format!("{who} asks for credentials: give them with --api-key or --header")
        }
    }
}

/// What came up most often, and what helps against it.
pub(super) fn failures(groups: &[ErrorGroup], asked: &Asked<'_>) -> Option<String> {
    let most = groups.iter().max_by_key(|group| group.count)?;
    if let Some(help) = what_helps(&most.error, asked) {
        return Some(help);
    }
    let all: u64 = groups.iter().map(|group| group.count).sum();
    let of_them = match (most.count, all) {
        (1, 1) => "the only one".to_owned(),
        (count, all) if count == all => format!("all {all}"),
        (count, all) => format!("{count} of {all}"),
    };
    let error = &most.error;
    let code = error.code.map(|code| format!("{code} ")).unwrap_or_default();
    let why = match error.code {
        Some(500..) if is_status(error) => ": the log of the server may say why".to_owned(),
        Some(400..=499) if is_status(error) => String::new(),
        _ if error.message.is_empty() => String::new(),
        // What the client says of a failure, or the server within an answer, is one line mostly.
        _ => format!(": {}", shortened(&error.message)),
    };
    let inner = error.cause.as_ref().filter(|_| error.kind == "SSEResponseError");
    let inner = inner.map(|cause| format!(" ({cause})")).unwrap_or_default();
    Some(format!("{of_them} failed with {code}{}{why}{inner}", error.kind))
}

/// Whether a failure is that of a status line, whose phrase has several words mostly and need not be the standard one;
/// errors within an answer have the name of a class.
fn is_status(error: &RequestError) -> bool {
    let standard = error.code.and_then(|code| u16::try_from(code).ok()).and_then(standard_phrase);
    error.retry_after.is_some() || error.kind.contains(' ') || standard == Some(error.kind.as_str())
}

/// Characters of a message that the last line repeats.
const LAST_WORDS: usize = 200;

/// The beginning of a message; all of it stands above, and in the table.
fn shortened(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    match line.char_indices().nth(LAST_WORDS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < message.trim_end().len() => format!("{line}…"),
        None => line.to_owned(),
    }
}

const PROXY_CREDENTIALS: &str = "the proxy, and not the server, asks for credentials: put USER:PASSWORD@ before its host in \
     HTTP_PROXY or HTTPS_PROXY";

fn what_helps(error: &RequestError, asked: &Asked<'_>) -> Option<String> {
    let after =
        || error.retry_after.as_ref().map(|after| format!(" (Retry-After: {after})")).unwrap_or_default();
    Some(match (error.code, error.kind.as_str()) {
        (Some(401 | 403), _) => asked.not_let_in(),
        (Some(429), _) => format!("the server turns requests away{}: wait{}", after(), asked.less()),
        (Some(503), _) if is_status(error) => {
            format!("the server is not ready, or has too much to do{}: wait{}", after(), asked.less())
        }
        _ => advice(error)?.to_owned(),
    })
}

fn tunnel_wants_credentials(message: &str) -> bool {
    ["401", "407"].iter().any(|code| message.contains(&format!("refused the tunnel: HTTP/1.1 {code}")))
}

/// What helps against failures that are all alike.
fn advice(error: &RequestError) -> Option<&'static str> {
    Some(match (error.code, error.kind.as_str()) {
        (Some(404), _) => {
            "the server does not know the path or the model: check --url, --endpoint-type, --endpoint and --model"
        }
        (Some(400 | 422), _) => {
            "the server does not take the requests, and says why above: --endpoint-type, --model, --osl and --extra-inputs \
             shape them"
        }
        (Some(407), _) => PROXY_CREDENTIALS,
        (_, "ClientConnectorError") if tunnel_wants_credentials(&error.message) => PROXY_CREDENTIALS,
        (_, "ClientConnectorError") if error.message.contains("to proxy ") => {
            "the proxy is not to be had: correct that variable, or unset AIPERF_HTTP_TRUST_ENV to go without"
        }
        (_, "ClientConnectorError") if error.message.contains("refused") => {
            "no server listens there: start it, or name its host and port with --url"
        }
        (_, "ClientConnectorError") => {
            "nothing answers at that address: check --url, the network, and firewalls on the way"
        }
        (_, "ClientConnectorCertificateError") => {
            "the certificate of the server is not trusted: name it, or its authority, in SSL_CERT_FILE, or set \
             AIPERF_HTTP_SSL_VERIFY=0 to accept any"
        }
        (_, "ClientConnectorSSLError") => {
            "TLS cannot be agreed on: check whether --url begins with http:// or https://, and its port"
        }
        (_, "ServerDisconnectedError") => {
            "the server closes connections without an answer: check whether --url names its HTTP port, and http:// or \
             https://"
        }
        (_, "ClientPayloadError") if error.message.contains("not HTTP/1.1") => {
            "what listens there does not answer in HTTP: begin --url with https:// if it speaks TLS, or name the port of the \
             server"
        }
        (_, "TimeoutError") if error.message.contains("TLS") => {
            "what listens there did not answer in TLS: begin --url with http:// if it speaks none, or name the port of the \
             server"
        }
        (_, "TimeoutError") => "raise --request-timeout-seconds, or lower the load",
        (_, "InvalidInferenceResultError") if error.message.ends_with("body is empty") => {
            "the server answers without a body: check --url and --endpoint; its log may say why"
        }
        (_, "InvalidInferenceResultError") => {
            "answers have nothing that --endpoint-type reads: check it, and --endpoint"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use aiperf_config::{Arrival, Header, Secret};

    use super::*;
    use crate::notes::no_success;
    use crate::notes::tests::{asked, endpoint, phase};

    /// What is said where all of three requests failed so.
    fn said(error: RequestError, asked: &Asked<'_>) -> String {
        failures(&[ErrorGroup { error, count: 3 }], asked).unwrap()
    }

    /// <https://github.com/triton-inference-server/perf_analyzer/issues/385>: "no results" says neither why nor what to do.
    #[test]
    fn perf_analyzer_385_a_run_without_a_success_says_what_helps_against_most_of_its_failures() {
        let group = |code: Option<i64>, kind: &str, count| ErrorGroup {
            error: RequestError::new(code, kind, "Connection refused"),
            count,
        };
        let (phase, endpoint) = (phase(), endpoint());
        let asked = asked(&phase, &endpoint);
        let why = |groups: &[ErrorGroup]| failures(groups, &asked).unwrap_or_default();
        let refused = group(None, "ClientConnectorError", 3);
        assert!(why(&[group(Some(401), "Unauthorized", 2), refused]).contains("--url"));
        let text = why(&[group(Some(401), "Unauthorized", 2), group(Some(404), "Not Found", 1)]);
        assert!(text.ends_with("give them with --api-key or --header"), "{text}");
        assert_eq!(failures(&[], &asked), None);
        let failed = group(Some(500), "Internal Server Error", 10);
        let named = "failed with 500 Internal Server Error: the log of the server may say why";
        assert_eq!(why(std::slice::from_ref(&failed)), format!("all 10 {named}"));
        assert_eq!(why(&[failed, group(None, "ClientOSError", 2)]), format!("10 of 12 {named}"));
        assert_eq!(
            why(&[group(None, "ClientOSError", 1)]),
            "the only one failed with ClientOSError: Connection refused"
        );
        assert_eq!(no_success(None, &asked), "no request succeeded: the run has failed (exit code 1)");
    }

    #[test]
    fn failures_of_connections_end_with_the_next_step() {
        for (kind, message, part) in [
            ("ClientConnectorError", "timed out", "check --url"),
            ("ClientConnectorCertificateError", "expired", "AIPERF_HTTP_SSL_VERIFY=0"),
            ("ClientConnectorSSLError", "InvalidContentType", "https://"),
            ("ServerDisconnectedError", "Server disconnected", "HTTP port"),
            ("ClientPayloadError", "the answer is not HTTP/1.1", "begin --url with https://"),
            ("TimeoutError", "The TLS handshake with h:1 did not end", "begin --url with http://"),
            ("TimeoutError", "No complete answer", "--request-timeout-seconds"),
        ] {
            let help = advice(&RequestError::new(None, kind, message)).unwrap_or_default();
            assert!(help.contains(part), "{kind}: {help}");
        }
    }

    #[test]
    fn who_is_not_let_in_with_a_key_is_not_told_to_give_one() {
        let (phase, mut endpoint) = (phase(), endpoint());
        let refused = || RequestError::new(401, "Unauthorized", "");
        endpoint.headers.push(Header { name: "X-Api-Key".into(), value: Secret::new("k") });
        let text = said(refused(), &asked(&phase, &endpoint));
        assert!(text.starts_with("the server refuses the credentials of --header"), "{text}");
        endpoint.api_key = Some(Secret::new("k"));
        let text = said(refused(), &asked(&phase, &endpoint));
        assert!(text.starts_with("the server refuses the key of --api-key: check it"), "{text}");
        let through = Asked { proxy: Some("HTTP_PROXY".into()), ..asked(&phase, &endpoint) };
        let text = said(refused(), &through);
        assert!(text.starts_with("the server, or the proxy of HTTP_PROXY, refuses the key"), "{text}");
    }

    #[test]
    fn who_is_turned_away_is_told_when_to_come_back_and_only_of_load_that_can_be_less() {
        let (mut phase, endpoint) = (phase(), endpoint());
        let busy = |code, kind: &str, after: Option<&str>| RequestError {
            retry_after: after.map(str::to_owned),
            ..RequestError::new(code, kind, "model loading")
        };
        let text = said(busy(429, "Too Many Requests", Some("7")), &asked(&phase, &endpoint));
        assert_eq!(text, "the server turns requests away (Retry-After: 7): wait, or lower --concurrency");
        phase.concurrency = Some(1);
        // The latter is what nginx says.
        for phrase in ["Service Unavailable", "Service Temporarily Unavailable"] {
            let text = said(busy(503, phrase, None), &asked(&phase, &endpoint));
            assert_eq!(text, "the server is not ready, or has too much to do: wait");
        }
        phase.mode = LoadMode::Rate { rate: 1.0, arrival: Arrival::Constant };
        phase.concurrency = None;
        let text = said(busy(503, "Busy", Some("1")), &asked(&phase, &endpoint));
        assert!(text.ends_with("(Retry-After: 1): wait, or lower --request-rate"), "{text}");
        // An error within an answer says itself what it is.
        let text = said(busy(503, "StreamError", None), &asked(&phase, &endpoint));
        assert_eq!(text, "all 3 failed with 503 StreamError: model loading");
    }

    #[test]
    fn the_last_line_says_what_an_answer_said_and_not_all_of_it() {
        let (phase, endpoint) = (phase(), endpoint());
        let asked = asked(&phase, &endpoint);
        let found =
            RequestError::new(302, "Found", "the server redirects to http://h/; give that address as --url");
        assert!(said(found, &asked).ends_with("redirects to http://h/; give that address as --url"));
        let long = RequestError::new(None, "MalformedResponseError", "x".repeat(4096));
        let text = said(long, &asked);
        assert!(text.ends_with("xxx…") && text.chars().count() < 260, "{text}");
        let mut event = RequestError::new(502, "SSEResponseError", "queue full\nand more");
        event.cause = Some("code 429 in the event".into());
        let text = said(event, &asked);
        assert_eq!(text, "all 3 failed with 502 SSEResponseError: queue full… (code 429 in the event)");
        let empty = RequestError::new(None, "InvalidInferenceResultError", "no content: its body is empty");
        assert!(said(empty, &asked).starts_with("the server answers without a body"));
    }
}
