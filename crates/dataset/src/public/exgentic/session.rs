//! One session: its calls in the order of their starts, as one conversation or as a conversation each.

use std::collections::BTreeMap;
use std::sync::Arc;

use aiperf_types::{Content, ContextMode, Turn};
use serde_json::value::RawValue;

use super::head::Head;
use super::span::{Call, Span};
use crate::json::Fault;
use crate::public::{Draft, Value};

/// The column of the spans.
pub(super) const SPANS: &str = "spans";

/// What was met in sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) requests: u64,
    pub(super) failed: u64,
    pub(super) not_calls: u64,
    pub(super) no_tokens: u64,
    /// Calls that start before the one before them ended.
    pub(super) overlapping: u64,
    /// Input tokens and output limit of each call.
    pub(super) request_tokens: Vec<u64>,
    /// By name, how often a control was recorded that has no body key.
    pub(super) unknown_controls: BTreeMap<String, u64>,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Counts) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.not_calls += other.not_calls;
        self.no_tokens += other.no_tokens;
        self.overlapping += other.overlapping;
        self.request_tokens.extend_from_slice(&other.request_tokens);
        for (name, count) in &other.unknown_controls {
            *self.unknown_controls.entry(name.clone()).or_default() += count;
        }
    }

    /// What is worth saying.
    pub(super) fn lines(&self, sessions: usize) -> Vec<String> {
        let Counts { requests, failed, not_calls, no_tokens, overlapping, .. } = self;
        let mut lines = vec![format!(
            "{sessions} recorded session(s), {requests} request(s); left out: {failed} failed, {not_calls} non_llm, \
             {no_tokens} zero_token; overlapping_calls: {overlapping}"
        )];
        if !self.unknown_controls.is_empty() {
            let total: u64 = self.unknown_controls.values().sum();
            // Escaped: they come from the data.
            let names: Vec<String> =
                self.unknown_controls.keys().map(|name| name.escape_debug().to_string()).collect();
            lines.push(format!(
                "{total} recorded request control(s) have no body key and are not sent: {}",
                names.join(", ")
            ));
        }
        lines
    }
}

/// The calls of a session that are replayed, in the order of their starts.
#[derive(Debug)]
pub(super) struct Session {
    id: Arc<str>,
    /// With their numbers among all spans.
    calls: Vec<(usize, Box<Call>)>,
}

impl Session {
    /// Reads the spans of a row: a list, or the text of one. Faults name the span.
    pub(super) fn read(head: &Head, spans: Option<&Value>) -> Result<(Session, Counts), Fault> {
        let parsed;
        let spans = match spans {
            None | Some(Value::Null) => &[][..],
            Some(Value::List(spans)) => spans,
            Some(Value::Text(text)) => {
                parsed = serde_json::from_str::<serde_json::Value>(text)
                    .map(Value::from)
                    .map_err(|error| Fault::new(SPANS, format!("cannot be read as a list: {error}")))?;
                parsed.list().ok_or_else(|| Fault::new(SPANS, "must be a list"))?
            }
            Some(_) => return Err(Fault::new(SPANS, "must be a list")),
        };
        let mut counts = Counts::default();
        let mut calls = Vec::new();
        for (number, span) in spans.iter().enumerate() {
            match Span::read(span).map_err(|fault| fault.within(format!("span {number}")))? {
                Span::NotACall => counts.not_calls += 1,
                Span::Failed => counts.failed += 1,
                Span::NoTokens => counts.no_tokens += 1,
                Span::Call(call) => calls.push((number, call)),
            }
        }
        calls.sort_by_key(|(number, call)| (call.start, *number));
        counts.requests = calls.len() as u64;
        counts.overlapping = calls.windows(2).filter(|pair| pair[1].1.start < pair[0].1.end).count() as u64;
        let tokens = |call: &Call| call.input_tokens.saturating_add(call.max_tokens);
        counts.request_tokens = calls.iter().map(|(_, call)| tokens(call)).collect();
        for name in calls.iter().flat_map(|(_, call)| &call.unknown_controls) {
            *counts.unknown_controls.entry(name.clone()).or_default() += 1;
        }
        Ok((Session { id: head.session_id.as_str().into(), calls }, counts))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// One conversation: after an answer the next call waits as long as it did after the recorded answer.
    pub(super) fn whole(self) -> Result<Draft, Fault> {
        let mut turns = Vec::with_capacity(self.calls.len());
        let mut ended = None;
        for (_, call) in self.calls {
            let delay = ended.map(|ended| milliseconds(call.start - ended).max(0.0));
            ended = Some(call.end);
            turns.push(Turn { delay_ms: delay, ..turn(*call)? });
        }
        Ok(draft(self.id.clone(), &self.id, turns))
    }

    /// A conversation of each call, due as long after the first as it was recorded.
    pub(super) fn apart(self) -> Result<Vec<Draft>, Fault> {
        let first = self.calls.first().map_or(0, |(_, call)| call.start);
        let apart = |(number, call): (usize, Box<Call>)| {
            let timestamp_ms = Some(milliseconds(call.start - first));
            let turn = Turn { timestamp_ms, ..turn(*call)? };
            Ok(draft(format!("{}:{number}", self.id).into(), &self.id, vec![turn]))
        };
        self.calls.into_iter().map(apart).collect()
    }
}

fn draft(id: Arc<str>, session: &Arc<str>, turns: Vec<Turn>) -> Draft {
    Draft {
        id: Some(id),
        mode: ContextMode::MessageArrayWithResponses,
        source_session: Some(Arc::clone(session)),
        turns,
    }
}

fn milliseconds(nanoseconds: i128) -> f64 {
    nanoseconds as f64 / 1e6
}

fn turn(call: Call) -> Result<Turn, Fault> {
    let unreadable = |error: serde_json::Error| Fault::new("", error.to_string());
    let Call { max_tokens, messages, tools, controls, .. } = call;
    Ok(Turn {
        max_tokens: Some(max_tokens),
        content: Content::Messages {
            messages: serde_json::from_str::<Vec<Box<RawValue>>>(&messages).map_err(unreadable)?,
            tools: tools.map(RawValue::from_string).transpose().map_err(unreadable)?,
        },
        extra_body: (!controls.is_empty()).then_some(controls),
        ..Turn::default()
    })
}
