//! Failures that a status line tells.

use aiperf_types::RequestError;

/// The error of an answer outside 200–299. `reason` is the reason phrase of the status line (the standard one
/// is taken when it is empty), `body` what was read of the body, `retry_after` the header as sent.
pub fn http_error(status: u16, reason: &str, body: &[u8], retry_after: Option<&str>) -> RequestError {
    let mut error =
        RequestError::new(i64::from(status), phrase(status, reason), String::from_utf8_lossy(body));
    error.retry_after = retry_after.map(str::to_owned);
    error
}

/// The error of a redirect: a benchmark follows none, because the detour would be measured as the server's time.
pub fn redirect_error(status: u16, reason: &str, location: Option<&str>) -> RequestError {
    let target = location.map_or_else(|| "an unnamed target".to_owned(), aiperf_config::redact_text);
    let message = format!("the server redirects to {target}; give that address as --url");
    RequestError::new(i64::from(status), phrase(status, reason), message)
}

/// The error of a switch to another protocol, which no request of a benchmark asks for. `reason` is the reason phrase.
pub fn switch_error(reason: &str) -> RequestError {
    let message = "the server switches to another protocol, which no request asked for: --url must name a server of HTTP/1.1";
    RequestError::new(101, phrase(101, reason), message)
}

fn phrase(status: u16, reason: &str) -> String {
    let reason = reason.trim();
    if !reason.is_empty() {
        return reason.to_owned();
    }
    standard_phrase(status).map_or_else(|| format!("HTTP {status}"), str::to_owned)
}

/// The phrase that RFC 9110 (and 6585, 7725, 8470) registers for a status.
pub fn standard_phrase(status: u16) -> Option<&'static str> {
    Some(match status {
        101 => "Switching Protocols",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_status_keeps_phrase_body_and_retry_after() {
        // https://github.com/sgl-project/genai-bench/issues/155
        let error = http_error(429, "Too Many Requests", b"slow down", Some("3"));
        assert_eq!(
            (error.code, error.kind.as_str(), error.message.as_str()),
            (Some(429), "Too Many Requests", "slow down")
        );
        assert_eq!(error.retry_after.as_deref(), Some("3"));
    }

    #[test]
    fn a_missing_phrase_is_the_standard_one() {
        assert_eq!(http_error(503, "", b"", None).kind, "Service Unavailable");
        assert_eq!(http_error(599, " ", b"", None).kind, "HTTP 599");
        assert_eq!(http_error(500, "Oops", b"\xff", None).message, "\u{fffd}");
    }

    #[test]
    fn long_bodies_are_cut_to_4096_characters() {
        let error = http_error(500, "", "ä".repeat(9000).as_bytes(), None);
        assert_eq!(error.message.chars().count(), 4096);
    }

    #[test]
    fn a_redirect_names_its_target_without_secrets() {
        let error = redirect_error(307, "", Some("https://user:pw@other/v1"));
        assert_eq!(error.kind, "Temporary Redirect");
        assert!(error.message.contains("https://<redacted>@other/v1"), "{}", error.message);
    }
}
