//! The bytes of answers: chunks, full answers, errors and response heads.

use std::io::Write as _;

/// The instant every answer claims to be created at; a fixed one keeps answers equal between runs.
const CREATED: &str = "1700000000";
/// What the last chunk reports with `spec-decode`, by parity of the request's number.
const SPECULATIVE: [&str; 2] = [
    "\"metrics\":{\"speculative_decoding\":{\"num_spec_tokens\":3,\"acceptance_histogram\":[1,1,1,2],\
     \"num_spec_steps\":5,\"num_draft_tokens\":15,\"num_accepted_draft_tokens\":9,\
     \"mean_acceptance_length\":2.8,\"draft_acceptance_rate\":0.6}}",
    "\"metrics\":{\"speculative_decoding\":{\"num_spec_tokens\":3,\"acceptance_histogram\":[2,2,1,0],\
     \"num_spec_steps\":5,\"num_draft_tokens\":15,\"num_accepted_draft_tokens\":4,\
     \"mean_acceptance_length\":1.8,\"draft_acceptance_rate\":0.26666666666666666}}",
];
/// The arguments of the tool call of fault `tools`, as its two parts spell them inside JSON strings.
pub(crate) const TOOL_ARGUMENTS: [&str; 2] = [r#"{\"q\":"#, r#"\"hello\"}"#];
/// A model name for requests that have none.
pub(crate) const MODEL: &str = "mock-model";

const HELLOS: &[u8; 6 * 1024] = &{
    let mut text = [0; 6 * 1024];
    let mut at = 0;
    while at < text.len() {
        text[at] = b" hello"[at % 6];
        at += 1;
    }
    text
};

/// What kind of answer an endpoint gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Chat,
    Completions,
    Embeddings,
    /// `results` with a `relevance_score`, as Cohere has it.
    CohereRankings,
    /// A bare list with a `score`, as Text Embeddings Inference has it.
    HfTeiRankings,
    /// `rankings` with a `logit`, as NIM has it.
    NimRankings,
}

impl Kind {
    /// Whether answers are made of tokens; others are one object and come after the time to the first token.
    pub(crate) fn produces_tokens(self) -> bool {
        matches!(self, Kind::Chat | Kind::Completions)
    }
}

/// Token counts as an answer reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: u64,
    pub(crate) completion: u64,
    pub(crate) reasoning: u64,
    pub(crate) cached: Option<u64>,
}

/// Appends `value` in decimal.
pub(crate) fn number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends the text of `tokens` tokens: `hello` for the first of a text, ` hello` for others.
pub(crate) fn words(out: &mut Vec<u8>, first: bool, tokens: u64) {
    if tokens == 0 {
        return;
    }
    let skip = usize::from(first);
    let mut left = tokens as usize * 6 - skip;
    let piece = left.min(HELLOS.len() - skip);
    out.extend_from_slice(&HELLOS[skip..skip + piece]);
    left -= piece;
    while left > 0 {
        let piece = left.min(HELLOS.len());
        out.extend_from_slice(&HELLOS[..piece]);
        left -= piece;
    }
}

/// Appends `{"id":…,"choices":[`: what all chunks of one answer, and its full form, begin with.
pub(crate) fn opening(out: &mut Vec<u8>, kind: Kind, streamed: bool, index: u64, model: &str) {
    out.extend_from_slice(if kind == Kind::Chat { b"{\"id\":\"chatcmpl-" } else { b"{\"id\":\"cmpl-" });
    for power in [1_000, 100, 10] {
        if index < power {
            out.push(b'0');
        }
    }
    number(out, index);
    out.extend_from_slice(match (kind, streamed) {
        (Kind::Chat, true) => b"\",\"object\":\"chat.completion.chunk\",\"created\":",
        (Kind::Chat, false) => b"\",\"object\":\"chat.completion\",\"created\":",
        _ => b"\",\"object\":\"text_completion\",\"created\":",
    });
    out.extend_from_slice(CREATED.as_bytes());
    out.extend_from_slice(b",\"model\":\"");
    out.extend_from_slice(model.as_bytes());
    out.extend_from_slice(b"\",\"choices\":[");
}

/// Appends `"usage":{…}`.
pub(crate) fn usage(out: &mut Vec<u8>, usage: Usage) {
    out.extend_from_slice(b"\"usage\":{\"prompt_tokens\":");
    number(out, usage.prompt);
    out.extend_from_slice(b",\"completion_tokens\":");
    number(out, usage.completion);
    out.extend_from_slice(b",\"total_tokens\":");
    number(out, usage.prompt + usage.completion);
    if usage.reasoning > 0 {
        out.extend_from_slice(b",\"completion_tokens_details\":{\"reasoning_tokens\":");
        number(out, usage.reasoning);
        out.push(b'}');
    }
    cached(out, usage.cached);
    out.push(b'}');
}

/// Appends `,"metrics":{…}`.
pub(crate) fn speculative(out: &mut Vec<u8>, index: u64) {
    out.push(b',');
    out.extend_from_slice(SPECULATIVE[(index % 2) as usize].as_bytes());
}

fn cached(out: &mut Vec<u8>, cached: Option<u64>) {
    if let Some(tokens) = cached {
        out.extend_from_slice(b",\"prompt_tokens_details\":{\"cached_tokens\":");
        number(out, tokens);
        out.push(b'}');
    }
}

/// Appends a full embeddings answer with `items` vectors, each the JSON value `vector`.
pub(crate) fn embeddings(
    out: &mut Vec<u8>,
    model: &str,
    items: u64,
    vector: &str,
    prompt: Option<u64>,
    cached_tokens: Option<u64>,
) {
    out.extend_from_slice(b"{\"object\":\"list\",\"model\":\"");
    out.extend_from_slice(model.as_bytes());
    out.extend_from_slice(b"\",\"data\":[");
    for index in 0..items {
        out.extend_from_slice(if index == 0 { b"" } else { b"," });
        out.extend_from_slice(b"{\"object\":\"embedding\",\"index\":");
        number(out, index);
        out.extend_from_slice(b",\"embedding\":");
        out.extend_from_slice(vector.as_bytes());
        out.push(b'}');
    }
    out.push(b']');
    if let Some(tokens) = prompt {
        input_usage(out, tokens, cached_tokens);
    }
    out.push(b'}');
}

/// Appends a full answer to a request to rank `passages` passages: the first fits best, and so on.
pub(crate) fn rankings(
    out: &mut Vec<u8>,
    kind: Kind,
    index: u64,
    passages: u64,
    prompt: Option<u64>,
    cached_tokens: Option<u64>,
) {
    let score = match kind {
        Kind::CohereRankings => {
            out.extend_from_slice(b"{\"id\":\"rerank-");
            number(out, index);
            out.extend_from_slice(b"\",\"results\":[");
            "relevance_score"
        }
        Kind::HfTeiRankings => {
            out.push(b'[');
            "score"
        }
        _ => {
            out.extend_from_slice(b"{\"rankings\":[");
            "logit"
        }
    };
    for passage in 0..passages {
        out.extend_from_slice(if passage == 0 { b"{\"index\":" } else { b",{\"index\":" });
        number(out, passage);
        // Writing to a Vec cannot fail.
        let _ = write!(out, ",\"{score}\":{:.6}}}", 1.0 / (passage + 1) as f64);
    }
    out.push(b']');
    match (kind, prompt) {
        (Kind::HfTeiRankings, _) => return,
        (Kind::CohereRankings, tokens) => {
            out.extend_from_slice(b",\"meta\":{\"billed_units\":{\"search_units\":1}");
            if let Some(tokens) = tokens {
                out.extend_from_slice(b",\"tokens\":{\"input_tokens\":");
                number(out, tokens);
                out.push(b'}');
            }
            out.push(b'}');
        }
        (_, Some(tokens)) => input_usage(out, tokens, cached_tokens),
        _ => {}
    }
    out.push(b'}');
}

/// Appends the usage of an answer without tokens.
fn input_usage(out: &mut Vec<u8>, tokens: u64, cached_tokens: Option<u64>) {
    out.extend_from_slice(b",\"usage\":{\"prompt_tokens\":");
    number(out, tokens);
    out.extend_from_slice(b",\"total_tokens\":");
    number(out, tokens);
    cached(out, cached_tokens);
    out.push(b'}');
}

/// The OpenAI error object.
pub(crate) fn error(message: &str, kind: &str, parameter: Option<&str>, code: &serde_json::Value) -> Vec<u8> {
    let error = serde_json::json!({
        "error": { "message": message, "type": kind, "param": parameter, "code": code }
    });
    error.to_string().into_bytes()
}

/// The error body of fault `httpNNN`.
pub(crate) fn fault_error(status: u16) -> Vec<u8> {
    let (message, kind) = match status {
        429 => ("mock rate limit", "rate_limit_error"),
        400..500 => ("mock client error", "invalid_request_error"),
        503 => ("mock server overloaded", "server_error"),
        500.. => ("mock internal error", "server_error"),
        _ => ("mock redirect", "redirect"),
    };
    error(message, kind, None, &serde_json::Value::from(status))
}

/// The standard reason phrase of `status`.
pub(crate) fn reason(status: u16) -> &'static str {
    known_reason(status).unwrap_or(match status {
        ..400 => "Redirection",
        400..500 => "Client Error",
        500.. => "Server Error",
    })
}

fn known_reason(status: u16) -> Option<&'static str> {
    Some(match status {
        200 => "OK",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        418 => "I'm a Teapot",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return None,
    })
}

/// Appends a whole response with `body`.
pub(crate) fn response(out: &mut Vec<u8>, status: u16, content_type: &str, keep_alive: bool, body: &[u8]) {
    head(out, status, content_type, keep_alive, body.len(), "");
    // A 304 has no body by definition; a client would take one for the next answer.
    if status != 304 {
        out.extend_from_slice(body);
    }
}

/// Appends the head of a response with a body of this length; `more` are whole lines.
pub(crate) fn head(
    out: &mut Vec<u8>,
    status: u16,
    content_type: &str,
    keep_alive: bool,
    length: usize,
    more: &str,
) {
    // Writing to a Vec cannot fail.
    let _ = write!(
        out,
        "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{more}",
        reason(status),
    );
    if (300..400).contains(&status) {
        out.extend_from_slice(b"Location: /mock/elsewhere\r\n");
    }
    if matches!(status, 429 | 503) {
        out.extend_from_slice(b"Retry-After: 1\r\n");
    }
    if !keep_alive {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_n_tokens() {
        let text = |first, tokens| {
            let mut out = Vec::new();
            words(&mut out, first, tokens);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(true, 0), "");
        assert_eq!(text(true, 1), "hello");
        assert_eq!(text(false, 2), " hello hello");
        for tokens in [1_023, 1_024, 1_025, 5_000] {
            assert_eq!(text(true, tokens), vec!["hello"; tokens as usize].join(" "));
        }
    }

    #[test]
    fn ids_have_at_least_four_digits() {
        for (index, id) in [(0, "-0000"), (7, "-0007"), (42, "-0042"), (999, "-0999"), (12_345, "-12345")] {
            let mut out = Vec::new();
            opening(&mut out, Kind::Chat, true, index, "m");
            assert!(String::from_utf8(out).unwrap().starts_with(&format!("{{\"id\":\"chatcmpl{id}\",")));
        }
    }
}
