//! Lines of `profile_export.jsonl`.

use aiperf_clock::Anchor;
use aiperf_metrics::{Context, RecordValues, Value, registry};
use aiperf_types::{RequestRecord, SpecDecode};

use super::{error, metadata, trace};
use crate::json;
use crate::redact::Redactor;

/// What stands around the value of a metric.
#[derive(Clone, Debug)]
struct Fragment {
    /// `"tag":{"value":`
    head: Box<[u8]>,
    /// `,"unit":"ms"},`
    tail: Box<[u8]>,
}

/// Writes a line per record. Everything that does not depend on the record is prepared once.
#[derive(Clone, Debug)]
pub struct RecordWriter {
    /// By metric; absent for metrics that lines do not carry.
    fragments: Vec<Option<Fragment>>,
    processor: Box<[u8]>,
    http_trace: bool,
    redactor: Redactor,
    anchor: Anchor,
}

impl RecordWriter {
    /// A writer for the record thread number `processor`; `http_trace` adds `trace_data`.
    pub fn new(context: &Context, http_trace: bool, redactor: Redactor, processor: usize) -> RecordWriter {
        let fragments = registry::all().map(|def| {
            context.exported_per_record(def.metric).then(|| {
                let mut tail = b",\"unit\":".to_vec();
                json::string(&mut tail, def.display_unit);
                tail.extend_from_slice(b"},");
                Fragment {
                    head: format!("\"{}\":{{\"value\":", def.tag).into_bytes().into(),
                    tail: tail.into(),
                }
            })
        });
        RecordWriter {
            fragments: fragments.collect(),
            processor: format!("record_processor_{processor}").into_bytes().into(),
            http_trace,
            redactor,
            anchor: Anchor::process(),
        }
    }

    /// The same writer with another pair of clock readings, for records that were taken elsewhere.
    #[must_use]
    pub fn with_anchor(mut self, anchor: Anchor) -> RecordWriter {
        self.anchor = anchor;
        self
    }

    /// Appends the line of a record, line end included.
    pub fn write(&self, record: &RequestRecord, values: &RecordValues, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"metadata\":");
        metadata::write(out, record, &self.processor, self.anchor);
        out.extend_from_slice(b",\"metrics\":{");
        self.metrics(values, out);
        if self.http_trace {
            out.extend_from_slice(b",\"trace_data\":");
            trace::write(out, record, &self.redactor, self.anchor);
        }
        if let Some(stats) = &record.answer.spec_decode {
            out.extend_from_slice(b",\"spec_decode_acceptance\":");
            spec_decode(out, stats, record.answer.usage.and_then(|usage| usage.completion_tokens));
        }
        if let Some(failure) = &record.error {
            out.extend_from_slice(b",\"error\":");
            error::write(out, failure, &self.redactor);
        }
        out.extend_from_slice(b"}\n");
    }

    /// Appends the metrics and the closing brace of their object.
    fn metrics(&self, values: &RecordValues, out: &mut Vec<u8>) {
        for (metric, value) in values.iter() {
            let Some(fragment) = &self.fragments[metric as usize] else { continue };
            out.extend_from_slice(&fragment.head);
            match value {
                Value::Int(value) => json::signed(out, value),
                Value::Float(value) => json::float(out, value),
                Value::List(list) => {
                    out.push(b'[');
                    for &value in list {
                        json::float(out, value);
                        out.push(b',');
                    }
                    close(out, b']');
                }
            }
            out.extend_from_slice(&fragment.tail);
        }
        close(out, b'}');
    }
}

/// Closes a list: over the comma of its last member, or right after its opening.
fn close(out: &mut Vec<u8>, bracket: u8) {
    match out.last_mut() {
        Some(last) if *last == b',' => *last = bracket,
        _ => out.push(bracket),
    }
}

/// Appends what the server said about speculative decoding, zero buckets left out.
fn spec_decode(out: &mut Vec<u8>, stats: &SpecDecode, completion_tokens: Option<u64>) {
    out.extend_from_slice(b"{\"engine\":\"vllm\"");
    if let Some(mean) = stats.mean_acceptance_length {
        json::key(out, "mean_acceptance_length");
        json::float(out, mean);
    }
    if let (Some(accepted), Some(drafted @ 1..)) = (stats.accepted_draft_tokens, stats.draft_tokens) {
        json::key(out, "draft_acceptance_rate");
        json::float(out, accepted as f64 / drafted as f64);
    }
    json::key(out, "acceptance_histogram");
    out.push(b'{');
    for (accepted, &steps) in stats.acceptance_histogram.iter().enumerate().filter(|(_, steps)| **steps > 0) {
        out.push(b'"');
        json::unsigned(out, accepted as u64);
        out.extend_from_slice(b"\":");
        json::unsigned(out, steps);
        out.push(b',');
    }
    close(out, b'}');
    let counts = [
        ("num_accepted_draft_tokens", stats.accepted_draft_tokens),
        ("num_draft_tokens", stats.draft_tokens),
        ("num_spec_steps", Some(stats.num_spec_steps)),
        ("num_spec_tokens", stats.num_spec_tokens),
        ("completion_tokens", completion_tokens),
    ];
    for (name, count) in counts {
        if let Some(count) = count {
            json::key(out, name);
            json::unsigned(out, count);
        }
    }
    out.push(b'}');
}
