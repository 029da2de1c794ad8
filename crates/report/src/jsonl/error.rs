//! `error`: why a request failed.

use aiperf_types::RequestError;

use crate::json;
use crate::redact::Redactor;

/// Appends the error object: `{code?, type, message, cause?, cause_chain?, details?}`.
pub(super) fn write(out: &mut Vec<u8>, error: &RequestError, redactor: &Redactor) {
    out.push(b'{');
    if let Some(code) = error.code {
        json::key(out, "code");
        json::signed(out, code);
    }
    json::key(out, "type");
    json::string(out, &error.kind);
    json::key(out, "message");
    json::string(out, &redactor.text(&error.message));
    if let Some(cause) = &error.cause {
        json::key(out, "cause");
        json::string(out, &redactor.text(cause));
    }
    if !error.cause_chain.is_empty() {
        json::key(out, "cause_chain");
        out.push(b'[');
        for (index, class) in error.cause_chain.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::string(out, class);
        }
        out.push(b']');
    }
    if let Some(retry_after) = &error.retry_after {
        json::key(out, "details");
        out.extend_from_slice(b"{\"retry_after\":");
        json::string(out, retry_after);
        out.push(b'}');
    }
    out.push(b'}');
}
