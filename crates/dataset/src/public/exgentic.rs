//! Exgentic, first and second version: recorded sessions of agents, one in each row. Every successful call of a model
//! is one request that says all that was said then; nothing is run, and no live answer is said again.

mod attributes;
mod combinations;
mod controls;
mod filter;
mod head;
mod messages;
mod session;
mod span;
mod tools;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::{Converter, Fault, Job, Made, Row};
pub(crate) use combinations::Version;
use filter::{Filter, Seen};
use head::Head;
use session::{Counts, Session};

/// Makes the converter of a version.
pub(super) fn make(version: Version, job: Job<'_>) -> Result<Box<dyn Converter + '_>, Fault> {
    let filter = Filter::new(version, job.filters)
        .map_err(|what| Fault::new(what, "Choose one of these with --dataset-filter"))?;
    Ok(Box::new(Exgentic {
        filter,
        fixed_schedule: job.fixed_schedule,
        found: Mutex::default(),
        ids: HashSet::new(),
    }))
}

/// Whether a version can be filtered so; the error lists what there is.
pub(super) fn check_filters(version: Version, filters: &[(String, String)]) -> Result<(), String> {
    Filter::new(version, filters).map(|_| ())
}

struct Exgentic {
    filter: Filter,
    /// Every call is a conversation of its own.
    fixed_schedule: bool,
    found: Mutex<Found>,
    /// Sessions that were kept.
    ids: HashSet<String>,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    seen: Seen,
    /// Sessions that were asked for.
    matched: u64,
    counts: Counts,
}

impl Converter for Exgentic {
    fn columns(&self) -> Option<Vec<&str>> {
        Some(head::COLUMNS.into_iter().chain([session::SPANS]).collect())
    }

    fn chooses_by(&self) -> Option<Vec<&str>> {
        (!self.filter.is_empty()).then(|| head::COLUMNS.to_vec())
    }

    fn chooses(&self, row: &Row) -> Result<bool, Fault> {
        let head = Head::of(&row.value).map_err(|fault| in_row(row, &fault))?;
        let matches = self.filter.matches(&head);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.seen.take(&head);
        found.matched += u64::from(matches);
        Ok(matches)
    }

    fn convert(&self, row: &Row) -> Result<Made, Fault> {
        let head = Head::of(&row.value).map_err(|fault| in_row(row, &fault))?;
        let spans = row.value.get(session::SPANS);
        let (session, counts) = Session::read(&head, spans)
            .map_err(|fault| in_row(row, &fault.within(format!("session {}", head.session_id))))?;
        self.found.lock().unwrap_or_else(PoisonError::into_inner).counts.add(&counts);
        if session.is_empty() {
            return Ok(Made::Skipped("no successful call in the session"));
        }
        let drafts =
            if self.fixed_schedule { session.apart() } else { session.whole().map(|draft| vec![draft]) };
        drafts.map(Made::Conversations).map_err(|fault| in_row(row, &fault))
    }

    fn took(&mut self, row: &Row, made: &Made) -> Result<(), Fault> {
        let Made::Conversations(drafts) = made else { return Ok(()) };
        let Some(id) = drafts.first().and_then(|draft| draft.source_session.as_deref()) else {
            return Ok(());
        };
        if self.ids.insert(id.to_owned()) {
            return Ok(());
        }
        Err(Fault::new(
            format!("{}: session {id} occurs twice", row.place()),
            "Lower --num-conversations so that only the first is read, or tell the publisher",
        ))
    }

    fn notes(&self) -> Vec<String> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.counts.lines(self.ids.len())
    }

    fn request_tokens(&self) -> Vec<u64> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).counts.request_tokens.clone()
    }

    fn nothing(&self) -> Option<Fault> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if self.filter.is_empty() {
            return None;
        }
        let (what, fix) = if found.matched == 0 {
            (found.seen.no_match(&self.filter), "Choose one of these with --dataset-filter")
        } else {
            let what =
                format!("none of the {} session(s) of {} has a successful call", found.matched, self.filter);
            (what, "Choose others with --dataset-filter")
        };
        Some(Fault::new(what, fix))
    }
}

fn in_row(row: &Row, fault: &crate::json::Fault) -> Fault {
    let field = if fault.field.is_empty() { String::new() } else { format!(" {}:", fault.field) };
    Fault::new(
        format!("{}:{field} {}", row.place(), fault.rule),
        "Choose other sessions with --dataset-filter or a lower bound, or tell the publisher",
    )
}

/// Reads any text as a span, and checks what comes of it.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz_span(text: &str) {
    use serde_json::Value as Json;

    let Ok(span) = serde_json::from_str::<Json>(text) else { return };
    let Ok(span::Span::Call(call)) = span::Span::read(&span.into()) else { return };
    assert!(call.end >= call.start && call.max_tokens > 0 && call.input_tokens > 0, "{call:?}");
    let list = |text: &str| match serde_json::from_str::<Json>(text) {
        Ok(Json::Array(list)) => list,
        other => panic!("{other:?}: {text}"),
    };
    let messages = list(&call.messages);
    let is_message = |message: &Json| message["role"].is_string() && message["content"].is_string();
    assert!(!messages.is_empty() && messages.iter().all(is_message), "{}", call.messages);
    if let Some(tools) = &call.tools {
        let is_tool = |tool: &Json| tool["type"] == "function" && tool["function"].is_object();
        assert!(list(tools).iter().all(is_tool), "{tools}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Values that are found where another was meant.
    fn odd() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            Just(json!("")),
            Just(json!("[")),
            Just(json!("[{\"type\":\"text\",\"content\":\"a\"}]")),
            Just(json!("text")),
            Just(json!(1.5)),
            (-2i64..4).prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            let key = prop::sample::select(vec![
                "type",
                "content",
                "role",
                "parts",
                "id",
                "name",
                "arguments",
                "result",
            ]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..4).prop_map(|fields| fields
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()),
            ]
        })
    }

    const PLACES: [&str; 12] = [
        "/type",
        "/status",
        "/start_time",
        "/attributes",
        "/attributes/gen_ai.operation.name",
        "/attributes/gen_ai.usage.input_tokens",
        "/attributes/gen_ai.request.max_tokens",
        "/attributes/gen_ai.request.stop_sequences",
        "/attributes/gen_ai.system_instructions",
        "/attributes/gen_ai.input.messages",
        "/attributes/gen_ai.input.messages/0/parts/0",
        "/attributes/gen_ai.tool.definitions",
    ];

    proptest! {
        #[test]
        fn any_span_is_a_call_of_messages_and_tools_or_a_fault(
            changes in prop::collection::vec((prop::sample::select(PLACES.to_vec()), odd()), 0..3),
            nested in any::<bool>(),
        ) {
            let mut span = json!({
                "type": "llm_call", "start_time": "2026-03-01T10:00:00", "end_time": "2026-03-01T10:00:01",
                "status": {"code": 1},
                "attributes": {
                    "gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 1, "gen_ai.usage.output_tokens": 1,
                    "gen_ai.request.max_tokens": 1, "gen_ai.request.stop_sequences": ["x"],
                    "gen_ai.system_instructions": "s",
                    "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "a"}]}],
                    "gen_ai.tool.definitions": [{"type": "function", "name": "f", "parameters": {}}],
                },
            });
            for (place, value) in changes {
                if let Some(found) = span.pointer_mut(place) {
                    *found = value;
                }
            }
            if nested && let Some(attributes) = span.get_mut("attributes") {
                *attributes = attributes.to_string().into();
            }
            fuzz_span(&span.to_string());
        }

        #[test]
        fn no_text_brings_it_down(text in "\\PC{0,40}") {
            fuzz_span(&text);
        }
    }
}
