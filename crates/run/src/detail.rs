//! Lines for those who ask: where the server is and each failed request from `debug` on, every request at `trace`. Those
//! of requests are written where records are made, never on a network thread.

use std::fmt::Write as _;
use std::net::SocketAddr;

use aiperf_clock::Mono;
use aiperf_report::{Level, Log};
use aiperf_types::RequestRecord;

/// Says where requests go and what the host lets through.
pub(crate) fn server(log: &Log, addresses: &[SocketAddr], descriptors: u64) {
    if log.is_enabled(Level::Debug) {
        let list: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        let text = format!("connections go to {}; {descriptors} open files are allowed", list.join(", "));
        log.write(Level::Debug, "connections", &text);
    }
}

/// Says how a request ended, if that is asked for.
pub(crate) fn request(log: &Log, record: &RequestRecord) {
    let level = if record.is_valid() { Level::Trace } else { Level::Debug };
    if log.is_enabled(level) {
        log.write(level, "requests", &line(record));
    }
}

fn line(record: &RequestRecord) -> String {
    let id = &record.identity;
    let ms = |until: Mono| until.saturating_since(record.start) as f64 / 1e6;
    let mut text = format!(
        "{} request {} ({}), turn {} of {}: ",
        id.phase.name(),
        id.number,
        String::from_utf8_lossy(&id.request_id),
        id.turn_index,
        id.conversation_id
    );
    if let Some(error) = &record.error {
        let code = error.code.map(|code| format!("{code} ")).unwrap_or_default();
        let _ = write!(text, "{code}{} after {:.3} ms: {}", error.kind, ms(record.end), error.message);
        return text;
    }
    if let Some(status) = record.status {
        let _ = write!(text, "{status}, ");
    }
    if let Some(first) = record.first_content().filter(|_| !record.answer.not_streamed) {
        let _ = write!(text, "first content after {:.3} ms, ", ms(first));
    }
    let _ = write!(text, "all after {:.3} ms", ms(record.end));
    if let Some(input) = record.tokens.input {
        let _ = write!(text, ", {input} tokens in");
    }
    let (output, reasoning) = (record.tokens.output, record.tokens.reasoning);
    if output.is_some() || reasoning.is_some() {
        let _ = write!(text, ", {} out", output.unwrap_or(0) + reasoning.unwrap_or(0));
    }
    text
}
