//! Request heads: everything that is the same for every request is laid out once.

use aiperf_config::{EndpointConfig, REDACTED, is_secret_header};

/// What varies from request to request.
#[derive(Clone, Copy, Debug)]
pub struct HeadFields<'a> {
    /// `X-Request-ID`
    pub request_id: &'a [u8; 36],
    /// `X-Correlation-ID` and the affinity headers.
    pub correlation_id: &'a str,
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
    Accept,
}

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
            ("X-Dynamo-Session-ID", affinity.dynamo_session_id),
        ] {
            if on {
                set(name, Value::CorrelationId);
            }
        }
        let mut template = HeadTemplate { parts: Vec::new(), names: Vec::new() };
        template.fixed(format!("POST {path} HTTP/1.1\r\n").as_bytes());
        for (name, value) in headers {
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
            .map(|(name, shown)| {
                let value = match shown {
                    Shown::Text(text) => text.clone(),
                    Shown::RequestId => String::from_utf8_lossy(fields.request_id).into_owned(),
                    Shown::CorrelationId => fields.correlation_id.to_owned(),
                    Shown::Accept => accept(fields.streaming).to_owned(),
                };
                (name.clone(), value)
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
    use aiperf_config::{ConnectionReuse, EndpointKind, Header, Secret, Target};
    use serde_json::Map;

    use super::*;

    fn endpoint(headers: &[(&str, &str)], key: Option<&str>) -> EndpointConfig {
        EndpointConfig {
            kind: EndpointKind::Chat,
            target: Target::Mock("mock://".into()),
            custom_path: None,
            streaming: true,
            api_key: key.map(Secret::new),
            headers: headers
                .iter()
                .map(|(n, v)| Header { name: (*n).into(), value: Secret::new(*v) })
                .collect(),
            extra_inputs: Map::new(),
            use_legacy_max_tokens: false,
            use_server_token_count: false,
            per_chunk_usage: false,
            request_timeout: None,
            connection_reuse: ConnectionReuse::Pooled,
            bind_addresses: Vec::new(),
        }
    }

    const ID: &[u8; 36] = b"5a11937d-0394-4a84-a8b6-e13c1ee4c4fd";

    fn write(endpoint: &EndpointConfig) -> (String, Vec<(String, String)>) {
        let template = HeadTemplate::new("h:1", "/v1/x?a=b", "0.1.0", endpoint, AffinityHeaders::default());
        let fields = HeadFields { request_id: ID, correlation_id: "corr", streaming: true, body_len: 1207 };
        let mut out = Vec::new();
        template.write(fields, &mut out);
        (String::from_utf8(out).unwrap(), template.shown(fields))
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
