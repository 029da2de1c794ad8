//! `metadata`: which request, when, by whom.

use aiperf_clock::Anchor;
use aiperf_types::{PhaseKind, RequestRecord, TraceSource};

use crate::json;

/// Appends the metadata object of a record; instants are wall-clock nanoseconds.
pub(super) fn write(out: &mut Vec<u8>, record: &RequestRecord, processor: &[u8], anchor: Anchor) {
    let identity = &record.identity;
    let wall = |out: &mut Vec<u8>, at| json::unsigned(out, anchor.wall(at));

    out.extend_from_slice(b"{\"session_num\":");
    json::unsigned(out, identity.number);
    out.extend_from_slice(b",\"x_request_id\":\"");
    out.extend_from_slice(&identity.request_id);
    out.extend_from_slice(b"\",\"x_correlation_id\":");
    json::string(out, &identity.correlation_id);
    out.extend_from_slice(b",\"conversation_id\":");
    json::string(out, &identity.conversation_id);
    out.extend_from_slice(b",\"turn_index\":");
    json::unsigned(out, u64::from(identity.turn_index));
    if let Some(source) = &identity.source {
        trace_source(out, source);
    }
    out.extend_from_slice(b",\"credit_issued_ns\":");
    wall(out, record.plan.issued);
    out.extend_from_slice(b",\"request_start_ns\":");
    wall(out, record.start);
    if let (Some(at), Some(200..=299)) = (record.headers, record.status) {
        out.extend_from_slice(b",\"request_ack_ns\":");
        wall(out, at);
    }
    out.extend_from_slice(b",\"request_end_ns\":");
    wall(out, record.end);
    out.extend_from_slice(b",\"worker_id\":\"worker_");
    json::unsigned(out, u64::from(identity.worker));
    out.extend_from_slice(b"\",\"record_processor_id\":\"");
    out.extend_from_slice(processor);
    let name = identity.phase.name().as_bytes();
    out.extend_from_slice(b"\",\"benchmark_phase\":\"");
    out.extend_from_slice(name);
    out.extend_from_slice(b"\",\"phase_index\":");
    json::unsigned(out, u64::from(identity.phase_index));
    if identity.phase == PhaseKind::Profiling {
        // A run has one profiling phase.
        out.extend_from_slice(b",\"profiling_index\":0");
    }
    out.extend_from_slice(b",\"phase_name\":\"");
    out.extend_from_slice(name);
    out.extend_from_slice(b"\",\"phase_kind\":\"");
    out.extend_from_slice(name);
    match record.cancelled_at {
        None => out.extend_from_slice(b"\",\"was_cancelled\":false"),
        Some(at) => {
            out.extend_from_slice(b"\",\"was_cancelled\":true,\"cancellation_time_ns\":");
            wall(out, at);
        }
    }
    // A turn is never left out because an earlier one overflowed.
    out.extend_from_slice(b",\"context_overflow_skip\":false,\"agent_depth\":");
    let lineage = identity.lineage.as_deref();
    json::unsigned(out, lineage.map_or(0, |lineage| u64::from(lineage.depth)));
    if let Some(parent) = lineage.and_then(|lineage| lineage.parent.as_ref()) {
        out.extend_from_slice(b",\"parent_correlation_id\":");
        json::string(out, parent);
    }
    out.extend_from_slice(b",\"root_correlation_id\":");
    json::string(out, lineage.map_or(&identity.correlation_id, |lineage| &lineage.root));
    if let Some(at) = record.plan.scheduled {
        out.extend_from_slice(b",\"scheduled_ns\":");
        wall(out, at);
    }
    out.extend_from_slice(b",\"due_ns\":");
    wall(out, record.plan.due);
    if let Some(complete) = record.answer.stream_complete {
        out.extend_from_slice(if complete {
            b",\"stream_complete\":true"
        } else {
            b",\"stream_complete\":false"
        });
    }
    if record.client_delayed {
        out.extend_from_slice(b",\"client_delayed\":true");
    }
    out.push(b'}');
}

/// Appends where an agentic trace has the request.
fn trace_source(out: &mut Vec<u8>, source: &TraceSource) {
    out.extend_from_slice(b",\"source_trace_id\":");
    json::string(out, &source.trace_id);
    out.extend_from_slice(b",\"source_outer_idx\":");
    json::unsigned(out, u64::from(source.outer_index));
    if let Some(inner) = source.inner_index {
        out.extend_from_slice(b",\"source_inner_idx\":");
        json::unsigned(out, u64::from(inner));
    }
    out.extend_from_slice(b",\"source_kind\":");
    json::string(out, &source.kind);
}
