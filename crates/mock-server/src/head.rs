//! Request heads.

use crate::fault::Fault;
use crate::settings::percent_decode;

/// A head beyond this is refused with 431.
pub(crate) const LONGEST_HEAD: usize = 64 * 1024;
/// A body beyond this is refused with 413.
pub(crate) const LONGEST_BODY: u64 = 1 << 30;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Chat,
    Completions,
    Embeddings,
    CohereRankings,
    HfTeiRankings,
    NimRankings,
    Models,
    Metrics,
    Stats,
    Reset,
    /// A path that answers to another method.
    NotAllowed(&'static str),
    Unknown,
}

impl Route {
    /// Whether requests to it are the load, not a look at the mock itself.
    pub(crate) fn is_load(self) -> bool {
        !matches!(self, Route::Models | Route::Metrics | Route::Stats | Route::Reset)
    }
}

/// How the end of the body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
}

/// The fault that a request itself names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    For(Fault),
    Unknown(String),
}

/// A parsed head.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) route: Route,
    pub(crate) framing: Framing,
    pub(crate) asked: Asked,
    pub(crate) keep_alive: bool,
    /// HTTP/1.1, which knows chunked answers.
    pub(crate) http11: bool,
    pub(crate) expects_continue: bool,
    /// HEAD: the answer has the head of one, and nothing behind it.
    pub(crate) bodiless: bool,
    pub(crate) request_id: Option<String>,
    pub(crate) correlation_id: Option<String>,
}

/// Why a head is refused: status and message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadHead(pub(crate) u16, pub(crate) &'static str);

/// Parses a head that is complete; ids are kept only when `keep_ids`.
pub(crate) fn parse(bytes: &[u8], keep_ids: bool) -> Result<Head, BadHead> {
    let mut few = [httparse::EMPTY_HEADER; 24];
    let mut request = httparse::Request::new(&mut few);
    match request.parse(bytes) {
        Ok(_) => read(&request, keep_ids),
        Err(httparse::Error::TooManyHeaders) => {
            let mut many = vec![httparse::EMPTY_HEADER; 1024];
            let mut request = httparse::Request::new(&mut many);
            match request.parse(bytes) {
                Ok(_) => read(&request, keep_ids),
                Err(httparse::Error::TooManyHeaders) => Err(BadHead(431, "too many headers")),
                Err(_) => Err(BadHead(400, "the request head is not HTTP/1.1")),
            }
        }
        Err(_) => Err(BadHead(400, "the request head is not HTTP/1.1")),
    }
}

fn read(request: &httparse::Request<'_, '_>, keep_ids: bool) -> Result<Head, BadHead> {
    let target = request.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let http11 = request.version == Some(1);
    let mut head = Head {
        route: route(request.method.unwrap_or(""), origin_form(path)),
        framing: Framing::Length(0),
        asked: Asked::Nothing,
        keep_alive: http11,
        http11,
        expects_continue: false,
        bodiless: request.method == Some("HEAD"),
        request_id: None,
        correlation_id: None,
    };
    let mut named = None;
    let mut chunked = false;
    for header in request.headers.iter() {
        let value = header.value;
        match header.name.len() {
            6 if header.name.eq_ignore_ascii_case("expect") => {
                head.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for word in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    if word.eq_ignore_ascii_case(b"close") {
                        head.keep_alive = false;
                    } else if word.eq_ignore_ascii_case(b"keep-alive") {
                        head.keep_alive = true;
                    }
                }
            }
            12 if header.name.eq_ignore_ascii_case("x-request-id") && keep_ids => {
                head.request_id = Some(lossy(value));
            }
            12 if header.name.eq_ignore_ascii_case("x-mock-fault") => named = Some(lossy(value)),
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                head.framing = Framing::Length(length(value)?);
            }
            16 if header.name.eq_ignore_ascii_case("x-correlation-id") && keep_ids => {
                head.correlation_id = Some(lossy(value));
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                if !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(BadHead(501, "the transfer encoding is not chunked"));
                }
                chunked = true;
            }
            _ => {}
        }
    }
    if chunked {
        head.framing = Framing::Chunked;
    }
    if let Some(name) = named.or_else(|| query_fault(query)) {
        head.asked = match Fault::parse(&name) {
            Some(fault) => Asked::For(fault),
            None => Asked::Unknown(name),
        };
    }
    Ok(head)
}

fn lossy(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn length(value: &[u8]) -> Result<u64, BadHead> {
    let digits = value.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(BadHead(400, "the Content-Length is not a number"));
    }
    std::str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|n| *n <= LONGEST_BODY)
        .ok_or(BadHead(413, "the request body is too large"))
}

/// The path of a target in absolute form, as a proxy sends it; others unchanged.
fn origin_form(path: &str) -> &str {
    match path.split_once("://") {
        Some((_, rest)) if !path.starts_with('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => path,
    }
}

fn route(method: &str, path: &str) -> Route {
    let (allowed, route) = match path {
        "/v1/chat/completions" => ("POST", Route::Chat),
        "/v1/completions" => ("POST", Route::Completions),
        "/v1/embeddings" => ("POST", Route::Embeddings),
        "/v2/rerank" => ("POST", Route::CohereRankings),
        "/rerank" => ("POST", Route::HfTeiRankings),
        "/v1/ranking" => ("POST", Route::NimRankings),
        "/v1/models" => ("GET, HEAD", Route::Models),
        "/metrics" => ("GET, HEAD", Route::Metrics),
        "/mock/stats" => ("GET, HEAD", Route::Stats),
        "/mock/reset" => ("POST", Route::Reset),
        _ => return Route::Unknown,
    };
    if allowed.split(", ").any(|name| name == method) { route } else { Route::NotAllowed(allowed) }
}

fn query_fault(query: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("fault="))?;
    Some(percent_decode(value).unwrap_or_else(|| value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Head {
        parse(text.as_bytes(), true).unwrap()
    }

    #[test]
    fn routes_need_their_method() {
        assert_eq!(head("POST /v1/chat/completions HTTP/1.1\r\n\r\n").route, Route::Chat);
        assert_eq!(head("POST http://h:1/v1/embeddings?x=1 HTTP/1.1\r\n\r\n").route, Route::Embeddings);
        assert_eq!(head("GET /v1/chat/completions HTTP/1.1\r\n\r\n").route, Route::NotAllowed("POST"));
        assert_eq!(head("PUT /metrics HTTP/1.1\r\n\r\n").route, Route::NotAllowed("GET, HEAD"));
        assert_eq!(head("HEAD /v1/models HTTP/1.1\r\n\r\n").route, Route::Models);
        assert_eq!(head("GET http://h HTTP/1.1\r\n\r\n").route, Route::Unknown);
    }

    #[test]
    fn the_header_fault_comes_before_the_query_fault() {
        let text = "POST /v1/completions?a=1&fault=one HTTP/1.1\r\n";
        assert_eq!(head(&format!("{text}\r\n")).asked, Asked::For(Fault::One));
        let both = head(&format!("{text}x-mock-fault: http503\r\n\r\n"));
        assert_eq!(both.asked, Asked::For(Fault::Http(503)));
        let unknown = head("POST /v1/completions?fault=n%6fpe HTTP/1.1\r\n\r\n");
        assert_eq!(unknown.asked, Asked::Unknown("nope".to_owned()));
    }

    #[test]
    fn keep_alive_follows_version_and_connection_header() {
        for (version, connection, keeps) in [
            ("1.1", "", true),
            ("1.1", "Connection: close\r\n", false),
            ("1.1", "connection: Upgrade, Close\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
        ] {
            let head = head(&format!("GET / HTTP/{version}\r\n{connection}\r\n"));
            assert_eq!((head.keep_alive, head.http11), (keeps, version == "1.1"));
        }
    }

    #[test]
    fn framing_is_a_length_or_chunked() {
        assert_eq!(head("GET / HTTP/1.1\r\nContent-Length: 12\r\n\r\n").framing, Framing::Length(12));
        let both = head("GET / HTTP/1.1\r\nContent-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(both.framing, Framing::Chunked);
        for (bad, status) in [
            ("Content-Length: -1", 400),
            ("Content-Length: 9999999999999", 413),
            ("Transfer-Encoding: gzip", 501),
        ] {
            assert_eq!(
                parse(format!("GET / HTTP/1.1\r\n{bad}\r\n\r\n").as_bytes(), false).unwrap_err().0,
                status
            );
        }
        assert_eq!(parse(b"garbage\r\n\r\n", false).unwrap_err().0, 400);
    }

    #[test]
    fn many_headers_are_read_and_too_many_refused() {
        let many = |n: usize| format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(n));
        assert_eq!(head(&many(500)).route, Route::Metrics);
        assert_eq!(parse(many(2_000).as_bytes(), false).unwrap_err().0, 431);
    }
}
