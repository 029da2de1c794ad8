//! Request heads: everything that is the same for every request is laid out once.

use aiperf_config::{EndpointConfig, REDACTED, is_secret_header};

/// What varies from request to request.
#[derive(Clone, Copy, Debug)]
pub struct HeadFields<'a> {
    /// `X-Request-ID`
    pub request_id: &'a [u8; 36],
    /// `X-Correlation-ID` and the affinity headers.
    pub correlation_id: &'a str,
    /// `X-Dynamo-Session-ID`, in the place of any other value of it.
    pub source_session: Option<&'a str>,
    /// Whether the body asks for a stream.
    pub streaming: bool,
    /// Bytes of the body.
    pub body_len: usize,
}

#[derive(Clone, Debug)]
enum Part {
    Fixed(Vec<u8>),
    RequestId,
    CorrelationId,
    /// The line of a header that carries the source session, or else this.
    SourceSession {
        name: String,
        otherwise: Otherwise,
    },
    Accept,
    Length,
}

/// The head of every request of a run.
#[derive(Clone, Debug)]
pub struct HeadTemplate {
    parts: Vec<Part>,
    /// Header names and values for exports; `None` where a part varies.
    names: Vec<(String, Shown)>,
}

#[derive(Clone, Debug)]
enum Shown {
    Text(String),
    RequestId,
    CorrelationId,
    /// A secret, where there is one.
    SourceSession {
        otherwise: bool,
    },
    Accept,
}

/// What a header holds when no source session is known.
#[derive(Clone, Debug)]
enum Otherwise {
    /// There is no such header.
    Nothing,
    Text(String),
    CorrelationId,
}

/// Carries the source session.
const SOURCE_SESSION: &str = "X-Dynamo-Session-ID";

/// Which affinity headers carry the correlation id.
#[derive(Clone, Copy, Debug)]
pub struct AffinityHeaders {
    /// `X-Session-Affinity`
    pub session_affinity: bool,
    /// `X-Session-ID`
    pub session_id: bool,
    /// `X-SMG-Routing-Key`
    pub smg_routing_key: bool,
    /// `X-Dynamo-Session-ID`
    pub dynamo_session_id: bool,
}

impl Default for AffinityHeaders {
    fn default() -> Self {
        AffinityHeaders {
            session_affinity: true,
            session_id: false,
            smg_routing_key: false,
            dynamo_session_id: false,
        }
    }
}

enum Value {
    Text(String),
    RequestId,
    CorrelationId,
    SourceSession(Otherwise),
    Accept,
}

impl HeadTemplate {
    /// The head of `POST path` to `host`.
    pub fn new(
        host: &str,
        path: &str,
        version: &str,
        endpoint: &EndpointConfig,
        affinity: AffinityHeaders,
    ) -> Self {
        HeadTemplate::of(&format!("POST {path}"), host, version, endpoint, affinity)
    }

    /// The head of one `GET path` to `host` that is no part of the load, with the headers and the key of the user.
    pub fn question(host: &str, path: &str, version: &str, endpoint: &EndpointConfig) -> Vec<u8> {
        let affinity = AffinityHeaders { session_affinity: false, ..AffinityHeaders::default() };
        let template = HeadTemplate::of(&format!("GET {path}"), host, version, endpoint, affinity);
        let mut head = Vec::new();
        let fields = HeadFields {
            request_id: b"00000000-0000-0000-0000-000000000000",
            correlation_id: "question",
            source_session: None,
            streaming: false,
            body_len: 0,
        };
        template.write(fields, &mut head);
        head
    }

    fn of(
        request: &str,
        host: &str,
        version: &str,
        endpoint: &EndpointConfig,
        affinity: AffinityHeaders,
    ) -> Self {
        let mut headers: Vec<(String, Value)> = Vec::new();
        // Later wins, names without regard to case; the place of the first stays.
        let mut set =
            |name: &str, value: Value| match headers.iter_mut().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
                Some(entry) => entry.1 = value,
                None => headers.push((name.to_owned(), value)),
            };
        set("Host", Value::Text(host.to_owned()));
        set("User-Agent", Value::Text(format!("aiperf/{version}")));
        set("X-Request-ID", Value::RequestId);
        set("X-Correlation-ID", Value::CorrelationId);
        for header in &endpoint.headers {
            set(&header.name, Value::Text(header.value.expose().to_owned()));
        }
        if let Some(key) = &endpoint.api_key {
            set("Authorization", Value::Text(format!("Bearer {}", key.expose())));
        }
        set("Accept", Value::Accept);
        set("Content-Type", Value::Text("application/json".to_owned()));
        for (name, on) in [
            ("X-Session-Affinity", affinity.session_affinity),
            ("X-Session-ID", affinity.session_id),
            ("X-SMG-Routing-Key", affinity.smg_routing_key),
            (SOURCE_SESSION, affinity.dynamo_session_id),
        ] {
            if on {
                set(name, Value::CorrelationId);
            }
        }
        match headers.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(SOURCE_SESSION)) {
            Some((_, value)) => {
                let otherwise = match value {
                    Value::Text(text) => Otherwise::Text(std::mem::take(text)),
                    _ => Otherwise::CorrelationId,
                };
                *value = Value::SourceSession(otherwise);
            }
            None => headers.push((SOURCE_SESSION.to_owned(), Value::SourceSession(Otherwise::Nothing))),
        }
        let mut template = HeadTemplate { parts: Vec::new(), names: Vec::new() };
        template.fixed(format!("{request} HTTP/1.1\r\n").as_bytes());
        for (name, value) in headers {
            if let Value::SourceSession(otherwise) = value {
                let there = !matches!(otherwise, Otherwise::Nothing);
                template.parts.push(Part::SourceSession { name: name.clone(), otherwise });
                template.names.push((name, Shown::SourceSession { otherwise: there }));
                continue;
            }
            template.fixed(name.as_bytes());
            template.fixed(b": ");
            let shown = match value {
                Value::Text(text) => {
                    template.fixed(text.as_bytes());
                    Shown::Text(if is_secret_header(&name) { REDACTED.to_owned() } else { text })
                }
                Value::RequestId => {
                    template.parts.push(Part::RequestId);
                    Shown::RequestId
                }
                Value::CorrelationId => {
                    template.parts.push(Part::CorrelationId);
                    if is_secret_header(&name) {
                        Shown::Text(REDACTED.to_owned())
                    } else {
                        Shown::CorrelationId
                    }
                }
                Value::Accept => {
                    template.parts.push(Part::Accept);
                    Shown::Accept
                }
                // Written above, with its name.
                Value::SourceSession(_) => continue,
            };
            template.fixed(b"\r\n");
            template.names.push((name, shown));
        }
        template.fixed(b"Content-Length: ");
        template.parts.push(Part::Length);
        template.fixed(b"\r\n\r\n");
        template
    }

    fn fixed(&mut self, bytes: &[u8]) {
        if let Some(Part::Fixed(last)) = self.parts.last_mut() {
            last.extend_from_slice(bytes);
        } else {
            self.parts.push(Part::Fixed(bytes.to_vec()));
        }
    }

    /// Writes the head of one request into `out`, which is cleared first.
    pub fn write(&self, fields: HeadFields<'_>, out: &mut Vec<u8>) {
        out.clear();
        for part in &self.parts {
            match part {
                Part::Fixed(bytes) => out.extend_from_slice(bytes),
                Part::RequestId => out.extend_from_slice(fields.request_id),
                Part::CorrelationId => out.extend_from_slice(fields.correlation_id.as_bytes()),
                Part::SourceSession { name, otherwise } => {
                    let value = match (fields.source_session, otherwise) {
                        (Some(session), _) => session,
                        (None, Otherwise::Text(text)) => text,
                        (None, Otherwise::CorrelationId) => fields.correlation_id,
                        (None, Otherwise::Nothing) => continue,
                    };
                    for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                        out.extend_from_slice(part);
                    }
                }
                Part::Accept => out.extend_from_slice(accept(fields.streaming).as_bytes()),
                Part::Length => write_decimal(fields.body_len, out),
            }
        }
    }

    /// The headers of one request as exports show them: secrets redacted.
    pub fn shown(&self, fields: HeadFields<'_>) -> Vec<(String, String)> {
        let mut headers: Vec<_> = self
            .names
            .iter()
            .filter_map(|(name, shown)| {
                let value = match shown {
                    Shown::Text(text) => text.clone(),
                    Shown::RequestId => String::from_utf8_lossy(fields.request_id).into_owned(),
                    Shown::CorrelationId => fields.correlation_id.to_owned(),
                    Shown::SourceSession { otherwise: false } if fields.source_session.is_none() => {
                        return None;
                    }
                    Shown::SourceSession { .. } => REDACTED.to_owned(),
                    Shown::Accept => accept(fields.streaming).to_owned(),
                };
                Some((name.clone(), value))
            })
            .collect();
        headers.push(("Content-Length".to_owned(), fields.body_len.to_string()));
        headers
    }
}

fn accept(streaming: bool) -> &'static str {
    if streaming { "text/event-stream" } else { "application/json" }
}

fn write_decimal(mut n: usize, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use aiperf_config::{EndpointKind, Header, Secret, Target};

    use super::*;

    fn endpoint(headers: &[(&str, &str)], key: Option<&str>) -> EndpointConfig {
        EndpointConfig {
            streaming: true,
            api_key: key.map(Secret::new),
            headers: headers
                .iter()
                .map(|(n, v)| Header { name: (*n).into(), value: Secret::new(*v) })
                .collect(),
            ..EndpointConfig::new(EndpointKind::Chat, Target::Mock("mock://".into()))
        }
    }

    const ID: &[u8; 36] = b"5a11937d-0394-4a84-a8b6-e13c1ee4c4fd";

    fn fields(source_session: Option<&str>) -> HeadFields<'_> {
        HeadFields { request_id: ID, correlation_id: "corr", source_session, streaming: true, body_len: 1207 }
    }

    fn write(endpoint: &EndpointConfig) -> (String, Vec<(String, String)>) {
        let template = HeadTemplate::new("h:1", "/v1/x?a=b", "0.1.0", endpoint, AffinityHeaders::default());
        let fields = fields(None);
        let mut out = Vec::new();
        template.write(fields, &mut out);
        (String::from_utf8(out).unwrap(), template.shown(fields))
    }

    #[test]
    fn a_question_beside_the_load_has_the_key_and_the_headers_of_the_user() {
        let endpoint = endpoint(&[("X-Team", "a")], Some("k"));
        let head = HeadTemplate::question("h:1", "/v1/models", "0.1.0", &endpoint);
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("GET /v1/models HTTP/1.1\r\nHost: h:1\r\n"), "{head}");
        assert!(
            head.contains("\r\nX-Team: a\r\n") && head.contains("\r\nAuthorization: Bearer k\r\n"),
            "{head}"
        );
        assert!(head.contains("\r\nAccept: application/json\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(!head.contains("X-Session-Affinity"), "{head}");
    }

    #[test]
    fn the_head_has_the_headers_in_order() {
        let (head, _) = write(&endpoint(&[], None));
        assert_eq!(
            head,
            "POST /v1/x?a=b HTTP/1.1\r\nHost: h:1\r\nUser-Agent: aiperf/0.1.0\r\n\
             X-Request-ID: 5a11937d-0394-4a84-a8b6-e13c1ee4c4fd\r\nX-Correlation-ID: corr\r\n\
             Accept: text/event-stream\r\nContent-Type: application/json\r\nX-Session-Affinity: corr\r\n\
             Content-Length: 1207\r\n\r\n"
        );
    }

    #[test]
    fn later_headers_win_without_regard_to_case() {
        let (head, _) = write(&endpoint(
            &[
                ("user-agent", "mine"),
                ("authorization", "Basic x"),
                ("accept", "text/plain"),
                ("x-session-affinity", "s"),
            ],
            Some("sk-1"),
        ));
        assert!(head.contains("User-Agent: mine\r\n"));
        assert!(head.contains("authorization: Bearer sk-1\r\n"));
        assert!(head.contains("accept: text/event-stream\r\n"));
        assert!(head.contains("x-session-affinity: corr\r\n"));
        assert_eq!(head.matches("ccept:").count(), 1);
    }

    #[test]
    fn the_source_session_is_sent_in_the_place_of_any_other_value_of_its_header() {
        let of = |headers: &[(&str, &str)], affinity: bool, session: Option<&str>| {
            let affinity = AffinityHeaders { dynamo_session_id: affinity, ..AffinityHeaders::default() };
            let template = HeadTemplate::new("h:1", "/", "0.1.0", &endpoint(headers, None), affinity);
            let mut out = Vec::new();
            template.write(fields(session), &mut out);
            let head = String::from_utf8(out).unwrap();
            let lines: Vec<_> =
                head.lines().filter(|line| line.to_ascii_lowercase().starts_with("x-dynamo")).collect();
            assert_eq!(template.shown(fields(session)).len() + 2, head.lines().count(), "{head}");
            lines.join("|")
        };
        assert_eq!(of(&[], false, None), "");
        assert_eq!(of(&[], false, Some("s1")), "X-Dynamo-Session-ID: s1");
        assert_eq!(of(&[], true, None), "X-Dynamo-Session-ID: corr");
        assert_eq!(of(&[], true, Some("s1")), "X-Dynamo-Session-ID: s1");
        assert_eq!(of(&[("x-dynamo-session-id", "mine")], false, None), "x-dynamo-session-id: mine");
        assert_eq!(of(&[("x-dynamo-session-id", "mine")], true, Some("s1")), "x-dynamo-session-id: s1");
    }

    #[test]
    fn exports_see_no_secret() {
        let (head, shown) =
            write(&endpoint(&[("X-API-Key", "canary-1"), ("Cookie", "canary-2")], Some("canary-3")));
        assert_eq!(head.matches("canary").count(), 3);
        let text = format!("{shown:?}");
        assert!(!text.contains("canary"), "{text}");
        assert!(text.contains("(\"X-Session-Affinity\", \"<redacted>\")"));
        assert!(text.contains("(\"Authorization\", \"<redacted>\")"));
    }
}
