//! The text of a replayed conversation.

use std::path::PathBuf;
use std::sync::Arc;

use aiperf_types::{Content, ContextMode, Conversation, TraceSource, Turn};
use serde_json::value::RawValue;

use super::plan::place_of;
use super::segments::{Segment, Segments};
use super::trace::{Request, Trace, limit};
use crate::graph::MakeNode;
use crate::prompt::Prompts;
use crate::{DatasetError, Place, TurnFacts};

/// One request of a conversation.
pub(super) struct Call {
    pub(super) request: Request,
    /// Place in the list of the trace, and in that of the agent.
    pub(super) outer: u32,
    pub(super) inner: Option<u32>,
    /// Most tokens of an answer.
    cap: Option<u64>,
    /// Leading blocks that the trace had sent before.
    pub(super) cached: u64,
}

impl Call {
    pub(super) fn new(request: Request, outer: u32, inner: Option<u32>, cap: Option<u64>) -> Call {
        Call { request, outer, inner, cap, cached: 0 }
    }
}

/// A conversation of a trace.
pub(super) struct Line {
    pub(super) id: Arc<str>,
    kind: Arc<str>,
    trace: Arc<Trace>,
    /// Tokens of tools and system prompt.
    pub(super) head: u64,
    /// The turn that begins with them.
    pub(super) founded: usize,
    pub(super) calls: Vec<Call>,
}

impl Line {
    pub(super) fn new(trace: &Arc<Trace>, id: Arc<str>, kind: &str, calls: Vec<Call>) -> Line {
        Line { id, kind: kind.into(), trace: Arc::clone(trace), head: 0, founded: 0, calls }
    }
}

/// Makes conversations of lines.
pub(super) struct Maker {
    /// Absent where nothing is to be made.
    pub(super) prompts: Option<Prompts>,
    pub(super) lines: Vec<Line>,
}

impl Maker {
    fn message(&self, index: usize, turn: usize, segment: &Segment) -> Result<Box<RawValue>, DatasetError> {
        let line = &self.lines[index];
        let prompts = Prompts::required(self.prompts.as_ref())?;
        // Nobody else draws the tokens of this turn.
        let unique = (index as u64) << 32 | turn as u64;
        let ids = line.calls[turn].request.ids.slice(segment.from, segment.to);
        let text = prompts.message(&line.trace.identity, ids, line.trace.block_size, segment.tail, unique);
        let json = format!(
            "{{\"role\":\"{}\",\"content\":{}}}",
            segment.speaker.name(),
            serde_json::Value::String(text)
        );
        RawValue::from_string(json).map_err(|error| DatasetError::Prompt(error.to_string()))
    }
}

impl MakeNode for Maker {
    fn make(&self, index: usize) -> Result<Conversation, DatasetError> {
        let line = &self.lines[index];
        let mut segments = Segments::new(line.trace.block_size, line.head);
        let mut turns: Vec<Turn> = Vec::with_capacity(line.calls.len());
        let mut said = 0;
        for (turn, call) in line.calls.iter().enumerate() {
            let common = match turn.checked_sub(1) {
                Some(before) => line.calls[before].request.ids.common(&call.request.ids),
                None => 0,
            };
            if turn == line.founded {
                segments.found(common);
            }
            let kept = segments.go_on(&call.request, common);
            let messages = segments.messages()[kept..]
                .iter()
                .map(|segment| self.message(index, turn, segment))
                .collect::<Result<_, _>>()?;
            turns.push(Turn {
                max_tokens: Some(limit(call.request.output, call.cap)),
                content: Content::Messages { messages, tools: None },
                keep_messages: (kept < said).then_some(kept as u32),
                source: Some(Arc::new(TraceSource {
                    trace_id: Arc::clone(&line.trace.id),
                    outer_index: call.outer,
                    inner_index: call.inner,
                    kind: Arc::clone(&line.kind),
                    cached_blocks: call.cached,
                    blocks: call.request.ids.len() as u64,
                })),
                ..Turn::default()
            });
            said = segments.messages().len();
        }
        Ok(Conversation {
            id: Arc::clone(&line.id),
            turns,
            context_mode: ContextMode::DeltasWithResponses,
            ..Conversation::default()
        })
    }

    fn facts(&self, index: usize) -> Result<Vec<TurnFacts>, DatasetError> {
        let Line { trace, calls, .. } = &self.lines[index];
        let (scope, _) = trace.identity.as_chunks::<8>();
        let facts = |call: &Call| TurnFacts {
            input_tokens: Some(call.request.input),
            output_tokens: Some(call.request.output),
            hash_ids: call.request.ids.iter().collect(),
            hash_scope: u64::from_le_bytes(scope[0]),
            block_size: Some(trace.block_size),
            ..TurnFacts::default()
        };
        Ok(calls.iter().map(facts).collect())
    }

    fn place(&self, index: usize, turn: usize) -> Option<(PathBuf, Place)> {
        let line = self.lines.get(index)?;
        let call = line.calls.get(turn)?;
        Some((line.trace.file.clone(), place_of(&line.trace, call.outer, call.inner)))
    }
}
