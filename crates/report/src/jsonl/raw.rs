//! Lines of `profile_export_raw.jsonl`.

use aiperf_clock::Anchor;
use aiperf_types::{Body, RawResponse, RequestRecord};

use super::{error, metadata, trace};
use crate::json;
use crate::redact::Redactor;

/// Headers of the connection rather than of the request.
const TRANSPORT_HEADERS: [&str; 4] = ["host", "content-length", "connection", "transfer-encoding"];

/// Writes a line per record with everything that was sent and that came back.
#[derive(Clone, Debug)]
pub struct RawWriter {
    processor: Box<[u8]>,
    redactor: Redactor,
    anchor: Anchor,
}

impl RawWriter {
    /// A writer for the record thread number `processor`.
    pub fn new(redactor: Redactor, processor: usize) -> RawWriter {
        RawWriter {
            processor: format!("record_processor_{processor}").into_bytes().into(),
            redactor,
            anchor: Anchor::process(),
        }
    }

    /// The same writer with another pair of clock readings, for records that were taken elsewhere.
    #[must_use]
    pub fn with_anchor(mut self, anchor: Anchor) -> RawWriter {
        self.anchor = anchor;
        self
    }

    /// Appends the line of a record, line end included.
    pub fn write(&self, record: &RequestRecord, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"metadata\":");
        metadata::write(out, record, &self.processor, self.anchor);
        out.extend_from_slice(b",\"start_perf_ns\":");
        json::unsigned(out, record.start.0);
        if let Some(list) = &record.request.headers {
            out.extend_from_slice(b",\"request_headers\":");
            let is_kept =
                |name: &str| !TRANSPORT_HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name));
            trace::headers(out, list, is_kept, &self.redactor);
        }
        if let Some(status) = record.status {
            out.extend_from_slice(b",\"status\":");
            json::unsigned(out, u64::from(status));
        }
        out.extend_from_slice(b",\"responses\":[");
        self.responses(record.answer.raw.as_ref(), out);
        out.push(b']');
        if let Some(failure) = &record.error {
            out.extend_from_slice(b",\"error\":");
            error::write(out, failure, &self.redactor);
        }
        if let Some(marker) = &record.request.marker {
            out.extend_from_slice(b",\"cache_bust_marker\":");
            json::string(out, &marker.text);
            out.extend_from_slice(b",\"cache_bust_target\":");
            json::string(out, &marker.target);
        }
        out.extend_from_slice(b",\"payload\":");
        payload(&record.request.body, out);
        out.extend_from_slice(b"}\n");
    }

    fn responses(&self, raw: Option<&RawResponse>, out: &mut Vec<u8>) {
        match raw {
            None => {}
            Some(RawResponse::Text { at, text, content_type }) => {
                out.extend_from_slice(b"{\"perf_ns\":");
                json::unsigned(out, at.0);
                out.extend_from_slice(b",\"text\":");
                json::string(out, &self.redactor.text(text));
                out.extend_from_slice(b",\"content_type\":");
                json::string(out, content_type);
                out.push(b'}');
            }
            Some(RawResponse::Events(events)) => {
                for (index, event) in events.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b",{\"perf_ns\":" } else { b"{\"perf_ns\":" });
                    json::unsigned(out, event.at.0);
                    out.extend_from_slice(b",\"packets\":[");
                    for (index, packet) in event.packets.iter().enumerate() {
                        out.extend_from_slice(if index > 0 { b",{\"name\":" } else { b"{\"name\":" });
                        json::string(out, &packet.name);
                        out.extend_from_slice(b",\"value\":");
                        json::string(out, &self.redactor.text(&packet.value));
                        out.push(b'}');
                    }
                    out.extend_from_slice(b"]}");
                }
            }
        }
    }
}

/// Appends the body as sent. Line ends between its tokens (an authored body may have some) become spaces: a
/// record is one line, and JSON strings cannot hold a bare line end.
fn payload(body: &Body, out: &mut Vec<u8>) {
    if body.is_empty() {
        out.extend_from_slice(b"null");
        return;
    }
    let start = out.len();
    out.reserve(body.len());
    for segment in body.segments() {
        out.extend_from_slice(segment);
    }
    let mut from = start;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', &out[from..]) {
        out[from + at] = b' ';
        from += at + 1;
    }
}
